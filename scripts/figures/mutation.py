"""Confirming a change, without the person and the endpoint; and whether many waiting proposals make it slower."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final

from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.counting import CountingEndpoint
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.results import Confirmed, NeedsAnswer, Proposed
from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.mutation.store import ProposalStore
from figures.bench import KEYS, ROOT
from figures.figure import Figure, at_most, p50_us, quiet

_CALLS: Final = 500
_PEER_CALLS: Final = 100
_FEW, _MANY = 20, 10_000
_CHANGE: Final = "connection"
_ACCEPT: Final = {"action": "accept", "content": {"confirm": True}}
_SESSION: Final = Session("run-1", "agent")


class Bench:
    """One broker over one ledger with room for `capacity` proposals, and an endpoint that answers at once."""

    def __init__(self, ledger: Ledger, capacity: int) -> None:
        contract = load_changes(ROOT / "contracts" / "fabric.changes.yaml", ROOT)
        clock = SystemClock()
        store = ProposalStore(ledger=ledger, clock=clock, chance=SystemChance(), keys=KEYS, capacity=capacity)
        self._broker = MutationBroker(contract=contract, endpoint=CountingEndpoint(clock), store=store)
        change = contract.change(_CHANGE)
        spec = {} if change is None else change.example.value
        self._proposal = json.dumps({"change_type": _CHANGE, "spec": spec}).encode()

    def propose(self, count: int) -> list[bytes]:
        """That many proposals: the arguments that confirm each."""
        return [self._confirmation() for _ in range(count)]

    def _confirmation(self) -> bytes:
        match self._broker.propose(_SESSION, self._proposal):
            case Proposed(token=token):
                return json.dumps({"token": token}).encode()
            case refused:
                raise AssertionError(f"the proposal to measure with was refused: {refused}")

    def confirm(self, raw: bytes) -> None:
        """From the token to the recorded end, with an answer that is there at once."""
        asked = self._broker.begin(_SESSION, raw, can_ask=True)
        state = asked.state if isinstance(asked, NeedsAnswer) else ""
        done = self._broker.resume(_SESSION, raw, state, _ACCEPT)
        if not (isinstance(done, Confirmed) and done.executed):
            raise AssertionError(f"the change to measure with was not carried out: {asked} {done}")


def figures() -> Iterator[Figure]:
    """Two durabilities beside a peer, then flatness."""
    peer = {"mcp-changeset": _peer()}
    for durability, bound in ((Durability.PROCESS, 150), (Durability.POWER, 500)):
        with _waiting(durability, _FEW) as calls:
            name = f"confirmation, consumed to recorded, sqlite {durability.value}"
            yield at_most(name, "us", p50_us(calls), bound, peer)
    with _waiting(Durability.PROCESS, _FEW) as few, _waiting(Durability.PROCESS, _MANY) as many:
        yield at_most(f"confirmation, {_MANY:,} waiting proposals to {_FEW}", "ratio", _ratio(many, few), 1.5)


@contextmanager
def _waiting(durability: Durability, waiting: int) -> Iterator[list[Callable[[], object]]]:
    """Confirmations, while at least as many proposals wait."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = SqliteLedger.create(
            Path(folder, "ledger.sqlite"),
            ledger_id="measure",
            table=MUTATION_TABLE,
            keys=KEYS,
            anchor=Path(folder, "anchor"),
            durability=durability,
        )
        bench = Bench(ledger, waiting + _CALLS)
        tokens = bench.propose(waiting + _CALLS)
        step = len(tokens) // _CALLS
        try:
            yield [partial(bench.confirm, raw) for raw in tokens[::step][:_CALLS]]
        finally:
            ledger.close()


def _ratio(calls: list[Callable[[], object]], others: list[Callable[[], object]]) -> float:
    """The median time of the calls to that of the others, taken in turn, so that both meet the same machine."""
    now = time.perf_counter_ns
    times = []
    with quiet():
        for call, other in zip(calls, others, strict=True):
            began = now()
            call()
            between = now()
            other()
            times.append((between - began) / (now() - between))
    return median(times)


def _peer() -> float | None:
    """The peer's ledger alone: its claim and its outcome, without its comparison, its tools and its event loop."""
    try:
        peer: Any = import_module("mcp_changeset")
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        ledger = peer.Ledger(Path(folder, "ledger.sqlite"))
        made = [
            ledger.create(action=_CHANGE, payload={}, diff=[], summary="", ttl=900, observed_hash=None, undoable=False)
            for _ in range(_PEER_CALLS)
        ]

        def confirm(change: Any, token: str) -> None:
            ledger.claim_apply(change.change_id, token)
            ledger.finish_apply(change.change_id, result={}, after_hash=None, undo_ttl=None)

        return p50_us([partial(confirm, change, token) for change, token in made])
