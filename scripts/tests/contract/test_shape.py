"""Shapes: one description, from which the check and the published schema both come."""

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.contract.shape import (
    DIGEST,
    DURATION,
    NAME,
    AnyJson,
    ByKey,
    ByKind,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Number,
    Record,
    Text,
    Word,
    check,
    duration_ns,
    json_schema,
    may,
    must,
)
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import DocumentError

CALL = Record({"call": must(NAME, "the tool"), "note": may(Text(limit=5), "a remark")}, "a call")
CHOICE = Record({"choose": must(NAME, "the group"), "candidates": must(MapOf(AnyJson(), least=2), "two")}, "a choice")
PLAN = Record(
    {
        "schema": must(Word(("plan@1",)), "the kind"),
        "size": may(Integer(1, 10), "how many"),
        "any": may(Integer(), "an integer"),
        "rate": may(Number(0, 1), "how often"),
        "live": may(Flag(), "whether"),
        "mode": may(Word(("fast", "slow")), "how"),
        "within": may(DURATION, "how long"),
        "digest": may(DIGEST, "of what"),
        "steps": may(ListOf(ByKey({"call": CALL, "choose": CHOICE}), most=3), "in order"),
        "agent": may(ByKind((NAME, Record({"plan": must(NAME, "which")}), ListOf(NAME))), "who"),
        "open": may(Record({"name": must(Text(), "a name")}, "an open thing", open=True), "kept as it is"),
        "env": may(MapOf(Text(), Text(r"[A-Z]+", "capitals")), "free keys"),
    },
    "a plan",
)


def faults_of(text: str) -> list[tuple[str, int, int]]:
    with pytest.raises(DocumentError) as caught:
        check(PLAN, load(text.encode(), "p.yaml"))
    return [(each.reason.value, each.line, each.column) for each in caught.value.problems]


FITTING = """\
schema: plan@1
size: 3
any: -7
rate: 0.5
live: true
mode: slow
within: 120s
digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
steps:
  - {call: read, note: "12345"}
  - choose: decision
    candidates: {a: 1, b: [null]}
agent: {plan: approve}
open: {name: x, other: [1, {z: 2}]}
env: {PATH: /bin}
"""

UNFITTING = [
    pytest.param("size: 0", "wrong_value", 2, 7, id="below"),
    pytest.param("size: 11", "wrong_value", 2, 7, id="above"),
    pytest.param("size: true", "wrong_value", 2, 7, id="a flag is no integer"),
    pytest.param("size: 1.5", "wrong_value", 2, 7, id="a float is no integer"),
    pytest.param('any: "1"', "wrong_value", 2, 6, id="text is no integer"),
    pytest.param("rate: 2", "wrong_value", 2, 7, id="a number above"),
    pytest.param("rate: true", "wrong_value", 2, 7, id="a flag is no number"),
    pytest.param("live: 1", "wrong_value", 2, 7, id="an integer is no flag"),
    pytest.param("mode: fest", "wrong_value", 2, 7, id="another word"),
    pytest.param("mode: [fast]", "wrong_value", 2, 7, id="a list is no word"),
    pytest.param("within: 120", "wrong_value", 2, 9, id="a duration without unit"),
    pytest.param("within: 0s", "wrong_value", 2, 9, id="no time at all"),
    pytest.param('within: "12٣s"', "wrong_value", 2, 9, id="digits of another script"),
    pytest.param("digest: sha256:00", "malformed_digest", 2, 9, id="a short digest"),
    pytest.param("steps: {}", "wrong_value", 2, 8, id="a mapping is no list"),
    pytest.param("steps: [{call: a}, {call: b}, {call: c}, {call: d}]", "wrong_value", 2, 8, id="too many"),
    pytest.param("steps: [{call: a, choose: b}]", "wrong_value", 2, 9, id="two that exclude each other"),
    pytest.param("steps: [{cal: a}]", "missing_key", 2, 9, id="neither"),
    pytest.param("steps: [word]", "wrong_value", 2, 9, id="a word is no record"),
    pytest.param("steps: [{choose: a}]", "missing_key", 2, 9, id="a required key of a record"),
    pytest.param("steps: [{choose: a, candidates: {b: 1}}]", "wrong_value", 2, 33, id="too few"),
    pytest.param('steps: [{call: a, note: "123456"}]', "wrong_value", 2, 25, id="too long"),
    pytest.param("agent: {plna: a}", "unknown_key", 2, 9, id="a typo"),
    pytest.param("agent: 3", "wrong_value", 2, 8, id="none of the kinds"),
    pytest.param("agent: null", "wrong_value", 2, 8, id="null"),
    pytest.param("open: {other: 1}", "missing_key", 2, 7, id="an open record still requires"),
    pytest.param("env: {path: /bin}", "wrong_value", 2, 7, id="a key that does not match"),
    pytest.param("env: {PATH: 1}", "wrong_value", 2, 13, id="a value in a map"),
    pytest.param("env: []", "wrong_value", 2, 6, id="a list is no map"),
    pytest.param("nonsense: 1", "unknown_key", 2, 1, id="unknown at the top"),
]


