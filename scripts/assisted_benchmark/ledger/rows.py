"""The rows of a ledger's SQLite file: their statements, their shapes, and the MAC over each.

All that decides about a run is one row: its record, the names of the groups that it began with, what state each of
them is in, how many groups were opened later, and the end of its receipts, under one MAC. The table `groups` only says
which run a name is of; that the run has a group of that name, its own row must say.

A group that was opened later is a row of its own, so that a change of it costs the same beside few and beside many.
Its MAC covers its run, its name, its record (by a digest, the record lies apart), how it stands, and how long its
run's chain was when it came to stand so. Runs and these groups are numbered together, without a gap.

A receipt's place is its run's number and its own in one integer, so that a run's receipts lie together and the newest
run's are appended, which rearranges no page.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.kernel.reasons import Reason

_RUN: Final = "run, runs.num, record, names, states, later, length, digest, mac"
_LATER: Final = "later.num, run, name, kept, state, candidate, refusals, length, mac"
ADD_RUN: Final = "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run) DO NOTHING"
ADD_GROUP: Final = "INSERT INTO groups SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM later WHERE name = ?1)"
# Both at once, as each call of SQLite has its price. The second is the condition: it must have changed one row.
MOVE_RUN: Final = (
    "INSERT INTO receipts VALUES (? << 32 | ?, ?);"
    "UPDATE runs SET states = ?, later = ?, length = ?, digest = ?, mac = ? WHERE num = ? AND mac = ?"
)
READ_RUN: Final = f"SELECT {_RUN} FROM runs WHERE run = ?"  # noqa: S608 - made of constants
READ_RUN_OF_GROUP: Final = f"SELECT {_RUN} FROM groups LEFT JOIN runs USING (num) WHERE name = ?"  # noqa: S608 - as above
READ_RUNS: Final = f"SELECT {_RUN}, line FROM runs LEFT JOIN receipts ON place = num << 32 | length"  # noqa: S608 - as above
READ_RECEIPTS: Final = (
    "SELECT line FROM runs JOIN receipts ON place BETWEEN num << 32 AND num << 32 | 0xffffffff WHERE run = ?"
    " ORDER BY place"
)
COUNT: Final = (
    "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM later),"
    " max((SELECT coalesce(max(num), 0) FROM runs), (SELECT coalesce(max(num), 0) FROM later))"
)
READ_NAMES: Final = "SELECT name FROM groups WHERE num = ? ORDER BY name"
KNOWN: Final = "SELECT 1 FROM groups WHERE name = ? UNION ALL SELECT 1 FROM later WHERE name = ?"
ADD_LATER: Final = "INSERT INTO later VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
ADD_RECORD: Final = "INSERT INTO records VALUES (?, ?)"
MOVE_LATER: Final = (
    "UPDATE later SET state = ?, candidate = ?, refusals = ?, length = ?, mac = ? WHERE num = ? AND mac = ?"
)
READ_LATER: Final = f"SELECT {_LATER} FROM later WHERE name = ?"  # noqa: S608 - made of constants
READ_LATER_OF_RUN: Final = f"SELECT {_LATER} FROM later WHERE run = ? ORDER BY num"  # noqa: S608 - as above
READ_ALL_LATER: Final = f"SELECT {_LATER}, record FROM later LEFT JOIN records USING (num)"  # noqa: S608 - as above
READ_RECORD: Final = "SELECT record FROM records WHERE num = ?"


# A group's state, the candidate that was claimed (or empty), and how many refusals were counted.
GroupState: TypeAlias = tuple[str, str, int]


class RunRow(NamedTuple):
    """A run's row. `sealed` is the MAC of what never changes in it, to be gone on from by `Macs.run`."""

    num: int
    record: bytes
    places: dict[bytes, int]
    states: tuple[GroupState, ...]
    later: int
    length: int
    digest: str
    mac: bytes
    sealed: blake2b


