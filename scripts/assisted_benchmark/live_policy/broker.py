"""The live broker: decides on proposals under sealed grants, and carries out what it admitted, once.

The way of one proposal:

    decide    raw bytes and a session against the open group; the first failing check refuses
    observe   the server as it is now against its pin; drift refuses
    claim     the marker and the decision's receipt, in one transaction; a lost race refuses
    gate      both clocks again; and once more, by the dispatcher, right before the write, with the ledger's row
    send      the sealed candidate's bytes, never the agent's
    judge     the answer, the host and both clocks; what is unclear is unresolved
    settle    the outcome and its receipt

No clock check and write are one act: a process that is stopped in between and goes on too late has
sent its call. The times that are stamped after the write show it, and it ends as unresolved.

Brokers and processes that share a ledger share its rows and nothing else. Of a group only one of them
claims, and what one of them records (a revocation, an abort, a recovery) the gates of all others see: a call
that was claimed elsewhere becomes unresolved, and is not written if its gate comes later. But reading the row
and writing the call are no one act either: a gate that has just passed writes its call all the same, so the
record says unresolved and never that nothing was sent. `recover` therefore belongs to a start, when no other
process carries calls. The reason why a grant was stopped, and a call's answer, stay with the broker that has
them: it tells what it learnt in an event beside the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import SECOND, Clock
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.live_policy.carrying import Carrier
from assisted_benchmark.live_policy.checks import CHECKS, Check, Question
from assisted_benchmark.live_policy.deciding import Decider
from assisted_benchmark.live_policy.desk import Desk
from assisted_benchmark.live_policy.dispatch import Moment, Outcome
from assisted_benchmark.live_policy.ending import Ending, Finding, TornDown
from assisted_benchmark.live_policy.grant import SealedGrant, Session
from assisted_benchmark.live_policy.grants import Grants
from assisted_benchmark.live_policy.opened import OpenGrant
from assisted_benchmark.live_policy.opening import OPENING, Opening
from assisted_benchmark.live_policy.policy import Policy
from assisted_benchmark.live_policy.ports import NO_RELAY, Dispatcher, Machine, Relay
from assisted_benchmark.live_policy.proposal import told_of_malformed
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.live_policy.trust import Pins, Trust

REPLY_WITHIN_NS: Final = 30 * SECOND


def _no_experiment(_: Moment) -> None:
    """Nothing strikes."""


class LiveBroker:
    """One trusted policy's broker over one ledger. Threads may share it; the ledger orders them.

    `pins` are the digests that the runner pinned, `launches` what each server's launch resolved to
    on this machine. `checks`, `opening` and `on_moment` are for experiments: a broker that lacks a
    check, and faults that strike at a named moment.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        pins: Pins,
        launches: Mapping[str, Digest],
        ledger: Ledger,
        dispatcher: Dispatcher,
        machine: Machine,
        clock: Clock,
        chance: Chance,
        keys: KeyRing,
        reply_within_ns: int = REPLY_WITHIN_NS,
        checks: tuple[Check[Question], ...] = CHECKS,
        opening: tuple[Check[Opening], ...] = OPENING,
        on_moment: Callable[[Moment], None] = _no_experiment,
    ) -> None:
        trust = Trust(policy, pins, dict(launches))
        self._desk = Desk(ledger, clock, chance, keys)
        self._grants = Grants(
            trust=trust, desk=self._desk, chance=chance, seal_key=keys.key(Purpose.GRANT), opening=opening
        )
        self._decider = Decider(trust=trust, grants=self._grants, desk=self._desk, checks=checks)
        self._carrier = Carrier(
            trust=trust,
            desk=self._desk,
            dispatcher=dispatcher,
            machine=machine,
            reply_within_ns=reply_within_ns,
            on_moment=on_moment,
        )
        self._ending = Ending(self._desk, machine, keys.key(Purpose.OPERATOR))

    def seal(self, *, run: str, principal: str, vm: str, host: Digest, task: str) -> SealedGrant:
        """A sealed grant for a new run; the run and its groups are in the ledger, and the grant is open here.

        Raises:
            DocumentError: the policy does not compile for this task.
            IntegrityError: policy_drift or contract_drift against the pins.
            MisuseError: a malformed binding, a missing launch digest, or a run that exists.
            LedgerError: the ledger cannot be used.
        """
        return self._grants.seal(run=run, principal=principal, vm=vm, host=host, task=task)

    def session(self, sealed: SealedGrant) -> Session:
        """The session of a grant that is open here, for the harness that asked to seal it."""
        return self._known(sealed.digest).session

    def open(self, raw: bytes, session: Session) -> Session | Refused:
        """Open a sealed grant that is presented under `session`: believed only if recompiling gives its bytes.

        Raises:
            IntegrityError: the ledger's rows or the run's receipts do not verify.
        """
        opened = self._grants.open(raw, session)
        return opened if isinstance(opened, Refused) else opened.session

    def decide(self, session: Session, raw: bytes) -> Admitted | Refused:
        """The decision alone. Nothing is claimed and nothing sent; a refusal has its receipt."""
        way = self._decider.judge(session, raw)
        return way if isinstance(way, Refused) else way.permit

    def propose(self, session: Session, raw: bytes, relay: Relay = NO_RELAY) -> Outcome | Refused:
        """Decide, and if admitted carry the call out: at most once, whatever happens.

        `relay` leads to the agent while its call is in flight. A call that it cancels before the marker is refused,
        and spends nothing; afterwards the group is spent, and what came of it is recorded either way.
        """
        way = self._decider.judge(session, raw)
        return way if isinstance(way, Refused) else self._carrier.carry(way, relay)

    def refuse_malformed(self, session: Session, reason: Reason, detail: str) -> Refused:
        """Record that the agent's bytes did not even become a proposal."""
        return self._desk.refuse(session, self._grants.find(session.grant), reason, told_of_malformed(reason, detail))

    def revoke(self, grant: Digest) -> tuple[State, ...]:
        """Close every group that is still sealed; a call not yet written stays unwritten. The groups' states after."""
        return self._ending.revoke(self._known(grant))

    def abort(self, session: Session) -> tuple[State, ...]:
        """Cancel the run: nothing more is written, and a call that may be out is recorded as unresolved."""
        return self._ending.abort(self._known(session.grant))

    def teardown(self, session: Session) -> TornDown | Refused:
        """End the run's VM, once; see `Ending.teardown`."""
        found = self._grants.find(session.grant)
        if found is None:
            return self._desk.refuse(session, None, Reason.UNKNOWN_GRANT, "no such grant is open here")
        return self._ending.teardown(found, session)

    def reconcile(self, grant: Digest, finding: Finding, mac: bytes) -> str | Refused:
        """Record what an operator found out about an unresolved call; see `Ending.reconcile`."""
        return self._ending.reconcile(self._known(grant), finding, mac)

    def recover(self) -> tuple[bytes, ...]:
        """On start-up: every group that a crash left dispatching becomes unresolved, for good."""
        return self._ending.recover()

    def _known(self, grant: Digest) -> OpenGrant:
        found = self._grants.find(grant)
        if found is None:
            raise MisuseError(Reason.UNKNOWN_GRANT, "the grant is not open here")
        return found
