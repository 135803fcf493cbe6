"""Rows of scenarios as attacks write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from assisted_benchmark.contract.plain_scalar import DoubtError, known_value
from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.suite.attacks.moves import Move

_WIDTH: Final = 110
_ASTRAL: Final = 0x10000
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")


def fault_rows(moves: Sequence[Move], first: Sequence[str] = ()) -> list[Json]:
    """The faults of all moves; those of the kinds in `first` strike before others of the same moment."""
    found = [fault for move in moves for fault in move.faults]
    return sorted(found, key=lambda fault: not any(kind in fault for kind in first))


def run_keys_of(run: Any, keys: Sequence[str]) -> dict[str, Json]:
    """The keys of a run that are not as usual."""
    usual = type(run)()
    found = {key: getattr(run, key) for key in keys if getattr(run, key) != getattr(usual, key)}
    if run.start_ns != usual.start_ns:
        found["clock"] = datetime.fromtimestamp(run.start_ns // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return found


def document_of(scenario: Mapping[str, Json], folder: str) -> Document:
    """The document that a file of this scenario would be."""
    return Document(dict(scenario), f"fixtures/{folder}/{scenario['id']}.scenario.yaml", b"{}")


def unfit(document: Document, flaws: Iterable[Flaw]) -> DocumentError:
    """What such a scenario refers to in vain."""
    return DocumentError(
        [document.problem(each.reason, each.path, each.detail, each.hint, at_key=each.at_key) for each in flaws]
    )


def yaml_of(value: Json, indent: int = 0) -> str:
    """A value as strict YAML: blocks down to what fits a line, flow below, every text in quotes."""
    flow = _flow(value)
    if not value or type(value) not in (dict, list) or (len(flow) + indent < _WIDTH and indent):
        return flow
    blank = "\n" + " " * indent
    if type(value) is list:
        return blank + blank.join(f"- {yaml_of(each, indent + 2).lstrip()}" for each in value)
    lines = (f"{_text(key)}:{_set_off(yaml_of(each, indent + 2))}" for key, each in value.items())
    return (blank if indent else "") + blank.join(lines)


def _set_off(text: str) -> str:
    return text if text.startswith("\n") else f" {text}"


def _flow(value: Json) -> str:
    if type(value) is dict:
        return "{" + ", ".join(f"{_text(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _text(value) if type(value) is str else json.dumps(value)


def _text(text: str) -> str:
    return text if _is_plain(text) else '"' + "".join(map(_character, text)) + '"'


def _character(each: str) -> str:
    if each in '"\\':
        return f"\\{each}"
    if " " <= each <= "~":
        return each
    return f"\\u{ord(each):04x}" if ord(each) < _ASTRAL else f"\\U{ord(each):08x}"


def _is_plain(text: str) -> bool:
    try:
        return _PLAIN.fullmatch(text) is not None and known_value(text) == text
    except DoubtError:
        return False
