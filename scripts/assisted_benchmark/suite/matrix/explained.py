"""What is said of mutants that no case kills: which guard stands behind, or why no case can come there.

The list is data beside the fixtures (`fixtures/guards.yaml`). It is believed only as far as it can be tried: an entry
of a guard whose mutant is killed, or that is not there, is stale; and where others are said to stand behind a guard,
the mutant that lacks them all has to be killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.files import read
from assisted_benchmark.contract.shape import ListOf, Record, Text, Word, check, may, must
from assisted_benchmark.contract.strict_yaml import load

FILE: Final = "fixtures/guards.yaml"

_SHAPE: Final = Record(
    {
        "schema": must(Word(("assisted-benchmark/guards@1",)), "the kind of this file"),
        "guards": must(
            ListOf(
                Record(
                    {
                        "guard": must(Text(limit=200), "its name, as `matrix` tells it"),
                        "behind": may(ListOf(Text(limit=200), 1, 8), "guards that refuse the same where it is lacking"),
                        "because": must(Text(limit=400), "why no case can fail for the want of it"),
                    }
                )
            ),
            "the guards whose mutants live",
        ),
    }
)


@frozen
class Explained:
    """Why the mutant that lacks one guard lives; `behind` are the guards that stand behind it."""

    guard: str
    because: str
    behind: tuple[str, ...] = ()


def explained_in(root: Path) -> tuple[Explained, ...]:
    """What the root's list says; nothing, where there is none.

    Raises:
        DocumentError: the list is not one.
    """
    path = root / FILE
    if not path.exists():
        return ()
    document = load(read(path, root), FILE)
    check(_SHAPE, document)
    entries = document.value["guards"]
    return tuple(Explained(each["guard"], each["because"], tuple(each.get("behind", ()))) for each in entries)
