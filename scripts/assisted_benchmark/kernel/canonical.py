"""What "the same call" means: strict I-JSON in, RFC 8785 bytes out.

`parse` admits raw bytes or says why not; `canonical_bytes` writes a value's one
spelling. Both have a fast path on `orjson` inside a subset where its answer is
provably right, and a slow path that is right everywhere (and explains).

Why the fast parse is right. `orjson` keeps the last of two equal keys, so duplicates
must be noticed otherwise. In a text without a backslash every `"` opens or closes one
string, so the text holds `count('"') / 2` strings. The parsed value holds as many
strings (keys and values) only if no key was dropped. Floats, and integers beyond the
safe range, leave the subset, because `orjson` rounds large integers silently.

Why the fast writer is right. For null, booleans, safe integers, strings, lists and
string-keyed objects `orjson` writes RFC 8785's bytes except for the order of keys: by
code point, where RFC 8785 has UTF-16 code units. The two differ only where a key holds
a character beyond U+FFFF, so such keys leave the subset.

As RFC 8785 has one number type, `1` and `1.0` have the same bytes. A parsed value still
tells them apart (int, float), which is how a schema's `integer` insists on its spelling.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, TypeAlias

import orjson
import rfc8785
from attrs import field, frozen

from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import Reason

Json: TypeAlias = Any  # None | bool | int | float | str | list[Json] | dict[str, Json]

MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000
MAX_DIGITS: Final = 400
SAFE_INTEGER: Final = 2**53 - 1
MIB: Final = 1 << 20

_OUTSIDE: Final = -1
_SORTED: Final = orjson.OPT_SORT_KEYS


def parse(raw: bytes, max_bytes: int = MIB) -> Json:
    """Admit one JSON document from raw bytes, or refuse it.

    Integers come back as `int`, numbers with a point or an exponent as `float`.

    Raises:
        CanonicalError: too_large, malformed_unicode, malformed_call, duplicate_key,
            unsafe_integer, non_finite_number or too_deep.
    """
    if len(raw) > max_bytes:
        raise CanonicalError(Reason.TOO_LARGE, f"{len(raw)} bytes where {max_bytes} are allowed")
    if b"\\" not in raw:
        try:
            value = orjson.loads(raw)
        except ValueError:
            return _parse_slowly(raw)
        if _strings_in_subset(value) * 2 == raw.count(b'"'):
            return value
    return _parse_slowly(raw)


def canonical_bytes(value: Json) -> bytes:
    """The RFC 8785 bytes of a JSON value.

    Raises:
        CanonicalError: the value is no JSON value, or is one that `parse` refuses.
    """
    strings = _strings_in_subset(value)
    if strings != _OUTSIDE:
        try:
            written = orjson.dumps(value, option=_SORTED)
        except (orjson.JSONEncodeError, UnicodeEncodeError) as error:  # a lone surrogate
            raise CanonicalError(Reason.MALFORMED_UNICODE, "a string has a lone surrogate") from error
        if b"\\u0000" not in written:
            return written
    _check(value)
    return rfc8785.dumps(value)


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


def _strings_in_subset(top: Json) -> int:
    """How many strings the value holds, keys included; _OUTSIDE if it leaves the subset or a bound.

    Goes level by level, so that depth costs nothing extra.
    """
    strings = 0
    nodes = 1
    depth = 0
    level = [top]
    while level:
        depth += 1
        below: list[Json] = []
        for value in level:
            kind = type(value)
            if kind is str:
                strings += 1
            elif kind is dict:
                for key in value:
                    if type(key) is not str or not (key.isascii() or max(key) <= "\uffff"):
                        return _OUTSIDE
                strings += len(value)
                below.extend(value.values())
            elif kind is list:
                below.extend(value)
            elif kind is int:
                if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
                    return _OUTSIDE
            elif value is not None and kind is not bool:
                return _OUTSIDE
        nodes += len(below)
        if nodes > MAX_NODES or (below and depth >= MAX_DEPTH):
            return _OUTSIDE
        level = below
    return strings


def _parse_slowly(raw: bytes) -> Json:
    if raw.startswith(b"\xef\xbb\xbf"):
        raise CanonicalError(Reason.MALFORMED_UNICODE, "a byte order mark at the start", 0)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CanonicalError(Reason.MALFORMED_UNICODE, f"not UTF-8 at byte {error.start}", error.start) from error
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        reason = Reason.MALFORMED_UNICODE if "\x00" in text[error.pos : error.pos + 1] else Reason.MALFORMED_CALL
        raise CanonicalError(reason, f"not JSON at byte {offset}: {error.msg}", offset) from error
    except RecursionError as error:
        raise CanonicalError(Reason.TOO_DEEP, f"nested more than {MAX_DEPTH} levels deep") from error
    _check(value)
    return value


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise CanonicalError(Reason.DUPLICATE_KEY, f"the key {key!a:.80} stands twice in one object")
            seen.add(key)
    return value


def _integer(text: str) -> int:
    # Digits are counted first: int() of a long text is slow, and refused by Python itself past 4,300.
    if len(text) > 17 or not -SAFE_INTEGER <= (value := int(text)) <= SAFE_INTEGER:
        raise CanonicalError(Reason.UNSAFE_INTEGER, f"the integer {text:.40} lies beyond 2^53-1")
    return value


def _number(text: str) -> float:
    if len(text) > MAX_DIGITS:
        raise CanonicalError(Reason.TOO_LARGE, f"a number of {len(text)} characters where {MAX_DIGITS} are allowed")
    value = float(text)
    if not math.isfinite(value):
        raise CanonicalError(Reason.NON_FINITE_NUMBER, f"the number {text:.40} overflows")
    return value


def _constant(text: str) -> Json:
    raise CanonicalError(Reason.NON_FINITE_NUMBER, f"{text} is not a JSON number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)


def _check(top: Json) -> None:
    """Hold every rule that the decoder does not: depth, nodes, kinds, ranges, clean strings."""
    nodes = 1
    depth = 0
    level = [top]
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise CanonicalError(Reason.TOO_DEEP, f"nested more than {MAX_DEPTH} levels deep")
        below: list[Json] = []
        for value in level:
            kind = type(value)
            if kind is str:
                _check_string(value)
            elif kind is dict:
                for key in value:
                    if type(key) is not str:
                        raise CanonicalError(Reason.MALFORMED_CALL, f"the key {key!r:.80} is not a string")
                    _check_string(key)
                below.extend(value.values())
            elif kind is list:
                below.extend(value)
            elif kind is int:
                if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
                    raise CanonicalError(Reason.UNSAFE_INTEGER, "an integer lies beyond 2^53-1")
            elif kind is float:
                if not math.isfinite(value):
                    raise CanonicalError(Reason.NON_FINITE_NUMBER, "a number is NaN or infinite")
            elif value is not None and kind is not bool:
                raise CanonicalError(Reason.MALFORMED_CALL, f"{kind.__name__} is no JSON type")
        nodes += len(below)
        if nodes > MAX_NODES:
            raise CanonicalError(Reason.TOO_LARGE, f"more than {MAX_NODES} values")
        level = below


def _check_string(text: str) -> None:
    if "\x00" in text:
        raise CanonicalError(Reason.MALFORMED_UNICODE, "a string has a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CanonicalError(Reason.MALFORMED_UNICODE, "a string has a lone surrogate") from error
