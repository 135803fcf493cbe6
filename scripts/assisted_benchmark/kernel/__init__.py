"""The kernel: bytes, digests, reasons, errors, clocks, chance. Pure; imports no other room."""
