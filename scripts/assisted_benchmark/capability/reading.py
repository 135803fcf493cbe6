"""Reading what operations left, and what instances are: artifacts by their access list, and resources by address.

A read is no operation: no grant is asked for, and nothing is executed. The session says who is asking and the
access list who may read; each read leaves a receipt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from attrs import frozen

from assisted_benchmark.capability.artifacts import Denied, Origin, Reader, Standing
from assisted_benchmark.capability.call import OperationCall
from assisted_benchmark.capability.calling import Parts, budget, early, explained
from assisted_benchmark.capability.flights import Caller
from assisted_benchmark.capability.instances import exactly
from assisted_benchmark.capability.managing import WITHIN_NS, told_instance
from assisted_benchmark.capability.ports import Instance, Session
from assisted_benchmark.capability.reaching import Refusal
from assisted_benchmark.capability.resources import Address, ArtifactAddress, InstanceAddress
from assisted_benchmark.capability.results import Content, Outcome
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason


@frozen
class Resource:
    """What stands at an address."""

    mime_type: str
    data: bytes


class Listed(NamedTuple):
    """One resource that can be read. `size` is an artifact's, in bytes."""

    address: Address
    mime_type: str
    size: int | None = None


def read_artifact(parts: Parts, session: Session, call: OperationCall, caller: Caller) -> Outcome | Refused:
    """A part of an artifact."""
    operation, asked = call.operation, parse(call.input)
    deadline = budget(parts, call, caller)
    try:
        early(parts, operation, deadline, by_acl=True)
        _, instance = parts.reach.own_instance(session, call.instance_id, deadline)
        chunk = parts.artifacts.read(
            _reader(session, instance), asked["artifact_id"], asked["offset"], asked["max_bytes"], _standing(parts)
        )
        if isinstance(chunk, Denied):
            raise Refusal(chunk.reason, chunk.detail)
        receipt_id = parts.desk.tell("read", chunk.artifact_id, instance=instance.id, operation=operation.id)
    except Refusal as no:
        return explained(parts, operation, no, instance=call.instance_id)
    except LedgerError as error:
        return Refused(Reason.STORE_UNAVAILABLE, error.detail)
    return Outcome(
        request_id=call.request_id or receipt_id,
        receipt_id=receipt_id,
        operation_id=operation.id,
        operation_version=operation.version,
        state=State.COMPLETED,
        explanation="",
        reason=None,
        content=Content(result=chunk.value()),
    )


def read_resource(parts: Parts, session: Session, address: Address) -> Resource | Refused:
    """What stands at an address, whole: an instance's metadata, or an artifact."""
    deadline = Deadline.after(parts.desk.clock, WITHIN_NS)
    try:
        _, instance = parts.reach.own_instance(session, address.instance_id, deadline)
        if isinstance(address, InstanceAddress):
            return Resource("application/json", canonical_bytes(told_instance(instance)))
        found = parts.artifacts.find(address.artifact_id)
        if found is None:
            raise Refusal(Reason.NOT_FOUND, "there is no such artifact of this client's")
        whole = parts.artifacts.whole(_reader(session, instance), found.id, _standing(parts))
        if isinstance(whole, Denied):
            raise Refusal(whole.reason, whole.detail)
        parts.desk.tell("read", found.id, instance=instance.id)
    except Refusal as no:
        return parts.desk.refuse(no.reason, no.detail, instance=address.instance_id)
    except LedgerError as error:
        return Refused(Reason.STORE_UNAVAILABLE, error.detail)
    return Resource(found.mime_type, whole)


def list_resources(parts: Parts, session: Session) -> tuple[Listed, ...] | Refused:
    """Every resource that this session could read now: what has one exact address. To be listed is no authority."""
    deadline = Deadline.after(parts.desk.clock, WITHIN_NS)
    listed: list[Listed] = []
    try:
        _, found = parts.reach.inventory(session, deadline)
        for instance in found:
            if exactly(found, instance.id) is instance:
                listed.append(Listed(InstanceAddress(instance.id), "application/json"))
                listed.extend(
                    Listed(ArtifactAddress(instance.id, each.id), each.mime_type, each.size)
                    for each in parts.artifacts.readable(_reader(session, instance), _standing(parts))
                )
    except Refusal as no:
        return parts.desk.refuse(no.reason, no.detail)
    return tuple(listed)


def _reader(session: Session, instance: Instance) -> Reader:
    return Reader(session.client, instance.id, instance.registration, instance.publication)


def _standing(parts: Parts) -> Callable[[Origin], Standing]:
    """How an artifact's origin stands at the moment when it is asked."""

    def standing(origin: Origin) -> Standing:
        lineage = origin.lineage
        grant = parts.grants.find(lineage.grant, lineage.client)
        ended = Reason.REVOKED if grant is None else parts.grants.ended(grant)
        return Standing(ended, parts.operations.completed(origin.receipt_id))

    return standing