class LaterRow(NamedTuple):
    """The row of a group that was opened later: `kept` digests its record, `length` was its chain's when it changed."""

    num: int
    run: int
    name: bytes
    kept: bytes
    now: GroupState
    length: int
    mac: bytes


class Macs:
    """The MAC of each kind of row: keyed BLAKE2b, personalised by the kind. What it covers reads back one way only."""

    def __init__(self, keys: KeyRing) -> None:
        secret = keys.key(Purpose.LEDGER).secret
        # Begun once a kind, as taking in the key is most of the work; each MAC goes on from a copy.
        self._run, self._later, self._meta = (
            blake2b(key=secret, digest_size=32, person=kind) for kind in (b"run", b"later", b"meta")
        )

    def sealed(self, num: int, run: str, record: bytes, names: bytes) -> blake2b:
        """The begin of a run's MAC: over what never changes."""
        mac = self._run.copy()
        mac.update(f"{num},{len(run)},{len(record)},{len(names)},{run}".encode() + record + names)
        return mac

    def run(self, sealed: blake2b, states: bytes, later: int, length: int, digest: str) -> bytes:
        """Over a run's whole row."""
        mac = sealed.copy()
        mac.update(f"{later},{length},{digest},".encode() + states)
        return mac.digest()

    def later(self, num: int, run: int, name: bytes, kept: bytes, now: GroupState, length: int) -> bytes:
        """Over the whole row of a group that was opened later."""
        mac = self._later.copy()
        state, candidate, refusals = now
        sizes = f"{num},{run},{len(name)},{len(kept)},{len(state)},{len(candidate)},{refusals},{length},"
        mac.update(sizes.encode() + name + kept + f"{state}{candidate}".encode())
        return mac.digest()

    def meta(self, ledger_id: str, states: str) -> bytes:
        """Over the ledger's own row."""
        mac = self._meta.copy()
        mac.update(f"{len(ledger_id)},{ledger_id}{states}".encode())
        return mac.digest()

    def run_row(self, columns: tuple[Any, ...]) -> RunRow:
        """A run's row from its columns, if it is there and verifies."""
        run, num, record, names, states, later, length, digest, mac = columns
        if mac is None:
            raise IntegrityError(Reason.LEDGER_TAMPERED, "the run of a group was removed")
        sealed = self.sealed(num, run, record, names)
        if not compare_digest(mac, self.run(sealed, states, later, length, digest)):
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"the run `{run}` was edited")
        return RunRow(num, record, places_of(names), unpacked(states), later, length, digest, mac, sealed)

    def later_row(self, columns: tuple[Any, ...]) -> LaterRow:
        """The row of a group that was opened later from its columns, if it verifies."""
        num, run, name, kept, state, candidate, refusals, length, mac = columns
        now = (state, candidate, refusals)
        if not compare_digest(mac, self.later(num, run, name, kept, now, length)):
            raise IntegrityError(Reason.LEDGER_TAMPERED, f"the group `{name.hex()}` was edited")
        return LaterRow(num, run, name, kept, now, length, mac)


def kept(record: bytes) -> bytes:
    """The digest of a later group's record, for its row."""
    return blake2b(record, digest_size=32, person=b"record").digest()


def pack_names(names: Iterable[bytes]) -> bytes:
    """The names of a run's groups, in their order, as its row has them."""
    return orjson.dumps([name.hex() for name in names])


def places_of(names: bytes) -> dict[bytes, int]:
    """Where each of a run's groups stands among its states."""
    return {bytes.fromhex(name): place for place, name in enumerate(orjson.loads(names))}


def pack_states(states: tuple[GroupState, ...]) -> bytes:
    """The states of a run's groups, in their order, as its row has them."""
    return orjson.dumps(states)


def unpacked(states: bytes) -> tuple[GroupState, ...]:
    """What `pack_states` packed."""
    return tuple((state, candidate, refusals) for state, candidate, refusals in orjson.loads(states))
