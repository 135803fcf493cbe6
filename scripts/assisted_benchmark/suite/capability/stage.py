"""The capability broker's stage: a broker, a person and a host for each case, over the worker's ledger."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns

from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.capability.results import Outcome
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.broker import Explained
from assisted_benchmark.suite.capability.agents import Shot
from assisted_benchmark.suite.capability.case import CaseRun
from assisted_benchmark.suite.capability.experiment import Experiment
from assisted_benchmark.suite.capability.explain import explained
from assisted_benchmark.suite.capability.faults import Kind
from assisted_benchmark.suite.capability.scenario import CapabilityCase
from assisted_benchmark.suite.capability.scoring import Came
from assisted_benchmark.suite.capability.seat import Seat
from assisted_benchmark.suite.capability.world import Modelled, Served, World
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.instruments import CaseChance, CaseClock, CutOff
from assisted_benchmark.suite.journal import Ended
from assisted_benchmark.suite.ledgers import Ledgers, require_store


class CapabilityStage:
    """Plays the capability broker's cases of one worker. The tools of a registry are made once."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._projections: dict[Digest, Projection] = {}
        self._last: tuple[CapabilityCase, Sequence[tuple[Shot, Came]]] | None = None

    def play(self, case: CapabilityCase, run: str, servers: Servers) -> Ended:
        began = perf_counter_ns()
        clock, chance = CaseClock(), CaseChance()
        clock.begin(case.run.start_ns)
        chance.begin(f"{self._ledgers.plan.seed}/{case.id}")
        experiment = Experiment(case)
        kind = Served if servers is Servers.PROCESS else Modelled
        world: World = kind(clock, case.run.seed, experiment.hangs)
        try:
            seat = Seat(
                case=case,
                run=run,
                projection=self._projection(case.registry),
                ledger=CutOff(self._ledgers.own()),
                clock=clock,
                chance=chance,
                keys=self._ledgers.keys,
                world=world,
                reach=experiment.reach,
            )
            return self._played(case, experiment, seat, began)
        finally:
            world.close()

    def _played(self, case: CapabilityCase, experiment: Experiment, seat: Seat, began: int) -> Ended:
        played = CaseRun(case, experiment, seat)
        ready = perf_counter_ns()
        self._last = case, played.answers
        played.play()
        over = perf_counter_ns()
        failures = (
            came.detail if isinstance(came, Refused) else came.explanation
            for _, came in played.answers
            if isinstance(came, Outcome | Refused) and came.reason is Reason.STORE_UNAVAILABLE
        )
        require_store(failures, declared=any(each.kind is Kind.LEDGER for each in case.faults))
        ledger, run = seat.ledger.inner, seat.run
        head = ledger.head(run)
        result = played.result(head.digest)
        receipts = tuple(ledger.receipts(run)) if self._ledgers.plan.keeps else ()
        timing = {"prepare": ready - began, "play": over - ready, "judge": perf_counter_ns() - over}
        return Ended(result=result, broker=case.broker, run=run, receipts=receipts, head=head, timing=timing)

    def _projection(self, registry: Registry) -> Projection:
        digest = registry.digest
        if digest not in self._projections:
            self._projections[digest] = Projection(registry)
        return self._projections[digest]

    def explained(self) -> tuple[Explained, ...]:
        return () if self._last is None else explained(*self._last)

    def close(self) -> None:
        """Every case has closed what it started."""
