"""The sessions of the handshake era over HTTP: opened, found by an id that nobody can guess, and ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from assisted_benchmark.gateway.conversation import Conversation
from assisted_benchmark.gateway.http_exchange import Exchange
from assisted_benchmark.gateway.principals import HTTP, Principals
from assisted_benchmark.gateway.service import Service
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import SECOND

_MOST: Final = 64
_IDLE_NS: Final = 1800 * SECOND
_ID_BYTES: Final = 32


class Standing:
    """The way out of what belongs to no request: the stream that the client holds open, or what it opens next."""

    broken = False

    def __init__(self) -> None:
        self.stream: Exchange | None = None
        self._kept: bytes | None = None

    def send(self, line: bytes) -> bool:
        stream = self.stream
        if stream is None or not stream.send(line):
            self._kept = line  # that there are other tools is said again by every line like it
        return True

    def answer(self, line: bytes | None, code: int = 0) -> None:
        """Nothing is answered here."""

    def opened(self, stream: Exchange) -> None:
        """The client listens, and hears what came before."""
        kept, self._kept = self._kept, None
        self.stream = stream
        if kept is not None:
            stream.send(kept)


class McpSession:
    """One session of the handshake era. `busy`: how many exchanges it has open."""

    def __init__(self, service: Service, principals: Principals, session_id: str) -> None:
        self.id = session_id
        self.principal = f"{HTTP}-{hashlib.sha256(session_id.encode()).hexdigest()[:16]}"
        self.standing = Standing()
        self.busy = 0
        self.used_ns = 0
        self.conversation = Conversation(
            service, lambda: principals.session(self.principal, self.conversation.side.client), self.standing
        )

    def end(self) -> None:
        """Nobody speaks in it any more."""
        self.conversation.end()
        if self.standing.stream is not None:
            self.standing.stream.close()


class McpSessions:
    """The open sessions, at most so many; those that nobody has used for long make room. For the event loop alone."""

    def __init__(self, service: Service, principals: Principals, chance: Chance) -> None:
        self._service = service
        self._principals = principals
        self._chance = chance
        self._open: dict[str, McpSession] = {}

    def begin(self) -> McpSession | None:
        """A new session, to be opened by the answer to its first request; None if there are too many."""
        now = self._service.clock.now().mono_ns
        if len(self._open) >= _MOST:
            for idle in [each for each in self._open.values() if not each.busy and each.used_ns + _IDLE_NS < now]:
                self.end(idle)
        if len(self._open) >= _MOST:
            return None
        session = McpSession(self._service, self._principals, self._chance.token(_ID_BYTES).hex())
        self._open[session.id] = session
        return session

    def find(self, session_id: str) -> McpSession | None:
        """The session of this id."""
        return self._open.get(session_id)

    @contextmanager
    def in_use(self, session: McpSession) -> Iterator[None]:
        """An exchange in it is open; it was last used when that ends."""
        session.busy += 1
        try:
            yield
        finally:
            session.busy -= 1
            session.used_ns = self._service.clock.now().mono_ns

    def end(self, session: McpSession) -> None:
        """End a session: what is in flight in it is cancelled."""
        self._open.pop(session.id, None)
        session.end()

    def end_all(self) -> None:
        """End them all."""
        for session in tuple(self._open.values()):
            self.end(session)
