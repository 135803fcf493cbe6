"""Every kind of vector and its player: from what is given to the whole answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.suite.vectors import capability, live, mutation, plain
from assisted_benchmark.suite.vectors.vector import Vector

NO_ANSWER: Final = "no answer"

Player: TypeAlias = Callable[[Json, Mapping[str, Json]], Json]

PLAYERS: Final[Mapping[str, Player]] = {
    "canonical": plain.canonical,
    "digest": plain.digest,
    "admission": plain.admission,
    "receipts": plain.receipts,
    "live": live.play,
    "mutation": mutation.play,
    "capability": capability.play,
}


def answer(vector: Vector) -> Json:
    """What this implementation says to a vector; what it cannot answer at all is said as such."""
    try:
        return PLAYERS[vector.kind](vector.given, vector.shared)
    except Exception as error:  # noqa: BLE001 - whatever it was, it is no answer
        return {"code": NO_ANSWER, "error": type(error).__name__}


def holds(vector: Vector) -> bool:
    """Whether that is the answer that the vector expects, to the byte of its canonical form."""
    return canonical_bytes(answer(vector)) == canonical_bytes(vector.expected)
