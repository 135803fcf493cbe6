"""What the capability broker's tools cost to make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry_document import load_registry
from figures.figure import Figure, at_most, p50_us

_ROOT = Path(__file__).resolve().parents[2]
_ROUNDS = 200


def figures() -> Iterator[Figure]:
    """One figure: the whole reference registry as tools, with the payload that lists them."""
    registry = load_registry(_ROOT / "contracts" / "pulp.registry.yaml", _ROOT)
    whole = p50_us([lambda: Projection(registry)] * _ROUNDS)
    yield at_most("the whole registry projected as tools", "ms", whole / 1000, 2)
