"""One line of UTF-8 is one JSON-RPC message: bytes to lines to frames, and back.

`Splitter` cuts a byte stream into lines, within a bound and in linear time. `read_frame`
admits one line as a `Request`, a `Notification` or a `Response`, or says why it is `Bad`.
The `write_*` functions make one line each. Values stay raw: keys that nobody here knows
are kept, since a digest over them must see them.

What JSON-RPC leaves open is closed here: an id is a string or a safe integer, `params` is
an object, batches are refused, and a method is a notification exactly if its name begins
with `notifications/`, so that a request that forgot its id is told apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import CanonicalError, MisuseError
from assisted_benchmark.kernel.strict_json import SAFE_INTEGER, Json, check, parse_strictly

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS: Final = ("2026-07-28",)

# Reserved `_meta` keys of the stateless era.
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"

CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
SUBSCRIBED: Final = "notifications/subscriptions/acknowledged"

Id: TypeAlias = str | int
Parser: TypeAlias = Callable[[bytes, int], Json]


class Request(NamedTuple):
    """A call that wants an answer. `params` is empty if there were none."""

    id: Id
    method: str
    params: dict[str, Json]


class Notification(NamedTuple):
    """A message that wants no answer."""

    method: str
    params: dict[str, Json]


class Response(NamedTuple):
    """An answer. Exactly one of `result` and `error` is there; `id` is None if the peer could not read ours."""

    id: Id | None
    result: Json = None
    error: dict[str, Json] | None = None


class Bad(NamedTuple):
    """A line that is no message. `code` is the JSON-RPC error it deserves.

    `id` is given where it can be read. `reply` says that the line poses as a response, and a
    bad response is never answered.
    """

    reason: Reason
    code: int
    detail: str
    id: Id | None = None
    reply: bool = False


Frame: TypeAlias = Request | Notification | Response | Bad


class Splitter:
    """Bytes in, complete lines out; what is left waits for its end.

    A line beyond the bound comes out as `Bad` once, as soon as it crosses the bound, and is
    then skipped to its end without being kept. Each byte is looked at once and joined once.
    """

    __slots__ = ("_kept", "_max_bytes", "_pieces", "_skipping")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._kept = 0
        self._skipping = False

    @property
    def half(self) -> bool:
        """Whether a line was begun and not ended."""
        return self._skipping or self._kept > 0

    def feed(self, chunk: bytes) -> list[bytes | Bad]:
        """The lines (without their LF) that end in this chunk, in order."""
        if not self._kept and not self._skipping and chunk.find(b"\n") == len(chunk) - 1 <= self._max_bytes:
            return [chunk[:-1]] if chunk else []  # one whole line: nearly every chunk
        *ends, begun = chunk.split(b"\n")
        lines: list[bytes | Bad] = []
        for end in ends:
            self._keep(end, lines)
            if not self._skipping:
                lines.append(b"".join(self._pieces) if len(self._pieces) > 1 else end)
            self._pieces.clear()
            self._kept = 0
            self._skipping = False
        if begun:
            self._keep(begun, lines)
        return lines

    def _keep(self, piece: bytes, lines: list[bytes | Bad]) -> None:
        if self._skipping:
            return
        self._kept += len(piece)
        if self._kept > self._max_bytes:
            self._pieces.clear()
            self._kept = 0
            self._skipping = True
            detail = f"a line of more than {self._max_bytes} bytes"
            lines.append(Bad(Reason.TOO_LARGE, INVALID_REQUEST, detail))
        else:
            self._pieces.append(piece)


def is_id(value: Json) -> bool:
    """Whether a value may be a request id: a string or a safe integer, and no boolean."""
    return type(value) is str or (type(value) is int and -SAFE_INTEGER <= value <= SAFE_INTEGER)


def read_frame(line: bytes, max_bytes: int, parse: Parser = parse_strictly) -> Frame:
    """Admit one line, or say why not. Never raises on any bytes."""
    try:
        value = parse(line, max_bytes)
    except CanonicalError as error:
        request_id, reply = _glimpse(line)
        return Bad(error.reason, PARSE_ERROR, error.detail, request_id, reply)
    if type(value) is not dict:
        batch = type(value) is list
        return _bad("a batch, where each line is one message" if batch else "the message is not an object")
    request_id = value.get("id")
    known_id: Id | None = request_id if is_id(request_id) else None
    if known_id is not None and len(value) == 3 and "result" in value and value.get("jsonrpc") == "2.0":
        return Response(known_id, value["result"])  # nearly every answer; the rest explains the others
    reply = "method" not in value and ("result" in value or "error" in value)
    fault = _envelope_fault(value, known_id)
    if fault:
        return _bad(fault, known_id, reply=reply)
    if reply:
        return Response(known_id, value.get("result"), value.get("error"))
    params = value.get("params", {})
    if known_id is None:
        return Notification(value["method"], params)
    return Request(known_id, value["method"], params)


def _envelope_fault(value: dict[str, Json], known_id: Id | None) -> str:
    """What is wrong around a message, or the empty string."""
    if value.get("jsonrpc") != "2.0":
        return '`jsonrpc` is not "2.0"'
    if "id" in value and known_id is None and not (value["id"] is None and "error" in value and "method" not in value):
        return "the id is neither a string nor a safe integer"
    if "method" not in value:
        return _reply_fault(value)
    method = value["method"]
    if "result" in value or "error" in value:
        return "a message cannot be both a call and an answer"
    if type(method) is not str:
        return "the method is not a string"
    if type(value.get("params", {})) is not dict:
        return "the params are not an object"
    if method.startswith("notifications/") == ("id" in value):
        return "a notification has an id" if "id" in value else "a request has no id"
    return ""


def _reply_fault(value: dict[str, Json]) -> str:
    if "id" not in value:
        return "neither a method nor an id"
    if ("result" in value) == ("error" in value):
        return "an answer needs either a result or an error"
    if "error" in value:
        error = value["error"]
        if type(error) is not dict or type(error.get("code")) is not int or type(error.get("message")) is not str:
            return "the error is not an object with an integer code and a message"
    return ""


def _bad(detail: str, request_id: Id | None = None, *, reply: bool = False) -> Bad:
    return Bad(Reason.MALFORMED_FRAME, INVALID_REQUEST, detail, request_id, reply)


def _small(text: str) -> int | None:
    return int(text) if len(text) <= 17 else None


# Objects become tuples of pairs, so that an id that stands twice is seen; numbers that are no ids vanish.
_LENIENT: Final = json.JSONDecoder(
    object_pairs_hook=tuple, parse_int=_small, parse_float=lambda _: None, parse_constant=lambda _: None
)


def _glimpse(line: bytes) -> tuple[Id | None, bool]:
    """The id of a line that was refused, if it can be read beyond doubt, and whether the line poses as a response."""
    try:
        pairs = _LENIENT.decode(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None, False
    if type(pairs) is not tuple:
        return None, False
    keys = {key for key, _ in pairs}
    ids = [value for key, value in pairs if key == "id"]
    reply = "method" not in keys and not keys.isdisjoint({"result", "error"})
    if len(ids) != 1 or not is_id(ids[0]) or not _clean(ids[0]):
        return None, reply
    return ids[0], reply


def _clean(request_id: Id) -> bool:
    """Whether an id was read from sound bytes and can be written back."""
    return type(request_id) is int or not any(
        char in "\x00\ufffd" or "\ud800" <= char <= "\udfff" for char in str(request_id)
    )


def write_message(message: dict[str, Json]) -> bytes:
    """One message as one line.

    Raises:
        CanonicalError: the message holds what `read_frame` would refuse.
    """
    check(message)
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def write_request(request_id: Id, method: str, params: dict[str, Json]) -> bytes:
    """A request's line."""
    return write_message({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def write_notification(method: str, params: dict[str, Json]) -> bytes:
    """A notification's line."""
    return write_message({"jsonrpc": "2.0", "method": method, "params": params})


def write_result(request_id: Id, result: dict[str, Json]) -> bytes:
    """The line of an answer that succeeded."""
    return write_message({"jsonrpc": "2.0", "id": request_id, "result": result})


def write_passed(request_id: Id, result: bytes) -> bytes:
    """The line of an answer that succeeded, with `result` (a JSON object's bytes) spliced in to the byte.

    Raises:
        MisuseError: the bytes would not stay one line, or are no object.
    """
    if result[:1] != b"{" or b"\n" in result:
        raise MisuseError(Reason.MISUSE, "a result is passed on as the bytes of one JSON object without a line break")
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (json.dumps(request_id, ensure_ascii=False).encode(), result)


def write_error(request_id: Id | None, code: int, message: str, data: Json = None) -> bytes:
    """The line of an answer that failed; without an id where none could be read."""
    error: dict[str, Json] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return write_message({"jsonrpc": "2.0", "id": request_id, "error": error})


def write_call(request_id: int, tool: str, arguments: bytes, meta: bytes = b"", more: bytes = b"") -> bytes:
    """A `tools/call` line with `arguments` (a JSON object's bytes) and `meta` spliced in to the byte.

    `more` are further members of its params, each after a comma.

    Raises:
        MisuseError: the bytes would not stay one line, or are no object.
    """
    if arguments[:1] != b"{" or b"\n" in arguments:
        raise MisuseError(Reason.MISUSE, "arguments are sent as the bytes of one JSON object without a line break")
    tail = more + b',"_meta":' + meta if meta else more
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%b,"arguments":%b%b}}\n' % (
        request_id,
        _spelled(tool),
        arguments,
        tail,
    )


@lru_cache(maxsize=256)
def _spelled(tool: str) -> bytes:
    return json.dumps(tool, ensure_ascii=False).encode()
