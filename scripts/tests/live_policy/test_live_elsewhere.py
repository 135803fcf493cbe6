"""Two brokers over one ledger, and one that opens a grant twice: what stops a call that another carries."""

import pytest
from live_bench import APPROVE, HOLD, KEYS, LiveBench, a_choice, a_group, a_policy, choosing
from marks import promise

from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.keys import Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.live_policy.dispatch import Moment
from assisted_benchmark.live_policy.ending import Finding
from assisted_benchmark.live_policy.states import LIVE_TABLE, State

ONE_CLICK = {"lba": 0, "synthetic-ui": 1}
NOTHING = {"lba": 0, "synthetic-ui": 0}
STOPS = {
    "revoke": lambda broker, session: broker.revoke(session.grant),
    "abort": lambda broker, session: broker.abort(session),
    "recover": lambda broker, session: broker.recover(),
}


def elsewhere(bench, ledger=None):
    """Another broker, with the same grant open."""
    other = bench.a_broker(ledger=ledger or bench.ledger)
    other.open(bench.sealed.data, bench.session)
    return other


def moves(bench):
    return [(each["before"], each["state"]) for each in bench.receipts() if each["before"]]


@promise("L23")
def test_a_grant_that_is_opened_again_while_its_call_is_in_flight_can_still_be_stopped():
    bench = a_choice()

    def strike():
        bench.broker.open(bench.sealed.data, bench.session)
        bench.broker.abort(bench.session)

    bench.at(Moment.CLAIMED, strike)
    outcome = bench.propose(choosing(APPROVE))
    assert (outcome.state, outcome.reason) == (State.FAILED, Reason.CANCELLED)
    assert bench.calls == NOTHING


@promise("L23")
def test_a_grant_that_is_opened_again_stays_stopped():
    bench = a_choice()

    def strike():
        bench.broker.revoke(bench.session.grant)
        bench.broker.open(bench.sealed.data, bench.session)

    bench.at(Moment.CLAIMED, strike)
    assert bench.propose(choosing(APPROVE)).reason is Reason.REVOKED
    assert bench.calls == NOTHING


@promise("L23")
@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_what_another_broker_stops_before_the_write_is_not_written(stop):
    bench = a_choice()
    other = elsewhere(bench)
    bench.at(Moment.CLAIMED, lambda: stop(other, bench.session))
    outcome = bench.propose(choosing(APPROVE))
    assert (outcome.state, outcome.reason) == (State.UNRESOLVED, Reason.CANCELLED)
    assert bench.calls == NOTHING
    assert moves(bench) == [("sealed", "dispatching"), ("dispatching", "unresolved")]
    last = bench.receipts()[-1]
    assert (last["kind"], last["reason"], last["id"]) == ("event", "cancelled", outcome.receipt_id)
    assert bench.propose(choosing(HOLD)).reason is Reason.ALREADY_SELECTED


@promise("L23")
@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_what_another_process_stops_before_the_write_is_not_written(tmp_path, stop):
    path, anchor = tmp_path / "ledger.db", tmp_path / "anchor"
    ours = SqliteLedger.create(path, ledger_id="ledger-1", table=LIVE_TABLE, keys=KEYS, anchor=anchor)
    bench = LiveBench(a_policy(a_group()), ledger=ours).seal()
    theirs = SqliteLedger.open(path, table=LIVE_TABLE, keys=KEYS, anchor=anchor)
    other = elsewhere(bench, theirs)
    bench.at(Moment.CLAIMED, lambda: stop(other, bench.session))
    outcome = bench.propose(choosing(APPROVE))
    assert (outcome.state, outcome.reason) == (State.UNRESOLVED, Reason.CANCELLED)
    assert bench.calls == NOTHING
    theirs.close()
    ours.close()


