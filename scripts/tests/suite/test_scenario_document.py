"""Scenario files: the least runs, and everything that is wrong is shown with its place."""

import pytest
from marks import promise

from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.live.faults import At, Fault, Kind
from assisted_benchmark.suite.live.scenario import Expect, Playing, RunSpec, Sanity
from assisted_benchmark.suite.live.scenario_document import candidates_from, scenario_from

HEAD = "schema: assisted-benchmark/scenario@1\nid: s\npolicy: p\n"


def read(body):
    return scenario_from(load((HEAD + body).encode(), "s.scenario.yaml"))


def problems(body):
    with pytest.raises(DocumentError) as caught:
        read(body)
    return [(each.reason, each.line, each.column) for each in caught.value.problems]


@promise("H1a")
def test_a_policy_and_an_agent_are_enough():
    least = read("agent: plan\n")
    assert (least.agent, least.run, least.expect, least.faults) == (Playing(), RunSpec(), Expect(), ())


def test_sanity_agents_are_named_by_a_word():
    assert [read(f"agent: {word}\n").agent for word in ("oracle", "nop")] == [Sanity.ORACLE, Sanity.NOP]


def test_the_clock_is_an_instant_and_a_duration_a_number_of_nanoseconds():
    read_in = read('agent: plan\nrun: {clock: "2030-01-31T12:00:00Z"}\nfaults: [{advance: 3s}]\n')
    assert read_in.run.start_ns == 1_896_091_200 * 10**9
    assert read_in.faults == (Fault(kind=Kind.ADVANCE, value=3 * 10**9, at=At.PROPOSE, turn=0),)


def test_a_fault_strikes_at_its_usual_moment_unless_it_says_another():
    crash, cancel = read("agent: plan\nfaults: [{crash: broker}, {cancel: run, at: answer, turn: 2}]\n").faults
    assert (crash.at, crash.turn) == (At.CLAIMED, 0)
    assert (cancel.at, cancel.turn) == (At.ANSWER, 2)


def test_a_row_says_only_what_differs():
    row = dict(
        read("agent: plan\nexpect: {ends: failed}\ncases: {a: {run: {seed: 3}, expect: {oracle: held}}}\n").cases
    )
    assert (row["a"].run, row["a"].expect, row["a"].agent, row["a"].faults) == (
        {"seed": 3},
        {"oracle": "held"},
        None,
        None,
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("agent: plan\nagnet: plan\n", [(Reason.UNKNOWN_KEY, 5, 1)]),
        ("agent: {paln: approve}\n", [(Reason.MISSING_KEY, 4, 8)]),
        ("agent: plan\ncases: {a: {}}\nmatrix: [{a: {}}]\n", [(Reason.WRONG_VALUE, 6, 9)]),
        ("agent: plan\nproposals:\n  x: {change: {a: 1}}\n", [(Reason.WRONG_VALUE, 6, 6)]),
        ("agent: plan\nproposals:\n  x: {refused: no_such}\n", [(Reason.WRONG_VALUE, 6, 16)]),
        ("agent: plan\nproposals:\n  x: {admitted: false}\n", [(Reason.WRONG_VALUE, 6, 17)]),
        ("agent: plan\nproposals:\n  x: {refused: failed, admitted: true}\n", [(Reason.WRONG_VALUE, 6, 16)]),
        ("agent: plan\nproposals:\n  x: {propose: '', tool: t, refused: failed}\n", [(Reason.WRONG_VALUE, 6, 16)]),
        ("agent: plan\nfaults: [{advance: 3s, at: noon}]\n", [(Reason.WRONG_VALUE, 5, 28)]),
        ("agent: plan\nfaults: [{explode: ui}]\n", [(Reason.MISSING_KEY, 5, 10)]),
        ("agent: plan\nexpect: {ends: done, oracle: no}\n", [(Reason.IMPLICIT_TYPE, 5, 30)]),
        (
            "agent: plan\nexpect: {ends: done}\nrun: {seed: -1}\n",
            [(Reason.WRONG_VALUE, 5, 16), (Reason.WRONG_VALUE, 6, 13)],
        ),
        ("agent: {script: [{step: 1, refused: failed, admitted: true}]}\n", [(Reason.WRONG_VALUE, 4, 37)]),
    ],
)
@promise("H3")
def test_what_is_wrong_is_shown_with_line_and_column_and_all_of_it(body, expected):
    assert problems(body) == expected


def test_a_candidates_file_is_named_by_its_file_unless_it_says_another():
    text = "schema: assisted-benchmark/candidates@1\npolicy: p\ntask: t\ncandidates: {a: {x: 1}}\n"
    assert candidates_from(load(text.encode(), "fixtures/live/triage.candidates.yaml")).id == "triage"
    assert candidates_from(load((text + "id: other\n").encode(), "triage.candidates.yaml")).id == "other"


def test_a_candidates_file_shows_its_faults_too():
    text = "schema: assisted-benchmark/candidates@1\npolicy: p\ntask: t\ncandidates: {a: {}}\nproposals: {x: {}}\n"
    with pytest.raises(DocumentError) as caught:
        candidates_from(load(text.encode(), "x.candidates.yaml"))
    assert [each.reason for each in caught.value.problems] == [Reason.WRONG_VALUE]
