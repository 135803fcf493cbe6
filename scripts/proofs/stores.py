"""The stores that proofs run over: the real ledger, or one that is wrong; and what every arena needs of them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.ledger.receipts import verify
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.suite.kills import Tally, doubled

ROOT: Final = Path(__file__).resolve().parents[2]
KEYS: Final = KeyRing("proofs", b"a key that guards nothing at all")

# The real ledgers, which have to be alike.
KINDS: Final = ("memory", "sqlite")

# A broker's ledger in a folder: made at first, opened later.
Store: TypeAlias = Callable[[Path, TransitionTable], Ledger]


def real(folder: Path, table: TransitionTable) -> Ledger:
    """What we use."""
    path, anchor = folder / "ledger.db", folder / "anchor"
    if path.exists():
        return SqliteLedger.open(path, table=table, keys=KEYS, anchor=anchor)
    return SqliteLedger.create(path, ledger_id="proofs", table=table, keys=KEYS, anchor=anchor)


def unsound(ledger: Ledger) -> int:
    """How many runs have receipts that do not verify."""
    return sum(
        not verify(ledger.receipts(run), run=run, ledger_id=ledger.id, head=ledger.head(run), table=ledger.table).sound
        for run in ledger.runs()
    )


def tally(ledger: Ledger, arrived: Counter[Any], killed: int, unresolved: str, disagreements: int = 0) -> Tally:
    """What came of an arena over this ledger, which is closed; `unresolved` is the state of what was left open."""
    states = Counter(row.state for run in ledger.runs() for _, row in ledger.groups(run))
    came = Tally(
        kills=killed,
        sends=arrived.total(),
        groups=states.total(),
        doubles=doubled(arrived),
        unresolved=states[unresolved],
        unsound=unsound(ledger) + disagreements,
    )
    ledger.close()
    return came


def written(path: Path, value: Any) -> None:
    """Keep a JSON value, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value), encoding="utf-8")
    os.replace(part, path)


def read(path: Path) -> Any:
    """What was written."""
    return json.loads(path.read_text(encoding="utf-8"))
