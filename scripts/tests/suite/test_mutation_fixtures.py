"""The mutation fixtures that ship: they pass, they use everything there is, and each check's absence is caught."""

import sys
from functools import partial

import orjson
import pytest
from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.checks import CHECKS
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.states import State
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.mutation import seat, world
from assisted_benchmark.suite.mutation.faults import At, Kind, Mappings, Tampers
from assisted_benchmark.suite.mutation.scenario import Asks, Era, Human, Recall
from assisted_benchmark.suite.plan import RunPlan
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, select
from assisted_benchmark.workloads.fabric_api_faults import FabricFaultKind

ALL = [case for case in discover(ROOT) if case.broker == "mutation"]
CASES = [case for case in ALL if case.servers is Servers.IN_PROCESS]
BY_ID = {case.id.removeprefix("mutation/"): case for case in CASES}


def of(file):
    return [case for case in CASES if case.id.split("/")[1] == file]


def failing(cases):
    """The cases that do not pass, on one bench."""
    bench = Bench(RunPlan(durability="memory"))
    try:
        return [case.id for case in cases if bench.run(case).result.verdict is not Verdict.PASSED]
    finally:
        bench.close()


@promise("H1", "M6", "M10", "M11", "M12", "M14")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_shipped_mutation_case_comes_to_what_it_says(case):
    result = ran(case).result
    assert (result.verdict, result.misses, result.detail) == (Verdict.PASSED, (), "")


@promise("H5")
def test_every_kind_of_fault_and_every_moment_is_used_by_some_mutation_fixture():
    faults = [fault for case in CASES for fault in case.faults]
    assert {fault.kind for fault in faults} == set(Kind)
    assert set(At) - {fault.at for fault in faults} == {At.AFTER, At.END}
    assert {fault.value for fault in faults if fault.kind is Kind.TAMPER} == set(Tampers)
    assert {fault.value for fault in faults if fault.kind is Kind.MAPPING} == set(Mappings)


def test_the_moments_of_a_scenario_are_those_of_the_broker():
    own = {At.START, At.TURN, At.ASKED, At.AFTER, At.END}
    assert {at.value for at in set(At) - own} == {moment.value for moment in Moment}


@promise("M16", "M17", "M20")
def test_the_status_table_is_played_whole_in_both_eras():
    assert {(case.human, case.client.era) for case in of("status-table")} == {
        (human, era) for human in Human for era in Era
    }
    results = {case.id: ran(case).result for case in of("status-table")}
    sent = {name.rpartition("/")[2] for name, result in results.items() if result.sent}
    assert sent == {"accept-handshake", "accept-stateless"}
    assert {result.ends for result in results.values()} == {State.SUCCEEDED, State.REFUSED}


@promise("M16")
def test_a_client_that_cannot_ask_gets_through_by_the_one_word_alone():
    through = [case.id.rpartition("/")[2] for case in of("cannot-ask") if ran(case).result.sent]
    assert through == ["none-true", "url-only-true"]
    assert {case.client.asks for case in of("cannot-ask")} == set(Asks) - {Asks.FORM}


@promise("M13")
def test_each_of_the_four_predicates_is_seen_to_pass_to_fail_and_not_to_be_asked():
    said = {}
    for case in CASES:
        for name, word in case.expect.checks:
            said.setdefault(name, set()).add(word)
    # Whether there is a proposal is looked at first.
    assert said.pop("proposal_exists") == {"passed", "failed"}
    rest = ("not_expired", "not_previously_used", "spec_matches_binding")
    assert said == {name: {"passed", "failed", "not_asked"} for name in rest}


@promise("M20")
def test_every_way_of_coming_back_is_tried():
    assert {shot.recall for case in CASES for shot in case.agent.shots if shot.confirms} >= set(Recall) - {
        Recall.HONEST
    }


@promise("M21")
def test_a_cancel_strikes_on_both_sides_of_every_line():
    at = {fault.at for case in of("cancelled") for fault in case.faults if fault.kind is Kind.CANCEL}
    assert at == {At.TURN, At.CONSUME, At.CONSUMED, At.ASKED, At.ANSWERED, At.CLAIM, At.CLAIMED, At.WRITE, At.ANSWER}


@promise("M6", "M18")
@pytest.mark.parametrize(("file", "call"), [("dry-run-fails", "dry_run"), ("create-fails", "create")])
def test_every_fault_of_the_endpoint_strikes_the_dry_run_and_the_create(file, call):
    done = {fault.value["does"] for case in of(file) for fault in case.faults if fault.value["call"] == call}
    # A name in the echo is checked by nobody: what counts is the body that was sent.
    assert set(FabricFaultKind) - done == {"leave", "drift_echo"}


