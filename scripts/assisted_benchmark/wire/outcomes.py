"""What a client session tells: what the server is, how a call ended, and what was odd. Frozen values."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import NamedTuple, TypeAlias

from attrs import frozen

from assisted_benchmark.kernel.canonical import MIB, Json
from assisted_benchmark.kernel.clock import SECOND, Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain


@unique
class Era(StrEnum):
    """The two ways of a protocol: with a handshake (to 2025-11-25), or stateless (2026-07-28)."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class Limits(NamedTuple):
    """The bounds of one session."""

    line: int = 32 * MIB
    pages: int = 64
    tools: int = 4096
    progress: int = 1000
    questions: int = 16  # that a server may ask in one call
    oddities: int = 100
    stderr_tail: int = 8192
    outbox: int = 1 << 16
    probe_ns: int = 3 * SECOND
    grace_ns: int = SECOND
    human_ns: int = 300 * SECOND  # of people, for all questions of one call


@frozen
class Connected:
    """What the server is, by its own word: labels, never an identity."""

    era: Era
    version: str
    server_info: Json
    capabilities: Json

    @property
    def list_changed(self) -> bool:
        """Whether the server says that it tells when its tool list changes."""
        tools = self.capabilities.get("tools")
        return type(tools) is dict and tools.get("listChanged") is True


@frozen
class Result:
    """The server answered with a result: its value, and the RFC 8785 bytes of it."""

    data: bytes
    value: dict[str, Json]
    wrote: Instant
    replied: Instant

    @property
    def failed(self) -> bool:
        """Whether the tool says that it failed."""
        return self.value.get("isError") is True


@frozen
class Error:
    """The server answered with a JSON-RPC error: its error object, and the RFC 8785 bytes of it."""

    data: bytes
    value: dict[str, Json]
    wrote: Instant
    replied: Instant


CallEnd: TypeAlias = Result | Error | NotSent | Uncertain


@unique
class Odd(StrEnum):
    """What a server did that fits nothing."""

    BAD_LINE = "bad_line"
    HALF_LINE = "half_line"
    UNKNOWN_ID = "unknown_id"
    SETTLED_ID = "settled_id"
    STRAY_PROGRESS = "stray_progress"
    REFUSED_REQUEST = "refused_request"
    UNSENT = "unsent"
    WATCH_LOST = "watch_lost"
    CALLBACK_FAILED = "callback_failed"


@frozen
class Oddity:
    """One such thing; `reason` where the line itself was bad."""

    kind: Odd
    detail: str
    reason: Reason | None = None
