"""The ledger in SQLite: what a killed process, or a power loss, leaves behind is still at most one dispatch.

Every row that decides something carries a MAC over all of its columns, checked whenever it is read.
A run's head also carries the sum of its groups' MACs, so that a row that was removed, or put back to
an older state with its older MAC, shows when the run is recovered. Rows that this process wrote itself
are remembered until another connection writes; so the usual turn is three writes and no read, and the
claim is decided by the one conditional UPDATE, never by what was remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hmac import compare_digest
from pathlib import Path
from typing import Final

import apsw

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import IntegrityError, LedgerError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger import rows
from assisted_benchmark.ledger.files import Anchor, Mark, require_absent
from assisted_benchmark.ledger.protocol import Claimed, Draft, Head, Lost, Row
from assisted_benchmark.ledger.receipts import crash_draft, first_prev, line_digest, write_line
from assisted_benchmark.ledger.rows import GroupRow, HeadRow, Macs
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.ledger.store import Durability, Store, create_database

_REMEMBERED: Final = 4096
_MODULUS: Final = 1 << 256


class SqliteLedger:
    """A ledger in one SQLite file; threads and processes may share it (each process opens its own)."""

    def __init__(
        self, path: Path, *, table: TransitionTable, keys: KeyRing, anchor: Path, durability: Durability
    ) -> None:
        """Use `open` or `create`."""
        self._table = table
        self._initial = str(table.initial)
        self._claimed = str(table.claimed)
        self._macs = Macs(keys)
        self._store = Store(path, anchor, durability)
        self._heads: dict[str, HeadRow] = {}
        self._groups: dict[bytes, GroupRow] = {}
        self._runs = 0
        try:
            self._id = self._open()
        except BaseException:
            self._store.close()
            raise

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        ledger_id: str,
        table: TransitionTable,
        keys: KeyRing,
        anchor: Path,
        durability: Durability = Durability.PROCESS,
    ) -> SqliteLedger:
        """Make a new ledger and its anchor, and open it.

        Raises:
            MisuseError: one of the files exists (misuse).
            LedgerError: the files cannot be made (store_unavailable), or ledger_unsafe_version.
        """
        states = _states_digest(table)
        for each in (path, anchor):
            require_absent(each)
        create_database(path, (ledger_id, states, Macs(keys).meta(ledger_id, states)))
        Anchor.create(anchor, ledger_id, Mark(0, 0, 0, b""))
        return cls(path, table=table, keys=keys, anchor=anchor, durability=durability)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        table: TransitionTable,
        keys: KeyRing,
        anchor: Path,
        durability: Durability = Durability.PROCESS,
    ) -> SqliteLedger:
        """Open a ledger that was created before.

        Raises:
            LedgerError: ledger_missing, ledger_unsafe_version or store_unavailable.
            IntegrityError: ledger_malformed, ledger_tampered (also: another key) or ledger_rolled_back.
        """
        return cls(path, table=table, keys=keys, anchor=anchor, durability=durability)

    @property
    def id(self) -> str:
        return self._id

    @property
    def table(self) -> TransitionTable:
        return self._table

    def open_run(self, run: str, record: bytes, groups: Sequence[bytes]) -> bool:
        with self._store:
            self._forget_if_stale()
            if self._store.read("SELECT 1 FROM runs WHERE run = ?", (run,)):
                return False
            num = self._runs + 1
            first = first_prev(self._id, run)
            self._store.write(rows.ADD_RUN, (num, run, record, self._macs.run(num, run, record)))
            total = 0
            for name in groups:
                mac = self._macs.group(name, num, self._initial, "", 0)
                try:
                    self._store.write(rows.ADD_GROUP, (name, num, self._initial, "", 0, mac))
                except apsw.ConstraintError as error:
                    raise LedgerError(
                        Reason.ILLEGAL_TRANSITION, f"a group of the run `{run}` exists already"
                    ) from error
                total = (total + int.from_bytes(mac, "big")) % _MODULUS
                self._remember_group(name, GroupRow(num, self._initial, "", 0, mac))
            mac = self._macs.head(num, 0, first, total.to_bytes(32, "big"))
            self._store.write(rows.ADD_HEAD, (num, 0, first, total.to_bytes(32, "big"), mac))
            self._runs = num
            self._remember_head(run, HeadRow(num, 0, first, total, mac))
            self._store.commit(Mark(num, num, 0, first.encode()))
            return True

    def run_record(self, run: str) -> bytes | None:
        found = self._store.select(rows.READ_RUN, (run,))
        if not found:
            return None
        self._macs.head_row(run, *found)
        return bytes(found[0][1])

    def row(self, group: bytes) -> Row | None:
        found = self._store.select(rows.READ_GROUP, (group,))
        if not found:
            return None
        row = self._macs.group_row(group, *found[0])
        return Row(row.state, row.candidate, row.refusals)

    def claim(self, permit: Admitted, run: str, receipt: Draft) -> Claimed | Lost:
        with self._store:
            head, group = self._head_and_group(run, permit.group)
            if group.state != self._initial:
                return Lost(group.state)
            after = (self._claimed, str(permit.candidate), group.refusals)
            self._change(run, head, permit.group, group, after, receipt)
        # INVARIANT: the COMMIT has returned; only now is there something to send.
        return Claimed(permit, run)

    def settle(self, claimed: Claimed, state: str, receipt: Draft) -> None:
        self._table.require(self._claimed, state)
        name = claimed.permit.group
        with self._store:
            head, group = self._head_and_group(claimed.run, name)
            if group.state != self._claimed or group.candidate != claimed.permit.candidate:
                raise LedgerError(
                    Reason.ILLEGAL_TRANSITION, f"the group is `{group.state}`, not claimed by this permit"
                )
            self._change(claimed.run, head, name, group, (str(state), group.candidate, group.refusals), receipt)

    def move(self, group: bytes, run: str, before: str, after: str, receipt: Draft) -> bool:
        self._table.require_move(before, after)
        with self._store:
            head, found = self._head_and_group(run, group)
            if found.state != before:
                return False
            self._change(run, head, group, found, (str(after), found.candidate, found.refusals), receipt)
            return True

    def record(self, run: str, receipt: Draft, refused: bytes | None = None) -> int:
        with self._store:
            if refused is None:
                self._append(run, self._head(run), receipt, receipt.group, "", receipt.state, 0)
                return 0
            head, group = self._head_and_group(run, refused)
            refusals = group.refusals + 1
            self._change(run, head, refused, group, (group.state, group.candidate, refusals), receipt)
            return refusals

    def recover(self, run: str, at: Instant) -> tuple[bytes, ...]:
        with self._store:
            head = self._head(run)
            found = self._store.read(rows.READ_GROUPS, (head.num,))
            groups = [(name, self._macs.group_row(name, *columns)) for name, *columns in found]
            total = sum(int.from_bytes(row.mac, "big") for _, row in groups)
            if total % _MODULUS != head.total:
                raise IntegrityError(Reason.LEDGER_TAMPERED, f"groups of the run `{run}` were removed or put back")
            lost = [(name, row) for name, row in groups if row.state == self._claimed]
            for name, row in lost:
                draft = crash_draft(name, row.candidate, at, head.digest)
                after = (str(self._table.after_crash), row.candidate, row.refusals)
                head = self._change(run, head, name, row, after, draft)
            return tuple(name for name, _ in lost)

    def receipts(self, run: str) -> Iterator[bytes]:
        sql = "SELECT line FROM receipts JOIN runs USING (num) WHERE run = ? ORDER BY seq"
        return iter([line for (line,) in self._store.select(sql, (run,))])

    def head(self, run: str) -> Head:
        head = self._macs.head_row(run, *self._store.select(rows.READ_RUN, (run,)))
        return Head(head.length, Digest(head.digest))

    def runs(self) -> tuple[str, ...]:
        return tuple(run for (run,) in self._store.select("SELECT run FROM runs ORDER BY run"))

    def close(self) -> None:
        self._store.close()

    def _open(self) -> str:
        """Check `meta`, then that nothing the anchor names is missing; the ledger's id."""
        store = self._store
        with store:
            found = store.read("SELECT ledger, states, mac FROM meta")
            ledger_id, states, mac = found[0] if found else ("", "", b"")
            if not compare_digest(mac, self._macs.meta(ledger_id, states)):
                raise IntegrityError(Reason.LEDGER_TAMPERED, "the ledger was made with another key, or was edited")
            if states != _states_digest(self._table):
                raise IntegrityError(Reason.LEDGER_MALFORMED, f"the ledger does not keep `{self._table.name}` groups")
            if store.anchor.ledger != ledger_id.encode():
                raise IntegrityError(Reason.LEDGER_MALFORMED, "the anchor is another ledger's")
            self._require_reaches(store.anchor.mark)
        return str(ledger_id)

    def _require_reaches(self, mark: Mark) -> None:
        """Refuse a file without what was committed before: its runs, and the last written run's receipts."""
        self._forget_if_stale()
        counted = self._store.read("SELECT count(*) FROM runs")[0][0]
        if counted != self._runs:
            raise IntegrityError(Reason.LEDGER_TAMPERED, "a run was removed from the ledger")
        found = self._store.read(rows.READ_REACH, (mark.length, mark.run))
        length, line = found[0] if found else (0, None)
        known = mark.length == 0 or (line is not None and line_digest(line).encode() == mark.digest)
        if self._runs < mark.runs or length < mark.length or not known:
            raise IntegrityError(
                Reason.LEDGER_ROLLED_BACK, "the ledger is older than its anchor; put the newest file back"
            )

    def _forget_if_stale(self) -> None:
        if self._store.others_wrote:
            self._store.others_wrote = False
            self._heads.clear()
            self._groups.clear()
            self._runs = self._store.read("SELECT coalesce(max(num), 0) FROM runs")[0][0]

    def _head(self, run: str) -> HeadRow:
        """A run's head, within a turn."""
        self._forget_if_stale()
        head = self._heads.get(run)
        if head is None:
            head = self._macs.head_row(run, *self._store.read(rows.READ_RUN, (run,)))
            self._remember_head(run, head)
        return head

    def _head_and_group(self, run: str, name: bytes) -> tuple[HeadRow, GroupRow]:
        """A run's head and one of its groups, within a turn."""
        head = self._head(run)
        group = self._groups.get(name)
        if group is None:
            found = self._store.read(rows.READ_GROUP, (name,))
            if not found:
                raise LedgerError(Reason.UNKNOWN_GROUP, "the ledger has no such group")
            group = self._macs.group_row(name, *found[0])
        if group.num != head.num:
            raise LedgerError(Reason.CROSS_RUN, f"the group is not one of the run `{run}`")
        return head, group

    def _change(
        self, run: str, head: HeadRow, name: bytes, group: GroupRow, after: tuple[str, str, int], draft: Draft
    ) -> HeadRow:
        """Bring a group to another state, candidate or count, if it still is as it was read; with its receipt."""
        state, candidate, refusals = after
        mac = self._macs.group(name, group.num, state, candidate, refusals)
        self._store.write(rows.MOVE_GROUP, (state, candidate, refusals, mac, name, group.state, group.mac))
        if self._store.changes() != 1:
            raise IntegrityError(Reason.LEDGER_TAMPERED, "a group changed while it was being written")
        self._remember_group(name, GroupRow(group.num, state, candidate, refusals, mac))
        before = "" if state == group.state else group.state
        difference = int.from_bytes(mac, "big") - int.from_bytes(group.mac, "big")
        return self._append(run, head, draft, name.hex(), before, state, difference)

    def _append(
        self, run: str, head: HeadRow, draft: Draft, group: str, before: str, state: str, difference: int
    ) -> HeadRow:
        """Write the next receipt and advance the head; the turn will commit."""
        num, length = head.num, head.length + 1
        line = write_line(draft, self._id, run, length, head.digest, group, before, state)
        digest = line_digest(line)
        total = (head.total + difference) % _MODULUS
        summed = total.to_bytes(32, "big")
        mac = self._macs.head(num, length, digest, summed)
        self._store.write(rows.ADD_RECEIPT, (num, length, line))
        self._store.write(rows.MOVE_HEAD, (length, digest, summed, mac, num, head.mac))
        if self._store.changes() != 1:
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"the head of the run `{run}` changed while it was written")
        new = HeadRow(num, length, digest, total, mac)
        self._remember_head(run, new)
        self._store.commit(Mark(self._runs, num, length, digest.encode()))
        return new

    def _remember_head(self, run: str, head: HeadRow) -> None:
        if len(self._heads) >= _REMEMBERED:
            self._heads.clear()
        self._heads[run] = head

    def _remember_group(self, name: bytes, group: GroupRow) -> None:
        if len(self._groups) >= _REMEMBERED:
            self._groups.clear()
        self._groups[name] = group


def _states_digest(table: TransitionTable) -> str:
    """What a ledger's file says of the table it was made for."""
    edges = sorted([str(before), str(after)] for before, after in table.edges)
    names = [table.name, str(table.initial), str(table.claimed), str(table.after_crash)]
    return digest_of("transition-table@1", canonical_bytes([names, edges]))
