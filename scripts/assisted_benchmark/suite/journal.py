"""The journal of a run: each ended case as one JSON line, so that a killed run is taken up where it ended.

A line is written whole and flushed when its case has ended. A torn last line is a case that had
not ended. Nothing is decided from a journal: it holds results, and the ledgers hold what was used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
from attrs import asdict, evolve, frozen

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.suite.result import CaseResult, Event, Miss, Scores, Verdict


@frozen(kw_only=True)
class Ended:
    """A case that ended: its result, its receipts and its chain's end, and how long each phase took (ns)."""

    result: CaseResult
    run: str
    receipts: tuple[bytes, ...]
    head: Head
    timing: dict[str, int]

    def missing(self, miss: Miss) -> Ended:
        """The same, failed for one more expectation."""
        result = evolve(self.result, verdict=Verdict.FAILED, misses=(*self.result.misses, miss))
        return evolve(self, result=result)


def result_value(result: CaseResult) -> dict[str, Any]:
    """The JSON value of a case's result; `result_from` is its inverse."""
    return asdict(result, recurse=True)


def result_from(value: dict[str, Any]) -> CaseResult:
    """The result that `result_value` wrote."""
    fields = dict(value)
    fields["verdict"] = Verdict(fields["verdict"])
    fields["scores"] = Scores(**fields["scores"])
    fields["misses"] = tuple(Miss(**each) for each in fields["misses"])
    fields["timeline"] = tuple(Event(**each) for each in fields["timeline"])
    fields["refusals"] = tuple((reason, count) for reason, count in fields["refusals"])
    fields["calls"] = tuple((server, count) for server, count in fields["calls"])
    fields["tags"] = tuple(fields["tags"])
    fields["stamps"] = tuple(fields["stamps"])
    return CaseResult(**fields)


class Journal:
    """One worker's journal, open to be appended to."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")

    def write(self, ended: Ended) -> None:
        """Append one case; after this returns a killed process does not lose it."""
        self._file.write(_line(ended))
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _line(ended: Ended) -> bytes:
    line = orjson.dumps(
        {
            "result": result_value(ended.result),
            "run": ended.run,
            "receipts": [receipt.decode() for receipt in ended.receipts],
            "head": [ended.head.length, ended.head.digest],
            "timing": ended.timing,
        }
    )
    return line + b"\n"


def read_lines(paths: Iterable[Path]) -> Iterator[Ended]:
    """Every case that ended, in the order of the journals; a torn tail is passed over."""
    for path in paths:
        for line in path.read_bytes().split(b"\n")[:-1]:
            value = orjson.loads(line)
            length, digest = value["head"]
            yield Ended(
                result=result_from(value["result"]),
                run=value["run"],
                receipts=tuple(receipt.encode() for receipt in value["receipts"]),
                head=Head(length, Digest(digest)),
                timing=value["timing"],
            )
