"""Mutation brokers that are killed: each cycle's tokens are good once; what arrives the endpoint's process counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SECOND, SystemClock
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.counting import CountingEndpoint
from assisted_benchmark.mutation.ports import Endpoint
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.results import NeedsAnswer, Proposed
from assisted_benchmark.mutation.states import MUTATION_TABLE, State
from assisted_benchmark.mutation.store import ProposalStore
from assisted_benchmark.suite.kills import Tally
from assisted_benchmark.suite.mutation.world import Served
from proofs.stores import KEYS, ROOT, Store, read, tally, written

_TOKENS: Final = 20
_CHANGE: Final = "network"
_YES: Final = {"action": "accept", "content": {"confirm": True}}
_CLOCK: Final = SystemClock()


class Changes:
    """Tokens of proposed networks, each confirmed by several; the endpoint is a process of its own, behind HTTP."""

    dispatchers: Final = 2
    told: Final = 3 * _TOKENS

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._contract = load_changes(ROOT / "contracts" / "fabric.changes.yaml", ROOT)
        store(folder, MUTATION_TABLE).close()
        self._world = Served(_CLOCK, 1, ())

    def recover(self, cycle: int) -> None:
        # Dry runs are answered here: what is proved is what becomes of their tokens.
        broker = self._broker(CountingEndpoint(_CLOCK))
        broker.recover()
        for run in range(max(0, cycle - 2), cycle + 1):
            if not self._tokens(run).exists():
                written(self._tokens(run), [self._propose(broker, run, place) for place in range(_TOKENS)])

    def race(self, cycle: int, tell: Callable[[], None]) -> None:
        broker = self._broker(self._world.endpoint)
        for run in (cycle - 1, cycle):
            for token in read(self._tokens(run)):
                tell()
                raw, session = canonical_bytes({"token": token}), _session(run)
                asked = broker.begin(session, raw, can_ask=True)
                if isinstance(asked, NeedsAnswer):
                    broker.resume(session, raw, asked.state, _YES)

    def count(self, cycles: int, killed: int) -> Tally:  # noqa: ARG002 - all that there is
        arrived = Counter(each.body for each in self._world.reading().created)
        return tally(self._store(self._folder, MUTATION_TABLE), arrived, killed, State.UNRESOLVED)

    def listen(self) -> None:
        self._world.listen()

    def close(self) -> None:
        self._world.close()

    def _broker(self, endpoint: Endpoint) -> MutationBroker:
        store = ProposalStore(
            ledger=self._store(self._folder, MUTATION_TABLE),
            clock=_CLOCK,
            chance=SystemChance(),
            keys=KEYS,
            capacity=1 << 20,
            ttl_ns=3600 * SECOND,
        )
        return MutationBroker(contract=self._contract, endpoint=endpoint, store=store)

    def _propose(self, broker: MutationBroker, run: int, place: int) -> str:
        change = self._contract.change(_CHANGE)
        spec = {} if change is None else {**change.example.value, "name": f"network-{run}-{place}"}
        made = broker.propose(_session(run), canonical_bytes({"change_type": _CHANGE, "spec": spec}))
        if not isinstance(made, Proposed):
            raise AssertionError(f"the change to confirm was refused: {made}")  # noqa: TRY004 - of the arena, no type
        return made.token

    def _tokens(self, run: int) -> Path:
        return self._folder / f"tokens-{run}.json"


def _session(run: int) -> Session:
    return Session(f"run-{run}", "agent")
