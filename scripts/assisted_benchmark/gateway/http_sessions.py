"""The sessions of the handshake era over HTTP, and whose an agent's calls are.

Over HTTP an agent session is a session of the protocol, whose id nobody can guess; in the stateless era, which knows
none, it is whoever has the bearer. Each is a principal of its own, so that none uses what another was granted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, Protocol

from assisted_benchmark.gateway.conversation import Conversation
from assisted_benchmark.gateway.http_exchange import Exchange
from assisted_benchmark.gateway.service import Service
from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import SECOND, Clock
from assisted_benchmark.kernel.strict_json import Json

STATELESS: Final = "http"  # the principal of every call in the stateless era

_MOST: Final = 64
_IDLE_NS: Final = 1800 * SECOND
_ID_BYTES: Final = 32


class Principals(Protocol):
    """Whose calls are whose."""

    def session(self, principal: str, client: Json) -> Session:
        """Whose a call is that came from this principal, whose client says that it is `client`."""

    def left(self, principal: str) -> bool:
        """A principal has ended its session: whether nobody is left to serve."""


class EachItsOwn:
    """Every principal calls in its own name, and others may come after it."""

    def __init__(self, run: str) -> None:
        self._run = run

    def session(self, principal: str, _client: Json) -> Session:
        return Session(self._run, principal)

    def left(self, _principal: str) -> bool:
        return False


class OneGrant:
    """Whoever calls first is the agent that the grant is for; everybody else calls in another name."""

    def __init__(self, holder: Session) -> None:
        self._holder = holder
        self._principal = ""
        self.client: Json = None

    def session(self, principal: str, client: Json) -> Session:
        if not self._principal:
            self._principal, self.client = principal, client
        return self._holder if principal == self._principal else self._holder._replace(principal=principal)

    def left(self, principal: str) -> bool:
        return principal == self._principal


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


class Talk:
    """One session of the handshake era. `busy`: how many exchanges it has open."""

    def __init__(self, service: Service, principals: Principals, session_id: str) -> None:
        self.id = session_id
        self.principal = f"{STATELESS}-{hashlib.sha256(session_id.encode()).hexdigest()[:16]}"
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


class Talks:
    """The open sessions, at most so many; those that nobody has used for long make room. For the event loop alone."""

    def __init__(self, service: Service, principals: Principals, clock: Clock, chance: Chance) -> None:
        self._make: Callable[[str], Talk] = lambda session_id: Talk(service, principals, session_id)
        self._clock = clock
        self._chance = chance
        self._open: dict[str, Talk] = {}

    def begin(self) -> Talk | None:
        """A new session, to be opened by the answer to its first request; None if there are too many."""
        now = self._clock.now().mono_ns
        if len(self._open) >= _MOST:
            for idle in [each for each in self._open.values() if not each.busy and each.used_ns + _IDLE_NS < now]:
                self.end(idle)
        if len(self._open) >= _MOST:
            return None
        talk = self._make(self._chance.token(_ID_BYTES).hex())
        self._open[talk.id] = talk
        return talk

    def find(self, session_id: str) -> Talk | None:
        """The session of this id."""
        return self._open.get(session_id)

    def used(self, talk: Talk, *, more: int) -> None:
        """An exchange in it has begun or ended."""
        talk.busy += more
        talk.used_ns = self._clock.now().mono_ns

    def end(self, talk: Talk) -> None:
        """End a session: what is in flight in it is cancelled."""
        self._open.pop(talk.id, None)
        talk.end()

    def end_all(self) -> None:
        """End them all."""
        for talk in tuple(self._open.values()):
            self.end(talk)
