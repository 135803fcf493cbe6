"""Runs many cases, in this process or in several; results come as they are ready.

Each worker has its own bench (ledger, keys, started servers) and its own journal. An ended case
is in a journal before its result is told, so a killed run loses only what had not ended.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from multiprocessing.synchronize import Event
from multiprocessing.util import Finalize
from typing import Any, Final

import orjson
from attrs import evolve

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.bench import Bench, could_not_run
from assisted_benchmark.suite.case import Case, Servers
from assisted_benchmark.suite.journal import Ended, Journal, pack, unpack
from assisted_benchmark.suite.plan import RunPlan, run_keys, servers_of
from assisted_benchmark.suite.result import VARIES, CaseResult, Miss, Verdict
from assisted_benchmark.suite.storage import RunDirectory

_CHUNK: Final = 64
# Starting workers takes as long as running some hundred cases in this process.
_FEW: Final = 500
_PR_SET_PDEATHSIG: Final = 1
_WORST: Final = (Verdict.FAILED, Verdict.COULD_NOT_RUN, Verdict.PASSED)


class Worker:
    """Runs cases of one process, each as often as the plan says, and journals them."""

    def __init__(self, cases: Sequence[Case], plan: RunPlan, part: int) -> None:
        self._cases = cases
        self._plan = plan
        directory = RunDirectory(plan.directory) if plan.directory is not None else None
        self._benches = [Bench(plan, part, repetition) for repetition in range(plan.repeat)]
        for bench in self._benches:
            bench.open({case.broker for case in cases})
        self._journal = Journal(directory.journal(part), run_keys(plan.seed)) if directory is not None else None

    def run(self, index: int) -> tuple[CaseResult, bytes]:
        """One case to its end; its result, and the same packed."""
        case = self._cases[index]
        ended = self._benches[0].run(case)
        again = [bench.run(case) for bench in self._benches[1:]]
        if VARIES in (stamp for each in (ended, *again) for stamp in each.result.stamps):
            ended = _of_all((ended, *again))
        else:
            for each in again:
                ended = self._again(ended, each)
        packed = pack(ended.result)
        if self._journal is not None:
            self._journal.write(ended, packed)
        return ended.result, packed

    def close(self) -> None:
        """Let go of ledgers, servers and the journal."""
        for bench in self._benches:
            bench.close()
        if self._journal is not None:
            self._journal.close()

    def _again(self, first: Ended, second: Ended) -> Ended:
        if not self._plan.expect_identical or first.result.verdict is Verdict.COULD_NOT_RUN:
            return first
        if (first.receipts, first.result) == (second.receipts, second.result):
            return first
        return first.missing(Miss(what="identical", expected=_digest(first), actual=_digest(second)))


def _of_all(runs: Sequence[Ended]) -> Ended:
    """Of a case that varies: how often it passed, beside the run that went worst."""
    worst = min(runs, key=lambda each: _WORST.index(each.result.verdict))
    counts = Counter(each.result.verdict for each in runs)
    judged = counts[Verdict.PASSED] + counts[Verdict.FAILED]
    return worst._replace(result=evolve(worst.result, runs=judged, passes=counts[Verdict.PASSED]))


def _digest(ended: Ended) -> str:
    return ended.result.receipts or ended.result.detail


def results(cases: Sequence[Case], indices: Sequence[int], plan: RunPlan, first_part: int) -> Generator[CaseResult]:
    """The result of every case whose index is given, as they are ready. Closing the iterator stops the workers."""
    if plan.jobs > 1 and _is_worth_processes(cases, indices, plan):
        yield from _in_processes(cases, indices, plan, first_part)
    else:
        worker = Worker(cases, plan, first_part)
        try:
            for index in indices:
                yield worker.run(index)[0]
        finally:
            worker.close()


def _is_worth_processes(cases: Sequence[Case], indices: Sequence[int], plan: RunPlan) -> bool:
    heavy = sum(servers_of(cases[index], plan) is Servers.PROCESS for index in indices)
    return heavy > 1 or len(indices) * plan.repeat > _FEW


def _in_processes(
    cases: Sequence[Case], indices: Sequence[int], plan: RunPlan, first_part: int
) -> Generator[CaseResult]:
    # Spawned, never forked: a fork would share open ledgers and copy other threads' locks.
    context = multiprocessing.get_context("spawn")
    stop, part = context.Event(), context.Value("i", first_part)
    pool = ProcessPoolExecutor(
        min(plan.jobs, len(indices)), context, initializer=_start, initargs=(cases, plan, part, stop)
    )
    told: set[int] = set()
    try:
        waiting: set[Future[list[tuple[int, bytes]]]] = {
            pool.submit(_run_chunk, chunk) for chunk in _chunks(cases, indices, plan)
        }
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                for index, packed in future.result():
                    told.add(index)
                    yield unpack(orjson.loads(packed))
    except BrokenProcessPool:
        for index in indices:
            if index not in told:
                yield could_not_run(cases[index], Reason.COULD_NOT_RUN, "a worker process died; see its journal")
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _chunks(cases: Sequence[Case], indices: Sequence[int], plan: RunPlan) -> Iterator[list[int]]:
    """Cases with real processes go one by one, for they take long; the others in bundles."""
    size = max(1, min(_CHUNK, len(indices) // (plan.jobs * 4)))
    light: list[int] = []
    for index in indices:
        if servers_of(cases[index], plan) is Servers.PROCESS:
            yield [index]
        else:
            light.append(index)
    for start in range(0, len(light), size):
        yield light[start : start + size]


# The one worker of a spawned process, set by `_start`.
_here: dict[str, Any] = {}


def _start(cases: Sequence[Case], plan: RunPlan, part: Any, stop: Event) -> None:
    _end_with_parent()
    # Ctrl-C reaches the whole process group; the run's process alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with part.get_lock():
        mine = part.value
        part.value += 1
    worker = Worker(cases, plan, mine)
    _here.update(worker=worker, stop=stop)
    Finalize(None, worker.close, exitpriority=10)


def _end_with_parent() -> None:
    """A killed run tells nobody. Its workers must not go on with cases that another process takes up."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return  # a test calls from the run's own process
    if sys.platform == "linux":
        # At once and whatever the worker is doing; a parent that died before this line is seen by the thread below.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(parent: int) -> None:
    wait_for([parent])
    os._exit(1)


def _run_chunk(indices: list[int]) -> list[tuple[int, bytes]]:
    done = []
    for index in indices:
        if _here["stop"].is_set():
            break
        done.append((index, _here["worker"].run(index)[1]))
    return done
