"""What is done in a process of its own for each fault: bounds, the tests, and one word of what came of them."""

from __future__ import annotations

import os
import resource
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import pytest

SURVIVED: Final = 0
KILLED: Final = 1
STILLBORN: Final = 3
_MEMORY: Final = 3 << 30


def begin(place: Path) -> None:
    """Leave the parent: a session of its own, nothing to read or write, and a bound on memory."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    place.mkdir(parents=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with_bound = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, with_bound))


def allow(cpu: float, wall: float) -> None:
    """From now on this much time; what takes longer ends the process, whatever it is doing."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(spent.ru_utime + spent.ru_stime + cpu) + 1, hard))
    signal.setitimer(signal.ITIMER_REAL, wall)


def passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run one test as pytest would: with its reports, which fixtures such as `tmp_path` ask for as they end."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("error")
        request = getattr(item, "_initrequest", None)
        if request is not None and not getattr(item, "_request", None):
            request()
        hook = item.ihook
        return (
            _reported(item, "setup", lambda: hook.pytest_runtest_setup(item=item))
            and _reported(item, "call", lambda: hook.pytest_runtest_call(item=item))
            and _reported(item, "teardown", lambda: hook.pytest_runtest_teardown(item=item, nextitem=following))
        )


def _reported(item: pytest.Item, when: Literal["setup", "call", "teardown"], act: Callable[[], None]) -> bool:
    """Whether this part of a test did not fail; whatever a fault makes it raise has been noticed."""
    call = pytest.CallInfo.from_call(act, when)
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return not report.failed
