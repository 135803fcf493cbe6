"""A cancellation at each of the four points: where it stops the change, what becomes of the token, what is told."""

import pytest
from marks import promise
from mutation_bench import MutationBench

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.mutation.answers import Silence, Status
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.results import TokenState
from assisted_benchmark.mutation.states import State


class Cancel:
    """A cancellation that comes when it is told to."""

    def __init__(self):
        self.came = False

    def __call__(self):
        return self.came

    def come(self):
        self.came = True


@promise("M21")
def test_before_the_token_is_consumed_the_call_stops_and_the_token_stays_usable():
    bench = MutationBench()
    token = bench.token()
    stopped = bench.begin(token, cancelled=lambda: True)
    assert (stopped.reason, stopped.token, stopped.status) == (Reason.CANCELLED, TokenState.USABLE, None)
    assert bench.state(token) == State.SEALED
    heard = bench.told(stopped)
    assert (heard["executed"], heard["token_state"]) == (False, "usable")
    assert bench.confirm(token).executed is True


@promise("M21")
@pytest.mark.parametrize("moment", [Moment.CONSUME, Moment.CONSUMED])
def test_after_the_token_is_consumed_nobody_is_asked_and_nothing_sent(moment):
    bench = MutationBench()
    token = bench.token()
    cancel = Cancel()
    bench.at(moment, cancel.come)
    stopped = bench.begin(token, cancelled=cancel)
    assert (stopped.reason, stopped.token, stopped.status) == (Reason.CANCELLED, TokenState.CONSUMED, None)
    assert (bench.creates, bench.state(token)) == (0, State.REFUSED)
    assert Moment.ASK not in bench.moments


@promise("M21")
@pytest.mark.parametrize("answer", [Silence.CANCELLED, {"action": "accept", "content": {"confirm": True}}])
def test_during_the_prompt_it_is_abandoned_and_the_token_consumed(answer):
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    stopped = bench.resume(token, asked, answer, cancelled=lambda: True)
    assert (stopped.reason, stopped.token, stopped.status) == (
        Reason.CANCELLED,
        TokenState.CONSUMED,
        Status.CANCELLED,
    )
    assert bench.told(stopped)["cancellation"] == {"requested_after_send": False}
    assert (bench.creates, bench.state(token)) == (0, State.REFUSED)


@promise("M21")
@pytest.mark.parametrize("moment", [Moment.ANSWERED, Moment.CLAIM, Moment.CLAIMED])
def test_after_the_prompt_and_before_the_send_it_stops(moment):
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    cancel = Cancel()
    bench.at(moment, cancel.come)
    stopped = bench.resume(token, asked, cancelled=cancel)
    assert (stopped.reason, stopped.token, stopped.status) == (
        Reason.CANCELLED,
        TokenState.CONSUMED,
        Status.ACCEPTED,
    )
    assert bench.told(stopped)["executed"] is False
    assert (bench.creates, bench.state(token)) == (0, State.REFUSED)
    assert "after the send" not in bench.receipts()[-1]["detail"]


@promise("M21")
@pytest.mark.parametrize("moment", [Moment.WRITE, Moment.ANSWER])
def test_after_the_send_the_call_finishes_and_says_so(moment):
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    cancel = Cancel()
    bench.at(moment, cancel.come)
    done = bench.resume(token, asked, cancelled=cancel)
    assert (done.state, done.executed, done.late_cancel) == (State.SUCCEEDED, True, True)
    assert bench.told(done)["cancellation"] == {"requested_after_send": True}
    assert bench.receipts()[-1]["detail"] == "HTTP 201; a cancel came after the send"
    assert bench.creates == 1


@promise("M21")
def test_a_cancel_while_the_answer_is_awaited_leaves_what_is_not_known_unresolved():
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    cancel = Cancel()

    def cut(request):
        cancel.come()
        return Uncertain(Reason.OUTCOME_UNKNOWN, "cut off", bench.clock.now())

    bench.endpoint.created = cut
    done = bench.resume(token, asked, cancelled=cancel)
    assert (done.state, done.executed, done.late_cancel) == (State.UNRESOLVED, None, True)


@promise("M21")
def test_a_client_that_cannot_ask_is_cancelled_at_the_same_points():
    for moment, sent in ((Moment.CONSUMED, 0), (Moment.CLAIMED, 0), (Moment.WRITE, 1)):
        bench = MutationBench(allow_unconfirmed=True)
        token = bench.token()
        cancel = Cancel()
        bench.at(moment, cancel.come)
        bench.begin(token, can_ask=False, cancelled=cancel)
        assert bench.creates == sent
        assert bench.confirm(token).reason is Reason.REPLAYED
