"""Values drawn by chance: scalars of any kind, and what the plain keywords of a JSON Schema describe. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.chance import SeededChance

T = TypeVar("T")

_DEPTH: Final = 4
_WORDS: Final = ("", "t-1", "approve", "Approve", "hold ", "../hold", "\u0430pprove", "x" * 300)


class Draw:
    """Choices, the same for the same seed on every machine and every Python."""

    def __init__(self, seed: str) -> None:
        self._chance = SeededChance(seed)

    def below(self, end: int) -> int:
        """One of the numbers from 0, below `end`."""
        return int.from_bytes(self._chance.token(8), "big") % end

    def one(self, of: Sequence[T]) -> T:
        """One of these."""
        return of[self.below(len(of))]


def scalar(draw: Draw) -> Json:
    """Text, a number, a truth value or null."""
    return draw.one((None, True, 0, 1, -1, 0.5, 1e300, *_WORDS))


def sample(schema: Json, draw: Draw, depth: int = _DEPTH) -> Json:
    """Something of that schema, as far as its plain keywords say; patterns and lengths are not heeded."""
    if type(schema) is not dict or not depth:
        return scalar(draw)
    if "const" in schema:
        return schema["const"]
    for key in ("enum", "examples"):
        if schema.get(key):
            return draw.one(schema[key])
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return sample(draw.one(schema[key]), draw, depth - 1)
    types = schema.get("type", "object" if "properties" in schema else "string")
    match draw.one(types) if type(types) is list else types:
        case "object":
            return dict(_members(schema, draw, depth))
        case "array":
            return [sample(schema.get("items"), draw, depth - 1) for _ in range(draw.below(3))]
        case "integer" | "number":
            least = schema.get("minimum", 0)
            return min(least + draw.below(10), schema.get("maximum", least + 10))
        case "boolean":
            return bool(draw.below(2))
        case "null":
            return None
    return draw.one(_WORDS)


def _members(schema: dict[str, Json], draw: Draw, depth: int) -> Iterator[tuple[str, Json]]:
    for name, each in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or draw.below(2):
            yield name, sample(each, draw, depth - 1)
