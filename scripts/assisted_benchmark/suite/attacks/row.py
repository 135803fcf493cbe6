"""Rows of scenarios as attacks write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.suite.attacks.moves import Move
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX
from assisted_benchmark.suite.case import ADMITTED, Case, Servers
from assisted_benchmark.suite.yaml_out import run_keys_of

CaseT = TypeVar("CaseT", bound=Case)


def fault_rows(moves: Sequence[Move], first: Sequence[str] = ()) -> list[Json]:
    """The faults of all moves; those of the kinds in `first` strike before others of the same moment."""
    found = [fault for move in moves for fault in move.faults]
    return sorted(found, key=lambda fault: not any(kind in fault for kind in first))


def said(word: str) -> dict[str, Json]:
    """What must come of a turn, as a script of the live broker's or of changes has it."""
    return {"admitted": True} if word == ADMITTED else {"refused": word}


def distinct(moves: Iterable[Move]) -> list[Move]:
    """Each move once, however many ways lead to it."""
    return list({move.id: move for move in moves}.values())


def scenario_of(
    schema: str, authority: str, case: Any, run: Sequence[str], rows: Mapping[str, Json]
) -> dict[str, Json]:
    """The scenario of these rows: under the case's `authority` (the key that names it), with these keys of its run."""
    return {
        "schema": schema,
        "id": "attacks",
        authority: case.policy,
        "run": run_keys_of(case.run, run),
        "servers": Servers.IN_PROCESS.value,
        "agent": "nop",
        "cases": dict(rows),
    }


def document_of(scenario: Mapping[str, Json], folder: str) -> Document:
    """The document that a file of this scenario would be."""
    return Document(dict(scenario), f"fixtures/{folder}/{scenario['id']}{SCENARIO_SUFFIX}", b"{}")


def sound(document: Document, found: tuple[tuple[CaseT, ...], Iterable[Flaw]]) -> tuple[CaseT, ...]:
    """The cases of such a document.

    Raises:
        DocumentError: it refers to something in vain.
    """
    cases, flaws = found
    problems = [document.problem(each.reason, each.path, each.detail, each.hint, at_key=each.at_key) for each in flaws]
    if problems:
        raise DocumentError(problems)
    return cases
