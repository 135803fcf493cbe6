"""Carrying an admitted call out: observe, claim, gate, send, judge, settle; at most once, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assisted_benchmark.contract.model import Recheck
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import HarnessError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed, Draft, Lost
from assisted_benchmark.ledger.receipt_desk import EVENT
from assisted_benchmark.ledger.receipts import DECISION, OUTCOME
from assisted_benchmark.live_policy.deciding import Way
from assisted_benchmark.live_policy.desk import Desk
from assisted_benchmark.live_policy.dispatch import Flight, Moment, Outcome, Verdict, judge
from assisted_benchmark.live_policy.opened import OpenGrant
from assisted_benchmark.live_policy.ports import Dispatcher, Machine, NotSent, Relay, Replied, Reply, Unavailable
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.live_policy.trust import Trust

# What a claim that came too late is told, where another selection was not the reason.
_LOST: Final = {
    State.EXPIRED: Reason.EXPIRED,
    State.REVOKED: Reason.REVOKED,
    State.ABORTED: Reason.GROUP_TERMINAL,
    State.EXHAUSTED: Reason.EXHAUSTED,
}


class Carrier:
    """Takes what was admitted to its server, by way of the ledger."""

    def __init__(
        self,
        *,
        trust: Trust,
        desk: Desk,
        dispatcher: Dispatcher,
        machine: Machine,
        reply_within_ns: int,
        on_moment: Callable[[Moment], None],
    ) -> None:
        self._trust = trust
        self._desk = desk
        self._ledger = desk.ledger
        self._clock = desk.clock
        self._dispatcher = dispatcher
        self._machine = machine
        self._reply_within_ns = reply_within_ns
        self._on_moment = on_moment

    def carry(self, way: Way, relay: Relay) -> Outcome | Refused:
        """From an admitted call to its recorded end."""
        refused = self._observe(way)
        if refused is not None:
            return refused
        if relay.cancelled:
            return self._refuse(way, Reason.CANCELLED, "the agent cancelled the call before it was claimed")
        claimed = self.claim(way)
        return claimed if isinstance(claimed, Refused) else self._dispatch(way, claimed, relay)

    def _observe(self, way: Way) -> Refused | None:
        self._on_moment(Moment.OBSERVE)
        step = way.step
        server = step.server
        fresh = step.choice or server.recheck is Recheck.ALWAYS
        seen = self._dispatcher.observe(
            server.id, fresh=fresh, deadline=Deadline.after(self._clock, self._reply_within_ns)
        )
        if isinstance(seen, Unavailable):
            return self._refuse(way, seen.reason, seen.detail)
        drift = seen.drift
        if seen.launch != self._trust.launches[server.id]:
            drift = (*drift, "the launch is not the one that was sealed")
        if seen.tools != server.tools_digest and not seen.drift:
            drift = (*drift, "the tool list is not the pinned one")
        return self._refuse(way, Reason.CONTRACT_DRIFT, f"`{server.id}`: {'; '.join(drift)}") if drift else None

    def claim(self, way: Way) -> Claimed | Refused:
        self._on_moment(Moment.CLAIM)
        grant, permit = way.grant, way.permit
        session = grant.session
        if way.step.index and (refused := self._out_of_order(way)) is not None:
            return refused
        draft = self._desk.draft(DECISION, "admitted", session, permit)
        try:
            # INVARIANT: the marker is durable before the send. An error here means that nothing is sent.
            claimed = self._ledger.claim(permit, session.run, draft)
            if isinstance(claimed, Claimed):
                return claimed
            grant.refresh(self._ledger)
        except LedgerError as error:
            return self._refuse(way, Reason.STORE_UNAVAILABLE, error.detail)
        return self._lost(way, claimed)

    def _out_of_order(self, way: Way) -> Refused | None:
        """Nothing if the ledger itself says that the step before succeeded, whatever this process believes of it."""
        try:
            row = self._ledger.row(way.grant.keys[way.step.index - 1])
        except LedgerError as error:
            return self._refuse(way, Reason.STORE_UNAVAILABLE, error.detail)
        if row is not None and row.state == State.SUCCEEDED:
            return None
        return self._refuse(way, Reason.OUT_OF_ORDER, f"`{way.step.name}` is not the step that is open")

    def _lost(self, way: Way, lost: Lost) -> Refused:
        reason = _LOST.get(State(lost.state), Reason.LOST_RACE)
        return self._refuse(way, reason, f"`{way.step.name}` became `{lost.state}`")

    def _refuse(self, way: Way, reason: Reason, detail: str) -> Refused:
        permit = way.permit
        call = (permit.server, permit.tool, permit.arguments)
        return self._desk.refuse(way.grant.session, way.grant, reason, detail, call=call)

    def _dispatch(self, way: Way, claimed: Claimed, relay: Relay) -> Outcome:
        grant = way.grant
        flight = grant.flight = Flight(claimed)
        grant.came_to(way.step.index, State.DISPATCHING)
        self._on_moment(Moment.CLAIMED)
        try:
            verdict = self._sent(way, flight, relay)
        except Exception as error:
            # Fail closed: whatever went wrong, bytes may be out. The error itself goes on to the caller.
            detail = f"{type(error).__name__} while the call was in flight"
            self._settle(way, flight, Verdict(State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, detail))
            raise
        self._on_moment(Moment.SETTLE)
        return self._settle(way, flight, verdict)

    def _sent(self, way: Way, flight: Flight, relay: Relay) -> Verdict:
        grant = way.grant

        def gate() -> bool:
            if not self._still(grant, flight):
                return False
            self._on_moment(Moment.WRITE)
            return True

        reply: Reply
        if (stopped := self._stop_reason(grant)) is not None:
            reply = NotSent(stopped)
        else:
            reply = self._dispatcher.send(flight.claimed, gate=gate, deadline=self._until(grant), relay=relay)
        self._on_moment(Moment.ANSWER)
        verdict = judge(reply, way.step.tool, flight)
        return self._completed(grant, reply, verdict) if isinstance(reply, Replied) else verdict

    def _still(self, grant: OpenGrant, flight: Flight) -> bool:
        with flight.lock:
            flight.refused = self._stop_reason(grant) or self._closed_elsewhere(flight)
            # A call that goes on after a question passes here again; what was written once stays written.
            flight.writing = flight.writing or flight.refused is None
            return flight.refused is None

    def _closed_elsewhere(self, flight: Flight) -> Reason | None:
        """Why the ledger keeps the call in: another broker or process gave it up, or the ledger cannot tell."""
        try:
            row = self._ledger.row(flight.claimed.permit.group)
        except HarnessError:
            return Reason.STORE_UNAVAILABLE
        return None if row is not None and row.state == State.DISPATCHING else Reason.CANCELLED

    def _stop_reason(self, grant: OpenGrant) -> Reason | None:
        """Why nothing may be written now."""
        if grant.stopped is not None:
            return grant.stopped
        if self._clock.boot_id != grant.session.boot:
            return Reason.WRONG_HOST
        return Reason.EXPIRED if grant.expired(self._clock.now()) else None

    def _completed(self, grant: OpenGrant, reply: Replied, verdict: Verdict) -> Verdict:
        """The host and both clocks once more: an answer from elsewhere, or too late, is no success."""
        here = self._machine.host_identity() == grant.session.host and self._clock.boot_id == grant.session.boot
        if not here:
            return Verdict(State.UNRESOLVED, Reason.WRONG_HOST, "the host is another one than at sealing")
        if grant.expired(reply.wrote) or grant.expired(reply.replied) or grant.expired(self._clock.now()):
            return Verdict(State.UNRESOLVED, Reason.LATE_RESULT, "the answer came after the grant's end")
        return verdict

    def _settle(self, way: Way, flight: Flight, verdict: Verdict) -> Outcome:
        grant, permit = way.grant, way.permit
        state, reason, detail, result = verdict
        word = state.value if reason is None else reason.value
        draft = self._desk.draft(OUTCOME, word, grant.session, permit, detail=detail)
        try:
            if not flight.finish():
                return self._given_up(way, flight, draft)
            self._ledger.settle(flight.claimed, state, draft)
        except LedgerError as error:
            if error.reason is Reason.ILLEGAL_TRANSITION:
                return self._given_up(way, flight, draft)
            return Outcome(State.UNRESOLVED, Reason.STORE_UNAVAILABLE, None, permit, b"", error.detail)
        grant.came_to(way.step.index, state)
        return Outcome(state, reason, draft.id, permit, result, detail)

    def _given_up(self, way: Way, flight: Flight, draft: Draft) -> Outcome:
        """Somebody, here or elsewhere, gave the call up and recorded it; what came after is told beside it."""
        reason = flight.refused or Reason.OUTCOME_UNKNOWN
        grant = way.grant
        try:
            self._ledger.record(grant.session.run, draft._replace(kind=EVENT))
            grant.refresh(self._ledger)
        except LedgerError as error:
            return Outcome(State.UNRESOLVED, Reason.STORE_UNAVAILABLE, None, way.permit, b"", error.detail)
        return Outcome(State.UNRESOLVED, reason, draft.id, way.permit, b"", "given up in flight")

    def _until(self, grant: OpenGrant) -> Deadline:
        return Deadline(self._clock, min(grant.expires_mono, self._clock.now().mono_ns + self._reply_within_ns))
