"""Signals that ask a command to end: Ctrl-C, and what CI sends when it cancels."""

from __future__ import annotations

import signal
from typing import Final

INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM)


def hold_interrupts() -> None:
    """From now on the command is on its way to its end anyway, and writes what there is to write."""
    for each in INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
