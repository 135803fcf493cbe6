"""Strict YAML: what it admits, and where exactly it says no."""

import re

import pytest
from marks import promise

from assisted_benchmark.contract.strict_yaml import _FORBIDDEN, MAX_PROBLEMS, load
from assisted_benchmark.kernel.canonical import MIB
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason


def value_of(text: str):
    return load(text.encode(), "a.yaml").value


def faults_of(data: str | bytes) -> list[tuple[str, int, int]]:
    """Code, line and column of every fault."""
    with pytest.raises(DocumentError) as caught:
        load(data if isinstance(data, bytes) else data.encode(), "a.yaml")
    assert all(problem.file == "a.yaml" and problem.detail for problem in caught.value.problems)
    return [(problem.reason.value, problem.line, problem.column) for problem in caught.value.problems]


ONE_FAULT = [
    pytest.param("a: 1\nb: 2\na: 3\n", "duplicate_key", 3, 1, id="a key twice"),
    pytest.param('a: 1\n"a": 3\n', "duplicate_key", 2, 1, id="a key twice in two styles"),
    pytest.param("a: {b: 1, c: [{d: 1, d: 2}]}\n", "duplicate_key", 1, 22, id="a key twice deep inside"),
    pytest.param("a: &x 1\n", "merge_forbidden", 1, 4, id="an anchor"),
    pytest.param("&x a: 1\n", "merge_forbidden", 1, 1, id="an anchor on a key"),
    pytest.param("a: *x\n", "merge_forbidden", 1, 4, id="an alias"),
    pytest.param("*x : 1\n", "merge_forbidden", 1, 1, id="an alias as key"),
    pytest.param("a:\n  <<: {b: 1}\n", "merge_forbidden", 2, 3, id="a merge"),
    pytest.param("a: !!str 12\n", "unsupported_yaml", 1, 4, id="a standard tag"),
    pytest.param("a: !!python/object:os.system {}\n", "unsupported_yaml", 1, 4, id="a Python tag"),
    pytest.param("!mine a: 1\n", "unsupported_yaml", 1, 1, id="a tag on a key"),
    pytest.param("a: ! b\n", "unsupported_yaml", 1, 4, id="the tag without a name"),
    pytest.param("%YAML 1.1\n---\na: 1\n", "unsupported_yaml", 1, 1, id="a version directive"),
    pytest.param("%TAG ! tag:x,2000:\n---\na: 1\n", "unsupported_yaml", 1, 1, id="a tag directive"),
    pytest.param("a: 1\n---\nb: 2\n", "unsupported_yaml", 2, 1, id="a second document"),
    pytest.param("\ufeffa: 1\n", "unsupported_yaml", 1, 1, id="a byte order mark"),
    pytest.param('a: "x\ufeffy"\n', "unsupported_yaml", 1, 6, id="a byte order mark inside"),
    pytest.param("a: b\u0085c\n", "unsupported_yaml", 1, 5, id="NEL"),
    pytest.param("# é\r\na: b\u2028c\n", "unsupported_yaml", 2, 5, id="a line separator after CR LF"),
    pytest.param(b"a: 1\nb: \xff\n", "malformed_unicode", 2, 4, id="a byte that is not UTF-8"),
    pytest.param("a: 1\n".encode("utf-16"), "malformed_unicode", 1, 1, id="UTF-16"),
    pytest.param("a: \x00\n", "malformed_unicode", 1, 4, id="NUL"),
    pytest.param("a: é\x1b[31m\n", "malformed_unicode", 1, 5, id="a control character"),
    pytest.param("a: \x7f\n", "malformed_unicode", 1, 4, id="DEL"),
    pytest.param('b: 1\na: "x\\0y"\n', "malformed_unicode", 2, 4, id="an escaped NUL"),
    pytest.param('a: "\\u0000"\n', "malformed_unicode", 1, 4, id="a NUL escaped as JSON does"),
    pytest.param('"\\0": 1\n', "malformed_unicode", 1, 1, id="an escaped NUL in a key"),
    pytest.param('a: "\\ud800"\n', "malformed_yaml", 1, 7, id="an escaped lone surrogate"),
    pytest.param("1: a\n", "non_string_key", 1, 1, id="an integer as key"),
    pytest.param("true: a\n", "non_string_key", 1, 1, id="a flag as key"),
    pytest.param("null: a\n", "non_string_key", 1, 1, id="null as key"),
    pytest.param("b: 1\n? [a]\n: c\n", "non_string_key", 2, 3, id="a list as key"),
    pytest.param("{a: b}: c\n", "non_string_key", 1, 1, id="a mapping as key"),
    pytest.param("on: a\n", "implicit_type", 1, 1, id="a truth word as key"),
    pytest.param("a:\n  b:\n", "implicit_type", 2, 5, id="an empty value"),
    pytest.param("a: [b, , c]\n", "malformed_yaml", 1, 8, id="an empty item"),
    pytest.param("{a: 1, b}\n", "implicit_type", 1, 9, id="a key without value"),
    pytest.param("a: 9007199254740992\n", "unsafe_integer", 1, 4, id="an integer beyond 2^53-1"),
    pytest.param(f"a: {'9' * 5000}\n", "unsafe_integer", 1, 4, id="an integer of 5000 digits"),
    pytest.param("a: [1\n", "malformed_yaml", 2, 1, id="an open list"),
    pytest.param("a: b: c\n", "malformed_yaml", 1, 5, id="two colons"),
    pytest.param("a:\n\t- b\n", "malformed_yaml", 2, 1, id="a tab as indentation"),
    pytest.param("a: @b\n", "malformed_yaml", 1, 4, id="a reserved character"),
    pytest.param("", "malformed_yaml", 1, 1, id="nothing"),
    pytest.param("# only words\n", "malformed_yaml", 2, 1, id="only a comment"),
    pytest.param("a: " + "[" * 64 + "]" * 64 + "\n", "too_deep", 1, 67, id="65 levels"),
    pytest.param("[\n" * 100_000, "too_deep", 65, 1, id="100,000 levels, never closed"),
    pytest.param("- " * 100_000, "too_deep", 1, 129, id="100,000 block levels"),
]


