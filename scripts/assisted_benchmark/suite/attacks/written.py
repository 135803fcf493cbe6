"""Failing attacks as files: scenarios that come to the same when they are run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from assisted_benchmark.contract.files import write
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.suite.attacks.engine import Finding
from assisted_benchmark.suite.attacks.moves import Place
from assisted_benchmark.suite.attacks.report import Failure
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX
from assisted_benchmark.suite.yaml_out import yaml_of

_NO_NAME: Final = re.compile(r"[^a-z0-9]+")
_SCHEMAS: Final = {"live": "scenario", "mutation": "mutation-scenario", "capability": "capability-scenario"}


def scenario_of(place: Place, finding: Finding) -> dict[str, Json]:
    """A scenario of one case: the attack, as it was played, expected to come to what it must."""
    attack = finding.attack
    value = place.scenario({"attack": attack.row})
    because = f"{attack.id[:200]} came to {finding.word or 'nothing'}"
    return {
        **{key: each for key, each in value.items() if key in ("schema", "id")},
        "id": name_of(finding),
        "because": re.sub(r"[^ -~]", "?", because),
        **{key: each for key, each in value.items() if key not in ("schema", "id")},
    }


def name_of(finding: Finding) -> str:
    """A file's name, and the scenario's id: what was done, and a few digits for where."""
    attack = finding.attack
    moves = _NO_NAME.sub("-", "-".join(move.id for move in attack.moves).lower()).strip("-")
    return f"attack-{moves[:60].rstrip('-')}-{hashlib.sha256(attack.id.encode()).hexdigest()[:6]}"


def text_of_scenario(place: Place, finding: Finding) -> str:
    """The file's whole text."""
    schema = _SCHEMAS[place.broker]
    head = f"# yaml-language-server: $schema=../../schemas/{schema}.schema.json\n"
    return f"{head}{yaml_of(scenario_of(place, finding))}\n"


def write_failures(failures: Iterable[Failure], folder: Path) -> list[Path]:
    """A file in `folder` for each failure that a scenario can hold; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for failure in failures:
        if failure.scenario:
            path = folder / f"{failure.name}{SCENARIO_SUFFIX}"
            write(path, failure.scenario.encode())
            files.append(path)
    return files
