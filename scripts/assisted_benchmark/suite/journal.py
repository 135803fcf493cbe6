"""The journal of a run: each ended case as one JSON line, so that a killed run is taken up where it ended.

A line is written whole and flushed when its case has ended. A torn last line is a case that had
not ended. Nothing is decided from a journal: it holds results, and the ledgers hold what was used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from attrs import evolve, fields

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.suite.result import CaseResult, Event, Miss, Scores, Verdict

_FIELDS: Final = tuple(field.name for field in fields(CaseResult))
_SCORES: Final = tuple(field.name for field in fields(Scores))
_MISS: Final = tuple(field.name for field in fields(Miss))


class Ended(NamedTuple):
    """A case that ended: its result, its receipts and its chain's end, and how long each phase took (ns)."""

    result: CaseResult
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
    found["timeline"] = tuple(
        Event(kind=kind, text=text, at_ns=at_ns, reason=reason, server=server, tool=tool)
        for kind, text, at_ns, reason, server, tool in found["timeline"]
    )
    for name in ("refusals", "calls"):
        found[name] = tuple((key, count) for key, count in found[name])
    for name in ("tags", "stamps"):
        found[name] = tuple(found[name])
    return CaseResult(**found)


class Journal:
    """One worker's journal, open to be appended to."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")

    def write(self, ended: Ended, packed: bytes) -> None:
        """Append one case, whose result is `packed`; after this returns a killed process does not lose it."""
        rest = orjson.dumps(
            {
                "run": ended.run,
                "receipts": [receipt.decode() for receipt in ended.receipts],
                "head": [ended.head.length, ended.head.digest],
                "timing": ended.timing,
            }
        )
        self._file.write(b'{"result":%b,%b\n' % (packed, rest[1:]))
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def read_lines(paths: Iterable[Path]) -> Iterator[Ended]:
    """Every case that ended, in the order of the journals; a torn tail is passed over."""
    for path in paths:
        for line in path.read_bytes().split(b"\n")[:-1]:
            value = orjson.loads(line)
            length, digest = value["head"]
            yield Ended(
                result=unpack(value["result"]),
                run=value["run"],
                receipts=tuple(receipt.encode() for receipt in value["receipts"]),
                head=Head(length, Digest(digest)),
                timing=value["timing"],
            )
