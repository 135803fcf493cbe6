"""Attacks on receipts: the chain of one good case, edited, cut, forked, mixed and written anew. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.ledger.receipts import first_prev, line_digest


class Edited(NamedTuple):
    """One attack: the threat, the variant, the reason that must be found, the lines, and the head that is anchored."""

    threat: str
    name: str
    expected: Reason
    lines: Sequence[bytes]
    head: Head


def edited(lines: Sequence[bytes], head: Head, run: str, ledger_id: str) -> Iterator[Edited]:
    """Every edit that must be found. `lines` are a run's receipts, of which there are two at least."""
    broken, middle = Reason.CHAIN_BROKEN, len(lines) // 2
    for name, changed in (
        ("detail", _changed(lines, middle, detail="another")),
        ("reason", _changed(lines, middle, reason="altered")),
        ("time", _changed(lines, middle, wall_ns="1")),
        ("last", _changed(lines, len(lines) - 1, detail="another")),
        ("spelling", [*lines[:middle], lines[middle].replace(b":", b": ", 1), *lines[middle + 1 :]]),
        ("moved", [lines[1], lines[0], *lines[2:]]),
        ("removed", lines[1:]),
        ("repeated", [lines[0], *lines]),
        ("added", [*lines, lines[-1]]),
    ):
        yield Edited("R01", name, broken, changed, head)
    yield Edited("R02", "last", Reason.CHAIN_TRUNCATED, lines[:-1], head)
    yield Edited("R02", "all-but-one", Reason.CHAIN_TRUNCATED, lines[:1], head)
    yield Edited("R03", "all", Reason.CHAIN_MISSING, [], head)
    fork = _linked([*lines[:-1], *_changed(lines, len(lines) - 1, reason="failed")[-1:]], run, ledger_id)
    yield Edited("R05", "end", broken, fork, head)
    whole = _linked(_changed(lines, 0, detail="another"), run, ledger_id)
    yield Edited("R05", "from-the-start", broken, whole, head)
    yield Edited("R06", "at-the-end", Reason.RUN_MISMATCH, [*lines, *_changed(lines, 0, run="another")[:1]], head)
    yield Edited("R06", "ledger", Reason.RUN_MISMATCH, [*_changed(lines, 0, ledger="another")[:1], *lines], head)
    half = lines[-1][: len(lines[-1]) // 2]
    yield Edited("R07", "half-a-line", Reason.TORN_TAIL, [*lines[:-1], half], head)
    moves = [at for at, line in enumerate(lines) if orjson.loads(line)["before"]]
    for at in moves[:-1] or moves:
        # Whoever could anchor an end as well would still have to say what cannot be.
        left = _linked([*lines[:at], *lines[at + 1 :]], run, ledger_id)
        if any(orjson.loads(line)["group"] == orjson.loads(lines[at])["group"] for line in lines[at + 1 :]):
            anchored = Head(len(left), line_digest(left[-1]))
            yield Edited("R08", f"without-{at}", Reason.RECEIPT_INCONSISTENT, left, anchored)


def _changed(lines: Sequence[bytes], at: int, **fields: Json) -> list[bytes]:
    """The lines with one of them saying something else, in its canonical spelling."""
    line = canonical_bytes({**orjson.loads(lines[at]), **fields})
    return [*lines[:at], line, *lines[at + 1 :]]


def _linked(lines: Sequence[bytes], run: str, ledger_id: str) -> list[bytes]:
    """The lines as a chain of their own, counted and linked anew."""
    prev: str = first_prev(ledger_id, run)
    linked = []
    for seq, line in enumerate(lines, 1):
        written = canonical_bytes({**orjson.loads(line), "seq": seq, "prev": prev})
        linked.append(written)
        prev = line_digest(written)
    return linked
