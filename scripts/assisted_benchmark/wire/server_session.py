"""A small strict MCP server on two file descriptors, in both protocol eras, without threads.

Requests are served one at a time, in order; those that come in the meantime wait. A handler
that takes long sees cancellations through its `Call`, which reads what has arrived whenever
it is asked.

Imports stay few here: a server process pays for each of them before its first answer.
"""

from __future__ import annotations

import os
import select
from collections import deque
from typing import Final, Protocol

from assisted_benchmark.kernel.strict_json import MIB, Json
from assisted_benchmark.wire.frames import (
    INTERNAL_ERROR,
    META_SUBSCRIPTION,
    PARSE_ERROR,
    TOOLS_CHANGED,
    Bad,
    Id,
    Request,
    Splitter,
    read_frame,
    write_error,
    write_notification,
)
from assisted_benchmark.wire.server_side import (
    Answer,
    CallCancelled,
    Listening,
    Offer,
    Problem,
    ServerSide,
    Steps,
    ToolCall,
    ToolProblem,
    answered,
    cancels,
    refusal,
)

_CHUNK: Final = 1 << 16
_MAX_WAITING: Final = 1024  # requests taken in while a handler runs; beyond it the pipe holds them back


class Handler(Offer, Protocol):
    """What a server is, behind the session."""

    def call(self, name: str, arguments: dict[str, Json], ctx: Call) -> dict[str, Json]:
        """The raw result object of one call of a tool that `tools` lists. Raises ToolProblem or CallCancelled."""


class Call:
    """One call in flight, as its handler sees it."""

    def __init__(self, session: ServerSession, call: ToolCall) -> None:
        self._session = session
        self._id = call.id
        self._steps = Steps(call.token)
        self.capabilities = call.capabilities

    @property
    def cancelled(self) -> bool:
        """Whether the caller has cancelled this call by now."""
        self._session.take_in()
        return self._id in self._session.cancelled

    def progress(self, current: float, total: float | None = None, message: str = "") -> None:
        """Tell the caller how far the call is, if it asked for that and `current` has grown."""
        line = self._steps.line(current, total, message)
        if line and not self.cancelled:
            self._session.send(line)

    def announce_tools(self) -> None:
        """Tell the caller that the tool list has changed, in the way of the session's era."""
        self._session.announce_tools()


class ServerSession:
    """Serves one peer on two descriptors until it closes its side."""

    def __init__(
        self,
        handler: Handler,
        read_fd: int = 0,
        write_fd: int = 1,
        *,
        max_bytes: int = MIB,
        page_size: int | None = None,
    ) -> None:
        self._handler = handler
        self._side = ServerSide(handler, page_size)
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._max_bytes = max_bytes
        self._splitter = Splitter(max_bytes)
        self._waiting: deque[Request] = deque()
        self._in_flight: set[Id] = set()
        self._listeners: dict[Id, bool] = {}  # open subscriptions; whether they want to hear of tools
        self._eof = False
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)
        self.cancelled: set[Id] = set()

    def serve(self) -> None:
        """Answer until the peer closes its side or stops reading ours."""
        try:
            while not self._eof:
                self._read()
                while self._waiting:
                    self._serve_one(self._waiting.popleft())
        except BrokenPipeError:
            return

    def send(self, line: bytes) -> None:
        """Write one line, whole."""
        view = memoryview(line)
        while view:
            view = view[os.write(self._write_fd, view) :]

    def take_in(self) -> None:
        """Read what has arrived, without waiting for more."""
        while not self._eof and len(self._waiting) < _MAX_WAITING and self._poll.poll(0):
            self._read()

    def announce_tools(self) -> None:
        """Tell the peer that the tool list has changed, if it can be told."""
        if not self._side.stateless:
            self.send(write_notification(TOOLS_CHANGED, {}))
        for listener in [each for each, wants in self._listeners.items() if wants]:
            self.send(write_notification(TOOLS_CHANGED, {"_meta": {META_SUBSCRIPTION: listener}}))

    # -- taking in

    def _read(self) -> None:
        chunk = os.read(self._read_fd, _CHUNK)
        if not chunk:
            self._eof = True
            if self._splitter.half:
                self.send(write_error(None, PARSE_ERROR, "the last line has no end"))
        for line in self._splitter.feed(chunk):
            self._take(line)

    def _take(self, line: bytes | Bad) -> None:
        frame = line if isinstance(line, Bad) else read_frame(line, self._max_bytes)
        refused = refusal(frame, self._in_flight)
        target = cancels(frame)
        if refused:
            self.send(refused)
        elif isinstance(frame, Request):
            self._in_flight.add(frame.id)
            self._waiting.append(frame)
        elif target in self._listeners:
            del self._listeners[target]
            self._in_flight.discard(target)
        elif target in self._in_flight:
            self.cancelled.add(target)

    # -- serving

    def _serve_one(self, request: Request) -> None:
        if request.id not in self.cancelled or request.method == "initialize":
            answer = self._answer(request)
            if answer is not None:
                self.send(self._side.line(request.id, answer))
        if request.id not in self._listeners:
            self._in_flight.discard(request.id)
        self.cancelled.discard(request.id)

    def _answer(self, request: Request) -> Answer | None:
        try:
            judged = self._side.judge(request)
            if isinstance(judged, Listening):
                self._listeners[request.id] = judged.wants_tools
            if isinstance(judged, ToolCall):
                return self._handler.call(judged.name, judged.arguments, Call(self, judged))
        except (CallCancelled, ToolProblem) as end:
            return answered(end)
        except Exception:  # noqa: BLE001 - fails closed: what a handler broke is not for the peer to read
            return Problem(INTERNAL_ERROR, "the server failed")
        return judged