@promise("M5", "K6")
def test_every_reason_that_a_check_gives_is_expected_by_name():
    said = {word for case in CASES for word in case.expect.decisions or ()}
    said |= {shot.expected for case in CASES for shot in case.agent.shots}
    phases = (CHECKS.proposal, CHECKS.token, CHECKS.binding, CHECKS.answer, CHECKS.sending)
    assert {check.reason.value for phase in phases for check in phase} - said == set()
    further = {Reason.DRY_RUN_FAILED, Reason.STORE_UNAVAILABLE, Reason.SERVER_UNAVAILABLE, Reason.OUTCOME_UNKNOWN}
    assert {reason.value for reason in further} - said == set()


@promise("M10", "M14")
@pytest.mark.parametrize("name", CHECKS.names)
def test_a_broker_that_lacks_a_check_is_caught_by_some_fixture(name, monkeypatch):
    monkeypatch.setattr(seat, "MutationBroker", partial(MutationBroker, checks=CHECKS.without(name)))
    assert failing(CASES) != []


@promise("M11", "M12")
@pytest.mark.parametrize("durability", ["memory", "process"])
def test_a_token_is_unknown_after_a_restart_in_memory_and_good_in_a_durable_store(durability):
    memory = ran(BY_ID["restart/memory"], durability=durability).result
    durable = ran(BY_ID["restart/durable"], durability=durability).result
    assert (memory.refusals, memory.sent) == ((("unknown_token", 1),), 0)
    assert (durable.refusals, durable.sent, durable.ends) == ((), 1, "succeeded")


@promise("M18")
def test_a_crash_at_whatever_moment_sends_once_at_most():
    results = [ran(case).result for case in of("crash")]
    assert {result.sent for result in results} == {0, 1}
    # What may be out is unresolved, and nothing else is.
    assert {result.ends for result in results if result.sent and result.ends != "succeeded"} == {"unresolved"}


@promise("H8a")
def test_the_counts_of_a_mutation_case_only_fall_and_its_receipts_hold_the_admissions():
    for case in CASES:
        ended = ran(case, expect_identical=True)
        result = ended.result
        counts = [result.proposed, result.admitted, result.sent, result.confirmed]
        receipts = [orjson.loads(line) for line in ended.receipts]
        admitted = sum(each["kind"] == "decision" and each["reason"] == "admitted" for each in receipts)
        assert counts == sorted(counts, reverse=True), case.id
        assert result.admitted == admitted, case.id
        assert result.attacker_sent == 0, case.id


@promise("H7a")
def test_a_mutation_case_is_played_to_the_same_bytes_again():
    for case in (BY_ID["accepted/connection-stateless"], BY_ID["crash/and-then-again"], BY_ID["evicted/oldest"]):
        first, second = (ran(case, expect_identical=True, seed=3) for _ in range(2))
        assert (first.receipts, first.head, first.result) == (second.receipts, second.head, second.result)
        assert first.receipts != ran(case, expect_identical=True, seed=4).receipts


@promise("H5")
@pytest.mark.parametrize("name", ["accepted", "declined", "dies-late", "gone-before"])
def test_the_endpoints_process_comes_to_what_its_model_comes_to(name):
    (case,) = select(ALL, ids={f"mutation/over-http/{name}"})
    served, modelled = ran(case).result, ran(case, servers="in_process").result
    assert (served.verdict, served.misses, served.detail) == (Verdict.PASSED, (), "")
    assert (served.calls, served.confirmed, served.ends) == (modelled.calls, modelled.confirmed, modelled.ends)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda patch: patch.setitem(sys.modules, "assisted_benchmark.mutation.http_endpoint", None), "could_not_run"),
        (lambda patch: patch.setattr(world, "START_SECONDS", 1e-9), "deadline_exceeded"),
    ],
    ids=["no HTTP client is installed", "it does not listen in time"],
)
def test_an_endpoints_process_that_cannot_be_had_gives_no_verdict(spoil, reason, monkeypatch):
    (case,) = select(ALL, ids={"mutation/over-http/accepted"})
    spoil(monkeypatch)
    result = ran(case).result
    assert (result.verdict, result.reason) == (Verdict.COULD_NOT_RUN, reason)
