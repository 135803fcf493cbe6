"""What a run leaves: whoever changes it is found out."""

import orjson
import pytest
from marks import promise
from suite_world import LEAST, a_root, scenario

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.runner import RunPlan, discover, run, verify_run

TWO = "agent: {plan: approve}\ncases: {a: {}, b: {agent: {plan: hold}}}\n"


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    root = a_root(tmp_path_factory.mktemp("root"), least=LEAST, two=scenario("two", TWO))
    return discover(root)


@pytest.fixture
def left(cases, tmp_path):
    """A run's directory, untouched."""
    run(cases, RunPlan(seed=1, durability="memory", directory=tmp_path / "run"))
    return tmp_path / "run"


def lines(left):
    return (left / "receipts.jsonl").read_bytes().splitlines(keepends=True)


def changed(left, lines):
    (left / "receipts.jsonl").write_bytes(b"".join(lines))
    return {(problem.reason, problem.line) for problem in verify_run(left)}


@promise("H19")
def test_untouched_receipts_verify(left):
    assert verify_run(left) == ()
    assert len(lines(left)) == 12


@promise("H19")
def test_an_edit_a_move_and_a_second_copy_are_found(left):
    whole = lines(left)
    edited = [whole[0].replace(b'"reason":"admitted"', b'"reason":"admittee"'), *whole[1:]]
    assert changed(left, edited) == {(Reason.CHAIN_BROKEN, 2)}
    assert (Reason.CHAIN_BROKEN, 2) in changed(left, [whole[1], whole[0], *whole[2:]])
    assert (Reason.CHAIN_BROKEN, 2) in changed(left, [whole[0], *whole])


@promise("H19")
def test_what_is_missing_is_found(left):
    whole = lines(left)
    assert (Reason.CHAIN_TRUNCATED, 11) in changed(left, whole[:-1])
    assert (Reason.CHAIN_BROKEN, 2) in changed(left, [whole[0], *whole[2:]])
    assert Reason.CHAIN_MISSING in {reason for reason, _ in changed(left, whole[4:])}
    (left / "receipts.jsonl").unlink()
    assert [problem.reason for problem in verify_run(left)] == [Reason.CHAIN_MISSING]


@promise("H19")
def test_a_torn_tail_is_told_apart_and_is_a_lost_receipt_where_it_is_anchored(left, cases):
    whole = lines(left)
    found = changed(left, [*whole[:-1], whole[-1][:80]])
    assert found == {(Reason.TORN_TAIL, len(whole)), (Reason.CHAIN_TRUNCATED, len(whole))}
    assert {problem.hint for problem in verify_run(left)} == {
        "`run --resume DIR` writes the receipts anew, from the run's own journals"
    }
    assert changed(left, [*whole[:-2], whole[-2][:80]]) == {
        (Reason.TORN_TAIL, len(whole) - 1),
        (Reason.CHAIN_TRUNCATED, len(whole) - 2),
    }
    run(cases, RunPlan(seed=1, durability="memory", directory=left))
    assert (verify_run(left), lines(left)) == ((), whole)


@promise("H19")
def test_what_was_torn_off_beyond_the_anchored_end_is_only_noted(left):
    whole = lines(left)
    assert changed(left, [*whole, whole[-1][:80]]) == {(Reason.TORN_TAIL, len(whole) + 1)}


@promise("H19")
def test_a_foreign_runs_receipt_and_cases_out_of_place_are_found(left, cases, tmp_path):
    whole = lines(left)
    foreign = whole[0].replace(b'"run":"live/least/plain"', b'"run":"live/other/plain"')
    assert (Reason.RUN_MISMATCH, 5) in changed(left, [*whole[:4], foreign, *whole[4:]])
    assert (Reason.CHAIN_BROKEN, 9) in changed(left, [*whole[4:], *whole[:4]])


@promise("H19")
def test_the_anchor_cannot_be_written_anew_without_the_key(left):
    heads = orjson.loads((left / "heads.json").read_bytes())
    heads["chains"].pop("live/two/b")
    (left / "heads.json").write_bytes(orjson.dumps(heads))
    assert [problem.reason for problem in verify_run(left)] == [Reason.CHAIN_BROKEN]


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"mac": 1, "chains": {}, "ledger": "x"}'])
def test_an_anchor_that_is_none_is_missing(left, text):
    (left / "heads.json").write_bytes(text)
    assert [problem.reason for problem in verify_run(left)] == [Reason.CHAIN_MISSING]


def test_a_case_without_a_run_has_no_chain(tmp_path):
    body = "agent: {plan: approve}\nfaults: [{policy: changed, at: start}]\nexpect: {refused: policy_drift}\n"
    cases = discover(a_root(tmp_path / "root", tried=scenario("tried", body)))
    result = run(cases, RunPlan(durability="memory", directory=tmp_path / "run"))
    assert [(case.verdict, case.receipts) for case in result.cases] == [("passed", None)]
    assert verify_run(tmp_path / "run") == ()
