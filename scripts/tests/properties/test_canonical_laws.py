"""Laws of canonical bytes: the fast and the slow path agree, and both agree with independent libraries."""

from __future__ import annotations

import json
import math

import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.kernel.canonical import (
    SAFE_INTEGER,
    Canonical,
    canonical_bytes,
    canonical_texts,
    parse,
    parse_telling,
    plain_bytes,
)
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.strict_json import check, parse_strictly

COUNT = settings(max_examples=250, deadline=None)

# Any text; and often one of runs of what is escaped, as JSON inside JSON is.
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=12) | st.text(
    '\\"/\n\tu0', max_size=6
)
numbers = st.integers(-SAFE_INTEGER, SAFE_INTEGER) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: abs(number) <= SAFE_INTEGER or abs(number) >= 1e21
)
leaves = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5), max_leaves=20
)
# Anything that Python might hand in, most of it no JSON.
wild = st.recursive(
    leaves | st.integers() | st.floats() | st.text(max_size=4) | st.binary(max_size=2) | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)

blanks = st.text(" \t\r\n", max_size=2)


@st.composite
def spellings(draw, value) -> str:
    """One of the many texts of a value: blanks, escapes, key order, sometimes a key twice or a slip."""

    def between(opening: str, parts: list[str], closing: str) -> str:
        return opening + ",".join(draw(blanks) + part + draw(blanks) for part in parts) + closing

    def written(each) -> str:
        if type(each) is dict:
            pairs = draw(st.permutations(list(each.items())))
            if pairs and draw(st.integers(0, 9)) == 0:
                pairs = [*pairs, draw(st.sampled_from(pairs))]
            return between("{", [written(key) + draw(blanks) + ":" + written(inner) for key, inner in pairs], "}")
        if type(each) is list:
            return between("[", [written(inner) for inner in each], "]")
        if type(each) is str:
            spelled = json.dumps(each, ensure_ascii=draw(st.booleans()))
            return spelled.replace("/", "\\/") if draw(st.booleans()) else spelled
        return json.dumps(each, ensure_ascii=False)

    text = written(value)
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at] + draw(st.sampled_from(["\x00", '"', "\\", ",", "1e400", "\\u0000", "}", "\ufeff"])) + text[at:]
        )
    return text


def outcome(parser, raw: bytes):
    """The value with the kinds of its numbers, or the refusal."""
    try:
        return repr(parser(raw))
    except CanonicalError as refusal:
        return refusal.reason, refusal.offset


def by_the_standard_library(raw: bytes):
    """Admission with the least code: the standard decoder, and no key twice."""

    def once(pairs):
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    value = json.loads(raw.decode(), object_pairs_hook=once)
    check(value)
    return repr(value)


@promise("K2", "K3")
@COUNT
@given(values.flatmap(spellings))
@example('{"a":"","a":"b"}')
@example('{"a":{"b":"c"},"a":[]}')
@example('["\u2028",{"\U00010000":1,"\uffff":2}]')
@example("[18446744073709551615,1e16,-0]")
@example(r'{"\\":"\"","\"":"\\\\"}')
@example(r'{"a\"":"\\","a\"":"\\\""}')
@example(r'{"a":"\\","a":"\\","b":["\\","\\"]}')
@example(r'{"a":"\"","a":""}')
@example(r'["\/\b\f\n\r\t","\u0000"]')
def test_the_fast_parse_admits_what_the_strict_one_admits_with_the_same_value(text):
    raw = text.encode()
    assert outcome(parse, raw) == outcome(parse_strictly, raw)


def parts_of(value):
    """The value and everything in it."""
    yield value
    for part in value.values() if type(value) is dict else value if type(value) is list else ():
        yield from parts_of(part)


@promise("K1", "K3")
@COUNT
@given(values.flatmap(spellings))
@example('{"𐀀":1,"￿":2}')
@example('{"a":[1.0,{"b":1e400}]}')
@example(r'{"b":"\b\f\r\"\\","a":["é",{}]}')
def test_what_the_parser_calls_plain_is_written_at_once_as_the_standard_has_it_and_so_is_each_part_of_it(text):
    try:
        value, plain = parse_telling(text.encode())
    except CanonicalError:
        return
    for part in parts_of(value) if plain else ():
        assert plain_bytes(part) == rfc8785.dumps(part)


