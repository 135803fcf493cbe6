"""An agent's session: strict frames in, calls handed to their tools, answers out.

One thread reads and never waits for a tool: calls run on a bounded set of threads, so that a
cancellation, a ping or another call is served while a person is being asked. Every answer
and every question is one whole line under one lock.

When the agent closes its side, open questions fail, what was asked before is still answered,
and `serve` returns once nothing runs any more. An interrupt cancels what is in flight first.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from assisted_benchmark.gateway.flight import Flight, Limits, Ties
from assisted_benchmark.gateway.lines_out import LinesOut
from assisted_benchmark.gateway.questions import Questions
from assisted_benchmark.gateway.tools import Resources, Session, ToolRegistration
from assisted_benchmark.kernel.canonical import parse
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.wire.frames import (
    INTERNAL_ERROR,
    META_SUBSCRIPTION,
    PARSE_ERROR,
    TOOLS_CHANGED,
    Bad,
    Id,
    Request,
    Response,
    Splitter,
    read_frame,
    write_error,
    write_notification,
)
from assisted_benchmark.wire.outcomes import Era, Odd, Oddity
from assisted_benchmark.wire.server_side import (
    Also,
    Answer,
    CallCancelled,
    Listening,
    Problem,
    ServerSide,
    ToolCall,
    ToolProblem,
    answered,
    cancels,
    refusal,
)

_CHUNK: Final = 1 << 16
_RESOURCES: Final = ("resources/list", "resources/templates/list", "resources/read")


class Face:
    """What the gateway says that it is, the tools that it serves, and perhaps resources.

    The list does not change, unless `list_changed` says that calls may change it; then it is asked for after each.
    """

    list_changed = False

    def __init__(
        self, tools: Sequence[ToolRegistration], instructions: str = "", resources: Resources | None = None
    ) -> None:
        self.registered = {tool.name: tool for tool in tools}
        self.instructions = instructions
        self._beside: dict[str, ToolRegistration] = {}
        if resources is not None:
            self._beside = {
                method: ToolRegistration({"name": method, "annotations": {"readOnlyHint": True}}, "", handle)
                for method, handle in zip(_RESOURCES, resources, strict=True)
            }

    @property
    def also(self) -> Also:
        """What there is beside tools."""
        capabilities = {"resources": {"listChanged": False, "subscribe": False}} if self._beside else {}
        return Also(capabilities, frozenset(self._beside))

    def behind(self, call: ToolCall) -> ToolRegistration:
        """What handles a call: the tool, or what is registered for another method as a tool is."""
        return self._beside.get(call.method) or self.registered[call.name]

    def info(self) -> dict[str, Json]:
        return {"name": "assisted-benchmark", "version": "1"}

    def tools(self) -> list[Json]:
        return [tool.definition for tool in self.registered.values()]


def _unrecorded(_reason: Reason, _detail: str) -> None:
    """Nobody keeps receipts."""


def _unnoticed() -> None:
    """Nothing has to be ended."""


class AgentSession:
    """Serves one agent on two descriptors, which stay the caller's.

    `on_malformed` hears of each line that was no message, from the thread that reads: the broker's receipt of it.
    `on_leaving` is called once the agent is gone or is sent away, before what it has asked for has ended.
    """

    def __init__(
        self,
        face: Face,
        session: Session,
        clock: Clock,
        *,
        read_fd: int = 0,
        write_fd: int = 1,
        limits: Limits | None = None,
        on_malformed: Callable[[Reason, str], object] = _unrecorded,
        on_leaving: Callable[[], None] = _unnoticed,
    ) -> None:
        self._on_malformed = on_malformed
        self._on_leaving = on_leaving
        self._face = face
        self._session = session
        self._clock = clock
        self._limits = limits or Limits()
        self._read_fd = read_fd
        self._side = ServerSide(face, also=face.also)
        self._splitter = Splitter(self._limits.line)
        self._calls = ThreadPoolExecutor(self._limits.calls, "call")
        self._urgent = ThreadPoolExecutor(self._limits.urgent, "urgent")
        self._bell_out, self._bell_in = os.pipe()
        self._out = LinesOut(write_fd, clock, self._limits.write_ns, self._ring)
        self._questions = Questions()
        self._lock = threading.Lock()
        self._flights: dict[Id, Flight] = {}
        self._listeners: dict[Id, bool] = {}  # open subscriptions; whether they want to hear of tools
        self._shown = self._names()
        self._oddities: list[Oddity] = []

    @property
    def oddities(self) -> tuple[Oddity, ...]:
        """What the agent did that fits nothing, and tools that broke; in order, bounded."""
        return tuple(self._oddities)

    @property
    def client(self) -> Json:
        """What the client says that it is. It may say anything."""
        return self._side.client

    def serve(self) -> None:
        """Answer until the agent closes its side or stops reading ours. Nothing runs any more when this returns."""
        try:
            self._read_on()
        except BaseException:
            self._cancel_all()
            raise
        finally:
            self._questions.close()
            self._on_leaving()
            self._end()

    def _end(self) -> None:
        try:
            self._calls.shutdown()  # which may take long: an interrupt cancels what is left
        except BaseException:
            self._cancel_all()
            raise
        finally:
            self._calls.shutdown()
            self._urgent.shutdown()
            os.close(self._bell_out)
            os.close(self._bell_in)

    # -- reading

    def _read_on(self) -> None:
        poll = select.poll()
        poll.register(self._read_fd, select.POLLIN)
        poll.register(self._bell_out, select.POLLIN)
        while True:
            poll.poll()
            if self._out.broken:
                self._cancel_all()  # nobody will hear what they come to
                return
            try:
                chunk = os.read(self._read_fd, _CHUNK)
            except OSError:
                return
            if not chunk:
                break
            for line in self._splitter.feed(chunk):
                self._take(line)
        if self._splitter.half:
            self._out.send(write_error(None, PARSE_ERROR, "the last line has no end"))

    def _ring(self) -> None:
        os.write(self._bell_in, b"\0")

    def _take(self, line: bytes | Bad) -> None:
        frame = line if isinstance(line, Bad) else read_frame(line, self._limits.line, parse)
        with self._lock:
            refused = refusal(frame, {*self._flights, *self._listeners} if self._listeners else self._flights)
            target = cancels(frame)
            cancelled = None if target is None else self._flights.get(target)
            if target is not None:
                self._listeners.pop(target, None)
        if refused:
            self._out.send(refused)
        if isinstance(frame, Bad):
            self._take_malformed(frame)
        if isinstance(frame, Response) or (isinstance(frame, Bad) and frame.reply):
            self._take_answer(frame)
        elif isinstance(frame, Request) and not refused:
            self._serve(frame)
        elif cancelled is not None:
            cancelled.cancel()

    def _take_malformed(self, frame: Bad) -> None:
        self._record(Odd.BAD_LINE, frame.detail, frame.reason)
        try:
            self._on_malformed(frame.reason, frame.detail)
        except HarnessError as broken:  # the session goes on, and tells at its end that a receipt is missing
            self._record(Odd.CALLBACK_FAILED, broken.detail, broken.reason)

    def _take_answer(self, frame: Response | Bad) -> None:
        odd = self._questions.take(frame)
        if odd in (Odd.SETTLED_ID, Odd.UNKNOWN_ID):
            self._record(odd, f"an answer to {shown(repr(frame.id), 80)}, which is not asked any more, or never was")

    def _serve(self, request: Request) -> None:
        judged: Answer | ToolCall = self._side.judge(request)
        if isinstance(judged, ToolCall):
            tool, limits = self._face.behind(judged), self._limits
            if len(self._flights) < limits.calls + limits.waiting + (limits.urgent if tool.urgent else 0):
                flight = Flight(judged, self._ties())
                with self._lock:
                    self._flights[request.id] = flight
                (self._urgent if tool.urgent else self._calls).submit(self._run, judged, tool, flight)
                return
            judged = Problem(INTERNAL_ERROR, "too many calls are in flight; wait for answers, and call again")
        if isinstance(judged, Listening):
            judged = self._listened(request.id, judged)
        self._out.send(self._side.line(request.id, judged))

    def _listened(self, request_id: Id, listening: Listening) -> Answer:
        with self._lock:
            if len(self._listeners) == self._limits.listeners:
                return Problem(INTERNAL_ERROR, "too many subscriptions are open; cancel one, and subscribe again")
            self._listeners[request_id] = listening.wants_tools
        return listening

    def _ties(self) -> Ties:
        era = Era.STATELESS if self._side.stateless else Era.HANDSHAKE
        side, limits = self._side, self._limits
        return Ties(self._session, era, side.version, self._clock, limits, self._out, self._questions, self._apart)

    def _apart(self, act: Callable[[], None]) -> None:
        """Do something that may wait, for which the thread that reads has no time."""

        def acting() -> None:
            try:
                act()
            except Exception as broken:  # noqa: BLE001 - nobody waits for it: at the end it is told that it failed
                reason = broken.reason if isinstance(broken, HarnessError) else None
                self._record(Odd.CALLBACK_FAILED, f"a cancellation failed: {type(broken).__name__}", reason)

        self._urgent.submit(acting)

    # -- calls, each on a thread of the pool

    def _run(self, call: ToolCall, tool: ToolRegistration, flight: Flight) -> None:
        answer = None if flight.cancelled else self._answer(tool, flight)
        line = None if answer is None else self._side.line(call.id, answer)
        flight.settle()
        with self._lock:
            del self._flights[call.id]  # before it is answered: from then on the agent may use the id again
        if line:
            self._out.send(line)
        if self._face.list_changed:
            self._tell_of_tools()

    def _tell_of_tools(self) -> None:
        """Tell the client that there are other tools now, if there are and it can be told."""
        shown = self._names()
        with self._lock:
            same, self._shown = shown == self._shown, shown
            listeners = [each for each, wants in self._listeners.items() if wants]
        if same:
            return
        if not self._side.stateless:
            self._out.send(write_notification(TOOLS_CHANGED, {}))
        for listener in listeners:
            self._out.send(write_notification(TOOLS_CHANGED, {"_meta": {META_SUBSCRIPTION: listener}}))

    def _names(self) -> list[str]:
        return [tool["name"] for tool in self._face.tools()] if self._face.list_changed else []

    def _answer(self, tool: ToolRegistration, flight: Flight) -> Answer | None:
        try:
            result = tool.handle(flight)
        except (CallCancelled, ToolProblem) as end:
            return answered(end)
        except Exception as broken:  # noqa: BLE001 - fails closed: what a tool broke is not for the agent to read
            reason = broken.reason if isinstance(broken, HarnessError) else None
            self._record(Odd.CALLBACK_FAILED, f"the tool `{tool.name}` failed: {type(broken).__name__}", reason)
            unknown = "" if tool.read_only else "; what it did is not known: look before you call it again"
            return Problem(INTERNAL_ERROR, f"the tool failed{unknown}")
        # What only reads can always stop; of any other tool a result after a cancellation says that it acted.
        return None if tool.read_only and flight.cancelled else result

    def _cancel_all(self) -> None:
        with self._lock:
            flights = tuple(self._flights.values())
        for flight in flights:
            flight.cancel()

    def _record(self, kind: Odd, detail: str, reason: Reason | None = None) -> None:
        with self._lock:
            if len(self._oddities) < self._limits.oddities:
                self._oddities.append(Oddity(kind, detail, reason))
