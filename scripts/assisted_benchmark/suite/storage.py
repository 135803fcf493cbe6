"""The run directory and the key file: the only places where the suite touches the disk for a run.

A master key lives in one owner-only file; it is never an argument of a command and never in an
environment. A suite's run takes its master from the run's seed, so that receipts (which hold keyed
digests) can be reproduced to the byte: such a key guards nothing but the run's own records.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

import orjson
from attrs import frozen

from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.errors import InputError, MisuseError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason

_SECRET: Final = re.compile(r"[0-9a-f]{64}")
_NUMBER: Final = re.compile(r"\d{4,}")


def new_keys(chance: Chance) -> KeyRing:
    """A key ring that is on no disk."""
    return KeyRing(chance.token(8).hex(), chance.token(32))


def create_keys(path: Path, chance: Chance) -> KeyRing:
    """A new key ring, written to `path` for its owner alone. An existing file is never replaced."""
    ring = new_keys(chance)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise MisuseError(Reason.MISUSE, f"no key file was made at `{path}`: {error.strerror}") from error
    with os.fdopen(handle, "wb") as file:
        file.write(orjson.dumps({"id": ring.id, "master": ring.master.hex()}) + b"\n")
    return ring


def read_keys(path: Path) -> KeyRing:
    """The key ring in `path`.

    Raises:
        InputError: unreadable; the file is not the caller's alone, is a link, or holds no key.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
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
        """Every journal there is."""
        return sorted(self.path.glob("journal-*.jsonl"))

    @property
    def ledgers(self) -> Path:
        """The workers' ledgers and their anchors."""
        return self.path / "ledgers"

    def next_part(self) -> int:
        """A worker number that no journal and no ledger bears yet: a resumed run opens no dead worker's."""
        taken = [path.stem.removeprefix("journal-") for path in self.journals()]
        taken += [path.stem.split("-")[0] for path in self.ledgers.glob("*.sqlite")]
        return max(map(int, taken), default=-1) + 1


def run_directories(root: Path) -> list[Path]:
    """The run directories under `root/runs`, oldest first."""
    runs = root / "runs"
    found = [path for path in runs.iterdir() if _NUMBER.fullmatch(path.name)] if runs.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))


def new_run_directory(root: Path) -> Path:
    """A fresh directory `root/runs/NNNN`, counted on from the last one; no clock is asked."""
    while True:
        taken = run_directories(root)
        path = root / "runs" / f"{int(taken[-1].name) + 1 if taken else 1:04}"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue  # another run was quicker: count on
        return path
