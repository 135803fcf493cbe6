r"""What "the same call" means: strict I-JSON in, RFC 8785 bytes out.

`parse` admits raw bytes or says why not; `canonical_bytes` writes a value's one
spelling. Both have a fast path on `orjson` for plain values, where its answer is
provably right, and a slow path that is right everywhere (and explains).

Why the fast parse is right. `orjson` keeps the last of two equal keys, so duplicates
must be noticed otherwise. Every `"` that is not escaped opens or closes one string, so a
text that parses holds half as many strings, and the parsed value holds as many strings
(keys and values) only if no key was dropped. Escaped quotes are counted thus: backslashes
stand in runs. From its start on, each two of a run are one escaped backslash; one that is
left over escapes what follows the run. So once the pairs are taken out, `\"` is exactly
an escaped quote: taking them out joins no two runs. Of the escapes only `\u` can make a
NUL or a lone surrogate; a text with `\u` goes the slow way. Floats, and integers beyond the
safe range, are not plain, because `orjson` rounds large integers silently.

Why the fast writer is right. For null, booleans, safe integers, strings, lists and
string-keyed objects `orjson` writes RFC 8785's bytes except for the order of keys: by
code point, where RFC 8785 has UTF-16 code units. The two differ only where a key holds
a character beyond U+FFFF, so a value with such keys is not plain.

As RFC 8785 has one number type, `1` and `1.0` have the same bytes. A parsed value still
tells them apart (int, float), which is how a schema's `integer` insists on its spelling.
Whatever is written here can be read here: the doubles that RFC 8785 would spell as an
integer beyond 2^53-1 are refused as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import orjson
import rfc8785
from attrs import field, frozen

from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import (
    MAX_DEPTH,
    MAX_NODES,
    MIB,
    SAFE_INTEGER,
    Json,
    check,
    is_crowded,
    parse_strictly,
    strings_in,
)

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "MIB",
    "NOT_PLAIN",
    "SAFE_INTEGER",
    "Canonical",
    "Json",
    "canonical_bytes",
    "canonical_texts",
    "parse",
    "parse_telling",
    "plain_bytes",
    "plain_strings",
    "strings_in",
]

# Objects and lists of texts.
Texts: TypeAlias = str | Mapping[str, "Texts"] | Sequence["Texts"]

NOT_PLAIN: Final = -1
_SORTED: Final = orjson.OPT_SORT_KEYS


def parse(raw: bytes, max_bytes: int = MIB) -> Json:
    """Admit one JSON document from raw bytes, or refuse it.

    Integers come back as `int`, numbers with a point or an exponent as `float`.

    Raises:
        CanonicalError: too_large, malformed_unicode, malformed_call, duplicate_key,
            unsafe_integer, non_finite_number or too_deep.
    """
    return parse_telling(raw, max_bytes)[0]


def parse_telling(raw: bytes, max_bytes: int = MIB) -> tuple[Json, bool]:
    """As `parse`; and whether the value is plain, so that `plain_bytes` may write it and every part of it."""
    if len(raw) <= max_bytes and b"\\u" not in raw and not (len(raw) > MAX_NODES and is_crowded(raw)):
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return parse_strictly(raw, max_bytes), False
        if plain_strings(value, ascii_keys=raw.isascii()) == strings_in(raw):
            return value, True
    return parse_strictly(raw, max_bytes), False


def plain_bytes(value: Json) -> bytes:
    """As `canonical_bytes`, of a value or a part of one that `parse_telling` called plain: it is not walked again.

    It holds no float, no integer beyond the safe range, no key with a character beyond U+FFFF; and without
    `\\u` in its text, no NUL and no lone surrogate.
    """
    return orjson.dumps(value, option=_SORTED)


def canonical_bytes(value: Json) -> bytes:
    """The RFC 8785 bytes of a JSON value.

    Raises:
        CanonicalError: the value is no JSON value, or is one that `parse` refuses.
    """
    if plain_strings(value) != NOT_PLAIN:
        try:
            written = orjson.dumps(value, option=_SORTED)
        except orjson.JSONEncodeError as error:
            raise CanonicalError(Reason.MALFORMED_UNICODE, "a string has a lone surrogate") from error
        if b"\\u0000" not in written:
            return written
    check(value)
    return rfc8785.dumps(value)


def canonical_texts(texts: Texts) -> bytes:
    """As `canonical_bytes`, of a value that is made of texts only: without a walk.

    `orjson` orders keys as RFC 8785 does unless one has a character beyond U+FFFF, and then its bytes are not ASCII.
    """
    try:
        written = orjson.dumps(texts, option=_SORTED)
    except orjson.JSONEncodeError:
        return canonical_bytes(texts)  # which says what is wrong
    return written if written.isascii() and b"\\u0000" not in written else canonical_bytes(texts)


@frozen
class Canonical:
    """A JSON value held as its RFC 8785 bytes: hashable, immutable, equal only if the same."""

    data: bytes = field()

    @classmethod
    def of(cls, value: Json) -> Canonical:
        """From a Python value; CanonicalError where `canonical_bytes` refuses it."""
        return cls(canonical_bytes(value))

    @property
    def value(self) -> Json:
        """A fresh Python value; changing it changes nothing here."""
        return orjson.loads(self.data)


def plain_strings(top: Json, *, ascii_keys: bool = False) -> int:
    """How many strings a plain value holds, keys included; NOT_PLAIN of all others, and of what comes near a bound.

    `ascii_keys` says that every key is known to be ASCII text, so that none is looked at.

    Goes level by level: measured faster than recursion, and a list that holds itself ends at a bound.
    """
    strings = 0
    nodes = 1
    depth = 0  # how many arrays and objects are around the values of this level
    level = [top]
    while level:
        below: list[Json] = []
        for value in level:
            kind = type(value)
            if kind is str:
                strings += 1
            elif kind is dict:
                for key in () if ascii_keys else value:
                    if type(key) is not str or not (key.isascii() or max(key) <= "\uffff"):
                        return NOT_PLAIN
                strings += len(value)
                nodes += len(value)
                if nodes > MAX_NODES:
                    return NOT_PLAIN
                below.extend(value.values())
            elif kind is list:
                nodes += len(value)
                if nodes > MAX_NODES:
                    return NOT_PLAIN
                below.extend(value)
            elif kind is int:
                if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
                    return NOT_PLAIN
            elif value is not None and kind is not bool:
                return NOT_PLAIN
        depth += 1
        if below and depth == MAX_DEPTH:
            return NOT_PLAIN
        level = below
    return strings
