"""The mutation broker watched: each proposal, and each confirmation from its call to its end."""

from __future__ import annotations

from typing import Any, Final

from assisted_benchmark.kernel.canonical import Json, parse
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.mutation.answers import Answer, Silence
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.proposal import Session, group_key
from assisted_benchmark.mutation.results import NeedsAnswer
from assisted_benchmark.suite.instruments import CutOff
from assisted_benchmark.suite.vectors.clocks import clock_value
from assisted_benchmark.suite.vectors.vector import bytes_value
from assisted_benchmark.suite.vectors.watching import Method, Tell, Watch

# What was given of confirmations that wait for their answer, by their state.
_waiting: Final[dict[str, Json]] = {}


def _propose(whole: Method, tell: Tell) -> Method:
    def propose(self: Any, session: Session, raw: bytes) -> Any:
        given = _given(self, session, raw, "propose")
        came = whole(self, session, raw)
        tell(given, self._proposer._contract, _code(came))  # noqa: SLF001 - it is watched from outside, on purpose
        return came

    return propose


def _begin(whole: Method, tell: Tell) -> Method:
    def begin(self: Any, session: Session, raw: bytes, can_ask: bool, *more: Any) -> Any:
        given = _given(self, session, raw, "confirm") | {"can_ask": can_ask, "proposals": _proposals(self, raw)}
        came = whole(self, session, raw, can_ask, *more)
        if isinstance(came, NeedsAnswer):
            _waiting[came.state] = given
        else:
            tell(given, self._proposer._contract, _code(came))  # noqa: SLF001 - as above
        return came

    return begin


def _resume(whole: Method, tell: Tell) -> Method:
    def resume(self: Any, session: Session, raw: bytes, state: str, answer: Answer, *more: Any) -> Any:
        given = _waiting.pop(state, None)
        at = clock_value(self._store.clock)
        came = whole(self, session, raw, state, answer, *more)
        if given is not None:
            said = {"silence": answer.value} if isinstance(answer, Silence) else {"value": answer}
            more_given = {"answered_at": at, "answer": said}
            tell(given | more_given, self._proposer._contract, _code(came))  # noqa: SLF001 - as above
        return came

    return resume


def _given(broker: Any, session: Session, raw: bytes, call: str) -> dict[str, Json]:
    return {
        "call": call,
        "session": session._asdict(),
        "arguments": bytes_value(raw),
        "now": clock_value(broker._store.clock),  # noqa: SLF001 - as above
        "allow_unconfirmed": broker._confirmer._allow_unconfirmed,  # noqa: SLF001 - as above
    }


def _proposals(broker: Any, raw: bytes) -> Json:
    """The proposal of the token that is presented, as the ledger keeps it."""
    ledger = broker._store.ledger  # noqa: SLF001 - as above
    ledger = ledger.inner if isinstance(ledger, CutOff) else ledger
    try:
        value = parse(raw)
    except CanonicalError:
        return []
    token = value.get("token") if type(value) is dict else None
    key = group_key(token) if type(token) is str else None
    record, row = (None, None) if key is None else (ledger.group_record(key), ledger.row(key))
    if record is None or row is None:
        return []
    return [{"token": token, "run": parse(record)["run"], "record": record.decode(), "state": row.state}]


def _code(came: Any) -> str:
    reason = getattr(came, "reason", None)
    return "admitted" if reason is None else str(reason.value)


MUTATION: Final[tuple[Watch, ...]] = (
    (MutationBroker, "propose", _propose),
    (MutationBroker, "begin", _begin),
    (MutationBroker, "resume", _resume),
)
