"""How arguments, times and what was said are written in transcripts. Pure."""

from __future__ import annotations

import json
import re
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.live.transcripts.calls import refused

AT: Final = r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,3})?s"

_AT: Final = re.compile(AT, re.ASCII)
_MILLISECOND: Final = 1_000_000


def spelled(value: Json) -> bytes:
    """A JSON value as it is written where nobody kept its own bytes: numbers keep their kind (`1`, `1.0`).

    What is no admissible JSON (NaN, a lone surrogate) stays what it is, and is refused where it is judged.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def duration(text: str) -> int:
    """The nanoseconds of a text that `AT` matches, such as `1.250s`."""
    whole, _, part = text[:-1].partition(".")
    return (int(whole) * 1000 + int(part.ljust(3, "0") or "0")) * _MILLISECOND


def at_text(at_ns: int) -> str:
    """The text that `duration` reads back, to the millisecond."""
    whole, part = divmod(at_ns // _MILLISECOND, 1000)
    return f"{whole}.{part:03}s"


def at_ns(value: Json, file: str, line: int) -> int:
    """The time that a line says, if it says one.

    Raises:
        DocumentError: it is no time.
    """
    if value is None:
        return 0
    if type(value) is not str or _AT.fullmatch(value) is None:
        raise refused(Reason.WRONG_VALUE, "`at` is no time since the beginning", file, line, 1, 'write it as "1.250s"')
    return duration(value)
