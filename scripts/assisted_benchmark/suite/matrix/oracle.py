"""The oracle mutation score: each state-changing call of each passing case is dropped, and corrupted; is it noticed?

It is noticed if the case does not pass any more, or a score of it falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from attrs import astuple, frozen

from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.matrix.spoiled import Lie, lying
from assisted_benchmark.suite.plan import MEMORY, RunPlan
from assisted_benchmark.suite.result import CaseResult, Verdict


@frozen(kw_only=True)
class Noticed:
    """What the oracle noticed of one broker's cases: of `calls` lies of one kind; `missed` names the others."""

    broker: str
    lie: Lie
    cases: int
    calls: int
    missed: tuple[str, ...]


def oracle_score(cases: Sequence[Case]) -> tuple[Noticed, ...]:
    """The score over these cases, by broker and lie."""
    found = []
    for broker in dict.fromkeys(case.broker for case in cases):
        changing = [each for case in cases if case.broker == broker for each in _changing(case)]
        for lie in Lie:
            missed = tuple(
                f"{case.id}, call {call}"
                for case, result, call in changing
                if not _falls(result, _lied_to(case, lie, call))
            )
            count = len({case.id for case, _, _ in changing})
            found.append(Noticed(broker=broker, lie=lie, cases=count, calls=len(changing), missed=missed))
    return tuple(found)


def _changing(case: Case) -> list[tuple[Case, CaseResult, int]]:
    """The case's calls that change something, with what it comes to; none, if it does not pass."""
    with lying() as liar:
        result = _result(case)
    return [(case, result, call) for call in liar.changed] if result.verdict is Verdict.PASSED else []


def _lied_to(case: Case, lie: Lie, call: int) -> CaseResult:
    with lying(lie, call):
        return _result(case)


def _result(case: Case) -> CaseResult:
    with closing(Bench(RunPlan(durability=MEMORY))) as bench:
        return bench.run(case).result


def _falls(honest: CaseResult, lied: CaseResult) -> bool:
    if lied.verdict is not Verdict.PASSED:
        return True
    pairs = zip(astuple(honest.scores), astuple(lied.scores), strict=True)
    return any(before is not None and (after is None or after < before) for before, after in pairs)