@promise("H3")
def test_a_document_that_fits_passes():
    check(PLAN, load(FITTING.encode(), "p.yaml"))
    for agent in ("nop", "[a, b]"):
        check(PLAN, load(f"schema: plan@1\nagent: {agent}\n".encode(), "p.yaml"))


@promise("H3")
@pytest.mark.parametrize(("line", "reason", "row", "column"), UNFITTING)
def test_a_fault_of_shape_has_its_code_and_place(line, reason, row, column):
    found = faults_of(f"schema: plan@1\n{line}\n")
    if "plna" in line:  # the right key is missing as well
        assert found == [("missing_key", 2, 8), (reason, row, column)]
    else:
        assert found == [(reason, row, column)]


@pytest.mark.parametrize(
    ("line", "detail", "hint"),
    [
        ('live: "true"', "expected true or false, got the text `true`", ""),
        ('size: "3"', "expected an integer from 1 to 10, got the text `3`", ""),
        ("live: no-flag", "expected true or false, got `no-flag`", ""),
        (
            "agent: of course",
            "expected a name of ASCII letters, digits and `_ - . /`, got `of course`",
            "it must match [A-Za-z0-9][A-Za-z0-9_./-]{0,127}",
        ),
        ("maybe: wrong", "expected `unknown`, got `wrong`", "it may also be true or false"),
        ('maybe: "true"', "expected `unknown`, got the text `true`", "it may also be true or false"),
        ("maybe: [1]", "expected true or false or text, got a list", ""),
    ],
)
def test_a_message_tells_text_from_what_it_looks_like_and_says_what_else_may_stand_there(line, detail, hint):
    shape = Record({**PLAN.fields, "maybe": may(ByKind((Flag(), Word(("unknown",)))), "whether")}, "a plan")
    with pytest.raises(DocumentError) as caught:
        check(shape, load(f"schema: plan@1\n{line}\n".encode(), "p.yaml"))
    assert [(each.detail, each.hint) for each in caught.value.problems] == [(detail, hint)]


@promise("H3")
def test_all_faults_of_shape_are_shown_in_file_order():
    assert faults_of("mode: fest\nsize: 0\nsteps:\n  - call: [a]\n    not: b\nagnt: x\n") == [
        ("missing_key", 1, 1),
        ("wrong_value", 1, 7),
        ("wrong_value", 2, 7),
        ("wrong_value", 4, 11),
        ("unknown_key", 5, 5),
        ("unknown_key", 6, 1),
    ]


@promise("H3")
def test_a_message_says_what_was_expected_and_guesses_what_was_meant():
    with pytest.raises(DocumentError) as caught:
        check(PLAN, load(b"schema: plan@1\nmode: fest\nagnt: x\nlive: null\nsteps: [{cal: a}]\nany: []\nzz: 1\n", "p"))
    assert [str(each) for each in caught.value.problems] == [
        "expected `fast` or `slow`, got `fest` (wrong_value) at p:2:7; did you mean `fast`?",
        "the key `agnt` is not known in a plan (unknown_key) at p:3:1; did you mean `agent`?",
        "expected true or false, got null (wrong_value) at p:4:7",
        "expected a mapping with `call` or `choose` (missing_key) at p:5:9; did you mean `call`?",
        "expected an integer, got a list (wrong_value) at p:6:6",
        "the key `zz` is not known in a plan (unknown_key) at p:7:1; known keys: " + ", ".join(PLAN.fields),
    ]


