"""What an agent says and is answered, apart from how either travels: frames in, lines out.

One thread takes frames, and never waits for a tool. Every answer and every question is one whole line to the way out
that came with the frame which it belongs to; what belongs to none goes the conversation's own way out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from assisted_benchmark.gateway.flight import Flight, Out, Ties
from assisted_benchmark.gateway.questions import Questions
from assisted_benchmark.gateway.service import Service
from assisted_benchmark.gateway.tools import Session, ToolRegistration
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.wire.frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    META_SUBSCRIPTION,
    TOOLS_CHANGED,
    Bad,
    Frame,
    Id,
    Request,
    Response,
    write_notification,
)
from assisted_benchmark.wire.outcomes import Era, Odd
from assisted_benchmark.wire.server_side import (
    CALL,
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


class Conversation:
    """One conversation. `whose` says whose a call is, when it comes; of an unknown era the first request tells."""

    def __init__(
        self, service: Service, whose: Callable[[], Session], out: Out, *, stateless: bool | None = None
    ) -> None:
        self.side = ServerSide(service.face, also=service.face.also)
        self.side.stateless = stateless
        self._service = service
        self._whose = whose
        self._out = out
        self._questions = Questions()
        self._lock = service.lock
        self._flights: dict[Id, Flight] = {}
        self._listeners: dict[Id, tuple[Out, bool]] = {}  # open subscriptions; whether they want to hear of tools
        with self._lock:
            service.hearers.add(self)

    def take(self, frame: Frame, out: Out) -> None:
        """Take one frame; what it is answered goes to `out`."""
        with self._lock:
            refused = refusal(frame, {*self._flights, *self._listeners} if self._listeners else self._flights)
            target = cancels(frame)
            cancelled = None if target is None else self._flights.get(target)
            if target is not None:
                self._listeners.pop(target, None)
        if refused:
            out.answer(refused, frame.code if isinstance(frame, Bad) else INVALID_REQUEST)
            if isinstance(frame, Request) and frame.method == CALL:
                self._service.unmade(Reason.DUPLICATE_REQUEST_ID, "a request with the id of this call is in flight")
        if isinstance(frame, Bad):
            self._service.malformed(frame)
        if isinstance(frame, Response) or (isinstance(frame, Bad) and frame.reply):
            self._take_answer(frame)
        elif isinstance(frame, Request) and not refused:
            self._serve(frame, out)
        elif cancelled is not None:
            cancelled.cancel()

    def tools_changed(self) -> None:
        with self._lock:
            listeners = [(each, out) for each, (out, wants) in self._listeners.items() if wants]
        if not self.side.stateless:
            self._out.send(write_notification(TOOLS_CHANGED, {}))
        for listener, out in listeners:
            out.send(write_notification(TOOLS_CHANGED, {"_meta": {META_SUBSCRIPTION: listener}}))

    def cancel_all(self) -> None:
        """Cancel what is in flight."""
        with self._lock:
            flights = tuple(self._flights.values())
        for flight in flights:
            flight.cancel()

    def close(self) -> None:
        """The agent says no more: open questions fail. What was asked before is still answered."""
        self._questions.close()

    def end(self) -> None:
        """Nobody listens any more: what is in flight is cancelled, and subscriptions end."""
        self.close()
        self.cancel_all()
        with self._lock:
            self._service.hearers.discard(self)
            listeners = [(each, out) for each, (out, _) in self._listeners.items()]
            self._listeners.clear()
        for listener, out in listeners:  # a result is how the client hears that it did not lose the stream
            out.answer(self.side.line(listener, {"_meta": {META_SUBSCRIPTION: listener}}))

    def _take_answer(self, frame: Response | Bad) -> None:
        odd = self._questions.take(frame)
        if odd in (Odd.SETTLED_ID, Odd.UNKNOWN_ID):
            detail = f"an answer to {shown(repr(frame.id), 80)}, which is not asked any more, or never was"
            self._service.record(odd, detail)

    def _serve(self, request: Request, out: Out) -> None:
        judged: Answer | ToolCall = self.side.judge(request)
        if isinstance(judged, Problem) and request.method == CALL and "reason" in (judged.data or {}):
            # An agent that reaches for what is not there is not to be missed because there is nobody to ask for it.
            name = shown(str(request.params.get("name")), 60)
            self._service.unmade(Reason(judged.data["reason"]), f"a call of `{name}`: {judged.message}")
        if isinstance(judged, ToolCall):
            service = self._service
            tool, limits = service.face.behind(judged), service.limits
            # What others wait for never waits for them: a tool that ends them, a call that answers a question.
            urgent = tool.urgent or (self.side.stateless and "requestState" in judged.params)
            if service.in_flight < limits.calls + limits.waiting + (limits.urgent if urgent else 0):
                flight = Flight(judged, self._ties(out))
                with self._lock:
                    self._flights[request.id] = flight
                    service.in_flight += 1
                (service.urgent if urgent else service.calls).submit(partial(self._run, judged, tool, flight, out))
                return
            judged = Problem(INTERNAL_ERROR, "too many calls are in flight; wait for answers, and call again")
        if isinstance(judged, Listening):
            judged = self._listened(request.id, judged, out)
        if isinstance(judged, Listening):
            out.send(judged.line)
        else:
            out.answer(self.side.line(request.id, judged), _code(judged))

    def _listened(self, request_id: Id, listening: Listening, out: Out) -> Answer:
        with self._lock:
            if len(self._listeners) == self._service.limits.listeners:
                return Problem(INTERNAL_ERROR, "too many subscriptions are open; cancel one, and subscribe again")
            self._listeners[request_id] = (out, listening.wants_tools)
        return listening

    def _ties(self, out: Out) -> Ties:
        era = Era.STATELESS if self.side.stateless else Era.HANDSHAKE
        service = self._service
        return Ties(
            self._whose(), era, self.side.version, service.clock, service.limits, out, self._questions, service.apart
        )

    # -- calls, each on a thread of the service

    def _run(self, call: ToolCall, tool: ToolRegistration, flight: Flight, out: Out) -> None:
        answer = None if flight.cancelled else self._answer(tool, flight)
        line = None if answer is None else self.side.line(call.id, answer)
        flight.settle()
        with self._lock:
            del self._flights[call.id]  # before it is answered: from then on the agent may use the id again
            self._service.in_flight -= 1
        out.answer(line, _code(answer))
        self._service.after_call()

    def _answer(self, tool: ToolRegistration, flight: Flight) -> Answer | None:
        try:
            result = tool.handle(flight)
        except (CallCancelled, ToolProblem) as end:
            return answered(end)
        except Exception as broken:  # noqa: BLE001 - fails closed: what a tool broke is not for the agent to read
            reason = broken.reason if isinstance(broken, HarnessError) else None
            detail = f"the tool `{tool.name}` failed: {type(broken).__name__}"
            self._service.record(Odd.CALLBACK_FAILED, detail, reason)
            unknown = "" if tool.read_only else "; what it did is not known: look before you call it again"
            return Problem(INTERNAL_ERROR, f"the tool failed{unknown}")
        # What only reads can always stop; of any other tool a result after a cancellation says that it acted.
        return None if tool.read_only and flight.cancelled else result


def _code(answer: Answer | None) -> int:
    return answer.code if isinstance(answer, Problem) else 0
