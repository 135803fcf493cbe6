"""What is admitted from raw bytes, with which value; what is refused, with which code."""

from __future__ import annotations

import enum
import tracemalloc

import orjson
import pytest
from marks import promise

from assisted_benchmark.kernel.canonical import MIB, Canonical, canonical_bytes, parse
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import check, parse_strictly


def refusal_of(action, *arguments) -> tuple[Reason, int]:
    with pytest.raises(CanonicalError) as caught:
        action(*arguments)
    return caught.value.reason, caught.value.offset


REFUSED = {
    "nothing at all": (b"", Reason.MALFORMED_CALL),
    "blanks only": (b" \t\r\n", Reason.MALFORMED_CALL),
    "an open object": (b'{"a":1', Reason.MALFORMED_CALL),
    "a comma too many": (b"[1,]", Reason.MALFORMED_CALL),
    "single quotes": (b"{'a':1}", Reason.MALFORMED_CALL),
    "a key that is a number": (b"{1:1}", Reason.MALFORMED_CALL),
    "a comment": (b"[1] // one", Reason.MALFORMED_CALL),
    "a second document": (b"{} {}", Reason.MALFORMED_CALL),
    "one trailing byte": (b"{}]", Reason.MALFORMED_CALL),
    "a leading zero": (b"[01]", Reason.MALFORMED_CALL),
    "a leading plus": (b"[+1]", Reason.MALFORMED_CALL),
    "a bare point": (b"[1.]", Reason.MALFORMED_CALL),
    "a number that starts with its point": (b"[.5]", Reason.MALFORMED_CALL),
    "hexadecimal": (b"[0x10]", Reason.MALFORMED_CALL),
    "a digit of another script": ("[\u0661]".encode(), Reason.MALFORMED_CALL),
    "a no-break space between values": ("[1,\u00a02]".encode(), Reason.MALFORMED_CALL),
    "a vertical tab between values": (b"[1,\x0b2]", Reason.MALFORMED_CALL),
    "a raw line end in a string": (b'["a\nb"]', Reason.MALFORMED_CALL),
    "a raw escape character in a string": (b'["\x1b"]', Reason.MALFORMED_CALL),
    "an unknown escape": (rb'["\x41"]', Reason.MALFORMED_CALL),
    "an escape cut short": (rb'["\u12"]', Reason.MALFORMED_CALL),
    "a word in capitals": (b"[True]", Reason.MALFORMED_CALL),
    "duplicate keys": (b'{"a":1,"a":1}', Reason.DUPLICATE_KEY),
    "duplicate keys, deep": (b'[{"b":[{"a":1,"c":2,"a":3}]}]', Reason.DUPLICATE_KEY),
    "duplicate keys, one spelled with an escape": (rb'{"a":1,"\u0061":1}', Reason.DUPLICATE_KEY),
    "duplicate keys whose dropped value holds strings": (b'{"a":{"x":"y"},"a":{"x":"y"}}', Reason.DUPLICATE_KEY),
    "duplicate empty keys": (b'{"":1,"":2}', Reason.DUPLICATE_KEY),
    "2^53": (b"9007199254740992", Reason.UNSAFE_INTEGER),
    "-2^53": (b"[-9007199254740992]", Reason.UNSAFE_INTEGER),
    "2^53+1": (b"[9007199254740993]", Reason.UNSAFE_INTEGER),
    "2^64": (b"[18446744073709551616]", Reason.UNSAFE_INTEGER),
    "an integer of 400 digits": (b"[%s]" % (b"9" * 400), Reason.UNSAFE_INTEGER),
    "2^53 spelled with a point": (b"[9007199254740992.0]", Reason.UNSAFE_INTEGER),
    "-2^53 spelled with a point": (b"[-9007199254740992.0]", Reason.UNSAFE_INTEGER),
    "10^20 spelled with an exponent": (b"[1e20]", Reason.UNSAFE_INTEGER),
    "NaN": (b"[NaN]", Reason.NON_FINITE_NUMBER),
    "Infinity": (b"[Infinity]", Reason.NON_FINITE_NUMBER),
    "-Infinity": (b"[-Infinity]", Reason.NON_FINITE_NUMBER),
    "an overflowing exponent": (b"[1e309]", Reason.NON_FINITE_NUMBER),
    "a negative overflowing exponent": (b"[-1.5E+400]", Reason.NON_FINITE_NUMBER),
    "a byte order mark": (b"\xef\xbb\xbf{}", Reason.MALFORMED_UNICODE),
    "UTF-16": ("{}".encode("utf-16"), Reason.MALFORMED_UNICODE),
    "UTF-16 without a mark": ("{}".encode("utf-16-be"), Reason.MALFORMED_UNICODE),
    "Latin-1": (b'["\xe9"]', Reason.MALFORMED_UNICODE),
    "an overlong encoding": (b'["\xc0\xaf"]', Reason.MALFORMED_UNICODE),
    "a surrogate encoded as UTF-8": (b'["\xed\xa0\x80"]', Reason.MALFORMED_UNICODE),
    "a code point beyond U+10FFFF": (b'["\xf4\x90\x80\x80"]', Reason.MALFORMED_UNICODE),
    "a lone high surrogate": (rb'["\ud800"]', Reason.MALFORMED_UNICODE),
    "a lone low surrogate": (rb'["a\udc00"]', Reason.MALFORMED_UNICODE),
    "surrogates in the wrong order": (rb'["\udc00\ud800"]', Reason.MALFORMED_UNICODE),
    "a lone surrogate in a key": (rb'{"\udfff":1}', Reason.MALFORMED_UNICODE),
    "an escaped NUL": (rb'["\u0000"]', Reason.MALFORMED_UNICODE),
    "an escaped NUL in a key": (rb'{"a\u0000":1}', Reason.MALFORMED_UNICODE),
    "a raw NUL in a string": (b'["\x00"]', Reason.MALFORMED_UNICODE),
    "a raw NUL between values": (b"[1,\x002]", Reason.MALFORMED_UNICODE),
    "a NUL after the document": (b"{}\x00", Reason.MALFORMED_UNICODE),
    "65 arrays": (b"[" * 65 + b"]" * 65, Reason.TOO_DEEP),
    "65 arrays around a value": (b"[" * 65 + b"1" + b"]" * 65, Reason.TOO_DEEP),
    "65 objects": (b'{"a":' * 64 + b"{}" + b"}" * 64, Reason.TOO_DEEP),
    "half a million arrays": (b"[" * 500_000 + b"]" * 500_000, Reason.TOO_LARGE),
    "more than the bound": (b" " * MIB + b"1", Reason.TOO_LARGE),
    "100,001 values": (b"[" + b"1," * 99_999 + b"1]", Reason.TOO_LARGE),
    "100,001 values in objects": (b'{"a":[' + b"1," * 99_998 + b"1]}", Reason.TOO_LARGE),
    "an integer of 401 digits": (b"[%s]" % (b"1" * 401), Reason.TOO_LARGE),
    "a fraction of 401 digits": (b"[0.%s]" % (b"1" * 400), Reason.TOO_LARGE),
    "an exponent of 401 digits": (b"[1e%s]" % (b"0" * 400), Reason.TOO_LARGE),
}


