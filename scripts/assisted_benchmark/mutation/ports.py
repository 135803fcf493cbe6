"""What the mutation broker needs of the world: the one endpoint that its changes go to.

The offline endpoint's model implements it in process, an HTTP client for real; tests count with either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from assisted_benchmark.kernel.clock import Deadline, Instant
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.ledger.protocol import Claimed


class Request(NamedTuple):
    """One HTTP request as it will be written. `target` is path and query; `body` goes as it stands, or is empty."""

    method: str
    target: str
    body: bytes = b""


class HttpReply(NamedTuple):
    """The endpoint's whole answer: its status, its body as received, and when the request and the answer passed."""

    status: int
    body: bytes
    wrote: Instant
    replied: Instant


Reply: TypeAlias = HttpReply | NotSent | Uncertain


class Endpoint(Protocol):
    """The one origin that changes go to. Never retries, never follows a redirect, never asks a proxy."""

    def ask(self, request: Request, *, deadline: Deadline) -> Reply:
        """A request that changes nothing there: a dry run, a read, a price search."""

    def create(self, claimed: Claimed, request: Request, *, gate: Callable[[], bool], deadline: Deadline) -> Reply:
        """The real create, written once if `gate()`, asked right before the write, is true.

        `request.body` is what `claimed.permit.arguments` holds, byte for byte; another is not written.
        """
