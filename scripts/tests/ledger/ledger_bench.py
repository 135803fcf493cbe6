"""Builders for ledger tests: a ledger of each kind, permits and drafts."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Claimed, Draft, Ledger
from assisted_benchmark.ledger.receipts import Verification, verify
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.live_policy.states import LIVE_TABLE

KEYS = KeyRing("k1", b"k" * 32)
NOW = Instant(1_900_000_000_123_456_789, 9_007_199_254_740_993)
RECORD = b'{"run":"r"}'
APPROVE = digest_of("candidate@1", b"approve")
OPENED = "opened"
HOLD = digest_of("candidate@1", b"hold")


def a_group(name: str = "g") -> bytes:
    return hashlib.sha256(name.encode()).digest()


def a_permit(group: bytes, candidate: Digest = APPROVE) -> Admitted:
    return Admitted(group, candidate, "ui", "click", b"{}")


def a_draft(kind: str = "decision", reason: str = "admitted", **more: str) -> Draft:
    return Draft(kind, "id-1", NOW, reason, **more)


def an_opening(ledger: Ledger, run: str, group: bytes, record: bytes = RECORD) -> None:
    """A group that comes later than its run."""
    assert ledger.open_group(run, group, record, a_draft("event", OPENED))


def a_claim(ledger: Ledger, run: str, group: bytes, candidate: Digest = APPROVE) -> Claimed:
    claimed = ledger.claim(a_permit(group, candidate), run, a_draft())
    assert isinstance(claimed, Claimed)
    return claimed


def verified(ledger: Ledger, run: str) -> Verification:
    return verify(ledger.receipts(run), run=run, ledger_id=ledger.id, head=ledger.head(run), table=ledger.table)


def create(
    folder: Path, durability: Durability = Durability.PROCESS, table: TransitionTable = LIVE_TABLE
) -> SqliteLedger:
    return SqliteLedger.create(
        folder / "ledger.db",
        ledger_id="ledger-1",
        table=table,
        keys=KEYS,
        anchor=folder / "anchor",
        durability=durability,
    )


def reopen(
    folder: Path,
    keys: KeyRing = KEYS,
    anchor: str = "anchor",
    name: str = "ledger.db",
    table: TransitionTable = LIVE_TABLE,
) -> SqliteLedger:
    return SqliteLedger.open(folder / name, table=table, keys=keys, anchor=folder / anchor)


MAKERS: dict[str, Callable[..., Ledger]] = {
    "memory": lambda _, table=LIVE_TABLE: MemoryLedger("ledger-1", table),
    "process": lambda folder, table=LIVE_TABLE: create(folder, table=table),
    "power": lambda folder, table=LIVE_TABLE: create(folder, Durability.POWER, table),
}

# Claimed by way of a prompt, and ended differently by a crash before the claim and after it.
PROMPTED = TransitionTable(
    name="prompted",
    initial="sealed",
    ready="asking",
    claimed="sending",
    after_crash={"asking": "refused", "sending": "unresolved"},
    edges=frozenset(
        {
            ("sealed", "asking"),
            ("sealed", "expired"),
            ("asking", "sending"),
            ("asking", "refused"),
            ("sending", "done"),
            ("sending", "unresolved"),
        }
    ),
)

# In flight from its birth: a crash leaves nothing as it is but the ends.
BORN_IN_FLIGHT = TransitionTable(
    name="born in flight",
    initial="admitted",
    claimed="running",
    after_crash={"admitted": "cancelled", "running": "unknown"},
    edges=frozenset(
        {
            ("admitted", "running"),
            ("admitted", "cancelled"),
            ("running", "done"),
            ("running", "unknown"),
        }
    ),
)
