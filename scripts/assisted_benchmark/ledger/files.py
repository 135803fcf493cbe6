"""The ledger's files beside the database: private ones, the writers' queue, and the anchor.

The anchor is kept where the keys are. It names the ledger and, of every row (a run's, and that of a group which was
opened later), how far it had come: the length of its run's chain when it was last written, and its MAC. What a turn
wrote is anchored after its commit and before the caller hears of it. So a crash leaves a row that is ahead of its
anchor, never behind, and no other row's mark is touched by it: other processes just go on. A row that is older than
its mark, or as old with another MAC, was rolled back.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from struct import Struct
from threading import Event, Thread
from typing import Final, NamedTuple

from assisted_benchmark.kernel.errors import IntegrityError, LedgerError, MisuseError
from assisted_benchmark.kernel.reasons import Reason

_ANCHOR: Final = b"assisted-benchmark/ledger-anchor@2 "
# One mark: a row's length + 1 (so that what was never written is no mark) and its MAC. 64 bytes: none spans two pages.
_MARK: Final = Struct(">Q32s24x")


def require_absent(path: Path) -> None:
    """MisuseError(misuse) if something is there already, be it a dangling link."""
    if os.path.lexists(path):
        raise MisuseError(Reason.MISUSE, f"{path} exists already; open it, or name another path")


def create_private(path: Path) -> int:
    """A new owner-only file, open for writing; LedgerError(store_unavailable) if it cannot be made."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LedgerError(Reason.STORE_UNAVAILABLE, f"{path} cannot be created: {error.strerror}") from error


def require_private(path: Path) -> None:
    """Refuse a file that others could read or change, or that is none.

    Raises:
        LedgerError: it does not exist (ledger_missing) or cannot be looked at (store_unavailable).
        IntegrityError: it is a link or no regular file, or others may open it (ledger_malformed).
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise LedgerError(Reason.LEDGER_MISSING, f"there is no {path}; create the ledger first") from None
    except OSError as error:
        raise LedgerError(Reason.STORE_UNAVAILABLE, f"{path} cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise IntegrityError(Reason.LEDGER_MALFORMED, f"{path} is a link or no regular file")
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise IntegrityError(Reason.LEDGER_MALFORMED, f"{path} is open to others; it must be yours alone (mode 600)")


class Queue:
    """An advisory file lock that writers of all processes wait for in turn.

    SQLite's own lock keeps them apart; this one keeps them fair, as SQLite's waiters back off and
    starve. A waiter gives up after `patience` seconds: the holder may be a stopped process.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._file = self._open()

    def enter(self) -> None:
        """Wait for one's turn; LedgerError(store_unavailable) if it does not come."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()

    def leave(self) -> None:
        """Let the next one in."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def _wait(self) -> None:
        # flock has no timeout, so another thread waits. One that comes too late only closes its file.
        file, came, gone = self._file, Event(), Event()

        def wait() -> None:
            fcntl.flock(file, fcntl.LOCK_EX)
            came.set()
            if gone.is_set():
                os.close(file)

        Thread(target=wait, daemon=True).start()
        if not came.wait(self._patience):
            gone.set()
            self._file = self._open()
            raise LedgerError(Reason.STORE_UNAVAILABLE, f"another process holds {self._path}; is it stopped?")


class Mark(NamedTuple):
    """How far a row, by its number, has come; a length of -1 if nothing is known of it."""

    num: int
    length: int
    mac: bytes

    def outdates(self, length: int, mac: bytes) -> bool:
        """Whether a row of this length and MAC is not the newest: older than this mark, or of another history."""
        return length < self.length or (length == self.length and mac != self.mac)


class Anchor:
    """The anchor file, kept open to be written after each commit: a line, then a place for each row's mark."""

    def __init__(self, path: Path) -> None:
        require_private(path)
        self._file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        name, _, _ = os.pread(self._file, 4096, 0).partition(b"\n")
        self.ledger = name[len(_ANCHOR) :]
        self._offset = len(_head(self.ledger))
        marks = os.fstat(self._file).st_size - self._offset
        if not name.startswith(_ANCHOR) or marks < 0 or marks % _MARK.size:
            os.close(self._file)
            raise IntegrityError(Reason.LEDGER_MALFORMED, f"{path} is not a ledger's anchor")

    @classmethod
    def create(cls, path: Path, ledger_id: str) -> None:
        """Write a new anchor, without a row, on disk when this returns."""
        file = create_private(path)
        try:
            os.write(file, _head(ledger_id.encode()))
            os.fsync(file)
        finally:
            os.close(file)

    @property
    def rows(self) -> int:
        """How many rows there are at the least."""
        return (os.fstat(self._file).st_size - self._offset) // _MARK.size

    def read(self, num: int) -> Mark:
        """The mark of a row."""
        found = os.pread(self._file, _MARK.size, self._place(num))
        written, mac = _MARK.unpack(found) if found else (0, b"")
        return Mark(num, written - 1, mac)

    def write(self, mark: Mark) -> None:
        """Advance a row to `mark`, in one write within one page: a killed process leaves the old one or the new."""
        os.pwrite(self._file, _MARK.pack(mark.length + 1, mark.mac), self._place(mark.num))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _place(self, num: int) -> int:
        return self._offset + (num - 1) * _MARK.size


def _head(ledger: bytes) -> bytes:
    """The anchor's line, filled up so that the marks after it are aligned."""
    line = _ANCHOR + ledger + b"\n"
    return line + bytes(-len(line) % _MARK.size)
