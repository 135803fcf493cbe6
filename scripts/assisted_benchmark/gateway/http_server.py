"""Agents' sessions over HTTP on a port of loopback: as `AgentSession` is on two descriptors, but for many."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.http_face import HttpFace
from assisted_benchmark.gateway.http_guard import LOOPBACK, Guard, url_of
from assisted_benchmark.gateway.http_protocol import PatientProtocol
from assisted_benchmark.gateway.principals import Principals
from assisted_benchmark.gateway.service import Service, unnoticed, unrecorded
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.outcomes import Oddity

_CONNECTIONS = 256
_GRACE_SECONDS = 5


class HttpServer:
    """Serves whoever has the bearer, on a port that is taken at once: 0 is any that is free.

    `on_malformed` hears of each body that was no message, from the thread that reads: the broker's receipt of it.
    `on_leaving` is called when everybody is sent away, before what they have asked for has ended.
    """

    def __init__(
        self,
        face: Face,
        principals: Principals,
        clock: Clock,
        chance: Chance,
        *,
        bearer: str,
        port: int = 0,
        limits: Limits | None = None,
        on_malformed: Callable[[Reason, str], object] = unrecorded,
        on_leaving: Callable[[], None] = unnoticed,
    ) -> None:
        self._listening = _listening(port)
        self.port: int = self._listening.getsockname()[1]
        self._on_leaving = on_leaving
        self._principals = principals
        self._service = Service(face, clock, limits or Limits(), on_malformed)
        self._face = HttpFace(self._service, principals, Guard(self.port, bearer), chance, self.leave)
        self._server = _Server(self._face, self._leaves)

    @property
    def url(self) -> str:
        """Where a client finds it."""
        return url_of(self.port)

    @property
    def client(self) -> Json:
        """What the client says that it is, for whom everything is served; None if it is for anybody."""
        return self._principals.client

    @property
    def oddities(self) -> tuple[Oddity, ...]:
        """What agents did that fits nothing, and tools that broke; in order, bounded."""
        return self._service.oddities

    def serve(self) -> None:
        """Answer until nobody is left to serve. Nothing runs any more when this returns; an interrupt ends it, too."""
        try:
            with self._listening, _interrupts_noted(self.leave):
                asyncio.run(self._server.serve([self._listening]))
        finally:
            self._service.shutdown()

    def leave(self) -> None:
        """Have it end; from any thread."""
        self._server.should_exit = True

    def _leaves(self) -> None:
        self._face.leave()
        self._on_leaving()


class _Server(uvicorn.Server):
    """One that sends everybody away before it waits for them to go."""

    def __init__(self, application: HttpFace, leaves: Callable[[], None]) -> None:
        self._leaves = leaves
        super().__init__(
            uvicorn.Config(
                application,
                interface="asgi3",
                proxy_headers=False,
                http=PatientProtocol,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                log_level="critical",  # what hostile clients send is answered, and is no news
                access_log=False,
                server_header=False,
                date_header=False,
                limit_concurrency=_CONNECTIONS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Send everybody away, then wait for them."""
        self._leaves()
        await super().shutdown(sockets)


@contextmanager
def _interrupts_noted(leave: Callable[[], None]) -> Iterator[None]:
    """While a loop starts, runs and ends, an interrupt makes it end, and is raised afterwards: it is not cut off."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal comes here
        return
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)
        leave()

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in noted[:1]:
            signal.raise_signal(number)


def _listening(port: int) -> socket.socket:
    # With its protocol named, or asyncio leaves Nagle's algorithm on, and every answer waits for an acknowledgement.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((LOOPBACK, port))
        made.listen(_CONNECTIONS)
    except BaseException:
        made.close()
        raise
    return made
