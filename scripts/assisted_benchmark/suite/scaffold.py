"""The text of a new scenario, to be filled in. It is played once, so that it passes as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.catalogue import Catalogue
from assisted_benchmark.suite.plan import MEMORY, RunPlan
from assisted_benchmark.suite.result import CaseResult


class New(NamedTuple):
    """A scenario's text, and the folder below fixtures/ that such scenarios are in."""

    folder: str
    text: str


def scaffold(root: Path, scenario_id: str, *, policy: str | None = None, candidate: str | None = None) -> New:
    """A scenario that runs as it stands, of the broker whose policy it names.

    Without `policy` the root's only one is taken, without `candidate` the first of its file.

    Raises:
        MisuseError: no such policy or candidate, or several policies to choose from.
    """
    shelves = {name: each for each in Catalogue(root).shelves.items() for name in each[1].policies}
    name = policy or (next(iter(shelves)) if len(shelves) == 1 else "")
    if name not in shelves:
        known = ", ".join(sorted(shelves)) or "none yet; write contracts/NAME.policy.yaml"
        asked = f"no policy is named `{shown(name)}`" if name else "which policy? say --policy ID"
        near = did_you_mean(name, shelves)
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"{asked}; {near + ' ' if near else ''}known: {known}")
    folder, shelf = shelves[name]
    return New(folder, shelf.scaffold(scenario_id, name, candidate, _played))


def _played(case: Case) -> CaseResult:
    bench = Bench(RunPlan(durability=MEMORY))
    try:
        return bench.run(case).result
    finally:
        bench.close()
