"""Rows of scenarios as attacks write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.suite.attacks.moves import Move
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX


def fault_rows(moves: Sequence[Move], first: Sequence[str] = ()) -> list[Json]:
    """The faults of all moves; those of the kinds in `first` strike before others of the same moment."""
    found = [fault for move in moves for fault in move.faults]
    return sorted(found, key=lambda fault: not any(kind in fault for kind in first))


def document_of(scenario: Mapping[str, Json], folder: str) -> Document:
    """The document that a file of this scenario would be."""
    return Document(dict(scenario), f"fixtures/{folder}/{scenario['id']}{SCENARIO_SUFFIX}", b"{}")


def unfit(document: Document, flaws: Iterable[Flaw]) -> DocumentError:
    """What such a scenario refers to in vain."""
    return DocumentError(
        [document.problem(each.reason, each.path, each.detail, each.hint, at_key=each.at_key) for each in flaws]
    )
