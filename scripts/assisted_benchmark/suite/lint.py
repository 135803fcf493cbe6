"""Every file under a root checked, nothing run; and the pins written anew when they are meant to change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assisted_benchmark.contract.pins import Pins, pins_text
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.suite.catalogue import Catalogue, Gathered


def lint(root: Path, paths: Sequence[Path] = ()) -> list[Problem]:
    """Everything that is wrong, in file order: contracts, policies, pins, and the scenarios in `paths` (else all)."""
    gathered = Gathered(root, paths or [root / "fixtures"])
    problems = [*gathered.problems, *gathered.catalogue.pin_problems(sorted(gathered.catalogue.policies))]
    return sorted(problems, key=lambda each: (each.file, each.line, each.column))


def write_pins(root: Path) -> Path:
    """Pin every contract and policy as it is now. Who runs this says that the change was meant.

    Raises:
        DocumentError: a contract or policy cannot be read.
    """
    catalogue = Catalogue(root)
    problems = [each for each in catalogue.problems if not each.file.endswith("pins.yaml")]
    if problems:
        raise DocumentError(problems)
    pins = Pins(
        {name: each.digest for name, each in catalogue.contracts.items()},
        {name: each.digest for name, each in catalogue.policies.items()},
    )
    path = root / "contracts" / "pins.yaml"
    path.write_text(pins_text(pins), encoding="utf-8")
    return path
