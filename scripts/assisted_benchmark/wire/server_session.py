"""A small strict MCP server on two file descriptors, in both protocol eras, without threads.

The first request locks the session to its era: one with the stateless `_meta` envelope
opens the stateless era, any other the handshake era. Requests are served one at a time, in
order; those that come in the meantime wait. A handler that takes long sees cancellations
through its `Call`, which reads what has arrived whenever it is asked.

Imports stay few here: a server process pays for each of them before its first answer.
"""

from __future__ import annotations

import os
import select
from collections import deque
from typing import Final, NamedTuple, Protocol

from assisted_benchmark.kernel.errors import CanonicalError, HarnessError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import MIB, Json
from assisted_benchmark.wire.frames import (
    CANCELLED,
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    META_CAPABILITIES,
    META_SERVER_INFO,
    META_SUBSCRIPTION,
    META_VERSION,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    PROGRESS,
    STATELESS_VERSIONS,
    SUBSCRIBED,
    TOOLS_CHANGED,
    UNSUPPORTED_VERSION,
    Bad,
    Id,
    Notification,
    Request,
    Splitter,
    is_id,
    read_frame,
    write_error,
    write_notification,
    write_result,
)

_CHUNK: Final = 1 << 16
_MAX_WAITING: Final = 1024  # requests taken in while a handler runs; beyond it the pipe holds them back


class ToolProblem(HarnessError):  # noqa: N818 - what a handler raises reads as a thing, not as a crash of ours
    """What a handler raises to answer with a JSON-RPC error instead of a result."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        if not -32768 <= code <= -32000:
            raise MisuseError(Reason.MISUSE, f"the error code {code} lies outside -32768..-32000")
        super().__init__(Reason.FAILED, message)
        self.code = code
        self.data = data


class CallCancelled(HarnessError):  # noqa: N818 - as above
    """What a handler raises to stop after a cancellation: the call then gets no answer."""

    def __init__(self) -> None:
        super().__init__(Reason.CANCELLED, "the caller cancelled the call")


class Handler(Protocol):
    """What a server is, behind the session."""

    @property
    def instructions(self) -> str:
        """Words for the model, or nothing."""

    @property
    def list_changed(self) -> bool:
        """Whether the tool list may change while the server runs."""

    def info(self) -> dict[str, Json]:
        """The `serverInfo` object: at least a name and a version."""

    def tools(self) -> list[Json]:
        """The raw tool objects, as they are now."""

    def call(self, name: str, arguments: dict[str, Json], ctx: Call) -> dict[str, Json]:
        """The raw result object of one call of a tool that `tools` lists. Raises ToolProblem or CallCancelled."""


class Call:
    """One call in flight, as its handler sees it."""

    def __init__(self, session: ServerSession, request: Request, token: Id | None, capabilities: Json) -> None:
        self._session = session
        self._request = request
        self._token = token
        self._last: float | None = None
        self.capabilities = capabilities

    @property
    def cancelled(self) -> bool:
        """Whether the caller has cancelled this call by now."""
        self._session.take_in()
        return self._request.id in self._session.cancelled

    def progress(self, current: float, total: float | None = None, message: str = "") -> None:
        """Tell the caller how far the call is, if it asked for that and `current` has grown."""
        if self._token is None or (self._last is not None and current <= self._last) or self.cancelled:
            return
        self._last = current
        params: dict[str, Json] = {"progressToken": self._token, "progress": current}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        self._session.send(write_notification(PROGRESS, params))

    def announce_tools(self) -> None:
        """Tell the caller that the tool list has changed, in the way of the session's era."""
        self._session.announce_tools()


