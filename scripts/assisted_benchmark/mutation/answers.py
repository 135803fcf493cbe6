"""What came of asking a person: six statuses, and what each means for the change. Pure."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, TypeAlias

from assisted_benchmark.kernel.canonical import Json

CONFIRM: Final = "confirm"

# One required flag without a default: nothing is agreed to by pressing on.
REQUESTED_SCHEMA: Final[dict[str, Json]] = {
    "type": "object",
    "properties": {
        CONFIRM: {
            "type": "boolean",
            "title": "Send exactly this request",
            "description": "Yes sends the request above, once. Anything else sends nothing.",
        }
    },
    "required": [CONFIRM],
}


@unique
class Status(StrEnum):
    """How a person was heard, or why nobody was. Only `accepted` lets the change through."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    UNSUPPORTED_BY_CLIENT = "unsupported_by_client"


@unique
class Silence(StrEnum):
    """Why there is no answer: what the face that asked hands to `resume` instead of one."""

    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"  # the call that asked was cancelled
    FAILED = "failed"  # the client answered with an error or is gone


Answer: TypeAlias = Json | Silence

DETAILS: Final[dict[Status | None, str]] = {
    Status.ACCEPTED: "the client says that a person accepted; that a person read it is not proven",
    Status.DECLINED: "the client says that a person declined, or accepted without confirming",
    Status.CANCELLED: "the question was dismissed, or the call that asked it was cancelled",
    Status.TIMED_OUT: "nobody answered in time",
    Status.FAILED: "the question could not be asked, or its answer could not be understood",
    Status.UNSUPPORTED_BY_CLIENT: "the client cannot show a form, so no server-side check ran",
    None: "nobody was asked",
}


def status_of(answer: Answer) -> Status:
    """What a client's raw answer says. Only an acceptance with `confirm: true` and nothing else is one."""
    if isinstance(answer, Silence):
        return Status(answer.value)
    action = answer.get("action") if type(answer) is dict else None
    if action == "decline":
        return Status.DECLINED
    if action == "cancel":
        return Status.CANCELLED
    if action != "accept":
        return Status.FAILED
    content = answer.get("content", {})
    if type(content) is not dict or not content.keys() <= {CONFIRM}:
        return Status.FAILED
    return Status.ACCEPTED if content.get(CONFIRM) is True else Status.DECLINED
