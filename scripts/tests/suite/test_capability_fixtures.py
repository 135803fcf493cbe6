"""The capability fixtures that ship: they pass, they use everything there is, and each check's absence is caught."""

from functools import partial

import orjson
import pytest
from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.capability.admission import EARLY, LATE
from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.carrying import LOOKS, Moment
from assisted_benchmark.capability.states import ACTIVE, State
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.capability import seat, world
from assisted_benchmark.suite.capability.faults import At, Dies, Kind, Others
from assisted_benchmark.suite.capability.scenario import GOOD, Person
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.plan import RunPlan
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, run, verify_run
from assisted_benchmark.workloads.plugin_host_faults import HostFaultKind, Step

ALL = [case for case in discover(ROOT) if case.broker == "capability"]
CASES = [case for case in ALL if case.servers is Servers.IN_PROCESS]
BY_ID = {case.id.removeprefix("capability/"): case for case in ALL}
FAULTS = [fault for case in CASES for fault in case.faults]


def of(file):
    return [case for case in CASES if case.id.split("/")[1] == file]


def first_failing(cases):
    """The first case that does not pass, on one bench; empty if all do."""
    bench = Bench(RunPlan(durability="memory"))
    try:
        return next((case.id for case in cases if bench.run(case).result.verdict is not Verdict.PASSED), "")
    finally:
        bench.close()


def words_of(cases):
    """What each call of these cases must come to, by what is said."""
    said = {word for case in cases for word in case.expect.decisions or ()}
    said |= {shot.expected for case in cases for shot in case.agent.shots}
    return said | {case.expect.refused.value for case in cases if case.expect.refused}


@promise("H1", "C10", "C11", "C14", "C20", "C21", "C24", "C25")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_shipped_capability_case_comes_to_what_it_says(case):
    result = ran(case).result
    assert (result.verdict, result.misses, result.detail) == (Verdict.PASSED, (), "")


@promise("C3", "C7")
def test_every_operation_that_is_advertised_is_executed_with_success():
    registry = CASES[0].registry
    done = {name for case in of("every-operation") for name, _ in ran(case).result.calls}
    read = {"dev.pulp.artifact/read@1"}  # which executes nothing at a host
    assert done | read == {each.id for each in registry.operations if each.advertised}
    assert {word for case in of("artifacts") for word in case.expect.decisions or () if case.expect.result} == {
        "granted",
        "completed",
    }


@promise("H5")
def test_every_kind_of_fault_and_every_moment_is_used_by_some_capability_fixture():
    assert {fault.kind for fault in FAULTS} == set(Kind)
    assert {fault.at for fault in FAULTS} == set(At)
    assert {fault.value for fault in FAULTS if fault.kind is Kind.ENROLLED} == set(Others)
    for kind in (Kind.CRASH, Kind.RESTART):
        assert {fault.value for fault in FAULTS if fault.kind is kind} == set(Dies)


def test_the_moments_of_a_capability_scenario_are_those_of_the_broker_and_of_what_it_reaches():
    own = {At.START, At.TURN, At.CONNECT, At.INVENTORY, At.ASK, At.NEGOTIATE, At.NEGOTIATED, At.HANGING}
    assert {at.value for at in set(At) - own - {At.AFTER, At.END}} == {moment.value for moment in Moment}


@promise("H5", "C23")
def test_every_fault_of_the_host_strikes_somewhere_and_every_step_fails_in_every_way():
    host = [fault.value for fault in FAULTS if fault.kind is Kind.HOST]
    assert {each["does"] for each in host} == set(HostFaultKind)
    failing = {(each["step"], each["does"]) for each in host if "step" in each}
    ways = {does for step, does in failing if step == Step.ENROL}
    assert len(ways) >= 12
    assert {(step, does) for step in (Step.INVENTORY, Step.NEGOTIATE) for does in ways} <= failing


@promise("C23")
@pytest.mark.parametrize(("file", "who"), [("broker-crash", Dies.BROKER), ("host-crash", Dies.HOST)])
def test_broker_and_host_die_at_every_durable_step(file, who):
    at = {fault.at for case in of(file) for fault in case.faults if fault.kind is Kind.CRASH and fault.value == who}
    assert at >= {At(moment.value) for moment in Moment}
    results = [ran(case).result for case in of(file)]
    assert {state for case in of(file) for state in case.expect.states or ()} >= {"cancelled", "unknown_needs_refresh"}
    assert all(result.confirmed <= result.admitted for result in results)


@promise("C19", "C22")
def test_every_answer_of_the_person_and_every_status_of_a_grant_is_expected_by_name():
    assert {case.person for case in of("consent")} | {
        Person(shot.person) for case in CASES for shot in case.agent.shots if shot.person
    } == set(Person)
    statuses = {
        Reason.INVALID_REQUEST,
        Reason.BROKER_MISMATCH,
        Reason.CLIENT_UNAVAILABLE,
        Reason.REGISTRATION_UNAVAILABLE,
        Reason.CONSENT_REQUIRED,
        Reason.CONSENT_REPLAY,
        Reason.CAPABILITY_UNAVAILABLE,
        Reason.NOT_FOUND,
        Reason.EXPIRED,
        Reason.REVOKED,
    }
    assert {reason.value for reason in statuses} | {"granted"} <= words_of(of("grants"))


