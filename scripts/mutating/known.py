"""The checked-in list of the faults that no test can or need notice, each with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml


def read_known(path: Path) -> dict[str, str]:
    """Why each fault is left alone, by its name.

    Raises:
        ValueError: an entry says no reason, or a fault stands twice.
    """
    entries = yaml.safe_load(path.read_text("utf-8")) if path.exists() else None
    known: dict[str, str] = {}
    for entry in entries or []:
        if set(entry) != {"because", "mutants"} or not entry["because"].strip() or not entry["mutants"]:
            raise ValueError(f"an entry of {path.name} is not `because` and `mutants`: {entry}")
        for name in entry["mutants"]:
            if name in known:
                raise ValueError(f"{path.name} names a fault twice: {name}")
            known[name] = entry["because"]
    return known


def stale(known: Iterable[str], existing: set[str], killed: set[str], rooms: tuple[str, ...]) -> list[str]:
    """What the list says of these rooms that is not so: faults that are none any more, or that a test notices."""
    return [
        f"{name}  ({'is noticed' if name in killed else 'is no fault of the code as it is'})"
        for name in known
        if name.split("/")[0] in rooms and (name not in existing or name in killed)
    ]
