"""The ledger in SQLite: what a killed process, or a power loss, leaves behind is still at most one dispatch.

A run is one row, with the states of the groups it began with and the end of its receipts under one MAC, which is
checked whenever the row is read; a group that was opened later is a row of its own (`rows.py`). A change writes the
run's row, on the condition that its MAC is still that of what was read, the receipt, and if the group has one its
row, on the same condition. So the claim is decided by the conditional UPDATE, never by what was remembered. Which
row is the newest the anchor says: a row that is read is held against it, at `open` all of them are, so a row that
was put back to what it was, with its receipts or without, is refused while the ledger is open as well as later,
whoever wrote it last.

What remains for someone who can write this file, but not the anchor: to take back what is not anchored yet,
until the ledger is opened or a turn reads the row. That is a change whose process died between its commit and
its anchor (its caller never heard of it: a claim so lost was not sent), and, as the anchor is not synced, what
came in the last seconds before a power loss, sent or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hmac import compare_digest
from pathlib import Path

import apsw

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import IntegrityError, LedgerError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger import rows
from assisted_benchmark.ledger.believed import Believed, unknown_run
from assisted_benchmark.ledger.files import Anchor, Mark, require_absent
from assisted_benchmark.ledger.protocol import Claimed, Draft, Head, Lost, Row
from assisted_benchmark.ledger.receipts import crash_draft, first_prev, is_receipt, line_digest, write_line
from assisted_benchmark.ledger.rows import GroupState, LaterRow, Macs, RunRow, kept, pack_names, pack_states
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.ledger.store import Durability, Store, create_database


class SqliteLedger:
    """A ledger in one SQLite file; threads and processes may share it (each process opens its own)."""

    def __init__(
        self, path: Path, *, table: TransitionTable, keys: KeyRing, anchor: Path, durability: Durability
    ) -> None:
        """Use `open` or `create`."""
        self._table = table
        self._initial = str(table.initial)
        self._ready = str(table.ready)
        self._claimed = str(table.claimed)
        self._macs = Macs(keys)
        self._store = Store(path, anchor, durability)
        self._believed = Believed(self._store, self._macs)
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
            num = self._believed.count() + 1
            names, states = pack_names(groups), ((self._initial, "", 0),) * len(groups)
            first = first_prev(self._id, run)
            sealed = self._macs.sealed(num, run, record, names)
            packed = pack_states(states)
            mac = self._macs.run(sealed, packed, 0, 0, first)
            store.write(rows.ADD_RUN, (num, run, record, names, packed, 0, 0, first, mac))
            if store.changes() != 1:
                return False
            try:
                for name in groups:
                    store.write(rows.ADD_GROUP, (name, num))
                    if store.changes() != 1:
                        raise _exists(run)
            except apsw.ConstraintError as error:
                raise _exists(run) from error
            places = {name: place for place, name in enumerate(groups)}
            self._believed.remember(run, RunRow(num, record, places, states, 0, 0, first, mac, sealed))
            self._added(Mark(num, 0, mac))
            return True

    def run_record(self, run: str) -> bytes | None:
        row = self._believed.look(rows.READ_RUN, run)
        return None if row is None else row.record

    def open_group(self, run: str, group: bytes, record: bytes, receipt: Draft) -> bool:
        with self._store as store:
            row = self._believed.run(run)
            if store.read(rows.KNOWN, (group, group)):
                return False
            num = self._believed.count() + 1
            now = (self._initial, "", 0)
            row = self._append(
                run, row._replace(later=row.later + 1), row.states, receipt, group.hex(), "", self._initial
            )
            digest = kept(record)
            mac = self._macs.later(num, row.num, group, digest, now, row.length)
            store.write(rows.ADD_LATER, (num, row.num, group, digest, *now, row.length, mac))
            store.write(rows.ADD_RECORD, (num, record))
            self._believed.remember_later(LaterRow(num, row.num, group, digest, now, row.length, mac))
            self._added(Mark(num, row.length, mac))
            return True

    def group_record(self, group: bytes) -> bytes | None:
        return self._believed.record(group)

    def groups(self, run: str) -> Iterator[tuple[bytes, Row]]:
        with self._store:
            row = self._believed.run(run)
            found = [(name, Row(*state)) for name, state in zip(row.places, row.states, strict=True)]
            return iter(found + [(each.name, Row(*each.now)) for each in self._believed.all_later(row)])

    def row(self, group: bytes) -> Row | None:
        now = self._believed.remembered(group)
        if now is not None:
            return Row(*now)
        row = self._believed.look(rows.READ_RUN_OF_GROUP, group)
        if row is None:
            later = self._believed.look_later(group)
            return None if later is None else Row(*later.now)
        if group not in row.places:
            raise IntegrityError(Reason.LEDGER_TAMPERED, "a group was given to another run")
        return Row(*row.states[row.places[group]])

    def claim(self, permit: Admitted, run: str, receipt: Draft) -> Claimed | Lost:
        with self._store:
            row, now, later = self._believed.group(run, permit.group)
            if now[0] != self._ready:
                return Lost(now[0])
            after = (self._claimed, str(permit.candidate), now[2])
            self._change(run, row, permit.group, later, after, receipt)
        # INVARIANT: the COMMIT has returned; only now is there something to send.
        return Claimed(permit, run)

    def settle(self, claimed: Claimed, state: str, receipt: Draft) -> None:
        self._table.require(self._claimed, state)
        name = claimed.permit.group
        with self._store:
            row, (now, candidate, refusals), later = self._believed.group(claimed.run, name)
            if now != self._claimed or candidate != claimed.permit.candidate:
                raise LedgerError(Reason.ILLEGAL_TRANSITION, f"the group is `{now}`, not claimed by this permit")
            self._change(claimed.run, row, name, later, (str(state), candidate, refusals), receipt)

    def move(self, group: bytes, run: str, before: str, after: str, receipt: Draft) -> bool:
        self._table.require_move(before, after)
        with self._store:
            row, (state, candidate, refusals), later = self._believed.group(run, group)
            if state != before:
                return False
            self._change(run, row, group, later, (str(after), candidate, refusals), receipt)
            return True

    def record(self, run: str, receipt: Draft, refused: bytes | None = None) -> int:
        with self._store:
            if refused is None:
                row = self._believed.run(run)
                self._append(run, row, row.states, receipt, receipt.group, "", receipt.state)
                return 0
            row, (state, candidate, refusals), later = self._believed.group(run, refused)
            self._change(run, row, refused, later, (state, candidate, refusals + 1), receipt)
            return refusals + 1

    def recover(self, run: str, at: Instant) -> tuple[bytes, ...]:
        after_crash = self._table.after_crash
        with self._store as store:
            row = self._believed.run(run)
            if [name for (name,) in store.read(rows.READ_NAMES, (row.num,))] != sorted(row.places):
                raise IntegrityError(Reason.LEDGER_TAMPERED, f"groups of the run `{run}` were removed or renamed")
            groups: dict[bytes, tuple[GroupState, LaterRow | None]]
            groups = {name: (row.states[place], None) for name, place in row.places.items()}
            groups |= {later.name: (later.now, later) for later in self._believed.all_later(row)}
            lost = tuple(sorted(name for name, ((state, _, _), _) in groups.items() if state in after_crash))
            for name in lost:
                (state, candidate, refusals), later = groups[name]
                draft = crash_draft(name, Row(state, candidate), state == self._claimed, at, row.digest)
                row = self._change(run, row, name, later, (after_crash[state], candidate, refusals), draft)
            return lost

    def receipts(self, run: str) -> Iterator[bytes]:
        lines = [line for (line,) in self._store.select(rows.READ_RECEIPTS, (run,))]
        if not all(map(is_receipt, lines)):
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"a receipt of the run `{run}` is none")
        return iter(lines)

    def head(self, run: str) -> Head:
        row = self._believed.remembered_run(run) or self._believed.look(rows.READ_RUN, run)
        if row is None:
            raise unknown_run(run)
        return Head(row.length, Digest(row.digest))

    def runs(self) -> tuple[str, ...]:
        with self._store as store:
            self._believed.count()
            return tuple(run for (run,) in store.read("SELECT run FROM runs ORDER BY run"))

    def close(self) -> None:
        self._store.close()

    def _open(self) -> str:
        """Check `meta`, then every row against itself and the anchor; the ledger's id."""
        store = self._store
        with store:
            store.fill_log()
            found = store.read("SELECT ledger, states, mac FROM meta")
            ledger_id, states, mac = found[0] if found else ("", "", b"")
            if not compare_digest(mac, self._macs.meta(ledger_id, states)):
                raise IntegrityError(Reason.LEDGER_TAMPERED, "the ledger was made with another key, or was edited")
            if states != _states_digest(self._table):
                raise IntegrityError(Reason.LEDGER_MALFORMED, f"the ledger does not keep `{self._table.name}` groups")
            if store.anchor.ledger != ledger_id.encode():
                raise IntegrityError(Reason.LEDGER_MALFORMED, "the anchor is another ledger's")
            self._believed.check_all()
        return str(ledger_id)

    def _added(self, mark: Mark) -> None:
        """A row was added; the turn will commit."""
        self._believed.added(mark.num)
        self._store.commit(mark)

    def _change(
        self, run: str, row: RunRow, name: bytes, later: LaterRow | None, after: GroupState, draft: Draft
    ) -> RunRow:
        """Bring a group to another state, candidate or count, with its receipt; the turn will commit."""
        states, state = row.states, after[0]
        if later is None:
            place = row.places[name]
            before = states[place][0]
            states = (*states[:place], after, *states[place + 1 :])
        else:
            before = later.now[0]
        row = self._append(run, row, states, draft, name.hex(), "" if before == state else before, state)
        if later is None:
            self._believed.of_run(name, run)
        else:
            self._move_later(later, after, row.length)
        return row

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
        num, record, places, _, later, length, prev, read, sealed = row
        length += 1
        line = write_line(draft, self._id, run, length, prev, group, before, state)
        digest = line_digest(line)
        packed = pack_states(states)
        mac = self._macs.run(sealed, packed, later, length, digest)
        store = self._store
        store.write(rows.MOVE_RUN, (num, length, line, packed, later, length, digest, mac, num, read))
        if store.changes() != 1:
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"the run `{run}` changed while it was written")
        store.commit(Mark(num, length, mac))
        new = RunRow(num, record, places, states, later, length, digest, mac, sealed)
        self._believed.remember(run, new)
        return new

    def _move_later(self, row: LaterRow, after: GroupState, length: int) -> None:
        """Write the row of a group that was opened later, if that still is as it was read; the turn will commit."""
        num, run, name, digest, _, _, read = row
        mac = self._macs.later(num, run, name, digest, after, length)
        store = self._store
        store.write(rows.MOVE_LATER, (*after, length, mac, num, read))
        if store.changes() != 1:
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"the group `{name.hex()}` changed while it was written")
        store.commit(Mark(num, length, mac))
        self._believed.remember_later(LaterRow(num, run, name, digest, after, length, mac))


def _exists(run: str) -> LedgerError:
    return LedgerError(Reason.ILLEGAL_TRANSITION, f"a group of the run `{run}` exists already")


def _states_digest(table: TransitionTable) -> str:
    """What a ledger's file says of the table it was made for."""
    edges = sorted([str(before), str(after)] for before, after in table.edges)
    names = [table.name, str(table.initial), str(table.ready), str(table.claimed)]
    return digest_of("transition-table@2", canonical_bytes([names, dict(table.after_crash), edges]))
