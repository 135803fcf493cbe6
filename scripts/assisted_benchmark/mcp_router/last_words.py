"""What a server that ended at its start leaves to say: how it exited, and the end of its standard error. Pure.

This goes into refusals' details, receipts and reports, which people read; no agent hears it. It is given only
where the process never got a call, so no argument can be in it. The values of its environment can be: each is
replaced where it stands as the contract has it. Not replaced are values of three characters and fewer, which say
nothing and would riddle the text, and those that are a placeholder alone, which are places on this machine.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from typing import Final

from assisted_benchmark.kernel.redact import REDACTED
from assisted_benchmark.kernel.text import shown

LINES: Final = 6
CHARACTERS: Final = 600

_SHORT: Final = 3
_PLACE: Final = re.compile(r"\{[a-z_]+\}")


def secrets_of(template: Iterable[tuple[str, str]], filled: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The environment's values that no text for people may hold, the longest first; `filled` has the same names."""
    places = {name for name, value in template if _PLACE.fullmatch(value)}
    found = {value for name, value in filled if len(value) > _SHORT and name not in places}
    return tuple(sorted(found, key=lambda each: (-len(each), each)))


def last_words(status: int | None, tail: bytes, secrets: tuple[str, ...], *, cut: bool) -> str:
    """The sentence's end that tells of an exit and of `tail`, or nothing if there is nothing to tell.

    `status` is None where the server did not end by itself, and negative for a signal. `cut` says that `tail` is
    not the whole of what was written.
    """
    text = tail.decode(errors="replace")
    for each in secrets:
        text = text.replace(each, REDACTED)
    if cut and secrets:
        # It may begin within a secret, and within a character's bytes: no trace of that may stay.
        text = text[len(secrets[0]) + 3 :]
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][-LINES:]
    said = " | ".join(lines)
    more = "…" if len(said) > CHARACTERS else ""
    ends = "" if status is None else f"; it {_how(status)}"
    return ends + (f"; its standard error ends: {more}{shown(said[-CHARACTERS:], CHARACTERS)}" if said else "")


def _how(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
