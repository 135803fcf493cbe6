"""The way to one Streamable HTTP server: each frame is one POST on a connection of its own, never made twice.

A connection serves one request and is closed: none can be stale when it is written to. It stands before the gate is
asked. What comes in answers, as JSON or as the events of a stream, comes out as `lines`, like those of a process. A
request whose answer can no longer come is `lost`: nobody follows a redirect, resumes a stream, begins a session anew
or asks again. The stream that a client may open by a GET is not opened.
"""

from __future__ import annotations

import base64
import re
import select
import socket
import ssl
from collections import deque
from typing import Final

import orjson
from attrs import field, frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.kernel.origin import Origin
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.redact import REDACTED
from assisted_benchmark.wire.bell import Bell
from assisted_benchmark.wire.frames import CANCELLED, META_VERSION, Bad
from assisted_benchmark.wire.http_answers import BLOCKED, Answer
from assisted_benchmark.wire.http_connecting import OtherCertificateError, connect, seconds

SESSION_ID: Final = "Mcp-Session-Id"

_POST_NS: Final = SECOND  # how long what nobody waits for may take
_MILLISECOND: Final = 1_000_000
_LONGEST: Final = 2**31 - 1  # milliseconds that poll(2) can count
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN: Final = re.compile(r"(?!=\?)[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_SESSION: Final = re.compile(r"[\x21-\x7e]{1,1024}")
_LISTEN: Final = "subscriptions/listen"
_SHORT: Final = 3


@frozen
class Endpoint:
    """Where a server is, and how it is spoken to. `headers` hold secrets: they are in no text about it."""

    origin: Origin
    target: str
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    pin: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class HttpChannel:
    """A `Carrier` over HTTP. `max_line` bounds one message of the server's."""

    def __init__(self, endpoint: Endpoint, *, max_line: int) -> None:
        self._endpoint = endpoint
        self._max_line = max_line
        self._secrets = _secrets(endpoint.headers)
        self._bell = Bell()
        self._version = ""
        self._session = ""
        self._ready: socket.socket | None = None  # stands, and nothing or a part of a frame is written to it
        self._next: Answer | None = None  # what the framed request will get
        self._open: dict[int, Answer] = {}  # by descriptor
        self._lost: dict[int, str] = {}
        self._why = "the session is closed, so nobody answers"
        self.reason = Reason.SERVER_UNAVAILABLE
        self.lines: deque[bytes | Bad] = deque()
        self.tail = b""
        self.eof = False
        self.half = False
        self.broken = False
        self.more = False
        self.mid_frame = False

    @property
    def clear(self) -> bool:
        """Whether a connection stands for the next frame."""
        return self._ready is not None

    def framed(self, frame: bytes) -> bytes:
        """The whole request for this frame."""
        message = orjson.loads(frame)
        answer = Answer(message.get("id") if "method" in message else None, message.get("method", ""), self._max_line)
        self._next = answer
        body = frame[:-1]
        return answer.begin("POST", self._endpoint.target, self._head(message, len(body)), body)

    def wait(self, deadline: Deadline, *, writing: bool = False) -> bool:
        """Sleep until something happens; with `writing`, have a connection first."""
        remaining = deadline.remaining_ns()
        if remaining == 0:
            return False
        if writing and self._ready is None:
            try:
                self._ready = self._connected(deadline)
            except OSError as error:
                self._end(
                    "its certificate is not the pinned one, so it was never asked for"
                    if isinstance(error, OtherCertificateError)
                    else "no connection to the server stands, so it never answered",
                    Reason.ARTIFACT_DRIFT if isinstance(error, OtherCertificateError) else Reason.SERVER_UNAVAILABLE,
                )
            return True
        return self._take_in(min(-(-remaining // _MILLISECOND), _LONGEST), writing=writing)

    def drain(self) -> bool:
        """Take in what has arrived, without waiting for more; False if nothing has."""
        self.more = False
        return self._take_in(0)

    def ring(self) -> None:
        """Wake a thread that waits; from any thread."""
        self._bell.ring()

    def write(self, data: memoryview) -> int:
        """Write what the connection takes now and say how much that was."""
        ready, answer = self._ready, self._next
        assert ready is not None and answer is not None  # noqa: S101, PT018 - whoever writes has framed, and is `clear`
        try:
            written = ready.send(data)
        except BLOCKED:
            return 0
        except OSError:
            self._end("the connection was cut before the server answered")
            return 0
        if written == len(data):
            answer.connected = ready
            self._open[ready.fileno()] = answer
            self._ready = None
        return written

    def post(self, frame: bytes) -> bool:
        """Make a request that nobody waits for, and hear that it was taken; False if it was not, in a short time."""
        message = orjson.loads(frame)
        if not self._version:
            return self._posted_stateless(message)
        deadline = Deadline.after(SystemClock(), _POST_NS)
        answer = Answer(None, message.get("method", ""), self._max_line)
        return self._made(answer, "POST", self._head(message, len(frame) - 1), frame[:-1], deadline)

    def lost(self, request_id: int) -> str:
        """Why this request gets no answer any more, or nothing."""
        return self._lost.get(request_id) or (self._why if self.eof else "")

    def agreed(self, version: str) -> None:
        """From now on requests are said to be of this version."""
        self._version = version

    def settle(self) -> None:
        """No request is awaited any more: its connection is closed, and so is one that none was written to."""
        for fd, answer in list(self._open.items()):
            if answer.method != _LISTEN:
                self._drop(fd)
        self._let_go()
        self._lost.clear()

    def hang_up(self) -> None:
        """Nothing more can be written, and nothing is heard."""
        self._end(self._why, self.reason)

    def finish(self, deadline: Deadline) -> bool:
        """Tell the server that its session is over, if it gave one."""
        if self._session and not self.broken:
            head = [("Host", self._endpoint.origin.authority), ("Connection", "close"), *self._session_head()]
            self._made(Answer(None, "", self._max_line), "DELETE", head, b"", deadline.child(_POST_NS))
        self.hang_up()
        return True

    def close(self) -> None:
        """Let go of every descriptor. Idempotent."""
        self.hang_up()
        self._bell.close()

    # -- inside

    def _head(self, message: dict[str, Json], length: int) -> list[tuple[str, str]]:
        head = [
            ("Host", self._endpoint.origin.authority),
            ("Connection", "close"),
            ("Accept", "application/json, text/event-stream"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "assisted-benchmark"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(length)),
        ]
        version = _meta(message).get(META_VERSION)
        if version is None:
            return [*head, *self._session_head()]
        method = message["method"]
        head += [("MCP-Protocol-Version", version), ("Mcp-Method", method)]
        if method in _NAMED:
            head.append(("Mcp-Name", _encoded(message["params"][_NAMED[method]])))
        return [*head, *self._endpoint.headers]

    def _session_head(self) -> list[tuple[str, str]]:
        head = [("MCP-Protocol-Version", self._version)] if self._version else []
        return [*head, *([(SESSION_ID, self._session)] if self._session else []), *self._endpoint.headers]

    def _connected(self, deadline: Deadline) -> socket.socket:
        found = connect(self._endpoint.origin, self._endpoint.tls, deadline, self._endpoint.pin)
        found.setblocking(False)
        return found

    def _posted_stateless(self, message: dict[str, Json]) -> bool:
        """That era has no messages but requests; a call is cancelled by closing what it would be answered on."""
        if message.get("method") != CANCELLED:
            return False
        for fd, answer in list(self._open.items()):
            if answer.request_id == message["params"]["requestId"]:
                self._drop(fd)
                self._lose(answer, "the call was cancelled before the server answered")
                self.ring()
        return True

    def _made(self, answer: Answer, method: str, head: list[tuple[str, str]], body: bytes, deadline: Deadline) -> bool:
        """Write a request at once, and wait for its answer's head; False if it is none of success."""
        if self.broken:
            return False
        try:
            made = connect(self._endpoint.origin, self._endpoint.tls, deadline, self._endpoint.pin)
        except OSError:
            return False
        answer.connected = made
        try:
            made.settimeout(seconds(deadline))
            made.sendall(answer.begin(method, self._endpoint.target, head, body))
            made.setblocking(False)
        except OSError:
            made.close()
            return False
        fd = made.fileno()
        self._open[fd] = answer
        while not answer.status and fd in self._open and (left := deadline.remaining_ns()):
            self._take_in(-(-left // _MILLISECOND))
        self._drop(fd)
        self.ring()  # what came for others meanwhile is there already, and no poll would tell of it
        return 200 <= answer.status < 300

    def _take_in(self, milliseconds: int, *, writing: bool = False) -> bool:
        poll = select.poll()
        if self._bell.fd >= 0:
            poll.register(self._bell.fd, select.POLLIN)
        pending = False
        for fd, answer in self._open.items():
            poll.register(fd, select.POLLIN)
            pending = pending or answer.pending
        if writing and self._ready is not None:
            poll.register(self._ready.fileno(), select.POLLOUT)
        happened = {fd for fd, _ in poll.poll(0 if pending else milliseconds)}
        if self._bell.fd in happened:
            self._bell.silence()
        for fd, answer in list(self._open.items()):
            if fd in happened or answer.pending:
                self._read(fd, answer)
        return bool(happened) or pending

    def _read(self, fd: int, answer: Answer) -> None:
        for line in answer.read():
            self.lines.append(line if isinstance(line, Bad) else self._redacted(line))
        self.more = self.more or answer.more
        if answer.method == "initialize" and _SESSION.fullmatch(answer.session):
            self._session = answer.session
        if answer.over:
            self._drop(fd)
            if answer.status == 404 and self._session:
                self._end("the server says that the session is over, and never answered")
            elif answer.over:
                self._lose(answer, answer.over)

    def _redacted(self, line: bytes) -> bytes:
        for secret, instead in self._secrets:
            line = line.replace(secret, instead)
        return line

    def _lose(self, answer: Answer, why: str) -> None:
        if answer.request_id is not None:
            self._lost[answer.request_id] = why

    def _drop(self, fd: int) -> None:
        answer = self._open.pop(fd, None)
        if answer is not None and answer.connected is not None:
            answer.connected.close()

    def _let_go(self) -> None:
        if self._ready is not None:
            self._ready.close()
            self._ready = None

    def _end(self, why: str, reason: Reason = Reason.SERVER_UNAVAILABLE) -> None:
        """The server can no longer be asked."""
        if not self.broken:
            self._why, self.reason = why, reason
        self.broken = self.eof = True
        for fd in list(self._open):
            self._drop(fd)
        self._let_go()


def _meta(message: dict[str, Json]) -> dict[str, Json]:
    params = message.get("params")
    meta = params.get("_meta") if type(params) is dict else None
    return meta if type(meta) is dict else {}


def _encoded(value: str) -> str:
    """A header's value; what is no plain text in Base64, marked so."""
    if _PLAIN.fullmatch(value) is not None:
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _secrets(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[bytes, bytes], ...]:
    """What no message may say again, and what stands in its place: whole values, and what follows a scheme's word."""
    values = {part for _, value in headers for part in (value, value.partition(" ")[2]) if len(part) > _SHORT}
    return tuple((each.encode(), REDACTED.encode()) for each in sorted(values, key=lambda each: (-len(each), each)))
