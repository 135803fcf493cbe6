"""Contracts and policies read from a root, by suffix: every problem of every file gathered, ids told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from assisted_benchmark.contract.files import name_below
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason


class _Known(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Known)


class Files:
    """The files of a root, as they are read; `problems` is what was wrong with them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []

    def all(self, kind: str, suffix: str, load: Callable[[Path, Path], T]) -> Iterator[tuple[Path, T]]:
        """Every sound file of contracts/ with that suffix, the first of each id."""
        seen: dict[str, str] = {}
        for path in below(self.root / "contracts", suffix):
            try:
                loaded = load(path, self.root)
            except DocumentError as error:
                # Policies of one contract all meet its faults, which are one file's.
                self.problems.extend(each for each in error.problems if each not in self.problems)
                continue
            file = name_below(path, self.root)
            first = seen.setdefault(loaded.id, file)
            if first == file:
                yield path, loaded
            else:
                detail = f"two files have the {kind} id `{loaded.id}`"
                hint = f"{first} has it too; ids are unique"
                self.problems.append(Problem(Reason.DUPLICATE_ID, detail, file, hint=hint))


def below(folder: Path, *suffixes: str) -> list[Path]:
    """The YAML files in a folder and its folders whose names end so, in the order of their names."""
    return sorted(path for path in folder.rglob("*.yaml") if path.name.endswith(suffixes))
