"""Canonical bytes and a digest of a 750-byte candidate, beside rfc8785 alone."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from assisted_benchmark.kernel.canonical import canonical_bytes
from figures.figure import Figure, at_most, p50_us
from figures.machine import CANDIDATE, peer_us


def figures() -> Iterator[Figure]:
    """One figure: microseconds a candidate."""
    calls = 5000
    ours = p50_us([lambda: sha256(canonical_bytes(CANDIDATE)).digest()] * calls)
    peer = peer_us(calls)
    yield at_most("canonical bytes and digest, 750 bytes", "us", ours, peer / 3, {"rfc8785": peer})
