"""How a run ends otherwise than by its plan: revoked, aborted, recovered, reconciled, torn down."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import IntegrityError, LedgerError, MisuseError
from assisted_benchmark.kernel.keys import Key
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Lost
from assisted_benchmark.ledger.receipt_desk import EVENT
from assisted_benchmark.ledger.receipts import DECISION, OUTCOME
from assisted_benchmark.live_policy.desk import RECONCILIATION, Desk
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.opened import OpenGrant
from assisted_benchmark.live_policy.ports import Machine
from assisted_benchmark.live_policy.states import State

# The run of its own, in the ledger, that holds a run's one teardown.
TEARDOWN_RUN: Final = "{run}#teardown"


@frozen
class Finding:
    """What an operator found out about an unresolved call: the state it came to, and the evidence for it.

    `group` is the group's name in hex, as receipts have it; `evidence` is the oracle's reading.
    """

    group: str
    state: State
    evidence: bytes

    def signed(self, key: Key) -> bytes:
        """The operator's MAC over all of it."""
        return key.mac(self.group.encode(), self.state.encode(), self.evidence)


@frozen
class TornDown:
    """What came of the one teardown: `succeeded`, or `unresolved` with its VM, for a person to look after."""

    vm: str
    state: State
    reason: Reason | None
    receipt_id: str | None
    detail: str = ""


