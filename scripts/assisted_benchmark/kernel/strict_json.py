"""Strict I-JSON from raw bytes, with the standard library alone: right everywhere, and it explains.

`canonical.py` puts a fast path in front of it. A server process that must start at once
uses it as it is, because it imports nothing that is slow to import.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, TypeAlias

from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import Reason

Json: TypeAlias = Any  # None | bool | int | float | str | list[Json] | dict[str, Json]

MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000
MAX_DIGITS: Final = 400
SAFE_INTEGER: Final = 2**53 - 1
MIB: Final = 1 << 20


def parse_strictly(raw: bytes, max_bytes: int = MIB) -> Json:
    """Admit one JSON document from raw bytes, or refuse it; as `canonical.parse`, only slower.

    Raises:
        CanonicalError: too_large, malformed_unicode, malformed_call, duplicate_key,
            unsafe_integer, non_finite_number or too_deep.
    """
    if len(raw) > max_bytes:
        raise CanonicalError(Reason.TOO_LARGE, f"{len(raw)} bytes where {max_bytes} are allowed")
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


def check(top: Json) -> None:
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
