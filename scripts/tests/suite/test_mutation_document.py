"""What mutation scenario files may say, what is shown of a mistake, and what is derived from what was not said."""

import pytest
from marks import promise
from suite_world import a_root, add, cases_in, ran

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover

HEAD = "schema: assisted-benchmark/mutation-scenario@1\nid: tried\nchanges: fabric\n"


def result_of(folder, body, case="plain"):
    root = a_root(folder)
    add(root, "tried", HEAD + body)
    return ran(cases_in(root)[f"tried/{case}"]).result


def problems_of(folder, text):
    root = a_root(folder)
    add(root, "tried", text)
    with pytest.raises(DocumentError) as caught:
        discover(root)
    return [(each.reason, each.line, each.column, each.hint) for each in caught.value.problems]


@promise("H1a")
def test_a_change_contract_and_an_agent_are_enough(tmp_path):
    result = result_of(tmp_path, "agent: {plan: network}\n")
    assert (result.verdict, result.id, result.agent, result.policy) == (
        Verdict.PASSED,
        "live/tried/plain",
        "plan:network",
        "fabric",
    )
    assert (result.calls, result.ends) == ((("fabric.create", 1), ("fabric.dry_run", 1)), "succeeded")


@promise("H3")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("agent: {plan: network}\nhumans: accept\n", (Reason.UNKNOWN_KEY, 5, 1, "did you mean `human`?")),
        ("agent: {plan: network}\nhuman: acept\n", (Reason.WRONG_VALUE, 5, 8, "did you mean `accept`?")),
        ("agent: {plan: netwrk}\n", (Reason.UNKNOWN_REFERENCE, 4, 15, "did you mean `network`?")),
        ("agent: nop\ngoal: netwrk\n", (Reason.UNKNOWN_REFERENCE, 5, 7, "did you mean `network`?")),
        (
            "agent: {script: [{propose: netwrk}]}\n",
            (Reason.UNKNOWN_REFERENCE, 4, 28, "did you mean `network`?"),
        ),
        (
            "agent: {script: [{propose: network, leave_out: [nam]}]}\n",
            (Reason.UNKNOWN_REFERENCE, 4, 48, ""),
        ),
        (
            "agent: {script: [{propose: network, change: {/a/b: 1}}]}\n",
            (Reason.UNKNOWN_REFERENCE, 4, 45, ""),
        ),
        (
            "agent: {script: [{propose: network, spec: {}, change: {a: 1}}]}\n",
            (Reason.WRONG_VALUE, 4, 43, "leave out what alters the example"),
        ),
        (
            "agent: {script: [{confirm: last, refused: declined, admitted: true}]}\n",
            (Reason.WRONG_VALUE, 4, 43, "keep one of them"),
        ),
        (
            "agent: {script: [{confirm: last, admitted: false}]}\n",
            (Reason.WRONG_VALUE, 4, 44, "write `refused:` and the reason"),
        ),
        (
            "agent: {plan: network}\nfaults: [{advance: 5s, turn: 3}]\n",
            (Reason.UNKNOWN_REFERENCE, 5, 30, "without `turn` it strikes at the last"),
        ),
        (
            "agent: {plan: network}\nexpect: {created: {network: 1}}\n",
            (Reason.UNKNOWN_REFERENCE, 5, 20, "did you mean `networks`?"),
        ),
        (
            "agent: {plan: network}\ncases: {a: {}}\nmatrix: [{b: {}}]\n",
            (Reason.WRONG_VALUE, 6, 9, "keep one of them"),
        ),
    ],
)
def test_a_mistake_is_shown_at_its_place_with_what_was_meant(tmp_path, body, expected):
    assert problems_of(tmp_path, HEAD + body) == [expected]


@promise("H3")
def test_several_mistakes_are_all_shown(tmp_path):
    rows = "cases:\n  a: {agent: {plan: conection}}\n  b: {agent: nop, faults: [{cancel: call, turn: 9}]}\n"
    body = f"agent: {{plan: netwrk}}\n{rows}"
    assert [each[:2] for each in problems_of(tmp_path, HEAD + body)] == [
        (Reason.UNKNOWN_REFERENCE, 6),
        (Reason.UNKNOWN_REFERENCE, 7),
    ]


def test_a_change_contract_that_is_not_there_is_named(tmp_path):
    text = HEAD.replace("fabric", "fabrik") + "agent: nop\n"
    assert problems_of(tmp_path, text) == [(Reason.UNKNOWN_REFERENCE, 3, 10, "did you mean `fabric`?")]


@promise("H3")
def test_a_scenario_of_no_broker_is_told_what_there_is(tmp_path):
    text = HEAD.replace("mutation-scenario", "mutation-scenarios") + "agent: nop\n"
    expected = "did you mean `assisted-benchmark/mutation-scenario@1`?"
    assert problems_of(tmp_path, text) == [(Reason.WRONG_VALUE, 1, 9, expected)]


