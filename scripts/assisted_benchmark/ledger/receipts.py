"""The receipt line and its chain: how a line is written, and what `verify` makes of many.

A receipt is one RFC 8785 line. It names its ledger, its run, its place (`seq`, from 1) and the
digest of the line before it; the first names a digest of the ledger and the run. `before` and
`state` are stamped by the ledger where it moved a group, and `before` is empty where it did not:
so the lines of a run, by themselves, say which states its groups went through.

The chain alone shows edits, moves and gaps. The head (how many, and the last one's digest), which
the ledger keeps under a MAC, shows what a chain alone cannot: a cut-off end, and a chain that was
computed anew from its first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from itertools import repeat
from re import Pattern
from typing import Any, Final

import orjson
from attrs import frozen

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.digest import Digest, digest_of, framed
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Draft, Head, Row
from assisted_benchmark.ledger.states import TransitionTable

SCHEMA: Final = "assisted-benchmark/receipt@1"
DECISION: Final = "decision"
OUTCOME: Final = "outcome"
_OUTCOME: Final = OUTCOME.encode()

# A line's keys in RFC 8785 order. Every value but `seq` is a string: nanoseconds exceed 2^53.
_KEYS: Final = (
    "arguments",
    "before",
    "candidate",
    "detail",
    "grant",
    "group",
    "id",
    "kind",
    "ledger",
    "mono_ns",
    "prev",
    "reason",
    "run",
    "schema",
    "seq",
    "server",
    "state",
    "tool",
    "wall_ns",
)
_QUOTES: Final = 4 * len(_KEYS) - 2
# What a walk over a chain needs of a line, in the order of its keys.
_WALKED: Final = ("before", "group", "kind", "prev", "seq", "state")
_ELSEWHERE: Final = (b"a receipt of another chain",)
# So many lines are read at a time.
_AT_ONCE: Final = 64
# What a text may hold only behind a backslash, and that. Quotes are told by the line's shape.
_ESCAPED: Final = bytes(range(0x20)) + b"\\"
_FIRST_BYTES: Final = b'{"arguments":"'
# Begun once, as beginning is a good part of the work; each line's goes on from a copy.
_DIGEST: Final = sha256(framed("receipt@1"))


@lru_cache(maxsize=16)
def _chain_frame(ledger_id: str) -> bytes:
    return framed("receipt-chain@1", ledger_id.encode())


def first_prev(ledger_id: str, run: str) -> Digest:
    """What the first receipt of a run names as the one before it: `digest_of("receipt-chain@1", ledger, run)`."""
    name = run.encode()
    return Digest("sha256:" + sha256(_chain_frame(ledger_id) + len(name).to_bytes(8, "big") + name).hexdigest())


def line_digest(line: bytes) -> Digest:
    """A receipt's digest: `digest_of("receipt@1", line)`, with the frame laid out once."""
    state = _DIGEST.copy()
    state.update(len(line).to_bytes(8, "big") + line)
    return Digest("sha256:" + state.hexdigest())


def write_line(
    draft: Draft, ledger_id: str, run: str, seq: int, prev: str, group: str, before: str, state: str
) -> bytes:
    """The canonical line of one receipt.

    Written from a template, because orjson escapes what RFC 8785 does: quotes, backslashes and control
    characters. Where all texts together, written as one string, grow by its own two quotes and no more, none of
    them has anything to escape. Any other line goes the long way.

    Raises:
        CanonicalError: a text has a NUL or a lone surrogate.
    """
    kind, receipt_id, (wall_ns, mono_ns), reason, grant, _, candidate, server, tool, arguments, _, detail = draft
    texts = "".join(
        (
            arguments, before, candidate, detail, grant, group, receipt_id, kind, ledger_id,
            prev, reason, run, server, state, tool,
        )
    )  # fmt: skip
    try:
        if len(orjson.dumps(texts)) == len(texts.encode()) + 2:
            return (
                f'{{"arguments":"{arguments}","before":"{before}","candidate":"{candidate}","detail":"{detail}",'
                f'"grant":"{grant}","group":"{group}","id":"{receipt_id}","kind":"{kind}","ledger":"{ledger_id}",'
                f'"mono_ns":"{mono_ns}","prev":"{prev}","reason":"{reason}","run":"{run}","schema":"{SCHEMA}",'
                f'"seq":{seq},"server":"{server}","state":"{state}","tool":"{tool}","wall_ns":"{wall_ns}"}}'
            ).encode()
    except orjson.JSONEncodeError:
        pass  # a lone surrogate, which the long way refuses
    values = (
        arguments, before, candidate, detail, grant, group, receipt_id, kind, ledger_id,
        mono_ns, prev, reason, run, SCHEMA, seq, server, state, tool, wall_ns,
    )  # fmt: skip
    return canonical_bytes(dict(zip(_KEYS, map(str, values), strict=True)) | {"seq": seq})


