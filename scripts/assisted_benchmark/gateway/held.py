"""What a server asks of a person in an agent's call, put to the client in the words and the era of its own.

A client of the handshake era is asked by a request while its call waits. One of the stateless era is asked by the
result of its call; the call to the server stays in flight, held here, until the client calls again with the answer.
Another call finds it by a nonce that says nothing by itself, so that there is nothing in it to forge: it is good once,
for the same tool, arguments and session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from assisted_benchmark.gateway.names import Place
from assisted_benchmark.gateway.tools import AgentCall, Resumed, Session
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.relay import Heard, Relay, Silence

Carry: TypeAlias = Callable[[Relay], Outcome | Refused]
"""Has a call decided on and carried out; the relay leads to whoever waits for it."""

_STATE_BYTES: Final = 16
_KEPT: Final = 16  # calls that nobody has come back for


class Asked(NamedTuple):
    """A question that a call of the stateless era is answered with."""

    state: str
    message: str
    requested_schema: dict[str, Json]


class Binding(NamedTuple):
    """What a nonce is good for."""

    tool: Place
    arguments: bytes
    session: Session


class HeldCalls:
    """The calls of one face whose servers may ask."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._lock = threading.Lock()
        self._rows: dict[str, tuple[Binding, _Held]] = {}  # oldest first
        self._closed = False

    def made(self, call: AgentCall, tool: Place, carry: Carry) -> Outcome | Refused | Asked | None:
        """What comes of a call: its end, a question first, or None for one that resumes nothing."""
        if call.era is Era.HANDSHAKE or (not call.can_ask and call.resumed is None):
            return carry(_Named(call, tool.server))
        binding = Binding(tool, call.arguments, call.session)
        resumed = call.resumed
        if resumed is None:
            held = _Held(call, tool.server)
            held.start(carry)
        else:
            found = self._take(resumed, binding)
            if found is None:
                return None
            held = found
            held.resume(call, resumed.answer)
        came = held.came()
        if not isinstance(came, _Question):
            return came
        return Asked(self._keep(binding, held), came.message, came.requested_schema)

    def close(self) -> None:
        """Nobody comes back any more: who would have been asked is gone."""
        with self._lock:
            self._closed = True
            rows = list(self._rows.values())
            self._rows.clear()
        for _, held in rows:
            held.cancel()

    def _keep(self, binding: Binding, held: _Held) -> str:
        state = self._chance.token(_STATE_BYTES).hex()
        with self._lock:
            lost = [held] if self._closed else []
            if not lost:
                self._rows[state] = (binding, held)
            if len(self._rows) > _KEPT:
                lost.append(self._rows.pop(next(iter(self._rows)))[1])
        for each in lost:
            each.cancel()
        return state

    def _take(self, resumed: Resumed, binding: Binding) -> _Held | None:
        with self._lock:
            row = self._rows.get(resumed.state)
            if row is None or row[0] != binding:
                return None
            del self._rows[resumed.state]
        return row[1]


class _Question(NamedTuple):
    message: str
    requested_schema: dict[str, Json]
    heard: Heard


class _Named:
    """The relay of a call that waits itself: it says whose question it is."""

    def __init__(self, call: AgentCall, server: str) -> None:
        self._server = server
        self.wants_progress = call.wants_progress
        self.can_ask = call.can_ask and call.era is Era.HANDSHAKE
        self.on_cancel = call.on_cancel
        self.progress = call.progress
        self._call = call

    @property
    def cancelled(self) -> bool:
        return self._call.cancelled

    def question(self, message: str, requested_schema: dict[str, Json], heard: Heard) -> Callable[[], None]:
        return self._call.question(_named(self._server, message), requested_schema, heard)


class _Held:
    """A call that is carried out on a thread of its own, and the relay to whichever call of the agent waits for it."""

    can_ask: Final = True

    def __init__(self, call: AgentCall, server: str) -> None:
        self.wants_progress = call.wants_progress
        self._server = server
        self._changed = threading.Condition()
        self._call: AgentCall | None = None
        self._cancelled = False
        self._stop: Callable[[], None] | None = None
        self._question: _Question | None = None
        self._end: Outcome | Refused | Exception | None = None
        self._attach(call)

    # -- for the calls of the agent

    def start(self, carry: Carry) -> None:
        threading.Thread(target=self._carry, args=(carry,), name="held").start()

    def resume(self, call: AgentCall, answer: Json) -> None:
        """Another call brings the answer; of a question that is no longer open it is too late."""
        self._attach(call)
        self._settle(answer)

    def came(self) -> Outcome | Refused | _Question:
        """Wait for the end or a question. With the question the waiting call is over.

        Raises:
            Exception: what the call broke over.
        """
        with self._changed:
            while (end := self._end) is None:
                if self._question is not None:
                    self._call = None
                    return self._question
                self._changed.wait()
            self._call = None
        if isinstance(end, Exception):
            raise end
        return end

    def _attach(self, call: AgentCall) -> None:
        with self._changed:
            self._call = call
        call.on_cancel(self.cancel)

    def cancel(self) -> None:
        """The agent wants no more of it, or nobody will come back for it."""
        with self._changed:
            self._cancelled = True
            stop = self._stop
        self._settle(Silence.CANCELLED)
        if stop is not None:
            stop()

    def _settle(self, answer: Json | Silence) -> None:
        with self._changed:
            question, self._question = self._question, None
        if question is not None:
            question.heard(answer)

    # -- for what carries it out

    def _carry(self, carry: Carry) -> None:
        end: Outcome | Refused | Exception
        try:
            end = carry(self)
        except Exception as broken:  # noqa: BLE001 - it is raised where somebody waits
            end = broken
        with self._changed:
            self._end = end
            self._changed.notify_all()

    @property
    def cancelled(self) -> bool:
        call = self._call
        return self._cancelled or (call is not None and call.cancelled)

    def on_cancel(self, stop: Callable[[], None]) -> None:
        with self._changed:
            self._stop = stop
            late = self._cancelled
        if late:
            stop()

    def progress(self, current: float, total: float | None = None, message: str = "") -> None:
        # Under the lock: once a call is answered with a question, nothing more is said by its token.
        with self._changed:
            if self._call is not None:
                self._call.progress(current, total, message)

    def question(self, message: str, requested_schema: dict[str, Json], heard: Heard) -> Callable[[], None]:
        question = _Question(_named(self._server, message), requested_schema, heard)
        with self._changed:
            late = self._cancelled
            if not late:
                self._question = question
                self._changed.notify_all()
        if late:
            heard(Silence.CANCELLED)
        return self._over

    def _over(self) -> None:
        with self._changed:
            self._question = None


def _named(server: str, message: str) -> str:
    """A server's question never poses as one of the broker's, or of another server's."""
    return f"The server `{server}` asks: {message}"
