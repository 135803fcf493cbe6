"""A new scenario runs and passes as it stands, whichever policy it is for."""

import pytest
from marks import promise
from suite_world import ROOT, a_root, add, ran

from assisted_benchmark.suite.live.shelf import LiveShelf
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, scaffold


@promise("H1")
@pytest.mark.parametrize("policy", sorted(LiveShelf(ROOT, None).policies))
def test_a_new_scenario_passes_for_every_policy_that_ships(tmp_path, policy):
    root = a_root(tmp_path)
    add(root, "mine", scaffold(root, "mine", policy=policy).text)
    results = [ran(case).result for case in discover(root)]
    assert [(each.id, each.verdict, each.misses, each.detail) for each in results] == [
        ("live/mine/plain", Verdict.PASSED, (), ""),
        ("live/mine/extra-argument", Verdict.PASSED, (), ""),
    ]


def test_the_first_candidate_is_the_files_first():
    assert "agent: {plan: tokyo}" in scaffold(ROOT, "mine", policy="real-time").text.splitlines()


def test_a_plan_that_fails_is_told_as_it_came():
    assert scaffold(ROOT, "mine", policy="ui-elsewhere").text.splitlines()[-4:] == [
        "# What it came to when this file was written, for the plan does not succeed; keep it if it is meant.",
        "expect: {decisions: [failed], ends: sealed}",
        "proposals:",
        "  extra-argument: {at: 1, change: {unexpected: true}, refused: arguments_invalid}",
    ]


def test_a_plan_that_cannot_be_played_here_is_taken_to_succeed(tmp_path):
    root = a_root(tmp_path)
    contract = root / "contracts/real-time.contract.yaml"
    contract.write_text(contract.read_text().replace('"2026.10.19"', '"1.0.0"'))
    assert "expect: {ends: succeeded}" in scaffold(root, "mine", policy="real-time").text.splitlines()
