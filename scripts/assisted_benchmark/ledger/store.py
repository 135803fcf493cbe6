"""The SQLite file under a ledger: created and opened with every doubt refused, and written in turns.

A turn is one write transaction. It waits in the queue of all processes, begins IMMEDIATE, and ends
in a COMMIT and an anchor, or in nothing at all. Whatever SQLite raises becomes a LedgerError or an
IntegrityError here, also at the COMMIT, where what happened on disk may be unknown: the caller
must then send nothing.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from enum import StrEnum, unique
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final

import apsw

from assisted_benchmark.kernel.errors import HarnessError, IntegrityError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.files import Anchor, Mark, Queue, create_private, require_private

APPLICATION_ID: Final = 0x41424C31  # "ABL1"
PATIENCE_S: Final = 5.0


# A log of so many pages is written back into the database. What is never synced is written back more rarely, as
# each time costs two syncs; what is synced at every commit has its log laid out at this size before.
_LOG_PAGES: Final = {"process": 4000, "power": 1000}
_LOG_BYTES: Final = 32 + (_LOG_PAGES["power"] + 16) * (24 + 4096)


@unique
class Durability(StrEnum):
    """What a committed claim survives: a killed process, or a power loss too."""

    PROCESS = "process"
    POWER = "power"


SCHEMA: Final = (
    "CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), ledger TEXT NOT NULL, states TEXT NOT NULL,"
    " mac BLOB NOT NULL) STRICT",
    "CREATE TABLE runs (num INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, record BLOB NOT NULL, names BLOB NOT NULL,"
    " states BLOB NOT NULL, later INTEGER NOT NULL, length INTEGER NOT NULL, digest TEXT NOT NULL, mac BLOB NOT NULL)"
    " STRICT",
    "CREATE TABLE groups (name BLOB PRIMARY KEY, num INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX groups_of_run ON groups (num)",
    "CREATE TABLE later (num INTEGER PRIMARY KEY, run INTEGER NOT NULL, name BLOB NOT NULL UNIQUE, kept BLOB NOT NULL,"
    " state TEXT NOT NULL, candidate TEXT NOT NULL, refusals INTEGER NOT NULL, length INTEGER NOT NULL,"
    " mac BLOB NOT NULL) STRICT",
    "CREATE INDEX later_of_run ON later (run)",
    "CREATE TABLE records (num INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT",
    "CREATE TABLE receipts (place INTEGER PRIMARY KEY, line BLOB NOT NULL) STRICT",
)


def require_safe_version(version: str) -> None:
    """Refuse an SQLite that can lose a committed transaction (the WAL-reset fault, fixed in 3.51.3).

    Raises:
        LedgerError: ledger_unsafe_version.
    """
    parts = tuple(int(part) for part in version.split(".")[:3])
    if not (parts >= (3, 51, 3) or (3, 50, 7) <= parts < (3, 51) or (3, 44, 6) <= parts < (3, 45)):
        raise LedgerError(
            Reason.LEDGER_UNSAFE_VERSION, f"SQLite {version} can lose committed claims; 3.51.3 or later is needed"
        )


def _translated(error: apsw.Error | OSError) -> HarnessError:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return IntegrityError(Reason.LEDGER_MALFORMED, f"the ledger's file is damaged: {error}")
    if isinstance(error, apsw.ConstraintError):
        return IntegrityError(Reason.LEDGER_TAMPERED, f"the ledger's rows contradict one another: {error}")
    return LedgerError(Reason.STORE_UNAVAILABLE, f"the ledger cannot be used: {error}")


class _OurErrors:
    """SQLite's and the system's faults as ours. A class, because a generator costs as much as a statement."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, apsw.Error | OSError):
            raise _translated(error) from error


_our_errors: Final = _OurErrors()


