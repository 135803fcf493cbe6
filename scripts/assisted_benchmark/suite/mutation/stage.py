"""The mutation broker's stage: a broker, a store and an endpoint for each case, over the worker's ledger."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.results import Confirmed, Refusal
from assisted_benchmark.suite.broker import Explained
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.instruments import CaseChance, CaseClock, CutOff
from assisted_benchmark.suite.journal import NO_CHAIN, Ended
from assisted_benchmark.suite.ledgers import Ledgers, require_store
from assisted_benchmark.suite.mutation.agents import Shot
from assisted_benchmark.suite.mutation.case import Came, CaseRun
from assisted_benchmark.suite.mutation.experiment import Experiment
from assisted_benchmark.suite.mutation.explain import explained
from assisted_benchmark.suite.mutation.faults import Kind
from assisted_benchmark.suite.mutation.scenario import MutationCase
from assisted_benchmark.suite.mutation.seat import Seat
from assisted_benchmark.suite.mutation.world import Modelled, Served, World


class MutationStage:
    """Plays the mutation broker's cases of one worker."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._last: tuple[MutationCase, Sequence[tuple[Shot, Came]]] | None = None

    def play(self, case: MutationCase, run: str, servers: Servers) -> Ended:
        began = perf_counter_ns()
        clock, chance = CaseClock(), CaseChance()
        clock.begin(case.run.start_ns)
        chance.begin(f"{self._ledgers.plan.seed}/{case.id}")
        world: World = (Served if servers is Servers.PROCESS else Modelled)(clock, case.run.seed, ())
        try:
            return self._played(case, run, clock, chance, world, began)
        finally:
            world.close()

    def _played(
        self, case: MutationCase, run: str, clock: CaseClock, chance: CaseChance, world: World, began: int
    ) -> Ended:
        # A store in memory has a ledger of its own, whatever the run's is: it ends with its broker.
        inner = self._ledgers.own() if case.store.durable else self._ledgers.in_memory()
        experiment = Experiment(case)
        seat = Seat(
            case=case,
            run=run,
            ledger=CutOff(inner),
            clock=clock,
            chance=chance,
            keys=self._ledgers.keys,
            world=world,
            new_ledger=self._ledgers.in_memory,
            on_moment=experiment.on_moment,
        )
        played = CaseRun(case, experiment, seat)
        ready = perf_counter_ns()
        self._last = case, played.answers
        played.play()
        over = perf_counter_ns()
        failures = (
            came.detail
            for _, came in played.answers
            if isinstance(came, Confirmed | Refusal) and came.reason is Reason.STORE_UNAVAILABLE
        )
        require_store(failures, declared=any(each.kind is Kind.LEDGER for each in case.faults))
        ledger = seat.ledger.inner
        known = ledger in seat.lives()
        head = ledger.head(run) if known else None
        result = played.result(None if head is None else head.digest)
        receipts = tuple(ledger.receipts(run)) if known and self._ledgers.plan.keeps else ()
        timing = {"prepare": ready - began, "play": over - ready, "judge": perf_counter_ns() - over}
        return Ended(
            result=result,
            broker=case.broker,
            run=run if known else "",
            receipts=receipts,
            head=head or NO_CHAIN,
            timing=timing,
        )

    def explained(self) -> tuple[Explained, ...]:
        return () if self._last is None else explained(*self._last)

    def close(self) -> None:
        """Every case has closed what it started."""
