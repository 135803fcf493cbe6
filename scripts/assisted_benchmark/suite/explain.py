"""Why each check said what it said: a case played once more, with every proposal's way laid open.

For the harness's people only. It shows what was sealed, which no agent may see.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import LIVE_ORDER, REASONS, Reason
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.live_policy.matching import differences
from assisted_benchmark.live_policy.policy import Plan
from assisted_benchmark.live_policy.proposal import read_proposal
from assisted_benchmark.suite.agents import ADMITTED, Shot
from assisted_benchmark.suite.bench import MEMORY, Bench, RunPlan
from assisted_benchmark.suite.result import CaseResult
from assisted_benchmark.suite.scenario import Case

PASSED: Final = "passed"
FAILED: Final = "failed"
NOT_ASKED: Final = "not asked"
# The checks before the dispatch, in their order.
_DECIDING: Final = LIVE_ORDER[: LIVE_ORDER.index(Reason.NOT_A_CANDIDATE) + 1]


@frozen(kw_only=True)
class ExplainedProposal:
    """One proposal. `checks` are (name, passed, failed or not asked) in order; `diff` is against `nearest`.

    `word` is what came of it, `told` what the agent heard, `meaning` the reason's sentence.
    """

    text: str
    server: str
    tool: str
    word: str
    told: str
    meaning: str
    detail: str
    checks: tuple[tuple[str, str], ...]
    nearest: str = ""
    diff: tuple[str, ...] = ()


@frozen(kw_only=True)
class Explanation:
    """A case and each of its proposals."""

    result: CaseResult
    proposals: tuple[ExplainedProposal, ...]


def explain(case: Case, seed: int = 0) -> Explanation:
    """Play the case as a run with this seed would, on a ledger in memory, and lay open what was decided."""
    bench = Bench(RunPlan(seed=seed, durability=MEMORY))
    try:
        ended = bench.run(case)
        answers = tuple(bench.answers)
    finally:
        bench.close()
    return Explanation(result=ended.result, proposals=tuple(_explained(case.plan, *each) for each in answers))


def _explained(plan: Plan, shot: Shot, answer: Outcome | Refused | Reason) -> ExplainedProposal:
    reason = answer if isinstance(answer, Reason) else answer.reason
    refused = answer if isinstance(answer, Refused) else None
    nearest = refused.nearest if refused is not None else ""
    return ExplainedProposal(
        text=shot.text,
        server=shot.server,
        tool=shot.tool,
        word=ADMITTED if reason is None else reason.value,
        told=ADMITTED if reason is None else REASONS[reason].coarse.value,
        meaning="" if reason is None else REASONS[reason].text,
        detail="" if isinstance(answer, Reason) else answer.detail,
        checks=_checks(refused),
        nearest=nearest,
        diff=_diff(plan, shot, nearest),
    )


def _checks(refused: Refused | None) -> tuple[tuple[str, str], ...]:
    names = tuple(reason.value for reason in _DECIDING)
    if refused is None or refused.reason.value not in names:
        return tuple((name, PASSED) for name in names)
    at = names.index(refused.reason.value)
    before = tuple((name, PASSED) for name in names[:at])
    return (*before, (names[at], FAILED), *((name, NOT_ASKED) for name in names[at + 1 :]))


def _diff(plan: Plan, shot: Shot, nearest: str) -> tuple[str, ...]:
    try:
        proposal = read_proposal(shot.raw)
    except InputError:
        return ()
    for step in plan.steps:
        for candidate in step.candidates:
            if candidate.name == nearest and candidate.tool == proposal.tool:
                return differences(candidate, proposal, step.tool.sensitive)
    return ()
