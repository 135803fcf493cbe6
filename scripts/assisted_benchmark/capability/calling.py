"""One call of an operation, from what was asked to its receipt.

    early     what was sent, before anybody is asked
    session   connect and enrol, or the session that is open
    instance  the inventory, and in it exactly the one that is meant
    replay    an identity that was admitted before is answered with its receipt, and nothing is executed
    grant     the one that is named; or a cached one, or one that the broker's person consents to now
    version   a protocol version that both sides speak
    late      who asks whom under what; the seven terms
    admit     the durable receipt, with whatever only one operation may have
    carry     marker, last look, request, end

The call has one budget of time, on the monotonic clock, for all of it: each step gets what remains, and when
nothing does, nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from attrs import frozen

from assisted_benchmark.capability.admission import Check, Early, Late, Term, first_failure, terms, told_terms
from assisted_benchmark.capability.artifacts import Artifacts
from assisted_benchmark.capability.call import OperationCall, Unfit
from assisted_benchmark.capability.carrying import Carrier, Moment, Way
from assisted_benchmark.capability.desk import Desk
from assisted_benchmark.capability.flights import Caller, Flight, Flights
from assisted_benchmark.capability.generations import Generations
from assisted_benchmark.capability.granting import Authority, Granting, NotIssued
from assisted_benchmark.capability.grants import DEFAULT_TTL_NS, Grant, Grants
from assisted_benchmark.capability.lineage import Asked, Lineage
from assisted_benchmark.capability.negotiation import Negotiated, NotAgreed, Offer, negotiate
from assisted_benchmark.capability.operations import Fresh, Met, Operations
from assisted_benchmark.capability.ports import Enrolled, Host, Instance, Session, Unavailable
from assisted_benchmark.capability.progress import Event
from assisted_benchmark.capability.reaching import Reach, Refusal, in_time
from assisted_benchmark.capability.receipt import Receipt
from assisted_benchmark.capability.registry import Operation, ResultKind
from assisted_benchmark.capability.results import Content, Outcome, outcome_of
from assisted_benchmark.capability.sessions import GrantCache, GrantKey, Sessions
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import HarnessError, LedgerError
from assisted_benchmark.kernel.reasons import Reason

OFFER: Final = Offer(lowest=1, highest=1, mandatory=("receipts",), optional=("artifacts", "cancellation", "progress"))
FLOOR: Final = 1
MILLISECOND: Final = 1_000_000

_CRITICAL: Final = (
    "a critical operation needs an explicit grant, which the broker issues on a broker-owned, single-use consent "
    "decision; no request was sent"
)
# Why an operation was not admitted although every check passed.
_NOT_ADMITTED: Final = {
    Reason.IDEMPOTENCY_CONFLICT: "the idempotency key was used for another request; no request was sent",
    Reason.REQUEST_ID_CONFLICT: "the request id was used with another idempotency key; no request was sent",
    Reason.REPLAY_WINDOW_EXPIRED: "the idempotency key was used more than a day ago; no request was sent",
    Reason.RESOURCE_EXHAUSTED: "too many operations are under way or kept; no request was sent",
    Reason.STATE_CONFLICT: "the state is not of the expected generation, or it is being changed; no request was sent",
    Reason.CONSENT_REQUIRED: "another operation of this kind needs a new consent; no request was sent",
}


@frozen
class Parts:
    """What a broker is made of, as its calls need it."""

    desk: Desk
    host: Host
    sessions: Sessions
    reach: Reach
    grants: Grants
    cache: GrantCache
    granting: Granting
    operations: Operations
    generations: Generations
    flights: Flights
    carrier: Carrier
    artifacts: Artifacts
    eligible: frozenset[str]
    early: tuple[Check[Early], ...]
    late: tuple[Check[Late], ...]
    on_moment: Callable[[Moment], None]


def call_operation(
    parts: Parts, session: Session, call: OperationCall, listener: Callable[[Event], None], caller: Caller
) -> Outcome | Refused:
    """What comes of a well-formed call under this session."""
    try:
        return _Steps(parts, session, call, caller).all(listener)
    except Refusal as no:
        return explained(parts, call.operation, no, instance=call.instance_id)


def budget(parts: Parts, call: OperationCall, caller: Caller) -> Deadline:
    """The time of the whole call: it counts from when the caller began to wait."""
    clock = parts.desk.clock
    since_ns = clock.now().mono_ns if caller.since_ns is None else caller.since_ns
    return Deadline(clock, since_ns + call.timeout_ms * MILLISECOND)


def explained(parts: Parts, operation: Operation | None, no: Refusal, *, instance: str = "") -> Refused:
    """The refusal, written down. What is admitted has written to the store; so only here it is asked for by itself.

    The checks are in one order whatever was found first: without a store that is the reason, and nothing later.
    """
    fault = store_fault(parts)
    first = first_failure(parts.early, Early(None, fault, Deadline(parts.desk.clock, 0))) if fault else None
    if first is not None and first.reason is Reason.STORE_UNAVAILABLE:
        no = Refusal(first.reason, f"{first.detail}; no request was sent", first.checked)
    name = "" if operation is None else operation.id
    return parts.desk.refuse(no.reason, no.detail, checked=no.checked, instance=instance, operation=name)


def early(
    parts: Parts,
    operation: Operation | None,
    deadline: Deadline,
    unfit: Unfit | None = None,
    *,
    by_acl: bool = False,
    store_fault: str = "",
) -> None:
    """The checks of what was sent; `by_acl` on the one path where artifacts are read.

    Raises:
        Refusal: one of them failed.
    """
    failed = first_failure(parts.early, Early(operation, store_fault, deadline, unfit, by_acl))
    if failed is not None:
        raise Refusal(failed.reason, f"{failed.detail}; no request was sent", failed.checked)


def store_fault(parts: Parts) -> str:
    """Why the store cannot be used now, or nothing."""
    try:
        parts.desk.ledger.run_record(parts.desk.run)
    except LedgerError as error:
        return error.detail
    return ""


@lru_cache(maxsize=64)
def _agreed(theirs: Offer) -> Negotiated:
    """What the pure function gives, known again for the offers that instances make call after call."""
    return negotiate(OFFER, theirs, FLOOR)


class _Steps:
    """One call on its way; each step raises Refusal where it says no."""

    def __init__(self, parts: Parts, session: Session, call: OperationCall, caller: Caller) -> None:
        self._parts = parts
        self._session = session
        self._call = call
        self._caller = caller
        self._deadline = budget(parts, call, caller)
        self._request_id = call.request_id or parts.desk.receipt_id()
        self._known: Asked | None = None

    def all(self, listener: Callable[[Event], None]) -> Outcome:
        parts, call = self._parts, self._call
        early(parts, call.operation, self._deadline)
        enrolled, instance = parts.reach.instance(self._session, call.instance_id, self._deadline)
        before = self._replayed(instance)
        if before is not None:
            return self._again(before)
        grant = self._grant(enrolled, instance)
        self._agree(enrolled, instance)
        asked = self._asked(instance, "" if grant is None else grant.id)
        self._late(parts.late, self._question(enrolled, instance, grant, asked))
        if grant is None:
            raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and there is no grant")
        self._wanted()
        way = self._admit(asked, enrolled, instance, grant)
        if isinstance(way, Receipt):
            return self._again(way)
        content = None
        try:
            content = parts.carrier.carry(way, listener)
        finally:
            parts.flights.remove(way.flight)
            self._ended(way, content)
        return outcome_of(way.receipt, content)

    def _replayed(self, instance: Instance) -> Receipt | None:
        """The receipt of the same operation, if it was admitted before."""
        operations, grant_id = self._parts.operations, self._call.grant_id
        asked = self._asked(instance, grant_id or "")
        if grant_id is None:
            # A caller that leaves the grant to the broker means the same operation, whatever grant there is by now.
            before = operations.grant_before(asked.lineage, asked.key)
            asked = asked if before is None else self._asked(instance, before)
        met = operations.meet(asked, self._request_id)
        if isinstance(met, Reason):
            raise Refusal(met, _NOT_ADMITTED[met])
        return None if met is None else met.receipt

    def _again(self, receipt: Receipt) -> Outcome:
        """An earlier operation's receipt. Its content is for the client only while the authority for it lasts."""
        grants = self._parts.grants
        receipt = self._parts.operations.as_it_stands(receipt)
        grant = grants.find(receipt.record.lineage.grant, self._session.client)
        live = grant is not None and grants.ended(grant) is None
        content = Content.of(receipt.content) if live and receipt.content is not None else None
        return outcome_of(receipt, content, replayed=True)

    def _grant(self, enrolled: Enrolled, instance: Instance) -> Grant | None:
        """The grant to act under; None if the one that is named is none."""
        parts, call, client = self._parts, self._call, self._session.client
        if call.grant_id is not None:
            return parts.grants.find(call.grant_id, client)
        operation, profile = call.operation, call.profile
        if not operation.automatic:
            raise Refusal(Reason.CONSENT_REQUIRED, _CRITICAL)
        if profile is not None and profile not in operation.profiles:
            raise Refusal(Reason.NOT_GRANTED, "the profile does not have the operation; no request was sent")
        authority = Authority(profile or operation.id, is_profile=profile is not None)
        key = GrantKey(client, instance.id, instance.publication, authority.name)
        cached = parts.grants.find(parts.cache.get(key) or "", client)
        if cached is not None and parts.grants.ended(cached) is None and not parts.grants.spent(cached, operation.id):
            return cached
        # Nobody is asked to consent to what would be refused all the same.
        self._wanted()
        early(parts, operation, self._deadline, store_fault=store_fault(parts))
        first = [check.term for check in parts.late].index(Term.CLIENT_GRANTED)
        self._late(parts.late[:first], self._question(enrolled, instance, None, None))
        issued = parts.granting.request(
            self._session, instance, authority, ttl_ns=DEFAULT_TTL_NS, deadline=self._deadline
        )
        in_time(self._deadline)
        if isinstance(issued, NotIssued):
            raise Refusal(issued.reason, f"{issued.detail}; no request was sent")
        parts.cache.put(key, issued.id)
        return issued

    def _agree(self, enrolled: Enrolled, instance: Instance) -> None:
        theirs = self._parts.host.negotiate(enrolled, instance, OFFER, deadline=self._deadline)
        in_time(self._deadline)
        if isinstance(theirs, Unavailable):
            if theirs.ended:
                self._parts.sessions.ended(self._session, enrolled)
            raise Refusal(theirs.reason, theirs.detail)
        agreed = _agreed(theirs)
        if isinstance(agreed, NotAgreed):
            raise Refusal(Reason.PROTOCOL_MISMATCH, f"{agreed.outcome}: {agreed.detail}; no request was sent")

    def _question(self, enrolled: Enrolled, instance: Instance, grant: Grant | None, asked: Asked | None) -> Late:
        parts, operation = self._parts, self._call.operation
        identity = None if asked is None else asked.identity
        return Late(
            session=self._session,
            enrolled=enrolled,
            session_live=parts.sessions.live(self._session, enrolled),
            operation=operation,
            instance=instance,
            found=instance.capability(operation.id),
            still_registered=parts.host.registered(instance.id) == instance.registered,
            eligible=parts.eligible,
            grant=grant,
            ended=None if grant is None else parts.grants.ended(grant),
            spent=grant is not None and parts.grants.spent(grant, operation.id, identity),
        )

    def _wanted(self) -> None:
        if self._caller.given_up:
            raise Refusal(Reason.CANCELLED, "the caller gave the call up; no request was sent")

    def _late(self, checks: tuple[Check[Late], ...], question: Late) -> None:
        failed = first_failure(checks, question, self._parts.early)
        if failed is not None:
            raise Refusal(failed.reason, f"{failed.detail} ({told_terms(terms(failed))})", failed.checked)

    def _admit(self, asked: Asked, enrolled: Enrolled, instance: Instance, grant: Grant) -> Way | Receipt:
        """The operation, admitted durably; or the receipt of the same one, where that came first."""
        parts, call = self._parts, self._call
        taken = False

        def take() -> Reason | None:
            nonlocal taken
            if not self._take_generation(instance):
                return Reason.STATE_CONFLICT
            taken = True
            spends = call.operation.one_shot and grant.interactive
            if spends and not parts.grants.spend(grant, call.operation.id, asked.identity):
                return Reason.CONSENT_REQUIRED
            return None

        parts.on_moment(Moment.ADMIT)
        fresh = False
        try:
            admitted = parts.operations.admit(
                asked, self._request_id, instance.id, automatic=call.grant_id is None, take=take
            )
            fresh = isinstance(admitted, Fresh)
        except LedgerError as error:
            raise Refusal(Reason.STORE_UNAVAILABLE, f"{error.detail}; no request was sent") from error
        finally:
            if taken and not fresh:
                self._give_back(instance)
        if isinstance(admitted, Reason):
            raise Refusal(admitted, _NOT_ADMITTED[admitted])
        if isinstance(admitted, Met):
            return admitted.receipt
        flight = Flight(self._request_id, asked.lineage, enrolled, instance)
        parts.flights.add(flight)
        self._caller.board(flight)
        return Way(self._session, call, asked, instance, grant, admitted.receipt, flight, self._deadline)

    def _asked(self, instance: Instance, grant_id: str) -> Asked:
        call, known = self._call, self._known
        if known is not None and known.lineage.grant == grant_id:
            return known
        lineage = Lineage(
            self._session.client, instance.registration, grant_id, instance.publication, call.operation.id
        )
        key = call.key(self._request_id)
        asked = Asked(lineage, key, call.operation.version, call.expected_state_generation, call.input)
        self._known = asked
        return asked

    @property
    def _claims(self) -> bool:
        """Whether the operation, as it is asked, takes a generation of the state for itself."""
        return self._call.expected_state_generation is not None and self._call.operation.result is ResultKind.RECEIPT

    def _take_generation(self, instance: Instance) -> bool:
        expected = self._call.expected_state_generation
        if expected is None:
            return True
        if not self._claims:
            return expected == instance.state_generation
        return self._parts.generations.claim(instance, expected)

    def _give_back(self, instance: Instance) -> None:
        expected = self._call.expected_state_generation
        if self._claims and expected is not None:
            self._parts.generations.release(instance, expected)

    def _ended(self, way: Way, content: Content | None) -> None:
        """What an operation's end means for its generation and for the grant that was got for it."""
        state, expected = way.receipt.state, self._call.expected_state_generation
        if state is not State.COMPLETED:
            self._parts.cache.forget(way.grant.id)
        if state not in (State.COMPLETED, State.COMPLETED_AFTER_REVOCATION):
            self._give_back(way.instance)
        elif self._claims and expected is not None:
            result = {} if content is None else content.result
            self._parts.generations.advance(way.instance, expected, result.get("state_generation", 0))
