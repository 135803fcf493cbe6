"""What is said between a broker and the host of live instances: the shapes of their messages, and how they are judged.

Messages are JSON-RPC lines (`wire.frames`). A client asks and waits, each id being used once on its connection:

    enrol      {client, peer}                                      -> {session}
    inventory  {session}                                           -> {instances}
    negotiate  {session, instance, publication, offer}             -> {offer}
    request    {instance, operation, parameters, ...the envelope}  -> {receipt_id, word, result, code, explanation,
                                                                       artifacts: [{mime_type, byte_count, sha256}]}

and tells `notifications/cancel`. The host tells, unasked and always before the answer that it belongs to:

    notifications/registered  {instances: [[id, registration, publication]]}   all that is live, and at each change
    notifications/progress    {request, event}
    notifications/artifact    {request, artifact, data}   the next chunk (base64) of the artifact of this number

Parameters and results travel as the texts that they are, so that neither side's reader can change a number. Whatever
does not have its shape to the letter is not believed.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum, unique
from typing import Final

from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import (
    Blob,
    Cancellation,
    Capability,
    Ended,
    Envelope,
    Instance,
    Registered,
    Session,
    Unavailable,
    Word,
)
from assisted_benchmark.kernel.canonical import MIB, SAFE_INTEGER, Json
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.ledger.protocol import Claimed

ENROL: Final = "enrol"
INVENTORY: Final = "inventory"
NEGOTIATE: Final = "negotiate"
REQUEST: Final = "request"
CANCEL: Final = "notifications/cancel"
REGISTERED: Final = "notifications/registered"
PROGRESS: Final = "notifications/progress"
ARTIFACT: Final = "notifications/artifact"

MAX_LINE: Final = 2 * MIB
MAX_CHUNK: Final = MIB
MAX_ARTIFACT: Final = 16 * MIB
MAX_ARTIFACTS: Final = 64
MAX_ARTIFACT_BYTES: Final = 64 * MIB  # of all that one request makes
MAX_EVENTS: Final = 1024  # of one request's progress
MAX_INSTANCES: Final = 256
MAX_CAPABILITIES: Final = 64
MAX_ID: Final = 128

_ANSWER: Final = frozenset({"receipt_id", "word", "result", "code", "explanation", "artifacts"})
_FLAGS: Final = ("built", "available", "activated")


@unique
class Broken(StrEnum):
    """Why something that was written has no answer to go by; the value is for people."""

    LATE = "no answer came in time"
    CLOSED = "the connection was lost before the answer"
    CUT = "it could be written only in part"
    ERROR = "the host answered with an error"
    NO_MESSAGE = "the answer is no message"
    NO_ANSWER = "the answer has not the shape of one"
    OTHER = "the answer is one to another request"
    ARTIFACTS = "the artifacts that came are not those that the answer tells of"

    def uncertain(self, wrote: Instant) -> Uncertain:
        """What it means of a request: nobody knows what came of it."""
        unknown = self in (Broken.LATE, Broken.CLOSED, Broken.CUT, Broken.ERROR)
        return Uncertain(Reason.OUTCOME_UNKNOWN if unknown else Reason.RESULT_INVALID, self.value, wrote)

    def unavailable(self, *, ended: bool = False) -> Unavailable:
        """What it means of a step that changes nothing. With its connection a session is over."""
        if self is Broken.LATE:
            return Unavailable(Reason.DEADLINE_EXCEEDED, self.value)
        if self in (Broken.CLOSED, Broken.CUT):
            return Unavailable(Reason.SERVER_UNAVAILABLE, self.value, ended=True)
        if self is Broken.ERROR:
            return Unavailable(Reason.SESSION_ENDED if ended else Reason.SERVER_UNAVAILABLE, self.value, ended)
        return Unavailable(Reason.MALFORMED_FRAME, self.value)


def enrolment(session: Session) -> dict[str, Json]:
    """The params of an enrolment."""
    return {"client": session.client, "peer": session.peer}


def negotiation(session: str, instance: Instance, offer: Offer) -> dict[str, Json]:
    """The params of a negotiation."""
    offered = {
        "lowest": offer.lowest,
        "highest": offer.highest,
        "mandatory": list(offer.mandatory),
        "optional": list(offer.optional),
    }
    return {"session": session, "instance": instance.id, "publication": instance.publication, "offer": offered}


def misclaimed(claimed: Claimed, envelope: Envelope) -> NotSent | None:
    """Whether the envelope is another request's than the one that was claimed."""
    if claimed.permit.candidate == envelope.request_hash:
        return None
    return NotSent(Reason.BINDING_MISMATCH, "the envelope is not of the claimed request")


def requested(claimed: Claimed, envelope: Envelope) -> dict[str, Json]:
    """The params of a request: the claimed permit's own bytes, in their envelope."""
    permit = claimed.permit
    return {
        "instance": permit.server,
        "operation": permit.tool,
        "parameters": permit.arguments.decode(),
        **envelope._asdict(),
    }