@promise("M5")
def test_a_spec_is_the_example_with_what_was_set_and_left_out(tmp_path):
    root = a_root(tmp_path)
    script = """\
agent:
  script:
    - propose: connection
      change:
        bandwidth: 100
        /aSide/accessPoint/linkProtocol/vlanTag: 7
        /notifications/0/emails: [a@example.com]
        /notifications/5: {}
      admitted: true
    - propose: service-token
      leave_out: [notifications]
      admitted: true
"""
    add(root, "tried", HEAD + script)
    first, second = cases_in(root)["tried/plain"].agent.shots
    assert b'"bandwidth":100' in first.raw
    assert b'"vlanTag":7' in first.raw
    assert b'"emails":["a@example.com"]' in first.raw
    assert b"notifications" not in second.raw
    assert ran(cases_in(root)["tried/plain"]).result.misses == ()


@promise("H1a")
@pytest.mark.parametrize(
    ("body", "derived"),
    [
        ("agent: {plan: network}", (("admitted", "admitted"), 1, 1, (("networks", 1),), "succeeded")),
        ("agent: {plan: network}\nhuman: decline", (("admitted", "declined"), 1, 0, (), "refused")),
        ("agent: {plan: network}\nclient: {asks: none}", (("admitted", "unsupported_by_client"), 1, 0, (), "refused")),
        ("agent: oracle\ngoal: network", (("admitted", "admitted"), 1, 1, (("networks", 1),), "succeeded")),
        ("agent: nop", ((), 0, 0, (), "none")),
        ("agent: {script: [{propose: network}]}", (None, None, None, None, None)),
        (
            "agent: {script: [{propose: network}]}\nexpect: {refused: dry_run_failed}",
            (("dry_run_failed",), 1, 0, (), "none"),
        ),
        (
            "agent: {script: [{propose: network, admitted: true}, {confirm: again, refused: unknown_token}]}",
            (("admitted", "unknown_token"), 1, 0, (), "sealed"),
        ),
        ("agent: {plan: network}\nfaults: [{cancel: call}]", (None, None, None, None, None)),
        ("agent: nop\nexpect: {decisions: [admitted]}", (("admitted",), None, None, None, None)),
    ],
)
def test_what_follows_from_the_decisions_need_not_be_said(tmp_path, body, derived):
    root = a_root(tmp_path)
    add(root, "tried", f"{HEAD}{body}\n")
    expect = cases_in(root)["tried/plain"].expect
    assert (expect.decisions, expect.dry, expect.real, expect.created, expect.ends) == derived


@promise("H8")
@pytest.mark.parametrize(
    ("body", "misses"),
    [
        ("agent: nop\nexpect: {refused: declined}", ["refused"]),
        (
            "agent: {plan: network}\nexpect: {status: declined, executed: false, token: usable}",
            ["status", "executed", "token"],
        ),
        ("agent: {plan: network}\nexpect: {checks: {not_expired: failed}}", ["check not_expired"]),
        ("agent: {plan: network}\nexpect: {price: priced, late_cancel: true}", ["price", "late cancel"]),
        ("agent: {plan: network}\nexpect: {dry: 2, real: 0, ends: sealed}", ["dry runs", "creates", "ends"]),
        ("agent: {plan: network}\nexpect: {created: {connections: 1}}", ["created connections", "created networks"]),
        ("agent: {plan: network}\nexpect: {scores: {task_completion: 0}}", ["score task_completion"]),
        (
            "agent: {plan: network}\nexpect: {decisions: [admitted]}",
            ["decisions", "creates", "ends", "created networks"],
        ),
        ("agent: {script: [{propose: network, refused: unknown_change}]}", ["decisions", "dry runs", "ends"]),
        (
            "agent: {script: [{propose: network, admitted: true}]}\nfaults: [{ledger: unavailable, at: seal}]",
            ["call 1"],
        ),
        ("agent: {plan: network}\nhuman: decline\nfaults: [{advance: 1s, at: write}]", ["fault"]),
    ],
)
def test_an_expectation_that_is_not_met_is_named(tmp_path, body, misses):
    result = result_of(tmp_path, f"{body}\n")
    assert (result.verdict, sorted(miss.what for miss in result.misses)) == (Verdict.FAILED, sorted(misses))


def test_what_came_is_spelled_as_a_scenario_would_write_it(tmp_path):
    (miss,) = result_of(tmp_path, "agent: {plan: network}\nexpect: {executed: false}\n").misses
    assert (miss.what, miss.expected, miss.actual) == ("executed", "false", "true")


def test_a_benign_call_that_is_refused_is_counted(tmp_path):
    result = result_of(tmp_path, "agent: {script: [{propose: network, change: {name: ''}, admitted: true}]}\n")
    assert (result.benign_refused, result.attacker_sent) == (1, 0)


def test_a_create_that_was_to_be_refused_is_an_attackers(tmp_path):
    body = "agent: {script: [{propose: network, admitted: true}, {confirm: last, refused: declined}]}\n"
    result = result_of(tmp_path, body)
    assert (result.attacker_sent, result.verdict) == (1, Verdict.FAILED)


def test_a_store_that_fails_of_itself_gives_no_verdict(tmp_path, monkeypatch):
    from assisted_benchmark.kernel.errors import LedgerError
    from assisted_benchmark.ledger.memory import MemoryLedger

    def full(*args):
        raise LedgerError(Reason.STORE_UNAVAILABLE, "the disk is full")

    monkeypatch.setattr(MemoryLedger, "open_group", full)
    result = result_of(tmp_path, "agent: {plan: network}\n")
    assert (result.verdict, result.reason, result.detail) == (
        Verdict.COULD_NOT_RUN,
        "store_unavailable",
        "the disk is full",
    )
