"""What a strict MCP server answers in both protocol eras, apart from how it reads, writes and waits.

The first request locks the session to its era: one with the stateless `_meta` envelope
opens the stateless era, any other the handshake era. Both server sessions stand on this,
the one without threads and the concurrent one.

Imports stay few here: a server process pays for each of them before its first answer.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import CanonicalError, HarnessError, MisuseError
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.frames import (
    CANCELLED,
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_SERVER_INFO,
    META_SUBSCRIPTION,
    META_VERSION,
    METHOD_NOT_FOUND,
    PROGRESS,
    STATELESS_VERSIONS,
    SUBSCRIBED,
    UNSUPPORTED_VERSION,
    Bad,
    Frame,
    Id,
    Notification,
    Request,
    is_id,
    write_error,
    write_notification,
    write_passed,
    write_result,
)

# What the stateless era wants to be said of a list: it is good for this once, for this caller.
UNCACHED: Final[dict[str, Json]] = {"ttlMs": 0, "cacheScope": "private"}

_LIST: Final = "tools/list"
CALL: Final = "tools/call"


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


class Offer(Protocol):
    """What a server is and has."""

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


class Problem(NamedTuple):
    """A JSON-RPC error to answer with."""

    code: int
    message: str
    data: Json = None


class ToolCall(NamedTuple):
    """A call of a tool that is offered. `token` is the caller's progress token; `params` are all there were.

    Or a request of another `method` that the server has: it names no tool, and all its params are arguments.
    """

    id: Id
    name: str
    arguments: dict[str, Json]
    token: Id | None
    capabilities: Json
    params: dict[str, Json]
    method: str = CALL


class Also(NamedTuple):
    """What a server has beside the tools it lists: the capabilities that say so, the methods that come to it as calls.

    `unlisted` are tools that a caller is not shown now, but may have been: their calls come to it all the same.
    """

    capabilities: dict[str, Json]
    methods: frozenset[str]
    unlisted: frozenset[str] = frozenset()


class Listening(NamedTuple):
    """A subscription that is opened by `line`, and is not answered before it ends."""

    line: bytes
    wants_tools: bool


class Passed(NamedTuple):
    """Another server's result, passed on as it came: the bytes of one object, which were admitted as strict JSON.

    Of the handshake era alone; in the other one every result says more of itself.
    """

    data: bytes


Answer: TypeAlias = dict[str, Json] | Passed | Problem | Listening


class ServerSide:
    """One session's protocol state, and what each request deserves. Does no input or output."""

    def __init__(self, offer: Offer, page_size: int | None = None, also: Also | None = None) -> None:
        self._offer = offer
        self._also = also or Also({}, frozenset())
        self._page_size = page_size
        self._capabilities: Json = {}
        self.stateless: bool | None = None  # None until the first request
        self.version = ""  # as agreed; empty before the handshake
        self.client: Json = None  # what the client first said that it is; nothing is decided by it

    def judge(self, request: Request) -> Answer | ToolCall:
        """The answer to a request, or the call that it is."""
        meta = request.params.get("_meta", {})
        if type(meta) is not dict:
            return Problem(INVALID_PARAMS, "`_meta` is not an object")
        enveloped = META_VERSION in meta and request.method != "initialize"
        if self.stateless is None:
            self.stateless = enveloped
        if not self.stateless:
            if enveloped:
                return Problem(INVALID_REQUEST, "this session was opened in the handshake era")
            return self._judge_in_handshake_era(request, meta)
        problem = _envelope_problem(request, meta)
        if problem:
            return problem
        self.version = meta[META_VERSION]
        self.client = self.client or meta.get(META_CLIENT_INFO)
        if request.method == "server/discover":
            return self._discover()
        if request.method == "subscriptions/listen" and self._offer.list_changed:
            return _listening(request)
        return self._judge_tools(request, meta, meta[META_CAPABILITIES])

    def line(self, request_id: Id, answer: Answer) -> bytes:
        """The line of an answer, with what its era adds; of a result that is no sound JSON, an error's."""
        if isinstance(answer, dict | Passed):
            try:
                if isinstance(answer, Passed):
                    return write_passed(request_id, answer.data)
                return write_result(request_id, self._stamped(answer))
            except (CanonicalError, MisuseError, TypeError):
                answer = Problem(INTERNAL_ERROR, "the server's result is not sound JSON")
        if isinstance(answer, Listening):
            return answer.line
        return write_error(request_id, answer.code, answer.message, answer.data)

    def _stamped(self, result: dict[str, Json]) -> dict[str, Json]:
        if not self.stateless:
            return result
        meta = {META_SERVER_INFO: self._offer.info(), **result.get("_meta", {})}
        return {"resultType": "complete", **result, "_meta": meta}

    def _judge_in_handshake_era(self, request: Request, meta: dict[str, Json]) -> Answer | ToolCall:
        if request.method == "ping":
            return {}
        if request.method == "initialize":
            return self._initialize(request)
        if not self.version and (request.method in {_LIST, CALL} or request.method in self._also.methods):
            return Problem(INVALID_REQUEST, "the session is not initialized")
        return self._judge_tools(request, meta, self._capabilities)

    def _judge_tools(self, request: Request, meta: dict[str, Json], capabilities: Json) -> Answer | ToolCall:
        if request.method == _LIST:
            return self._list(request)
        if request.method == CALL or request.method in self._also.methods:
            return self._call(request, meta, capabilities)
        return Problem(METHOD_NOT_FOUND, "no such method")

    def _initialize(self, request: Request) -> Answer:
        version = request.params.get("protocolVersion")
        capabilities = request.params.get("capabilities")
        if self.version:
            return Problem(INVALID_REQUEST, "the session is initialized already")
        if type(version) is not str or type(capabilities) is not dict:
            return Problem(INVALID_PARAMS, "`initialize` needs a protocolVersion and capabilities")
        self._capabilities = capabilities
        self.client = request.params.get("clientInfo")
        self.version = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {"protocolVersion": self.version, "serverInfo": self._offer.info(), **self._about()}

    def _discover(self) -> dict[str, Json]:
        return {"supportedVersions": list(STATELESS_VERSIONS), **UNCACHED, **self._about()}

    def _about(self) -> dict[str, Json]:
        capabilities = {"tools": {"listChanged": self._offer.list_changed}, **self._also.capabilities}
        about: dict[str, Json] = {"capabilities": capabilities}
        if self._offer.instructions:
            about["instructions"] = self._offer.instructions
        return about

    def _list(self, request: Request) -> Answer:
        listed = page("tools", self._offer.tools(), request.params, self._page_size)
        return {**listed, **UNCACHED} if self.stateless and isinstance(listed, dict) else listed

    def _call(self, request: Request, meta: dict[str, Json], capabilities: Json) -> Problem | ToolCall:
        name = request.params.get("name")
        arguments = request.params.get("arguments", {})
        token = meta.get("progressToken")
        if not (token is None or is_id(token)):
            return _no_call("a progress token is a text or an integer")
        if request.method != CALL:
            return ToolCall(request.id, "", request.params, token, capabilities, request.params, request.method)
        if type(name) is not str or type(arguments) is not dict:
            return _no_call("a call needs a name, and arguments that are an object")
        if name not in self._also.unlisted and not any(tool["name"] == name for tool in self._offer.tools()):
            return _no_call("no such tool", Reason.UNKNOWN_TOOL)
        state, answers = request.params.get("requestState", ""), request.params.get("inputResponses", {})
        if self.stateless and (type(state) is not str or type(answers) is not dict):
            return _no_call("a call that resumes another has a `requestState` that is a string")
        return ToolCall(request.id, name, arguments, token, capabilities, request.params)


