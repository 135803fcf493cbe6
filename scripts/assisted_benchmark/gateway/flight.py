"""One call in flight: what its tool sees of it, and what the session tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

import orjson

from assisted_benchmark.gateway.questions import Question, Questions
from assisted_benchmark.gateway.tools import QUESTION, Resumed, Session
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import MIB, Json
from assisted_benchmark.wire.frames import (
    CANCELLED,
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    write_notification,
    write_request,
)
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.relay import Heard, Silence, shows_forms
from assisted_benchmark.wire.server_side import Steps, ToolCall

# Clients of earlier versions know no elicitation; those of the first version that does know no `mode`.
_ASKING: Final = frozenset((*HANDSHAKE_VERSIONS[2:], *STATELESS_VERSIONS))
_WITHOUT_MODE: Final = HANDSHAKE_VERSIONS[2]


class Limits(NamedTuple):
    """The bounds of one agent's session."""

    line: int = MIB
    calls: int = 32  # that run at a time
    waiting: int = 256  # that wait for their turn
    urgent: int = 8  # of tools that end others, beside all those
    listeners: int = 8  # subscriptions that are open
    call_ns: int = 60 * SECOND  # of a call, without the time that people took
    human_ns: int = 600 * SECOND  # of one question, at most
    write_ns: int = 10 * SECOND  # for which a client may leave a line unread
    oddities: int = 100


class Out(Protocol):
    """Where lines go: the way of one conversation, or of one exchange in it."""

    @property
    def broken(self) -> bool:
        """Whether nobody would hear any more, so that what is in flight need not go on."""

    def send(self, line: bytes) -> bool:
        """Send one line, whole; False if the peer is gone or does not read. From any thread."""

    def answer(self, line: bytes | None, code: int = 0) -> None:
        """The request is answered, by an error of this code if there is one, or is over without an answer."""


class Ties(NamedTuple):
    """What a call shares with the others of its session."""

    session: Session
    era: Era
    version: str
    clock: Clock
    limits: Limits
    out: Out
    questions: Questions
    apart: Callable[[Callable[[], None]], None]  # does something from a thread that no call holds


class Flight:
    """One call in flight. `cancel` may come from any thread, the rest is for the thread of its tool."""

    def __init__(self, call: ToolCall, ties: Ties) -> None:
        self._call = call
        self._ties = ties
        self._steps = Steps(call.token)
        self.since_ns = ties.clock.now().mono_ns
        self._ends_ns = self.since_ns + ties.limits.call_ns
        self._lock = threading.Lock()
        self._cancelled = False
        self._settled = False
        self._question: Question | None = None
        self._stop: Callable[[], None] | None = None

    @property
    def session(self) -> Session:
        return self._ties.session

    @property
    def arguments(self) -> bytes:
        return orjson.dumps(self._call.arguments)

    @property
    def era(self) -> Era:
        return self._ties.era

    @property
    def deadline(self) -> Deadline:
        return Deadline(self._ties.clock, self._ends_ns)

    @property
    def cancelled(self) -> bool:
        return self._cancelled or self._ties.out.broken

    def on_cancel(self, stop: Callable[[], None]) -> None:
        with self._lock:
            self._stop = stop
            late = self._cancelled
        if late:
            stop()

    @property
    def wants_progress(self) -> bool:
        return self._call.token is not None

    @property
    def can_ask(self) -> bool:
        return self._ties.version in _ASKING and shows_forms(self._call.capabilities)

    @property
    def resumed(self) -> Resumed | None:
        state = self._call.params.get("requestState")
        if self._ties.era is Era.HANDSHAKE or type(state) is not str:
            return None
        answers = self._call.params.get("inputResponses")
        return Resumed(state, answers.get(QUESTION) if type(answers) is dict else None)

    def ask(self, message: str, requested_schema: dict[str, Json], within_ns: int) -> Json | Silence:
        question = self._put(message, requested_schema)
        end = question.wait(Deadline.after(self._ties.clock, min(within_ns, self._ties.limits.human_ns)))
        self._over(question)
        return end

    def question(self, message: str, requested_schema: dict[str, Json], heard: Heard) -> Callable[[], None]:
        return partial(self._over, self._put(message, requested_schema, heard))

    def _put(self, message: str, requested_schema: dict[str, Json], heard: Heard | None = None) -> Question:
        ties = self._ties
        if ties.era is Era.STATELESS or not self.can_ask:
            raise MisuseError(Reason.MISUSE, "this client cannot be asked while its call waits")
        question = ties.questions.open(heard)
        params: dict[str, Json] = {"message": message, "requestedSchema": requested_schema}
        if ties.version != _WITHOUT_MODE:
            params["mode"] = "form"
        question.asked_ns = ties.clock.now().mono_ns
        with self._lock:
            self._question = question
            if self._cancelled:
                question.settle(Silence.CANCELLED)
        if not question.settled:
            question.sent = True
            if not ties.out.send(write_request(question.id, "elicitation/create", params)):
                question.settle(Silence.FAILED)
        return question

    def _over(self, question: Question) -> None:
        ties = self._ties
        question.settle(Silence.CANCELLED)
        ties.questions.withdraw(question)
        self._ends_ns += ties.clock.now().mono_ns - question.asked_ns
        end = question.end
        if question.sent and end in (Silence.TIMED_OUT, Silence.CANCELLED):
            # The question is a request of ours: it is taken back by our id, whatever became of the call.
            ties.out.send(write_notification(CANCELLED, {"requestId": question.id, "reason": end.value}))

    def progress(self, current: float, total: float | None = None, message: str = "") -> None:
        line = None if self._settled or self.cancelled else self._steps.line(current, total, message)
        if line:
            self._ties.out.send(line)

    # -- for the session

    def cancel(self) -> None:
        """The agent has cancelled the call: a question that is open for it is abandoned, and its tool is told once."""
        with self._lock:
            stop = None if self._cancelled else self._stop
            self._cancelled = True
            if self._question is not None:
                self._question.settle(Silence.CANCELLED)
        if stop is not None:
            self._ties.apart(stop)

    def settle(self) -> None:
        """The call has ended: its tool has nothing more to say."""
        self._settled = True