@promise("H3")
@pytest.mark.parametrize(("text", "reason", "line", "column"), ONE_FAULT)
def test_a_fault_is_refused_with_its_code_and_place(text, reason, line, column):
    assert faults_of(text) == [(reason, line, column)]


DOUBTFUL = re.split(
    r"\s+",
    """
    no No NO yes Yes YES on On ON off Off OFF y Y n N ~ True TRUE False FALSE Null NULL
    012 0644 0123456789 -012 +1 -0 +0 1_000 1,000 0o7 0O7 0x1F 0b101 0x_ 0xDEADBEEF
    12:30 1:30:00 -1:30 12:30.5 1.10 1.0 -0.0 1. .5 +.5 1e3 1E3 1e+3 1.5e3 1e 1.2.3 10.0.0.1 . .. 0.10 1.50
    .inf -.inf +.INF .nan .NaN 2001-12-14 2001-1-1 2001-12-14t21:59:43Z
    0.1234567890123456789 123456789012345678.5 0.00000001
    = 123456789_ 4_2
""".strip(),
)


@promise("H3")
@pytest.mark.parametrize("word", [*DOUBTFUL, "2001-12-14 21:59:43", "2001-12-14\t21:59"])
def test_a_plain_value_that_some_version_reads_as_something_else_must_be_quoted(word):
    assert faults_of(f"a: {word}\n") == [("implicit_type", 1, 4)]
    assert faults_of(f"- {word}\n") == [("implicit_type", 1, 3)]
    assert value_of(f'a: "{word}"\n') == {"a": word}


WORDS = re.split(
    r"\s+",
    """
    120s 5m 250ms approve t-1 lba ui/second-choice sha256:0012 a:b https://x/y 3rd no-one yesterday nulls truer
    1.2.3-rc1 v1.10 e3 1e3x 2001-12 12:3a 1-2 -a -- a.b _1 x=1 -m 0g 7z inf nan é
""".strip(),
)


@promise("H3")
@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_every_version_reads_as_text_stays_plain(word):
    assert value_of(f"a: {word}\n") == {"a": word}


@promise("H3")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-1", -1),
        ("9007199254740991", 2**53 - 1),
        ("-9007199254740991", 1 - 2**53),
        ("1.5", 1.5),
        ("-0.25", -0.25),
        ("true", True),
        ("false", False),
        ("null", None),
    ],
)
def test_json_spellings_mean_what_they_mean_in_json(text, value):
    read = value_of(f"a: {text}\nb: [{text}]\n")
    assert read == {"a": value, "b": [value]}
    assert type(read["a"]) is type(value)


def test_all_styles_of_text_are_admitted_with_one_explicit_document():
    text = (
        "---\na: 'no'\nb: \"12\\u00e9\\n\"\nc: |\n  two\n  lines\nd: >-\n  one\n  line\ne: plain\n  and folded\n...\n"
    )
    assert value_of(text) == {"a": "no", "b": "12é\n", "c": "two\nlines\n", "d": "one line", "e": "plain and folded"}
    assert value_of("é: [ñ, 'a\U0001f600']") == {"é": ["ñ", "a\U0001f600"]}
    assert value_of('"a\\\\0": "\\\\x00"') == {"a\\0": "\\x00"}  # an escaped backslash is no escape


def test_a_document_may_be_any_json_value():
    assert value_of("[]") == []
    assert value_of("word") == "word"
    assert value_of("a: " + "[" * 63 + "1" + "]" * 63)["a"][0][0] != []


@promise("H3")
def test_several_errors_of_one_file_are_all_shown_in_file_order():
    text = "a: no\nb: &x 1\nc: *x\na: 2\nd: !!int 3\n1: x\ne: 012\nf:\n  g: 1e3\n  g: 2\n"
    assert faults_of(text) == [
        ("implicit_type", 1, 4),
        ("merge_forbidden", 2, 4),
        ("merge_forbidden", 3, 4),
        ("duplicate_key", 4, 1),
        ("unsupported_yaml", 5, 4),
        ("non_string_key", 6, 1),
        ("implicit_type", 7, 4),
        ("implicit_type", 9, 6),
        ("duplicate_key", 10, 3),
    ]


