"""Canonical bytes and a digest of a 750-byte candidate, beside rfc8785 alone."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import rfc8785

from assisted_benchmark.kernel.canonical import canonical_bytes
from figures.figure import Figure, at_most, p50_us

_CANDIDATE = {
    "taskId": "t-1",
    "targetId": "approve",
    "labels": [f"label-{index}" for index in range(20)],
    "limits": {f"limit-{index}": index * 1000 for index in range(20)},
    "note": "n" * 120,
}


def figures() -> Iterator[Figure]:
    """One figure: microseconds a candidate."""
    calls = 5000
    ours = p50_us([lambda: sha256(canonical_bytes(_CANDIDATE)).digest()] * calls)
    peer = p50_us([lambda: sha256(rfc8785.dumps(_CANDIDATE)).digest()] * calls)
    yield at_most("canonical bytes and digest, 750 bytes", "us", ours, peer / 3, {"rfc8785": peer})
