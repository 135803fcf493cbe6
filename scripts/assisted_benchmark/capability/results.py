"""What comes of a call, and how the caller is told.

An operation that was admitted is told by its receipt, and is a success only if it completed and its result is at
hand. Everything else is a failure with a coarse word, in one shape, and the id of a receipt that says the rest.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from attrs import field, frozen

from assisted_benchmark.capability.receipt import Receipt
from assisted_benchmark.capability.states import State
from assisted_benchmark.capability.tool_schemas import RESULT
from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.reasons import REASONS, Coarse, Reason

_MAX_CONTENT: Final = 4 << 20

# What a failure says to people. The agent hears no more of a refusal than this.
_MESSAGES: Final = {
    Coarse.MALFORMED: "the call is not a well-formed one; no request was sent",
    Coarse.NOT_AUTHORISED: "nothing authorises this call; no request was sent",
    Coarse.SPENT: "this was used before; no request was sent",
    Coarse.EXPIRED: "the time for this has passed; no request was sent",
    Coarse.UNAVAILABLE: "this cannot be done now; no request was sent",
}
# Where consent is lacking it is said how authority comes to be: that is the registry's knowledge, and no secret.
_CONSENT: Final = (
    "this needs a grant that the broker issues on a broker-owned, single-use consent decision; no request was sent"
)


@frozen(kw_only=True)
class Content:
    """What an operation gave: its result, if it completed, what it published, and how it went on."""

    result: Json = None
    artifacts: tuple[Json, ...] = ()
    progress: tuple[Json, ...] = ()

    @property
    def written(self) -> bytes:
        """As a receipt keeps it."""
        return canonical_bytes([self.result, list(self.artifacts), list(self.progress)])

    @classmethod
    def of(cls, data: bytes) -> Content:
        """From what a receipt kept."""
        result, artifacts, progress = parse(data, _MAX_CONTENT)
        return cls(result=result, artifacts=tuple(artifacts), progress=tuple(progress))


@frozen(kw_only=True)
class Outcome:
    """An operation's receipt, as it is given to the caller. `reason` is None only for a success, with its result.

    `replayed` says that nothing was executed by this call: the operation had been admitted before.
    """

    request_id: str
    receipt_id: str
    operation_id: str
    operation_version: int
    state: State
    explanation: str
    reason: Reason | None
    content: Content | None = field(default=None, repr=False)
    replayed: bool = False

    @property
    def may_have_applied(self) -> bool:
        """Whether the host may have done it without saying so."""
        return self.state in (State.UNKNOWN_NEEDS_REFRESH, State.COMPLETED_AFTER_REVOCATION)


@frozen
class Managed:
    """A management call that did what it was asked."""

    status: str
    data: dict[str, Json]


CallAnswer: TypeAlias = Outcome | Managed | Refused


def outcome_of(receipt: Receipt, content: Content | None, *, replayed: bool = False) -> Outcome:
    """The outcome that a receipt tells, with what the operation gave, where that may be given."""
    record = receipt.record
    return Outcome(
        request_id=record.request_id,
        receipt_id=record.receipt_id,
        operation_id=record.lineage.operation,
        operation_version=record.version,
        state=receipt.state,
        explanation=receipt.explanation,
        reason=_reason(receipt, content),
        content=content,
        replayed=replayed,
    )


def _reason(receipt: Receipt, content: Content | None) -> Reason | None:
    if receipt.active:
        return Reason.DUPLICATE_REQUEST_ID
    if receipt.state is State.COMPLETED:
        return None if content is not None else Reason.RESULT_NOT_KEPT
    return Reason(receipt.reason)


def told(answer: CallAnswer, *, reveal: bool = False) -> dict[str, Json]:
    """The structured content that the caller gets. `reveal` gives exact reasons, for the study of agents."""
    if isinstance(answer, Managed):
        return {"ok": True, "status": answer.status, "data": answer.data}
    if isinstance(answer, Refused):
        return _refusal(answer, reveal=reveal)
    if answer.reason is None and answer.content is not None:
        return _success(answer, answer.content)
    return _failure(answer, reveal=reveal)


def _refusal(refused: Refused, *, reveal: bool) -> dict[str, Json]:
    message = _CONSENT if refused.reason is Reason.CONSENT_REQUIRED else _MESSAGES[refused.coarse]
    code = refused.reason.value if reveal else refused.coarse.value
    data: dict[str, Json] = {"may_have_applied": False}
    if refused.receipt_id is not None:
        data["receipt_id"] = refused.receipt_id
    return {"ok": False, "error": {"code": code, "message": refused.detail[:1024] if reveal else message, "data": data}}


def _success(outcome: Outcome, content: Content) -> dict[str, Json]:
    return {
        "ok": True,
        "schema": RESULT,
        **_named(outcome),
        "operation_version": outcome.operation_version,
        "result": content.result,
        "artifacts": list(content.artifacts),
        "progress": list(content.progress),
    }


def _failure(outcome: Outcome, *, reveal: bool) -> dict[str, Json]:
    """Of an admitted operation: its receipt is the caller's own, and is told whole."""
    reason = outcome.reason or Reason.RESULT_NOT_KEPT
    code = reason.value if reveal else REASONS[reason].coarse.value
    data = {**_named(outcome), "may_have_applied": outcome.may_have_applied}
    if outcome.content is not None:
        data["progress"] = list(outcome.content.progress)
    return {"ok": False, "error": {"code": code, "message": f"the operation is {outcome.state}", "data": data}}


def _named(outcome: Outcome) -> dict[str, Json]:
    return {
        "request_id": outcome.request_id,
        "receipt_id": outcome.receipt_id,
        "operation_id": outcome.operation_id,
        "state": outcome.state.value,
        "explanation": outcome.explanation,
    }