def page(key: str, items: Sequence[Json], params: dict[str, Json], size: int | None) -> dict[str, Json] | Problem:
    """The part of a list that the params' cursor asks for, under its key."""
    cursor = params.get("cursor", "0")
    if type(cursor) is not str or not cursor.isdecimal() or len(cursor) > 9 or int(cursor) > len(items):
        return Problem(INVALID_PARAMS, "the cursor is not one of ours")
    start = int(cursor)
    end = len(items) if size is None else start + size
    part: dict[str, Json] = {key: items[start:end]}
    return {**part, "nextCursor": str(end)} if end < len(items) else part


class Steps:
    """The progress of one call: only forward, and only if the caller gave a token for it."""

    def __init__(self, token: Id | None) -> None:
        self._token = token
        self._last: float | None = None

    def line(self, current: float, total: float | None, message: str) -> bytes | None:
        """The notification's line, or None where there is nothing to tell."""
        if self._token is None or (self._last is not None and current <= self._last):
            return None
        self._last = current
        params: dict[str, Json] = {"progressToken": self._token, "progress": current}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        return write_notification(PROGRESS, params)


def refusal(frame: Frame, in_flight: Container[Id]) -> bytes | None:
    """The line that answers a frame which is not taken in, or None. A bad response is never answered."""
    if isinstance(frame, Bad) and not frame.reply:
        return write_error(frame.id, frame.code, frame.detail, {"reason": frame.reason.value})
    if isinstance(frame, Request) and frame.id in in_flight:
        data = {"reason": Reason.DUPLICATE_REQUEST_ID.value}
        return write_error(frame.id, INVALID_REQUEST, "a request with this id is in flight", data)
    return None


def cancels(frame: Frame) -> Id | None:
    """The id of the request that a frame cancels, or None."""
    if not isinstance(frame, Notification) or frame.method != CANCELLED:
        return None
    target = frame.params.get("requestId")
    return target if is_id(target) else None


def answered(error: HarnessError) -> Problem | None:
    """How a call ends whose handler raised one of the two errors that it may; None is without an answer."""
    return Problem(error.code, error.detail, error.data) if isinstance(error, ToolProblem) else None


def _no_call(message: str, reason: Reason = Reason.MALFORMED_CALL) -> Problem:
    return Problem(INVALID_PARAMS, message, {"reason": reason.value})


def _envelope_problem(request: Request, meta: dict[str, Json]) -> Problem | None:
    if request.method == "initialize":
        asked = request.params.get("protocolVersion")
        return Problem(UNSUPPORTED_VERSION, "this session was opened in the stateless era", _supported(asked))
    version = meta.get(META_VERSION)
    if type(version) is not str or type(meta.get(META_CAPABILITIES)) is not dict:
        return Problem(INVALID_PARAMS, f"`_meta` needs `{META_VERSION}` and `{META_CAPABILITIES}`")
    if version not in STATELESS_VERSIONS:
        return Problem(UNSUPPORTED_VERSION, "this protocol version is not spoken here", _supported(version))
    return None


def _supported(requested: Json) -> dict[str, Json]:
    """The data of an unsupported version error."""
    data: dict[str, Json] = {"supported": list(STATELESS_VERSIONS)}
    if type(requested) is str:
        data["requested"] = requested
    return data


def _listening(request: Request) -> Listening:
    wanted = request.params.get("notifications")
    wants = type(wanted) is dict and wanted.get("toolsListChanged") is True
    honoured = {"toolsListChanged": True} if wants else {}
    params = {"notifications": honoured, "_meta": {META_SUBSCRIPTION: request.id}}
    return Listening(write_notification(SUBSCRIBED, params), wants)
