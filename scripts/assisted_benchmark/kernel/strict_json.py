"""Strict I-JSON from raw bytes, with the standard library alone: right everywhere, and it explains.

`canonical.py` puts a fast path in front of it. A server process that must start at once
uses it as it is, because it imports nothing that is slow to import.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final, TypeAlias

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import CanonicalError

Json: TypeAlias = Any  # None | bool | int | float | str | list[Json] | dict[str, Json]

MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000
MAX_DIGITS: Final = 400
SAFE_INTEGER: Final = 2**53 - 1
MIB: Final = 1 << 20

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

# From here on RFC 8785 spells a double with an exponent; from 2^53 up to here, as an integer that none may read.
_EXPONENT_FROM: Final = 1e21
_INFINITE: Final = float("inf")


def parse_strictly(raw: bytes, max_bytes: int = MIB) -> Json:
    """Admit one JSON document from raw bytes, or refuse it; as `canonical.parse`, only slower.

    Raises:
        CanonicalError: too_large, malformed_unicode, malformed_call, duplicate_key,
            unsafe_integer, non_finite_number or too_deep.
    """
    if len(raw) > max_bytes:
        raise CanonicalError(Reason.TOO_LARGE, f"{len(raw)} bytes where {max_bytes} are allowed")
    if is_crowded(raw):
        raise CanonicalError(Reason.TOO_LARGE, f"more than {MAX_NODES} values")
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
    check(value)
    return value


def is_crowded(raw: bytes) -> bool:
    """Whether a text has more values than are allowed, told before they are made.

    Outside of strings every comma stands before one more value, and every opening bracket is one. Of the
    strings at least every other one is a value.
    """
    if strings_in(raw) >= 2 * MAX_NODES:
        return True
    if max(raw.count(b","), raw.count(b"[") + raw.count(b"{")) < MAX_NODES:
        return False
    bare = _STRING.sub(b"", raw)
    return max(bare.count(b","), bare.count(b"[") + bare.count(b"{")) >= MAX_NODES


def strings_in(raw: bytes) -> int:
    """How many strings a JSON text holds, keys included."""
    escaped = raw.replace(b"\\\\", b"").count(b'\\"') if b"\\" in raw else 0
    return (raw.count(b'"') - escaped) // 2


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise CanonicalError(Reason.DUPLICATE_KEY, f"the key {twice!a:.80} stands twice in one object")
    return value


def _integer(text: str) -> int:
    # Digits are counted first: int() of a long text is slow, and refused by Python itself past 4,300.
    _count_digits(text)
    if len(text) > 17:
        raise _unsafe()
    value = int(text)
    _check_integer(value)
    return value


def _number(text: str) -> float:
    _count_digits(text)
    value = float(text)
    _check_float(value)
    return value


def _count_digits(text: str) -> None:
    if len(text) > MAX_DIGITS and sum(map(str.isdigit, text)) > MAX_DIGITS:
        raise CanonicalError(Reason.TOO_LARGE, f"a number has more than {MAX_DIGITS} digits")


def _constant(text: str) -> Json:
    raise CanonicalError(Reason.NON_FINITE_NUMBER, f"{text} is not a JSON number")


def _check_integer(value: int) -> None:
    if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
        raise _unsafe()


def _check_float(value: float) -> None:
    if not abs(value) < _INFINITE:  # NaN is not, either
        raise CanonicalError(Reason.NON_FINITE_NUMBER, "a number is NaN, infinite or overflows")
    if SAFE_INTEGER < abs(value) < _EXPONENT_FROM:
        raise _unsafe()


def _unsafe() -> CanonicalError:
    return CanonicalError(Reason.UNSAFE_INTEGER, "an integer lies beyond 2^53-1")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)


def check(top: Json, *, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES) -> None:
    """Hold every rule that the decoder does not: depth, nodes, kinds, ranges, clean strings.

    Lower bounds are for a value that is to be passed on within another.

    Raises:
        CanonicalError: of a value that `parse_strictly` gives, or would refuse.
    """
    nodes = 1
    depth = 0  # how many arrays and objects are around the values of this level
    level = [top]
    while level:
        below: list[Json] = []
        for value in level:
            kind = type(value)
            if kind is dict or kind is list:
                if depth == max_depth:
                    raise CanonicalError(Reason.TOO_DEEP, f"nested more than {max_depth} levels deep")
                nodes += len(value)
                if nodes > max_nodes:
                    raise CanonicalError(Reason.TOO_LARGE, f"more than {max_nodes} values")
                if kind is dict:
                    _check_keys(value)
                    value = value.values()
                below.extend(value)
            elif kind is str:
                _check_string(value)
            elif kind is int:
                _check_integer(value)
            elif kind is float:
                _check_float(value)
            elif value is not None and kind is not bool:
                raise CanonicalError(Reason.MALFORMED_CALL, f"{kind.__name__} is no JSON type")
        depth += 1
        level = below


def _check_keys(value: dict[Json, Json]) -> None:
    for key in value:
        if type(key) is not str:
            raise CanonicalError(Reason.MALFORMED_CALL, f"the key {key!r:.80} is not a string")
        _check_string(key)


def _check_string(text: str) -> None:
    if "\x00" in text:
        raise CanonicalError(Reason.MALFORMED_UNICODE, "a string has a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CanonicalError(Reason.MALFORMED_UNICODE, "a string has a lone surrogate") from error
