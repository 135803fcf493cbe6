"""Every file under a root checked, nothing run; and the pins written anew when they are meant to change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from assisted_benchmark.contract.files import write
from assisted_benchmark.contract.pins import Pins, pins_text
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.suite.catalogue import PINS_FILE, Catalogue, Gathered


def lint(root: Path, paths: Sequence[Path] = ()) -> list[Problem]:
    """Everything that is wrong, in file order: contracts, policies, pins, and the scenarios in `paths` (else all).

    Pins that cannot be read come first, since nothing is trusted without them.
    """
    gathered = Gathered(root, paths or [root / "fixtures"])
    catalogue = gathered.catalogue
    problems = dict.fromkeys(
        [  # contracts may share a cassette
            *gathered.problems,
            *catalogue.pin_problems(),
            *catalogue.stray_pins(),
            *(problem for shelf in catalogue.shelves.values() for problem in shelf.lint()),
        ]
    )
    first = PINS_FILE if catalogue.pins is None else ""
    return sorted(problems, key=lambda each: (each.file != first, each.file, each.line, each.column))


def write_pins(root: Path) -> Path:
    """Pin every contract and policy as it is now. Who runs this says that the change was meant.

    Raises:
        DocumentError: a contract or policy is wrong, or the pins that stand there cannot be read: nothing is written.
    """
    catalogue = Catalogue(root)
    if catalogue.problems:
        raise DocumentError(catalogue.problems)
    parts: dict[str, Any] = {part: digests for (part, _), digests in catalogue.stock().items()}
    # What no broker of the suite reads stays pinned as it was.
    pins = evolve(catalogue.pins or Pins({}, {}), **parts)
    path = root / PINS_FILE
    write(path, pins_text(pins).encode())
    return path
