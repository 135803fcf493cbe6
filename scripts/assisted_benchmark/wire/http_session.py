"""A strict MCP client of one Streamable HTTP server. Import this lazily: it needs the extra `http`."""

from __future__ import annotations

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.wire.client_session import Session
from assisted_benchmark.wire.http_channel import Endpoint, HttpChannel
from assisted_benchmark.wire.outcomes import Era, Limits


class HttpSession(Session):
    """A session with one Streamable HTTP server."""

    def __init__(
        self,
        endpoint: Endpoint,
        clock: Clock,
        *,
        limits: Limits | None = None,
        capabilities: Json = None,
        era: Era | None = None,
    ) -> None:
        limits = limits or Limits()
        super().__init__(HttpChannel(endpoint, max_line=limits.line), clock, limits, capabilities, era)
