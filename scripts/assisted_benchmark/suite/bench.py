"""The bench of one worker: its ledger, its keys, its brokers, and the running of cases on them.

Cases without faults, served in this process, share one broker a policy: only clocks, chance,
machine and servers are put anew. A case with faults gets a broker of its own, and in memory a
ledger of its own. Either way what a case comes to depends on nothing that ran before it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter_ns
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Head, Ledger
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.checks import Pins
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.live_policy.policy import Policy
from assisted_benchmark.live_policy.states import LIVE_TABLE
from assisted_benchmark.mcp_router.process import Launcher
from assisted_benchmark.suite.agents import Shot
from assisted_benchmark.suite.case import CaseRun
from assisted_benchmark.suite.faults import Kind
from assisted_benchmark.suite.in_process import InProcess, launches_in_process, models_of
from assisted_benchmark.suite.journal import Ended
from assisted_benchmark.suite.processes import Processes
from assisted_benchmark.suite.result import CaseResult, Verdict
from assisted_benchmark.suite.scenario import Case, Servers
from assisted_benchmark.suite.seat import CaseChance, CaseClock, CaseMachine, CutOff, Seat, Swapped
from assisted_benchmark.suite.storage import RunDirectory, new_keys, unwritten

MEMORY: Final = "memory"
# A ledger in memory keeps all it ever knew: after so many cases it is put anew.
_MEMORY_CASES: Final = 200
_NO_CHAIN: Final = Head(0, Digest(""))


@frozen(kw_only=True)
class RunPlan:
    """How to run. `directory` is the run's own; one that holds a journal is resumed.

    `maxfail` 0 never stops early. `servers` overrides every scenario's own. `durability` is memory,
    process (survives a killed process) or power (survives the machine's). `shard` (number, of) runs only that part.
    """

    seed: int = 0
    jobs: int = 1
    maxfail: int = 0
    durability: str = "process"
    servers: str | None = None
    repeat: int = 1
    expect_identical: bool = False
    directory: Path | None = None
    shard: tuple[int, int] | None = None


def servers_of(case: Case, plan: RunPlan) -> Servers:
    """Where the case's servers live in this run. One that kills models stays with them: no process can be killed so."""
    if plan.servers is None or (Servers(plan.servers) is Servers.PROCESS and _kills(case)):
        return case.servers
    return Servers(plan.servers)


def _kills(case: Case) -> bool:
    return any(each.kind is Kind.KILL for each in case.faults)


def run_keys(seed: int) -> KeyRing:
    """The keys of every run with this seed."""
    return new_keys(SeededChance(f"keys/{seed}"))


def ledger_id(seed: int) -> str:
    """The id of every ledger of a run with this seed, whichever worker has it: receipts name it."""
    return f"suite-{seed}"


@frozen
class _Lane:
    """A policy's seat and the broker on it."""

    seat: Seat
    broker: LiveBroker
    folder: str


class Bench:
    """Runs the cases of one worker, one after the other. `part` and `repetition` name its files.

    `answers` are what the broker answered to each proposal of the last case.
    """

    def __init__(self, plan: RunPlan, part: int = 0, repetition: int = 0) -> None:
        self._plan = plan
        self._name = f"{part}-{repetition}"
        self._keys = run_keys(plan.seed)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._launcher: Launcher | None = None
        self._lanes: dict[tuple[Digest, Pins], _Lane] = {}
        self.answers: list[tuple[Shot, Outcome | Refused | Reason]] = []
        self._cases = 0
        self._ledger = self._new_ledger()

    def run(self, case: Case, run: str = "") -> Ended:
        """One case to its end. What the harness itself fails at is `could_not_run`, never a verdict."""
        began = perf_counter_ns()
        try:
            return self._run(case, run or case.run.run or case.id, began)
        except HarnessError as error:
            return self._could_not(case, error.reason, error.detail, began)
        except Exception as error:  # noqa: BLE001 - whatever it was, this case has no verdict and the next one runs
            return self._could_not(case, Reason.COULD_NOT_RUN, f"{type(error).__name__}: {error}", began)

    def close(self) -> None:
        """Let go of the ledger, of server processes and of temporary files."""
        self._ledger.close()
        if self._launcher is not None:
            self._launcher.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _run(self, case: Case, run: str, began: int) -> Ended:
        self._cases += 1
        if self._plan.durability == MEMORY and self._cases % _MEMORY_CASES == 0:
            self._ledger = self._new_ledger()
            self._lanes.clear()
        if servers_of(case, self._plan) is Servers.PROCESS:
            return self._with_processes(case, run, began)
        if case.faults:
            return self._with_faults(case, run, began)
        lane = self._lane(case)
        seat = lane.seat
        seat.begin(case, self._plan.seed, run)
        contract = case.plan.policy.contract
        models = models_of(contract, lane.folder, case.run.seed, case.run.task)
        seat.dispatcher.world = InProcess(contract, seat.launches, models, seat.clock)
        return self._played(case, CaseRun(case, seat), seat, lane.broker, began)

    def _lane(self, case: Case) -> _Lane:
        policy = case.plan.policy
        key = (policy.digest, case.pins)
        if key not in self._lanes:
            seat = self._seat(policy, self._ledger)
            self._lanes[key] = _Lane(seat, seat.make_broker(case), case.folder)
        return self._lanes[key]

    def _with_faults(self, case: Case, run: str, began: int) -> Ended:
        cut_off = CutOff(self._new_ledger() if self._plan.durability == MEMORY else self._ledger)
        seat = self._seat(case.plan.policy, cut_off)
        seat.begin(case, self._plan.seed, run)
        contract = case.plan.policy.contract
        models = models_of(contract, case.folder, case.run.seed, case.run.task)
        seat.dispatcher.world = InProcess(contract, seat.launches, models, seat.clock)
        return self._played(case, CaseRun(case, seat, cut_off), seat, None, began)

    def _with_processes(self, case: Case, run: str, began: int) -> Ended:
        if self._launcher is None:
            self._launcher = Launcher()
        cut_off = CutOff(self._new_ledger() if self._plan.durability == MEMORY else self._ledger)
        seat = self._seat(case.plan.policy, cut_off)
        seat.begin(case, self._plan.seed, run)
        contract, clock = case.plan.policy.contract, seat.clock
        world = Processes(contract, case.folder, clock, self._launcher, seed=case.run.seed, task=case.run.task)
        seat.dispatcher.world = world
        try:
            seat.launches = world.launches()
            return self._played(case, CaseRun(case, seat, cut_off), seat, None, began)
        finally:
            world.close()

    def _played(self, case: Case, played: CaseRun, seat: Seat, broker: LiveBroker | None, began: int) -> Ended:
        ready = perf_counter_ns()
        self.answers = played.answers
        played.play(broker)
        over = perf_counter_ns()
        self._store_was_there(case)
        ledger = seat.ledger.inner if isinstance(seat.ledger, CutOff) else seat.ledger
        if isinstance(seat.ledger, CutOff):
            seat.ledger.down = False
        known = seat.sealed is not None
        head = ledger.head(seat.run) if known else _NO_CHAIN
        result = played.result(head.digest if known else None)
        receipts = tuple(ledger.receipts(seat.run)) if known and self._keeps else ()
        timing = {"prepare": ready - began, "play": over - ready, "judge": perf_counter_ns() - over}
        return Ended(result=result, run=seat.run if known else "", receipts=receipts, head=head, timing=timing)

    def _store_was_there(self, case: Case) -> None:
        """A store that fails where no fault declares it is the harness's own, such as a full disk: no verdict."""
        for _, answer in self.answers:
            if not isinstance(answer, Reason) and answer.reason is Reason.STORE_UNAVAILABLE:
                if any(each.kind is Kind.STORE for each in case.faults):
                    return
                raise HarnessError(Reason.STORE_UNAVAILABLE, answer.detail)

    @property
    def _keeps(self) -> bool:
        """Whether receipts themselves are wanted, not only the digest at their end."""
        return self._plan.directory is not None or self._plan.expect_identical

    def _seat(self, policy: Policy, ledger: Ledger) -> Seat:
        return Seat(
            policy=policy,
            ledger=ledger,
            clock=CaseClock(),
            chance=CaseChance(),
            machine=CaseMachine(),
            keys=self._keys,
            dispatcher=Swapped(),
            launches=launches_in_process(policy.contract),
        )

    def _new_ledger(self) -> Ledger:
        if self._plan.durability == MEMORY:
            return MemoryLedger(ledger_id(self._plan.seed), LIVE_TABLE)
        if self._plan.directory is None:
            self._folder = tempfile.TemporaryDirectory(prefix="assisted-benchmark-")
            folder = Path(self._folder.name)
        else:
            folder = RunDirectory(self._plan.directory).ledgers
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise unwritten(folder, error) from error
        return SqliteLedger.create(
            folder / f"{self._name}.sqlite",
            ledger_id=ledger_id(self._plan.seed),
            table=LIVE_TABLE,
            keys=self._keys,
            anchor=folder / f"{self._name}.anchor",
            durability=Durability(self._plan.durability),
        )

    def _could_not(self, case: Case, reason: Reason, detail: str, began: int) -> Ended:
        result = could_not_run(case, reason, detail)
        return Ended(result=result, run="", receipts=(), head=_NO_CHAIN, timing={"play": perf_counter_ns() - began})


def could_not_run(case: Case, reason: Reason, detail: str) -> CaseResult:
    """The verdict on a case that the harness itself failed."""
    return CaseResult(
        id=case.id,
        file=case.file,
        because=case.because,
        agent=case.agent.name,
        policy=case.policy,
        verdict=Verdict.COULD_NOT_RUN,
        tags=case.tags,
        reason=reason.value,
        detail=detail,
    )
