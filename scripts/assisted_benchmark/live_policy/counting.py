"""A world that counts: the dispatcher and the machine for tests and process-free experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from assisted_benchmark.contract.model import Contract
from assisted_benchmark.kernel.clock import Clock, Deadline
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import NO_RELAY, NotSent, Observation, Relay, Replied, Reply, Unavailable

ANSWER: Final = b'{"content":[]}'

Answer: TypeAlias = Callable[[Claimed], Reply]


class CountingDispatcher:
    """Counts what reaches each server. `answer` says what a server replies; at first, that all went well.

    `live` holds what observing each server shows, and may be changed; `calls` has an entry, zero
    included, for each server of the contract.
    """

    def __init__(self, contract: Contract, clock: Clock, answer: Answer | None = None) -> None:
        self._clock = clock
        self._answer = answer
        self.calls: dict[str, int] = {server.id: 0 for server in contract.servers}
        self.sent: list[Claimed] = []
        self.observed: list[tuple[str, bool]] = []
        self.live: dict[str, Observation | Unavailable] = {
            server.id: Observation(digest_of("launch@1", server.id.encode()), server.tools_digest)
            for server in contract.servers
        }
        self.launches: Mapping[str, Digest] = {
            server.id: digest_of("launch@1", server.id.encode()) for server in contract.servers
        }

    def observe(self, server: str, *, fresh: bool, deadline: Deadline) -> Observation | Unavailable:
        self.observed.append((server, fresh))
        late = Unavailable(Reason.DEADLINE_EXCEEDED, "there is no time left to look")
        return late if deadline.passed else self.live[server]

    def send(
        self,
        claimed: Claimed,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,
        relay: Relay = NO_RELAY,  # noqa: ARG002 - what only counts has nothing to say meanwhile
    ) -> Reply:
        if deadline.passed or not gate():
            return NotSent(Reason.EXPIRED)
        self.calls[claimed.permit.server] += 1
        self.sent.append(claimed)
        return self._answer(claimed) if self._answer else self.replied(ANSWER)

    def replied(self, result: bytes, *, failed: bool = False) -> Replied:
        """An answer of this very instant."""
        now = self._clock.now()
        return Replied(result, failed, now, now)


class CountingMachine:
    """A VM's host that counts teardowns; `fails` makes them go wrong."""

    def __init__(self, host: Digest) -> None:
        self.host = host
        self.fails: Exception | None = None
        self.torn_down: list[str] = []

    def host_identity(self) -> Digest:
        return self.host

    def teardown(self, vm: str) -> None:
        self.torn_down.append(vm)
        if self.fails is not None:
            raise self.fails
