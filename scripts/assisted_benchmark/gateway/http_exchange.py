"""One exchange over HTTP: what is said to a request, from any thread, as one JSON answer or as a stream of events.

It is JSON if the answer is the first thing that is said, and comes soon; else a stream, which a question or progress
opens. A client that does not read, or is gone, holds up nobody: what it is told waits, in bounds.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from assisted_benchmark.kernel.strict_json import MIB

# After so many seconds in which nothing is said a stream says that it is still there, and an answer becomes one:
# common HTTP clients wait 5 for the next byte unless they are told to be patient.
_STILL_THERE: Final = 3.0
_STILL: Final = b":\n\n"
_UNREAD: Final = MIB

_EVENTS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Exchange:
    """The way out of one exchange; made and played on the event loop, used from any thread."""

    # A client whose connection is cut may still want what it asked for: that it does not is said in other ways.
    broken = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = threading.Lock()
        self._lines: deque[bytes] = deque()
        self._unread = 0
        self._over = False
        self._last: bytes | None = None
        self._code = 0
        self._gone = False

    def send(self, line: bytes) -> bool:
        with self._lock:
            if self._over or self._unread > _UNREAD:
                return False
            self._lines.append(line)
            self._unread += len(line)
        return self._wake()

    def answer(self, line: bytes | None, code: int = 0) -> None:
        with self._lock:
            if self._over:
                return
            self._over, self._last, self._code = True, line, code
        self._wake()

    def close(self) -> None:
        """Nothing more is said."""
        self.answer(None)

    async def play(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        statuses: Mapping[int, int] = MappingProxyType({}),
        stream: bool = False,
    ) -> None:
        """Say all that is said, to the end or until the client is gone.

        `statuses` are those of errors; what is a `stream` in any case begins at once.
        """
        watch = asyncio.ensure_future(self._watch(receive))
        try:
            if not stream:
                await self._said()
            if (answer := self._whole()) is not None:
                line, code = answer
                response = Response(line.rstrip(), statuses.get(code, 200), headers, "application/json")
                await response(scope, receive, send)
                return
            start = [(name.encode(), value.encode()) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": 200, "headers": _EVENTS + start})
            while not self._gone:
                data, over = self._taken()
                await send(
                    {"type": "http.response.body", "body": data or (b"" if over else _STILL), "more_body": not over}
                )
                if over:
                    return
                await self._said()
        finally:
            watch.cancel()
            self.close()

    def _whole(self) -> tuple[bytes, int] | None:
        """The answer, if it is there and is all that was said."""
        with self._lock:
            return None if self._last is None or self._lines else (self._last, self._code)

    async def _said(self) -> None:
        """Wait until there is something to say, or for long enough."""
        try:
            async with asyncio.timeout(_STILL_THERE):
                await self._ready.wait()
        except TimeoutError:
            return
        self._ready.clear()

    def _taken(self) -> tuple[bytes, bool]:
        with self._lock:
            lines, over = list(self._lines), self._over
            self._lines.clear()
            self._unread = 0
        if over and self._last is not None:
            lines.append(self._last)
        return b"".join(b"event: message\ndata: %b\n\n" % line.rstrip() for line in lines), over

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self.close()

    def _wake(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._ready.set)
        except RuntimeError:  # the loop has ended, and everybody is gone
            return False
        return True
