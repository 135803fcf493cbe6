"""The ledgers of one worker for one broker: each has the broker's own table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.suite.plan import MEMORY, RunPlan, ledger_id
from assisted_benchmark.suite.storage import RunDirectory, unwritten


class Ledgers:
    """Ledgers as the plan's durability wants them. In memory there may be many, on disk there is one, named `name`.

    `shared` is for the cases that leave it as they found it but for their own runs.
    """

    def __init__(self, plan: RunPlan, keys: KeyRing, table: TransitionTable, name: str) -> None:
        """Open the ledger.

        Raises:
            HarnessError: it has no place.
        """
        self.plan = plan
        self.keys = keys
        self._table = table
        self._name = name
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.shared: Ledger = self.in_memory() if self.is_memory else self._on_disk()

    @property
    def is_memory(self) -> bool:
        """Whether they end with the process."""
        return self.plan.durability == MEMORY

    def own(self) -> Ledger:
        """A ledger for a case whose faults reach it: one of its own, in memory."""
        return self.in_memory() if self.is_memory else self.shared

    def renew(self) -> None:
        """Put the shared one anew: in memory it keeps all it ever knew. On disk there is nothing to do."""
        if self.is_memory:
            self.shared = self.in_memory()

    def close(self) -> None:
        """Let go of the ledger and of temporary files."""
        self.shared.close()
        if self._folder is not None:
            self._folder.cleanup()

    def in_memory(self) -> Ledger:
        """One that nothing outlives."""
        return MemoryLedger(ledger_id(self.plan.seed), self._table)

    def _on_disk(self) -> Ledger:
        if self.plan.directory is None:
            self._folder = tempfile.TemporaryDirectory(prefix="assisted-benchmark-")
            folder = Path(self._folder.name)
        else:
            folder = RunDirectory(self.plan.directory).ledgers
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise unwritten(folder, error) from error
        return SqliteLedger.create(
            folder / f"{self._name}.sqlite",
            ledger_id=ledger_id(self.plan.seed),
            table=self._table,
            keys=self.keys,
            anchor=folder / f"{self._name}.anchor",
            durability=Durability(self.plan.durability),
        )


def require_store(failures: Iterator[str], *, declared: bool) -> None:
    """A store that fails where no fault declares it is the harness's own, such as a full disk: no verdict.

    `failures` are the details of the answers that a store could not be reached for.

    Raises:
        HarnessError: store_unavailable.
    """
    detail = next(failures, None)
    if detail is not None and not declared:
        raise HarnessError(Reason.STORE_UNAVAILABLE, detail)
