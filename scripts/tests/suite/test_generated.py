"""Generated agents: a seed makes the same proposals everywhere, and only the open step's very call is ever sent."""

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import promise
from suite_world import ROOT, a_root, cases_in, ran, result_of, scenario

from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.suite.live.agents import CaseAgent
from assisted_benchmark.suite.live.generated import Generated, Maker, shots_of
from assisted_benchmark.suite.live.scenario import Expect
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import RunPlan, discover, new_run_directory, run

CASES = {
    policy: next(case for case in discover(ROOT) if (case.policy, case.faults) == (policy, ()))
    for policy in ("ui-decision", "lba-witness", "ui-two-refusals")
}
SPECS = st.builds(
    Generated, seed=st.integers(0, 10**9), proposals=st.integers(1, 60), kind=st.sampled_from(sorted(Maker))
)


@promise("H6")
@settings(max_examples=60, deadline=None)
@given(SPECS, st.sampled_from(sorted(CASES)))
def test_what_must_come_of_a_generated_proposal_follows_from_the_plan(spec, policy):
    plan = CASES[policy].plan
    shots = shots_of(spec, plan, sure=True)
    case = evolve(CASES[policy], agent=CaseAgent(name="generated", shots=shots), expect=Expect())
    result = ran(case).result
    assert (result.misses, result.attacker_sent, result.benign_refused) == ((), 0, 0)
    assert result.sent == result.admitted == sum(shot.expected == "admitted" for shot in shots) <= len(plan.steps)
    planned = [step.server.id for step in plan.steps]
    assert all(count <= planned.count(server) for server, count in result.calls)
    assert {shot.hostile for shot in shots if not shot.expected} <= {True}


@promise("H6")
@pytest.mark.parametrize(
    ("kind", "digest"),
    [
        ("random", "sha256:7eb35e27a73037fdb2369e092dee4ea90e5a0a903ac9848157e52249e3412bc0"),
        ("model", "sha256:57007ceb14d373a5aae4070e4059139cf8b16d739663c051cbe7d69abefbd36b"),
    ],
)
def test_the_same_seed_makes_the_same_bytes_and_another_one_others(kind, digest):
    plan = CASES["ui-decision"].plan

    def made(seed):
        raws = [shot.raw for shot in shots_of(Generated(seed=seed, kind=Maker(kind)), plan, sure=True)]
        return digest_of("made", *raws)

    assert made(7) == digest
    assert made(8) != made(7)


@promise("H6")
def test_generated_cases_leave_identical_receipts_each_time(tmp_path):
    cases = discover(ROOT, [ROOT / "fixtures" / "live" / "generated.scenario.yaml"])[::5]
    plan = RunPlan(durability="memory", repeat=3, expect_identical=True, directory=new_run_directory(tmp_path))
    assert {case.verdict for case in run(cases, plan).cases} == {Verdict.PASSED}


@promise("H6", "H1a")
def test_calls_and_end_are_derived_where_they_follow(tmp_path):
    body = "agent: {generated: {seed: 3, proposals: %d, kind: model}}\n"
    root = a_root(tmp_path, few=scenario("few", body % 15), many=scenario("many", body % 60))
    few, many = (cases_in(root)[f"{name}/plain"].expect for name in ("few", "many"))
    assert (few.decisions, few.calls, few.ends) == (None, (("lba", 1), ("synthetic-ui", 1)), "succeeded")
    assert (many.calls, many.ends) == (few.calls, None)


@promise("H6")
def test_under_a_fault_nothing_is_said_of_single_proposals(tmp_path):
    body = "agent: {generated: {kind: model}}\nfaults: [{revoke: grant, at: open}]\n"
    case = cases_in(a_root(tmp_path, x=scenario("x", body)))["x/plain"]
    assert {(shot.expected, shot.hostile) for shot in case.agent.shots} == {("", False)}
    assert case.agent.name == "generated:model"


@promise("H6", "H8b")
def test_every_proposal_that_must_be_refused_counts_as_an_attackers(tmp_path):
    result = result_of(tmp_path, "agent: {generated: {seed: 7, proposals: 30, kind: model}}\n")
    weakest, *_, real = result.lattice
    assert (result.proposed, real.attacker_admitted, real.admitted) == (30, 0, 2)
    assert weakest.attacker_admitted > 9


@promise("H3")
@pytest.mark.parametrize(
    "body", ["{proposals: 0}", "{proposals: 1001}", "{seed: -1}", "{kind: wild}", "{other: 1}", "7"]
)
def test_a_generated_agent_that_makes_no_sense_is_refused(tmp_path, body):
    root = a_root(tmp_path, x=scenario("x", f"agent: {{generated: {body}}}\n"))
    with pytest.raises(DocumentError):
        discover(root)
