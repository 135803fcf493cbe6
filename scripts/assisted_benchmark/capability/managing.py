"""The management calls: what is there, grants asked for and revoked, operations cancelled."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.capability.call import ManagementCall
from assisted_benchmark.capability.calling import MILLISECOND, Parts
from assisted_benchmark.capability.consent import PROMPT_FOR_NS
from assisted_benchmark.capability.flights import Caller, Flight
from assisted_benchmark.capability.granting import Authority, NotIssued
from assisted_benchmark.capability.grants import DEFAULT_TTL_NS
from assisted_benchmark.capability.ports import Cancellation, Instance, Session, Unavailable
from assisted_benchmark.capability.reaching import Refusal
from assisted_benchmark.capability.results import Managed
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND, Deadline
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason

WITHIN_NS: Final = 3 * SECOND


def manage(parts: Parts, session: Session, call: ManagementCall) -> Managed | Refused:
    """What comes of a management call under this session."""
    arguments = call.arguments
    instance: str = arguments.get("instance_id", "")
    try:
        return _ACTIONS[call.name](parts, session, arguments)
    except Refusal as no:
        return parts.desk.refuse(no.reason, no.detail, instance=instance)
    except LedgerError as error:
        return parts.desk.refuse(Reason.STORE_UNAVAILABLE, error.detail, instance=instance)


def _instances(parts: Parts, session: Session, _arguments: dict[str, Json]) -> Managed:
    _, found = parts.reach.inventory(session, _deadline(parts))
    return Managed("completed", {"instances": [told_instance(each) for each in found]})


def _status(parts: Parts, session: Session, arguments: dict[str, Json]) -> Managed:
    _, instance = parts.reach.instance(session, arguments["instance_id"], _deadline(parts))
    return Managed("completed", {"instance": told_instance(instance)})


def _grant_request(parts: Parts, session: Session, arguments: dict[str, Json]) -> Managed:
    profile = arguments.get("profile")
    authority = Authority(profile or arguments["operation_id"], is_profile=profile is not None)
    deadline = Deadline.after(parts.desk.clock, WITHIN_NS + PROMPT_FOR_NS)
    _, instance = parts.reach.own_instance(session, arguments["instance_id"], deadline)
    issued = parts.granting.request(session, instance, authority, ttl_ns=DEFAULT_TTL_NS, deadline=deadline)
    if isinstance(issued, NotIssued):
        raise Refusal(issued.reason, issued.detail)
    expires_ms = issued.expires.wall_ns // MILLISECOND
    data = {"grant_id": issued.id, "expires_at_ms": expires_ms, "operations": list(issued.operations)}
    return Managed("granted", data)


def _revoke(parts: Parts, session: Session, arguments: dict[str, Json]) -> Managed:
    grant_id: str = arguments["grant_id"]
    revoked = parts.grants.revoke(grant_id, session.client)
    if isinstance(revoked, Reason):
        raise Refusal(revoked, "there is no such grant of this client's that could be revoked now")
    # The grant has ended already. What is told now is what follows from that.
    parts.cache.forget(grant_id)
    for flight in parts.flights.under(grant_id):
        _stop(parts, flight, Reason.REVOKED)
    parts.desk.tell("revoked", "the client revoked the grant", grant=grant_id, instance=revoked.wanted.instance)
    return Managed("revoked", {"grant_id": grant_id})


def _cancel(parts: Parts, session: Session, arguments: dict[str, Json]) -> Managed:
    request_id: str = arguments["request_id"]
    flight = parts.flights.find(session.client, request_id)
    if (
        flight is None
        or flight.instance.id != arguments["instance_id"]
        or parts.host.registered(flight.instance.id) != flight.instance.registered
    ):
        raise Refusal(Reason.NOT_FOUND, "no such request of this client's is under way on that instance")
    unsent = _stop(parts, flight, Reason.CANCELLED)
    if unsent is not None:
        raise Refusal(unsent.reason, f"the request is stopped, and the host could not be told: {unsent.detail}")
    parts.desk.tell(
        "cancelled", "the client cancelled a request", grant=flight.lineage.grant, instance=flight.instance.id
    )
    return Managed("cancellation_requested", {"request_id": request_id})


def give_up(parts: Parts, caller: Caller) -> None:
    """Nobody waits for a call any more: what is under way for it is stopped.

    Raises:
        LedgerError: it is stopped, and no receipt could be written.
    """
    flight = caller.give_up()
    if flight is None or parts.flights.find(flight.lineage.client, flight.request_id) is not flight:
        return
    unsent = _stop(parts, flight, Reason.CANCELLED)
    untold = "" if unsent is None else f", and the host could not be told: {unsent.detail}"
    detail = f"the client gave a call up{untold}"
    parts.desk.tell("cancelled", detail, grant=flight.lineage.grant, instance=flight.instance.id)


def _stop(parts: Parts, flight: Flight, reason: Reason) -> Unavailable | None:
    """Stop an operation that is under way; why the host could not be told to, if it had to be."""
    if not flight.stop(reason):
        return None
    instance = flight.instance
    cancellation = Cancellation(
        flight.request_id, instance.id, instance.publication, flight.lineage.client, reason.value
    )
    return parts.host.cancel(flight.enrolled, cancellation, deadline=_deadline(parts))


def told_instance(instance: Instance) -> dict[str, Json]:
    """The public metadata of an instance."""
    return {
        "instance_id": instance.id,
        "registration_id": instance.registration,
        "publication_id": instance.publication,
        "state_generation": instance.state_generation,
        "capabilities": [each.operation for each in instance.capabilities],
    }


def _deadline(parts: Parts) -> Deadline:
    return Deadline.after(parts.desk.clock, WITHIN_NS)


_ACTIONS: Final = {
    "instances": _instances,
    "status": _status,
    "grant_request": _grant_request,
    "revoke": _revoke,
    "cancel": _cancel,
}
