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
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.live_policy.states import LIVE_TABLE

KEYS = KeyRing("k1", b"k" * 32)
NOW = Instant(1_900_000_000_123_456_789, 9_007_199_254_740_993)
RECORD = b'{"run":"r"}'
APPROVE = digest_of("candidate@1", b"approve")
HOLD = digest_of("candidate@1", b"hold")


def a_group(name: str = "g") -> bytes:
    return hashlib.sha256(name.encode()).digest()


def a_permit(group: bytes, candidate: Digest = APPROVE) -> Admitted:
    return Admitted(group, candidate, "ui", "click", b"{}")


def a_draft(kind: str = "decision", reason: str = "admitted", **more: str) -> Draft:
    return Draft(kind, "id-1", NOW, reason, **more)


def a_claim(ledger: Ledger, run: str, group: bytes, candidate: Digest = APPROVE) -> Claimed:
    claimed = ledger.claim(a_permit(group, candidate), run, a_draft())
    assert isinstance(claimed, Claimed)
    return claimed


def verified(ledger: Ledger, run: str) -> Verification:
    return verify(ledger.receipts(run), run=run, ledger_id=ledger.id, head=ledger.head(run), table=ledger.table)


def create(folder: Path, durability: Durability = Durability.PROCESS) -> SqliteLedger:
    return SqliteLedger.create(
        folder / "ledger.db",
        ledger_id="ledger-1",
        table=LIVE_TABLE,
        keys=KEYS,
        anchor=folder / "anchor",
        durability=durability,
    )


def reopen(folder: Path, keys: KeyRing = KEYS, anchor: str = "anchor", name: str = "ledger.db") -> SqliteLedger:
    return SqliteLedger.open(folder / name, table=LIVE_TABLE, keys=keys, anchor=folder / anchor)


MAKERS: dict[str, Callable[[Path], Ledger]] = {
    "memory": lambda _: MemoryLedger("ledger-1", LIVE_TABLE),
    "process": create,
    "power": lambda folder: create(folder, Durability.POWER),
}
