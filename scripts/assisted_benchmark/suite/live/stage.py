"""The live broker's stage: its brokers, worlds and seats, and the playing of its cases on them.

Cases without faults, served in this process, share one broker a policy: only clocks, chance,
machine and servers are put anew. A case with faults gets a broker of its own, and in memory a
ledger of its own. Either way what a case comes to depends on nothing that ran before it.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.policy import Policy
from assisted_benchmark.live_policy.trust import Pins
from assisted_benchmark.mcp_router.process import Launcher
from assisted_benchmark.suite.broker import Explained
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.instruments import CaseChance, CaseClock, CutOff
from assisted_benchmark.suite.journal import NO_CHAIN, Ended
from assisted_benchmark.suite.ledgers import Ledgers, require_store
from assisted_benchmark.suite.live.agents import Shot
from assisted_benchmark.suite.live.case import Answer, CaseRun
from assisted_benchmark.suite.live.explain import explained
from assisted_benchmark.suite.live.faults import Kind
from assisted_benchmark.suite.live.in_process import InProcess, launches_in_process
from assisted_benchmark.suite.live.processes import Processes
from assisted_benchmark.suite.live.scenario import RECORDING_SEED, LiveCase
from assisted_benchmark.suite.live.seat import CaseMachine, Seat, Swapped
from assisted_benchmark.suite.live.served import ServedCase
from assisted_benchmark.suite.result import Miss

# A ledger in memory keeps all it ever knew: after so many cases it is put anew.
_MEMORY_CASES: Final = 200


@frozen
class _Lane:
    """A policy's seat and the broker on it."""

    seat: Seat
    broker: LiveBroker


class LiveStage:
    """Plays the live broker's cases of one worker."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._launcher: Launcher | None = None
        self._lanes: dict[tuple[Digest, Pins], _Lane] = {}
        self._cases = 0
        self._last: tuple[LiveCase, list[tuple[Shot, Answer]]] | None = None

    def play(self, case: LiveCase, run: str, servers: Servers) -> Ended:
        began = perf_counter_ns()
        self._cases += 1
        if self._cases % _MEMORY_CASES == 0 and self._ledgers.is_memory:
            self._ledgers.renew()
            self._lanes.clear()
        if servers is Servers.PROCESS:
            ended = self._with_processes(case, run, began)
        elif case.faults:
            ended = self._with_faults(case, run, began)
        else:
            lane = self._lane(case)
            seat = lane.seat
            seat.begin(case, self._ledgers.plan.seed, run)
            seat.dispatcher.world = world_of(case, seat)
            ended = self._played(case, CaseRun(case, seat), seat, lane.broker, began)
        return ended if case.expect.receipts is None else self._held(case, ended, servers)

    def _held(self, case: LiveCase, ended: Ended, servers: Servers) -> Ended:
        """The same, held against the receipts that were recorded, if it was run as they were."""
        expected, came = case.expect.receipts, ended.result.receipts
        if expected == came or self._ledgers.plan.seed != RECORDING_SEED or servers is not case.servers:
            return ended
        return ended.missing(Miss(what="receipts", expected=str(expected), actual=came or "none"))

    def _lane(self, case: LiveCase) -> _Lane:
        policy = case.plan.policy
        key = (policy.digest, case.pins)
        if key not in self._lanes:
            seat = self._seat(policy, self._ledgers.shared)
            self._lanes[key] = _Lane(seat, seat.make_broker(case))
        return self._lanes[key]

    def _with_faults(self, case: LiveCase, run: str, began: int) -> Ended:
        cut_off = CutOff(self._ledgers.own())
        seat = self._seat(case.plan.policy, cut_off)
        seat.begin(case, self._ledgers.plan.seed, run)
        seat.dispatcher.world = world_of(case, seat)
        return self._played(case, CaseRun(case, seat, cut_off), seat, None, began)

    def _with_processes(self, case: LiveCase, run: str, began: int) -> Ended:
        if self._launcher is None:
            self._launcher = Launcher()
        cut_off = CutOff(self._ledgers.own())
        seat = self._seat(case.plan.policy, cut_off)
        seat.begin(case, self._ledgers.plan.seed, run)
        contract, clock = case.plan.policy.contract, seat.clock
        world = Processes(contract, case.folder, clock, self._launcher, seed=case.run.seed, task=case.run.task)
        seat.dispatcher.world = world
        try:
            seat.launches = world.launches()
            return self._played(case, CaseRun(case, seat, cut_off), seat, None, began)
        finally:
            world.close()

    def _played(self, case: LiveCase, played: CaseRun, seat: Seat, broker: LiveBroker | None, began: int) -> Ended:
        ready = perf_counter_ns()
        self._last = case, played.answers
        outside = case.agent.outside
        if outside is None:
            played.play(broker)
        elif played.begin(broker):
            served = ServedCase(case, played, seat, outside.clock)
            outside.drive(served)
            served.close()
            played.end()
        over = perf_counter_ns()
        failures = (
            answer.detail
            for _, answer in played.answers
            if not isinstance(answer, Reason) and answer.reason is Reason.STORE_UNAVAILABLE
        )
        require_store(failures, declared=any(each.kind is Kind.STORE for each in case.faults))
        ledger = seat.ledger.inner if isinstance(seat.ledger, CutOff) else seat.ledger
        if isinstance(seat.ledger, CutOff):
            seat.ledger.down = False
        known = seat.sealed is not None
        head = ledger.head(seat.run) if known else NO_CHAIN
        result = played.result(head.digest if known else None)
        receipts = tuple(ledger.receipts(seat.run)) if known and self._ledgers.plan.keeps else ()
        timing = {"prepare": ready - began, "play": over - ready, "judge": perf_counter_ns() - over}
        return Ended(
            result=result,
            broker=case.broker,
            run=seat.run if known else "",
            receipts=receipts,
            head=head,
            timing=timing,
        )

    def _seat(self, policy: Policy, ledger: Ledger) -> Seat:
        return Seat(
            policy=policy,
            ledger=ledger,
            clock=CaseClock(),
            chance=CaseChance(),
            machine=CaseMachine(),
            keys=self._ledgers.keys,
            dispatcher=Swapped(),
            launches=launches_in_process(policy.contract),
        )

    def explained(self) -> tuple[Explained, ...]:
        return () if self._last is None else explained(*self._last)

    def close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()


def world_of(case: LiveCase, seat: Seat) -> InProcess:
    """The case's servers as fresh models."""
    run = case.run
    return InProcess(case.plan.policy.contract, case.folder, seat.clock, seat.launches, seed=run.seed, task=run.task)
