"""Every call's way to what the capability broker answered, check by check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from assisted_benchmark.capability.admission import EARLY, LATE
from assisted_benchmark.capability.results import Outcome
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.reasons import REASONS, Reason
from assisted_benchmark.suite.broker import FAILED, NOT_ASKED, PASSED, Explained
from assisted_benchmark.suite.capability.agents import Shot
from assisted_benchmark.suite.capability.case import coarse, word_of
from assisted_benchmark.suite.capability.scenario import CapabilityCase
from assisted_benchmark.suite.capability.scoring import Came

_CHECKS: Final = (*(check.reason.value for check in EARLY), *(check.reason.value for check in LATE))


def explained(case: CapabilityCase, answers: Sequence[tuple[Shot, Came]]) -> tuple[Explained, ...]:
    """Each call of a case that was played, with what the broker answered."""
    return tuple(_explained(case, *each) for each in answers)


def _explained(case: CapabilityCase, shot: Shot, came: Came) -> Explained:
    reason = came if isinstance(came, Reason) else came.reason if isinstance(came, Outcome | Refused) else None
    detail = came.explanation if isinstance(came, Outcome) else came.detail if isinstance(came, Refused) else ""
    return Explained(
        text=shot.text,
        server=case.registry.id,
        tool=shot.tool or "",
        word=word_of(came),
        told=coarse(came),
        meaning="" if reason is None else REASONS[reason].text,
        detail=detail,
        checks=_checks(shot, came),
    )


def _checks(shot: Shot, came: Came) -> tuple[tuple[str, str], ...]:
    """The checks of an operation's admission, as the answer leaves them. Other calls have none."""
    if not shot.operation:
        return ()
    if isinstance(came, Outcome):
        state = NOT_ASKED if came.replayed else PASSED
        return tuple((name, state) for name in _CHECKS)
    if not isinstance(came, Refused):
        return tuple((name, NOT_ASKED) for name in _CHECKS)
    # The first check has none before it; a later one that says what it passed is no other step with the same reason.
    told = came.checked or came.reason.value == _CHECKS[0]
    failed = _CHECKS.index(came.reason.value) if told and came.reason.value in _CHECKS else None
    return tuple(
        (name, FAILED if place == failed else PASSED if name in came.checked else NOT_ASKED)
        for place, name in enumerate(_CHECKS)
    )
