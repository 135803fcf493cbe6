"""The files that the plugin host makes: a real PNG and a real WAV, small, and the same for the same input."""

from __future__ import annotations

import struct
import zlib
from typing import Final

SAMPLE_RATE: Final = 48_000
CHANNELS: Final = 2
_MOST_FRAMES: Final = 256


def png(width: int, height: int, colour: bytes) -> bytes:
    """A picture of one colour (three bytes) with a lighter diagonal."""
    light = bytes(255 - (255 - each) // 2 for each in colour)
    rows = b"".join(b"\0" + b"".join(light if x == y else colour for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def wav(frames: int, level: int) -> tuple[bytes, int]:
    """A rising ramp of at most `frames` frames, 16 bit; and how many frames it has."""
    count = min(frames, _MOST_FRAMES)
    samples = struct.pack(f"<{count * CHANNELS}h", *(level * (i // CHANNELS) for i in range(count * CHANNELS)))
    layout = struct.pack("<HHIIHH", 1, CHANNELS, SAMPLE_RATE, SAMPLE_RATE * CHANNELS * 2, CHANNELS * 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(layout)) + layout + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body, count
