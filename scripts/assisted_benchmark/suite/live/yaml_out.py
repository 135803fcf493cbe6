"""Values as YAML on one line, which the strict reader takes for exactly these values. Pure."""

from __future__ import annotations

import json

from assisted_benchmark.contract.written import quoted
from assisted_benchmark.kernel.canonical import Json


def flow(value: Json) -> str:
    """A JSON value on one line of YAML."""
    if type(value) is dict:
        return "{" + ", ".join(f"{quoted(key)}: {flow(each)}" for key, each in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(flow, value)) + "]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)
