"""What a server answers to one HTTP request: one message as JSON, the messages of a stream, or nothing to go by."""

from __future__ import annotations

import socket
import ssl
from typing import Final

import h11

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.wire.frames import INVALID_REQUEST, Bad, Response, read_frame, write_error
from assisted_benchmark.wire.sse import Events

BLOCKED: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

_CHUNK: Final = 1 << 16
_CHUNKS: Final = 16  # that are read in one go
_HEAD: Final = 1 << 16
_CUT: Final = "the connection was cut before the server answered"


class Answer:
    """The answer to one request as far as it came, read from a connection that does not block.

    `status` is 0 until its head is there; `over` says, in the end, why nothing more will come. Of a request with no
    `request_id` only the head counts. `session` is the session's id, if the head has one.
    """

    def __init__(self, request_id: int | None, method: str, max_bytes: int) -> None:
        self.request_id = request_id
        self.method = method
        self.connected: socket.socket | None = None
        self.status = 0
        self.session = ""
        self.over = ""
        self.more = False
        self._max_bytes = max_bytes
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
        self._events: Events | None = None
        self._json = False
        self._body = bytearray()

    def begin(self, method: str, target: str, head: list[tuple[str, str]], body: bytes) -> bytes:
        """The bytes of the request."""
        sent = [h11.Request(method=method, target=target, headers=head), h11.Data(data=body), h11.EndOfMessage()]
        return b"".join(self._parser.send(each) or b"" for each in sent)

    @property
    def pending(self) -> bool:
        """Whether something is there that no poll tells of."""
        return self.more or (isinstance(self.connected, ssl.SSLSocket) and self.connected.pending() > 0)

    def read(self) -> list[bytes | Bad]:
        """What has come since: the messages in it, in order."""
        found: list[bytes | Bad] = []
        self.more = False
        assert self.connected is not None  # noqa: S101 - it is read once it was written; for the type checker
        try:
            for _ in range(_CHUNKS):
                self._parser.receive_data(self.connected.recv(_CHUNK))
                self._parse(found)
                if self.over:
                    return found
        except BLOCKED:
            return found
        except OSError:
            self.over = _CUT
        except h11.RemoteProtocolError:
            cut = self.status or self._parser.trailing_data == (b"", True)
            self.over = _CUT if cut else "what came is not HTTP, where the server should have answered"
        else:
            self.more = True
        return found

    def _parse(self, found: list[bytes | Bad]) -> None:
        while not self.over:
            event = self._parser.next_event()
            if isinstance(event, h11.Response):
                self._take_head(event)
            elif isinstance(event, h11.Data):
                self._take_body(bytes(event.data), found)
            elif isinstance(event, h11.EndOfMessage):
                self._take_end(found)
            elif not isinstance(event, h11.InformationalResponse):
                return

    def _take_head(self, event: h11.Response) -> None:
        headers = {name: value.decode("latin-1") for name, value in event.headers}
        self.status = event.status_code
        self.session = headers.get(b"mcp-session-id", "")
        media = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if b"content-encoding" in headers:
            media = ""  # none was asked for
        self._json = media == "application/json"
        if 300 <= self.status < 400:
            self.over = f"the server answered with a redirect (HTTP {self.status}), which nobody follows, and so never"
        elif self.status < 300 and media == "text/event-stream":
            self._events = Events(self._max_bytes)
        elif not self._json:
            self.over = self._status()

    def _take_body(self, data: bytes, found: list[bytes | Bad]) -> None:
        if self._events is not None:
            found += self._events.feed(data)
        else:
            self._body += data
            if len(self._body) > self._max_bytes:
                self._body.clear()
                found.append(Bad(Reason.TOO_LARGE, INVALID_REQUEST, f"a message of more than {self._max_bytes} bytes"))
                self.over = "the answer is larger than is taken, so nobody knows what the server answered"

    def _take_end(self, found: list[bytes | Bad]) -> None:
        if self._events is not None:
            self.over = "the stream ended before the server answered"
            return
        if self._body and self.request_id is not None:
            found.append(self._own(bytes(self._body)))
        self.over = self._status()

    def _status(self) -> str:
        return f"HTTP {self.status} came where the server should have answered"

    def _own(self, body: bytes) -> bytes:
        """The message; an error of the transport's, which cannot have the id, as the answer to what only asked."""
        if self.status >= 400 and self.method != "tools/call":
            frame = read_frame(body, self._max_bytes)
            if isinstance(frame, Response) and frame.error is not None and frame.id != self.request_id:
                error = frame.error
                return write_error(self.request_id, error["code"], error["message"], error.get("data"))[:-1]
        return body
