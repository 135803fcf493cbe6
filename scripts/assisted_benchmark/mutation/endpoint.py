"""What an endpoint's answers say: an entity, an error in its own words, a price, or nothing to go by. Pure.

Whatever the endpoint wrote is cut and cleaned before anybody sees it, and no word of it goes into a
receipt but its status and its codes: it may repeat what a contract calls sensitive.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from attrs import frozen

from assisted_benchmark.kernel.canonical import Json, parse
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.pointers import steps_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.kernel.strict_json import MAX_DEPTH, MAX_NODES, check
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.mutation.changes import ErrorShape, PriceRule
from assisted_benchmark.mutation.ports import HttpReply, Reply
from assisted_benchmark.mutation.states import State

# What stands around an answer when it is passed on to the agent: levels, and values beside it.
_AROUND: Final = 8
_BESIDE: Final = 1_000
_MANY: Final = 5
_SENTENCE: Final = 300
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,40}", re.ASCII)
_CURRENCY: Final = re.compile(r"[A-Z]{3}", re.ASCII)
NOT_A_QUOTE: Final = "not a quote"


@frozen
class EndpointError:
    """An answer that was no success, as far as it may be shown. `status` is None if there was no answer."""

    status: int | None
    errors: tuple[dict[str, Json], ...] = ()
    detail: str = ""

    @property
    def value(self) -> Json:
        """As an agent sees it."""
        return {"status": self.status, "errors": list(self.errors), "detail": self.detail}

    @property
    def words(self) -> str:
        """As a receipt has it: the status and the codes."""
        if self.status is None:
            return self.detail
        codes = [each["code"] for each in self.errors if _CODE.fullmatch(str(each["code"]))]
        return f"HTTP {self.status}{': ' if codes else ''}{', '.join(codes)}"


class Verdict(NamedTuple):
    """What came of a create. `entity` is the answer's object for a success, `error` what the endpoint said else."""

    state: State
    reason: Reason | None
    detail: str
    entity: Json = None
    error: EndpointError | None = None


def entity_of(reply: Reply, accepts: frozenset[int], shape: ErrorShape) -> dict[str, Json] | EndpointError:
    """The object of an answer that has one of these statuses; anything else is an error."""
    if isinstance(reply, NotSent):
        return EndpointError(None, (), f"nothing was sent: {reply.reason.value}")
    if isinstance(reply, Uncertain):
        return EndpointError(None, (), f"no usable answer: {reply.reason.value}")
    value = _parsed(reply)
    if reply.status not in accepts:
        return EndpointError(reply.status, _errors(value, shape), "the endpoint did not accept it")
    if type(value) is not dict:
        return EndpointError(reply.status, (), "the answer is no JSON object")
    return value


def judge(reply: HttpReply, accepts: frozenset[int], shape: ErrorShape) -> Verdict:
    """What an answer to the create says. Who failed may have acted before: only a 4xx is a no."""
    found = entity_of(reply, accepts, shape)
    if not isinstance(found, EndpointError):
        return Verdict(State.SUCCEEDED, None, f"HTTP {reply.status}", found)
    status = reply.status
    if 400 <= status < 500:
        return Verdict(State.FAILED, Reason.FAILED, found.words, None, found)
    if status >= 500:
        return Verdict(State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, found.words, None, found)
    return Verdict(State.UNRESOLVED, Reason.RESULT_INVALID, found.words, None, found)


def price_of(reply: Reply, rule: PriceRule, shape: ErrorShape) -> Json:
    """The price context: what the endpoint's rate card says, or why nothing can be said."""
    value = entity_of(reply, rule.accepts, shape)
    if isinstance(value, EndpointError):
        return {"unpriced": f"the price could not be asked: {value.words}"}
    rows = _at(value, rule.rows)
    if type(rows) is not list or len(rows) != 1:
        count = len(rows) if type(rows) is list else 0
        return {"unpriced": f"the price search found {count} prices where one is an estimate"}
    currency = _at(rows[0], rule.currency)
    charges = _at(rows[0], rule.charges)
    monthly, once = (_amount(charges, rule, kind) for kind in (rule.monthly, rule.non_recurring))
    known = type(currency) is str and _CURRENCY.fullmatch(currency) is not None
    if not known or (monthly is None and once is None):
        return {"unpriced": "the price search's answer could not be read"}
    return {
        "monthly": monthly,
        "non_recurring": once,
        "currency": currency,
        "source": f"POST {rule.path}",
        "basis": NOT_A_QUOTE,
    }


def _amount(charges: Json, rule: PriceRule, kind: str) -> Json:
    """The one charge of this kind; None if there is none, or several, or no amount."""
    of_kind = [each for each in charges if _at(each, rule.kind) == kind] if type(charges) is list else []
    amount = _at(of_kind[0], rule.amount) if len(of_kind) == 1 else None
    return (
        amount
        if isinstance(amount, int | float) and amount is not True and amount is not False and amount >= 0
        else None
    )


def _at(value: Json, pointer: str) -> Json:
    for step in steps_of(pointer):
        value = value.get(step) if type(value) is dict else None
    return value


def _parsed(reply: HttpReply) -> Json:
    """The answer's value; None of what is no sound JSON, or could not be passed on within a result of ours."""
    try:
        value = parse(reply.body)
        check(value, max_depth=MAX_DEPTH - _AROUND, max_nodes=MAX_NODES - _BESIDE)
    except CanonicalError:
        return None
    return value


def _errors(value: Json, shape: ErrorShape) -> tuple[dict[str, Json], ...]:
    """The endpoint's own errors, cut and cleaned; none of an answer that has another shape."""
    if type(value) is not list or not value:
        return ()
    if not all(type(each) is dict and type(each.get(shape.code)) is str for each in value):
        return ()
    return tuple(
        {
            "code": shown(each[shape.code], 40),
            "message": shown(str(each.get(shape.message, "")), _SENTENCE),
            "id": shown(str(each.get(shape.id, "")), 80),
            "places": [shown(_place(place), _SENTENCE) for place in _list(each.get(shape.places))[:_MANY]],
        }
        for each in value[:_MANY]
    )


def _list(value: Json) -> list[Json]:
    return value if type(value) is list else []


def _place(value: Json) -> str:
    return ": ".join(str(each) for each in value.values()) if type(value) is dict else str(value)
