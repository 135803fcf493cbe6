"""The live broker: decides on proposals under sealed grants, and carries out what it admitted, once.

The way of one proposal:

    decide    raw bytes and a session against the open group; the first failing check refuses
    observe   the server as it is now against its pin; drift refuses
    claim     the marker and the decision's receipt, in one transaction; a lost race refuses
    gate      both clocks again; and once more, by the dispatcher, right before the write
    send      the sealed candidate's bytes, never the agent's
    judge     the answer, the host and both clocks; what is unclear is unresolved
    settle    the outcome and its receipt

No clock check and write are one act: a process that is stopped in between and goes on too late has
sent its call. The times that are stamped after the write show it, and it ends as unresolved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple

import orjson

from assisted_benchmark.contract.model import Recheck
from assisted_benchmark.kernel.canonical import Canonical, parse
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline, Instant
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import (
    DocumentError,
    HarnessError,
    InputError,
    IntegrityError,
    LedgerError,
    MisuseError,
)
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed, Draft, Ledger, Lost
from assisted_benchmark.live_policy.checks import CHECKS, OPENING, Check, Opening, Pins, Question, Trust
from assisted_benchmark.live_policy.desk import DECISION, EVENT, OUTCOME, Desk
from assisted_benchmark.live_policy.dispatch import Flight, Moment, Outcome, Verdict, judge
from assisted_benchmark.live_policy.ending import Ending, Finding, TornDown
from assisted_benchmark.live_policy.grant import (
    Binding,
    Claims,
    SealedGrant,
    Session,
    content_of,
    group_key,
)
from assisted_benchmark.live_policy.matching import nearest
from assisted_benchmark.live_policy.opened import OpenGrant
from assisted_benchmark.live_policy.policy import Candidate, Plan, PlannedStep, Policy, compile_plan
from assisted_benchmark.live_policy.ports import Dispatcher, Machine, NotSent, Replied, Reply, Unavailable
from assisted_benchmark.live_policy.proposal import read_proposal
from assisted_benchmark.live_policy.states import State

REPLY_WITHIN_NS: Final = 30 * SECOND

_SORTED: Final = orjson.OPT_SORT_KEYS
_NONCE_BYTES: Final = 16
# What a claim that came too late is told, where another selection was not the reason.
_LOST: Final = {
    State.EXPIRED: Reason.EXPIRED,
    State.REVOKED: Reason.REVOKED,
    State.ABORTED: Reason.GROUP_TERMINAL,
    State.EXHAUSTED: Reason.EXHAUSTED,
}

_NEAR: Final = frozenset({Reason.ARGUMENTS_INVALID, Reason.WRONG_TARGET, Reason.ARGUMENTS_ALTERED})


def _no_experiment(_: Moment) -> None:
    """Nothing strikes."""


class LiveBroker:
    """One trusted policy's broker over one ledger. Threads may share it; the ledger orders them.

    `pins` are the digests that the runner pinned, `launches` what each server's launch resolved to
    on this machine. `checks` and `on_moment` are for experiments: a broker that lacks a check, and
    faults that strike at a named moment.
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
        self._trust = Trust(policy, pins, dict(launches))
        self._faithful = not (self._trust.policy_drifted or self._trust.contract_drifted)
        self._ledger = ledger
        self._dispatcher = dispatcher
        self._machine = machine
        self._clock = clock
        self._chance = chance
        self._seal_key = keys.key(Purpose.GRANT)
        self._reply_within_ns = reply_within_ns
        self._checks = checks
        self._opening = opening
        self._on_moment = on_moment
        self._desk = Desk(ledger, clock, chance, keys)
        self._ending = Ending(self._desk, machine, keys.key(Purpose.OPERATOR))
        self._opening_lock = Lock()
        self._plans: dict[str, Plan] = {}
        self._keyed: dict[Digest, str] = {}
        # By the name of the first group. A grant that was not used yet is kept as its ledger record.
        self._grants: dict[bytes, bytes | OpenGrant] = {}

    # --- sealing and opening

    def seal(self, *, run: str, principal: str, vm: str, host: Digest, task: str) -> SealedGrant:
        """Compile the policy for a new run, open the run in the ledger, and give its sealed grant, which is open here.

        Raises:
            DocumentError: the policy does not compile for this task.
            IntegrityError: policy_drift or contract_drift against the pins.
            MisuseError: a malformed binding, a missing launch digest, or a run that exists.
            LedgerError: the ledger cannot be used.
        """
        if not self._faithful:
            reason = Reason.POLICY_DRIFT if self._trust.policy_drifted else Reason.CONTRACT_DRIFT
            raise IntegrityError(reason, f"the policy `{self._trust.policy.id}` is not sealed: it is not as pinned")
        plan = self._plan(task)
        nonce = self._chance.token(_NONCE_BYTES).hex()
        binding = Binding(run, nonce, principal, vm, host, self._clock.boot_id, task, self._clock.now()).checked()
        sealed = SealedGrant.seal(self._content(binding, plan), self._seal_key)
        grant, record = sealed.digest, binding.record()
        keys = [group_key(grant, index) for index in range(len(plan.steps))]
        if not self._ledger.open_run(run, record, keys):
            raise MisuseError(Reason.DUPLICATE_ID, f"the run `{run}` exists already: a run id is used once")
        self._grants[keys[0]] = record
        return sealed

    def session(self, sealed: SealedGrant) -> Session:
        """The session of a grant that is open here, for the harness that asked to seal it."""
        found = self._find(sealed.digest)
        if found is None:
            raise MisuseError(Reason.UNKNOWN_GRANT, "the grant is not open here")
        return found.session

    def open(self, raw: bytes, session: Session) -> OpenGrant | Refused:
        """Believe a sealed grant only if compiling the trusted policy for the ledger's binding gives its bytes.

        Then what the ledger's receipts say of it is taken up again.
        """
        try:
            record = self._ledger.run_record(session.run)
        except LedgerError as error:
            return self._desk.refuse(session, None, Reason.STORE_UNAVAILABLE, error.detail)
        try:
            sealed = SealedGrant.read(raw)
        except InputError as error:
            return self._desk.refuse(session, None, error.reason, error.detail)
        binding, recompiled = self._recompile(record)
        claims = Claims.of_content(sealed.content)
        boot = self._clock.boot_id
        presented = Opening(sealed, claims, session, record is not None, recompiled, boot, self._trust, self._seal_key)
        checked: list[str] = []
        for check in self._opening:
            if detail := check.test(presented):
                return self._desk.refuse(session, None, check.reason, detail, checked=tuple(checked))
            checked.append(check.reason.value)
        if binding is None:
            raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and there is no binding to open the grant under")
        return self._take_up(binding, sealed.digest)

    def _take_up(self, binding: Binding, digest: Digest) -> OpenGrant | Refused:
        grant = OpenGrant(binding.session(digest), self._plan(binding.task), binding.issued)
        try:
            grant.refresh(self._ledger)
            for line in self._ledger.receipts(binding.run):
                grant.mark = max(grant.mark, int(Canonical(line).value["wall_ns"]))
        except LedgerError as error:
            return self._desk.refuse(grant.session, None, Reason.STORE_UNAVAILABLE, error.detail)
        self._grants[group_key(digest, 0)] = grant
        return grant

    def _recompile(self, record: bytes | None) -> tuple[Binding | None, bytes]:
        if record is None:
            return None, b""
        binding = Binding.of_record(record)
        with suppress(DocumentError):  # a policy that does not compile gives no grant
            return binding, self._content(binding, self._plan(binding.task))
        return binding, b""

    def _content(self, binding: Binding, plan: Plan) -> bytes:
        launches = self._trust.launches
        missing = [step.server.id for step in plan.steps if step.server.id not in launches]
        if missing:
            raise MisuseError(Reason.MISSING_KEY, f"no launch digest for the server `{missing[0]}`")
        return content_of(binding, self._ledger.id, plan, launches)

    def _plan(self, task: str) -> Plan:
        plan = self._plans.get(task)
        if plan is None:
            plan = self._plans[task] = compile_plan(self._trust.policy, task)
            for step in plan.steps:
                self._keyed.update((each.digest, self._desk.keyed(each.arguments)) for each in step.candidates)
        return plan

    def _find(self, grant: str) -> OpenGrant | None:
        """The open grant of that digest; one that was not used yet is made from its record."""
        try:
            key = group_key(Digest(grant), 0)
        except ValueError:
            return None
        found = self._grants.get(key)
        return self._first_use(key, Digest(grant)) if isinstance(found, bytes) else found

    def _first_use(self, key: bytes, grant: Digest) -> OpenGrant:
        # Under a lock, so that all threads share one view and find its call in flight.
        with self._opening_lock:
            found = self._grants[key]
            if isinstance(found, bytes):
                binding = Binding.of_record(found)
                found = self._grants[key] = OpenGrant(binding.session(grant), self._plans[binding.task], binding.issued)
            return found

    # --- deciding

    def decide(self, session: Session, raw: bytes) -> Admitted | Refused:
        """The decision alone. Nothing is claimed and nothing sent; a refusal has its receipt."""
        judged = self._judge(session, raw)
        return judged if isinstance(judged, Refused) else judged.permit

    def _judge(self, session: Session, raw: bytes) -> _Way | Refused:
        now = self._clock.now()
        way = self._match(session, raw, now) or self._explain(session, raw, now)
        if isinstance(way, _Way):
            way.grant.seen(now)
        return way

    def _match(self, session: Session, raw: bytes, now: Instant) -> _Way | None:
        """The fast path: what passes here passes every check; for all else the checks are asked one by one.

        Why equal bytes are an equal call: `orjson` writes a JSON text that denotes the parsed
        arguments, and the sealed bytes denote the sealed ones; one text denotes one value. A float
        such as `1.0` is written with its point, as sealed integers never are, so it does not match.
        """
        grant = self._find(session.grant)
        if (
            grant is None
            or grant.status != State.SEALED
            or session != grant.session
            or not (self._faithful and grant.live(now))
            or session.boot != self._clock.boot_id
        ):
            return None
        try:
            value = parse(raw)
            call = (value["server"], value["tool"], orjson.dumps(value["arguments"], option=_SORTED))
            candidate = grant.step.by_call[call] if len(value) == 3 else None
        except (InputError, KeyError, TypeError, orjson.JSONEncodeError):
            return None
        return None if candidate is None else _Way(grant, grant.step, _permit(grant, candidate))

    def _explain(self, session: Session, raw: bytes, now: Instant) -> _Way | Refused:
        """The slow path: every check in order, and the first that fails."""
        own = self._find(session.grant)
        try:
            proposal = read_proposal(raw)
        except InputError as error:
            return self._desk.refuse(session, own, error.reason, error.detail)
        found = self._find(proposal.grant) if proposal.grant else own
        question = Question(proposal, session, found, now, self._clock.boot_id, self._trust, self._ledger)
        checked: list[str] = []
        for check in self._checks:
            if detail := check.test(question):
                near = self._nearest(check.reason, question)
                return self._desk.refuse(
                    session, own, check.reason, detail, checked=tuple(checked), proposal=proposal, nearest=near
                )
            checked.append(check.reason.value)
        grant = question.grant
        candidate = grant.step.by_call.get(proposal.call)
        if candidate is None:
            raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and the call is no candidate")
        return _Way(grant, grant.step, _permit(grant, candidate))

    @staticmethod
    def _nearest(reason: Reason, question: Question) -> str:
        return nearest(question.step, question.proposal).name if reason in _NEAR else ""

    # --- carrying out

    def propose(self, session: Session, raw: bytes) -> Outcome | Refused:
        """Decide, and if admitted carry the call out: at most once, whatever happens."""
        judged = self._judge(session, raw)
        if isinstance(judged, Refused):
            return judged
        claimed = self._observe(judged) or self._claim(judged)
        return claimed if isinstance(claimed, Refused) else self._carry(judged, claimed)

    def _observe(self, way: _Way) -> Refused | None:
        self._on_moment(Moment.OBSERVE)
        grant, step = way.grant, way.step
        server = step.server
        fresh = step.choice or server.recheck is Recheck.ALWAYS
        seen = self._dispatcher.observe(
            server.id, fresh=fresh, deadline=Deadline.after(self._clock, self._reply_within_ns)
        )
        if isinstance(seen, Unavailable):
            return self._desk.refuse(grant.session, grant, seen.reason, seen.detail)
        drift = list(seen.drift)
        if seen.launch != self._trust.launches[server.id]:
            drift.append("the launch is not the one that was sealed")
        if seen.tools != server.tools_digest and not seen.drift:
            drift.append("the tool list is not the pinned one")
        if not drift:
            return None
        return self._desk.refuse(grant.session, grant, Reason.CONTRACT_DRIFT, f"`{server.id}`: {'; '.join(drift)}")

    def _claim(self, way: _Way) -> Claimed | Refused:
        self._on_moment(Moment.CLAIM)
        grant, permit = way.grant, way.permit
        session = grant.session
        draft = Draft(
            DECISION,
            self._desk.receipt_id(),
            self._clock.now(),
            "admitted",
            session.grant,
            permit.group.hex(),
            permit.candidate,
            permit.server,
            permit.tool,
            self._keyed[permit.candidate],
            State.DISPATCHING,
        )
        try:
            # INVARIANT: the marker is durable before the send. An error here means that nothing is sent.
            claimed = self._ledger.claim(permit, session.run, draft)
            if isinstance(claimed, Claimed):
                return claimed
            grant.refresh(self._ledger)
        except LedgerError as error:
            return self._desk.refuse(session, grant, Reason.STORE_UNAVAILABLE, error.detail)
        return self._lost(way, claimed)

    def _lost(self, way: _Way, lost: Lost) -> Refused:
        reason = _LOST.get(State(lost.state), Reason.LOST_RACE)
        return self._desk.refuse(way.grant.session, way.grant, reason, f"`{way.step.name}` became `{lost.state}`")

    def _carry(self, way: _Way, claimed: Claimed) -> Outcome:
        grant = way.grant
        flight = grant.flight = Flight(claimed)
        grant.status = State.DISPATCHING
        self._on_moment(Moment.CLAIMED)
        try:
            verdict = self._sent(way, flight)
        except Exception as error:
            # Fail closed: whatever went wrong, bytes may be out. The error itself goes on to the caller.
            detail = f"{type(error).__name__} while the call was in flight"
            self._settle(way, flight, Verdict(State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, detail))
            raise
        self._on_moment(Moment.SETTLE)
        return self._settle(way, flight, verdict)

    def _sent(self, way: _Way, flight: Flight) -> Verdict:
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
            reply = self._dispatcher.send(flight.claimed, gate=gate, deadline=self._until(grant))
        self._on_moment(Moment.ANSWER)
        verdict = judge(reply, way.step.tool, flight)
        return self._completed(grant, reply, verdict) if isinstance(reply, Replied) else verdict

    def _still(self, grant: OpenGrant, flight: Flight) -> bool:
        with flight.lock:
            flight.refused = self._stop_reason(grant)
            flight.writing = flight.refused is None
            return flight.writing

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
        if any(grant.expired(at) for at in (reply.wrote, reply.replied, self._clock.now())):
            return Verdict(State.UNRESOLVED, Reason.LATE_RESULT, "the answer came after the grant's end")
        return verdict

    def _settle(self, way: _Way, flight: Flight, verdict: Verdict) -> Outcome:
        grant, permit = way.grant, way.permit
        state, reason, detail, result = verdict
        word = state.value if reason is None else reason.value
        draft = self._desk.draft(OUTCOME, word, grant.session, permit, detail=detail, state=state)
        grant.flight = None
        try:
            if not flight.finish():
                # Somebody gave the call up and recorded it; what came after is told beside it.
                self._ledger.record(grant.session.run, draft._replace(kind=EVENT, state=""))
                return Outcome(State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, draft.id, permit, b"", "given up in flight")
            self._ledger.settle(flight.claimed, state, draft)
        except LedgerError as error:
            grant.settled(State.UNRESOLVED)
            return Outcome(State.UNRESOLVED, Reason.STORE_UNAVAILABLE, None, permit, b"", error.detail)
        grant.settled(state)
        return Outcome(state, reason, draft.id, permit, result, detail)

    def _until(self, grant: OpenGrant) -> Deadline:
        return Deadline(self._clock, min(grant.expires.mono_ns, self._clock.now().mono_ns + self._reply_within_ns))

    # --- what others than the agent may say

    def refuse_malformed(self, session: Session, reason: Reason, detail: str) -> Refused:
        """Record that the agent's bytes did not even become a proposal."""
        return self._desk.refuse(session, self._find(session.grant), reason, detail)

    def revoke(self, grant: Digest) -> tuple[State, ...]:
        """Close every group that is still sealed; a call not yet written stays unwritten. The groups' states after."""
        return self._ending.revoke(self._known(grant))

    def abort(self, session: Session) -> tuple[State, ...]:
        """Cancel the run: nothing more is written, and a call that may be out is recorded as unresolved."""
        return self._ending.abort(self._known(session.grant))

    def teardown(self, session: Session) -> TornDown | Refused:
        """End the run's VM, once; see `Ending.teardown`."""
        found = self._find(session.grant)
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
        found = self._find(grant)
        if found is None:
            raise MisuseError(Reason.UNKNOWN_GRANT, "the grant is not open here")
        return found


class _Way(NamedTuple):
    """What was admitted, and under what."""

    grant: OpenGrant
    step: PlannedStep
    permit: Admitted


def _permit(grant: OpenGrant, candidate: Candidate) -> Admitted:
    return Admitted(grant.key, candidate.digest, candidate.server, candidate.tool, candidate.arguments)
