"""Sending a confirmed change: look once more, claim, gate, write, judge, settle; at most once, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from attrs import define

from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.errors import IntegrityError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.ledger.protocol import Claimed, Lost
from assisted_benchmark.mutation.answers import Status
from assisted_benchmark.mutation.changes import ChangeContract, ChangeType
from assisted_benchmark.mutation.checks import Check, Leaving, first_failing
from assisted_benchmark.mutation.compiler import Compiled
from assisted_benchmark.mutation.desk import DECISION, OUTCOME
from assisted_benchmark.mutation.endpoint import Verdict, judge
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.ports import Endpoint, Reply
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.results import ALL_HOLD, Confirmed, Predicates, Refusal, TokenState, recorded
from assisted_benchmark.mutation.states import State
from assisted_benchmark.mutation.store import Found, ProposalStore

_EXECUTED = {State.SUCCEEDED: True, State.FAILED: False, State.UNRESOLVED: None}
_AT_SENDING = {
    Reason.EXPIRED: Predicates(True, False, True, True),
    Reason.CLOCK_ROLLBACK: Predicates(True, False, True, True),
    Reason.BINDING_MISMATCH: Predicates(True, True, True, False),
}


class Going(NamedTuple):
    """A consumed proposal that was agreed to, or that nobody had to. `about` is what receipts say of the question."""

    session: Session
    found: Found
    change: ChangeType
    compiled: Compiled
    status: Status
    about: str


@define
class _Gate:
    """What the gate decided; it is asked right before the write."""

    refused: Reason | None = None
    passed: bool = False


class Sender:
    """Takes a confirmed change to its endpoint, by way of the ledger."""

    def __init__(
        self,
        *,
        contract: ChangeContract,
        endpoint: Endpoint,
        store: ProposalStore,
        checks: tuple[Check[Leaving], ...],
        reply_within_ns: int,
        on_moment: Callable[[Moment], None],
    ) -> None:
        self._contract = contract
        self._endpoint = endpoint
        self._desk = store.desk
        self._ledger = store.ledger
        self._clock = store.clock
        self._checks = checks
        self._reply_within_ns = reply_within_ns
        self._on_moment = on_moment

    def send(self, going: Going, cancelled: Callable[[], bool]) -> Confirmed | Refusal:
        """From an agreement to its recorded end."""
        self._on_moment(Moment.ANSWERED)
        proposal, compiled = going.found.proposal, going.compiled
        if failed := self._failing(going, compiled.body, cancelled):
            return self.end(going.session, going.found, failed[0], failed[1], status=going.status, about=going.about)
        permit = Admitted(going.found.key, compiled.digest, self._contract.id, compiled.change, compiled.body)
        self._on_moment(Moment.CLAIM)
        draft = self._desk.about(DECISION, "admitted", proposal, self._contract.id, detail=going.about)
        try:
            # INVARIANT: the marker is durable before the send. An error here means that nothing is sent.
            claimed = self._ledger.claim(permit, proposal.session.run, draft)
        except LedgerError as error:
            return self._not_claimed(going, Reason.STORE_UNAVAILABLE, error.detail)
        if isinstance(claimed, Lost):
            return self._not_claimed(going, Reason.LOST_RACE, f"the proposal became `{claimed.state}`")
        return self._dispatch(going, claimed, cancelled)

    def end(
        self,
        session: Session,
        found: Found,
        reason: Reason,
        detail: str,
        *,
        status: Status | None,
        predicates: Predicates | None = None,
        about: str = "",
    ) -> Refusal:
        """A consumed proposal is refused: nothing of it is or will be sent."""
        proposal = found.proposal
        words = f"{detail}; {about}" if about else detail
        draft = self._desk.about(DECISION, reason.value, proposal, self._contract.id, detail=words)
        refusal = Refusal(
            reason,
            words,
            draft.id,
            token=TokenState.CONSUMED,
            status=status,
            predicates=predicates or _AT_SENDING.get(reason, ALL_HOLD),
            request=proposal.bound,
        )
        try:
            if self._ledger.move(found.key, proposal.session.run, State.CONFIRMING, State.REFUSED, draft):
                return refusal
        except LedgerError:
            """Told below: without a store there is no receipt."""
        return recorded(refusal, self._desk, session, draft)

    def _not_claimed(self, going: Going, reason: Reason, detail: str) -> Refusal:
        return self.end(going.session, going.found, reason, detail, status=going.status, about=going.about)

    def _failing(self, going: Going, body: bytes, cancelled: Callable[[], bool]) -> tuple[Reason, str] | None:
        now, boot = self._clock.now(), self._clock.boot_id
        failed = first_failing(self._checks, Leaving(going.found.proposal, body, now, boot, cancelled()))
        return None if failed is None else (failed[0].reason, str(failed[1]))

    def _dispatch(self, going: Going, claimed: Claimed, cancelled: Callable[[], bool]) -> Confirmed | Refusal:
        gate = _Gate()

        def may_leave() -> bool:
            failed = self._failing(going, claimed.permit.arguments, cancelled)
            gate.refused = None if failed is None else failed[0]
            gate.passed = failed is None
            if gate.passed:
                self._on_moment(Moment.WRITE)
            return gate.passed

        self._on_moment(Moment.CLAIMED)
        try:
            reply = self._endpoint.create(
                claimed,
                going.compiled.real(),
                gate=may_leave,
                deadline=Deadline.after(self._clock, self._reply_within_ns),
            )
            self._on_moment(Moment.ANSWER)
            verdict = self._verdict(reply, gate, going)
        except Exception as error:
            # Fail closed: whatever went wrong, the request may be out. The error itself goes on to the caller.
            detail = f"{type(error).__name__} while the request was in flight"
            self._settle(going, claimed, Verdict(State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, detail), cancelled)
            raise
        self._on_moment(Moment.SETTLE)
        return self._settle(going, claimed, verdict, cancelled)

    def _verdict(self, reply: Reply, gate: _Gate, going: Going) -> Verdict:
        if isinstance(reply, NotSent):
            reason = gate.refused or reply.reason
            return Verdict(State.REFUSED, reason, f"nothing was sent: {reason.value}")
        if isinstance(reply, Uncertain):
            return Verdict(State.UNRESOLVED, reply.reason, "sent, and no usable answer came")
        if not gate.passed:
            return Verdict(State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, "an answer to a request that its gate kept in")
        return judge(reply, going.change.create_accepts, self._contract.errors)

    def _settle(
        self, going: Going, claimed: Claimed, verdict: Verdict, cancelled: Callable[[], bool]
    ) -> Confirmed | Refusal:
        state, reason, detail, entity, error = verdict
        word = state.value if reason is None else reason.value
        late = state is not State.REFUSED and cancelled()
        words = f"{detail}; a cancel came after the send" if late else detail
        draft = self._desk.about(OUTCOME, word, going.found.proposal, self._contract.id, detail=words)
        receipt_id: str | None = draft.id
        try:
            self._ledger.settle(claimed, state, draft)
        except (LedgerError, IntegrityError) as fault:
            # The marker stands, so the record will say unresolved, and so does the answer: it was sent, and an
            # error in place of an answer would have it proposed again.
            reason = fault.reason if isinstance(fault, IntegrityError) else Reason.STORE_UNAVAILABLE
            state, entity, error, words, receipt_id = State.UNRESOLVED, None, None, fault.detail, None
        if state is State.REFUSED and reason is not None:
            return Refusal(
                reason,
                words,
                receipt_id,
                token=TokenState.CONSUMED,
                status=going.status,
                predicates=_AT_SENDING.get(reason, ALL_HOLD),
                request=going.compiled.digest,
            )
        return Confirmed(
            state=state,
            reason=reason,
            executed=_EXECUTED[state],
            result=entity,
            error=error,
            request=going.compiled.digest,
            status=going.status,
            receipt_id=receipt_id,
            late_cancel=late,
            detail=words,
        )
