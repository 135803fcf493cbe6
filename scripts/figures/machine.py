"""How fast this machine is at this moment, told by one peer's work beside the machine where the bounds were set.

The bounds are absolute. Where one is missed it is a miss, whatever this says; beside it stands what the figure
would be at the speed of that machine. One thread's work is measured, so of figures that keep several cores busy,
or wait for a disk, it tells less.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import rfc8785

from figures.figure import p50_us

# What `rfc8785` and SHA-256 took of this candidate where the bounds were set.
SET_AT_US: Final = 29.0
_CALLS: Final = 300

CANDIDATE: Final[dict[str, Any]] = {
    "taskId": "t-1",
    "targetId": "approve",
    "labels": [f"label-{index}" for index in range(20)],
    "limits": {f"limit-{index}": index * 1000 for index in range(20)},
    "note": "n" * 120,
}


def peer_us(calls: int = _CALLS) -> float:
    """The peer's median time for the candidate, now, in microseconds."""
    return p50_us([lambda: sha256(rfc8785.dumps(CANDIDATE)).digest()] * calls)


def machine_factor() -> float:
    """How many times as long the same work takes here and now: 1 where the bounds were set."""
    return peer_us() / SET_AT_US
