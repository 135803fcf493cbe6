"""Cancellation: only of what is under way there; the first reason wins, and the operation's own end is reported."""

import pytest
from capability_bench import OTHER, SESSION, STATE_READ, CapabilityBench, an_instance
from marks import promise

from assisted_benchmark.capability.carrying import Moment
from assisted_benchmark.capability.ports import Cancellation, Unavailable, Word
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.reasons import Reason


def cancel(bench, session=SESSION, instance_id="instance-1", request_id="r-1"):
    return bench.manage("cancel", session, instance_id=instance_id, request_id=request_id)


def while_under_way(bench, act, word=Word.CANCELLED):
    """Ask for a read, and do `act` while the host is at it; what `act` and the read came to."""
    came = []

    def execute(claimed, envelope):
        came.append(act())
        return bench.world.ended(b"", word) if word is Word.CANCELLED else bench.execute(claimed, envelope)

    bench.world.execute = execute
    return bench.ask(STATE_READ, request_id="r-1"), came[0]


@promise("C26")
def test_a_cancellation_sends_the_canonical_envelope_and_the_end_is_the_hosts():
    bench = CapabilityBench()
    answer, cancelled = while_under_way(bench, lambda: cancel(bench))
    assert bench.world.cancelled == [Cancellation("r-1", "instance-1", "publication-1", "client-1", "cancelled")]
    assert bench.told("pulp_control_cancel", cancelled) == {
        "ok": True,
        "status": "cancellation_requested",
        "data": {"request_id": "r-1"},
    }
    assert (answer.state, answer.reason, bench.groups()) == (State.CANCELLED, Reason.CANCELLED, ["cancelled"])


@promise("C26")
def test_an_operation_that_completes_all_the_same_is_completed():
    bench = CapabilityBench()
    answer, cancelled = while_under_way(bench, lambda: cancel(bench), Word.COMPLETED)
    assert (answer.state, answer.reason, cancelled.status) == (State.COMPLETED, None, "cancellation_requested")


@promise("C26")
@pytest.mark.parametrize(
    "wrong",
    [{"session": OTHER}, {"instance_id": "instance-2"}, {"request_id": "r-2"}],
    ids=["client", "instance", "request"],
)
def test_only_the_clients_own_request_on_that_instance_is_cancelled(wrong):
    bench = CapabilityBench(instances=(an_instance(), an_instance("instance-2")))
    answer, refused = while_under_way(bench, lambda: cancel(bench, **wrong), Word.COMPLETED)
    assert (refused.reason, answer.state, bench.world.cancelled) == (Reason.NOT_FOUND, State.COMPLETED, [])


@promise("C26")
def test_a_request_on_an_older_publication_is_not_cancelled():
    bench = CapabilityBench()

    def publish_and_cancel():
        bench.world.live = (an_instance(publication="publication-2"),)
        return cancel(bench)

    answer, refused = while_under_way(bench, publish_and_cancel, Word.COMPLETED)
    assert (refused.reason, bench.world.cancelled) == (Reason.NOT_FOUND, [])
    assert answer.state is State.COMPLETED_AFTER_REVOCATION


@promise("C26")
def test_what_has_ended_is_not_cancelled():
    bench = CapabilityBench()
    bench.ask(STATE_READ, request_id="r-1")
    assert cancel(bench).reason is Reason.NOT_FOUND


@promise("C26")
@pytest.mark.parametrize("moment", [Moment.ADMITTED, Moment.CLAIMED])
def test_a_cancellation_before_the_request_is_written_keeps_it_in(moment):
    bench = CapabilityBench()
    bench.at(moment, lambda: cancel(bench))
    answer = bench.ask(STATE_READ, request_id="r-1")
    assert (answer.state, answer.reason) == (State.CANCELLED, Reason.CANCELLED)
    assert (bench.executed, bench.world.cancelled) == ({}, [])


@promise("C26")
def test_the_first_reason_wins_and_the_host_is_told_once():
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)

    def revoke_then_cancel():
        bench.manage("revoke", grant_id=grant)
        return cancel(bench)

    bench.world.execute = lambda claimed, envelope: (revoke_then_cancel(), bench.world.ended(b"", Word.CANCELLED))[1]
    answer = bench.ask(STATE_READ, grant_id=grant, request_id="r-1")
    assert (answer.state, answer.reason) == (State.CANCELLED, Reason.REVOKED)
    assert [each.reason for each in bench.world.cancelled] == ["revoked"]


@promise("C26")
def test_a_host_that_cannot_be_told_is_said():
    bench = CapabilityBench()
    bench.world.fails["cancel"] = Unavailable(Reason.SERVER_UNAVAILABLE, "no answer")
    answer, refused = while_under_way(bench, lambda: cancel(bench))
    assert (refused.reason, answer.state) == (Reason.SERVER_UNAVAILABLE, State.CANCELLED)


@promise("C24", "C26")
def test_the_same_request_while_it_is_under_way_is_not_executed_again():
    bench = CapabilityBench()
    answer, again = while_under_way(bench, lambda: bench.ask(STATE_READ, request_id="r-1"), Word.COMPLETED)
    assert (again.reason, again.state, again.receipt_id) == (
        Reason.DUPLICATE_REQUEST_ID,
        State.RUNNING,
        answer.receipt_id,
    )
    assert bench.executed == {STATE_READ: 1}
    assert bench.told("pulp_control_state_read", again)["error"]["data"]["state"] == "running"
