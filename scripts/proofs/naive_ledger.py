"""Ledgers that look right and are not, for any broker's table: rows in a file, and no chain, no marks, no conditions.

The real brokers run over them as over the real ledger. What the kill harness and the schedules find then is what the
real ledger is for; a proof counts only if it finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.ledger.protocol import Claimed, Draft, Head, Lost, Row
from assisted_benchmark.ledger.receipts import first_prev
from assisted_benchmark.ledger.states import TransitionTable

_ID: Final = "naive"
_T = TypeVar("_T")


class NaiveLedger:
    """What all of them share: it keeps no receipts, and writes each state over whatever was there."""

    def __init__(self, folder: Path, table: TransitionTable) -> None:
        self.table = table
        self.id = _ID
        # Called between a read and the write that relies on it.
        self.between: Callable[[], None] = lambda: None
        self._database = apsw.Connection(str(folder / "naive.db"))
        self._database.set_busy_timeout(10_000)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, record BLOB)")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS groups"
            " (name BLOB PRIMARY KEY, run TEXT, record BLOB, state TEXT, candidate TEXT)"
        )

    def open_run(self, run: str, record: bytes, groups: Sequence[bytes]) -> bool:
        self._database.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (run, record))
        made = self._database.changes() == 1
        for group in groups if made else ():
            self._add(run, group, None)
        return made

    def run_record(self, run: str) -> bytes | None:
        found: bytes | None = self._database.execute("SELECT record FROM runs WHERE run = ?", (run,)).get
        return found

    def open_group(self, run: str, group: bytes, record: bytes, receipt: Draft) -> bool:  # noqa: ARG002 - no receipts
        return self._add(run, group, record)

    def group_record(self, group: bytes) -> bytes | None:
        found: bytes | None = self._database.execute("SELECT record FROM groups WHERE name = ?", (group,)).get
        return found

    def groups(self, run: str) -> Iterator[tuple[bytes, Row]]:
        sql = "SELECT name, state, candidate FROM groups WHERE run = ? ORDER BY rowid"
        found: list[Any] = self._database.execute(sql, (run,)).fetchall()
        return iter([(name, Row(state, candidate)) for name, state, candidate in found])

    def row(self, group: bytes) -> Row | None:
        sql = "SELECT state, candidate FROM groups WHERE name = ?"
        found: list[Any] = self._database.execute(sql, (group,)).fetchall()
        return Row(*found[0]) if found else None

    def claim(self, permit: Admitted, run: str, receipt: Draft) -> Claimed | Lost:  # noqa: ARG002 - no receipts
        row = self.row(permit.group)
        if row is None or row.state != self.table.ready:
            return Lost("" if row is None else row.state)
        self.between()
        self._write(permit.group, str(self.table.claimed), permit.candidate)
        return Claimed(permit, run)

    def settle(self, claimed: Claimed, state: str, receipt: Draft) -> None:  # noqa: ARG002 - no receipts
        self._write(claimed.permit.group, str(state), claimed.permit.candidate)

    def move(self, group: bytes, run: str, before: str, after: str, receipt: Draft) -> bool:  # noqa: ARG002 - as above
        row = self.row(group)
        if row is None or row.state != before:
            return False
        self.between()
        self._write(group, str(after), row.candidate)
        return True

    def record(self, run: str, receipt: Draft, refused: bytes | None = None) -> int:  # noqa: ARG002 - no receipts
        return 0

    def recover(self, run: str, at: Instant) -> tuple[bytes, ...]:  # noqa: ARG002 - no receipts
        lost = [name for name, row in self.groups(run) if row.state in self.table.after_crash]
        for name in lost:
            row = self.row(name)
            if row is not None:
                self._write(name, str(self.table.after_crash[row.state]), row.candidate)
        return tuple(sorted(lost))

    def receipts(self, run: str) -> Iterator[bytes]:  # noqa: ARG002 - no receipts
        return iter(())

    def head(self, run: str) -> Head:
        return Head(0, first_prev(_ID, run))

    def runs(self) -> tuple[str, ...]:
        return tuple(str(run) for (run,) in self._database.execute("SELECT run FROM runs ORDER BY run").fetchall())

    def close(self) -> None:
        self._database.close()

    def _add(self, run: str, group: bytes, record: bytes | None) -> bool:
        values = (group, run, record, str(self.table.initial))
        self._database.execute("INSERT OR IGNORE INTO groups VALUES (?, ?, ?, ?, '')", values)
        return self._database.changes() == 1

    def _write(self, group: bytes, state: str, candidate: str) -> None:
        self._database.execute("UPDATE groups SET state = ?, candidate = ? WHERE name = ?", (state, candidate, group))


class ReadThenUpdate(NaiveLedger):
    """Lets a read authorise, as all of these: two brokers read `ready`, and both send."""


class RecoverToStart(NaiveLedger):
    """Claims rightly, but after a crash takes what is open for what never was."""

    def claim(self, permit: Admitted, run: str, receipt: Draft) -> Claimed | Lost:
        return self._alone(lambda: NaiveLedger.claim(self, permit, run, receipt))

    def move(self, group: bytes, run: str, before: str, after: str, receipt: Draft) -> bool:
        return self._alone(lambda: NaiveLedger.move(self, group, run, before, after, receipt))

    def recover(self, run: str, at: Instant) -> tuple[bytes, ...]:  # noqa: ARG002 - no receipts
        lost = [name for name, row in self.groups(run) if row.state in self.table.after_crash]
        for name in lost:
            if self.table.initial in self.table.after_crash:
                self._database.execute("DELETE FROM groups WHERE name = ?", (name,))
            else:
                self._write(name, str(self.table.initial), "")
        return tuple(sorted(lost))

    def _alone(self, act: Callable[[], _T]) -> _T:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            return act()
        finally:
            self._database.execute("COMMIT")


class SendFirst(NaiveLedger):
    """Writes down what it did when it is done: a crash in between forgets the send."""

    def __init__(self, folder: Path, table: TransitionTable) -> None:
        super().__init__(folder, table)
        self._meant: dict[bytes, Row] = {}
        self._unopened: dict[bytes, tuple[str, bytes]] = {}

    def open_group(self, run: str, group: bytes, record: bytes, receipt: Draft) -> bool:
        if self.table.initial not in self.table.after_crash:
            return super().open_group(run, group, record, receipt)
        if self.row(group) is not None:
            return False
        self._unopened[group] = (run, record)
        self._meant[group] = Row(str(self.table.initial))
        return True

    def row(self, group: bytes) -> Row | None:
        return self._meant.get(group) or super().row(group)

    def _write(self, group: bytes, state: str, candidate: str) -> None:
        if state not in self.table.terminal:
            self._meant[group] = Row(state, candidate)
            return
        if group in self._unopened:
            run, record = self._unopened.pop(group)
            self._add(run, group, record)
        self._meant.pop(group, None)
        super()._write(group, state, candidate)


WRONG: Final[dict[str, Callable[[Path, TransitionTable], NaiveLedger]]] = {
    "send_first": SendFirst,
    "recover_to_start": RecoverToStart,
    "read_then_update": ReadThenUpdate,
}
