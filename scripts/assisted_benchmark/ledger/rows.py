"""The rows of a ledger's SQLite file: their statements, their shapes, and the MAC over each."""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final, NamedTuple

from assisted_benchmark.kernel.errors import IntegrityError, LedgerError
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.kernel.reasons import Reason

ADD_RUN: Final = "INSERT INTO runs VALUES (?, ?, ?, ?)"
ADD_HEAD: Final = "INSERT INTO heads VALUES (?, ?, ?, ?, ?)"
ADD_GROUP: Final = "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)"
ADD_RECEIPT: Final = "INSERT INTO receipts VALUES (?, ?, ?)"
MOVE_HEAD: Final = "UPDATE heads SET length = ?, digest = ?, total = ?, mac = ? WHERE num = ? AND mac = ?"
MOVE_GROUP: Final = (
    "UPDATE groups SET state = ?, candidate = ?, refusals = ?, mac = ? WHERE name = ? AND state = ? AND mac = ?"
)
READ_RUN: Final = (
    "SELECT runs.num, record, runs.mac, length, digest, total, heads.mac FROM runs LEFT JOIN heads USING (num)"
    " WHERE run = ?"
)
READ_GROUP: Final = "SELECT num, state, candidate, refusals, mac FROM groups WHERE name = ?"
READ_REACH: Final = (
    "SELECT length, line FROM heads LEFT JOIN receipts ON receipts.num = heads.num AND seq = ? WHERE heads.num = ?"
)
READ_GROUPS: Final = "SELECT name, num, state, candidate, refusals, mac FROM groups WHERE num = ? ORDER BY name"


class HeadRow(NamedTuple):
    """A run's row in `heads`; `total` is the sum of its groups' MACs."""

    num: int
    length: int
    digest: str
    total: int
    mac: bytes


class GroupRow(NamedTuple):
    """A row of `groups`, without its name."""

    num: int
    state: str
    candidate: str
    refusals: int
    mac: bytes


class Macs:
    """The MAC of each kind of row: keyed BLAKE2b, personalised by the kind. What it covers reads back one way only."""

    def __init__(self, keys: KeyRing) -> None:
        secret = keys.key(Purpose.LEDGER).secret
        # Begun once a kind, as taking in the key is most of the work; each MAC goes on from a copy.
        self._group, self._head, self._run, self._meta = (
            blake2b(key=secret, digest_size=32, person=kind) for kind in (b"group", b"head", b"run", b"meta")
        )

    def group(self, name: bytes, num: int, state: str, candidate: str, refusals: int) -> bytes:
        """Over a group's row."""
        mac = self._group.copy()
        mac.update(f"{num},{refusals},{len(name)},{len(state)},{state}{candidate}".encode() + name)
        return mac.digest()

    def head(self, num: int, length: int, digest: str, total: bytes) -> bytes:
        """Over a run's head."""
        mac = self._head.copy()
        mac.update(f"{num},{length},{digest}".encode() + total)
        return mac.digest()

    def run(self, num: int, run: str, record: bytes) -> bytes:
        """Over a run's row."""
        mac = self._run.copy()
        mac.update(f"{num},{len(run)},{run}".encode() + record)
        return mac.digest()

    def meta(self, ledger_id: str, states: str) -> bytes:
        """Over the ledger's own row."""
        mac = self._meta.copy()
        mac.update(f"{len(ledger_id)},{ledger_id}{states}".encode())
        return mac.digest()

    def head_row(self, run: str, *found: tuple[Any, ...]) -> HeadRow:
        """A run's head from what READ_RUN found, if that is there and verifies."""
        if not found:
            raise LedgerError(Reason.UNKNOWN_GRANT, f"the ledger has no run `{run}`")
        num, record, run_mac, length, digest, total, mac = found[0]
        if not compare_digest(run_mac, self.run(num, run, record)):
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"the run `{run}` was edited")
        if mac is None or not compare_digest(mac, self.head(num, length, digest, total)):
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"the head of the run `{run}` was edited or removed")
        return HeadRow(num, length, digest, int.from_bytes(total, "big"), mac)

    def group_row(self, name: bytes, *columns: Any) -> GroupRow:
        """A group's row from its columns, if they verify."""
        group = GroupRow(*columns)
        if not compare_digest(group.mac, self.group(name, group.num, group.state, group.candidate, group.refusals)):
            raise IntegrityError(Reason.LEDGER_TAMPERED, "a group's row was edited")
        return group
