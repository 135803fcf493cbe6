"""The ledger in SQLite: what a killed process, or a power loss, leaves behind is still at most one dispatch.

A run is one row, with the states of its groups and the end of its receipts under one MAC, which is checked
whenever the row is read. A change writes two rows: the run's, on the condition that its MAC is still that of
what was read, and the receipt. So the claim is decided by the one conditional UPDATE, never by what was
remembered. A MAC says that a row was written here, not that it is the newest: that says the anchor, which
has the length and the MAC of every run. A row that is read is held against it, at `open` all of them are,
so a run that was put back to what it was, with its receipts or without, is refused while the ledger is open
as well as later, whoever wrote it last. Rows that this process wrote itself are remembered until another
connection writes: the usual turn reads none.

What remains for someone who can write this file, but not the anchor: to take back what is not anchored yet,
until the ledger is opened or a turn reads the run. That is a change whose process died between its commit and
its anchor (its caller never heard of it: a claim so lost was not sent), and, as the anchor is not synced, what
came in the last seconds before a power loss, sent or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hmac import compare_digest
from pathlib import Path
from typing import Any, Final

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
from assisted_benchmark.ledger.receipts import crash_draft, first_prev, is_receipt, line_digest, write_line
from assisted_benchmark.ledger.rows import GroupState, Macs, RunRow, pack_names, pack_states
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.ledger.store import Durability, Store, create_database

_REMEMBERED: Final = 4096


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
        self._remembered: dict[str, RunRow] = {}
        self._runs = -1  # not counted yet
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
        Anchor.create(anchor, ledger_id)
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
        with self._store as store:
            self._forget_if_stale()
            if store.read("SELECT 1 FROM runs WHERE run = ?", (run,)):
                return False
            num = self._count() + 1
            try:
                for name in groups:
                    store.write(rows.ADD_GROUP, (name, num))
            except apsw.ConstraintError as error:
                raise LedgerError(Reason.ILLEGAL_TRANSITION, f"a group of the run `{run}` exists already") from error
            names, states, first = (
                pack_names(groups),
                ((self._initial, "", 0),) * len(groups),
                first_prev(self._id, run),
            )
            sealed = self._macs.sealed(num, run, record, names)
            packed = pack_states(states)
            mac = self._macs.run(sealed, packed, 0, first)
            store.write(rows.ADD_RUN, (num, run, record, names, packed, 0, first, mac))
            self._runs = num
            places = {name: place for place, name in enumerate(groups)}
            self._remember(run, RunRow(num, record, places, states, 0, first, mac, sealed))
            store.commit(Mark(num, 0, mac))
            return True

    def run_record(self, run: str) -> bytes | None:
        row = self._look(rows.READ_RUN, run)
        return None if row is None else row.record

    def row(self, group: bytes) -> Row | None:
        row = self._look(rows.READ_RUN_OF_GROUP, group)
        if row is None:
            return None
        if group not in row.places:
            raise IntegrityError(Reason.LEDGER_TAMPERED, "a group was given to another run")
        return Row(*row.states[row.places[group]])

    def claim(self, permit: Admitted, run: str, receipt: Draft) -> Claimed | Lost:
        with self._store:
            row, (state, _, refusals) = self._run_and_group(run, permit.group)
            if state != self._initial:
                return Lost(state)
            self._change(run, row, permit.group, (self._claimed, str(permit.candidate), refusals), receipt)
        # INVARIANT: the COMMIT has returned; only now is there something to send.
        return Claimed(permit, run)

    def settle(self, claimed: Claimed, state: str, receipt: Draft) -> None:
        self._table.require(self._claimed, state)
        name = claimed.permit.group
        with self._store:
            row, (now, candidate, refusals) = self._run_and_group(claimed.run, name)
            if now != self._claimed or candidate != claimed.permit.candidate:
                raise LedgerError(Reason.ILLEGAL_TRANSITION, f"the group is `{now}`, not claimed by this permit")
            self._change(claimed.run, row, name, (str(state), candidate, refusals), receipt)

    def move(self, group: bytes, run: str, before: str, after: str, receipt: Draft) -> bool:
        self._table.require_move(before, after)
        with self._store:
            row, (state, candidate, refusals) = self._run_and_group(run, group)
            if state != before:
                return False
            self._change(run, row, group, (str(after), candidate, refusals), receipt)
            return True

    def record(self, run: str, receipt: Draft, refused: bytes | None = None) -> int:
        with self._store:
            if refused is None:
                row = self._run(run)
                self._append(run, row, row.states, receipt, receipt.group, "", receipt.state)
                return 0
            row, (state, candidate, refusals) = self._run_and_group(run, refused)
            self._change(run, row, refused, (state, candidate, refusals + 1), receipt)
            return refusals + 1

    def recover(self, run: str, at: Instant) -> tuple[bytes, ...]:
        with self._store as store:
            row = self._run(run)
            names = sorted(row.places)
            if [name for (name,) in store.read(rows.READ_NAMES, (row.num,))] != names:
                raise IntegrityError(Reason.LEDGER_TAMPERED, f"groups of the run `{run}` were removed or renamed")
            lost = tuple(name for name in names if row.states[row.places[name]][0] == self._claimed)
            for name in lost:
                _, candidate, refusals = row.states[row.places[name]]
                draft = crash_draft(name, candidate, at, row.digest)
                row = self._change(run, row, name, (str(self._table.after_crash), candidate, refusals), draft)
            return lost

    def receipts(self, run: str) -> Iterator[bytes]:
        sql = "SELECT line FROM receipts JOIN runs USING (num) WHERE run = ? ORDER BY seq"
        lines = [line for (line,) in self._store.select(sql, (run,))]
        if not all(map(is_receipt, lines)):
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"a receipt of the run `{run}` is none")
        return iter(lines)

    def head(self, run: str) -> Head:
        row = self._look(rows.READ_RUN, run)
        if row is None:
            raise _unknown(run)
        return Head(row.length, Digest(row.digest))

    def runs(self) -> tuple[str, ...]:
        with self._store as store:
            self._forget_if_stale()
            self._count()
            return tuple(run for (run,) in store.read("SELECT run FROM runs ORDER BY run"))

    def close(self) -> None:
        self._store.close()

    def _open(self) -> str:
        """Check `meta`, then every run against itself and the anchor; the ledger's id."""
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
            self._count()
            for *columns, line in store.read(rows.READ_RUNS):
                row = self._newest(tuple(columns))
                if row.length and (line is None or line_digest(line) != row.digest):
                    raise IntegrityError(Reason.LEDGER_ROLLED_BACK, f"the last receipt of `{columns[0]}` is missing")
        return str(ledger_id)

    def _forget_if_stale(self) -> None:
        if self._store.others_wrote:
            self._store.others_wrote = False
            self._remembered.clear()
            self._runs = -1

    def _count(self) -> int:
        """How many runs there are, within a turn; none of them was ever removed."""
        if self._runs < 0:
            counted, last = self._store.read(rows.COUNT_RUNS)[0]
            if counted != last:
                raise IntegrityError(Reason.LEDGER_TAMPERED, "a run was removed from the ledger")
            if counted < self._store.anchor.runs:
                raise _rolled_back("the ledger")
            self._runs = counted
        return self._runs

    def _newest(self, columns: tuple[Any, ...]) -> RunRow:
        """The run's row from its columns, within a turn, if it is the newest."""
        row = self._macs.run_row(columns)
        anchor = self._store.anchor
        mark = anchor.read(row.num)
        if mark.outdates(row.length, row.mac):
            raise _rolled_back(f"the run `{columns[0]}`")
        if row.length > mark.length:
            # Its writer died between its COMMIT and its anchor.
            anchor.write(Mark(row.num, row.length, row.mac))
        return row

    def _look(self, sql: str, key: str | bytes) -> RunRow | None:
        """A run's row outside of a turn, if it is the newest; None if there is none."""
        found = self._store.select(sql, (key,))
        if not found:
            return None
        row = self._macs.run_row(found[0])
        if self._store.anchored(row.num).outdates(row.length, row.mac):
            # Another process may have written between the two reads. None can within a turn.
            with self._store:
                return self._run(found[0][0])
        return row

    def _run(self, run: str) -> RunRow:
        """A run's row, within a turn."""
        self._forget_if_stale()
        row = self._remembered.get(run)
        if row is not None:
            return row
        found = self._store.read(rows.READ_RUN, (run,))
        if not found:
            raise _unknown(run)
        return self._newest(found[0])

    def _run_and_group(self, run: str, name: bytes) -> tuple[RunRow, GroupState]:
        """A run's row and how one of its groups stands, within a turn."""
        row = self._run(run)
        place = row.places.get(name)
        if place is None:
            if self._store.read(rows.READ_RUN_OF_GROUP, (name,)):
                raise LedgerError(Reason.CROSS_RUN, f"the group is not one of the run `{run}`")
            raise LedgerError(Reason.UNKNOWN_GROUP, "the ledger has no such group")
        return row, row.states[place]

    def _change(self, run: str, row: RunRow, name: bytes, after: GroupState, draft: Draft) -> RunRow:
        """Bring a group to another state, candidate or count, with its receipt; the turn will commit."""
        states = row.states
        place = row.places[name]
        before, state = states[place][0], after[0]
        states = (*states[:place], after, *states[place + 1 :])
        return self._append(run, row, states, draft, name.hex(), "" if before == state else before, state)

    def _append(
        self,
        run: str,
        row: RunRow,
        states: tuple[GroupState, ...],
        draft: Draft,
        group: str,
        before: str,
        state: str,
    ) -> RunRow:
        """Write the run's next receipt, and its row, if that still is as it was read; the turn will commit."""
        num, record, places, _, length, prev, read, sealed = row
        length += 1
        line = write_line(draft, self._id, run, length, prev, group, before, state)
        digest = line_digest(line)
        packed = pack_states(states)
        mac = self._macs.run(sealed, packed, length, digest)
        store = self._store
        store.write(rows.MOVE_RUN, (packed, length, digest, mac, num, read))
        if store.changes() != 1:
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"the run `{run}` changed while it was written")
        store.write(rows.ADD_RECEIPT, (num, length, line))
        store.commit(Mark(num, length, mac))
        new = RunRow(num, record, places, states, length, digest, mac, sealed)
        self._remember(run, new)
        return new

    def _remember(self, run: str, row: RunRow) -> None:
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        self._remembered[run] = row


def _unknown(run: str) -> LedgerError:
    return LedgerError(Reason.UNKNOWN_GRANT, f"the ledger has no run `{run}`")


def _rolled_back(what: str) -> IntegrityError:
    return IntegrityError(Reason.LEDGER_ROLLED_BACK, f"{what} is older than its anchor; put the newest file back")


def _states_digest(table: TransitionTable) -> str:
    """What a ledger's file says of the table it was made for."""
    edges = sorted([str(before), str(after)] for before, after in table.edges)
    names = [table.name, str(table.initial), str(table.claimed), str(table.after_crash)]
    return digest_of("transition-table@1", canonical_bytes([names, edges]))
