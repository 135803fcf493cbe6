"""The fixtures that ship: they all pass, and between them they provoke everything that can be provoked."""

import pytest
from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.kernel.reasons import LIVE_ORDER
from assisted_benchmark.suite.faults import At, Kind
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover
from assisted_benchmark.suite.scenario import Servers
from assisted_benchmark.workloads.faults import FaultKind

CASES = [case for case in discover(ROOT) if case.servers is Servers.IN_PROCESS]


@promise("H1", "H8")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_shipped_case_comes_to_what_it_says(case):
    result = ran(case).result
    assert (result.verdict, result.misses, result.detail) == (Verdict.PASSED, (), "")


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