@promise("K2")
@pytest.mark.parametrize(("raw", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_bytes_are_refused_with_their_code(raw, reason):
    assert refusal_of(parse, raw)[0] is reason
    assert refusal_of(parse_strictly, raw)[0] is reason


ADMITTED = {
    "null": (b"null", None),
    "a safe integer": (b"[9007199254740991,-9007199254740991]", [2**53 - 1, -(2**53) + 1]),
    "an integer and its twin with a point": (b"[1,1.0,1e0]", [1, 1.0, 1.0]),
    "zeros": (b"[0,-0,0.0]", [0, 0, 0.0]),
    "a number that underflows": (b"[1e-400]", [0.0]),
    "a double that has an exponent in any case": (b"[1e21,-1e300]", [1e21, -1e300]),
    "blanks of every legal kind": (b' \t\r\n{ "a" : [ ] } \n', {"a": []}),
    "a surrogate pair": (rb'["\ud83d\ude00"]', ["\U0001f600"]),
    "raw beyond U+FFFF": ('{"\U0001f600":"\U0001f600"}'.encode(), {"\U0001f600": "\U0001f600"}),
    "line separators": ('["\u2028\u2029"]'.encode(), ["\u2028\u2029"]),
    "a delete character": (b'["\x7f"]', ["\x7f"]),
    "quotes in strings": (rb'{"\"":"\"\"","a":"\\"}', {'"': '""', "a": "\\"}),
    "keys that differ in case or composition": ('{"a":1,"A":2,"\u00e9":3,"e\u0301":4}'.encode(), None),
    "the same key in two objects": (b'[{"a":1},{"a":1}]', [{"a": 1}, {"a": 1}]),
    "64 arrays": (b"[" * 64 + b"]" * 64, None),
    "64 arrays around a value": (b"[" * 64 + b"1" + b"]" * 64, None),
    "64 objects around a value": (b'{"a":' * 64 + b"1.5" + b"}" * 64, None),
    "100,000 values": (b"[" + b"1," * 99_998 + b"1]", [1] * 99_999),
    "100,000 values, with a fraction": (b"[" + b"1," * 99_998 + b"1.5]", [1] * 99_998 + [1.5]),
    "a fraction of 400 digits": (b"[-0.%s]" % (b"1" * 399), [float("-0." + "1" * 399)]),
}


@promise("K2")
@pytest.mark.parametrize(("raw", "value"), ADMITTED.values(), ids=ADMITTED.keys())
def test_bytes_are_admitted_with_their_value_and_the_kinds_of_their_numbers(raw, value):
    wanted = orjson.loads(raw) if value is None else value
    assert repr(parse(raw)) == repr(wanted)
    assert repr(parse_strictly(raw)) == repr(wanted)


@promise("K2")
def test_the_callers_bound_counts_bytes():
    assert parse('"é"'.encode(), 4) == "é"
    assert refusal_of(parse, '"é"'.encode(), 3) == (Reason.TOO_LARGE, -1)
    assert refusal_of(parse_strictly, b"{}", 1) == (Reason.TOO_LARGE, -1)


def test_a_refusal_names_the_byte_where_the_bytes_break():
    assert refusal_of(parse, b"\xef\xbb\xbf1") == (Reason.MALFORMED_UNICODE, 0)
    assert refusal_of(parse, b'["\xff"]') == (Reason.MALFORMED_UNICODE, 2)
    assert refusal_of(parse, '["é",}'.encode()) == (Reason.MALFORMED_CALL, 6)


@promise("K6")
@pytest.mark.parametrize("raw", [b"[123456789012345678901]", b"[4.25e999]", b"[9007199254740993.0]"])
def test_a_refusal_does_not_repeat_the_number(raw):
    with pytest.raises(CanonicalError) as caught:
        parse(raw)
    assert raw.decode().strip("[]") not in str(caught.value)


@promise("K1")
def test_values_that_python_calls_equal_have_different_bytes():
    assert {"id": True} == {"id": 1}
    assert canonical_bytes({"id": True}) == b'{"id":true}'
    assert canonical_bytes({"id": 1}) == b'{"id":1}'
    assert Canonical.of({"id": True}) != Canonical.of({"id": 1})


@promise("K1")
def test_the_two_spellings_of_one_number_are_the_same_call_and_still_told_apart():
    plain, pointed, exponent = parse(b'{"n":1}'), parse(b'{"n":1.0}'), parse(b'{"n":1e0}')
    assert {canonical_bytes(each) for each in (plain, pointed, exponent)} == {b'{"n":1}'}
    assert [type(each["n"]) for each in (plain, pointed, exponent)] == [int, float, float]


@promise("K1", "K3")
def test_keys_are_ordered_by_utf_16_code_units():
    bmp, astral = "\ufb33", "\U0001f602"  # as code points bmp < astral; as UTF-16 the pair begins with U+D83D
    assert canonical_bytes({bmp: 1, astral: 2, "a": 3}) == f'{{"a":3,"{astral}":2,"{bmp}":1}}'.encode()


@promise("K1")
def test_strings_are_escaped_as_little_as_rfc_8785_says():
    text = '\x01\b\t\n\f\r\x1f"\\/\x7f\u2028€\U0001f600'
    assert canonical_bytes(text) == b'"\\u0001\\b\\t\\n\\f\\r\\u001f\\"\\\\/\x7f' + '\u2028€\U0001f600"'.encode()


@promise("K1")
@pytest.mark.parametrize("value", ["\\u0000", {"\\u0000": 1.5}])
def test_a_backslash_that_only_looks_like_an_escaped_nul_is_written(value):
    assert parse(canonical_bytes(value)) == value


class Word(str):
    __slots__ = ()


class Numbered(enum.IntEnum):
    ONE = 1


itself: list = []
itself.append(itself)
twice: list = []
twice.extend([twice, twice])
wide = [[0] * 100_000] * 100_000
crowded = [dict.fromkeys(map(str, range(50_000)))] * 50_000

UNWRITABLE = {
    "NaN": (float("nan"), Reason.NON_FINITE_NUMBER),
    "infinity": ([float("-inf")], Reason.NON_FINITE_NUMBER),
    "2^53": (2**53, Reason.UNSAFE_INTEGER),
    "-2^53": ({"a": -(2**53)}, Reason.UNSAFE_INTEGER),
    "2^53 as a float": ([2.0**53], Reason.UNSAFE_INTEGER),
    "almost 10^21 as a float": ([-999999999999999868928.0], Reason.UNSAFE_INTEGER),
    "a NUL": ("a\x00", Reason.MALFORMED_UNICODE),
    "a NUL in a key": ({"\x00": 1}, Reason.MALFORMED_UNICODE),
    "a NUL beside a fraction": (["\x00", 1.5], Reason.MALFORMED_UNICODE),
    "a lone surrogate": ("\ud800", Reason.MALFORMED_UNICODE),
    "a lone surrogate in a key": ({"\udfff": 1, "a": 2}, Reason.MALFORMED_UNICODE),
    "a lone surrogate beside a fraction": (["\udfff", 1.5], Reason.MALFORMED_UNICODE),
    "a key that is no string": ({1: 1}, Reason.MALFORMED_CALL),
    "a key that is nothing": ({None: 1}, Reason.MALFORMED_CALL),
    "a string of another class": (Word("a"), Reason.MALFORMED_CALL),
    "a key of another class": ({Word("a"): 1}, Reason.MALFORMED_CALL),
    "a reason itself": (Reason.FAILED, Reason.MALFORMED_CALL),
    "an enumerated number": ([Numbered.ONE], Reason.MALFORMED_CALL),
    "a tuple": ((1, 2), Reason.MALFORMED_CALL),
    "bytes": (b"a", Reason.MALFORMED_CALL),
    "an ordered dictionary of another class": (type("D", (dict,), {})(a=1), Reason.MALFORMED_CALL),
    "a list that holds itself": (itself, Reason.TOO_DEEP),
    "a list that holds itself twice": (twice, Reason.TOO_LARGE),
    "one list shared a hundred thousand times": (wide, Reason.TOO_LARGE),
    "one object shared many times": (crowded, Reason.TOO_LARGE),
    "65 arrays": ([parse(b"[" * 64 + b"]" * 64)], Reason.TOO_DEEP),
}


@promise("K2")
@pytest.mark.parametrize(("value", "reason"), UNWRITABLE.values(), ids=UNWRITABLE.keys())
def test_a_value_that_no_text_stands_for_has_no_bytes(value, reason):
    assert refusal_of(canonical_bytes, value)[0] is reason
    assert refusal_of(check, value)[0] is reason
    assert refusal_of(Canonical.of, value)[0] is reason


def test_a_canonical_value_is_fresh_each_time():
    sealed = Canonical.of({"a": [1]})
    sealed.value["a"].append(2)
    assert sealed.value == {"a": [1]}
    assert sealed == Canonical(b'{"a":[1]}')
    assert len({sealed, Canonical.of({"a": [1]})}) == 1


@promise("K2")
@pytest.mark.parametrize("read", [parse, parse_strictly], ids=["fast", "strict"])
@pytest.mark.parametrize("piece", [b"[],", b"1,", b'{"a":1},', b"[[[[[]]]]],", b'"x",'], ids=repr)
def test_too_many_values_are_refused_before_they_are_made(read, piece):
    bomb = b"[" + piece * 3_000_000 + b"1]"
    tracemalloc.start()
    with pytest.raises(CanonicalError) as caught:
        read(bomb, 64 * MIB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.reason is Reason.TOO_LARGE
    assert peak < 2 * len(bomb)


@promise("K2")
@pytest.mark.parametrize("read", [parse, parse_strictly], ids=["fast", "strict"])
def test_commas_and_brackets_within_strings_are_no_values(read):
    text = '[{,\\"' * 200_000
    assert read(b'["' + text.encode() + b'"]', 64 * MIB) == [text.replace('\\"', '"')]
