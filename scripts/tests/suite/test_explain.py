"""Why each check said what it said."""

from marks import promise
from suite_world import a_root, cases_in, scenario

from assisted_benchmark.suite.explain import explain

BODY = """\
agent: {plan: approve}
proposals:
  altered: {change: {taskId: t-2}, refused: arguments_altered}
  nonsense: {propose: "{", refused: malformed_call}
  lost: {admitted: true, faults: [{server: {id: synthetic-ui, does: drop_answer}}]}
  dead: {refused: outcome_unknown, faults: [{crash: broker}]}
"""


def explained(folder, name):
    case = cases_in(a_root(folder, tried=scenario("tried", BODY)))[f"tried/{name}"]
    explanation = explain(case)
    assert explanation.result.id == f"live/tried/{name}"
    return explanation.proposals


@promise("L15a")
def test_a_refusal_shows_what_passed_what_failed_and_the_nearest_candidate(tmp_path):
    first, second = explained(tmp_path, "altered")
    assert {state for _, state in first.checks} == {"passed"}
    states = dict(second.checks)
    assert (states["arguments_invalid"], states["arguments_altered"], states["not_a_candidate"]) == (
        "passed",
        "failed",
        "not asked",
    )
    assert (second.word, second.told, second.nearest) == ("arguments_altered", "not_authorised", "approve")
    assert second.diff == ('/taskId differs: "t-2" was proposed',)
    assert second.meaning == "the arguments differ from what was sealed"


def test_bytes_that_are_no_call_have_no_nearest(tmp_path):
    _, second = explained(tmp_path, "nonsense")
    assert (second.word, second.told, second.nearest, second.diff) == ("malformed_call", "malformed", "", ())
    assert dict(second.checks)["malformed_call"] == "failed"


def test_what_went_wrong_after_the_checks_leaves_them_passed(tmp_path):
    for name in ("lost", "dead"):
        _, second = explained(tmp_path, name)
        assert (second.word, second.told) == ("outcome_unknown", "unavailable")
        assert {state for _, state in second.checks} == {"passed"}
