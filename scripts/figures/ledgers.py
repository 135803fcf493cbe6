"""Deciding on the SQLite ledger, from bytes to outcome; a group beside many; and what receipts cost to verify."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Claimed, Draft
from assisted_benchmark.ledger.receipts import verify
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.live_policy.dispatch import Flight, Verdict
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.states import LIVE_TABLE, State
from figures.bench import APPROVE, KEYS, Bench
from figures.figure import Figure, at_most, p50_us, seconds

_CALLS = 1_000
_MANY, _LIVES = 10_000, 300
_RECEIPTS = 100_000


def figures() -> Iterator[Figure]:
    """Two durabilities, each from raw bytes to the recorded outcome; flatness; then 100,000 receipts."""
    for durability, bound in ((Durability.PROCESS, 60), (Durability.POWER, 350)):
        yield at_most(f"decision, marker and outcome, sqlite {durability.value}", "us", _sqlite(durability), bound)
    yield at_most("life of a group opened later, beside 10,000 to beside none", "ratio", _beside_many(), 1.5)
    yield at_most("100,000 receipts verified", "s", _verify(), 0.4)


def _create(folder: str, durability: Durability) -> SqliteLedger:
    return SqliteLedger.create(
        Path(folder, "ledger.sqlite"),
        ledger_id="measure",
        table=LIVE_TABLE,
        keys=KEYS,
        anchor=Path(folder, "anchor"),
        durability=durability,
    )


def _beside_many() -> float:
    """What a new group's life costs in a run with many groups, to what it costs in one without."""
    return _life(_MANY) / _life(0)


def _life(others: int) -> float:
    draft = Draft("event", "receipt", Instant(0, 0), "measured")
    with tempfile.TemporaryDirectory() as folder, closing(_create(folder, Durability.PROCESS)) as ledger:
        ledger.open_run("run", b"{}", ())
        for number in range(others):
            ledger.open_group("run", b"other %d" % number, b"{}", draft)

        def live(group: bytes) -> None:
            ledger.open_group("run", group, b"{}", draft)
            claimed = ledger.claim(Admitted(group, digest_of("measured@1"), "s", "t", b"{}"), "run", draft)
            if not isinstance(claimed, Claimed):
                raise TypeError("a new group was not claimed")
            ledger.settle(claimed, State.SUCCEEDED, draft)

        return p50_us([lambda number=number: live(b"%d" % number) for number in range(_LIVES)])  # type: ignore[misc]


def _sqlite(durability: Durability) -> float:
    with tempfile.TemporaryDirectory() as folder, closing(_create(folder, durability)) as ledger:
        bench = Bench(ledger)
        carrier = bench.broker._carrier  # noqa: SLF001 - a figure of what is decided and kept, without the dispatch
        judge, claim, settle = bench.broker._decider.judge, carrier.claim, carrier._settle  # noqa: SLF001 - as above
        success = Verdict(State.SUCCEEDED, None)

        def run(session: Session) -> object:
            way = judge(session, APPROVE)
            return settle(way, Flight(claim(way)), success)  # type: ignore[arg-type]  # a refusal fails here, as it must

        return p50_us([lambda session=session: run(session) for session in bench.seal(_CALLS)])  # type: ignore[misc]


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
