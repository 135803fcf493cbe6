"""`explain` and `new` of mutation scenarios: every check in its order, and a scenario that passes as it stands."""

import pytest
from marks import promise
from suite_world import ROOT, a_root, add, ran

from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.checks import CHECKS
from assisted_benchmark.suite.explain import explain
from assisted_benchmark.suite.lint import lint, write_pins
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, scaffold, select

ALL = discover(ROOT)


def last_of(name):
    (case,) = select(ALL, ids={f"mutation/{name}"})
    return explain(case).proposals[-1]


def failed(proposal):
    return [name for name, state in proposal.checks if state == "failed"]


@promise("M14")
@pytest.mark.parametrize(
    ("case", "check", "word", "told"),
    [
        ("refused-proposals/unknown-type", "change_known", "unknown_change", "malformed"),
        ("refused-proposals/line-break", "values_showable", "unshowable_value", "malformed"),
        ("refused-proposals/bandwidth-with-a-point", "integers_spelled", "non_canonical_number", "malformed"),
        ("refused-proposals/unlisted-word", "spec_valid", "arguments_invalid", "not_authorised"),
        ("predicates/unknown", "proposal_exists", "unknown_token", "not_authorised"),
        ("predicates/replayed", "not_previously_used", "replayed", "spent"),
        ("time-runs-out/before-it-is-used", "not_expired", "expired", "expired"),
        ("tampered/stored-type", "same_contract", "binding_mismatch", "not_authorised"),
        ("status-table/decline-handshake", "not_declined", "declined", "not_authorised"),
        ("status-table/cancel-stateless", "not_dismissed", "cancelled", "unavailable"),
        ("time-runs-out/while-a-person-reads", "still_not_expired", "expired", "expired"),
        ("tampered/bytes-under-the-old-digest", "bytes_match_binding", "binding_mismatch", "not_authorised"),
        ("cancelled/behind-the-marker", "not_cancelled", "cancelled", "unavailable"),
    ],
)
def test_the_check_that_failed_is_named_and_what_passed_before_it(case, check, word, told):
    proposal = last_of(case)
    assert (failed(proposal), proposal.word, proposal.told) == ([check], word, told)
    states = [state for _, state in proposal.checks]
    at = states.index("failed")
    assert set(states[:at]) <= {"passed"}
    assert set(states[at + 1 :]) <= {"not asked"}


def test_what_no_check_decided_shows_none_that_failed():
    for case in ("refused-proposals/no-json", "others/nobody-comes-back", "crash/once-consumed"):
        proposal = last_of(case)
        assert (failed(proposal), {state for _, state in proposal.checks}) == ([], {"not asked"})
    assert last_of("others/nobody-comes-back").told == "input_required"
    assert last_of("crash/once-consumed").told == "nothing"


@pytest.mark.parametrize(
    ("case", "word", "checks"),
    [
        ("create-fails/drops-late", "outcome_unknown", len(CHECKS.names) - len(CHECKS.proposal)),
        ("create-fails/gone-before", "server_unavailable", len(CHECKS.names) - len(CHECKS.proposal)),
        ("dry-run-fails/broken", "dry_run_failed", len(CHECKS.proposal)),
    ],
)
def test_what_failed_at_the_endpoint_had_passed_every_check(case, word, checks):
    proposal = last_of(case)
    assert (proposal.word, proposal.told) == (word, "unavailable")
    assert [state for _, state in proposal.checks] == ["passed"] * checks


@promise("H1")
@pytest.mark.parametrize("change", [None, "connection", "network", "service-token"])
def test_a_new_mutation_scenario_passes_as_it_stands(tmp_path, change):
    root = a_root(tmp_path)
    add(root, "mine", scaffold(root, "mine", policy="fabric", candidate=change).text)
    assert lint(root) == []
    results = [ran(case).result for case in discover(root)]
    assert [(each.id, each.agent, each.verdict, each.sent) for each in results] == [
        ("live/mine/accepted", f"plan:{change or 'connection'}", Verdict.PASSED, 1),
        ("live/mine/declined", f"plan:{change or 'connection'}", Verdict.PASSED, 0),
    ]


def test_a_change_type_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(MisuseError) as caught:
        scaffold(a_root(tmp_path), "mine", policy="fabric", candidate="netwrk")
    assert "did you mean `network`?" in caught.value.detail


def test_an_example_that_does_not_pass_is_told_as_it_came(tmp_path):
    root = a_root(tmp_path)
    contract = root / "contracts/fabric.changes.yaml"
    contract.write_text(
        contract.read_text().replace("type: EVPL_VC\n      name: lab", "type: EVPL_VC\n      name: lab")
    )
    contract.write_text(
        contract.read_text().replace("/fabric/v4/networks\n    accepts", "/fabric/v4/netz\n    accepts")
    )
    text = scaffold(root, "mine", policy="fabric", candidate="network").text
    assert "expect: {decisions: [dry_run_failed], dry: 0, ends: none}" in text.splitlines()
    add(root, "mine", text)
    write_pins(root)
    assert [ran(case).result.verdict for case in discover(root)] == [Verdict.PASSED]


def test_a_contract_that_no_endpoint_here_takes_is_not_played(tmp_path):
    root = a_root(tmp_path)
    add(root, "mine", scaffold(root, "mine", policy="fabric", candidate="network").text)
    contract = root / "contracts/fabric.changes.yaml"
    contract.write_text(contract.read_text().replace("    path: /fabric/v4/", "    path: /tickets/v1/"))
    with pytest.raises(MisuseError) as caught:
        scaffold(root, "other", policy="fabric")
    assert caught.value.detail.startswith("no endpoint that comes with the harness takes a change of `fabric`; ")
    told = [(each.reason, each.line, each.column) for each in lint(root) if each.file.startswith("fixtures/")]
    assert told == [(Reason.UNKNOWN_REFERENCE, 5, 10)]


def test_a_call_is_told_without_its_tools_name_twice_and_a_broker_that_died_as_that():
    proposed, confirmed = explain(select(ALL, ids={"mutation/crash/once-consumed"})[0]).proposals
    assert (proposed.tool, proposed.text.split(" ")[0]) == ("propose", "network")
    assert (confirmed.tool, confirmed.text) == ("confirm", "last")
    assert confirmed.detail == "the broker died, and with it what its checks had said"
