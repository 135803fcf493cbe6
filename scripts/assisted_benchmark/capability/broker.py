"""The capability broker: typed operations on live instances, each under a grant, each ending in one durable receipt.

Authority comes from the broker's own consent root and from nothing that a caller sends. One broker serves one run
of a ledger at a time: it ends what an earlier one left under way, takes its receipts over, and starts without
sessions, grants or decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assisted_benchmark.capability.admission import EARLY, LATE, Check, Early, Late
from assisted_benchmark.capability.artifacts import Artifacts
from assisted_benchmark.capability.call import ManagementCall, OperationCall, Unfit
from assisted_benchmark.capability.calling import MILLISECOND, Parts, call_operation, early, explained
from assisted_benchmark.capability.carrying import LOOKS, Carrier, Look, Moment
from assisted_benchmark.capability.consent import Prompts
from assisted_benchmark.capability.desk import Desk
from assisted_benchmark.capability.flights import Caller, Flights
from assisted_benchmark.capability.generations import Generations
from assisted_benchmark.capability.granting import Granting
from assisted_benchmark.capability.grants import Grants
from assisted_benchmark.capability.managing import give_up, manage
from assisted_benchmark.capability.operations import Operations
from assisted_benchmark.capability.ports import Consent, Host, Session
from assisted_benchmark.capability.progress import Event
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.reaching import Reach, Refusal
from assisted_benchmark.capability.reading import Listed, Resource, list_resources, read_artifact, read_resource
from assisted_benchmark.capability.registry import Authority
from assisted_benchmark.capability.resources import read_address
from assisted_benchmark.capability.results import CallAnswer
from assisted_benchmark.capability.sessions import GrantCache, Sessions
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import Clock, Deadline
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import HarnessError, IntegrityError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Ledger

_EPOCH_BYTES: Final = 16


def _no_experiment(_: Moment) -> None:
    """Nothing strikes."""


def _nobody_listens(_: Event) -> None:
    """Progress is kept in the result, and told to nobody before."""


class CapabilityBroker:
    """One registry's broker over one run of a ledger. Threads may share it.

    `eligible` are the operations that the operator's policy has. `early`, `late`, `looks` and `on_moment` are for
    experiments: a broker that lacks a check, and faults that strike at a named moment.
    """

    def __init__(
        self,
        *,
        run: str,
        projection: Projection,
        eligible: frozenset[str],
        ledger: Ledger,
        host: Host,
        consent: Consent,
        clock: Clock,
        chance: Chance,
        keys: KeyRing,
        early: tuple[Check[Early], ...] = EARLY,
        late: tuple[Check[Late], ...] = LATE,
        looks: tuple[Look, ...] = LOOKS,
        on_moment: Callable[[Moment], None] = _no_experiment,
    ) -> None:
        """Open the run, or take it over.

        Raises:
            LedgerError: the ledger cannot be used.
            IntegrityError: the run is another registry's (contract_drift), or what it has does not verify.
        """
        desk = Desk(ledger, run, clock, chance, keys)
        _open_run(ledger, run, projection)
        sessions, grants, flights = Sessions(host, clock), Grants(clock, chance), Flights()
        operations = Operations(desk)
        prompts = Prompts(consent, clock, chance, chance.token(_EPOCH_BYTES).hex())
        artifacts = Artifacts(clock)
        self._projection = projection
        self._parts = Parts(
            desk=desk,
            host=host,
            sessions=sessions,
            reach=Reach(host, sessions),
            grants=grants,
            cache=GrantCache(clock),
            granting=Granting(
                registry=projection.registry, grants=grants, prompts=prompts, consent=consent, host=host, desk=desk
            ),
            operations=operations,
            generations=Generations(),
            flights=flights,
            carrier=Carrier(
                host=host,
                operations=operations,
                grants=grants,
                sessions=sessions,
                projection=projection,
                artifacts=artifacts,
                looks=looks,
                on_moment=on_moment,
            ),
            artifacts=artifacts,
            eligible=eligible,
            early=early,
            late=late,
            on_moment=on_moment,
        )

    def call(
        self,
        session: Session,
        tool: str,
        arguments: bytes,
        *,
        listener: Callable[[Event], None] = _nobody_listens,
        caller: Caller | None = None,
    ) -> CallAnswer:
        """What comes of a tool's call: an operation's receipt, what a management call did, or why neither.

        `listener` hears each step of an operation's progress as it comes; `caller` is who waits for it, and may give
        it up. Nothing in `arguments` is authority.

        Raises:
            HarnessError: the world broke its word; an operation that was under way is recorded as unknown.
        """
        parts = self._parts
        if session.run != parts.desk.run:
            return parts.desk.refuse(Reason.BROKER_MISMATCH, "the session is of another broker's run")
        caller = caller or Caller()
        call = self._projection.read(tool, arguments)
        if isinstance(call, ManagementCall):
            return manage(parts, session, call)
        if isinstance(call, OperationCall):
            if call.operation.authority is Authority.ARTIFACT_ACL:
                return read_artifact(parts, session, call, caller)
            return call_operation(parts, session, call, listener, caller)
        return self._unfit(call)

    def give_up(self, caller: Caller) -> None:
        """Nobody waits for that call any more: it is not admitted, or not sent, or its host is told to stop.

        What it comes to, the call itself says. May be called from any thread, and waits for the host for a moment.

        Raises:
            LedgerError: it is stopped, and no receipt could be written.
        """
        give_up(self._parts, caller)

    def read_resource(self, session: Session, uri: str) -> Resource | Refused:
        """What stands at an address of this registry's scheme: an exact instance's metadata, or an artifact."""
        desk, registry = self._parts.desk, self._projection.registry
        if session.run != desk.run:
            return desk.refuse(Reason.BROKER_MISMATCH, "the session is of another broker's run")
        address = read_address(registry.scheme, uri, registry.bounds.id_length)
        if address is None:
            return desk.refuse(Reason.NOT_FOUND, "there is no resource at that address")
        return read_resource(self._parts, session, address)

    def list_resources(self, session: Session) -> tuple[Listed, ...] | Refused:
        """What of this registry's scheme the session could read now."""
        desk = self._parts.desk
        if session.run != desk.run:
            return desk.refuse(Reason.BROKER_MISMATCH, "the session is of another broker's run")
        return list_resources(self._parts, session)

    def refuse_malformed(self, reason: Reason, detail: str) -> Refused:
        """Record that the agent's bytes did not even become a call."""
        return self._parts.desk.refuse(reason, detail)

    def _unfit(self, unfit: Unfit) -> Refused:
        """The envelope comes first, then store and time, then the operation and its input."""
        parts = self._parts
        if unfit.operation is None and unfit.reason is not Reason.UNKNOWN_TOOL:
            return parts.desk.refuse(unfit.reason, unfit.detail)
        within = self._projection.registry.bounds.default_timeout_ms * MILLISECOND
        deadline = Deadline.after(parts.desk.clock, within)
        try:
            # An artifact's read comes this way too where its input does not fit.
            early(parts, unfit.operation, deadline, unfit, by_acl=True)
        except Refusal as no:
            return explained(parts, unfit.operation, no)
        raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and there is no call")


def _open_run(ledger: Ledger, run: str, projection: Projection) -> None:
    """The run says which registry it is of, for good."""
    record = canonical_bytes({"schema": "assisted-benchmark/capability-run@1", "registry": projection.registry.digest})
    if not ledger.open_run(run, record, ()) and ledger.run_record(run) != record:
        raise IntegrityError(Reason.CONTRACT_DRIFT, f"the run `{run}` is of another registry, or of another broker")
