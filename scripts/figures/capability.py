"""What the capability broker's tools cost to make, and an operation without what its host does."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.counting import CountingHost, ScriptedConsent
from assisted_benchmark.capability.grants import MAX_GRANTS
from assisted_benchmark.capability.operations import MAX_RECEIPTS
from assisted_benchmark.capability.ports import Capability, Enrolled, Instance, Session
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.capability.results import Managed, Outcome
from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import Deadline, SystemClock
from assisted_benchmark.ledger.sqlite import SqliteLedger
from figures.bench import KEYS
from figures.figure import Figure, at_most, p50_us

_ROOT = Path(__file__).resolve().parents[2]
_ROUNDS = 200
_SESSION = Session("run-1", "client-1", "peer-1")
_READ = "dev.pulp.state/read@1"
_STATE = b'{"parameters":[],"state_generation":1,"catalog_generation":1,"catalog_included":false,"redacted_count":0}'


def figures() -> Iterator[Figure]:
    """The whole reference registry as tools; an operation in an empty broker, and in a full one."""
    registry = load_registry(_ROOT / "contracts" / "pulp.registry.yaml", _ROOT)
    whole = p50_us([lambda: Projection(registry)] * _ROUNDS)
    yield at_most("the whole registry projected as tools", "ms", whole / 1000, 2)
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(Projection(registry), Path(folder))
        few = bench.p50()
        bench.fill()
        many = bench.p50()
        bench.ledger.close()
    yield at_most("operation, bytes to receipt without its host, sqlite process", "us", few, 200)
    yield at_most("the same with 4,096 receipts and 256 grants", "us", many, 200)
    yield at_most("the same, beside the first", "times", many / few, 1.3)


class _Host(CountingHost):
    """A host that answers at once, and keeps nothing of the steps that led there."""

    def _step(self, step: str, deadline: Deadline, enrolled: Enrolled | None = None) -> None:
        """Nothing is counted."""


class _Bench:
    """A broker over a ledger, with a host that answers at once."""

    def __init__(self, projection: Projection, folder: Path) -> None:
        operations = tuple(each.id for each in projection.registry.operations)
        clock = SystemClock()
        instance = Instance("instance-1", "registration-1", "publication-1", 1, tuple(map(Capability, operations)))
        host = _Host(clock, (instance,))
        host.execute = lambda _claimed, _envelope: host.ended(_STATE)
        self.ledger = SqliteLedger.create(
            folder / "ledger.sqlite",
            ledger_id="measure",
            table=CAPABILITY_TABLE,
            keys=KEYS,
            anchor=folder / "anchor",
        )
        self.broker = CapabilityBroker(
            run="run-1",
            projection=projection,
            eligible=frozenset(operations),
            ledger=self.ledger,
            host=host,
            consent=ScriptedConsent(policies=frozenset(operations)),
            clock=clock,
            chance=SystemChance(),
            keys=KEYS,
        )
        self.grants = [self._granted()]

    def p50(self) -> float:
        """The median time of an operation under the first grant."""
        return p50_us([self._asking()] * _ROUNDS)

    def fill(self) -> None:
        """As many grants as there may be, and as many receipts, but for those that are still to be measured."""
        self.grants += [self._granted() for _ in range(MAX_GRANTS - len(self.grants))]
        ask = self._asking()
        for _ in range(MAX_RECEIPTS - 2 * _ROUNDS):
            ask()

    def _granted(self) -> str:
        arguments = json.dumps({"instance_id": "instance-1", "operation_id": _READ}).encode()
        granted = self.broker.call(_SESSION, "pulp_control_grant_request", arguments)
        if not isinstance(granted, Managed):
            raise AssertionError("the grant to measure with was refused")  # noqa: TRY004 - of the bench, no type
        return str(granted.data["grant_id"])

    def _asking(self) -> Callable[[], object]:
        arguments = json.dumps({"instance_id": "instance-1", "grant_id": self.grants[0], "input": {}}).encode()

        def ask() -> object:
            answer = self.broker.call(_SESSION, "pulp_control_state_read", arguments)
            if not isinstance(answer, Outcome) or answer.reason is not None:
                raise AssertionError("the operation to measure did not complete")
            return answer

        return ask
