"""The one escaper for text that comes from outside and is shown to people."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# Letters, marks and symbols that draw nothing: Unicode's default ignorables outside those categories, and blanks.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)


def invisible(char: str) -> bool:
    """Whether a character has no shape of its own: control, format (bidi, zero-width, tag), unassigned."""
    return unicodedata.category(char) in _HIDDEN or _BLANK.match(char) is not None


def shown(text: str, limit: int = 200) -> str:
    """`text` with nothing hidden in it: invisible characters as \\u escapes, cut at `limit` characters."""
    cut = text[:limit]
    plain = cut.isascii() and cut.isprintable()  # nearly every text: nothing to look for in it
    safe = cut if plain else "".join(_escape(char) if invisible(char) else char for char in cut)
    return safe + (f"… (+{len(text) - limit} characters)" if len(text) > limit else "")


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint such as `did you mean `tool`?`, or the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""
