"""The threat catalogue: one row a threat, with what each part of the product must say of it, or why it does not apply.

`threats.csv` is data: its ids are kept for good. A cell holds the reasons that attacks of the threat must be refused
for there, `ok` where nothing may be refused, or nothing where the threat has no place; `why` explains what is empty.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from attrs import frozen

# The parts of the product that a threat can be tried on: the brokers, the documents, and what is kept.
PARTS: Final = ("live", "mutation", "capability", "documents", "records")
OK: Final = "ok"
_FILE: Final = Path(__file__).with_name("threats.csv")


@frozen(kw_only=True)
class Threat:
    """One threat. `expected` has the words for each part that it applies to, and for no other."""

    id: str
    layer: str
    field: str
    what: str
    expected: Mapping[str, frozenset[str]]
    why: str

    @property
    def applies(self) -> bool:
        """Whether attacks of it are generated at all."""
        return bool(self.expected)


@cache
def threats() -> tuple[Threat, ...]:
    """The whole catalogue, in its order."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        return tuple(_threat(row) for row in csv.DictReader(file))


@cache
def by_id() -> Mapping[str, Threat]:
    """Each threat by its id."""
    return {each.id: each for each in threats()}


def _threat(row: dict[str, str]) -> Threat:
    expected = {part: frozenset(row[part].split("|")) for part in PARTS if row[part]}
    return Threat(
        id=row["id"],
        layer=row["layer"],
        field=row["field"],
        what=row["what"],
        expected=expected,
        why=row["why"],
    )
