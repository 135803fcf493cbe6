"""Deciding on the SQLite ledger: decision, durable marker, outcome; and what receipts cost to verify."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.receipts import verify
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.live_policy.states import LIVE_TABLE
from figures.bench import APPROVE, KEYS, Bench
from figures.figure import Figure, at_most, p50_us, seconds

_CALLS = 1_000
_RECEIPTS = 100_000


def figures() -> Iterator[Figure]:
    """Two durabilities, each from raw bytes to the recorded outcome; then 100,000 receipts."""
    for durability, bound in ((Durability.PROCESS, 60), (Durability.POWER, 350)):
        yield at_most(f"decision, marker and outcome, sqlite {durability.value}", "us", _sqlite(durability), bound)
    yield at_most("100,000 receipts verified", "s", _verify(), 0.4)


def _sqlite(durability: Durability) -> float:
    with tempfile.TemporaryDirectory() as folder:
        ledger = SqliteLedger.create(
            Path(folder, "ledger.sqlite"),
            ledger_id="measure",
            table=LIVE_TABLE,
            keys=KEYS,
            anchor=Path(folder, "anchor"),
            durability=durability,
        )
        bench = Bench(ledger)
        sessions = bench.seal(_CALLS)
        propose = bench.broker.propose
        try:
            return p50_us([lambda session=session: propose(session, APPROVE) for session in sessions])  # type: ignore[misc]
        finally:
            ledger.close()


def _verify() -> float:
    ledger = MemoryLedger("measure", LIVE_TABLE)
    bench = Bench(ledger)
    (session,) = bench.seal(1)
    stranger = session._replace(principal="stranger")
    for _ in range(_RECEIPTS):
        bench.broker.decide(stranger, APPROVE)
    lines, head = list(ledger.receipts(session.run)), ledger.head(session.run)
    found = verify(lines, run=session.run, ledger_id=ledger.id, head=head, table=LIVE_TABLE)
    if found.findings or len(lines) != _RECEIPTS:
        raise AssertionError("the receipts to measure with do not verify")
    return seconds(lambda: verify(lines, run=session.run, ledger_id=ledger.id, head=head, table=LIVE_TABLE))
