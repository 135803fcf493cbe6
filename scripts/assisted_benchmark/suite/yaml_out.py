"""Values as a scenario's file writes them, which the strict reader takes for exactly these values. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from assisted_benchmark.contract.written import quoted
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND

_WIDTH: Final = 110


def flow(value: Json) -> str:
    """A JSON value on one line of YAML."""
    if type(value) is dict:
        return "{" + ", ".join(f"{quoted(key)}: {flow(each)}" for key, each in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(flow, value)) + "]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def yaml_of(value: Json, indent: int = 0) -> str:
    """A JSON value as YAML: blocks down to what fits a line."""
    line = flow(value)
    if not value or type(value) not in (dict, list) or (len(line) + indent < _WIDTH and indent):
        return line
    blank = "\n" + " " * indent
    if type(value) is list:
        return blank + blank.join(f"- {yaml_of(each, indent + 2).lstrip()}" for each in value)
    lines = (f"{quoted(key)}:{_set_off(yaml_of(each, indent + 2))}" for key, each in value.items())
    return (blank if indent else "") + blank.join(lines)


def run_keys_of(run: Any, keys: Sequence[str]) -> dict[str, Json]:
    """Those keys of a scenario's `run`, and its `clock`, that are not as usual."""
    usual = type(run)()
    found = {key: getattr(run, key) for key in keys if getattr(run, key) != getattr(usual, key)}
    if run.start_ns != usual.start_ns:
        found["clock"] = datetime.fromtimestamp(run.start_ns // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return found


def _set_off(text: str) -> str:
    return text if text.startswith("\n") else f" {text}"
