"""A confirmation that is cancelled, at each point of its way; and agents that cancel what is not theirs, or vanish."""

import threading

import pytest
from agent_peers import OK, a_tool, cancel, reply
from gateway_bench import CONFIRM, PROPOSE, YES, Changes, a_contract
from marks import promise

from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.wire.outcomes import Era


class Halt:
    """Holds the broker at one moment until it is let go."""

    def __init__(self, moment):
        self.moment = moment
        self.reached = threading.Event()
        self.go = threading.Event()

    def __call__(self, moment):
        if moment is self.moment and not self.reached.is_set():
            self.reached.set()
            assert self.go.wait(20)


@pytest.fixture
def halted(agent):
    """An agent whose broker halts at a moment; all of it."""

    def make(moment, era=Era.HANDSHAKE, **options):
        halt = Halt(moment)
        ours = Changes(agent, on_moment=halt)
        return ours, ours.agent(era, **options), halt

    return make


def cancelled_at(halt, agent, request_id):
    """Cancel a call while the broker halts, and let it go on once the cancellation is taken in."""
    assert halt.reached.wait(20)
    agent.pipes.says(cancel(request_id))
    agent.answer(agent.asks("tools/list"))
    halt.go.set()


def is_replayed(agent, token):
    return agent.confirmed(token)[1]["token_state"] == "replayed"


@promise("M21", "W5")
def test_cancelled_before_the_token_is_consumed_the_token_stays_usable(agent):
    ours = Changes(agent)
    begun, go = threading.Event(), threading.Event()
    hold = a_tool("hold", lambda seen: begun.set() or (go.wait(20) and OK))
    ours_agent = ours.agent(more=[hold], limits=Limits(calls=1))
    token = ours_agent.proposes()
    held = ours_agent.calls("hold", {})
    assert begun.wait(20)
    request_id = ours_agent.confirms(token)
    ours_agent.pipes.says(cancel(request_id))
    ours_agent.answer(ours_agent.asks("ping"))
    go.set()
    ours_agent.answer(held)
    question, _ = ours_agent.asked(token)  # the next line is this question: of the cancelled call there was none
    assert ours_agent.replies(question, YES)[1]["executed"] is True
    assert ours.creates == 1


@promise("M21", "W5")
def test_cancelled_while_the_token_is_looked_up_the_token_stays_usable(agent):
    ours = Changes(agent)
    ours_agent = ours.agent(limits=Limits(calls=1))
    token = ours_agent.proposes()
    find, reached, go = ours.broker._store.find, threading.Event(), threading.Event()

    def slow(asked):
        reached.set()
        assert go.wait(20)
        return find(asked)

    ours.broker._store.find = slow
    request_id = ours_agent.confirms(token)
    assert reached.wait(20)
    ours_agent.pipes.says(cancel(request_id))
    ours_agent.answer(ours_agent.asks("ping"))
    ours.broker._store.find = find
    go.set()
    question, _ = ours_agent.asked(token)
    assert ours_agent.replies(question, YES)[1]["executed"] is True
    assert ours.outcomes.count("cancelled") == 1


@promise("M21", "W5")
def test_cancelled_during_the_question_nothing_is_sent_and_the_token_is_consumed(agent):
    ours = Changes(agent)
    ours_agent = ours.agent()
    token = ours_agent.proposes()
    (request_id, question), _ = ours_agent.asked(token)
    ours_agent.pipes.says(cancel(request_id))
    taken_back = ours_agent.pipes.hears()
    assert taken_back["params"] == {"requestId": question, "reason": "cancelled"}
    ours_agent.pipes.says(reply(question, YES))
    assert is_replayed(ours_agent, token)
    assert ours_agent.pipes.rest() == []
    assert (ours.creates, ours.outcomes.count("cancelled")) == (0, 1)


@promise("M21", "W5")
@pytest.mark.parametrize("moment", [Moment.CONSUMED, Moment.ASK, Moment.ANSWERED, Moment.CLAIM, Moment.CLAIMED])
@pytest.mark.parametrize("era", [Era.HANDSHAKE, Era.STATELESS])
def test_cancelled_before_the_send_nothing_is_sent_and_the_token_is_consumed(halted, moment, era):
    ours, agent, halt = halted(moment, era)
    token = agent.proposes()
    if moment in (Moment.CONSUMED, Moment.ASK):
        request_id = agent.confirms(token)
    else:
        (first, second), _ = agent.asked(token)
        if era is Era.HANDSHAKE:
            request_id = first
            agent.pipes.says(reply(second, YES))
        else:
            request_id = agent.confirms(token, requestState=second, inputResponses={"question": YES})
    cancelled_at(halt, agent, request_id)
    assert is_replayed(agent, token)
    assert agent.pipes.rest() == []
    assert (ours.creates, ours.outcomes.count("cancelled")) == (0, 1)


