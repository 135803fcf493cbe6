"""The worlds of schedules: real brokers over one real (or wrong) ledger, and a server that counts what arrives.

Brokers give way before and after each of their writes to the ledger, and at their own moments around the send. Each is
a process of its own, with its own connection to the ledger; a memory ledger is one that outlives them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.ledger.states import TransitionTable
from proofs.naive_ledger import WRONG, ReadThenUpdate
from proofs.scheduler import Act, step
from proofs.stores import real, unsound

# Longer than anything that a broker gives out is good for.
HOUR: Final = 3600 * SECOND

# The brokers' moments that are no write to the ledger: before the admission, right before the send, right after it.
_MOMENTS: Final = frozenset({"admit", "write", "answer"})


class _Stepping:
    """A ledger whose writes are steps. What it answers is the real one's."""

    def __init__(self, ledger: Ledger, steps: frozenset[str]) -> None:
        self._ledger = ledger
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)
        if name not in self._steps:
            return method

        def stepping(*given: Any, **more: Any) -> Any:
            step(f"before {name}")
            answer = method(*given, **more)
            step(f"after {name}")
            return answer

        return stepping


def at_moment(moment: str) -> None:
    """Have a broker give way there."""
    if moment in _MOMENTS:
        step(moment)


class World:
    """What all worlds share. `ledger` is one of `stores.KINDS`, or the name of a wrong one; `who` is what goes on."""

    table: TransitionTable
    steps: frozenset[str] = frozenset({"claim", "settle", "move", "recover", "open_group"})

    def __init__(self, ledger: str, who: tuple[str, ...]) -> None:
        self.who = who
        self._kind = ledger
        self._folder = Path(tempfile.mkdtemp(prefix="schedules-"))
        self._memory = MemoryLedger("schedules", self.table)
        self._opened: list[Ledger] = []
        self.clock = ManualClock()
        self.acts: list[Act] = []
        self.arrived: list[str] = []
        self.answers: list[Any] = []

    def ledger(self) -> Ledger:
        """A process's own connection to the one ledger."""
        if self._kind == "memory":
            opened: Ledger = self._memory
        elif self._kind == "sqlite":
            opened = real(self._folder, self.table)
        else:
            naive = WRONG[self._kind](self._folder, self.table)
            if isinstance(naive, ReadThenUpdate):
                naive.between = lambda: step("between read and write")
            opened = naive
        self._opened.append(opened)
        return cast(Ledger, _Stepping(opened, self.steps))

    def act(self, name: str, process: int, do: Callable[[], object]) -> None:
        """One more thing that goes on."""
        self.acts.append(Act(name, process, lambda: self.answers.append(do())))

    def ends(self) -> str:
        """See the scheduler's `World`."""
        try:
            self.again()
            ledger = self._opened[-1]
            fault = self.fault(ledger)
            return fault or ("the receipts do not verify" if unsound(ledger) else "")
        finally:
            for each in self._opened:
                each.close()
            shutil.rmtree(self._folder)

    def again(self) -> None:
        """A new process starts over the same ledger, and everything is asked for once more."""
        raise NotImplementedError

    def fault(self, ledger: Ledger) -> str:
        """What is wrong now."""
        raise NotImplementedError
