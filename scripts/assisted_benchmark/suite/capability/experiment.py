"""Makes a capability case's declared faults happen, each at its moment, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse
from assisted_benchmark.suite.capability.agents import Aim, Shot
from assisted_benchmark.suite.capability.expand import host_fault
from assisted_benchmark.suite.capability.faults import ANY_TURN, At, Dies, Fault, Kind, Others
from assisted_benchmark.suite.capability.scenario import FIRST_INSTANCE, CapabilityCase
from assisted_benchmark.suite.capability.seat import Seat
from assisted_benchmark.suite.instruments import BrokerDiedError
from assisted_benchmark.suite.strikes import Waiting

# What nothing is named.
_NOTHING: Final = "nothing"


class Experiment:
    """The faults of one case. `tell` is told of each that strikes, `aside` of what the agent's client heard of a call
    that a fault made; they and `seat` are put before the first moment.

    `rivals` counts the executions that the other calls of races caused.
    """

    seat: Seat
    tell: Callable[[Fault], None]
    aside: Callable[[str, object], None]

    def __init__(self, case: CapabilityCase) -> None:
        self.rivals = 0
        self.raced = 0
        self.aim = Aim(Shot(), b"{}")  # before the agent has called anything
        self._case = case
        self._waiting = Waiting(case.faults, len(case.agent.shots))

    def unstruck(self) -> tuple[str, ...]:
        """The faults whose moment never came."""
        return tuple(f"{each.kind} at {each.at}" for each in self._waiting.left)

    def next_turn(self, aim: Aim) -> None:
        """The agent makes its next call."""
        self._waiting.turn += 1
        self.aim = aim

    def reach(self, at: At) -> bool:
        """This moment has come: whatever was to strike now strikes. Whether anything did."""
        struck = False
        for fault in self._waiting.take(lambda each: each.at is at, any_turn=at in ANY_TURN):
            struck = True
            self.tell(fault)
            self._strike(fault)
        return struck

    def hangs(self) -> None:
        """The host has a request, and does not answer: something may happen, or the time runs out."""
        if not self.reach(At.HANGING):
            self.seat.clock.advance(self.seat.host.deadline.remaining_ns())

    def _strike(self, fault: Fault) -> None:
        seat, value = self.seat, fault.value
        match fault.kind:
            case Kind.ADVANCE:
                seat.clock.advance(value)
            case Kind.SET_BACK:
                seat.clock.set_wall(seat.clock.now().wall_ns - value)
            case Kind.HOST:
                seat.world.arm(host_fault(self._case.registry, value))
            case Kind.CRASH if value == Dies.BROKER:
                raise BrokerDiedError
            case Kind.CRASH:
                seat.world.kill()
            case Kind.RESTART if value == Dies.BROKER:
                seat.start()
            case Kind.RESTART:
                seat.world.start()
            case Kind.RIVAL:
                seat.another_broker()
            case Kind.CANCEL:
                self._manage("cancel", {"instance_id": self._instance, "request_id": self._request_id})
            case Kind.REVOKE:
                self._manage("revoke", {"grant_id": self._grant})
            case Kind.RACE:
                self._race()
            case Kind.ENROLLED:
                seat.host.others = Others(value)
            case Kind.LEDGER:
                seat.ledger.down = value == "unavailable"

    def _manage(self, name: str, arguments: dict[str, str]) -> None:
        """A management call of the agent's own client, while its other call is under way."""
        tool = self._case.registry.management_tool(name)
        answer = self.seat.broker.call(self.seat.session(self.aim.shot.client), tool, canonical_bytes(arguments))
        self.aside(name, answer)

    def _race(self) -> None:
        """The same client calls the same once more."""
        seat, aim = self.seat, self.aim
        before = len(seat.world.reading().executions)
        answer = seat.broker.call(seat.session(aim.shot.client), aim.shot.tool or "", aim.raw)
        self.raced += 1
        self.rivals += len(seat.world.reading().executions) - before
        self.aside("race", answer)

    @property
    def _instance(self) -> str:
        return str(self._arguments.get("instance_id", FIRST_INSTANCE))

    @property
    def _request_id(self) -> str:
        return str(self._arguments.get("request_id", _NOTHING))

    @property
    def _grant(self) -> str:
        """The grant that the call names, or the one that the broker got for it."""
        named = self._arguments.get("grant_id")
        if named is not None:
            return str(named)
        lines = [parse(line) for line in self.seat.ledger.inner.receipts(self.seat.run)]
        return next((line["grant"] for line in reversed(lines) if line["grant"]), _NOTHING)

    @property
    def _arguments(self) -> dict[str, Json]:
        """What the call has as arguments; of one in raw text nobody looks into that."""
        value: dict[str, Json] = parse(self.aim.raw) if self.aim.shot.raw is None else {}
        return value
