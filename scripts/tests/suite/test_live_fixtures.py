"""The fixtures that ship: they all pass, and between them they provoke everything that can be provoked."""

import orjson
import pytest
from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.kernel.reasons import LIVE_ORDER
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.live.faults import At, Kind
from assisted_benchmark.suite.result import VARIES, Verdict
from assisted_benchmark.suite.runner import discover
from assisted_benchmark.workloads.faults import FaultKind

ALL = discover(ROOT)
CASES = [case for case in ALL if case.broker == "live" and case.servers is Servers.IN_PROCESS]


@promise("H1", "H8")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_shipped_case_comes_to_what_it_says(case):
    result = ran(case).result
    assert (result.verdict, result.misses) == (Verdict.PASSED, ())
    assert bool(result.detail) is (VARIES in result.stamps)  # how a program ended, and nothing else


def laws_of(ended):
    """The counts of a case, in the order that they may only fall in, and the admissions that its receipts hold."""
    result = ended.result
    receipts = [orjson.loads(line) for line in ended.receipts]
    admissions = sum(each["kind"] == "decision" and each["reason"] == "admitted" for each in receipts)
    return [result.proposed, result.admitted, result.sent, result.confirmed], admissions


@promise("H8")
def test_no_more_is_admitted_than_proposed_sent_than_admitted_and_confirmed_than_sent():
    for case in discover(ROOT, real=True):
        ended = ran(case, expect_identical=True)
        counts, admissions = laws_of(ended)
        assert counts == sorted(counts, reverse=True), case.id
        assert ended.result.admitted == admissions, case.id


@pytest.mark.parametrize(
    ("case", "counts"),
    [
        ("crash/after-the-answer", [3, 2, 2, 2]),
        ("crash/before-the-outcome", [3, 2, 2, 2]),
        ("crash/after-the-marker", [3, 2, 1, 1]),
        ("crash/before-the-marker", [3, 2, 2, 2]),
        ("race/the-sibling", [3, 2, 2, 2]),
        ("another-setting/opened-on-another-vm", [1, 0, 0, 0]),
        ("policy-drift/changed-before-sealing", [1, 0, 0, 0]),
        ("over-stdio/plain", [2, 2, 2, 2]),
    ],
)
def test_a_claim_is_an_admission_though_its_broker_died_and_a_rival_is_a_proposal(case, counts):
    (found,) = [each for each in ALL if each.id == f"live/{case}"]
    assert laws_of(ran(found))[0] == counts


@promise("K6")
def test_every_reason_of_the_live_broker_is_provoked_by_some_fixture_and_expected_by_name():
    expected = {case.expect.refused for case in CASES}
    expected |= {word for case in CASES for word in case.expect.decisions or ()}
    expected |= {shot.expected for case in CASES for shot in case.agent.shots}
    assert {reason.value for reason in LIVE_ORDER} - expected == set()


@promise("H5")
def test_every_kind_of_fault_and_every_moment_is_used_by_some_fixture():
    faults = [fault for case in CASES for fault in case.faults]
    assert {fault.kind for fault in faults} == set(Kind)
    assert {fault.at for fault in faults} == set(At)
    assert {fault.value["does"] for fault in faults if fault.kind is Kind.SERVER} == set(FaultKind)


@promise("L13")
@pytest.mark.parametrize(
    ("file", "reasons"),
    [
        ("unknown-server", {"unknown_server"}),
        ("substituted-server", {"contract_drift", "server_substituted"}),
        ("contract-drift", {"contract_drift"}),
        ("altered-arguments", {"arguments_altered", "arguments_invalid"}),
        ("retyped-number", {"arguments_altered", "arguments_invalid", "non_canonical_number"}),
        ("wrong-target", {"wrong_target"}),
        ("unknown-tool", {"unknown_tool", "effect_mismatch", "not_a_candidate"}),
        ("order", {"skipped", "replayed"}),
        ("choice-before-its-time", {"out_of_order"}),
        ("expiry", {"expired", "not_yet_valid", "clock_rollback", "late_result"}),
        ("another-setting", {"cross_run", "wrong_vm", "wrong_host", "wrong_principal", "unknown_grant"}),
        ("malformed", {"malformed_call", "duplicate_key", "malformed_unicode", "too_deep", "too_large"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_way_of_being_refused_before_the_dispatch_has_its_scenario_and_sends_nothing_more(file, reasons):
    results = [ran(case).result for case in CASES if case.id.split("/")[1] == file]
    refused = {reason for result in results for reason, _ in result.refusals}
    assert reasons <= refused
    assert sum(result.attacker_sent for result in results) == 0
