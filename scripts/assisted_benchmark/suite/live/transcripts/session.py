"""Sessions that were recorded here: what every turn proposed, when, and what came of it; then the run's receipts.

    {"schema":"assisted-benchmark/session@1","agent":"client (me 1)"}
    {"at":"1.250s","propose":"{\\"arguments\\":{},...}","came_to":"admitted","result":"sha256:..."}
    {"at":"2.000s","malformed":"malformed_call","detail":"...","came_to":"malformed_call"}
    {"receipt":{...}}

`propose` is the proposal's own text. Of results and of what a model said there are digests alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from assisted_benchmark.contract.scalar import DIGEST, Text, Word
from assisted_benchmark.contract.shape import Fault, Record, Shape, may, must
from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import LIVE_ORDER, Reason
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.transcripts.calls import SessionTurn, Transcript, refused
from assisted_benchmark.suite.live.transcripts.spelling import AT, at_text, duration

SCHEMA: Final = "assisted-benchmark/session@1"
KIND: Final = "session"

_TEXT: Final = Text(limit=1 << 25)
_REASONS: Final = tuple(each.value for each in LIVE_ORDER)
_CAME: Final = {
    "at": may(Text(AT, "a time since the beginning such as `1.250s`", 16), "when the turn began"),
    "came_to": may(Word((ADMITTED, *_REASONS)), "what came of it"),
    "session": may(_TEXT, "whose session it came under, where that was not the case's own"),
    "result": may(DIGEST, "the result's digest"),
    "said": may(DIGEST, "the digest of what the model said with it"),
}
_HEAD: Final = Record(
    {"schema": must(Word((SCHEMA,)), "the kind of file"), "agent": may(_TEXT, "what the agent called itself")},
    "a session",
)
_TURN: Final = Record({"propose": must(_TEXT, "the proposal's own text"), **_CAME}, "a turn")
_NO_MESSAGE: Final = Record(
    {
        "malformed": must(Word(tuple(each.value for each in Reason)), "why the line was no message"),
        "detail": must(_TEXT, "what was wrong with it"),
        **_CAME,
    },
    "a turn",
)
_RECEIPT: Final = Record({"receipt": must(Record({}, "a receipt", open=True), "one receipt of the run")}, "a receipt")


def transcript(rows: Sequence[tuple[Json, int]], file: str) -> Transcript | None:
    """The recorded session; None if this is no such file."""
    if not rows or type(rows[0][0]) is not dict or rows[0][0].get("schema") != SCHEMA:
        return None
    head = rows[0][0]
    _require(_HEAD, head, file, max(rows[0][1], 1))
    turns: list[SessionTurn] = []
    receipts: list[bytes] = []
    latest = 0
    for value, line in rows[1:]:
        if type(value) is dict and "receipt" in value:
            _require(_RECEIPT, value, file, line)
            receipts.append(_receipt(value["receipt"], file, line))
            continue
        _require(_NO_MESSAGE if type(value) is dict and "malformed" in value else _TURN, value, file, line)
        turn = _turn(value, len(turns))
        if turn.at_ns < latest:
            raise refused(
                Reason.WRONG_VALUE, "this turn began before the one above it", file, line, 1, "put them in order"
            )
        latest = turn.at_ns
        turns.append(turn)
    return Transcript(kind=KIND, entries=tuple(turns), agent=head.get("agent", ""), receipts=tuple(receipts))


def written(agent: str, turns: Sequence[SessionTurn], receipts: Sequence[bytes] = ()) -> bytes:
    """The file that `transcript` reads back."""
    lines = [orjson.dumps({"schema": SCHEMA, **({"agent": agent} if agent else {})})]
    lines += [_ascii(dict(_fields(each))) for each in turns]
    lines += [b'{"receipt":%b}' % each for each in receipts]
    return b"\n".join(lines) + b"\n"


def _fields(turn: SessionTurn) -> Iterator[tuple[str, str]]:
    if turn.word or turn.at_ns:
        yield "at", at_text(turn.at_ns)
    if turn.malformed is None:
        yield "propose", turn.raw.decode("utf-8", "surrogatepass")
    else:
        yield "malformed", turn.malformed[0].value
        yield "detail", turn.malformed[1]
    for key, value in (
        ("came_to", turn.word),
        ("session", turn.principal),
        ("result", turn.result),
        ("said", turn.said),
    ):
        if value:
            yield key, value


def _turn(value: Json, number: int) -> SessionTurn:
    malformed = (Reason(value["malformed"]), value["detail"]) if "malformed" in value else None
    return SessionTurn(
        raw=value.get("propose", "").encode("utf-8", "surrogatepass"),
        turn=number,
        at_ns=duration(value["at"]) if "at" in value else 0,
        word=value.get("came_to", ""),
        result=value.get("result", ""),
        principal=value.get("session", ""),
        malformed=malformed,
        said=value.get("said", ""),
    )


def _receipt(value: Json, file: str, line: int) -> bytes:
    try:
        return canonical_bytes(value)
    except InputError as error:
        raise refused(error.reason, f"this is no receipt: {error.detail}", file, line, 1) from error


def _require(shape: Shape, value: Json, file: str, line: int) -> None:
    faults: list[Fault] = []
    shape.look(value, (), faults)
    if faults:
        where = ".".join(map(str, faults[0].path))
        detail = f"`{where}`: {faults[0].detail}" if where else faults[0].detail
        raise refused(faults[0].reason, detail, file, line, 1, faults[0].hint)


def _ascii(value: dict[str, str]) -> bytes:
    return json.dumps(value).encode()  # a lone surrogate is an escape
