"""What scenario files of every broker share: words, tables and matrices of cases, and what a shape cannot see. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import product
from typing import Final, TypeAlias, TypeVar

from assisted_benchmark.contract.shape import NAME, Field, ListOf, MapOf, Number, Record, Text, may
from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.strict_yaml import Document, Path
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.case import ADMITTED

# The one case of a scenario without a table.
PLAIN: Final = "plain"
# Where all words for reasons stand.
REASONS_PAGE: Final = "docs/reasons.md"

LINE: Final = Text(r"[^\n]+", "one line of text", 300)
CLOCK: Final = may(
    Text(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "an instant such as `2030-01-31T12:00:00Z`", 20),
    "the wall clock at the start",
)
TAGS: Final = may(ListOf(NAME), "words to select by")
SCORES: Final = may(
    Record(
        {key: may(Number(0, 1), "the score") for key in ("state_grounding", "action_correctness", "task_completion")},
        "scores",
    ),
    "the three scores",
)

T = TypeVar("T")
Named: TypeAlias = tuple[tuple[str, T], ...]


def table(row: Record) -> dict[str, Field]:
    """The keys of a table of cases, of which a scenario may have one; `row` is what sets one case apart."""
    return {
        "cases": may(MapOf(row, least=1), "a table: one case a row"),
        "matrix": may(ListOf(MapOf(row, least=1), 1, 6), "one case for each combination of the axes"),
    }


def read_table(
    value: Json, row: Callable[[Json, Path], T], problems: Problems
) -> tuple[Named[T], tuple[Named[T], ...]]:
    """The named rows of a scenario's table, and those of each axis of its matrix."""
    if "cases" in value and "matrix" in value:
        problems.add(("matrix",), "`cases` and `matrix` exclude each other", "keep one of them")
    cases = tuple((name, row(each, ("cases", name))) for name, each in value.get("cases", {}).items())
    axes = (
        tuple((name, row(each, ("matrix", index, name))) for name, each in axis.items())
        for index, axis in enumerate(value.get("matrix", ()))
    )
    return cases, tuple(axes)


def start_ns(clock: str) -> int:
    """The wall clock's reading at an instant that fits `CLOCK`."""
    return int(datetime.fromisoformat(clock).timestamp()) * SECOND


def expected_word(turn: Json, path: Path, problems: Problems) -> str:
    """What its author says must come of a turn: `admitted`, a reason, or (empty) nothing."""
    if "refused" in turn and "admitted" in turn:
        problems.add((*path, "refused"), "`refused` and `admitted` exclude each other", "keep one of them")
    if turn.get("admitted") is False:
        problems.add((*path, "admitted"), "`admitted: false` does not say why", "write `refused:` and the reason")
    return str(turn.get("refused", ADMITTED if "admitted" in turn else ""))


def rows(
    cases: Sequence[tuple[str, T]], matrix: Sequence[Sequence[tuple[str, T]]]
) -> Iterator[tuple[str, tuple[tuple[Path, T], ...]]]:
    """Each row of the table or combination of the matrix: its name, and its parts with where they stand."""
    if matrix:
        axes = [[(name, (("matrix", index, name), row)) for name, row in axis] for index, axis in enumerate(matrix)]
        for combination in product(*axes):
            yield "-".join(name for name, _ in combination), tuple(row for _, row in combination)
    elif cases:
        for name, row in cases:
            yield name, ((("cases", name), row),)
    else:
        yield PLAIN, ()


class Problems:
    """The faults of one document that its shape cannot see."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._found: list[Problem] = []

    def add(self, path: Path, detail: str, hint: str) -> None:
        """One more wrong value."""
        self._found.append(self._document.problem(Reason.WRONG_VALUE, path, detail, hint))

    def stop(self) -> None:
        """End here, if there was any.

        Raises:
            DocumentError: with every fault, in file order.
        """
        if self._found:
            raise DocumentError(sorted(self._found, key=lambda each: (each.line, each.column)))


class Flaws(list[Flaw]):
    """What is wrong with references to other files. What many rows share is told once."""

    def add(self, reason: Reason, path: Path, detail: str, hint: str, *, at_key: bool = False) -> None:
        """One more, unless it is there."""
        flaw = Flaw(reason, path, detail, hint, at_key)
        if flaw not in self:
            self.append(flaw)
