"""Whose an agent's calls are: given by the harness, from where they came, and never by what an agent says.

Over HTTP an agent session is a session of the protocol; in the stateless era, which knows none, it is whoever has the
bearer. Each is a principal of its own, so that none uses what another was granted.
"""

from __future__ import annotations

from typing import Final, Protocol

from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.strict_json import Json

STDIO: Final = "stdio"  # the principal of every call over standard input
HTTP: Final = "http"  # of every call over HTTP in the stateless era


class Principals(Protocol):
    """Whose calls are whose."""

    @property
    def client(self) -> Json:
        """What the client says that it is, for whom everything is served; None if it is for anybody."""

    def session(self, principal: str, client: Json) -> Session:
        """Whose a call is that came from this principal, whose client says that it is `client`."""

    def left(self, principal: str) -> bool:
        """A principal has ended its session: whether nobody is left to serve."""


class EachItsOwn:
    """Every principal calls in its own name, and others may come after it."""

    client: Json = None

    def __init__(self, run: str) -> None:
        self.run = run

    def session(self, principal: str, _client: Json) -> Session:
        return Session(self.run, principal)

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
