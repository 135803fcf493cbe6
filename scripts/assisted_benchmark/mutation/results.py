"""What the broker answers, and what an agent hears of it. Values; `told` is their one public form.

A refusal is told coarsely (`refused`, one of five words) with a random receipt id; the exact reason is in
the receipt. Beside that the agent hears what it needs to do better: of a spec the paths that are
wrong, of a dry run the endpoint's own error, of a token what became of it and what to do next.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, NamedTuple, TypeAlias

from attrs import evolve, field, frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import REASONS, Reason
from assisted_benchmark.ledger.protocol import Draft
from assisted_benchmark.mutation.answers import DETAILS, Status
from assisted_benchmark.mutation.checks import Problem
from assisted_benchmark.mutation.desk import Desk
from assisted_benchmark.mutation.endpoint import EndpointError
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.states import State

PROPOSE: Final = "propose"
CONFIRM: Final = "confirm"


@unique
class TokenState(StrEnum):
    """What became of the token that was presented."""

    USABLE = "usable"  # nothing has happened to it
    CONSUMED = "consumed"  # this call used it up
    EXPIRED = "expired"
    REPLAYED = "replayed"  # an earlier call used it up
    UNKNOWN = "unknown"


class Predicates(NamedTuple):
    """What was found out about a token; None where it was not looked at."""

    proposal_exists: bool | None = None
    not_expired: bool | None = None
    not_previously_used: bool | None = None
    spec_matches_binding: bool | None = None


NOT_LOOKED_AT: Final = Predicates()
ALL_HOLD: Final = Predicates(True, True, True, True)


@frozen(kw_only=True)
class Proposed:
    """A proposal that the endpoint's dry run took. `validated` is the endpoint's answer."""

    change: str
    validated: dict[str, Json]
    price: Json
    token: str = field(repr=False)
    expires_in_s: int
    request: Digest
    receipt_id: str


@frozen(kw_only=True)
class Refusal(Refused):
    """A no. `phase` is propose or confirm; what follows is empty in the other phase.

    `executed` is always False of it: not one byte of the create was written.
    """

    phase: str = CONFIRM
    problems: tuple[Problem, ...] = ()
    error: EndpointError | None = None
    token: TokenState | None = None
    status: Status | None = None
    predicates: Predicates = NOT_LOOKED_AT
    request: Digest | None = None


@frozen(kw_only=True)
class NeedsAnswer:
    """The token is consumed and a person is to be asked; `resume` goes on with `state` and the answer.

    `state` is opaque, used up by the one `resume` that fits it, and worthless after `wait_ns`.
    """

    message: str
    requested_schema: dict[str, Json]
    state: str = field(repr=False)
    wait_ns: int
    shown: Digest


@frozen(kw_only=True)
class Confirmed:
    """The create was sent. `reason` is None only for a success.

    `executed` is True, False where the endpoint said no itself, None where it is not known. `receipt_id` is
    None only if the ledger went down after the send. `late_cancel` says that a cancel came too late.
    """

    state: State
    reason: Reason | None
    executed: bool | None
    result: Json
    error: EndpointError | None
    request: Digest
    status: Status
    receipt_id: str | None
    late_cancel: bool = False
    predicates: Predicates = ALL_HOLD
    detail: str = ""


Answered: TypeAlias = Proposed | Refusal | Confirmed

_AGAIN: Final = "Propose the change again with {propose} to get a new token."
_NEXT: Final = {
    TokenState.USABLE: "The token was not used. Call {confirm} with it again, or let it expire.",
    TokenState.CONSUMED: f"Nothing was sent, and the token is consumed. {_AGAIN}",
    TokenState.EXPIRED: f"Nothing was sent: the token has expired. {_AGAIN}",
    TokenState.REPLAYED: "This call sent nothing: the token was used before, and each is good for one call. The "
    "earlier call may have carried the change out, so look first; only if it did not, propose the change again with "
    "{propose} to get a new token.",
    TokenState.UNKNOWN: f"Nothing was sent: this session has no proposal with this token. {_AGAIN}",
    None: "Nothing was sent. Call {confirm} with the token that {propose} returned, and nothing else.",
}
# What the token alone does not say: where nothing but the same again would come of doing it again.
_NEXT_AFTER: Final[dict[Status | None, str]] = {
    Status.DECLINED: "Nothing was sent, and the token is consumed: a person did not agree. Only if you are asked to, "
    "propose the change again with {propose} to get a new token.",
    Status.UNSUPPORTED_BY_CLIENT: "Nothing was sent, and the token is consumed: this client cannot ask a person, so "
    "that a new token would end the same way. With a client that can show a form, propose the change again with "
    "{propose} to get a new token.",
}
_SCOPE: Final = (
    "This token is a lookup key for this one proposal, in this session of this server only. It works once, within "
    "its lifetime. Give it to {confirm} and never enter it anywhere else."
)


def recorded(refusal: Refusal, desk: Desk, session: Session, draft: Draft) -> Refusal:
    """The refusal with its receipt written; without one, and saying so, if the ledger cannot be used."""
    try:
        return evolve(refusal, receipt_id=desk.recorded(session, draft))
    except LedgerError as error:
        return evolve(refusal, receipt_id=None, detail=f"{refusal.detail}; no receipt could be written: {error.detail}")


def told(answer: Answered, contract_id: str, *, reveal: bool = False) -> dict[str, Json]:
    """The result as the agent gets it. `reveal` gives the exact reason of a refusal instead of the coarse word."""
    names = tool_names(contract_id)
    if isinstance(answer, Proposed):
        return {
            "phase": PROPOSE,
            "change_type": answer.change,
            "validated": answer.validated,
            "price": answer.price,
            "token": answer.token,
            "expires_in_seconds": answer.expires_in_s,
            "request_sha256": answer.request,
            "token_scope": _SCOPE.format(**names),
            "next_step": "Nothing was provisioned. Call {confirm} with the token; a person will be asked.".format(
                **names
            ),
            "receipt": answer.receipt_id,
        }
    if isinstance(answer, Confirmed):
        return _of_confirmed(answer, names, reveal=reveal)
    word = answer.reason.value if reveal else answer.coarse.value
    if answer.phase == PROPOSE:
        return {
            "phase": PROPOSE,
            "refused": word,
            "problems": [each._asdict() for each in answer.problems],
            "endpoint_error": None if answer.error is None else answer.error.value,
            "next_step": f"No token was given out and nothing was provisioned. {_AGAIN}".format(**names),
            "receipt": answer.receipt_id,
        }
    return _confirm(
        refused=word,
        state=State.REFUSED.value,
        executed=False,
        result=None,
        error=None,
        request=answer.request,
        status=answer.status,
        predicates=answer.predicates,
        token=answer.token,
        late_cancel=False,
        next_step=(_NEXT_AFTER.get(answer.status) or _NEXT[answer.token]).format(**names),
        receipt=answer.receipt_id,
    )


def tool_names(contract_id: str) -> dict[str, str]:
    """The names of a contract's two tools."""
    return {"propose": f"{contract_id}_propose_change", "confirm": f"{contract_id}_confirm_change"}


