"""The endpoint of changes over HTTP: one request, one connection, one deadline, to the one origin of the operator.

Built on the HTTP/1.1 connection under `httpx2`, not on its client: what would follow a redirect, ask a proxy, keep a
cookie, try again or change a header is not there. The connection's stream is ours. So the gate is asked when the
connection stands, right before the first byte; what is left of the deadline bounds each single read and write, so that
an answer that drips does not stretch it; and how much is taken of an answer is bounded before it is parsed.

A connection serves one request and is closed: none can be stale when it is written to. Nothing here is shared
between requests, so it may be used from any number of threads. Import this lazily: it needs the extra `http`.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from typing import Final

import httpcore2

from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline, Instant
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.origin import Origin
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.redact import REDACTED
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.mutation.http_outcomes import MAX_ANSWER, Broken, unbelievable
from assisted_benchmark.mutation.ports import HttpReply, Reply, Request
from assisted_benchmark.wire.http_connecting import connect, seconds, trusted_by_machine

_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]{1,4096}={0,2}")
_TARGET: Final = re.compile(r"/[\x21-\x7e]*")
_HEAD: Final = 1 << 16  # bytes taken beyond an answer's body
_CLOSING_NS: Final = SECOND // 4  # how long the other side has to close after its answer


class HttpEndpoint:
    """Carries requests to one origin, each at most once.

    `bearer` is the operator's token, in no error and no reply. `max_answer` bounds an answer's body, in bytes. `tls`
    is the operator's context for `https`; without one the machine's own trust is used, whatever the environment says.

    Raises:
        MisuseError: the origin or the bearer cannot be one.
    """

    def __init__(
        self,
        origin: str,
        clock: Clock,
        *,
        bearer: str = "",
        max_answer: int = MAX_ANSWER,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if bearer and _BEARER.fullmatch(bearer) is None:
            raise MisuseError(Reason.MISUSE, "the bearer has characters that no bearer has")  # and is not shown
        self._origin = Origin.parse(origin)
        self._clock = clock
        self._bearer = bearer.encode()
        self._max_answer = max_answer
        self._tls = (tls or trusted_by_machine()) if self._origin.scheme == "https" else None
        self._headers = [
            ("Host", self._origin.authority),
            ("Connection", "close"),
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "assisted-benchmark"),
            *([("Authorization", f"Bearer {bearer}")] if bearer else []),
        ]

    def ask(self, request: Request, *, deadline: Deadline) -> Reply:
        return self._exchange(request, lambda: True, deadline)

    def create(self, claimed: Claimed, request: Request, *, gate: Callable[[], bool], deadline: Deadline) -> Reply:
        if request.body != claimed.permit.arguments:
            return NotSent(Reason.BINDING_MISMATCH, "the body is not the claimed one")
        return self._exchange(request, gate, deadline)

    def _exchange(self, request: Request, gate: Callable[[], bool], deadline: Deadline) -> Reply:
        if _TARGET.fullmatch(request.target) is None:
            return NotSent(Reason.SERVER_UNAVAILABLE, "the target is no path")
        try:
            connected = connect(self._origin, self._tls, deadline)
        except OSError:  # why not is the system's to say, in words that vary: that none stands is enough
            return NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
        with connected:
            stream = _Stream(connected, self._clock, gate, deadline, self._max_answer + _HEAD)
            try:
                return self._converse(request, stream)
            except _GateClosedError:
                return NotSent(Reason.EXPIRED, "the gate closed before the request was written")
            except _BrokenError as error:
                broken = error.broken
            except TimeoutError:
                broken = Broken.LATE
            except OSError:
                broken = Broken.CLOSED
            except httpcore2.ProtocolError:
                broken = Broken.CLOSED if stream.ended else Broken.NO_HTTP
            # INVARIANT: from the first byte on there is no way back to NotSent.
            if stream.wrote is None:
                return NotSent(Reason.SERVER_UNAVAILABLE, "no time was left to write, or it is no request")
            return broken.uncertain(stream.wrote)

    def _converse(self, request: Request, stream: _Stream) -> HttpReply:
        sized = [("Content-Type", "application/json"), ("Content-Length", str(len(request.body)))]
        scheme, host, port = self._origin
        url = httpcore2.URL(scheme=scheme, host=host, port=port, target=request.target)
        connection = httpcore2.HTTP11Connection(url.origin, stream)
        response = connection.handle_request(
            httpcore2.Request(
                request.method, url, headers=[*self._headers, *(sized if request.body else [])], content=request.body
            )
        )
        body = b"".join(response.iter_stream())
        replied = self._clock.now()
        if len(body) > self._max_answer:
            raise _BrokenError(Broken.TOO_LARGE)
        parser = connection._h11_state  # noqa: SLF001 - nobody else knows of what came after the answer
        if parser.trailing_data[0] or stream.goes_on():
            raise _BrokenError(Broken.TWICE)
        media = {name.lower(): value for name, value in response.headers}.get(b"content-type", b"")
        broken = unbelievable(response.status, media.decode("latin-1"))
        if broken is not None:
            raise _BrokenError(broken)
        wrote = stream.wrote or replied  # it was written: there is an answer
        if self._bearer:
            body = body.replace(self._bearer, REDACTED.encode())  # an endpoint may say again what it was told
        return HttpReply(response.status, body, wrote, replied)


class _GateClosedError(Exception):
    """The gate said no, and nothing was written."""


class _BrokenError(Exception):
    """The exchange gave no answer to go by."""

    def __init__(self, broken: Broken) -> None:
        super().__init__(broken)
        self.broken = broken


class _Stream(httpcore2.NetworkStream):
    """A connected socket under one gate, one deadline and one bound. It is closed by who opened it.

    `wrote` is when its first byte was handed to the system; `ended` is true once the other side closed.
    """

    def __init__(
        self, connected: socket.socket, clock: Clock, gate: Callable[[], bool], deadline: Deadline, most: int
    ) -> None:
        self._socket = connected
        self._clock = clock
        self._gate = gate
        self._deadline = deadline
        self._room = most
        self.wrote: Instant | None = None
        self.ended = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline says how long
        self._socket.settimeout(seconds(self._deadline))
        data = self._socket.recv(max_bytes)
        self._room -= len(data)
        if self._room < 0:
            raise _BrokenError(Broken.TOO_LARGE)
        self.ended = not data
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - as in `read`
        view = memoryview(buffer)
        while view:
            if self.wrote is None and not self._gate():
                raise _GateClosedError
            self._socket.settimeout(seconds(self._deadline))
            self.wrote = self.wrote or self._clock.now()
            view = view[self._socket.send(view) :]

    def goes_on(self) -> bool:
        """Whether anything more comes before the other side closes, which it was asked to do after its answer."""
        try:
            self._socket.settimeout(seconds(self._deadline.child(_CLOSING_NS)))
            return not self.ended and self._socket.recv(1) != b""
        except OSError:
            return False

    def close(self) -> None:
        """Nothing: who opened the socket closes it."""
