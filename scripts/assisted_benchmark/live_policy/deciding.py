"""Deciding on raw bytes under a session: a fast path that only matches, a slow one that explains."""

from __future__ import annotations

from typing import Final, NamedTuple

import orjson

from assisted_benchmark.kernel.canonical import MIB, NOT_PLAIN, strings_in
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.errors import HarnessError, InputError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.checks import Check, Question, first_failing
from assisted_benchmark.live_policy.desk import Desk
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.grants import Grants
from assisted_benchmark.live_policy.matching import nearest
from assisted_benchmark.live_policy.opened import OpenGrant
from assisted_benchmark.live_policy.policy import Candidate, PlannedStep
from assisted_benchmark.live_policy.proposal import read_proposal
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.live_policy.trust import Trust

_SORTED: Final = orjson.OPT_SORT_KEYS
_NOTHING: Final = (None, NOT_PLAIN)
_NEAR: Final = frozenset({Reason.ARGUMENTS_INVALID, Reason.WRONG_TARGET, Reason.ARGUMENTS_ALTERED})


class Way(NamedTuple):
    """What was admitted, and under what."""

    grant: OpenGrant
    step: PlannedStep
    permit: Admitted


class Decider:
    """Judges proposals; a refusal is written down before it is given back."""

    def __init__(self, *, trust: Trust, grants: Grants, desk: Desk, checks: tuple[Check[Question], ...]) -> None:
        self._trust = trust
        self._holds = trust.holds
        self._find = grants.find
        self._desk = desk
        self._clock = desk.clock
        self._checks = checks

    def judge(self, session: Session, raw: bytes) -> Way | Refused:
        """The decision on these bytes under this session, now.

        Raises:
            TypeError: what was proposed is no `bytes`; of a buffer that can change nothing is decided.
        """
        if not isinstance(raw, bytes):
            raise TypeError(f"a proposal is bytes, not {type(raw).__name__}")
        now = self._clock.now()
        return self.match(session, raw, now) or self.explain(session, raw, now)

    def match(self, session: Session, raw: bytes, now: Instant) -> Way | None:
        """The fast path: what passes here passes every check; for all else the checks are asked one by one."""
        grant = self._find(session.grant)
        if grant is None:
            return None
        step, key, status = grant.standing
        if (
            status != State.SEALED
            or session != grant.session
            or not (self._holds and grant.live(now))
            or session.boot != self._clock.boot_id
        ):
            return None
        candidate = _called(step, raw)
        if candidate is None:
            return None
        grant.seen(now)
        return Way(grant, step, _permit(key, candidate))

    def explain(self, session: Session, raw: bytes, now: Instant) -> Way | Refused:
        """The slow path: every check in order, and the first that fails."""
        own = self._find(session.grant)
        try:
            proposal = read_proposal(raw)
        except InputError as error:
            return self._desk.refuse(session, own, error.reason, error.detail)
        if own is not None and session == own.session:
            own.seen(now)
        found = self._find(proposal.grant) if proposal.grant else own
        fault = self._refreshed(found)
        # INVARIANT: all checks and the permit are of one standing, whatever other threads do to the grant.
        standing = None if found is None else found.standing
        question = Question(proposal, session, found, standing, fault, now, self._clock.boot_id, self._trust)
        if failed := first_failing(self._checks, question):
            near = self._nearest(failed.reason, question)
            return self._desk.refuse(
                session, own, failed.reason, failed.detail, checked=failed.checked, call=proposal.call, nearest=near
            )
        grant, (step, key, _) = question.grant, question.standing
        candidate = step.by_call.get(proposal.call)
        if candidate is None:
            raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and the call is no candidate")
        return Way(grant, step, _permit(key, candidate))

    def _refreshed(self, grant: OpenGrant | None) -> str:
        """Let the grant stand where the ledger says; why that cannot be known, or nothing."""
        if grant is None:
            return ""
        try:
            grant.refresh(self._desk.ledger)
        except LedgerError as error:
            return error.detail
        return ""

    @staticmethod
    def _nearest(reason: Reason, question: Question) -> str:
        return nearest(question.step, question.proposal).name if reason in _NEAR else ""


def _called(step: PlannedStep, raw: bytes) -> Candidate | None:
    """The candidate that these bytes propose, in whatever spelling, if they say no more than that.

    Why equal bytes are the same proposal: what `orjson` writes denotes the value that it read, and the
    sealed bytes denote the sealed one; one text denotes one value. Of a plain value it reads and writes
    nothing inexactly: `1.0` is written with its point, an integer that it rounds with an exponent.
    It reads over a key that stands twice, which leaves the text with a string too many.
    """
    if len(raw) > MIB:
        return None
    known = step.by_proposal
    try:
        written = raw if raw in known else orjson.dumps(orjson.loads(raw), option=_SORTED)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    candidate, strings = known.get(written, _NOTHING)
    return candidate if strings == strings_in(raw) else None


def _permit(key: bytes, candidate: Candidate) -> Admitted:
    return Admitted(key, candidate.digest, candidate.server, candidate.tool, candidate.arguments)
