"""What the ends of a run leave in its receipts, and who may stop what."""

import pytest
from live_bench import APPROVE, CLICKED, HOLD, KEYS, LOOKING, OTHER_HOST, VM, a_bench, a_choice, choosing
from marks import promise

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.keys import Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.dispatch import Moment
from assisted_benchmark.live_policy.ending import Finding
from assisted_benchmark.live_policy.ports import Uncertain
from assisted_benchmark.live_policy.states import State

TOLD = ("kind", "reason", "group", "candidate", "server", "tool", "arguments", "before", "state", "detail")


def told(bench, run="run-1"):
    """What a run's receipts say."""
    return [tuple(each[key] for key in TOLD) for each in bench.receipts(run)]


def elsewhere(bench):
    other = bench.a_broker()
    other.open(bench.sealed.data, bench.session)
    return other


@promise("L23")
def test_a_teardown_is_a_claim_and_an_outcome_in_a_run_of_its_own():
    bench = a_choice()
    bench.broker.teardown(bench.session)
    name = digest_of("teardown@1", b"run-1", VM.encode())
    keyed = bench.broker._desk.keyed(canonical_bytes({"vm": VM}))
    call = (name[7:], name, "", "teardown", keyed)
    assert told(bench, "run-1#teardown") == [
        ("decision", "admitted", *call, "sealed", "dispatching", ""),
        ("outcome", "succeeded", *call, "dispatching", "succeeded", ""),
    ]
    assert [each[1:3] for each in told(bench)] == [("cancelled", bench.receipts()[0]["group"])]


@promise("L24")
def test_a_teardown_that_went_wrong_says_so_in_its_receipt():
    bench = a_choice()
    bench.machine.fails = OSError("no answer")
    bench.broker.teardown(bench.session)
    receipt = bench.receipts("run-1#teardown")[-1]
    said = tuple(receipt[key] for key in ("reason", "state", "detail"))
    assert said == ("outcome_unknown", "unresolved", "OSError in the teardown")


@promise("L24")
def test_a_vm_on_another_host_is_named_in_the_answer_and_in_the_receipt():
    bench = a_choice()
    bench.machine.host = OTHER_HOST
    torn = bench.broker.teardown(bench.session)
    assert torn.detail == bench.receipts()[-1]["detail"] == f"the VM {VM} is on another host: nothing was sent"


@promise("L23")
def test_a_reconciliation_is_recorded_with_the_digest_of_its_evidence():
    bench = a_choice()
    bench.world._answer = lambda claimed: Uncertain(Reason.OUTCOME_UNKNOWN, "no answer came", bench.clock.now())
    group = bench.propose(choosing(APPROVE)).permit.group.hex()
    finding = Finding(group, State.FAILED, b'{"clicked":false}')
    bench.broker.reconcile(bench.session.grant, finding, finding.signed(KEYS.key(Purpose.OPERATOR)))
    evidence = digest_of("evidence@1", b'{"clicked":false}')
    assert bench.receipts()[-1]["detail"] == f"found `failed`, evidence {evidence}"


@promise("L23")
def test_a_call_that_is_cancelled_in_flight_is_named_in_the_receipt_of_its_end():
    bench = a_choice()
    stopped = []
    bench.at(Moment.ANSWER, lambda: stopped.append(bench.broker.abort(bench.session)))
    permit = bench.propose(choosing(APPROVE)).permit
    assert stopped == [(State.UNRESOLVED,)]
    end = next(each for each in told(bench) if each[0] == "outcome")
    keyed = bench.broker._desk.keyed(permit.arguments)
    call = (permit.group.hex(), permit.candidate, "synthetic-ui", "click_target", keyed)
    detail = "cancelled while the call was in flight"
    assert end == ("outcome", "outcome_unknown", *call, "dispatching", "unresolved", detail)


@promise("L23")
def test_a_run_that_is_cancelled_after_a_call_came_to_its_end_keeps_that_end():
    bench = a_bench()
    bench.propose(LOOKING)
    assert bench.broker.abort(bench.session) == (State.SUCCEEDED, State.ABORTED)
    assert [each[1] for each in told(bench)] == ["admitted", "succeeded", "cancelled"]


@promise("L23")
def test_what_stopped_a_grant_first_is_why_its_call_was_not_sent():
    bench = a_choice()

    def strike():
        bench.broker.revoke(bench.session.grant)
        bench.broker.abort(bench.session)

    bench.at(Moment.CLAIMED, strike)
    outcome = bench.propose(choosing(APPROVE))
    assert (outcome.state, outcome.reason) == (State.FAILED, Reason.REVOKED)


@promise("L23")
@pytest.mark.parametrize("moment", [Moment.CLAIMED, Moment.ANSWER])
def test_a_broker_that_carried_an_earlier_step_itself_gives_up_the_later_one_that_another_carries(moment):
    bench = a_bench()
    assert bench.propose(LOOKING).state is State.SUCCEEDED
    other = elsewhere(bench)
    stopped = []
    bench.at(moment, lambda: stopped.append(bench.broker.abort(bench.session)))
    outcome = other.propose(bench.session, choosing(HOLD))
    assert stopped == [(State.SUCCEEDED, State.UNRESOLVED)]
    assert outcome.state is State.UNRESOLVED
    assert outcome.result != CLICKED
    assert bench.calls == {"lba": 1, "synthetic-ui": 0 if moment is Moment.CLAIMED else 1}
    end = next(each for each in bench.receipts() if each["state"] == "unresolved")
    assert end["detail"] == "stopped while another broker may be carrying the call"