class _Problem(NamedTuple):
    """A JSON-RPC error to answer with."""

    code: int
    message: str
    data: Json = None


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
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._max_bytes = max_bytes
        self._page_size = page_size
        self._splitter = Splitter(max_bytes)
        self._waiting: deque[Request] = deque()
        self._in_flight: set[Id] = set()
        self._listeners: dict[Id, bool] = {}  # open subscriptions; whether they want to hear of tools
        self._stateless: bool | None = None
        self._initialized = False
        self._capabilities: Json = {}
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
        if not self._stateless:
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
        if isinstance(frame, Request):
            if frame.id in self._in_flight:
                data = {"reason": Reason.DUPLICATE_REQUEST_ID.value}
                self.send(write_error(frame.id, INVALID_REQUEST, "a request with this id is in flight", data))
                return
            self._in_flight.add(frame.id)
            self._waiting.append(frame)
        elif isinstance(frame, Notification):
            target = frame.params.get("requestId")
            if frame.method == CANCELLED and is_id(target) and target in self._in_flight:
                self._cancel(target)
        elif isinstance(frame, Bad) and not frame.reply:
            self.send(write_error(frame.id, frame.code, frame.detail, {"reason": frame.reason.value}))

    def _cancel(self, target: Id) -> None:
        if target in self._listeners:
            del self._listeners[target]
            self._in_flight.discard(target)
        else:
            self.cancelled.add(target)

    # -- serving

    def _serve_one(self, request: Request) -> None:
        if request.id not in self.cancelled or request.method == "initialize":
            try:
                answer = self._answer(request)
            except CallCancelled:
                answer = None
            except ToolProblem as problem:
                answer = _Problem(problem.code, problem.detail, problem.data)
            except Exception:  # noqa: BLE001 - fails closed: what a handler broke is not for the peer to read
                answer = _Problem(INTERNAL_ERROR, "the server failed")
            self._reply(request, answer)
        if request.id not in self._listeners:
            self._in_flight.discard(request.id)
        self.cancelled.discard(request.id)

    def _reply(self, request: Request, answer: dict[str, Json] | _Problem | None) -> None:
        if isinstance(answer, dict):
            try:
                self.send(write_result(request.id, self._stamped(answer)))
            except (CanonicalError, TypeError):
                answer = _Problem(INTERNAL_ERROR, "the server's result is not sound JSON")
        if isinstance(answer, _Problem):
            self.send(write_error(request.id, answer.code, answer.message, answer.data))

    def _stamped(self, result: dict[str, Json]) -> dict[str, Json]:
        if not self._stateless:
            return result
        meta = {META_SERVER_INFO: self._handler.info(), **result.get("_meta", {})}
        return {"resultType": "complete", **result, "_meta": meta}

    def _answer(self, request: Request) -> dict[str, Json] | _Problem | None:
        meta = request.params.get("_meta", {})
        if type(meta) is not dict:
            return _Problem(INVALID_PARAMS, "`_meta` is not an object")
        enveloped = META_VERSION in meta and request.method != "initialize"
        if self._stateless is None:
            self._stateless = enveloped
        if not self._stateless:
            if enveloped:
                return _Problem(INVALID_REQUEST, "this session was opened in the handshake era")
            return self._answer_in_handshake_era(request, meta)
        problem = self._envelope_problem(request, meta)
        if problem:
            return problem
        if request.method == "server/discover":
            return self._discover()
        if request.method == "subscriptions/listen" and self._handler.list_changed:
            self._listen(request)
            return None
        return self._answer_tools(request, meta, meta[META_CAPABILITIES])

    def _answer_in_handshake_era(self, request: Request, meta: dict[str, Json]) -> dict[str, Json] | _Problem:
        if request.method == "ping":
            return {}
        if request.method == "initialize":
            return self._initialize(request)
        if not self._initialized and request.method in {"tools/list", "tools/call"}:
            return _Problem(INVALID_REQUEST, "the session is not initialized")
        return self._answer_tools(request, meta, self._capabilities)

    def _answer_tools(self, request: Request, meta: dict[str, Json], capabilities: Json) -> dict[str, Json] | _Problem:
        if request.method == "tools/list":
            return self._list(request)
        if request.method == "tools/call":
            return self._call(request, meta, capabilities)
        return _Problem(METHOD_NOT_FOUND, "no such method")

    def _initialize(self, request: Request) -> dict[str, Json] | _Problem:
        version = request.params.get("protocolVersion")
        capabilities = request.params.get("capabilities")
        if self._initialized:
            return _Problem(INVALID_REQUEST, "the session is initialized already")
        if type(version) is not str or type(capabilities) is not dict:
            return _Problem(INVALID_PARAMS, "`initialize` needs a protocolVersion and capabilities")
        self._initialized = True
        self._capabilities = capabilities
        spoken = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {"protocolVersion": spoken, "serverInfo": self._handler.info(), **self._about()}

    def _discover(self) -> dict[str, Json]:
        return {"supportedVersions": list(STATELESS_VERSIONS), "ttlMs": 0, "cacheScope": "private", **self._about()}

    def _about(self) -> dict[str, Json]:
        about: dict[str, Json] = {"capabilities": {"tools": {"listChanged": self._handler.list_changed}}}
        if self._handler.instructions:
            about["instructions"] = self._handler.instructions
        return about

    def _envelope_problem(self, request: Request, meta: dict[str, Json]) -> _Problem | None:
        if request.method == "initialize":
            asked = request.params.get("protocolVersion")
            return _Problem(UNSUPPORTED_VERSION, "this session was opened in the stateless era", _supported(asked))
        version = meta.get(META_VERSION)
        if type(version) is not str or type(meta.get(META_CAPABILITIES)) is not dict:
            return _Problem(INVALID_PARAMS, f"`_meta` needs `{META_VERSION}` and `{META_CAPABILITIES}`")
        if version not in STATELESS_VERSIONS:
            return _Problem(UNSUPPORTED_VERSION, "this protocol version is not spoken here", _supported(version))
        return None

    def _listen(self, request: Request) -> None:
        wanted = request.params.get("notifications")
        wants = type(wanted) is dict and wanted.get("toolsListChanged") is True
        self._listeners[request.id] = wants
        honoured = {"toolsListChanged": True} if wants else {}
        params = {"notifications": honoured, "_meta": {META_SUBSCRIPTION: request.id}}
        self.send(write_notification(SUBSCRIBED, params))

    def _list(self, request: Request) -> dict[str, Json] | _Problem:
        tools = self._handler.tools()
        cursor = request.params.get("cursor", "0")
        if type(cursor) is not str or not cursor.isdecimal() or len(cursor) > 9 or int(cursor) > len(tools):
            return _Problem(INVALID_PARAMS, "the cursor is not one of ours")
        start = int(cursor)
        end = len(tools) if self._page_size is None else start + self._page_size
        page: dict[str, Json] = {"tools": tools[start:end]}
        if end < len(tools):
            page["nextCursor"] = str(end)
        if self._stateless:
            page.update(ttlMs=0, cacheScope="private")
        return page

    def _call(self, request: Request, meta: dict[str, Json], capabilities: Json) -> dict[str, Json] | _Problem:
        name = request.params.get("name")
        arguments = request.params.get("arguments", {})
        token = meta.get("progressToken")
        if type(name) is not str or type(arguments) is not dict or not (token is None or is_id(token)):
            return _Problem(INVALID_PARAMS, "a call needs a name, and arguments that are an object")
        if not any(tool["name"] == name for tool in self._handler.tools()):
            return _Problem(INVALID_PARAMS, "no such tool")
        return self._handler.call(name, arguments, Call(self, request, token, capabilities))


def _supported(requested: Json) -> dict[str, Json]:
    """The data of an unsupported version error."""
    data: dict[str, Json] = {"supported": list(STATELESS_VERSIONS)}
    if type(requested) is str:
        data["requested"] = requested
    return data
