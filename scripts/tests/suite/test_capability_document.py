"""What capability scenario files may say, what is shown of a mistake, and what is derived from what was not said."""

import pytest
from marks import promise
from suite_world import a_root, add, cases_in, ran

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.lint import lint, write_pins
from assisted_benchmark.suite.result import Miss, Verdict
from assisted_benchmark.suite.runner import discover

HEAD = "schema: assisted-benchmark/capability-scenario@1\nid: tried\nregistry: pulp\n"
STATE_READ = "dev.pulp.state/read@1"


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
def test_a_registry_and_an_agent_are_enough(tmp_path):
    result = result_of(tmp_path, "agent: {plan: state/read}\n")
    assert (result.verdict, result.id, result.agent, result.policy) == (
        Verdict.PASSED,
        "live/tried/plain",
        "plan:state/read",
        "pulp",
    )
    assert (result.calls, result.ends) == (((STATE_READ, 1),), "completed")


@promise("H3")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("agent: nop\npersons: deny\n", (Reason.UNKNOWN_KEY, 5, 1, "did you mean `person`?")),
        ("agent: nop\nperson: denny\n", (Reason.WRONG_VALUE, 5, 9, "did you mean `deny`?")),
        ("agent: {plan: state/reed}\n", (Reason.UNKNOWN_REFERENCE, 4, 15, "did you mean `state/read`?")),
        (
            "agent: nop\ngoal: {call: state/reed}\n",
            (Reason.UNKNOWN_REFERENCE, 5, 14, "did you mean `state/read`?"),
        ),
        (
            "agent: {script: [{call: state/reed}]}\n",
            (Reason.UNKNOWN_REFERENCE, 4, 25, "did you mean `state/read`?"),
        ),
        (
            "agent: {script: [{call: state/read, input: {a: {from: grants.last}}}]}\n",
            (Reason.UNKNOWN_REFERENCE, 4, 18, "there are `grant.last`, `grant.first` and `result.FIELD`"),
        ),
        ("agent: oracle\n", (Reason.WRONG_VALUE, 4, 8, "add `goal: {call: …}`")),
        (
            "agent: nop\neligible: [state/reed]\n",
            (Reason.UNKNOWN_REFERENCE, 5, 12, "did you mean `state/read`?"),
        ),
        (
            "agent: nop\nstanding: [observer]\n",
            (Reason.UNKNOWN_REFERENCE, 5, 12, "did you mean `observe`?"),
        ),
        (
            "agent: nop\nexpect: {executed: {state/reed: 1}}\n",
            (Reason.UNKNOWN_REFERENCE, 5, 21, "did you mean `state/read`?"),
        ),
        (
            "agent: {plan: state/read}\nfaults: [{host: {does: lacks, operation: state/reed}}]\n",
            (Reason.UNKNOWN_REFERENCE, 5, 42, "did you mean `state/read`?"),
        ),
        (
            "agent: {plan: state/read}\nfaults: [{host: {does: lacks}}]\n",
            (Reason.WRONG_VALUE, 5, 17, "fixtures/README.md says what goes with what"),
        ),
        (
            "agent: {plan: state/read}\nfaults: [{advance: 5s, turn: 3}]\n",
            (Reason.UNKNOWN_REFERENCE, 5, 30, "without `turn` it strikes at the last"),
        ),
        (
            "agent: {script: [{read: instance}]}\nfaults: [{cancel: call}]\n",
            (Reason.WRONG_VALUE, 5, 19, "give the call a `request`"),
        ),
        ("agent: nop\ncases: {a: {}}\nmatrix: [{b: {}}]\n", (Reason.WRONG_VALUE, 6, 9, "keep one of them")),
    ],
)
def test_a_mistake_is_shown_at_its_place_with_what_was_meant(tmp_path, body, expected):
    assert problems_of(tmp_path, HEAD + body) == [expected]


@promise("H3")
def test_mistakes_of_a_tables_rows_are_all_shown(tmp_path):
    rows = (
        "cases:\n"
        "  a: {agent: {plan: state/reed}}\n"
        "  b: {agent: nop, faults: [{crash: broker, turn: 9}]}\n"
        "  c: {agent: nop, eligible: [state/reed]}\n"
        "  d: {agent: nop, expect: {executed: {state/reed: 1}}}\n"
    )
    problems = problems_of(tmp_path, HEAD + "agent: nop\n" + rows)
    assert [each[:2] for each in problems] == [(Reason.UNKNOWN_REFERENCE, line) for line in (6, 7, 8, 9)]


def test_a_registry_that_is_not_there_is_named(tmp_path):
    text = HEAD.replace("pulp", "pulb") + "agent: nop\n"
    assert problems_of(tmp_path, text) == [(Reason.UNKNOWN_REFERENCE, 3, 11, "did you mean `pulp`?")]


