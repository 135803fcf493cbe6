"""A strict MCP client of one server, in both protocol eras: exact call out, at most once.

One thread at a time asks and waits; it does all reading and writing itself, so a session costs
no thread and a round trip no hand-over. What the server sends meanwhile is judged as it comes:
its pings are answered, its requests refused, its progress handed on, and whatever fits nothing
is recorded in `oddities` and ignored.

How a call ends (`CallEnd`) turns on one fact, whether its first byte was written. Before that it
is `NotSent`, and sending it again later would be safe. From then on only an answer settles it:
`Result` or `Error`. Everything else is `Uncertain`, and nobody here ever sends a call twice.

What a server asks of a person in a call goes to the agent whose call it is, if forms are declared to that server. In
the stateless era the same call then goes on by another request, which has the server's own state and the answers beside
the sealed bytes. Any other answer that wants more is `Uncertain`, for the server may have acted up to there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.wire.calling import Calls
from assisted_benchmark.wire.carrier import Carrier
from assisted_benchmark.wire.channel import Channel
from assisted_benchmark.wire.connecting import complete, connect
from assisted_benchmark.wire.exchange import Exchange
from assisted_benchmark.wire.inbox import Inbox
from assisted_benchmark.wire.outcomes import CallEnd, Connected, Era, Limits, Oddity
from assisted_benchmark.wire.relay import NO_RELAY, Relay


class Session:
    """One server as its client sees it, over any carrier; it owns the carrier.

    `connect`, `list_tools` and `call` take turns; `cancel` may come from any thread. The
    stateless era is tried first unless `era` says which one it is.
    """

    def __init__(self, carrier: Carrier, clock: Clock, limits: Limits, capabilities: Json, era: Era | None) -> None:
        self._limits = limits
        self._capabilities: Json = capabilities or {}
        self._era = era
        self._channel = carrier
        self._inbox = Inbox(carrier, limits)
        self._exchange = Exchange(carrier, self._inbox, clock)
        self._turn = threading.Lock()
        self._calls = Calls(carrier, self._inbox, self._exchange, clock, limits, self._capabilities)

    @property
    def closed(self) -> bool:
        """Whether the server can no longer be asked."""
        return self._exchange.closed

    @property
    def tools_changed(self) -> bool:
        """Whether the tool list may differ from the one that `list_tools` gave last.

        True for good once a server that promised to tell has stopped telling.
        """
        return self._inbox.changed or self._inbox.deaf

    @property
    def watch_lost(self) -> bool:
        """Whether a server that promised to tell of changes has stopped telling, for good."""
        return self._inbox.deaf

    @property
    def oddities(self) -> tuple[Oddity, ...]:
        """What the server did that fits nothing, in order, bounded."""
        return tuple(self._inbox.oddities)

    @property
    def oddities_dropped(self) -> int:
        """How many more there were beyond the bound."""
        return self._inbox.oddities_dropped

    @property
    def stderr_tail(self) -> bytes:
        """The end of what the server wrote to standard error."""
        return self._channel.tail

    # -- connecting

    def connect(self, deadline: Deadline) -> Connected:
        """Find the era, agree on a version and lock both. No call is ever part of it.

        Raises:
            ServerError: protocol_mismatch, deadline_exceeded, server_unavailable, or
                malformed_frame for an answer of a wrong shape.
        """
        self._require_turn(deadline)
        try:
            return connect(self._exchange, self._limits, self._capabilities, self._era, deadline)
        finally:
            self._turn.release()

    # -- listing

    def list_tools(self, deadline: Deadline) -> list[Json]:
        """The raw tool objects of every page, unknown keys included.

        Raises:
            ServerError: incomplete_listing, duplicate_tool, malformed_frame, failed,
                deadline_exceeded or server_unavailable.
        """
        self._require_turn(deadline)
        try:
            self._inbox.changed = False  # before asking: what changes while we list counts
            return self._list_pages(deadline)
        finally:
            self._turn.release()

    def _list_pages(self, deadline: Deadline) -> list[Json]:
        tools: dict[str, Json] = {}
        cursors: set[str] = set()
        params: dict[str, Json] = {}
        for _ in range(self._limits.pages):
            page = complete(self._exchange.ask("tools/list", params, deadline), "tools/list")
            for tool in _tools(page):
                if tool["name"] in tools:
                    raise ServerError(Reason.DUPLICATE_TOOL, f"the tool `{shown(tool['name'])}` is listed twice")
                tools[tool["name"]] = tool
            cursor = page.get("nextCursor")
            if len(tools) > self._limits.tools:
                break
            if cursor is None:
                return list(tools.values())
            if type(cursor) is not str:
                raise ServerError(Reason.MALFORMED_FRAME, "the cursor of a tool list is not a string")
            if cursor in cursors:
                break
            cursors.add(cursor)
            params = {"cursor": cursor}
        raise ServerError(Reason.INCOMPLETE_LISTING, f"the tool list did not end; it had {len(tools)} tools so far")

    # -- calling

    def call(
        self,
        tool: str,
        arguments: bytes,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,
        relay: Relay = NO_RELAY,
    ) -> CallEnd:
        """Send one call, if `gate()`, asked right before its first byte, is true; then wait for its answer.

        `arguments` are an object's RFC 8785 bytes, and exactly those are sent. Progress does not extend the deadline;
        what people take to answer a server's questions is a budget of its own. `relay` leads to whoever calls.
        """
        if not self._take_turn(deadline):
            return NotSent(Reason.SERVER_UNAVAILABLE, "another call holds the session")
        try:
            return self._calls.call(tool, arguments, gate, deadline, relay)
        finally:
            self._turn.release()

    def cancel(self, reason: str) -> bool:
        """Cancel the call in flight, from any thread; False if there is none.

        Not yet written, it is not sent. Written, the server is told and has a grace period for
        its result, which counts if it comes.
        """
        return self._calls.cancel(reason)

    # -- the rest

    def drain(self) -> None:
        """Take in what has arrived, without waiting: call it before trusting `tools_changed`."""
        if self._turn.acquire(blocking=False):
            try:
                self._exchange.drain()
            finally:
                self._turn.release()

    def finish(self, deadline: Deadline) -> bool:
        """Close the server's input and drain its output until it ends; False if it does not in time."""
        return self._channel.finish(deadline)

    def close(self) -> None:
        """Let go of the descriptors. Idempotent."""
        self._channel.close()

    def _take_turn(self, deadline: Deadline) -> bool:
        return self._turn.acquire(blocking=False) or self._turn.acquire(timeout=_seconds(deadline))

    def _require_turn(self, deadline: Deadline) -> None:
        if not self._take_turn(deadline):
            raise ServerError(Reason.DEADLINE_EXCEEDED, "another call holds the session")


class ClientSession(Session):
    """A session with one server process. Owns the descriptors that it is given."""

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        stderr_fd: int | None,
        clock: Clock,
        *,
        limits: Limits | None = None,
        capabilities: Json = None,
        era: Era | None = None,
    ) -> None:
        limits = limits or Limits()
        channel = Channel(
            read_fd,
            write_fd,
            stderr_fd,
            max_line=limits.line,
            max_tail=limits.stderr_tail,
            max_outbox=limits.outbox,
        )
        super().__init__(channel, clock, limits, capabilities, era)


def _tools(page: dict[str, Json]) -> list[Json]:
    tools = page.get("tools")
    if type(tools) is not list or not all(type(tool) is dict and type(tool.get("name")) is str for tool in tools):
        raise ServerError(Reason.MALFORMED_FRAME, "the tool list is not a list of objects with names")
    return tools


def _seconds(deadline: Deadline) -> float:
    return min(deadline.remaining_ns() / SECOND, threading.TIMEOUT_MAX)
