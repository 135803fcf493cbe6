"""What one case is played with: the broker, its world, its clocks; put anew for each case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Protocol

from attrs import define, field

from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.protocol import Claimed, Ledger
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.dispatch import Moment
from assisted_benchmark.live_policy.grant import SealedGrant, Session
from assisted_benchmark.live_policy.policy import Policy
from assisted_benchmark.live_policy.ports import NO_RELAY, Dispatcher, Observation, Relay, Reply, Unavailable
from assisted_benchmark.suite.instruments import CaseChance, CaseClock
from assisted_benchmark.suite.live.scenario import LiveCase
from assisted_benchmark.workloads.faults import Fault
from assisted_benchmark.workloads.model import Event


class World(Dispatcher, Protocol):
    """The servers of one case, as the harness has them: it may look behind them and spoil them.

    `stamps` is what such servers do not guarantee.
    """

    stamps: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many calls arrived at all servers."""

    @property
    def calls(self) -> dict[str, int]:
        """How many calls arrived at each server."""

    def starts(self, server: str) -> list[list[Event]]:
        """What a server really did, one list for each time it was started."""

    def arm(self, server: str, fault: Fault) -> None:
        """From now on this server misbehaves."""

    def kill(self, server: str) -> None:
        """The server dies now."""

    def substitute(self, server: str) -> None:
        """From now on another program stands where this server was."""


class Swapped:
    """A dispatcher whose world can be put anew, so that one broker serves the cases of one policy in turn."""

    world: World

    def observe(self, server: str, *, fresh: bool, deadline: Deadline) -> Observation | Unavailable:
        return self.world.observe(server, fresh=fresh, deadline=deadline)

    def send(self, claimed: Claimed, *, gate: Callable[[], bool], deadline: Deadline, relay: Relay = NO_RELAY) -> Reply:
        return self.world.send(claimed, gate=gate, deadline=deadline, relay=relay)


class CaseMachine:
    """The host of a case's VM. Counts what it is told to end."""

    host: Digest

    def __init__(self) -> None:
        self.torn_down: list[str] = []

    def begin(self, host: str) -> None:
        """As at the start of a case, on the machine of that name."""
        self.host = host_identity(host)
        self.torn_down.clear()

    def host_identity(self) -> Digest:
        return self.host

    def teardown(self, vm: str) -> None:
        self.torn_down.append(vm)


@lru_cache(maxsize=64)
def host_identity(name: str) -> Digest:
    """The identity of the machine of that name in a scenario."""
    return digest_of("projectbuddy/host-identity@1", name.encode())


@define
class Seat:
    """Everything around one case: what `begin` and `seal` put, and what faults change.

    `sealed` names the grant as it was sealed, whatever becomes of `grant`; None before.
    """

    policy: Policy
    ledger: Ledger
    clock: CaseClock
    chance: CaseChance
    machine: CaseMachine
    keys: KeyRing
    dispatcher: Swapped
    launches: Mapping[str, Digest]
    run: str = field(init=False)
    sealed: Digest | None = None
    broker: LiveBroker = field(init=False)
    grant: SealedGrant = field(init=False)
    session: Session = field(init=False)

    @property
    def world(self) -> World:
        """The case's servers."""
        return self.dispatcher.world

    def begin(self, case: LiveCase, seed: int, run: str) -> None:
        """Put clocks, chance and machine as they are at the start of this case."""
        self.run = run
        self.sealed = None
        self.clock.begin(case.run.start_ns)
        self.chance.begin(f"{seed}/{case.id}")
        self.machine.begin(case.run.host)

    def make_broker(self, case: LiveCase, on_moment: Callable[[Moment], None] | None = None) -> LiveBroker:
        """A broker over this seat, believing what the runner pinned."""
        return LiveBroker(
            policy=self.policy,
            pins=case.pins,
            launches=self.launches,
            ledger=self.ledger,
            dispatcher=self.dispatcher,
            machine=self.machine,
            clock=self.clock,
            chance=self.chance,
            keys=self.keys,
            on_moment=on_moment or _nothing,
        )

    def seal(self, case: LiveCase, broker: LiveBroker) -> None:
        """Seal the case's grant, and take the session that it is for."""
        self.broker = broker
        self.grant = broker.seal(
            run=self.run,
            principal=case.run.session,
            vm=case.run.vm,
            host=self.machine.host,
            task=case.run.task,
        )
        self.session = broker.session(self.grant)
        self.sealed = self.session.grant


def _nothing(_: Moment) -> None:
    """No fault strikes."""
