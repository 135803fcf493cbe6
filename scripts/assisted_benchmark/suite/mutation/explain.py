"""Every call's way to what the mutation broker answered, check by check."""

from __future__ import annotations

from collections.abc import Sequence

from assisted_benchmark.kernel.reasons import REASONS, Reason
from assisted_benchmark.mutation.answers import Status
from assisted_benchmark.mutation.checks import CHECKS
from assisted_benchmark.mutation.results import PROPOSE, Confirmed, NeedsAnswer, Proposed, Refusal
from assisted_benchmark.suite.broker import FAILED, NOT_ASKED, PASSED, Explained
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.mutation.agents import Shot
from assisted_benchmark.suite.mutation.case import Came, coarse
from assisted_benchmark.suite.mutation.scenario import ASKED, MutationCase

_PROPOSAL = tuple(check.name for check in CHECKS.proposal)
_CONFIRMATION = tuple(
    (check.name, check.reason)
    for phase in (CHECKS.token, CHECKS.binding, CHECKS.answer, CHECKS.sending)
    for check in phase
)


# What is refused for these had passed every check; it failed at the endpoint or at the marker.
_BEYOND = frozenset({Reason.DRY_RUN_FAILED, Reason.SERVER_UNAVAILABLE, Reason.LOST_RACE})


def explained(case: MutationCase, answers: Sequence[tuple[Shot, Came]]) -> tuple[Explained, ...]:
    """Each call of a case that was played, with what the broker answered."""
    return tuple(_explained(case, *each) for each in answers)


def _explained(case: MutationCase, shot: Shot, came: Came) -> Explained:
    reason = came if isinstance(came, Reason) else came.reason if isinstance(came, Confirmed | Refusal) else None
    word = ADMITTED if reason is None else reason.value
    detail = came.detail if isinstance(came, Confirmed | Refusal) else ""
    if isinstance(came, Reason):
        detail = "the broker died, and with it what its checks had said"
    elif isinstance(came, Refusal) and came.problems:
        detail = "; ".join(f"{each.path}: {each.problem}" for each in came.problems)
    tool = "confirm" if shot.confirms else "propose"
    return Explained(
        text=shot.text.removeprefix(f"{tool} "),
        server=case.contract.id,
        tool=tool,
        word=ASKED if isinstance(came, NeedsAnswer) else word,
        told=coarse(came, case.contract.id),
        meaning="" if reason is None else REASONS[reason].text,
        detail=detail,
        checks=_checks(shot, came),
    )


def _checks(shot: Shot, came: Came) -> tuple[tuple[str, str], ...]:
    names = tuple(name for name, _ in _CONFIRMATION) if shot.confirms else _PROPOSAL
    if isinstance(came, Proposed | Confirmed) or (isinstance(came, Refusal) and came.reason in _BEYOND):
        return tuple((name, PASSED) for name in names)
    at = _failed(came) if isinstance(came, Refusal) else None
    if at is None:
        return tuple((name, NOT_ASKED) for name in names)
    before = tuple((name, PASSED) for name in names[:at])
    return (*before, (names[at], FAILED), *((name, NOT_ASKED) for name in names[at + 1 :]))


def _failed(refusal: Refusal) -> int | None:
    """Which check said no; None if it was none of them."""
    if refusal.phase == PROPOSE:
        reasons = [check.reason for check in CHECKS.proposal]
        return reasons.index(refusal.reason) if refusal.reason in reasons else None
    places = [place for place, (_, reason) in enumerate(_CONFIRMATION) if reason is refusal.reason]
    if not places:
        return None
    # A reason that two checks give is the first's where nothing later was looked at, else the last's.
    asked = refusal.status is not None and refusal.status is not Status.CANCELLED
    late = refusal.predicates.spec_matches_binding is not None and asked
    return places[-1] if late else places[0]
