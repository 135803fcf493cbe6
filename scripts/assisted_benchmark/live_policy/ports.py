"""What the live broker needs of the world, and no more. The router implements it; tests count with a fake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from attrs import frozen

from assisted_benchmark.kernel.clock import Deadline, Instant
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.wire.relay import NO_RELAY, Relay, Silence

__all__ = [
    "NO_RELAY",
    "Dispatcher",
    "Machine",
    "NotSent",
    "Observation",
    "Relay",
    "Replied",
    "Reply",
    "Silence",
    "Unavailable",
    "Uncertain",
]


@frozen
class Observation:
    """A server as it is now: the digest of what was launched, and of its raw tool list.

    `drift` is empty, or the readable difference from the pin, one line each.
    """

    launch: Digest
    tools: Digest
    drift: tuple[str, ...] = ()


@frozen
class Unavailable:
    """The server could not be observed: nothing was sent to it."""

    reason: Reason
    detail: str


@frozen
class Replied:
    """The server answered. `result` is the raw result object's RFC 8785 bytes (or the error object's).

    `failed` is true for `isError: true` and for a JSON-RPC error.
    """

    result: bytes
    failed: bool
    wrote: Instant
    replied: Instant


Reply: TypeAlias = Replied | NotSent | Uncertain


class Dispatcher(Protocol):
    """Carries one claimed call to the one server it names, at most once, and never retries."""

    def observe(self, server: str, *, fresh: bool, deadline: Deadline) -> Observation | Unavailable:
        """Look at the process handle that would get the call. `fresh` lists its tools again in any case;
        otherwise only after connecting, a `list_changed` or a restart."""

    def send(self, claimed: Claimed, *, gate: Callable[[], bool], deadline: Deadline, relay: Relay = NO_RELAY) -> Reply:
        """Write the call, if `gate()`, asked right before the write, is true; then wait for its answer.

        What the server says of the call meanwhile goes by `relay`, and what the agent says of it comes by it. The time
        that people take is no part of the deadline.
        """


class Machine(Protocol):
    """The run's VM, as far as the broker may touch it: to end it, once."""

    def host_identity(self) -> Digest:
        """The identity digest of the host we are on now."""

    def teardown(self, vm: str) -> None:
        """End exactly this VM. Raises on failure."""
