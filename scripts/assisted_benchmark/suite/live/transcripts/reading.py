"""From a transcript's bytes to its calls: which format it is, its own shape says.

Bytes are taken strictly (UTF-8, no key twice, bounded depth and size), what they hold is not: keys that nobody here
knows are passed over, for every tool adds its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from assisted_benchmark.kernel.canonical import MIB, Json
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.suite.live.transcripts import inspect_log, mcp, messages, session
from assisted_benchmark.suite.live.transcripts.calls import MOST, SHORTER, Transcript, refused

MAX_BYTES: Final = 32 * MIB
# So many values take a few hundred megabytes once they are read.
MAX_VALUES: Final = 2_000_000
_KNOWN: Final = (
    "known are a recorded session, MCP JSONL, messages of OpenAI (Chat Completions, Responses) and Anthropic, "
    "logs of Inspect and AgentDojo"
)


class Row(NamedTuple):
    """One JSON value of a file, and its line where a line has one value, else 0."""

    value: Json
    line: int


def read_transcript(data: bytes, file: str, sample: str = "") -> Transcript:
    """The transcript in `data`; `file` is its name in messages, `sample` the one of a log that has several.

    Raises:
        DocumentError: it is none, or is too large, too deep or no clean JSON.
    """
    if len(data) > MAX_BYTES:
        raise refused(Reason.TOO_LARGE, f"the transcript has more than {MAX_BYTES} bytes", file, hint=SHORTER)
    if inspect_log.is_archive(data):
        name, data = inspect_log.unpacked(data, file, sample, MAX_BYTES)
        _require_few_values(data, f"{file}!{name}")
        rows: Sequence[Row] = (Row({"eval": {}, "samples": [_loads(data, f"{file}!{name}")]}, 0),)
        sample = ""
    else:
        _require_few_values(data, file)
        rows = _rows(data, file)
    try:
        made = _made(rows, file, sample)
    except RecursionError as error:  # what could just be parsed may still be too deep to be walked
        raise refused(Reason.TOO_DEEP, "nested too deeply", file, 1, 1) from error
    if len(made.entries) > MOST:
        raise refused(Reason.TOO_LARGE, f"the transcript has more than {MOST} calls", file, hint=SHORTER)
    return made


def _made(rows: Sequence[Row], file: str, sample: str) -> Transcript:
    first = rows[0].value if rows else None
    if inspect_log.is_log(first) and len(rows) == 1:
        return inspect_log.transcript(first, file, sample)
    if sample:
        raise refused(Reason.UNKNOWN_REFERENCE, f"only an Inspect log has samples, such as `{shown(sample, 60)}`", file)
    readers: tuple[Callable[[Sequence[tuple[Json, int]], str], Transcript | None], ...] = (
        session.transcript,
        mcp.transcript,
        messages.transcript,
    )
    for reader in readers:
        found = reader(rows, file)
        if found is not None:
            return found
    raise refused(Reason.WRONG_VALUE, "this is no transcript of a known format", file, 1, 1, _KNOWN)


def _require_few_values(data: bytes, file: str) -> None:
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise refused(Reason.TOO_LARGE, f"more than {MAX_VALUES} values", file, 0, 1, SHORTER)


def _rows(data: bytes, file: str) -> list[Row]:
    """One value of the whole file, or one of each line."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if len(lines) > 1 and _is_object(lines[0][1]):
        return [Row(_loads(line, file, number), number) for number, line in lines]
    return [Row(_loads(data, file), 0)]


def _is_object(line: bytes) -> bool:
    try:
        return type(json.loads(line)) is dict
    except (ValueError, RecursionError):
        return False


def _loads(data: bytes, file: str, line: int = 0) -> Json:
    """One JSON value, where numbers may be whatever Python's own writer leaves: arguments are judged later."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise refused(Reason.MALFORMED_UNICODE, "a byte order mark at the start", file, 1, 1, "save it without")
    try:
        return _DECODER.decode(data.decode())
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = (line or before.count(b"\n") + 1, len(before.rpartition(b"\n")[2]) + 1)
        raise refused(Reason.MALFORMED_UNICODE, "this byte is not UTF-8", file, *place, "write it as UTF-8") from error
    except json.JSONDecodeError as error:
        place = (line or error.lineno, error.colno)
        raise refused(
            Reason.MALFORMED_CALL, f"not JSON: {error.msg}", file, *place, "one value, or one a line"
        ) from error
    except CanonicalError as error:
        raise refused(error.reason, error.detail, file, line or 1, 1) from error
    except RecursionError as error:
        raise refused(Reason.TOO_DEEP, "nested too deeply", file, line or 1, 1) from error
    except ValueError as error:  # Python's bound on the digits of an integer
        raise refused(Reason.TOO_LARGE, "a number has too many digits", file, line or 1, 1) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise CanonicalError(Reason.DUPLICATE_KEY, f"the key `{shown(twice, 60)}` stands twice in one object")
    return value


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)
