"""Scenarios become cases: stable ids, what follows from what is said, and references that lead nowhere."""

import pytest
from marks import promise
from suite_world import LEAST, a_root, add, cases_in, ran, scenario

from assisted_benchmark.kernel.errors import DocumentError, IntegrityError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover


def refused(folder, body, **given):
    with pytest.raises(DocumentError) as caught:
        discover(a_root(folder, tried=scenario("tried", body, **given)))
    return [(each.reason, each.line) for each in caught.value.problems]


@promise("H1a")
def test_the_least_scenario_runs_and_everything_else_is_derived(tmp_path):
    case = cases_in(a_root(tmp_path, least=LEAST))["least/plain"]
    assert case.expect.decisions == ("admitted", "admitted")
    assert case.expect.calls == (("lba", 1), ("synthetic-ui", 1))
    assert case.expect.ends == "succeeded"
    assert ran(case).result.verdict is Verdict.PASSED


@promise("H1a")
def test_a_refused_proposal_implies_zeros_and_an_open_group(tmp_path):
    body = "agent: {plan: approve}\nproposals: {x: {change: {taskId: t-2}, refused: arguments_altered}}\n"
    case = cases_in(a_root(tmp_path, tried=scenario("tried", body)))["tried/x"]
    assert case.expect.decisions == ("admitted", "arguments_altered")
    assert case.expect.calls == (("lba", 1), ("synthetic-ui", 0))
    assert case.expect.ends == "sealed"


@promise("H1a")
def test_what_is_said_is_not_derived(tmp_path):
    body = "agent: {plan: approve}\nexpect: {calls: {lba: 9}, ends: failed}\n"
    case = cases_in(a_root(tmp_path, tried=scenario("tried", body)))["tried/plain"]
    assert (case.expect.calls, case.expect.ends) == ((("lba", 9),), "failed")
    assert [miss.what for miss in ran(case).result.misses] == ["calls at lba", "calls at synthetic-ui", "ends"]


@promise("H1a")
@pytest.mark.parametrize(
    ("policy", "expect", "calls", "ends"),
    [
        ("ui-elsewhere", "decisions: [failed]", 1, "sealed"),
        ("ui-elsewhere", "decisions: [failed, group_terminal]", 1, "sealed"),
        ("ui-elsewhere", "decisions: [admitted, failed]", 2, "failed"),
        ("ui-elsewhere", "decisions: [admitted, late_result]", 2, "unresolved"),
        ("ui-elsewhere", "decisions: [result_invalid, group_terminal]", 1, "sealed"),
        ("ui-elsewhere", "decisions: [admitted, outcome_unknown]", None, "unresolved"),
        ("ui-elsewhere", "decisions: [admitted, server_unavailable]", 1, None),
        ("ui-elsewhere", "decisions: [malformed_call, exhausted]", 0, None),
        ("ui-elsewhere", "refused: failed", None, None),
    ],
)
def test_a_call_that_failed_went_out_and_what_cannot_be_known_is_not_derived(tmp_path, policy, expect, calls, ends):
    root = a_root(tmp_path, tried=scenario("tried", f"agent: plan\nexpect: {{{expect}}}\n", policy=policy))
    found = cases_in(root)["tried/plain"].expect
    assert (found.calls and dict(found.calls)["synthetic-ui"], found.ends) == (calls, ends)


def test_a_failure_that_is_expected_passes_without_more_being_said(tmp_path):
    rows = "cases: {a: {expect: {decisions: [failed]}}, b: {expect: {refused: failed}}}\n"
    script = "agent: {script: [{step: 1}]}\nexpect: {refused: failed}\n"
    root = a_root(
        tmp_path,
        tried=scenario("tried", "agent: plan\n" + rows, policy="ui-elsewhere"),
        scripted=scenario("scripted", script, policy="ui-elsewhere"),
    )
    assert [ran(case).result.misses for case in cases_in(root).values()] == [()] * 3


def test_under_a_fault_only_what_is_said_is_expected(tmp_path):
    body = "agent: {plan: approve}\nfaults: [{advance: 200s}]\n"
    case = cases_in(a_root(tmp_path, tried=scenario("tried", body)))["tried/plain"]
    assert (case.expect.decisions, case.expect.calls, case.expect.ends) == (None, None, None)
    assert ran(case).result.verdict is Verdict.PASSED


@promise("H2")
def test_a_table_has_a_case_a_row_and_a_matrix_a_case_a_combination(tmp_path):
    root = a_root(
        tmp_path,
        table=scenario("table", "agent: {plan: approve}\ncases: {a: {}, b: {agent: {plan: hold}}}\n"),
        grid=scenario(
            "grid",
            "agent: {plan: approve}\n"
            "matrix: [{go: {}, stop: {agent: {plan: hold}}}, {one: {}, two: {run: {seed: 2}}}]\n"
            "proposals: {x: {tool: nothing, refused: unknown_tool}}\n",
        ),
    )
    cases = cases_in(root)
    assert list(cases) == [
        "grid/go-one",
        "grid/go-two",
        "grid/stop-one",
        "grid/stop-two",
        "grid/x",
        "table/a",
        "table/b",
    ]
    assert (cases["grid/stop-two"].agent.choice, cases["grid/stop-two"].run.seed) == ("hold", 2)
    assert {case.id.split("/")[0] for case in cases.values()} == {"live"}


@promise("H2")
def test_an_id_does_not_depend_on_what_else_is_there(tmp_path):
    root = a_root(tmp_path, least=LEAST)
    before = {case.id for case in discover(root)}
    add(root, "another", scenario("another", "agent: nop\n"))
    assert before < {case.id for case in discover(root)}