def _of_confirmed(answer: Confirmed, names: dict[str, str], *, reveal: bool) -> dict[str, Json]:
    word = None
    if answer.reason is not None:
        word = answer.reason.value if reveal else REASONS[answer.reason].coarse.value
    steps = {
        True: "The change was carried out; there is nothing more to do.",
        False: f"The endpoint refused the change, and the token is consumed. {_AGAIN}",
        None: "The request was sent and what came of it is not known. Do not propose it again before somebody has "
        "looked at the endpoint: it may have been carried out.",
    }
    return _confirm(
        refused=word,
        state=answer.state.value,
        executed=answer.executed,
        result=answer.result,
        error=answer.error,
        request=answer.request,
        status=answer.status,
        predicates=answer.predicates,
        token=TokenState.CONSUMED,
        late_cancel=answer.late_cancel,
        next_step=steps[answer.executed].format(**names),
        receipt=answer.receipt_id,
    )


def _confirm(
    *,
    refused: str | None,
    state: str,
    executed: bool | None,
    result: Json,
    error: EndpointError | None,
    request: Digest | None,
    status: Status | None,
    predicates: Predicates,
    token: TokenState | None,
    late_cancel: bool,
    next_step: str,
    receipt: str | None,
) -> dict[str, Json]:
    """Every answer to a confirmation has the same keys."""
    return {
        "phase": CONFIRM,
        "executed": executed,
        "outcome": state,
        "refused": refused,
        "result": result,
        "endpoint_error": None if error is None else error.value,
        "request_sha256": request,
        "human_confirmation": {"status": None if status is None else status.value, "detail": DETAILS[status]},
        "confirm_checks": predicates._asdict(),
        "token_state": None if token is None else token.value,
        "cancellation": {"requested_after_send": late_cancel},
        "next_step": next_step,
        "receipt": receipt,
    }
