"""Many cases: found, selected, run, resumed, verified. The door of the suite for command lines and plugins.

    cases = discover(root)                      # every *.scenario.yaml and *.candidates.yaml below fixtures/
    chosen = select(cases, k="approve")
    result = run(chosen, RunPlan(seed=7, jobs=2, directory=new_run_directory(root)), on_case=print)

A run directory holds `run.json` (what is run), `journal-N.jsonl` (a line a case, as it ended),
`receipts.jsonl` and `heads.json` (the export and its anchor), `timing.jsonl` (wall-clock durations,
covered by no digest), `keys/` and `ledgers/`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.errors import DocumentError, IntegrityError
from assisted_benchmark.suite.asked import asked, gone_on, joined, newly_asked, plan_for, shard, write_asked
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.catalogue import Gathered
from assisted_benchmark.suite.engine import results
from assisted_benchmark.suite.explain import explain
from assisted_benchmark.suite.export import verify_run, write_export
from assisted_benchmark.suite.journal import Ended, read_journals
from assisted_benchmark.suite.plan import RunPlan, ledger_id, run_keys
from assisted_benchmark.suite.result import CaseResult, RunResult, Verdict
from assisted_benchmark.suite.scaffold import scaffold
from assisted_benchmark.suite.storage import RunDirectory, create_keys, new_run_directory, run_directories, write_whole

__all__ = [
    "REAL",
    "RunPlan",
    "discover",
    "explain",
    "failed_in",
    "latest_run",
    "merge",
    "new_run_directory",
    "plan_for",
    "run",
    "scaffold",
    "select",
    "shard",
    "verify_run",
]

# The tag of cases that run only when they are asked for.
REAL: Final = "real"
# What no run guarantees: agent, servers and harness share a user.
STAMPS: Final = ("isolation: none",)


def discover(root: Path, paths: Sequence[Path] = (), *, real: bool = False) -> tuple[Case, ...]:
    """Every case of the files and folders in `paths` (else of `root/fixtures`), in the order of file names.

    Cases tagged `real` need servers that this package does not bring: they are left out, unless `real` or `paths`
    asks for them.

    Raises:
        DocumentError: with every problem of every file.
        IntegrityError: pin_mismatch, if a policy or contract in use is not as pinned.
    """
    gathered = Gathered(root, paths)
    if gathered.problems:
        raise DocumentError(gathered.problems)
    for problem in gathered.catalogue.pin_problems(used=True):
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        raise IntegrityError(problem.reason, f"{problem.detail}, at {place}; {problem.hint}")
    return tuple(case for case in gathered.cases if real or paths or REAL not in case.tags)


def select(
    cases: Iterable[Case], *, k: str = "", tags: Collection[str] = (), ids: Collection[str] | None = None
) -> tuple[Case, ...]:
    """The cases whose id, file or tags hold every word of `k`, that bear every tag, and whose id is in `ids`."""
    words = k.lower().split()
    chosen = []
    for case in cases:
        text = " ".join((case.id, case.file, *case.tags)).lower()
        if all(word in text for word in words) and set(tags) <= set(case.tags) and (ids is None or case.id in ids):
            chosen.append(case)
    return tuple(chosen)


def latest_run(root: Path) -> Path | None:
    """The last run's directory, if there is one."""
    found = run_directories(root)
    return found[-1] if found else None


def failed_in(directory: Path) -> frozenset[str]:
    """The ids of the cases that did not pass in that run, or did not come to their turn."""
    files = RunDirectory(directory)
    value = asked(files)
    chosen = set(value["cases"])
    done = _journaled(files, value["seed"])
    return frozenset(chosen - {name for name, each in done.items() if each.result.verdict is Verdict.PASSED})


def run(cases: Sequence[Case], plan: RunPlan, on_case: Callable[[CaseResult], None] = lambda _: None) -> RunResult:
    """Run the cases; `on_case` is told of each as it ends. Ctrl-C gives what was done, as interrupted.

    A plan whose directory holds a run is gone on with (`plan_for` fills in what that run began with): of the
    cases only that run's count, what came to a verdict is taken from its journals, and told again. Where the
    plan names a shard, give the whole selection all the same: the places of its cases are written down for `merge`.

    Raises:
        MisuseError: the directory is of another run, or another process is running it.
        IntegrityError: a journal was edited.
        HarnessError: the run's own files cannot be written. What was journaled is there, to be gone on with.
    """
    if plan.directory is None:
        return _run(cases, plan, None, on_case)
    files = RunDirectory(plan.directory)
    with files.held():
        return _run(cases, plan, files, on_case)