def cancellation_of(session: str, cancellation: Cancellation) -> dict[str, Json]:
    """The params of a cancellation."""
    return {"session": session, **cancellation._asdict()}


def session_in(answer: Json) -> str | None:
    """The id of the session that an enrolment gave."""
    match answer:
        case {"session": str(session), **more} if not more and is_name(session):
            return session
    return None


def instances_in(answer: Json) -> tuple[Instance, ...] | None:
    """What an inventory shows."""
    match answer:
        case {"instances": list(listed), **more} if not more and len(listed) <= MAX_INSTANCES:
            found = tuple(_instance(each) for each in listed)
            known = tuple(each for each in found if each is not None)
            return known if len(known) == len(found) else None
    return None


def offer_in(answer: Json) -> Offer | None:
    """What an instance offers. Whether it makes sense, the negotiation says."""
    match answer:
        case {
            "offer": {
                "lowest": int(lowest),
                "highest": int(highest),
                "mandatory": list(mandatory),
                "optional": list(optional),
                **extra,
            },
            **more,
        } if not extra and not more and all(type(each) is str for each in (*mandatory, *optional)):
            numbers = type(lowest) is int and type(highest) is int  # and no booleans
            return (
                Offer(lowest=lowest, highest=highest, mandatory=tuple(mandatory), optional=tuple(optional))
                if (numbers)
                else None
            )
    return None


def places_in(params: Json) -> tuple[tuple[str, Registered], ...] | None:
    """Where instances are registered, as the host tells it of its own accord."""
    match params:
        case {"instances": list(listed), **more} if (
            not more
            and len(listed) <= MAX_INSTANCES
            and all(type(each) is list and len(each) == 3 and all(map(is_name, each)) for each in listed)
        ):
            return tuple((name, Registered(registration, publication)) for name, registration, publication in listed)
    return None


def judged(
    answer: Json, came: tuple[bytes, ...], receipt_id: str, wrote: Instant, replied: Instant
) -> Ended | Uncertain:
    """The host's word on a request. `came` are the artifacts that were sent for it."""
    if type(answer) is not dict or answer.keys() != _ANSWER:
        return Broken.NO_ANSWER.uncertain(wrote)
    if answer["receipt_id"] != receipt_id:
        return Broken.OTHER.uncertain(wrote)
    texts = [answer[key] for key in ("word", "result", "code", "explanation")]
    if not all(type(each) is str for each in texts) or texts[0] not in list(Word) or len(texts[2]) > MAX_ID:
        return Broken.NO_ANSWER.uncertain(wrote)
    blobs = _blobs(answer["artifacts"], came)
    if blobs is None:
        return Broken.ARTIFACTS.uncertain(wrote)
    word, result, code, explanation = texts
    return Ended(Word(word), result.encode(), wrote, replied, code, explanation, blobs)


def is_name(value: Json) -> bool:
    """Whether a value can be an id."""
    return type(value) is str and 1 <= len(value) <= MAX_ID


def _blobs(told: Json, came: tuple[bytes, ...]) -> tuple[Blob, ...] | None:
    """The artifacts, if what came is what the answer tells of."""
    sizes = [len(data) for data in came]
    if type(told) is not list or len(told) != len(came) or len(came) > MAX_ARTIFACTS:
        return None
    if sum(sizes) > MAX_ARTIFACT_BYTES or any(size > MAX_ARTIFACT for size in sizes):
        return None
    blobs: list[Blob] = []
    for each, data in zip(told, came, strict=True):
        match each:
            case {"mime_type": str(mime_type), "byte_count": count, "sha256": sha256, **more} if not more:
                if (count, sha256) != (len(data), hashlib.sha256(data).hexdigest()):
                    return None
                blobs.append(Blob(data, mime_type))
            case _:
                return None
    return tuple(blobs)


def _instance(value: Json) -> Instance | None:
    match value:
        case {
            "id": str(name),
            "registration": str(registration),
            "publication": str(publication),
            "state_generation": generation,
            "capabilities": list(listed),
            **more,
        } if not more and all(map(is_name, (name, registration, publication))):
            if type(generation) is not int or not 0 <= generation <= SAFE_INTEGER or len(listed) > MAX_CAPABILITIES:
                return None
            capabilities = tuple(_capability(each) for each in listed)
            known = tuple(each for each in capabilities if each is not None)
            if len({each.operation for each in known}) != len(capabilities):
                return None
            return Instance(name, registration, publication, generation, known)
    return None


def _capability(value: Json) -> Capability | None:
    if type(value) is not dict or value.keys() != {"operation", *_FLAGS} or not is_name(value["operation"]):
        return None
    flags = [value[flag] for flag in _FLAGS]
    return Capability(value["operation"], *flags) if all(type(each) is bool for each in flags) else None