def test_errors_before_a_syntax_error_are_shown_with_it():
    assert faults_of("a: no\nb: [\n") == [("implicit_type", 1, 4), ("malformed_yaml", 3, 1)]


@promise("H3")
def test_the_message_says_what_then_where_then_what_to_do():
    with pytest.raises(DocumentError) as caught:
        load(b"ok: 1\nversion: 1.10\n", "contracts/x.yaml")
    assert str(caught.value) == (
        "`1.10` is not the JSON spelling of a number (implicit_type) at contracts/x.yaml:2:10; "
        'write "1.10" if you mean the text, else 1.1'
    )
    assert caught.value.reason is Reason.IMPLICIT_TYPE


@promise("H3")
def test_hidden_characters_are_visible_in_messages():
    with pytest.raises(DocumentError) as caught:
        load("a: 1\n\u202eb: 1\n\u202eb: 2\n".encode(), "a.yaml")
    assert "\u202e" not in str(caught.value)
    assert "\\u202e" in caught.value.problems[0].detail


@promise("H3")
def test_an_alias_bomb_costs_nothing():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    found = faults_of("\n".join(lines))
    assert {reason for reason, _, _ in found} == {"merge_forbidden"}
    assert MAX_PROBLEMS <= len(found) <= MAX_PROBLEMS + 2  # bounded too


@promise("H3")
def test_deep_nesting_on_one_line_is_refused_at_once():
    # The parser looks ahead on one line, and newer ones stop there by themselves.
    for text in ("[" * MIB, "{a: " * (MIB // 4), "- " * (MIB // 2), "? " * (MIB // 2)):
        assert {reason for reason, _, _ in faults_of(text)} <= {"too_deep", "malformed_yaml", "non_string_key"}


@promise("H3")
def test_a_file_beyond_its_bound_is_not_read_at_all():
    with pytest.raises(DocumentError) as caught:
        load(b"a: &x [*x]\n" * MIB, "a.yaml")
    assert caught.value.reason is Reason.TOO_LARGE
    assert load(b"a: 1\n", "a.yaml", max_bytes=5).value == {"a": 1}
    with pytest.raises(DocumentError):
        load(b"a: 1\n", "a.yaml", max_bytes=4)


@promise("H3")
def test_more_values_than_canonical_bytes_may_hold_are_too_large():
    assert len(value_of("[" + "1," * 99_999 + "]")) == 99_999
    assert faults_of("[" + "1," * 100_000 + "]") == [("too_large", 0, 0)]
    assert faults_of("{" + ",".join(f"a{n}: 1" for n in range(100_000)) + "}") == [("too_large", 0, 0)]


def test_many_forbidden_characters_are_bounded():
    assert faults_of("\n" * 500_000 + "\x01" * 500) == [("malformed_unicode", 500_001, n + 1) for n in range(100)]


def test_every_character_that_passes_the_first_look_is_readable_by_the_parser():
    for first in range(0x20, 0x110000, 0x800):
        block = "".join(map(chr, range(first, min(first + 0x800, 0x110000))))
        chars = _FORBIDDEN.sub("", block).replace("'", "").strip()
        assert value_of(f"a: 'x{chars}x'") == {"a": f"x{chars}x"}


@promise("H3")
def test_places_are_those_of_values_and_keys():
    document = load(b"a: 1\nlist:\n  - x\n  - {b: no-one, c: [2, 3]}\n", "a.yaml")
    assert document.where(()) == (1, 1)
    assert document.where(("a",)) == (1, 4)
    assert document.key_where(("a",)) == (1, 1)
    assert document.where(("list", 1)) == (4, 5)
    assert document.where(("list", 1, "b")) == (4, 9)
    assert document.key_where(("list", 1, "c")) == (4, 17)
    assert document.where(("list", 1, "c", 1)) == (4, 24)
    # what is not there stands where its nearest part does
    assert document.where(("list", 1, "nothing", 3)) == (4, 5)
    assert document.key_where(("list", 9)) == (3, 3)


@promise("H3")
def test_what_stands_in_a_repeated_key_is_no_repetition_itself():
    assert faults_of("a: {b: 1, c: no}\na: {b: 1, c: no}\na: {b: 2, b: 3}\n") == [
        ("implicit_type", 1, 14),
        ("duplicate_key", 2, 1),
        ("implicit_type", 2, 14),
        ("duplicate_key", 3, 1),
        ("duplicate_key", 3, 11),
    ]


def test_a_problem_of_a_later_stage_has_the_place_of_its_value_or_key():
    document = load(b"a: 1\nbb: 2\n", "a.yaml")
    at_value = document.problem(Reason.WRONG_VALUE, ("bb",), "bad", "better")
    at_key = document.problem(Reason.UNKNOWN_KEY, ("bb",), "bad", at_key=True)
    assert str(at_value) == "bad (wrong_value) at a.yaml:2:5; better"
    assert str(at_key) == "bad (unknown_key) at a.yaml:2:1"