@promise("C15", "K6")
def test_every_reason_that_a_check_gives_is_expected_by_name():
    # An artifact's read has a way of its own, so no call can come to it as an operation; its bound is the envelope's.
    elsewhere = {Reason.ACL_ONLY.value, Reason.TOO_LARGE.value}
    checks = {check.reason.value for check in EARLY} | {check.reason.value for check in LATE}
    assert checks - elsewhere - words_of(CASES) == set()


@promise("C23")
def test_every_state_in_which_an_operation_can_end_is_expected_by_name():
    said = {state for case in CASES for state in case.expect.states or ()}
    assert said == {state.value for state in State if state not in ACTIVE}


# Behind each of these stands a second one that gives the same reason: the way of a read, the envelope's own bound, the
# host's own look at its time, and the spending of a grant at the admission.
TWICE = {Reason.ACL_ONLY, Reason.TOO_LARGE, Reason.DEADLINE_EXCEEDED, Reason.CONSENT_REQUIRED}


@promise("C15", "H12")
@pytest.mark.parametrize("reason", [check.reason for check in EARLY if check.reason not in TWICE])
def test_a_broker_that_lacks_an_early_check_is_caught_by_some_fixture(reason, monkeypatch):
    without = tuple(check for check in EARLY if check.reason is not reason)
    monkeypatch.setattr(seat, "CapabilityBroker", partial(CapabilityBroker, early=without))
    assert first_failing(CASES) != ""


@promise("C14", "C15", "H12")
@pytest.mark.parametrize("reason", [check.reason for check in LATE if check.reason not in TWICE])
def test_a_broker_that_lacks_a_late_check_is_caught_by_some_fixture(reason, monkeypatch):
    without = tuple(check for check in LATE if check.reason is not reason)
    monkeypatch.setattr(seat, "CapabilityBroker", partial(CapabilityBroker, late=without))
    assert first_failing(CASES) != ""


@promise("C15", "C25", "H12")
@pytest.mark.parametrize("name", [look.name for look in LOOKS if look.name != "deadline"])
def test_a_broker_that_does_not_look_once_more_is_caught_by_some_fixture(name, monkeypatch):
    without = tuple(look for look in LOOKS if look.name != name)
    monkeypatch.setattr(seat, "CapabilityBroker", partial(CapabilityBroker, looks=without))
    assert first_failing(CASES) != ""


@promise("H8a")
def test_the_counts_of_a_capability_case_only_fall_and_its_receipts_hold_the_admissions():
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
@pytest.mark.parametrize("name", ["every-operation/parameter-gesture", "broker-crash/and-again-behind-the-marker"])
def test_a_capability_case_is_played_to_the_same_bytes_again(name):
    first, second = (ran(BY_ID[name], expect_identical=True, seed=3) for _ in range(2))
    assert (first.receipts, first.head, first.result) == (second.receipts, second.head, second.result)
    assert first.receipts != ran(BY_ID[name], expect_identical=True, seed=4).receipts


@promise("H5", "H8a")
@pytest.mark.parametrize(
    "name",
    [
        "over-a-socket/executed",
        "over-a-socket/an-artifact",
        "over-a-socket/dies-behind-the-act",
        "over-a-socket/started-again",
        "cancelled/while-the-host-waits",
        "lost-authority/published-anew-at-the-answer",
        "host-crash/at-claimed",
        "deadline/the-least",
    ],
)
def test_the_hosts_process_comes_to_what_its_model_comes_to(name):
    served, modelled = (ran(BY_ID[name], servers=servers).result for servers in ("process", "in_process"))
    assert (served.verdict, served.misses, served.detail) == (Verdict.PASSED, (), "")
    assert (served.calls, served.refusals, served.ends) == (modelled.calls, modelled.refusals, modelled.ends)


def test_a_host_that_dies_in_mid_write_stays_a_model():
    assert [case.id for case in CASES if case.only_models] == ["capability/host-crash/at-write"]


def test_a_hosts_process_that_is_not_ready_in_time_gives_no_verdict(monkeypatch):
    monkeypatch.setattr(world, "START_NS", 1)
    result = ran(BY_ID["over-a-socket/executed"]).result
    assert (result.verdict, result.reason) == (Verdict.COULD_NOT_RUN, "deadline_exceeded")


@promise("H15", "H19")
def test_receipts_of_operations_are_exported_and_verified_under_their_own_table(tmp_path):
    names = ("every-operation/ui-capture-window", "lost-authority/revoked-at-the-answer", "sanity-agents/nop")
    result = run([BY_ID[name] for name in names], RunPlan(directory=tmp_path / "run"))
    assert [each.verdict for each in result.cases] == [Verdict.PASSED] * 3
    assert verify_run(tmp_path / "run") == ()
    receipts = tmp_path / "run/receipts.jsonl"
    receipts.write_bytes(receipts.read_bytes().replace(b'"running"', b'"rumning"', 1))
    assert {problem.reason.value for problem in verify_run(tmp_path / "run")} == {"chain_broken"}


def test_a_word_that_is_good_is_no_reason():
    assert set(GOOD) & {reason.value for reason in Reason} == set()
