"""The run directory and the key file: the only places where the suite touches the disk for a run.

A master key lives in one owner-only file; it is never an argument of a command and never in an
environment. A suite's run takes its master from the run's seed, so that receipts (which hold keyed
digests) can be reproduced to the byte: such a key guards nothing but the run's own records.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
from attrs import frozen

from assisted_benchmark.contract.files import is_utf8, read, write
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.errors import HarnessError, InputError, MisuseError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import MIB
from assisted_benchmark.kernel.text import shown

_SECRET: Final = re.compile(r"[0-9a-f]{64}")
_NUMBER: Final = re.compile(r"[0-9]{4,}")
_JOURNAL: Final = re.compile(r"journal-(0|[1-9][0-9]{0,8})\.jsonl")
_LEDGER: Final = re.compile(r"([0-9]{1,9})-[0-9]+(?:-[a-z]+)?\.sqlite")
# Far beyond any run; a bound all the same, for what stands there may be anything.
_MAX_BYTES: Final = 8192 * MIB


def new_keys(chance: Chance) -> KeyRing:
    """A key ring that is on no disk."""
    return KeyRing(chance.token(8).hex(), chance.token(32))


def create_keys(path: Path, chance: Chance) -> KeyRing:
    """A new key ring, written to `path` for its owner alone. An existing file is never replaced."""
    ring = new_keys(chance)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(orjson.dumps({"id": ring.id, "master": ring.master.hex()}) + b"\n")
    except OSError as error:
        raise MisuseError(Reason.MISUSE, f"no key file was made at `{path}`: {error.strerror}") from error
    return ring


def read_keys(path: Path) -> KeyRing:
    """The key ring in `path`.

    Raises:
        InputError: unreadable; the file is not the caller's alone, is a link, or holds no key.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(4096)
    except OSError as error:
        raise InputError(Reason.UNREADABLE, f"the key file `{path}` cannot be read: {error.strerror}") from error
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise InputError(Reason.UNREADABLE, f"the key file `{path}` is not its owner's alone; make a new one")
    try:
        value = orjson.loads(data)
        key_id, secret = value["id"], value["master"]
        if _SECRET.fullmatch(secret) and type(key_id) is str:
            return KeyRing(key_id, bytes.fromhex(secret))
    except (ValueError, TypeError, KeyError):
        pass  # said below: never with the content, which may be a secret
    raise InputError(Reason.UNREADABLE, f"`{path}` holds no key")


@frozen
class RunDirectory:
    """Where everything of one run lies."""

    path: Path

    @property
    def plan(self) -> Path:
        """What is run: the plan and the case ids, written before the first case."""
        return self.path / "run.json"

    @property
    def receipts(self) -> Path:
        """Every receipt of every case, in case order, one canonical JSON line each."""
        return self.path / "receipts.jsonl"

    @property
    def heads(self) -> Path:
        """The anchor: each case's chain by its length and last digest."""
        return self.path / "heads.json"

    @property
    def timing(self) -> Path:
        """Wall-clock durations; no digest covers them."""
        return self.path / "timing.jsonl"

    @property
    def keys(self) -> Path:
        """The run's key file."""
        return self.path / "keys" / "run.key"

    def journal(self, part: int) -> Path:
        """What one worker did, a line a case."""
        return self.path / f"journal-{part}.jsonl"

    def journals(self) -> list[Path]:
        """Every journal there is, the oldest first: of a case that was run again the last line counts."""
        return [self.journal(part) for part in sorted(_numbers(self.path, _JOURNAL))]

    @property
    def ledgers(self) -> Path:
        """The workers' ledgers and their anchors."""
        return self.path / "ledgers"

    def next_part(self) -> int:
        """A worker number that no journal and no ledger bears yet: a resumed run opens no dead worker's."""
        return max((*_numbers(self.path, _JOURNAL), *_numbers(self.ledgers, _LEDGER)), default=-1) + 1

    def read(self, path: Path) -> bytes:
        """A regular file of this run, whole.

        Raises:
            DocumentError: it cannot be read, is no regular file, or has no end.
        """
        return read(path, self.path, _MAX_BYTES)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory and hold it for the time of a run. The kernel lets go of it when the process ends.

        Raises:
            MisuseError: another process runs in it, or it cannot be made.
        """
        if not is_utf8(str(self.path.absolute())):
            detail = f"the directory's name `{shown(str(self.path.absolute()))}` is not UTF-8"
            raise MisuseError(Reason.UNREADABLE, f"{detail}; take one whose whole path is")
        with contextlib.ExitStack() as open_files:
            try:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                lock = os.open(self.path / "run.lock", flags, 0o600)
                open_files.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A worker holds its own journal: one that still lives, although its run does not, keeps others out.
                for journal in self.journals():
                    _try(journal)
            except BlockingIOError as error:
                detail = f"`{shown(str(self.path))}` is being run by another process"
                raise MisuseError(Reason.MISUSE, f"{detail}; wait for its end, or take a new directory") from error
            except OSError as error:
                detail = f"there can be no run in `{shown(str(self.path))}`: {error.strerror}"
                raise MisuseError(Reason.UNREADABLE, f"{detail}; take another directory") from error
            yield


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` in the file's place: it is there whole, or what was there before is.

    Raises:
        HarnessError: the disk is full, or the folder cannot be written to.
    """
    try:
        write(path, data)
    except OSError as error:
        raise unwritten(path, error) from error


def unwritten(path: Path, error: OSError) -> HarnessError:
    """What a run that cannot write its own records ends with."""
    detail = f"`{shown(str(path))}` cannot be written: {error.strerror}"
    return HarnessError(Reason.STORE_UNAVAILABLE, f"{detail}; make room, then go on with `run --resume`")


def _try(journal: Path) -> None:
    handle = os.open(journal, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)


def _numbers(folder: Path, name: re.Pattern[str]) -> Iterator[int]:
    found = (name.fullmatch(each) for each in (os.listdir(folder) if folder.is_dir() else ()))
    return (int(each[1]) for each in found if each is not None)


def run_directories(root: Path) -> list[Path]:
    """The run directories under `root/runs`, oldest first."""
    runs = root / "runs"
    found = [path for path in runs.iterdir() if _NUMBER.fullmatch(path.name)] if runs.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))


def new_run_directory(root: Path) -> Path:
    """A fresh directory `root/runs/NNNN`, counted on from the last one; no clock is asked.

    Raises:
        MisuseError: none can be made there.
    """
    runs = root / "runs"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        while True:
            taken = run_directories(root)
            path = runs / f"{int(taken[-1].name) + 1 if taken else 1:04}"
            with contextlib.suppress(FileExistsError):  # another run was quicker: count on
                path.mkdir(mode=0o700)
                return path
    except OSError as error:
        why = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
        detail = f"no run directory can be made in `{shown(str(runs))}`: {why}"
        hint = "make it a folder that you may write to, or give another --root"
        raise MisuseError(Reason.UNREADABLE, f"{detail}; {hint}") from error