class Ending:
    """The broker's part that outlives a plan."""

    def __init__(self, desk: Desk, machine: Machine, operator_key: Key) -> None:
        self._desk = desk
        self._ledger = desk.ledger
        self._machine = machine
        self._operator_key = operator_key

    def revoke(self, grant: OpenGrant) -> tuple[State, ...]:
        """Sealed groups become revoked; a call that another broker may be carrying is given up as unresolved."""
        return self._stop(grant, Reason.REVOKED, State.REVOKED)

    def abort(self, grant: OpenGrant) -> tuple[State, ...]:
        """Sealed groups become aborted; a call that may be out is given up as unresolved, at once."""
        states = self._stop(grant, Reason.CANCELLED, State.ABORTED)
        flight = grant.flight
        if flight is None or not flight.may_be_out() or not flight.finish():
            return states
        permit = flight.claimed.permit
        draft = self._desk.draft(
            OUTCOME,
            Reason.OUTCOME_UNKNOWN.value,
            grant.session,
            permit,
            detail="cancelled while the call was in flight",
        )
        self._ledger.settle(flight.claimed, State.UNRESOLVED, draft)
        grant.refresh(self._ledger)
        return self._states(grant)

    def _stop(self, grant: OpenGrant, reason: Reason, state: State) -> tuple[State, ...]:
        # First the flag, then the ledger: a call that is claimed in between meets the flag at its gate.
        grant.stopped = grant.stopped or reason
        for key in grant.keys:
            draft = self._desk.draft(EVENT, reason.value, grant.session)
            if not self._ledger.move(key, grant.session.run, State.SEALED, state, draft):
                self._give_up_elsewhere(grant, key)
        grant.refresh(self._ledger)
        return self._states(grant)

    def _give_up_elsewhere(self, grant: OpenGrant, key: bytes) -> None:
        """A call in flight that is not ours: its own gate sees this in the ledger; whether it is out, nobody knows."""
        flight = grant.flight
        if flight is not None and flight.claimed.permit.group == key:
            return
        row = self._ledger.row(key)
        if row is not None and row.state == State.DISPATCHING:
            detail = "stopped while another broker may be carrying the call"
            draft = self._desk.draft(OUTCOME, Reason.OUTCOME_UNKNOWN.value, grant.session, detail=detail)
            draft = draft._replace(candidate=row.candidate)
            self._ledger.move(key, grant.session.run, State.DISPATCHING, State.UNRESOLVED, draft)

    def _states(self, grant: OpenGrant) -> tuple[State, ...]:
        rows = (self._ledger.row(key) for key in grant.keys)
        return tuple(State(row.state) for row in rows if row is not None)

    def recover(self) -> tuple[bytes, ...]:
        """Only ever writes unresolved: whether a call went out before the crash, nobody knows."""
        at = self._desk.clock.now()
        return tuple(group for run in self._ledger.runs() for group in self._ledger.recover(run, at))

    def reconcile(self, grant: OpenGrant, finding: Finding, mac: bytes) -> str | Refused:
        """Append a record beside an unresolved group. Reopens nothing, and lets teardown go on.

        Gives the record's receipt id; refused are a MAC that is not the operator's (seal_invalid) and
        a group that is not unresolved (group_terminal).

        Raises:
            MisuseError: the finding is no outcome.
        """
        if finding.state not in (State.SUCCEEDED, State.FAILED):
            raise MisuseError(Reason.WRONG_VALUE, "a reconciliation finds that the call succeeded or failed")
        session = grant.session
        if not self._operator_key.verify(mac, finding.group.encode(), finding.state.encode(), finding.evidence):
            return self._desk.refuse(session, None, Reason.SEAL_INVALID, "the reconciliation is not the operator's")
        if finding.group not in self._groups_in(grant, State.UNRESOLVED):
            return self._desk.refuse(session, None, Reason.GROUP_TERMINAL, "the group is not unresolved")
        evidence = digest_of("evidence@1", finding.evidence)
        detail = f"found `{finding.state.value}`, evidence {evidence}"
        draft = self._desk.draft(RECONCILIATION, finding.state.value, session, detail=detail)
        self._ledger.record(session.run, draft._replace(group=finding.group))
        return draft.id

    def _groups_in(self, grant: OpenGrant, *states: State) -> frozenset[str]:
        """The grant's groups, in hex, that are in one of these states."""
        rows = ((key, self._ledger.row(key)) for key in grant.keys)
        return frozenset(key.hex() for key, row in rows if row is not None and row.state in states)

    def _reconciled(self, grant: OpenGrant) -> frozenset[str]:
        receipts = self._desk.history(grant.session.run)
        return frozenset(each["group"] for each in receipts if each["kind"] == RECONCILIATION)

    def teardown(self, grant: OpenGrant, session: Session) -> TornDown | Refused:
        """End exactly the bound VM on the bound host, once for good; never raises for what goes wrong on the way.

        So an error that a run ended with stays the one that is reported. Refused are another binding's
        session, a call in flight or unresolved without a reconciliation (outcome_unknown), and a second
        teardown (already_selected). On another host nothing is sent. A ledger that does not verify is
        refused as such and gets no receipt: no reconciliation in it is believed.
        """
        try:
            try:
                return self._not_ours(grant, session) or self._torn_down(grant)
            except LedgerError as error:
                return self._desk.refuse(session, None, Reason.STORE_UNAVAILABLE, error.detail)
        except IntegrityError as error:
            return Refused(error.reason, error.detail, None)

    def _not_ours(self, grant: OpenGrant, session: Session) -> Refused | None:
        bound = grant.session
        pairs = (
            (Reason.CROSS_RUN, session.run == bound.run),
            (Reason.WRONG_PRINCIPAL, session.principal == bound.principal),
            (Reason.WRONG_VM, session.vm == bound.vm),
            (Reason.WRONG_HOST, session.host == bound.host),
        )
        for reason, same in pairs:
            if not same:
                return self._desk.refuse(session, None, reason, "a teardown under another binding")
        pending = self._groups_in(grant, State.UNRESOLVED, State.DISPATCHING)
        if pending and pending - self._reconciled(grant):
            detail = "a call is in flight or unresolved: reconcile it first"
            return self._desk.refuse(session, None, Reason.OUTCOME_UNKNOWN, detail)
        return None

    def _torn_down(self, grant: OpenGrant) -> TornDown | Refused:
        session = grant.session
        if self._machine.host_identity() != session.host:
            detail = f"the VM {session.vm} is on another host: nothing was sent"
            draft = self._desk.draft(EVENT, Reason.WRONG_HOST.value, session, detail=detail)
            self._ledger.record(session.run, draft)
            return TornDown(session.vm, State.UNRESOLVED, Reason.WRONG_HOST, draft.id, detail)
        self._stop(grant, Reason.CANCELLED, State.ABORTED)
        run = TEARDOWN_RUN.format(run=session.run)
        name = digest_of("teardown@1", session.run.encode(), session.vm.encode())
        permit = Admitted(bytes.fromhex(name[7:]), name, "", "teardown", canonical_bytes({"vm": session.vm}))
        self._ledger.open_run(run, canonical_bytes([session.run, session.vm]), [permit.group])
        claimed = self._ledger.claim(permit, run, self._desk.draft(DECISION, "admitted", session, permit))
        if isinstance(claimed, Lost):
            detail = f"the teardown was issued before and is `{claimed.state}`"
            return self._desk.refuse(session, None, Reason.ALREADY_SELECTED, detail)
        try:
            self._machine.teardown(session.vm)
            state, reason, detail = State.SUCCEEDED, None, ""
        except Exception as error:  # noqa: BLE001 - whatever it was, the VM may still be there
            state, reason, detail = State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, f"{type(error).__name__} in the teardown"
        word = state.value if reason is None else reason.value
        draft = self._desk.draft(OUTCOME, word, session, permit, detail=detail)
        self._ledger.settle(claimed, state, draft)
        return TornDown(session.vm, state, reason, draft.id, detail)
