"""What a ledger's rows are believed to say: each only if its MAC holds and the anchor knows none that is newer.

A MAC says that a row was written here, not that it is the newest: that says the anchor, which has the length and
the MAC of every row. Rows that this process wrote itself are remembered until another connection writes: the usual
turn reads none. What was remembered never authorises; a change is made on the condition that the row is still it.
"""

from __future__ import annotations

from collections import Counter
from hmac import compare_digest
from typing import Any, Final

from assisted_benchmark.kernel.errors import IntegrityError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger import rows
from assisted_benchmark.ledger.files import Mark
from assisted_benchmark.ledger.receipts import line_digest
from assisted_benchmark.ledger.rows import GroupState, LaterRow, Macs, RunRow
from assisted_benchmark.ledger.store import Store

_REMEMBERED: Final = 4096


class Believed:
    """The rows of one open ledger, read within a turn, except by `look` and `look_later`."""

    def __init__(self, store: Store, macs: Macs) -> None:
        self._store = store
        self._macs = macs
        self._runs: dict[str, RunRow] = {}
        self._run_of: dict[bytes, str] = {}
        self._later: dict[bytes, LaterRow] = {}
        self._count = -1  # not counted yet

    def check_all(self) -> None:
        """Check every row against itself, the others and the anchor: what the ledger is opened with."""
        self.count()
        opened = {}
        for *columns, line in self._store.read(rows.READ_RUNS):
            row = self._newest_run(tuple(columns))
            opened[row.num] = row.later
            if row.length and (line is None or line_digest(line) != row.digest):
                raise IntegrityError(Reason.LEDGER_ROLLED_BACK, f"the last receipt of `{columns[0]}` is missing")
        found = Counter[int]()
        for *columns, record in self._store.read(rows.READ_ALL_LATER):
            later = self._newest_later(tuple(columns))
            found[later.run] += 1
            _require_kept(later, record)
        if +Counter(opened) != found:
            raise _removed_later()

    def count(self) -> int:
        """How many rows there are, those of runs and those of later groups; none of them was ever removed."""
        self._forget_if_stale()
        if self._count < 0:
            counted, last = self._store.read(rows.COUNT)[0]
            if counted != last:
                raise IntegrityError(Reason.LEDGER_TAMPERED, "a run or a group was removed from the ledger")
            if counted < self._store.anchor.rows:
                raise _rolled_back("the ledger")
            self._count = counted
        return self._count

    def added(self, num: int) -> None:
        """A row of this number was added."""
        self._count = num

    def run(self, run: str) -> RunRow:
        """A run's row; LedgerError(unknown_grant) if there is none."""
        self._forget_if_stale()
        row = self._runs.get(run)
        if row is not None:
            return row
        found = self._store.read(rows.READ_RUN, (run,))
        if not found:
            raise unknown_run(run)
        return self._newest_run(found[0])

    def group(self, run: str, name: bytes) -> tuple[RunRow, GroupState, LaterRow | None]:
        """A run's row, how one of its groups stands, and that one's own row, if it has one.

        Raises:
            LedgerError: unknown_grant, unknown_group or cross_run.
        """
        row = self.run(run)
        place = row.places.get(name)
        if place is not None:
            return row, row.states[place], None
        later = self.later(name)
        if later is None and not self._store.read(rows.READ_RUN_OF_GROUP, (name,)):
            raise LedgerError(Reason.UNKNOWN_GROUP, "the ledger has no such group")
        if later is None or later.run != row.num:
            raise LedgerError(Reason.CROSS_RUN, f"the group is not one of the run `{run}`")
        return row, later.now, later

    def later(self, name: bytes) -> LaterRow | None:
        """The row of a group that was opened later, or None."""
        self._forget_if_stale()
        row = self._later.get(name)
        if row is None and (found := self._store.read(rows.READ_LATER, (name,))):
            return self._newest_later(found[0])
        return row

    def all_later(self, row: RunRow) -> list[LaterRow]:
        """The rows of all groups of a run that were opened later, in that order."""
        found = [self._newest_later(each) for each in self._store.read(rows.READ_LATER_OF_RUN, (row.num,))]
        if len(found) != row.later:
            raise _removed_later()
        return found

    def look(self, sql: str, key: str | bytes) -> RunRow | None:
        """A run's row outside of a turn, if it is the newest; None if there is none."""
        found = self._store.select(sql, (key,))
        if not found:
            return None
        row = self._macs.run_row(found[0])
        if self._store.anchored(row.num).outdates(row.length, row.mac):
            # Another process may have written between the two reads. None can within a turn.
            with self._store:
                return self.run(found[0][0])
        return row

    def look_later(self, name: bytes) -> LaterRow | None:
        """The row of a group that was opened later outside of a turn, if it is the newest; None if there is none."""
        found = self._store.select(rows.READ_LATER, (name,))
        if not found:
            return None
        row = self._macs.later_row(found[0])
        if self._store.anchored(row.num).outdates(row.length, row.mac):
            # As above.
            with self._store:
                return self.later(name)
        return row

    def record(self, name: bytes) -> bytes | None:
        """The record of a group that was opened later, outside of a turn."""
        row = self.look_later(name)
        if row is None:
            return None
        found = self._store.select(rows.READ_RECORD, (row.num,))
        record: bytes | None = found[0][0] if found else None
        _require_kept(row, record)
        return record

    def remembered_run(self, run: str) -> RunRow | None:
        """A run's row, outside of a turn, if this process wrote it and nobody else has written since."""
        with self._store.lock:
            row = self._runs.get(run)
            return row if row is not None and self._store.unchanged() else None

    def remembered(self, name: bytes) -> GroupState | None:
        """How a group stands, outside of a turn, if this process changed it and nobody else has written since."""
        with self._store.lock:
            if name in self._run_of and self._store.unchanged():
                row = self._runs.get(self._run_of[name])
                return None if row is None else row.states[row.places[name]]
            if name in self._later and self._store.unchanged():
                return self._later[name].now
        return None

    def remember(self, run: str, row: RunRow) -> None:
        """Keep a run's row as this turn wrote it."""
        _put(self._runs, run, row)

    def of_run(self, name: bytes, run: str) -> None:
        """Keep which run's row says how this group stands."""
        _put(self._run_of, name, run)

    def remember_later(self, row: LaterRow) -> None:
        """Keep a later group's row as this turn wrote it."""
        _put(self._later, row.name, row)

    def _forget_if_stale(self) -> None:
        if self._store.others_wrote:
            self._store.others_wrote = False
            self._runs.clear()
            self._run_of.clear()
            self._later.clear()
            self._count = -1

    def _newest_run(self, columns: tuple[Any, ...]) -> RunRow:
        """A run's row from its columns, if it is the newest."""
        row = self._macs.run_row(columns)
        self._require_newest(Mark(row.num, row.length, row.mac), f"the run `{columns[0]}`")
        return row

    def _newest_later(self, columns: tuple[Any, ...]) -> LaterRow:
        """A later group's row from its columns, if it is the newest."""
        row = self._macs.later_row(columns)
        self._require_newest(Mark(row.num, row.length, row.mac), f"the group `{row.name.hex()}`")
        return row

    def _require_newest(self, now: Mark, what: str) -> None:
        anchor = self._store.anchor
        mark = anchor.read(now.num)
        if mark.outdates(now.length, now.mac):
            raise _rolled_back(what)
        if now.length > mark.length:
            # Its writer died between its COMMIT and its anchor.
            anchor.write(now)


def unknown_run(run: str) -> LedgerError:
    """The error for a run that is not in the ledger."""
    return LedgerError(Reason.UNKNOWN_GRANT, f"the ledger has no run `{run}`")


def _put(remembered: dict[Any, Any], key: object, row: object) -> None:
    if len(remembered) >= _REMEMBERED:
        remembered.clear()
    remembered[key] = row


def _require_kept(row: LaterRow, record: bytes | None) -> None:
    if record is None or not compare_digest(row.kept, rows.kept(record)):
        raise IntegrityError(
            Reason.LEDGER_TAMPERED, f"the record of the group `{row.name.hex()}` was edited or removed"
        )


def _removed_later() -> IntegrityError:
    return IntegrityError(Reason.LEDGER_TAMPERED, "a group was removed from its run")


def _rolled_back(what: str) -> IntegrityError:
    return IntegrityError(Reason.LEDGER_ROLLED_BACK, f"{what} is older than its anchor; put the newest file back")
