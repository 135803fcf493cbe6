"""What is said of mutants that no case kills: which guards stand behind, or which test comes where no case can.

The list is data beside the fixtures (`fixtures/guards.yaml`). It is believed only as far as it can be tried: an entry
of a guard whose mutant is killed, or that is not there, is stale; where others are said to stand behind a guard, the
mutant that lacks them all has to be killed; and a test that is named has to fail under the mutant, which the tests try.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.files import read
from assisted_benchmark.contract.shape import ByKey, ListOf, Record, Text, Word, check, must
from assisted_benchmark.contract.strict_yaml import load

FILE: Final = "fixtures/guards.yaml"

_GUARD: Final = must(Text(limit=200), "its name, as `matrix` tells it")
_BECAUSE: Final = must(Text(limit=400), "why no case fails for the want of it")
_BEHIND: Final = must(ListOf(Text(limit=200), 1, 8), "guards that refuse the same where it is lacking")
_TEST: Final = must(Text(r"scripts/tests/\S+\.py::\S+", "a test's file and name", 300), "a test that fails without it")
SHAPE: Final = Record(
    {
        "schema": must(Word(("assisted-benchmark/guards@1",)), "the kind of this file"),
        "guards": must(
            ListOf(
                ByKey(
                    {
                        "behind": Record({"guard": _GUARD, "behind": _BEHIND, "because": _BECAUSE}),
                        "test": Record({"guard": _GUARD, "test": _TEST, "because": _BECAUSE}),
                    }
                )
            ),
            "the guards whose mutants live",
        ),
    }
)


@frozen
class Explained:
    """Why no case kills the mutant that lacks a guard: others stand `behind` it, or a `test` does what no case can."""

    guard: str
    because: str
    behind: tuple[str, ...] = ()
    test: str = ""


def explained_in(root: Path) -> tuple[Explained, ...]:
    """What the root's list says; nothing, where there is none.

    Raises:
        DocumentError: the list is not one.
    """
    path = root / FILE
    if not path.exists():
        return ()
    document = load(read(path, root), FILE)
    check(SHAPE, document)
    return tuple(
        Explained(each["guard"], each["because"], tuple(each.get("behind", ())), each.get("test", ""))
        for each in document.value["guards"]
    )