def crash_draft(group: bytes, row: Row, claimed: bool, at: Instant, prev: str) -> Draft:
    """The receipt of a group that a crash left in flight. Its id follows from its place, so recovery needs no chance.

    Only what was `claimed` may be out. What was not had no marker, so nothing of it was sent.
    """
    receipt_id = digest_of("recovery@1", prev.encode(), group)[7:39]
    reason = Reason.OUTCOME_UNKNOWN if claimed else Reason.CANCELLED
    when = "between the marker and the outcome" if claimed else f"before a marker, while this was {row.state}"
    detail = f"the process ended {when}"
    return Draft(OUTCOME, receipt_id, at, reason.value, candidate=row.candidate, detail=detail)


@frozen
class Finding:
    """One thing wrong with a chain. `line` counts from 1; `seq` is the receipt's own word, 0 if it has none."""

    reason: Reason
    line: int
    seq: int
    detail: str


@frozen
class Verification:
    """What verifying came to: how many lines were read, and every finding in order."""

    count: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing at all was found."""
        return not self.findings


def verify(lines: Iterable[bytes], *, run: str, ledger_id: str, head: Head, table: TransitionTable) -> Verification:
    """Check a run's receipts against each other, the anchored `head` and the transition table.

    After a finding it goes on from the line it stands at, so that one edit is one finding.
    """
    walk = _Walk(run, ledger_id, table)
    numbered = list(lines)
    torn = bool(numbered) and _is_torn(numbered[-1])
    whole = numbered[:-1] if torn else numbered
    walk.all(whole)
    if torn:
        walk.find(Reason.TORN_TAIL, len(numbered), 0, "the last receipt is cut off; export it from the ledger again")
    walk.end(head, len(whole), torn)
    return Verification(len(whole), tuple(walk.findings))


def is_receipt(line: bytes) -> bool:
    """Whether a line by itself is a receipt in its one canonical spelling."""
    return _read(line) is not None


def _is_torn(line: bytes) -> bool:
    """Whether a line is the beginning of a receipt and no more: garbage is not torn, it is broken."""
    if line.endswith(b'"}') or not (line.startswith(_FIRST_BYTES) or _FIRST_BYTES.startswith(line)):
        return False
    try:
        orjson.loads(line)
    except ValueError:
        return True
    return False


def _read(line: bytes) -> dict[str, Any] | None:
    """The receipt that a line is, or None unless it is one in the one canonical spelling.

    With the keys in order, writing the value again gives the same bytes only for a canonical line
    of strings and one integer. Without a backslash 74 quotes are 19 keys and 18 strings.
    """
    try:
        value = orjson.loads(line)
        written = orjson.dumps(value)
    except (ValueError, TypeError):  # no JSON, or nested too deeply to be written
        return None
    if type(value) is not dict or tuple(value) != _KEYS or type(value["seq"]) is not int or written != line:
        return None
    if b"\\" in line or line.count(b'"') != _QUOTES:
        texts = all(type(text) is str and "\x00" not in text for key, text in value.items() if key != "seq")
        return value if texts else None
    return value


def _spelling(**known: str) -> Pattern[bytes]:
    """What a line among lines looks like where no text has an escape; `known` are fields whose values are given.

    The groups are what a walk needs of it. A text is all up to the next quote: that it has no escape and no
    control character is to be known otherwise.
    """

    def spelt(key: str) -> str:
        if key in known:
            return re.escape(orjson.dumps(known[key]).decode())
        text = '([^"]*+)' if key in _WALKED else '[^"]*+'
        return "(0|[1-9][0-9]{0,14})" if key == "seq" else f'"{text}"'

    line = r"\{" + ",".join(f'"{key}":{spelt(key)}' for key in _KEYS) + r"\}"
    return re.compile(f"^{line}$".encode(), re.MULTILINE)


def _plain(spelling: Pattern[bytes], lines: list[bytes]) -> list[tuple[bytes, ...]] | None:
    """The groups of each of the lines, if all have this spelling and nothing to escape.

    What is found begins and ends with a line, so as many as there are lines are one each.
    """
    joined = b"\n".join(lines)
    if len(joined.translate(None, _ESCAPED)) != len(joined) - (len(lines) - 1):
        return None
    try:
        joined.decode()
    except UnicodeDecodeError:
        return None
    found = spelling.findall(joined)
    return found if len(found) == len(lines) else None


class _Walk:
    """One pass over a chain: where it stands, the states of the groups so far, and what was found."""

    def __init__(self, run: str, ledger_id: str, table: TransitionTable) -> None:
        self.findings: list[Finding] = []
        self._run = run
        self._ledger = ledger_id
        # As bytes, which the lines are.
        self._initial = table.initial.encode()
        self._unclaimed = frozenset(each.encode() for each in table.unclaimed)
        self._edges = frozenset((before.encode(), after.encode()) for before, after in table.edges)
        self._states: dict[bytes, bytes] = {}
        self._seq = 0
        self._prev: str = first_prev(ledger_id, run)

    def find(self, reason: Reason, line: int, seq: int, detail: str) -> None:
        self.findings.append(Finding(reason, line, seq, detail))

    def all(self, lines: list[bytes]) -> None:
        """Walk every line. Where the chain is broken it goes on from the line that it stands at."""
        spelling = _spelling(run=self._run, ledger=self._ledger, schema=SCHEMA)
        for begin in range(0, len(lines), _AT_ONCE):
            part = lines[begin : begin + _AT_ONCE]
            # What this run's ledger wrote without an escape is read at once; anything else goes the long way.
            plain = _plain(spelling, part) or repeat(None)
            for number, (line, words) in enumerate(zip(part, plain, strict=False), begin + 1):
                said = words or self._said(line, number)
                if said is _ELSEWHERE:
                    continue
                self._seq += 1
                if said is not None:
                    self._step(said, number)
                self._prev = line_digest(line)

    def _said(self, line: bytes, number: int) -> tuple[bytes, ...] | None:
        """What the walk needs of a line in any spelling; None if it is no receipt, `_ELSEWHERE` if of no concern."""
        value = _read(line)
        if value is None:
            self.find(Reason.CHAIN_BROKEN, number, 0, "not a receipt in its one canonical spelling")
            return None
        if (value["run"], value["ledger"], value["schema"]) != (self._run, self._ledger, SCHEMA):
            self.find(Reason.RUN_MISMATCH, number, value["seq"], "a receipt of another run, ledger or schema")
            return _ELSEWHERE
        return tuple(str(value[key]).encode() for key in _WALKED)

    def _step(self, said: tuple[bytes, ...], number: int) -> None:
        before, group, kind, prev, place, state = said
        if prev != self._prev.encode() or place != b"%d" % self._seq:
            seq = int(place)
            self.find(Reason.CHAIN_BROKEN, number, seq, _breach(seq, self._seq))
            self._seq = seq
        elif before or kind == _OUTCOME:
            now = self._states.get(group, self._initial)
            if fault := _contradiction(before, now, state, self._unclaimed, self._edges):
                self.find(Reason.RECEIPT_INCONSISTENT, number, self._seq, fault)
        if before:
            self._states[group] = state

    def end(self, head: Head, lines: int, torn: bool) -> None:
        """Compare where the walk ended with the anchored head."""
        if (self._seq, self._prev) == head:
            return
        if lines == 0 and head.length > 0:
            self.find(Reason.CHAIN_MISSING, 0, 0, f"no receipt where there must be {head.length}")
        elif self._seq < head.length:
            missing = head.length - self._seq
            if not (torn and missing == 1):
                self.find(Reason.CHAIN_TRUNCATED, lines, self._seq, f"{missing} receipts are missing at the end")
        else:
            self.find(Reason.CHAIN_BROKEN, lines, self._seq, "the last receipt is not the one that is anchored")


def _breach(seq: int, expected: int) -> str:
    if seq == expected:
        return f"receipt {seq - 1} was edited, or this one's link to it"
    if seq > expected:
        return f"receipt {seq} stands where {expected} should: receipts are missing or moved"
    return f"receipt {seq} stands where {expected} should: it was repeated or moved"


def _contradiction(
    before: bytes, now: bytes, state: bytes, unclaimed: frozenset[bytes], edges: frozenset[tuple[bytes, bytes]]
) -> str:
    """What a transition or an outcome says that cannot be so after the receipts before it; empty if nothing."""
    if not before:
        return "an outcome of a group that was never claimed" if now in unclaimed else ""
    if before != now:
        return f"a group left `{before.decode()}` while it was `{now.decode()}`"
    return "" if (before, state) in edges else f"no edge `{before.decode()}` -> `{state.decode()}`"