def _run(
    cases: Sequence[Case], plan: RunPlan, files: RunDirectory | None, on_case: Callable[[CaseResult], None]
) -> RunResult:
    cases, before = _begin(cases, plan, files)
    done: dict[str, CaseResult] = {}
    interrupted = False

    def ended(result: CaseResult) -> bool:
        done[result.id] = result
        on_case(result)
        failed = sum(each.verdict is not Verdict.PASSED for each in done.values()) if plan.maxfail else 0
        return bool(plan.maxfail) and failed >= plan.maxfail

    left = [index for index, case in enumerate(cases) if case.id not in before]
    ready = results(cases, left, plan, files.next_part() if files is not None else 0)
    try:
        if not any(ended(result) for result in before.values()):
            any(ended(result) for result in ready)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        ready.close()
    if files is not None:
        _export(cases, plan, files, done)
    return RunResult(
        seed=plan.seed,
        durability=plan.durability,
        cases=tuple(done[case.id] for case in cases if case.id in done),
        selected=len(cases),
        interrupted=interrupted,
        stamps=_stamps(done.values()),
    )


def merge(directories: Sequence[Path], into: Path) -> RunResult:
    """Join the runs of all shards to one in `into`: what one run of the whole selection would have left.

    Raises:
        MisuseError: they are not the shards of one run, or one is missing.
    """
    merged = joined(directories)
    seed = merged["seed"]
    parts = [RunDirectory(each) for each in directories]
    done = {name: each for part in parts for name, each in _journaled(part, seed).items()}
    ended = [done[name] for name in merged["cases"] if name in done]
    files = RunDirectory(into)
    with files.held():
        create_keys(files.keys, SeededChance(f"keys/{seed}"))
        write_asked(files, merged)
        journals = [(part, journal) for part in parts for journal in part.journals()]
        for number, (part, journal) in enumerate(journals):
            write_whole(files.journal(number), part.read(journal))
        write_export(files, ended, ledger_id(seed), run_keys(seed))
    return RunResult(
        seed=merged["seed"],
        durability=merged["durability"],
        cases=tuple(each.result for each in ended),
        selected=len(merged["cases"]),
        stamps=_stamps(each.result for each in ended),
    )


def _begin(
    cases: Sequence[Case], plan: RunPlan, files: RunDirectory | None
) -> tuple[Sequence[Case], dict[str, CaseResult]]:
    """Make the run's files, or take up those of a run that ended early; its cases, and its results so far."""
    if files is not None and files.plan.exists():
        chosen = gone_on(cases, plan, files)
        done = {name: each.result for name, each in _journaled(files, plan.seed).items()}
        # What hindered a case without a verdict, such as a full disk, may be over: it is run again.
        return chosen, {name: each for name, each in done.items() if each.verdict is not Verdict.COULD_NOT_RUN}
    part = cases if plan.shard is None else shard(cases, *plan.shard)
    if files is not None:
        create_keys(files.keys, SeededChance(f"keys/{plan.seed}"))
        write_asked(files, newly_asked(cases, part, plan))
    return part, {}


def _stamps(results: Iterable[CaseResult]) -> tuple[str, ...]:
    """What the run does not guarantee: what no run does, and what some case of it does not."""
    return (*STAMPS, *sorted({stamp for each in results for stamp in each.stamps}.difference(STAMPS)))


def _export(cases: Sequence[Case], plan: RunPlan, files: RunDirectory, done: dict[str, CaseResult]) -> None:
    """Write what is to be verified. A case that ended in a worker but was not told of any more counts too."""
    journaled = _journaled(files, plan.seed)
    for name, each in journaled.items():
        done.setdefault(name, each.result)
    ended = [journaled[case.id] for case in cases if case.id in journaled]
    write_export(files, ended, ledger_id(plan.seed), run_keys(plan.seed))


def _journaled(files: RunDirectory, seed: int) -> dict[str, Ended]:
    """Every case that ended, by id; of one that was run again, how it ended last."""
    return {each.result.id: each for each in read_journals(files, run_keys(seed))}
