"""Who may speak to the gateway over HTTP at all, before anything that was sent is looked at.

A page in a browser can be made to send requests to loopback under a name of its own (DNS rebinding), so that the name
that was asked for and the page's origin have to be ours. Whoever runs on this machine can connect, so that the secret
of the client's configuration has to be there as well.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.frames import INVALID_REQUEST, Id

PATH: Final = "/mcp"
LOOPBACK: Final = "127.0.0.1"

_NAMES: Final = (LOOPBACK, "localhost")
_BEARER: Final = re.compile(rb"[Bb]earer +([A-Za-z0-9._~+/-]+=*)")
_ONCE: Final = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-type",
        b"host",
        b"mcp-method",
        b"mcp-name",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"origin",
    }
)


def url_of(port: int) -> str:
    """Where clients find a server on this port."""
    return f"http://{LOOPBACK}:{port}{PATH}"


class Rejected(NamedTuple):
    """A request that is turned away: the status, and the JSON-RPC error that it is told."""

    status: int
    detail: str
    code: int = INVALID_REQUEST
    id: Id | None = None
    data: Json = None


class Guard:
    """Lets through what was sent to the gateway by name, by nobody's page, with the secret."""

    def __init__(self, port: int, bearer: str) -> None:
        hosts = [f"{name}:{port}" for name in _NAMES]
        self._hosts = {host.encode() for host in hosts}
        self._origins = {f"http://{host}".encode() for host in hosts}
        self._bearer = bearer.encode()

    def rejects(self, path: str, headers: Sequence[tuple[bytes, bytes]]) -> Rejected | None:
        """Why a request is turned away, or None. Header names are in lower case."""
        said: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in said and name in _ONCE:
                # Of two values one could be read here and the other by whoever looked before.
                return Rejected(400, f"the header {name.decode()} is there twice")
            said[name] = value
        if said.get(b"host", b"").lower() not in self._hosts:
            return Rejected(403, "the host that was asked for is not this server")
        if b"origin" in said and said[b"origin"].lower() not in self._origins:
            return Rejected(403, "pages of this origin may not speak to this server")
        known = _BEARER.fullmatch(said.get(b"authorization", b""))
        if known is None or not hmac.compare_digest(known[1], self._bearer):
            return Rejected(401, "the bearer of the client's configuration is needed")
        if path != PATH:
            return Rejected(404, f"there is nothing but {PATH}")
        return None
