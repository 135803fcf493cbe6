"""The bench of one worker: each broker's ledger and stage, and the running of cases on them."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any

from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.broker import Explained, Stage
from assisted_benchmark.suite.brokers import BY_NAME
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.journal import NO_CHAIN, Ended
from assisted_benchmark.suite.ledgers import Ledgers
from assisted_benchmark.suite.plan import RunPlan, run_keys, servers_of
from assisted_benchmark.suite.result import CaseResult, Verdict


class Bench:
    """Runs the cases of one worker, one after the other. `part` and `repetition` name its files."""

    def __init__(self, plan: RunPlan, part: int = 0, repetition: int = 0) -> None:
        self._plan = plan
        self._name = f"{part}-{repetition}"
        self._keys = run_keys(plan.seed)
        self._stages: dict[str, tuple[Stage[Any], Ledgers]] = {}
        self._last: Stage[Any] | None = None

    def open(self, brokers: Iterable[str]) -> None:
        """Make ready for cases of these brokers.

        Raises:
            HarnessError: there is no place for a ledger.
        """
        for broker in brokers:
            self._stage(broker)

    def run(self, case: Case, run: str = "") -> Ended:
        """One case to its end. What the harness itself fails at is `could_not_run`, never a verdict."""
        self._last = stage = self._stage(case.broker)
        began = perf_counter_ns()
        try:
            return stage.play(case, run or case.run_id, servers_of(case, self._plan))
        except HarnessError as error:
            return self._could_not(case, error.reason, error.detail, began)
        except Exception as error:  # noqa: BLE001 - whatever it was, this case has no verdict and the next one runs
            return self._could_not(case, Reason.COULD_NOT_RUN, f"{type(error).__name__}: {error}", began)

    def explained(self) -> tuple[Explained, ...]:
        """Each proposal of the last case, laid open."""
        return () if self._last is None else self._last.explained()

    def close(self) -> None:
        """Let go of ledgers, of server processes and of temporary files."""
        for stage, ledgers in self._stages.values():
            ledgers.close()
            stage.close()

    def _stage(self, name: str) -> Stage[Any]:
        if name not in self._stages:
            broker = BY_NAME[name]
            ledgers = Ledgers(self._plan, self._keys, broker.table, f"{self._name}-{name}")
            self._stages[name] = broker.stage(ledgers), ledgers
        return self._stages[name][0]

    def _could_not(self, case: Case, reason: Reason, detail: str, began: int) -> Ended:
        result = could_not_run(case, reason, detail)
        timing = {"play": perf_counter_ns() - began}
        return Ended(result=result, broker=case.broker, run="", receipts=(), head=NO_CHAIN, timing=timing)


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
