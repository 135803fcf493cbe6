"""A candidates file adds a task to a policy's choice group, and cases that follow from it."""

import pytest
from marks import promise
from suite_world import a_root, cases_in, ran

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover

HEAD = "schema: assisted-benchmark/candidates@1\npolicy: {policy}\ntask: {task}\ncandidates:\n"
BOTH = "  approve: {targetId: approve}\n  hold: {targetId: hold}\n"


def a_file(folder, candidates=BOTH, *, policy="ui-decision", task="t-9", rest=""):
    text = HEAD.format(policy=policy, task=task) + candidates + rest
    return a_root(folder, **{"triage.candidates.yaml": text})


def flaws(root):
    with pytest.raises(DocumentError) as caught:
        discover(root)
    return [(each.reason, each.line) for each in caught.value.problems]


@promise("H2")
def test_each_candidate_gets_its_plain_road_its_siblings_death_and_the_standard_mutations(tmp_path):
    cases = cases_in(a_file(tmp_path))
    for name, sibling in (("approve", "hold"), ("hold", "approve")):
        of_it = {each.removeprefix(f"triage/{name}") for each in cases if each.startswith(f"triage/{name}")}
        assert of_it == {
            "",
            "-extra-argument",
            "-without-taskId",
            "-retyped-taskId",
            "-altered-taskId",
            "-without-targetId",
            "-retyped-targetId",
            "-altered-targetId",
            "-unknown-server",
            "-at-lba",
            "-unknown-tool",
            "-again",
            f"-then-{sibling}",
        }
    results = [ran(case).result for case in cases.values()]
    assert {result.verdict for result in results} == {Verdict.PASSED}
    assert {result.attacker_sent for result in results} == {0}


def test_the_files_own_proposals_come_after_the_standard_ones(tmp_path):
    cases = cases_in(a_file(tmp_path, rest="proposals: {mine: {change: {targetId: Approve}, refused: wrong_target}}\n"))
    assert ran(cases["triage/mine"]).result.refusals == (("wrong_target", 1),)


@promise("L10")
@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ("  approve: {targetId: approve}\n", [(Reason.MISSING_KEY, 5)]),
        (BOTH + "  reject: {targetId: reject}\n", [(Reason.UNKNOWN_REFERENCE, 7)]),
        ("  approve: {targetId: delete}\n  hold: {targetId: hold}\n", [(Reason.WRONG_VALUE, 5)]),
        ("  approve: {taskId: t-1}\n  hold: {}\n", [(Reason.WRONG_VALUE, 5)]),
        ("  approve: {force: true}\n  hold: {}\n", [(Reason.WRONG_VALUE, 5)]),
    ],
)
def test_a_candidates_file_cannot_add_authority(tmp_path, candidates, expected):
    assert flaws(a_file(tmp_path, candidates)) == expected


def test_a_policy_without_a_choice_takes_no_candidates(tmp_path):
    assert flaws(a_file(tmp_path, policy="lba-witness")) == [(Reason.UNKNOWN_REFERENCE, 2)]


def test_a_task_that_does_not_fit_is_shown(tmp_path):
    assert (Reason.ARGUMENTS_INVALID, 3) in flaws(a_file(tmp_path, task="t" * 100))


def test_a_proposal_may_not_bear_a_standard_name(tmp_path):
    root = a_file(tmp_path, rest="proposals: {approve-again: {refused: wrong_target}}\n")
    assert (Reason.DUPLICATE_ID, 7) in flaws(root)
