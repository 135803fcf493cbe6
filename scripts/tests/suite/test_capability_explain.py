"""`explain` and `new` of capability scenarios, and what must not get about of them."""

import orjson
import pytest
from marks import promise
from suite_world import ROOT, a_root, add, ran

from assisted_benchmark.capability.admission import EARLY, LATE
from assisted_benchmark.kernel.errors import LedgerError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.report.junit import junit
from assisted_benchmark.report.record import record_bytes
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.explain import explain
from assisted_benchmark.suite.instruments import CutOff
from assisted_benchmark.suite.ledgers import Ledgers
from assisted_benchmark.suite.lint import lint
from assisted_benchmark.suite.plan import RunPlan
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, run, scaffold, select, verify_run
from assisted_benchmark.workloads.plugin_host_instance import canary_of

ALL = discover(ROOT)


def named(*names):
    return select(ALL, ids={f"capability/{name}" for name in names})


def last_of(name):
    return explain(*named(name)).proposals[-1]


def failed(proposal):
    return [name for name, state in proposal.checks if state == "failed"]


@promise("C14", "C15")
@pytest.mark.parametrize(
    ("case", "check", "told"),
    [
        ("ledger-unavailable/at-the-call", "store_unavailable", "unavailable"),
        ("not-advertised/ui-input", "unknown_operation", "not_authorised"),
        ("envelope/out-of-bounds", "arguments_invalid", "not_authorised"),
        ("whose-session/client-call", "wrong_principal", "not_authorised"),
        ("terms/not-implemented", "not_implemented", "not_authorised"),
        ("terms/not-available", "host_unavailable", "unavailable"),
        ("under-a-grant/at-its-end", "expired", "expired"),
        ("under-a-grant/another-operation", "not_granted", "not_authorised"),
        ("terms/session-over", "session_ended", "unavailable"),
    ],
)
def test_the_check_that_failed_is_named_and_what_passed_before_it(case, check, told):
    proposal = last_of(case)
    assert (failed(proposal), proposal.word, proposal.told) == ([check], check, told)
    states = [state for _, state in proposal.checks]
    at = states.index("failed")
    assert set(states[:at]) <= {"passed"}
    assert set(states[at + 1 :]) <= {"not asked"}


def test_what_was_admitted_passed_every_check_and_a_replay_was_asked_none():
    names = [check.reason.value for check in EARLY] + [check.reason.value for check in LATE]
    assert last_of("every-operation/state-read").checks == tuple((name, "passed") for name in names)
    assert last_of("idempotency/the-same").checks == tuple((name, "not asked") for name in names)
    assert last_of("broker-crash/at-settle").checks == tuple((name, "not asked") for name in names)
    # Of what is no operation there is nothing to check.
    assert last_of("resources/an-instance").checks == ()


@pytest.mark.parametrize(
    ("case", "word", "told"),
    [
        ("grants/granted", "granted", "granted"),
        ("resources/an-instance", "read", "read"),
        ("exact-instance/its-status", "completed", "completed"),
        ("broker-crash/at-settle", "outcome_unknown", "nothing"),
        ("host-faults/fails", "failed", "unavailable"),
    ],
)
def test_what_came_of_a_call_and_what_the_agent_heard_are_told(case, word, told):
    proposal = last_of(case)
    assert (proposal.word, proposal.told) == (word, told)


def test_nothing_was_explained_before_a_case_was_played():
    assert Bench(RunPlan(durability="memory"))._stage("capability").explained() == ()


@promise("H1")
@pytest.mark.parametrize(
    ("operation", "agent"), [(None, "plan:diagnostics/read"), ("gpu/health.read", "plan:gpu/health.read")]
)
def test_a_new_capability_scenario_passes_as_it_stands(tmp_path, operation, agent):
    root = a_root(tmp_path)
    add(root, "mine", scaffold(root, "mine", policy="pulp", candidate=operation).text)
    assert lint(root) == []
    results = [ran(case).result for case in discover(root)]
    assert [(each.id, each.agent, each.verdict, each.confirmed) for each in results] == [
        ("live/mine/approved", agent, Verdict.PASSED, 1),
        ("live/mine/denied", agent, Verdict.PASSED, 0),
    ]


@promise("H1")
def test_an_operation_that_needs_an_input_is_told_as_it_came(tmp_path):
    root = a_root(tmp_path)
    text = scaffold(root, "mine", policy="pulp", candidate="dev.pulp.runtime/evaluate@1").text
    assert "expect: {decisions: [granted, arguments_invalid]}" in text.splitlines()
    add(root, "mine", text)
    assert [ran(case).result.verdict for case in discover(root)] == [Verdict.PASSED]


@pytest.mark.parametrize(("operation", "hint"), [("state/reed", "state/read"), ("ui/inpt", "diagnostics/read")])
def test_an_operation_that_no_grant_covers_is_refused(tmp_path, operation, hint):
    with pytest.raises(MisuseError) as caught:
        scaffold(a_root(tmp_path), "mine", policy="pulp", candidate=operation)
    assert hint in caught.value.detail


@promise("H7a")
def test_no_secret_of_an_instance_and_no_grant_is_in_what_a_run_leaves_but_in_its_receipts(tmp_path):
    cases = named("every-operation/state-read-sensitive", "host-faults/a-secret", "telemetry/sensitive")
    result = run(cases, RunPlan(directory=tmp_path / "run"))
    assert [each.verdict for each in result.cases] == [Verdict.PASSED] * 3
    assert verify_run(tmp_path / "run") == ()
    texts = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.json*")}
    grants = {line["grant"] for line in map(orjson.loads, texts["receipts.jsonl"].splitlines())} - {""}
    texts |= {"report": record_bytes(result), "junit": junit(result)}
    assert [name for name, text in texts.items() if canary_of(0).encode() in text] == []
    assert len(grants) == 3
    told = [name for name, text in texts.items() if any(grant.encode() in text for grant in grants)]
    assert set(told) <= {"receipts.jsonl", "journal-0.jsonl"}


def test_a_store_that_is_lost_where_no_fault_says_so_gives_no_verdict(monkeypatch):
    (case,) = named("every-operation/state-read")
    own = Ledgers.own

    class FullDisk(CutOff):
        def open_group(self, run, group, record, receipt):
            raise LedgerError(Reason.STORE_UNAVAILABLE, "no space left")

    monkeypatch.setattr(Ledgers, "own", lambda ledgers: FullDisk(own(ledgers)))
    result = ran(case).result
    assert (result.verdict, result.reason) == (Verdict.COULD_NOT_RUN, "store_unavailable")