@promise("M21", "W5")
@pytest.mark.parametrize("moment", [Moment.WRITE, Moment.ANSWER])
@pytest.mark.parametrize("era", [Era.HANDSHAKE, Era.STATELESS])
def test_cancelled_after_the_send_the_result_is_sent_and_says_so(halted, moment, era):
    ours, agent, halt = halted(moment, era)
    token = agent.proposes()
    (first, second), _ = agent.asked(token)
    request_id = first
    if era is Era.HANDSHAKE:
        agent.pipes.says(reply(second, YES))
    else:
        request_id = agent.confirms(token, requestState=second, inputResponses={"question": YES})
    cancelled_at(halt, agent, request_id)
    failed, content = agent.result(CONFIRM, request_id)
    assert (failed, content["executed"], content["cancellation"]) == (False, True, {"requested_after_send": True})
    assert (ours.creates, ours.outcomes[-1]) == (1, "succeeded")


@promise("M21")
def test_a_cancellation_that_comes_while_the_outcome_is_written_down_is_told_too(agent):
    ours = Changes(agent)
    ours_agent = ours.agent()
    (request_id, question), _ = ours_agent.asked(ours_agent.proposes())
    settle, reached, go = ours.ledger.settle, threading.Event(), threading.Event()

    def slow(*settled):
        reached.set()
        assert go.wait(20)
        settle(*settled)

    ours.ledger.settle = slow
    ours_agent.pipes.says(reply(question, YES))
    assert reached.wait(20)
    ours_agent.pipes.says(cancel(request_id))
    ours_agent.answer(ours_agent.asks("ping"))
    go.set()
    _, content = ours_agent.result(CONFIRM, request_id)
    assert (content["executed"], content["cancellation"]) == (True, {"requested_after_send": True})


@promise("W5")
def test_a_cancelled_proposal_gets_no_message_and_gives_out_no_token(halted):
    ours, agent, halt = halted(Moment.DRY_RUN)
    spec = a_contract().change("connection").example.value
    request_id = agent.calls(PROPOSE, {"change_type": "connection", "spec": spec})
    cancelled_at(halt, agent, request_id)
    assert agent.pipes.rest() == []
    assert ours.creates == 0


@promise("W5")
@pytest.mark.parametrize("target", ["ask-1", "1", 0, -1])
def test_a_cancellation_of_anothers_request_cancels_no_confirmation(agent, target):
    ours = Changes(agent)
    ours_agent, other = ours.agent(), ours.agent(session=("run-2", "agent-2"))
    question, _ = ours_agent.asked(ours_agent.proposes())
    ours_agent.pipes.says(cancel(target))
    other.pipes.says(cancel(question[0]), reply(question[1], {"action": "decline"}))
    other.answer(other.asks("ping"))
    assert ours_agent.replies(question, YES)[1]["executed"] is True


@promise("W5")
def test_an_agent_that_is_gone_before_the_send_has_cancelled(halted):
    ours, agent, halt = halted(Moment.ANSWERED)
    (_, question), _ = agent.asked(agent.proposes())
    agent.pipes.says(reply(question, YES))
    assert halt.reached.wait(20)
    agent.pipes.deafens()
    agent.asks("ping")  # its answer finds nobody
    assert agent.pipes.broken.wait(20)
    halt.go.set()
    agent.pipes.joins()
    assert (ours.creates, ours.outcomes[-1]) == (0, "cancelled")


def test_an_agent_that_is_gone_after_the_send_leaves_a_record_of_what_came_of_it(halted):
    ours, agent, halt = halted(Moment.ANSWER)
    (_, question), _ = agent.asked(agent.proposes())
    agent.pipes.says(reply(question, YES))
    assert halt.reached.wait(20)
    agent.pipes.deafens()
    agent.pipes.hangs_up()
    halt.go.set()
    agent.pipes.joins()
    assert (ours.creates, ours.outcomes[-1]) == (1, "succeeded")
