"""The journal of a run: each ended case as one JSON line, so that a killed run is taken up where it ended.

A line is written whole when its case has ended. A torn last line is a case that had not ended. Each line
ends with a MAC under the run's key: results and receipts are taken up from it, so nothing else may have written it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from attrs import asdict, evolve, fields

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.suite.result import CaseResult, Counterfactual, Event, Miss, Prefix, Scores, Verdict
from assisted_benchmark.suite.storage import RunDirectory, unwritten

_FIELDS: Final = tuple(field.name for field in fields(CaseResult))
_SCORES: Final = tuple(field.name for field in fields(Scores))
_MISS: Final = tuple(field.name for field in fields(Miss))
_LATTICE: Final = tuple(field.name for field in fields(Counterfactual))
_PURPOSE: Final = b"journal@1"
_ROW: Final = attrgetter(*_LATTICE)
_MAC: Final = b',"mac":"'
_TAIL: Final = len(_MAC) + 64 + len(b'"}')


NO_CHAIN: Final = Head(0, Digest(""))


class Ended(NamedTuple):
    """A case that ended: its result, its broker, receipts and chain's end, and how long each phase took (ns)."""

    result: CaseResult
    broker: str
    run: str
    receipts: tuple[bytes, ...]
    head: Head
    timing: dict[str, int]

    def missing(self, miss: Miss) -> Ended:
        """The same, failed for one more expectation."""
        result = evolve(self.result, verdict=Verdict.FAILED, misses=(*self.result.misses, miss))
        return self._replace(result=result)


def pack(result: CaseResult) -> bytes:
    """A case's result as JSON; `unpack` is its inverse. It is how results travel between processes, too."""
    value: dict[str, Any] = {name: getattr(result, name) for name in _FIELDS}
    value["scores"] = [getattr(result.scores, name) for name in _SCORES]
    value["misses"] = [[getattr(miss, name) for name in _MISS] for miss in result.misses]
    value["lattice"] = [*map(_ROW, result.lattice)]
    value["prefix"] = None if result.prefix is None else asdict(result.prefix)
    value["timeline"] = [
        (each.kind, each.text, each.at_ns, each.reason, each.server, each.tool) for each in result.timeline
    ]
    return orjson.dumps(value)


def unpack(value: dict[str, Any]) -> CaseResult:
    """The result that `pack` wrote, from its parsed JSON."""
    found = dict(value)
    found["verdict"] = Verdict(found["verdict"])
    found["scores"] = Scores(**dict(zip(_SCORES, found["scores"], strict=True)))
    found["misses"] = tuple(Miss(**dict(zip(_MISS, each, strict=True))) for each in found["misses"])
    found["lattice"] = tuple(Counterfactual(**dict(zip(_LATTICE, each, strict=True))) for each in found["lattice"])
    found["timeline"] = tuple(
        Event(kind=kind, text=text, at_ns=at_ns, reason=reason, server=server, tool=tool)
        for kind, text, at_ns, reason, server, tool in found["timeline"]
    )
    if found["prefix"] is not None:
        found["prefix"] = Prefix(**found["prefix"] | {"scores": Scores(**found["prefix"]["scores"])})
    for name in ("refusals", "calls"):
        found[name] = tuple((key, count) for key, count in found[name])
    for name in ("tags", "stamps"):
        found[name] = tuple(found[name])
    return CaseResult(**found)


class Journal:
    """One worker's journal, open to be appended to, and held by the worker for as long as it lives."""

    def __init__(self, path: Path, keys: KeyRing) -> None:
        """Make the file.

        Raises:
            HarnessError: it cannot be made.
        """
        self._path = path
        self._key = keys.key(Purpose.LEDGER)
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise unwritten(path, error) from error
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, ended: Ended, packed: bytes) -> None:
        """Append one case, whose result is `packed`; after this returns a killed process does not lose it.

        Raises:
            HarnessError: it cannot be written; the journal is as it was.
        """
        rest = orjson.dumps(
            {
                "broker": ended.broker,
                "run": ended.run,
                "receipts": [receipt.decode() for receipt in ended.receipts],
                "head": [ended.head.length, ended.head.digest],
                "timing": ended.timing,
            }
        )
        body = b'{"result":%b,%b' % (packed, rest[1:])
        mac = self._key.mac(_PURPOSE, body).hex().encode()
        line = b'%b%b%b"}\n' % (body[:-1], _MAC, mac)
        begun = self._file.tell()
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            # Half a line would run into the next one.
            self._file.seek(begun)
            os.ftruncate(self._file.fileno(), begun)
            raise unwritten(self._path, error) from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def read_journals(files: RunDirectory, keys: KeyRing) -> Iterator[Ended]:
    """Every case that ended, in the order of the journals; a torn tail is passed over.

    Raises:
        DocumentError: a journal cannot be read.
        IntegrityError: a line was not written by this run.
    """
    key = keys.key(Purpose.LEDGER)
    for path in files.journals():
        for number, line in enumerate(files.read(path).split(b"\n")[:-1], 1):
            body = line[:-_TAIL] + b"}"
            if line != b'%b%b%b"}' % (body[:-1], _MAC, key.mac(_PURPOSE, body).hex().encode()):
                detail = f"a case in the journal was edited, or is of another run's key, at {shown(str(path))}:{number}"
                hint = "nothing of this run can be trusted: run it anew"
                raise IntegrityError(Reason.CHAIN_BROKEN, f"{detail}; {hint}")
            value = orjson.loads(line)
            length, digest = value["head"]
            yield Ended(
                result=unpack(value["result"]),
                broker=value["broker"],
                run=value["run"],
                receipts=tuple(receipt.encode() for receipt in value["receipts"]),
                head=Head(length, Digest(digest)),
                timing=value["timing"],
            )
