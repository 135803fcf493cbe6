"""MCP transcripts: one JSON-RPC message a line, as a client sent it.

    {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lba__get_status","arguments":{}}}

or with its direction, so that the server's answers are there too, and perhaps its time:

    {"direction":"client-to-server","at":"1.250s","message":{"jsonrpc":"2.0", ...}}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.live.transcripts.calls import (
    Answer,
    RecordedCall,
    Transcript,
    refused,
    result_digest,
)
from assisted_benchmark.suite.live.transcripts.spelling import at_ns, spelled

KIND: Final = "mcp"
_FROM_CLIENT: Final = ("client-to-server", "client", "c2s", "->")
_FROM_SERVER: Final = ("server-to-client", "server", "s2c", "<-")


def transcript(rows: Sequence[tuple[Json, int]], file: str) -> Transcript | None:
    """The calls of the client, in the order of their lines; None if this is no such file."""
    if len(rows) == 1 and type(rows[0][0]) is list:
        rows = [(value, 0) for value in rows[0][0]]
    if not rows or not _is_message(rows[0][0]):
        return None
    calls: list[RecordedCall] = []
    open_calls: dict[str, int] = {}
    for value, line in rows:
        if not _is_message(value):
            raise refused(Reason.WRONG_VALUE, "this line is no JSON-RPC message", file, line, 1, "take it out")
        direction, message = str(value.get("direction", "")).lower(), value.get("message", value)
        if direction and direction not in (*_FROM_CLIENT, *_FROM_SERVER):
            raise refused(
                Reason.WRONG_VALUE, "`direction` is neither of both", file, line, 1, f"write {_FROM_CLIENT[0]}"
            )
        number = spelled(message.get("id")).decode()  # `33` and `"33"` are two
        if message.get("method") == "tools/call" and direction not in _FROM_SERVER:
            open_calls[number] = len(calls)
            calls.append(_call(message, value, file, line, len(calls)))
        elif "method" not in message and direction not in _FROM_CLIENT and number in open_calls:
            at = open_calls.pop(number)
            calls[at] = calls[at]._replace(answer=_answer(message))
    return Transcript(kind=KIND, entries=tuple(calls))


def _is_message(value: Json) -> bool:
    match value:
        case {"jsonrpc": "2.0"} | {"direction": str(), "message": {"jsonrpc": "2.0"}}:
            return True
    return False


def _call(message: Json, row: Json, file: str, line: int, turn: int) -> RecordedCall:
    match message.get("params"):
        case {"name": str(name)} as params:
            arguments = spelled(params.get("arguments", {}))
            place = f"{file}:{line}"
            return RecordedCall(name, arguments, turn, at_ns=at_ns(row.get("at"), file, line), place=place)
    raise refused(Reason.WRONG_VALUE, "a call needs `params` with a name", file, line, 1, "take the line out")


def _answer(message: Json) -> Answer:
    result = message.get("result")
    if type(result) is not dict:
        return Answer(failed=True)
    return Answer(failed=result.get("isError") is True, result=result_digest(result))
