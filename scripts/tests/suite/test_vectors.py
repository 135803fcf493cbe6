"""Public vectors: ours answers each from the files alone, and a vector that says something else fails."""

import json
from copy import deepcopy

import jsonschema_rs
import pytest
from attrs import evolve
from marks import promise
from suite_world import ROOT

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import REASONS, Layer, Reason
from assisted_benchmark.live_policy.checks import CHECKS
from assisted_benchmark.live_policy.opening import OPENING
from assisted_benchmark.mutation.checks import CHECKS as CHANGE_CHECKS
from assisted_benchmark.suite.vectors.players import NO_ANSWER, PLAYERS, answer, holds
from assisted_benchmark.suite.vectors.vector import FOLDER, KINDS, bytes_of, bytes_value, files_of, vectors_of

VECTORS = vectors_of(ROOT)
BY_KIND = {kind: [each for each in VECTORS if each.kind == kind] for kind in KINDS}


def codes(vector):
    told = vector.expected if isinstance(vector.expected, list) else [vector.expected]
    return {each["code"] for each in told if isinstance(each, dict) and "code" in each}


def codes_of(kind):
    return {code for vector in BY_KIND[kind] for code in codes(vector)}


@promise("H14")
@pytest.mark.parametrize("kind", KINDS)
def test_every_vector_is_answered_from_its_file_as_it_says(kind):
    assert BY_KIND[kind] != []
    assert [(each.id, answer(each)) for each in BY_KIND[kind] if not holds(each)] == []


def others(value):
    """The answer with one leaf changed, for each of its leaves."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: other} for other in others(inner))
    elif isinstance(value, list):
        yield [*value, "one more"]
        for index, inner in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in others(inner))
    elif isinstance(value, bool) or value is None:
        yield not value
    else:
        yield value + ("x" if isinstance(value, str) else 1)


@promise("H14")
@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_that_expects_anything_else_fails(kind):
    for vector in (BY_KIND[kind][0], BY_KIND[kind][-1]):
        spoilt = list(others(vector.expected))
        assert spoilt != []
        assert not any(holds(evolve(vector, expected=each)) for each in spoilt)


@promise("H14")
@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("canonical", lambda given: given.update(json={"text": '{"other":1}'})),
        ("digest", lambda given: given.update(domain="another@1")),
        ("admission", lambda given: given.update(bytes={"text": "{"})),
        ("receipts", lambda given: given.update(ledger="another")),
        ("live", lambda given: given["session"].update(vm="00000000-0000-4000-8000-000000000001")),
        ("mutation", lambda given: given["session"].update(principal="another")),
    ],
)
def test_a_vector_whose_question_was_changed_is_answered_otherwise(kind, spoil):
    vector = next(
        each for each in BY_KIND[kind] if not codes(each) or codes(each) == {"admitted"} or kind == "receipts"
    )
    given = deepcopy(vector.given)
    spoil(given)
    changed = evolve(vector, given=given)
    assert holds(vector)
    assert kind == "mutation" or not holds(changed)
    if kind == "mutation":
        confirmed = next(
            each for each in BY_KIND[kind] if each.given["call"] == "confirm" and codes(each) == {"admitted"}
        )
        given = deepcopy(confirmed.given)
        spoil(given)
        assert answer(evolve(confirmed, given=given))["code"] == "unknown_token"


def test_what_cannot_be_answered_is_no_answer():
    assert answer(evolve(BY_KIND["live"][0], given={}))["code"] == NO_ANSWER
    assert set(PLAYERS) == set(KINDS)


@promise("H14")
def test_every_reason_that_a_decision_can_have_is_in_some_vector():
    live = {check.reason.value for check in (*CHECKS, *OPENING)}
    by_bytes = {reason.value for reason, info in REASONS.items() if info.layer is Layer.BYTES}
    assert live - codes_of("live") == set()
    assert by_bytes - {Reason.NON_CANONICAL_NUMBER.value} - codes_of("admission") == set()
    phases = (CHANGE_CHECKS.proposal, CHANGE_CHECKS.token, CHANGE_CHECKS.binding, CHANGE_CHECKS.answer)
    assert {check.reason.value for phase in phases for check in phase} - codes_of("mutation") == set()
    receipts = {reason.value for reason, info in REASONS.items() if info.layer is Layer.RECEIPT}
    assert receipts - codes_of("receipts") == set()


@promise("H14", "H4")
def test_every_file_has_the_published_form_and_explains_its_flags():
    schema = json.loads((ROOT / FOLDER / "vectors.schema.json").read_text())
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    judge = jsonschema_rs.validator_for(schema)
    for path in files_of(ROOT):
        value = json.loads(path.read_text())
        judge.validate(value)
        assert path.stem == value["kind"]
        ids = [each["id"] for each in value["vectors"]]
        assert len(set(ids)) == len(ids)
        assert {flag for each in value["vectors"] for flag in each["flags"]} == set(value["flags"])
        assert all(each["comment"] for each in value["vectors"])


@promise("H14")
def test_nothing_in_the_files_is_of_this_machine():
    for path in files_of(ROOT):
        assert str(ROOT) not in path.read_text()


def test_bytes_come_back_whatever_they_are():
    for data in (b"", b"{}", "é\u2028".encode(), b"\xff\x00", b"a\x00b", b"\xef\xbb\xbf{}"):
        assert bytes_of(json.loads(json.dumps(bytes_value(data)))) == data
    assert bytes_of({"pieces": [{"text": "[", "times": 2}, {"base64": "XQ==", "times": 2}]}) == b"[[]]"


def test_a_file_that_is_no_file_of_vectors_is_refused(tmp_path):
    (tmp_path / FOLDER).mkdir()
    assert vectors_of(tmp_path) == ()
    (tmp_path / FOLDER / "odd.json").write_text('{"schema":"assisted-benchmark/vectors@1"}')
    with pytest.raises(DocumentError) as refused:
        vectors_of(tmp_path)
    assert {problem.reason for problem in refused.value.problems} == {Reason.MISSING_KEY}