@promise("K2")
@COUNT
@given(values.flatmap(spellings))
def test_what_is_admitted_is_what_the_standard_library_reads(text):
    raw = text.encode()
    try:
        wanted = by_the_standard_library(raw)
    except (AssertionError, ValueError, CanonicalError):
        wanted = None
    came = outcome(parse, raw)
    assert (came if isinstance(came, str) else None) == wanted


@promise("K2")
@COUNT
@given(st.binary(max_size=40) | st.text('{}[]:,"\\ue0-.1aNInfity \ufeff\x00', max_size=30).map(str.encode))
def test_no_bytes_break_the_parser_and_both_paths_agree(raw):
    assert outcome(parse, raw) == outcome(parse_strictly, raw)


@promise("K1", "K3")
@COUNT
@given(values)
def test_the_bytes_are_those_of_an_independent_rfc_8785_writer(value):
    assert canonical_bytes(value) == rfc8785.dumps(value)


@promise("K2")
@COUNT
@given(wild)
@example([math.nan])
@example({"a": 2**53})
@example({None: 1})
def test_any_value_has_bytes_that_read_back_or_is_refused(value):
    try:
        written = canonical_bytes(value)
    except CanonicalError:
        return
    assert written == rfc8785.dumps(value)
    assert canonical_bytes(parse(written)) == written


@promise("K1")
@COUNT
@given(values)
def test_a_sealed_value_reads_back_to_the_same_seal(value):
    sealed = Canonical.of(value)
    assert Canonical.of(sealed.value) == sealed
    assert parse(sealed.data) == sealed.value


def same(one, other) -> bool:
    """Equal as JSON, said in Python: kinds count, but there is only one kind of number."""
    if type(one) is dict and type(other) is dict:
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if type(one) is list and type(other) is list:
        return len(one) == len(other) and all(map(same, one, other))
    kinds = {float if type(each) is int else type(each) for each in (one, other)}
    return len(kinds) == 1 and one == other


small = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, -0.0, 0.5, "", "1", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["", "a", "b"]), inner, max_size=2),
    max_leaves=3,
)


@promise("K1")
@COUNT
@given(small, small)
@example({"id": True}, {"id": 1})
@example([0], [False])
@example([-0.0], [0])
@example([1], ["1"])
def test_two_values_have_the_same_bytes_just_when_they_are_the_same_call(one, other):
    assert (canonical_bytes(one) == canonical_bytes(other)) is same(one, other)


@promise("K1")
@COUNT
@given(values.flatmap(lambda value: st.tuples(st.just(value), spellings(value))))
def test_every_spelling_of_a_value_has_the_values_bytes(pair):
    value, text = pair
    try:
        read = parse(text.encode())
    except CanonicalError:
        return
    if json.loads(text) == value:
        assert canonical_bytes(read) == canonical_bytes(value)


@promise("K1")
@COUNT
@given(st.dictionaries(texts, st.none(), max_size=8))
def test_keys_come_in_the_order_of_their_utf_16_code_units(value):
    keys = list(json.loads(canonical_bytes(value)))
    assert keys == sorted(value, key=lambda key: key.encode("utf-16-be"))


_ANY_TEXT = st.text(st.characters())  # with NUL and lone surrogates


@promise("K3")
@given(
    st.recursive(
        _ANY_TEXT, lambda each: st.lists(each, max_size=4) | st.dictionaries(_ANY_TEXT, each, max_size=4), max_leaves=8
    )
)
@example({"\U00010000": "a", "\uffff": "b"})
@example(["\x00"])
@example({"\ud800": ""})
def test_texts_are_written_without_a_walk_as_they_are_with_one(value):
    assert outcome(canonical_texts, value) == outcome(canonical_bytes, value)
