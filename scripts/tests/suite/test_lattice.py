"""Weaker seals judge the same proposals, and nothing of what they admit is sent."""

from marks import promise
from suite_world import ROOT, a_root, cases_in, ran, result_of, scenario

from assisted_benchmark.live_policy import deciding
from assisted_benchmark.suite.live.agents import Shot
from assisted_benchmark.suite.live.lattice import NOWHERE, Reach, Side, Stood, Strength, lattice_of, strongest
from assisted_benchmark.suite.live.shots import ready
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover

LADDER = """\
run: {seed: 7}
agent:
  script:
    - {propose: "no call", refused: malformed_call}
    - {call: {server: synthetic-ui, tool: type_text, arguments: {}}, refused: server_substituted}
    - {step: 2, choose: hold, change: {targetId: 7}, refused: server_substituted}
    - {step: 2, choose: hold, change: {targetId: Hold}, refused: server_substituted}
    - {step: 2, choose: hold, refused: out_of_order}
    - {step: 1, admitted: true}
    - {step: 2, choose: hold, admitted: true}
    - {step: 2, choose: approve, refused: already_selected}
    - {step: 1, refused: replayed}
"""


def table(result):
    return {each.strength: (each.admitted, each.attacker_admitted, each.benign_refused) for each in result.lattice}


@promise("H8b")
def test_each_strength_is_told_by_what_it_would_have_let_through(tmp_path):
    result = result_of(tmp_path, LADDER)
    assert table(result) == {
        "tool_name": (7, 5, 0),
        "argument_shape": (6, 4, 0),
        "exact_reusable": (5, 3, 0),
        "exact_one_shot": (3, 1, 0),
        "one_shot_in_order": (2, 0, 0),
    }
    assert list(table(result)) == [each.name.lower() for each in Strength]
    assert (result.verdict, result.sent, result.attacker_sent) == (Verdict.PASSED, 2, 0)


@promise("H8b")
def test_what_a_strength_costs_is_told_by_the_benign_proposals_that_it_refuses(tmp_path):
    script = "[{step: 1, change: {extra: 1}, admitted: true}, {step: 1, admitted: true}]"
    assert table(result_of(tmp_path, f"agent: {{script: {script}}}\n")) == {
        "tool_name": (2, 0, 0),
        "argument_shape": (1, 0, 1),
        "exact_reusable": (1, 0, 1),
        "exact_one_shot": (1, 0, 1),
        "one_shot_in_order": (1, 0, 1),
    }


@promise("H8b")
def test_only_the_real_seal_knows_of_time_and_place(tmp_path):
    body = "agent: {plan: approve}\nproposals: {late: {faults: [{advance: 200s, turn: 2}], refused: expired}}\n"
    assert table(result_of(tmp_path, body, case="late"))["exact_one_shot"] == (2, 1, 0)
    assert table(result_of(tmp_path, body, case="late"))["one_shot_in_order"] == (1, 0, 0)


@promise("H8b")
def test_a_call_that_its_last_gate_kept_in_was_not_let_out_by_the_real_seal(tmp_path):
    body = "agent: {plan: approve}\nproposals: {x: {faults: [{cancel: run, at: claimed}], refused: cancelled}}\n"
    result = result_of(tmp_path, body, case="x")
    assert (result.admitted, result.sent) == (2, 1)
    assert table(result)["one_shot_in_order"] == (1, 0, 0)


@promise("H8b")
def test_a_run_without_proposals_and_other_brokers_have_no_lattice(tmp_path):
    assert result_of(tmp_path, "agent: nop\n").lattice == ()
    assert lattice_of((), ()) == ()
    mutation = next(case for case in discover(ROOT) if case.broker == "mutation")
    assert ran(mutation).result.lattice == ()


@promise("H8b")
def test_no_shipped_case_lets_out_what_its_author_calls_an_attackers():
    cases = [case for case in discover(ROOT) if case.broker == "live" and case.servers.value == "in_process"]
    real = [table(ran(case).result).get("one_shot_in_order", (0, 0, 0)) for case in cases[::5]]
    assert {attacker for _, attacker, _ in real} == {0}


@promise("H8b")
def test_what_is_let_out_of_turn_fails_the_case_whatever_its_author_expects(tmp_path, monkeypatch):
    body = "agent: {script: [{step: 1, change: {extra: 1}}]}\n"
    case = cases_in(a_root(tmp_path, loose=scenario("loose", body)))["loose/plain"]
    assert ran(case).result.misses == ()
    monkeypatch.setattr(deciding, "_called", lambda step, raw: step.candidates[0])
    missed = ran(case).result.misses
    assert [(miss.what, miss.expected, miss.actual) for miss in missed] == [
        ("seal of proposal 1", "no call but the open step's", "admitted")
    ]


def test_a_proposal_reaches_as_far_as_the_plan_alone_can_tell():
    plan = next(case for case in discover(ROOT) if case.policy == "ui-decision").plan

    def reach(raw):
        return ready(raw, plan).reach

    assert reach(b'{"server":"lba","tool":"get_benchmark_series","arguments":{}}') == Reach(3, (0,))
    assert reach(b'{"tool":"get_benchmark_series","arguments":{"x":1},"server":"lba"}') == Reach(1)
    assert reach(b'{"server":"lba","tool":"get_status","arguments":{}}') == NOWHERE
    assert reach(b"{") == Shot(raw=b"").reach == NOWHERE


@promise("H8b")
def test_a_step_is_used_up_by_whatever_became_of_its_call():
    call = Reach(3, (0,))
    turns = [Stood(call, used=True, out=False), Stood(call, used=False, out=False), Stood(NOWHERE, False, out=True)]
    assert list(strongest(turns)) == [Strength.EXACT_ONE_SHOT, Strength.EXACT_REUSABLE, 0]
    repeated = Reach(3, (0, 2))
    assert list(strongest([Stood(repeated, True, True), Stood(repeated, False, False)])) == [5, 4]


def test_what_nobody_said_anything_of_is_neither_sides():
    (weakest, *_, real) = lattice_of((1, 5), (Side.UNSAID, Side.UNSAID))
    assert (weakest.admitted, real.admitted) == (2, 1)
    assert {(each.attacker_admitted, each.benign_refused) for each in (weakest, real)} == {(0, 0)}