@promise("H1")
def test_dropping_in_a_file_is_all_there_is_to_do(tmp_path):
    root = a_root(tmp_path, least=LEAST)
    add(root, "mine", scenario("mine", "agent: {plan: hold}\nrun: {task: t-5}\nexpect: {oracle: held}\n"))
    assert ran(cases_in(root)["mine/plain"]).result.verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("agent: {plan: aprove}\n", (Reason.UNKNOWN_REFERENCE, 4)),
        ("agent: plan\n", (Reason.UNKNOWN_REFERENCE, 4)),
        ("agent: {script: [{step: 3}]}\n", (Reason.UNKNOWN_REFERENCE, 4)),
        ("agent: {script: [{step: 1, choose: hold}]}\n", (Reason.UNKNOWN_REFERENCE, 4)),
        ("agent: {script: [{step: 1, leave_out: [x]}]}\n", (Reason.UNKNOWN_REFERENCE, 4)),
        ("agent: nop\nproposals: {x: {at: 3, refused: failed}}\n", (Reason.UNKNOWN_REFERENCE, 5)),
        ("agent: nop\nproposals: {plain: {refused: failed}}\n", (Reason.DUPLICATE_ID, 5)),
        ("agent: nop\nfaults: [{server: {id: ui, does: garbage}}]\n", (Reason.UNKNOWN_SERVER, 5)),
        ("agent: nop\nfaults: [{kill: ui}]\n", (Reason.UNKNOWN_SERVER, 5)),
        ("agent: nop\nfaults: [{race: reject}]\n", (Reason.UNKNOWN_REFERENCE, 5)),
        ("agent: {plan: hold}\nfaults: [{advance: 1s, turn: 9}]\n", (Reason.UNKNOWN_REFERENCE, 5)),
        ("agent: nop\nfaults: [{advance: 1s, turn: 1}]\n", (Reason.UNKNOWN_REFERENCE, 5)),
        ("agent: nop\nexpect: {calls: {ui: 0}}\n", (Reason.UNKNOWN_SERVER, 5)),
        ("agent: nop\ncases:\n  a: {}\n  b: {expect: {calls: {ui: 0}}}\n", (Reason.UNKNOWN_SERVER, 7)),
        (
            "agent: nop\nmatrix:\n  - one: {}\n    two: {faults: [{kill: ui}]}\n  - {z: {}}\n",
            (Reason.UNKNOWN_SERVER, 7),
        ),
        ("agent: nop\nfaults: [{kill: ui}]\ncases: {a: {}, b: {}}\n", (Reason.UNKNOWN_SERVER, 5)),
    ],
)
def test_a_reference_that_leads_nowhere_is_shown_where_it_stands(tmp_path, body, expected):
    assert refused(tmp_path, body) == [expected]


def test_an_agent_that_chooses_nothing_is_told_what_to_write_and_a_server_where_it_stands(tmp_path):
    with pytest.raises(DocumentError) as caught:
        discover(a_root(tmp_path, tried=scenario("tried", "agent: plan\nexpect: {calls: {lab: 1}}\n")))
    assert [(each.line, each.column, each.hint) for each in caught.value.problems] == [
        (5, 18, "did you mean `lba`?"),
        (4, 8, "write {plan: approve}; candidates: approve, hold"),
    ]


def test_a_choice_where_the_policy_has_none_is_shown(tmp_path):
    assert refused(tmp_path, "agent: {plan: approve}\n", policy="lba-witness") == [(Reason.UNKNOWN_REFERENCE, 4)]


def test_a_task_that_the_policy_cannot_take_is_shown_at_the_run(tmp_path):
    long = "t" * 100
    body = f"agent: nop\nrun: {{task: {long}}}\nproposals: {{x: {{refused: failed}}}}\n"
    assert refused(tmp_path, body) == [(Reason.ARGUMENTS_INVALID, 5)] * 2


def test_an_unknown_policy_and_a_second_id_are_shown(tmp_path):
    assert refused(tmp_path, "agent: nop\n", policy="ui-decisions") == [(Reason.UNKNOWN_REFERENCE, 3)]
    root = a_root(tmp_path / "two", one=LEAST, two=LEAST)
    with pytest.raises(DocumentError) as caught:
        discover(root)
    (problem,) = caught.value.problems
    assert (problem.reason, problem.file, problem.hint) == (
        Reason.DUPLICATE_ID,
        "fixtures/live/two.scenario.yaml",
        "see fixtures/live/one.scenario.yaml",
    )


def test_two_policies_of_one_id_are_shown_with_both_places(tmp_path):
    root = a_root(tmp_path)
    policy = (root / "contracts/ui-decision.policy.yaml").read_text()
    (root / "contracts/zz.policy.yaml").write_text(policy)
    with pytest.raises(DocumentError) as caught:
        discover(root)
    (problem,) = caught.value.problems
    assert (problem.reason, problem.file) == (Reason.DUPLICATE_ID, "contracts/zz.policy.yaml")
    assert "contracts/ui-decision.policy.yaml" in problem.hint


@promise("L2")
def test_a_policy_that_is_not_pinned_is_not_run(tmp_path):
    root = a_root(tmp_path, least=LEAST)
    path = root / "contracts/ui-decision.policy.yaml"
    path.write_text(path.read_text().replace("120s", "121s"))
    with pytest.raises(IntegrityError) as caught:
        discover(root)
    assert caught.value.reason is Reason.PIN_MISMATCH
