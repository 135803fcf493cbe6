"""Many cases: found, selected, run, resumed, verified. The door of the suite for command lines and plugins.

    cases = discover(root)                      # every fixtures/**/*.scenario.yaml and *.candidates.yaml
    chosen = select(cases, k="approve")
    result = run(chosen, RunPlan(seed=7, jobs=2, directory=new_run_directory(root)), on_case=print)

Files of a run directory: `run.json` (the plan and the case ids), `journal-N.jsonl` (a line a case, as it ended),
`receipts.jsonl` and `heads.json` (the export, with each chain's anchored end), `timing.jsonl` (wall-clock
durations, covered by no digest), `keys/` and `ledger-N.sqlite`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import frozen

from assisted_benchmark.kernel.errors import Problem
from assisted_benchmark.suite.result import CaseResult, RunResult


@frozen(kw_only=True)
class RunPlan:
    """How to run. `directory` is the run's own; one that holds a journal is resumed.

    `maxfail` 0 never stops early. `servers` overrides every scenario's own (in_process or process).
    """

    seed: int = 0
    jobs: int = 1
    maxfail: int = 0
    durability: str = "process"  # memory | process | power
    servers: str | None = None
    repeat: int = 1
    expect_identical: bool = False
    directory: Path | None = None


# Case (suite.scenario): id, file, because, agent, policy, tags and the rest; frozen.
# discover(root: Path, paths: Sequence[Path] = ()) -> tuple[Case, ...]       raises DocumentError with every problem
# select(cases, *, k: str = "", tags: Sequence[str] = (), ids: Collection[str] | None = None) -> tuple[Case, ...]
# run(cases, plan: RunPlan, on_case: Callable[[CaseResult], None] = ...) -> RunResult   (interrupted=True on Ctrl-C)
# failed_in(directory: Path) -> frozenset[str]            ids that did not pass in that run (for --failed)
# new_run_directory(root: Path) -> Path                   runs/0001, 0002, ...; latest_run(root) -> Path | None
# explain(case, seed: int = 0) -> Explanation             suite.explain
# lint(root: Path, paths: Sequence[Path] = ()) -> list[Problem]; write_pins(root: Path) -> Path    suite.lint
# scaffold(id: str, *, policy: str, candidate: str = "") -> str       the text of a new *.scenario.yaml
# verify_run(directory: Path) -> tuple[Problem, ...]      what is wrong with the receipts of a run; empty: nothing

OnCase = Callable[[CaseResult], None]
__all__ = ["OnCase", "Path", "Problem", "RunPlan", "RunResult", "Sequence"]
