"""Capability brokers that are killed: each cycle's keys are good for one execution, which the host's process counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Thread
from typing import Final

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.counting import CountingHost, ScriptedConsent
from assisted_benchmark.capability.ports import Host, Session
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.capability.states import CAPABILITY_TABLE, State
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.suite.capability.world import Served
from assisted_benchmark.suite.kills import Tally
from proofs.stores import KEYS, ROOT, Store, tally

_KEYS_A_RUN: Final = 20
_THREADS: Final = 2
_GESTURE: Final = "dev.pulp.state/parameter-gesture@1"
_CLOCK: Final = SystemClock()


class Operations:
    """Idempotency keys, each asked for by two threads of one broker, and by the next broker; the host is a process.

    One broker serves a run at a time: the next one takes over what a killed one left.
    """

    dispatchers: Final = 1
    told: Final = 3 * _KEYS_A_RUN

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        registry = load_registry(ROOT / "contracts" / "pulp.registry.yaml", ROOT)
        self._projection = Projection(registry)
        self._tool = registry.tool_name(_GESTURE)
        store(folder, CAPABILITY_TABLE).close()
        self._world = Served(_CLOCK, 1, lambda: None)

    def recover(self, cycle: int) -> None:
        for run in range(max(0, cycle - 2), cycle + 1):
            self._broker(run, CountingHost(_CLOCK, ()))  # which takes over

    def race(self, cycle: int, tell: Callable[[], None]) -> None:
        for run in (cycle - 1, cycle):
            broker = self._broker(run, self._world.host)
            start = Barrier(_THREADS)
            threads = [Thread(target=self._ask, args=(broker, run, start, tell)) for _ in range(_THREADS)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()

    def count(self, cycles: int, killed: int) -> Tally:  # noqa: ARG002 - all that there is
        reading = self._world.reading()
        arrived = Counter(each.parameters for each in reading.executions)
        return tally(
            self._store(self._folder, CAPABILITY_TABLE),
            arrived,
            killed,
            State.UNKNOWN_NEEDS_REFRESH,
            len(reading.disagreements),
        )

    def listen(self) -> None:
        self._world.listen()

    def close(self) -> None:
        self._world.close()

    def _ask(self, broker: CapabilityBroker, run: int, start: Barrier, tell: Callable[[], None]) -> None:
        start.wait()
        for place in range(_KEYS_A_RUN):
            tell()
            with suppress(ValueError):  # a wrong ledger keeps no receipt that tells why the last one ended
                broker.call(Session(f"run-{run}", "client", "peer"), self._tool, _asking(run, place))

    def _broker(self, run: int, host: Host) -> CapabilityBroker:
        operations = frozenset({_GESTURE})
        return CapabilityBroker(
            run=f"run-{run}",
            projection=self._projection,
            eligible=operations,
            ledger=self._store(self._folder, CAPABILITY_TABLE),
            host=host,
            consent=ScriptedConsent(policies=operations),
            clock=_CLOCK,
            chance=SystemChance(),
            keys=KEYS,
        )


def _asking(run: int, place: int) -> bytes:
    key = f"{run}-{place}"
    given = {"parameter_id": 7, "normalized_value": 0.5, "idempotency_key": key}
    return canonical_bytes({"instance_id": "instance-1", "input": given})