@pytest.mark.parametrize(
    ("shape", "value", "hint"),
    [
        (DURATION, 60, "write 60s"),
        (DURATION, "60", "write 60s"),
        (DURATION, 1.5, ""),
        (DURATION, "soon", "it must match ([1-9][0-9]{0,8})(ms|s|m|h)"),
        (DIGEST, "ab" * 32, "write `sha256:` before it"),
        (DIGEST, "ab" * 31, "it must match sha256:[0-9a-f]{64}"),
        (NAME, 12, 'quote it: "12"'),
        (NAME, -1, ""),
        (Text(limit=1), 12, ""),
        (Text(), True, ""),
    ],
)
def test_a_hint_is_given_only_where_what_it_says_would_pass(shape, value, hint):
    faults = []
    shape.look(value, (), faults)
    assert [each.hint for each in faults] == [hint]


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("word-4O", "did you mean `word-4`? words are `word-0`, `word-1`, `word-2` …; the page has them all"),
        ("other", "words are `word-0`, `word-1`, `word-2` …; the page has them all"),
        (4, "words are `word-0`, `word-1`, `word-2` …; the page has them all"),
    ],
)
def test_a_long_list_of_words_is_cut_and_the_guess_comes_first(value, hint):
    faults = []
    Word(tuple(f"word-{number}" for number in range(48)), "the page").look(value, (), faults)
    assert [(each.detail, each.hint) for each in faults] == [(f"expected one of 48 words, got `{value}`", hint)]


@promise("H3")
def test_a_file_full_of_faults_is_answered_in_bounds():
    keys = "".join(f"sizes{n}: 1\n" for n in range(10_000))
    found = faults_of("schema: plan@1\n" + keys)
    assert found == [("unknown_key", n + 2, 1) for n in range(100)]
    assert faults_of("schema: plan@1\nsteps:\n- " + keys.replace("\n", "\n  ")) == [("missing_key", 3, 3)]


def test_a_top_level_value_of_another_kind_is_one_fault():
    assert faults_of("- a\n") == [("wrong_value", 1, 1)]


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("250ms", 250_000_000), ("1s", 10**9), ("120s", 120 * 10**9), ("5m", 300 * 10**9), ("2h", 7200 * 10**9)],
)
def test_durations(text, nanoseconds):
    assert duration_ns(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "0s", "01s", "1", "1d", "-1s", "1.5s", "1 s", "1s\n", "9" * 10 + "s"])
def test_what_is_no_duration_raises(text):
    with pytest.raises(ValueError):
        duration_ns(text)


SCHEMA = json_schema(PLAN, id="urn:test:plan", title="a plan")
PUBLISHED = jsonschema_rs.validator_for(SCHEMA)


@promise("H4")
def test_the_published_schema_is_closed_draft_07_with_the_docs_as_descriptions():
    assert (SCHEMA["$schema"], SCHEMA["$id"], SCHEMA["title"]) == (
        "http://json-schema.org/draft-07/schema#",
        "urn:test:plan",
        "a plan",
    )
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["required"] == ["schema"]
    assert SCHEMA["properties"]["size"] == {"description": "how many", "type": "integer", "minimum": 1, "maximum": 10}
    assert SCHEMA["properties"]["open"]["additionalProperties"] is True
    jsonschema_rs.meta.validate(SCHEMA)


@promise("H4")
@pytest.mark.parametrize(("line", "reason", "row", "column"), UNFITTING)
def test_the_published_schema_refuses_what_the_check_refuses(line, reason, row, column):
    assert not PUBLISHED.is_valid(load(f"schema: plan@1\n{line}\n".encode(), "p.yaml").value)


LEAVES = st.sampled_from(["fast", "call", "120s", "a", 0, 1, 5, 0.5, True, None, "PATH"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["call", "choose", "plan", "note", "a", "b", "PATH"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@promise("H4")
@given(st.dictionaries(st.sampled_from([*PLAN.fields, "typo"]), VALUES, max_size=4))
def test_the_check_and_the_published_schema_agree(extra):
    value = {"schema": "plan@1"} | extra
    faults = []
    PLAN.look(value, (), faults)
    assert PUBLISHED.is_valid(value) == (not faults)