@promise("H3", "C1")
def test_a_registry_that_is_at_fault_is_told_of_and_nothing_that_follows_from_it(tmp_path):
    root = a_root(tmp_path)
    add(root, "tried", HEAD + "agent: nop\n")
    path = root / "contracts/pulp.registry.yaml"
    path.write_text(path.read_text().replace("namespace: dev.pulp.", "namespace: 7"))
    assert {problem.file for problem in lint(root)} == {"contracts/pulp.registry.yaml"}


@promise("H3", "C1")
def test_a_registry_that_is_not_as_pinned_is_refused_until_its_change_is_meant(tmp_path):
    root = a_root(tmp_path)
    add(root, "tried", HEAD + "agent: {plan: state/read}\n")
    path = root / "contracts/pulp.registry.yaml"
    path.write_text(path.read_text().replace("Read parameters with their values", "Read parameters"))
    assert [(problem.reason, problem.file) for problem in lint(root)] == [(Reason.PIN_MISMATCH, "contracts/pins.yaml")]
    write_pins(root)
    assert lint(root) == []
    assert [ran(case).result.verdict for case in discover(root)] == [Verdict.PASSED]


@promise("H1a")
@pytest.mark.parametrize(
    ("body", "decisions", "executed"),
    [
        ("agent: {plan: state/read}\n", ("granted", "completed"), ((STATE_READ, 1),)),
        ("agent: {plan: state/read}\nperson: deny\n", ("consent_required",), ()),
        ("agent: {plan: state/read}\nperson: replay\n", ("consent_replay",), ()),
        ("agent: {plan: state/read}\neligible: []\n", None, None),
        ("agent: {plan: artifact/read}\n", None, None),
        ("agent: {plan: state/read}\nstanding: [state/read]\nperson: deny\n", None, None),
        ("agent: {script: [{call: state/read}]}\nexpect: {refused: expired}\n", ("expired",), ()),
        ("agent: {script: [{call: state/read, comes_to: failed}]}\n", ("failed",), None),
        ("agent: {script: [{call: state/read, comes_to: completed, replayed: true}]}\n", ("completed",), ()),
        ("agent: {plan: state/read}\nfaults: [{advance: 1s}]\n", None, None),
        ("agent: nop\n", (), ()),
    ],
)
def test_what_follows_from_the_decisions_is_derived_and_nothing_else(tmp_path, body, decisions, executed):
    root = a_root(tmp_path)
    add(root, "tried", HEAD + body)
    (case,) = discover(root)
    assert (case.expect.decisions, case.expect.executed) == (decisions, executed)


@promise("H1")
@pytest.mark.parametrize(
    ("expect", "missed"),
    [
        ("decisions: [granted, failed]", [("decisions", "granted, failed", "granted, completed")]),
        ("refused: expired", [("decisions", "granted, expired", "granted, completed")]),
        ("states: [failed]", [("states", "failed", "completed")]),
        ("executed: {}", [(f"executed {STATE_READ}", "0", "1")]),
        ("result: {state_generation: true}", [("result state_generation", "true", "1")]),
        ("progress: 1", [("progress", "1", "0")]),
        ("artifacts: 1", [("artifacts", "1", "0")]),
        ("may_have_applied: true", [("may have applied", "true", "false")]),
        ("asked: 0", [("asked", "0", "1")]),
        ("generation: 2", [("generation", "2", "1")]),
        ("steps: {enrol: 2}", [("enrol at the host", "2", "1")]),
        ("scores: {task_completion: 0}", [("score task_completion", "0.0", "1.0")]),
    ],
)
def test_an_expectation_that_is_not_met_is_named(tmp_path, expect, missed):
    result = result_of(tmp_path, f"agent: {{plan: state/read}}\nexpect: {{{expect}}}\n")
    assert result.verdict is Verdict.FAILED
    named = [(miss.what, miss.expected, miss.actual) for miss in result.misses]
    assert [each for each in named if not each[0].startswith(("executed", "states"))] == [
        each for each in missed if not each[0].startswith(("executed", "states"))
    ]
    assert set(missed) <= set(named)


def test_a_receipt_that_is_not_an_earlier_one_is_named(tmp_path):
    script = "{script: [{request_grant: state/read}, {call: state/read, grant: last, replayed: true}]}"
    result = result_of(tmp_path, f"agent: {script}\n")
    assert result.misses == (Miss(what="call 2", expected="an earlier call's receipt", actual="its own"),)


@promise("H5")
def test_a_fault_whose_moment_never_comes_fails_the_case(tmp_path):
    result = result_of(tmp_path, "agent: {plan: state/read}\nfaults: [{crash: broker, at: ask}]\n")
    assert result.misses == (Miss(what="fault", expected="crash at ask strikes", actual="its moment never came"),)
