"""How cases are run: what a run was told, and what follows from its seed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.suite.case import Case, Servers
from assisted_benchmark.suite.storage import new_keys

MEMORY: Final = "memory"


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

    @property
    def keeps(self) -> bool:
        """Whether receipts themselves are wanted, not only the digest at their end."""
        return self.directory is not None or self.expect_identical


def servers_of(case: Case, plan: RunPlan) -> Servers:
    """Where the case's servers live in this run. One that kills models stays with them: no process can be killed so."""
    if plan.servers is None or (Servers(plan.servers) is Servers.PROCESS and case.only_models):
        return case.servers
    return Servers(plan.servers)


def run_keys(seed: int) -> KeyRing:
    """The keys of every run with this seed."""
    return new_keys(SeededChance(f"keys/{seed}"))


def ledger_id(seed: int) -> str:
    """The id of every ledger of a run with this seed, whichever worker has it: receipts name it."""
    return f"suite-{seed}"
