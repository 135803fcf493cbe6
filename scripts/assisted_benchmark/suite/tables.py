"""What scenario files of every broker share: tables and matrices of cases, and faults that a shape cannot see. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, TypeVar

from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.strict_yaml import Document, Path
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason

# The one case of a scenario without a table.
PLAIN: Final = "plain"

T = TypeVar("T")


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
