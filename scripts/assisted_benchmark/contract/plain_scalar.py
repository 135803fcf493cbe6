"""What an unquoted YAML scalar means, where nobody can read it as something else."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from assisted_benchmark.kernel.canonical import SAFE_INTEGER, Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

_WORDS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}
# All that some YAML version, or a hasty person, reads as other than text: the truth words and null in any case,
# `=` and `<<`, anything made of digits with points, signs, colons and exponents, other bases, infinities, dates.
_DOUBTFUL: Final = re.compile(
    r"(?i:y|yes|n|no|on|off|true|false|null|~|=|<<)?"
    r"|[-+]?[0-9.][0-9_.,:]*(?:[eE][-+]?[0-9_]*)?"
    r"|[-+]?0[bBoOxX][0-9a-fA-F_]*"
    r"|[-+]?\.(?i:inf|nan)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[tT \t].*)?"
)
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_FLOAT: Final = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9]")
_TRUTH: Final = re.compile(r"(?i:y|yes|n|no|on|off|true|false)")


class DoubtError(Exception):
    """Not beyond doubt; only a careful look may judge."""


def plain_value(text: str) -> Json:
    """What an unquoted scalar means; DoubtError where that is not beyond doubt."""
    if text in _WORDS:
        return _WORDS[text]
    if _DOUBTFUL.fullmatch(text) is None:
        return text
    # Digits are counted first: int() of a long text is slow, and refused by Python itself past 4,300.
    if _INTEGER.fullmatch(text) and len(text) <= 17 and -SAFE_INTEGER <= (number := int(text)) <= SAFE_INTEGER:
        return number
    if _FLOAT.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    raise DoubtError


_remembered: Final = lru_cache(maxsize=4096)(plain_value)


def known_value(text: str) -> Json:
    """`plain_value`, which remembers short texts."""
    return _remembered(text) if len(text) <= 32 else plain_value(text)


def why_doubtful(text: str) -> tuple[Reason, str, str]:
    """Reason, detail and hint for a plain scalar that is beyond the subset."""
    if not text:
        return Reason.IMPLICIT_TYPE, "an empty value, which YAML reads as null", 'write null, "" or the value'
    word = shown(text, 60)
    if _INTEGER.fullmatch(text):
        return Reason.UNSAFE_INTEGER, f"the integer {word} lies beyond 2^53-1", "quote it if it is text"
    quoted = f'write "{word}" if you mean the text'
    if _TRUTH.fullmatch(text):
        return Reason.IMPLICIT_TYPE, f"`{word}` is a truth value in some YAML versions", f"{quoted}, else true or false"
    try:
        number = float(text)
    except ValueError:
        return Reason.IMPLICIT_TYPE, f"`{word}` is not text in every YAML version", quoted
    spelled = int(number) if number.is_integer() and abs(number) <= SAFE_INTEGER else number
    return Reason.IMPLICIT_TYPE, f"`{word}` is not the JSON spelling of a number", f"{quoted}, else {spelled!r}"