class Store:
    """One connection to a ledger's file, shared by threads one at a time. A context manager: one turn."""

    def __init__(self, path: Path, anchor: Path, durability: Durability) -> None:
        require_safe_version(apsw.sqlite_lib_version())
        for each in (path, anchor):
            require_private(each)
        for suffix in ("-wal", "-shm", "-lock"):
            if os.path.lexists(f"{path}{suffix}"):
                require_private(Path(f"{path}{suffix}"))
        self._durability = durability
        self._log = f"{path}-wal"
        self.others_wrote = True
        self._marks: list[Mark] = []
        self._process = os.getpid()
        self.lock = Lock()
        self._version = self._begun = -1
        with _our_errors, ExitStack() as opened:
            self.anchor = Anchor(anchor)
            opened.callback(self.anchor.close)
            self._queue = Queue(Path(f"{path}-lock"), PATIENCE_S)
            opened.callback(self._queue.close)
            self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            # Errors at a close are of no more interest: what counts is committed.
            opened.callback(self._connection.close, True)
            _configure(self._connection, durability)
            _check(self._connection)
            self._cursor = self._connection.cursor()
            self._data_version = self._connection.data_version
            self.changes = self._connection.changes
            self._opened = opened.pop_all()

    def write(self, sql: str, values: tuple[Any, ...]) -> None:
        """One writing statement within a turn; `changes()` then tells how many rows it changed."""
        self._cursor.execute(sql, values)

    def read(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of one reading statement within a turn."""
        return self._cursor.execute(sql, values).fetchall()

    def select(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of one reading statement outside of a turn.

        Raises:
            LedgerError: store_unavailable.
            IntegrityError: ledger_malformed.
        """
        with self.lock, _our_errors:
            self._require_own_process()
            return self._cursor.execute(sql, values).fetchall()

    def unchanged(self) -> bool:
        """Whether nobody else has written since the last turn; asked while holding `lock`. Raises as `select` does."""
        with _our_errors:
            self._require_own_process()
            # Only a read makes SQLite look; an earlier look tells nothing of now.
            self._cursor.execute("SELECT one FROM meta").fetchall()
            return not self.others_wrote and self._data_version() == self._version

    def fill_log(self) -> None:
        """Within a turn: write the log out to its full size, if each commit is synced.

        A sync of a file that grows waits for the file system's own journal too. What is behind the last frame
        SQLite does not read, and nobody else writes to the log during a turn.
        """
        if self._durability is Durability.PROCESS:
            return
        log = os.open(self._log, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            size = os.fstat(log).st_size
            if size < _LOG_BYTES:
                os.pwrite(log, bytes(_LOG_BYTES - size), size)
                os.fsync(log)
        finally:
            os.close(log)

    def anchored(self, num: int) -> Mark:
        """A row's mark outside of a turn; raises as `select` does."""
        with self.lock, _our_errors:
            self._require_own_process()
            return self.anchor.read(num)

    def commit(self, mark: Mark) -> None:
        """Let this turn end in a COMMIT, and a row that it wrote at `mark`; without any a turn changes nothing."""
        self._marks.append(mark)

    def __enter__(self) -> Store:
        """Begin a turn. `others_wrote` then says whether what was read in earlier turns may be stale."""
        self.lock.acquire()
        try:
            self._require_own_process()
            self._queue.enter()
            try:
                self._cursor.execute("BEGIN IMMEDIATE")
                self._marks.clear()
                self._begun = self._data_version()
                # Until it is heard: what was read before is stale, however many turns pass.
                self.others_wrote = self.others_wrote or self._begun != self._version
            except BaseException:
                self._undo()
                self._queue.leave()
                raise
        except BaseException as error:
            self.lock.release()
            if isinstance(error, apsw.Error | OSError):
                raise _translated(error) from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the turn: all of it, or none."""
        sound = False
        try:
            if error is None and self._marks:
                self._cursor.execute("COMMIT")
                self._version = self._data_version()
                for mark in self._marks:
                    self.anchor.write(mark)
            else:
                self._cursor.execute("ROLLBACK")
                self._version = self._begun
            sound = error is None
        except (apsw.Error, OSError) as fault:
            raise _translated(fault) from fault
        finally:
            # Also when an interrupt came in between: the next turn must find neither a transaction nor a lock.
            if not sound:
                self._undo()
            self._queue.leave()
            self.lock.release()
        if isinstance(error, apsw.Error | OSError):
            raise _translated(error) from error

    def close(self) -> None:
        """Let go of the files. Idempotent."""
        with self.lock:
            self._process = 0
            self._opened.close()

    def _undo(self) -> None:
        self._version = -1  # nothing read so far is to be relied on
        try:
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")
        except apsw.Error:
            # A connection that can neither commit nor roll back is of no more use: every later call is refused.
            self._connection.close(True)

    def _require_own_process(self) -> None:
        if self._process != os.getpid():
            raise LedgerError(Reason.STORE_UNAVAILABLE, "the ledger is closed, or was opened before a fork")


def create_database(path: Path, meta: tuple[Any, ...]) -> None:
    """A new owner-only file with a ledger's tables and its `meta` row, on disk when this returns.

    Raises:
        LedgerError: store_unavailable (also: something is there already) or ledger_unsafe_version.
    """
    require_safe_version(apsw.sqlite_lib_version())
    os.close(create_private(path))
    with _our_errors, closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        _configure(connection, Durability.POWER)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        with connection:
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES (1, ?, ?, ?)", meta)


def _check(connection: apsw.Connection) -> None:
    """Refuse a database that is not a ledger, before anything in it is changed."""
    application = connection.pragma("application_id")
    journal = connection.pragma("journal_mode")
    tables = tuple(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))
    if (application, journal, tables) != (APPLICATION_ID, "wal", SCHEMA):
        raise IntegrityError(Reason.LEDGER_MALFORMED, "the file is an SQLite database, but not a ledger")
    ((damage,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if damage != "ok":
        raise IntegrityError(Reason.LEDGER_MALFORMED, f"the ledger's file is damaged: {damage}")


def _configure(connection: apsw.Connection, durability: Durability) -> None:
    # Plans must not be made anew for each value, and a schema from elsewhere must not run code.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.set_busy_timeout(int(PATIENCE_S * 1000))
    connection.execute(f"PRAGMA synchronous = {'FULL' if durability is Durability.POWER else 'NORMAL'}")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: a plain fsync stops at the drive's cache
    connection.wal_autocheckpoint(_LOG_PAGES[durability])
    connection.execute("PRAGMA cache_size = -16384")
