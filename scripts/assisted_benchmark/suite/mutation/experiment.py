"""Makes a mutation case's declared faults happen, each at its moment, once."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from assisted_benchmark.kernel.canonical import Canonical, canonical_bytes
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.results import NeedsAnswer
from assisted_benchmark.suite.instruments import BrokerDiedError
from assisted_benchmark.suite.mutation.agents import Aim
from assisted_benchmark.suite.mutation.faults import ANY_TURN, At, Fault, Kind, Mappings, Tampers
from assisted_benchmark.suite.mutation.scenario import MutationCase
from assisted_benchmark.suite.mutation.seat import Seat
from assisted_benchmark.suite.strikes import Waiting
from assisted_benchmark.workloads.fabric_api_faults import FabricFault

ACCEPTED = {"action": "accept", "content": {"confirm": True}}


class Experiment:
    """The faults of one case. `tell` is told of each that strikes; it and `seat` are put before the first moment.

    `rivals` counts the creates that the other confirmations of races caused.
    """

    seat: Seat
    tell: Callable[[Fault], None]

    def __init__(self, case: MutationCase) -> None:
        self.rivals = 0
        self.aim: Aim | None = None
        self._waiting = Waiting(case.faults, len(case.agent.shots))

    def unstruck(self) -> tuple[str, ...]:
        """The faults whose moment never came."""
        return tuple(f"{each.kind} at {each.at}" for each in self._waiting.left)

    def next_turn(self, aim: Aim) -> None:
        """The agent makes its next call."""
        self._waiting.turn += 1
        self.aim = aim
        self.seat.cancelled = False

    def reach(self, at: At) -> None:
        """This moment has come: whatever was to strike now strikes."""
        for fault in self._waiting.take(lambda each: each.at is at, any_turn=at in ANY_TURN):
            self.tell(fault)
            self._strike(fault)

    def on_moment(self, moment: Moment) -> None:
        """The broker's own moments."""
        self.reach(At(moment.value))

    def _strike(self, fault: Fault) -> None:
        seat, value = self.seat, fault.value
        match fault.kind:
            case Kind.ADVANCE:
                seat.clock.advance(value)
            case Kind.SET_BACK:
                seat.clock.set_wall(seat.clock.now().wall_ns - value)
            case Kind.REBOOT:
                seat.clock.reboot(value)
            case Kind.ENDPOINT:
                said = {"kind": value["does"], **{key: each for key, each in value.items() if key != "does"}}
                seat.world.arm(FabricFault.parse(said))
            case Kind.CANCEL:
                seat.cancelled = True
            case Kind.CRASH:
                raise BrokerDiedError
            case Kind.RESTART:
                seat.broker.close()
                seat.start_again()
            case Kind.TAMPER:
                seat.store.tampered = Tampers(value)
            case Kind.MAPPING:
                seat.compiler.wrong = Mappings(value)
            case Kind.CONTRACT:
                seat.contract = evolve(seat.contract, source=_changed(seat.contract.source))
                seat.broker = seat.another_broker(self.on_moment)
            case Kind.LEDGER:
                seat.ledger.down = True
            case Kind.RACE:
                self._race()

    def _race(self) -> None:
        """Another caller of the same session confirms the same token, and its person says yes."""
        seat, aim = self.seat, self.aim
        if aim is None or not aim.token:
            return
        rival, session = seat.another_broker(), seat.session("")
        before = sum(seat.world.reading().real.values())
        answer = rival.begin(session, aim.raw, True)
        if isinstance(answer, NeedsAnswer):
            rival.resume(session, aim.raw, answer.state, ACCEPTED)
        self.rivals += sum(seat.world.reading().real.values()) - before


def _changed(source: Canonical) -> Canonical:
    """The contract's file with one more word in it, as a new pin would have it."""
    return Canonical(canonical_bytes({**source.value, "endpoint": f"{source.value['endpoint']}, changed"}))
