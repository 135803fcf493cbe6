"""Vectors of calls that are too large to stand in a scenario."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.kernel.canonical import Json

_REGISTRY: Final = "pulp"
_KIB: Final = 1024


def call_vectors() -> list[Json]:
    """Calls under the reference registry, at and beyond a bound."""
    read = "pulp_control_state_read", '{"instance_id":"instance-1","input":{"parameter_ids":["', '"]}}'
    rest = '","timeout_ms":1,"idempotency_key":"k-1"}}'
    evaluate = "pulp_control_runtime_evaluate", '{"instance_id":"instance-1","input":{"source":"', rest
    return [
        _vector("input-too-large", "one input has at most 512 KiB", "refused", *read, "a", 512 * _KIB),
        _vector("source-too-large", "64 KiB are bytes and not characters", "refused", *evaluate, "é", 33 * _KIB),
        _vector("source-as-large-as-may-be", "to the last byte", "admitted", *evaluate, "é", 32 * _KIB),
    ]


def _vector(name: str, why: str, flag: str, tool: str, before: str, after: str, text: str, times: int) -> Json:
    pieces = [{"text": before}, {"text": text, "times": times}, {"text": after}]
    given = {"registry": _REGISTRY, "call": {"tool": tool, "arguments": {"pieces": pieces}}}
    return {"id": f"bounds/{name}", "comment": why, "flags": [flag], "given": given}
