"""Every proposal's way to what the live broker answered. It shows what was sealed, which no agent may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import LIVE_ORDER, REASONS, Reason
from assisted_benchmark.live_policy.matching import differences
from assisted_benchmark.live_policy.policy import Plan
from assisted_benchmark.live_policy.proposal import read_proposal
from assisted_benchmark.suite.broker import FAILED, NOT_ASKED, PASSED, Explained
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.agents import Shot
from assisted_benchmark.suite.live.case import Answer
from assisted_benchmark.suite.live.scenario import LiveCase

# The checks before the dispatch, in their order.
_DECIDING: Final = LIVE_ORDER[: LIVE_ORDER.index(Reason.NOT_A_CANDIDATE) + 1]


def explained(case: LiveCase, answers: Sequence[tuple[Shot, Answer]]) -> tuple[Explained, ...]:
    """Each proposal of a case that was played, with what the broker answered."""
    return tuple(_explained(case.plan, *each) for each in answers)


def _explained(plan: Plan, shot: Shot, answer: Answer) -> Explained:
    reason = answer if isinstance(answer, Reason) else answer.reason
    refused = answer if isinstance(answer, Refused) else None
    nearest = refused.nearest if refused is not None else ""
    return Explained(
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
