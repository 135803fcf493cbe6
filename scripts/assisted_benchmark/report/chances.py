"""How often agents that vary succeed: counts, intervals, and the chance of several successes in a row. Pure.

A case whose agent is deterministic is in none of this: it has one outcome, and no interval says more of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

from assisted_benchmark.suite.result import CaseResult

# The standard normal quantile of a two-sided interval of 95 %.
_Z: Final = 1.959963984540054
_DIGITS: Final = 4

COLUMNS: Final = (
    ("scenario", "agents that vary"),
    ("tasks", "tasks"),
    ("runs", "runs"),
    ("passes", "passed"),
    ("low", "95 % from"),
    ("high", "to"),
    ("in_a_row", "in a row"),
    ("all_pass", "all pass"),
)


@frozen(kw_only=True)
class Chance:
    """One scenario, whose cases are its tasks.

    `runs` came to a verdict and `passes` of them passed; `low` and `high` are the interval of 95 % around that share.
    `all_pass` estimates the chance that `in_a_row` runs of one task all pass; so many every task was run.
    """

    scenario: str
    tasks: int
    runs: int
    passes: int
    low: float
    high: float
    in_a_row: int
    all_pass: float


def chances(cases: Iterable[CaseResult]) -> tuple[Chance, ...]:
    """One row for each scenario that has cases that vary, by id."""
    scenarios: dict[str, list[tuple[int, int]]] = {}
    for case in cases:
        if case.runs:
            scenarios.setdefault(case.id.rpartition("/")[0], []).append((case.passes, case.runs))
    return tuple(_chance(name, scenarios[name]) for name in sorted(scenarios))


def _chance(scenario: str, tasks: Sequence[tuple[int, int]]) -> Chance:
    passes, runs = (sum(column) for column in zip(*tasks, strict=True))
    low, high = wilson(passes / runs, effective(tasks))
    fewest = min(each for _, each in tasks)
    return Chance(
        scenario=scenario,
        tasks=len(tasks),
        runs=runs,
        passes=passes,
        low=round(low, _DIGITS),
        high=round(high, _DIGITS),
        in_a_row=fewest,
        all_pass=round(pass_hat(tasks, fewest), _DIGITS),
    )


def wilson(share: float, runs: float) -> tuple[float, float]:
    """Wilson's score interval of 95 % for a share of `runs` independent runs (JASA 22, 1927)."""
    z2 = _Z * _Z
    middle = share + z2 / (2 * runs)
    spread = _Z * math.sqrt(share * (1 - share) / runs + z2 / (4 * runs * runs))
    below = 1 + z2 / runs
    return max(0.0, (middle - spread) / below), min(1.0, (middle + spread) / below)


def effective(tasks: Sequence[tuple[int, int]]) -> float:
    """As how many independent runs these count, (passes, runs) a task: runs of one task tend to end alike.

    The runs over the design effect, which compares the variance between tasks with that of independent runs; never more
    than the runs, and no fewer than the tasks. Where all runs end alike nothing tells them apart: then it is the tasks.
    """
    count = len(tasks)
    passes, runs = (sum(column) for column in zip(*tasks, strict=True))
    if count == 1:
        return float(runs)
    share = passes / runs
    if share in (0.0, 1.0):
        return float(count)
    between = count / (count - 1) * sum((passed - share * each) ** 2 for passed, each in tasks) / runs**2
    simple = share * (1 - share) / runs
    return min(float(runs), max(float(count), runs * simple / between if between else float(runs)))


def pass_hat(tasks: Sequence[tuple[int, int]], k: int) -> float:
    """pass^k: the chance that k runs of a task all pass, the mean over tasks of C(passes, k) / C(runs, k)."""
    return sum(math.comb(passed, k) / math.comb(each, k) for passed, each in tasks) / len(tasks)
