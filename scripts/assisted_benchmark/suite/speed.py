"""How fast cases run: the measure behind the numbers that the project states."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from time import perf_counter

from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.plan import RunPlan
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, select


def repeat_cases(case: Case, count: int, durability: str) -> float:
    """Run one case `count` times, each as a run of its own, on one bench; seconds it took.

    Raises:
        AssertionError: a repetition did not pass, so the time would measure something else.
    """
    bench = Bench(RunPlan(durability=durability))
    try:
        began = perf_counter()
        for number in range(count):
            ended = bench.run(case, f"run-{number}")
            if ended.result.verdict is not Verdict.PASSED:
                raise AssertionError(ended.result)
        return perf_counter() - began
    finally:
        bench.close()


def cases_a_second(
    root: Path, durability: str, *, k: str = "approve-once/plain", count: int = 5000, jobs: int = 2
) -> float:
    """Cases a second over `jobs` processes, start-up left out; `k` selects the case."""
    case = select(discover(root), k=k)[0]
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs) as pool:
        pool.starmap(repeat_cases, [(case, 10, durability)] * jobs, chunksize=1)
        took = pool.starmap(repeat_cases, [(case, count, durability)] * jobs, chunksize=1)
    return jobs * count / max(took)
