"""Why each check said what it said: a case played once more, with every proposal's way laid open.

For the harness's people only. It shows what was sealed, which no agent may see.
"""

from __future__ import annotations

from attrs import frozen

from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.broker import Explained
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.plan import MEMORY, RunPlan
from assisted_benchmark.suite.result import CaseResult


@frozen(kw_only=True)
class Explanation:
    """A case and each of its proposals."""

    result: CaseResult
    proposals: tuple[Explained, ...]


def explain(case: Case, seed: int = 0) -> Explanation:
    """Play the case as a run with this seed would, on a ledger in memory, and lay open what was decided."""
    bench = Bench(RunPlan(seed=seed, durability=MEMORY))
    try:
        ended = bench.run(case)
        return Explanation(result=ended.result, proposals=bench.explained())
    finally:
        bench.close()
