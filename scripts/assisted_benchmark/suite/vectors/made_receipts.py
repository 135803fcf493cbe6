"""Vectors of receipts: a sound export of two runs, and every way in which one was spoilt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.ledger.protocol import Draft, Head
from assisted_benchmark.ledger.receipts import first_prev, line_digest, write_line
from assisted_benchmark.live_policy.states import LIVE_TABLE, State
from assisted_benchmark.suite.vectors.plain import table_value
from assisted_benchmark.suite.vectors.vector import bytes_value

_LEDGER: Final = "vectors"
_GROUP: Final = "ab" * 32
_AT: Final = Instant(1_900_000_000_000_000_000, 1_000_000_000)

_STEPS: Final = (
    ("decision", "unknown_tool", "", "sealed"),
    ("decision", "admitted", State.SEALED, State.DISPATCHING),
    ("outcome", "succeeded", State.DISPATCHING, State.SUCCEEDED),
    ("decision", "already_selected", "", "succeeded"),
)
# What no ledger would write: an end is left.
_WRONG: Final = (*_STEPS[:3], ("outcome", "succeeded", State.SUCCEEDED, State.FAILED))
_UNCLAIMED: Final = (_STEPS[0], ("outcome", "succeeded", "", State.SUCCEEDED))


def receipt_vectors() -> tuple[list[Json], Json]:
    """The vectors, and the values that they share."""
    one, two = _chain("run-1", _STEPS), _chain("run-2", _STEPS)
    heads = (("run-1", _head("run-1", one)), ("run-2", _head("run-2", two)))
    first = heads[:1]
    edited = [one[0].replace(b"unknown_tool", b"unknown_toll"), *one[1:]]
    last = [*one[:3], one[3].replace(b"already", b"alraedy")]
    strange = _chain("run-1", _STEPS, ledger="another")
    wrong, unclaimed = _chain("run-1", _WRONG), _chain("run-1", _UNCLAIMED)
    spelled = [one[0].replace(b'":', b'": ', 1), *one[1:]]
    cases: tuple[tuple[str, str, str, Sequence[bytes], Sequence[tuple[str, Head]], bytes], ...] = (
        ("sound", "one run, whole", "good", one, first, b""),
        ("two-runs", "two runs, one after the other", "good", [*one, *two], heads, b""),
        ("edited", "a word of a receipt is another", "edited", edited, first, b""),
        (
            "edited-last",
            "a word of the last receipt is another: only the anchored end shows it",
            "edited",
            last,
            first,
            b"",
        ),
        ("edited-and-chained-anew", "everything after the edit was computed anew", "edited", wrong, first, b""),
        ("another-spelling", "the same value in other bytes", "edited", spelled, first, b""),
        ("no-receipt", "a line that is none", "edited", [*one[:2], b"{}", *one[2:]], first, b""),
        ("reordered", "two receipts changed places", "moved", [one[0], one[2], one[1], one[3]], first, b""),
        ("duplicated", "a receipt stands twice", "moved", [*one[:2], one[1], *one[2:]], first, b""),
        ("removed", "a receipt in the middle is gone", "moved", [one[0], *one[2:]], first, b""),
        ("interleaved", "a receipt stands behind those of a later run", "moved", [*one[:3], *two, one[3]], heads, b""),
        ("truncated", "the last receipt is gone", "truncated", one[:3], first, b""),
        ("all-gone", "no receipt where there must be some", "truncated", [], first, b""),
        ("torn-tail", "the beginning of one more receipt, which nobody anchored", "truncated", one, first, two[0][:40]),
        ("torn-within", "the last anchored receipt is cut off", "truncated", one[:3], first, one[3][:40]),
        ("one-more", "a receipt behind the anchored end", "edited", _chain("run-1", (*_STEPS, _STEPS[3])), first, b""),
        ("foreign-run", "a receipt of a run that is not anchored", "foreign", [*one, two[0]], first, b""),
        ("foreign-ledger", "the chain of another ledger", "foreign", strange, first, b""),
        ("leaves-an-end", "a transition that the table does not have", "inconsistent", wrong, _anchored(wrong), b""),
        (
            "never-claimed",
            "an outcome of a group that was never claimed",
            "inconsistent",
            unclaimed,
            _anchored(unclaimed),
            b"",
        ),
    )
    return [_vector(*case) for case in cases], {"tables": {"live": table_value(LIVE_TABLE)}}


def _vector(
    name: str, why: str, flag: str, lines: Sequence[bytes], heads: Sequence[tuple[str, Head]], tail: bytes
) -> Json:
    anchored = [{"run": run, "length": head.length, "digest": head.digest, "table": "live"} for run, head in heads]
    raw = b"".join(line + b"\n" for line in lines) + tail
    given = {"receipts": bytes_value(raw), "ledger": _LEDGER, "anchored": anchored}
    return {"id": name, "comment": why, "flags": [flag], "given": given}


def _chain(run: str, steps: Sequence[tuple[str, str, str, str]], ledger: str = _LEDGER) -> list[bytes]:
    """A chain of receipts, as a ledger writes them."""
    lines: list[bytes] = []
    prev: Digest = first_prev(ledger, run)
    for number, (kind, reason, before, after) in enumerate(steps, 1):
        draft = Draft(kind, f"{number:032x}", _AT, reason)
        lines.append(write_line(draft, ledger, run, number, prev, _GROUP, before, after))
        prev = line_digest(lines[-1])
    return lines


def _head(run: str, lines: Sequence[bytes]) -> Head:
    return Head(len(lines), line_digest(lines[-1]) if lines else first_prev(_LEDGER, run))


def _anchored(lines: Sequence[bytes]) -> tuple[tuple[str, Head], ...]:
    return (("run-1", _head("run-1", lines)),)