@promise("L23", "L24")
def test_after_a_reconciliation_and_a_teardown_elsewhere_the_call_is_not_written():
    bench = a_choice()
    other = elsewhere(bench)

    def strike():
        (group,) = other.recover()
        finding = Finding(group.hex(), State.FAILED, b"{}")
        other.reconcile(bench.session.grant, finding, finding.signed(KEYS.key(Purpose.OPERATOR)))
        assert other.teardown(bench.session).state is State.SUCCEEDED

    bench.at(Moment.CLAIMED, strike)
    assert bench.propose(choosing(APPROVE)).reason is Reason.CANCELLED
    assert bench.calls == NOTHING


@promise("L23")
def test_what_another_broker_stops_after_the_write_is_unresolved_and_the_answer_is_told_beside_it():
    bench = a_choice()
    other = elsewhere(bench)
    bench.at(Moment.ANSWER, lambda: other.abort(bench.session))
    outcome = bench.propose(choosing(APPROVE))
    assert (outcome.state, outcome.reason) == (State.UNRESOLVED, Reason.OUTCOME_UNKNOWN)
    assert (outcome.result, outcome.detail) == (b"", "given up in flight")
    assert bench.calls == ONE_CLICK
    assert [(each["kind"], each["reason"]) for each in bench.receipts()] == [
        ("decision", "admitted"),
        ("outcome", "outcome_unknown"),
        ("event", "succeeded"),
    ]
    given_up = bench.receipts()[1]
    assert (given_up["state"], given_up["candidate"]) == ("unresolved", outcome.permit.candidate)


@promise("L23")
def test_a_call_given_up_elsewhere_of_which_no_receipt_can_be_written_is_unresolved_without_one():
    bench = a_choice()
    other = elsewhere(bench)

    def strike():
        other.abort(bench.session)
        bench.ledger.broken = {"record"}

    bench.at(Moment.ANSWER, strike)
    outcome = bench.propose(choosing(APPROVE))
    assert (outcome.state, outcome.reason, outcome.receipt_id) == (State.UNRESOLVED, Reason.STORE_UNAVAILABLE, None)
    assert (outcome.result, outcome.detail) == (b"", "the ledger cannot be reached")
    assert bench.states() == (State.UNRESOLVED,)


@promise("K7")
def test_a_ledger_that_cannot_be_read_right_before_the_write_keeps_the_call_in():
    bench = a_choice()
    bench.at(Moment.CLAIMED, lambda: setattr(bench.ledger, "broken", {"row"}))
    outcome = bench.propose(choosing(APPROVE))
    assert (outcome.state, outcome.reason) == (State.FAILED, Reason.STORE_UNAVAILABLE)
    assert bench.calls == NOTHING


@promise("K7")
def test_a_ledger_that_lacks_the_call_right_before_the_write_keeps_it_in():
    bench = a_choice()
    bench.at(Moment.CLAIMED, lambda: setattr(bench.ledger, "row", lambda group: None))
    outcome = bench.propose(choosing(APPROVE))
    assert (outcome.state, outcome.reason) == (State.FAILED, Reason.CANCELLED)
    assert bench.calls == NOTHING


def test_a_call_of_our_own_that_is_out_may_still_come_to_its_end_when_the_grant_is_revoked():
    bench = a_choice()
    bench.at(Moment.WRITE, lambda: bench.broker.revoke(bench.session.grant))
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED
    assert bench.calls == ONE_CLICK


@promise("K9")
def test_a_grant_in_use_that_is_opened_again_learns_the_latest_time_that_anyone_recorded():
    bench = a_choice()
    bench.propose(choosing({**APPROVE, "targetId": "x"}))
    other = elsewhere(bench)
    bench.clock.advance(10 * SECOND)
    other.propose(bench.session, choosing({**APPROVE, "targetId": "x"}))
    bench.clock.set_wall(bench.clock.now().wall_ns - 5 * SECOND)
    assert bench.broker.open(bench.sealed.data, bench.session) == bench.session
    assert bench.propose(choosing(APPROVE)).reason is Reason.CLOCK_ROLLBACK
    assert bench.calls == NOTHING
