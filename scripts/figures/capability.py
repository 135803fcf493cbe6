"""The capability broker's costs: its registry as tools, and reading a call of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assisted_benchmark.capability.call import OperationCall
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry_document import load_registry
from figures.figure import Figure, at_most, p50_us

_ROOT = Path(__file__).resolve().parents[2]
_CALL = b'{"instance_id":"one","input":{"parameter_id":3,"normalized_value":0.5,"idempotency_key":"k"}}'
_TOOL = "pulp_control_state_parameter_gesture"
_ROUNDS = 200


def figures() -> Iterator[Figure]:
    """The whole reference registry projected, payload included; one call read from its bytes."""
    registry = load_registry(_ROOT / "contracts" / "pulp.registry.yaml", _ROOT)
    whole = p50_us([lambda: Projection(registry)] * _ROUNDS) / 1000
    yield at_most("the whole registry projected as tools", "ms", whole, 2)
    projection = Projection(registry)
    if not isinstance(projection.read(_TOOL, _CALL), OperationCall):
        raise AssertionError("the call that is measured is not read")
    read = p50_us([lambda: projection.read(_TOOL, _CALL)] * _ROUNDS)
    yield at_most("a call of a tool read, schema included", "us", read, 60)
