"""What a server asks of people while a call is in flight, in both eras, and what it is told."""

import threading

import pytest
from marks import promise
from wire_peers import MS, OK, Caller, discovered, failure, reply, told

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.wire.outcomes import Error, Limits, Odd, Result
from assisted_benchmark.wire.relay import NO_RELAY, Silence

FORMS = {"elicitation": {}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
YES = {"action": "accept", "content": {"name": "me"}}
CANCEL = {"action": "cancel"}
UNKNOWN = (Uncertain, Reason.OUTCOME_UNKNOWN)
INVALID = (Uncertain, Reason.RESULT_INVALID)


def asks(request_id=7, method="elicitation/create", **params):
    params = {"message": "who?", "requestedSchema": SCHEMA} | params
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def ends(end):
    return type(end), getattr(end, "reason", None)


def answers(peer):
    """What the client told of questions, by their ids."""
    return [(each["id"], each.get("result") or each["error"]["code"]) for each in peer.heard() if "method" not in each]


@pytest.fixture
def asking(pipes):
    """A server of the handshake era to which forms are declared."""

    def make(capabilities=None, limits=None):
        limits = limits or Limits(grace_ns=5 * MS)
        return pipes(capabilities=FORMS if capabilities is None else capabilities, limits=limits).connected()

    return make


# -- the handshake era: a request of the server's


@promise("W1", "W4")
@pytest.mark.parametrize("request_id", [7, "7", 2])
def test_a_question_goes_to_whoever_calls_and_its_answer_back_by_the_servers_id(asking, request_id):
    peer, agent = asking(), Caller(YES)
    end = peer.call(asks(request_id, mode="form"), relay=agent)
    assert ends(end) == UNKNOWN  # the server had nothing more to say
    assert agent.asked == [("who?", SCHEMA)]
    assert agent.ended == 1
    assert answers(peer) == [(request_id, YES)]


@promise("W7")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(YES | {"_meta": {"x": 1}}, YES, id="accepted"),
        pytest.param({"action": "decline", "content": {"name": "me"}}, {"action": "decline"}, id="declined"),
        pytest.param({"action": "cancel"}, CANCEL, id="dismissed"),
        pytest.param({"action": "accept"}, CANCEL, id="accepted without a content"),
        pytest.param({"action": "accept", "content": True}, CANCEL, id="accepted with another content"),
        pytest.param({"action": "Accept", "content": {}}, CANCEL, id="another word"),
        pytest.param({"action": True, "content": {}}, CANCEL, id="no word"),
        pytest.param(True, CANCEL, id="true"),
        pytest.param("accept", CANCEL, id="text"),
        pytest.param(None, CANCEL, id="nothing"),
        *(pytest.param(silence, CANCEL, id=silence.value) for silence in Silence),
    ],
)
def test_an_acceptance_is_one_by_its_word_and_everything_but_a_decline_is_a_cancel(asking, answer, said):
    peer, agent = asking(), Caller(answer)
    peer.call(asks(), relay=agent)
    assert answers(peer) == [(7, said)]


def test_an_answer_that_is_too_long_to_be_kept_is_a_cancel(asking):
    peer = asking(limits=Limits(outbox=100))
    peer.call(asks(), relay=Caller({"action": "accept", "content": {"name": "x" * 100}}))
    assert answers(peer) == [(7, CANCEL)]


def test_questions_are_asked_one_at_a_time_in_their_order(asking):
    peer, open_at_once = asking(), []
    agent = Caller(lambda: open_at_once.append(agent.asked[-1][0]) or agent.heard(YES), {"action": "decline"})
    peer.call(asks(7, message="first"), asks(8, message="second"), relay=agent)
    assert answers(peer) == [(7, YES), (8, {"action": "decline"})]
    assert [message for message, _ in agent.asked] == ["first", "second"]


@promise("W7")
def test_while_a_person_is_asked_the_calls_budget_stands_still_and_the_persons_is_bounded(asking):
    peer = asking(limits=Limits(grace_ns=5 * MS, human_ns=50 * MS))

    def thinks():
        peer.clock.advance(40 * MS)  # twice the call's own budget
        agent.heard(YES)

    agent = Caller(thinks, lambda: peer.clock.advance(10 * MS))  # and then there are no more than 10 left
    end = peer.call(asks(7), asks(8), relay=agent, ms=20)
    assert ends(end) == UNKNOWN
    assert answers(peer) == [(7, YES), (8, CANCEL)]
    assert agent.ended == 2


@promise("W7")
def test_a_server_that_asks_on_and_on_is_answered_by_nobody_in_the_end(asking):
    peer, agent = asking(limits=Limits(grace_ns=5 * MS, questions=2)), Caller(YES, YES)
    peer.call(*(asks(number) for number in range(5, 9)), relay=agent)
    assert sorted(answers(peer), key=lambda each: each[0]) == [(5, YES), (6, YES), (7, CANCEL), (8, CANCEL)]


@promise("W5")
def test_an_agent_that_cancels_while_a_person_is_asked_cancels_the_servers_call_by_the_servers_id(asking):
    peer = asking()
    agent = Caller(lambda: agent.cancels())
    end = peer.call(asks(7), relay=agent)
    assert ends(end) == UNKNOWN
    call, *rest = peer.heard()
    assert {"jsonrpc": "2.0", "id": 7, "result": CANCEL} in rest
    (cancelled,) = (each["params"] for each in rest if each.get("method") == "notifications/cancelled")
    assert cancelled == {"requestId": call["id"], "reason": "the agent cancelled the call"}
    assert agent.ended == 1


@promise("W5")
def test_a_call_that_is_cancelled_before_it_is_written_is_not_sent_and_one_that_has_ended_cancels_nothing(asking):
    peer, agent = asking(), Caller()
    assert isinstance(peer.call(reply(2, OK), relay=agent), Result)
    agent.cancels()  # too late: whatever is in flight by then is another's
    other = Caller()
    assert isinstance(peer.call(agent.cancels, reply(3, OK), relay=other), Result)
    assert [each["method"] for each in peer.heard()] == ["tools/call"] * 2
    agent.on_cancel = lambda stop: stop()
    assert peer.call(relay=agent).reason is Reason.CANCELLED
    assert peer.heard() == []


@promise("W5")
def test_a_question_that_the_server_takes_back_is_taken_from_the_person_and_not_answered(asking):
    peer = asking()

    def takes_back():
        peer.says(told("notifications/cancelled", requestId="7"), told("notifications/cancelled", requestId=8))
        peer.says(told("notifications/cancelled", requestId=7), asks(9))

    agent = Caller(takes_back, YES)
    peer.call(asks(7), asks(8), relay=agent)
    assert answers(peer) == [(9, YES)]
    assert (len(agent.asked), agent.ended) == (2, 2)


def test_an_answer_that_comes_after_the_question_is_over_changes_nothing(asking):
    peer, kept = asking(limits=Limits(grace_ns=5 * MS, human_ns=5 * MS)), []
    agent = Caller(lambda: kept.append(agent.heard))
    peer.call(asks(7), lambda: None, relay=agent)
    kept[0](YES)
    assert isinstance(peer.call(reply(3, OK), relay=agent), Result)
    assert answers(peer) == [(7, CANCEL)]


def test_a_call_that_ends_while_a_person_is_asked_ends_the_question(asking):
    peer = asking()
    agent = Caller(lambda: peer.says(reply(2, OK)))
    assert isinstance(peer.call(asks(7), asks(8), relay=agent), Result)
    assert (answers(peer), agent.ended, len(agent.asked)) == ([], 1, 1)


def test_a_server_that_ends_while_a_person_is_asked_leaves_the_call_unknown(asking):
    peer = asking()
    agent = Caller(lambda: peer.dies())
    assert ends(peer.call(asks(7), relay=agent)) == UNKNOWN
    assert agent.ended == 1


def test_a_relay_that_breaks_costs_the_answer_and_not_the_call(asking):
    peer = asking()

    def breaks():
        raise ZeroDivisionError

    assert isinstance(peer.call(asks(7), lambda: None, relay=Caller(breaks), ms=20), Uncertain)
    assert answers(peer) == [(7, CANCEL)]


@promise("W8")
@pytest.mark.parametrize(
    ("capabilities", "request_", "said"),
    [
        pytest.param({}, asks(), -32601, id="forms are not declared"),
        pytest.param({"elicitation": {"url": {}}}, asks(), -32601, id="url alone is declared"),
        pytest.param(FORMS, asks(mode="url", url="https://x.example", elicitationId="e"), -32602, id="url"),
        pytest.param(FORMS, asks(message=4), -32602, id="no message"),
        pytest.param(FORMS, asks(requestedSchema=[]), -32602, id="no schema"),
        pytest.param(FORMS, asks(method="sampling/createMessage", messages=[]), -32601, id="sampling"),
        pytest.param(FORMS, asks(method="roots/list"), -32601, id="roots"),
    ],
)
def test_what_was_not_declared_to_a_server_is_refused(asking, capabilities, request_, said):
    peer, agent = asking(capabilities), Caller(YES)
    assert isinstance(peer.call(request_, reply(2, OK), relay=agent), Result)
    assert (answers(peer), agent.asked) == ([(7, said)], [])


@promise("W1")
@pytest.mark.parametrize("agent", [Caller(YES, can_ask=False), NO_RELAY], ids=["no forms", "no client"])
def test_a_caller_that_can_show_nobody_a_form_is_not_asked(asking, agent):
    peer = asking()
    peer.call(asks(), relay=agent)
    assert answers(peer) == [(7, CANCEL)]


def test_outside_of_a_call_nobody_is_asked(asking):
    peer = asking()
    peer.says(asks(), told("notifications/cancelled", requestId=7))
    peer.session.drain()
    assert answers(peer) == [(7, -32601)]
    assert [each.kind for each in peer.session.oddities] == [Odd.REFUSED_REQUEST]


def test_without_a_relay_there_is_nobody():
    heard, stopped = [], []
    NO_RELAY.question("who?", SCHEMA, heard.append)()
    NO_RELAY.on_cancel(lambda: stopped.append(1))
    NO_RELAY.progress(1)
    assert (heard, stopped) == ([Silence.FAILED], [])


# -- the stateless era: a result of the server's


def wants(*keys, state="s-1", **params):
    params = {"message": "who?", "requestedSchema": SCHEMA} | params
    result = {"resultType": "input_required"}
    if keys:
        result["inputRequests"] = {key: {"method": "elicitation/create", "params": params} for key in keys}
    return result if state is None else result | {"requestState": state}


@pytest.fixture
def stateless(pipes):
    def make(*later, capabilities=None, limits=None):
        capabilities = FORMS if capabilities is None else capabilities
        limits = limits or Limits(probe_ns=5 * MS, grace_ns=5 * MS)
        peer = pipes(reply(1, discovered()), capabilities=capabilities, limits=limits)
        peer.session.connect(peer.within(50))
        peer.heard()
        peer.later = later
        return peer

    return make


def calls(peer, first, *later, **options):
    """A call whose first request is answered by `first`, and the requests that go on with it by the others."""
    peer._answers += [[first], *([each] for each in later)]
    return peer.session.call(
        "t", b'{"z":1.50}', gate=options.pop("gate", lambda: True), deadline=peer.within(20), **options
    )


@promise("W1", "L16")
def test_a_call_goes_on_with_the_sealed_bytes_the_servers_own_state_and_the_answers(stateless):
    peer, agent = stateless(), Caller(YES, {"action": "decline"}, wants_progress=True)
    end = calls(peer, reply(2, wants("a", "b")), reply(3, OK | {"resultType": "complete"}), relay=agent)
    assert isinstance(end, Result)
    first, second = peer.heard()
    assert second["params"].pop("inputResponses") == {"a": YES, "b": {"action": "decline"}}
    assert second["params"].pop("requestState") == "s-1"
    assert (first["params"]["_meta"].pop("progressToken"), second["params"]["_meta"].pop("progressToken")) == (2, 3)
    assert second["params"] == first["params"]
    assert peer.lines[-1].count(b'"arguments":{"z":1.50}') == 1


def test_a_call_may_go_on_more_than_once(stateless):
    peer, agent = stateless(), Caller(YES, {"action": "decline"})
    end = calls(peer, reply(2, wants("a")), reply(3, wants("b", state="s-2")), failure(4, -32603), relay=agent)
    assert isinstance(end, Error)
    said = [each["params"].get("requestState") for each in peer.heard()]
    assert (said, len(agent.asked)) == ([None, "s-1", "s-2"], 2)


@promise("L18")
@pytest.mark.parametrize(
    "result",
    [
        pytest.param(wants(), id="only later"),
        pytest.param(wants("a", state=4), id="no state"),
        pytest.param(wants("a", mode="url"), id="url"),
        pytest.param(wants("a", "b", "c"), id="too much"),
        pytest.param(wants() | {"inputRequests": {"a": {"method": "roots/list", "params": {}}}}, id="roots"),
        pytest.param(wants() | {"inputRequests": {"a": {"method": "elicitation/create"}}}, id="no params"),
        pytest.param(wants() | {"inputRequests": []}, id="no object"),
        pytest.param(OK | {"resultType": "another"}, id="another kind"),
    ],
)
def test_whatever_else_a_server_wants_ends_the_call_unknown_and_it_is_not_made_again(stateless, result):
    peer, agent = stateless(limits=Limits(probe_ns=5 * MS, questions=2)), Caller(YES, YES, YES)
    assert ends(calls(peer, reply(2, result), relay=agent)) == INVALID
    assert (len(peer.heard()), agent.asked) == (1, [])


def test_questions_without_end_end_the_call(stateless):
    peer = stateless(limits=Limits(probe_ns=5 * MS, questions=2))
    later = [reply(number, wants("a")) for number in (3, 4, 5)]
    assert ends(calls(peer, reply(2, wants("a")), *later, relay=Caller(YES, YES, YES))) == INVALID
    assert len(peer.heard()) == 3


@promise("L18")
@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}])
def test_where_forms_are_not_declared_a_call_is_never_gone_on_with(stateless, capabilities):
    peer, agent = stateless(capabilities=capabilities), Caller(YES)
    assert ends(calls(peer, reply(2, wants("a")), relay=agent)) == INVALID
    assert (len(peer.heard()), agent.asked) == (1, [])


@promise("W1", "W8")
@pytest.mark.parametrize("can_ask", [True, False])
def test_a_server_hears_beforehand_whether_somebody_can_be_asked(stateless, can_ask):
    peer = stateless(capabilities={"elicitation": {"form": {}}, "experimental": {}})
    end = calls(peer, failure(2, -32021), relay=Caller(can_ask=can_ask))
    assert (end.value["code"], type(end)) == (-32021, Error)
    (call,) = peer.heard()
    declared = call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert declared == ({"elicitation": {"form": {}}} if can_ask else {}) | {"experimental": {}}


@promise("L19", "L18")
def test_the_gate_is_asked_again_before_a_call_goes_on(stateless):
    peer, asked = stateless(), []

    def gate():
        asked.append(1)
        return len(asked) == 1

    assert ends(calls(peer, reply(2, wants("a")), relay=Caller(YES), gate=gate)) == UNKNOWN
    assert (len(asked), len(peer.heard())) == (2, 1)


@promise("W5", "W7")
@pytest.mark.parametrize("how", ["cancels", "dies", "is silent"])
def test_between_two_requests_of_a_call_its_end_is_bounded(stateless, how):
    peer = stateless(limits=Limits(probe_ns=5 * MS, human_ns=5 * MS))
    agent = Caller({"cancels": lambda: agent.cancels(), "dies": lambda: peer.dies(), "is silent": lambda: None}[how])
    end = calls(peer, reply(2, wants("a")), reply(3, OK | {"resultType": "complete"}), relay=agent)
    assert agent.ended == 1
    if how == "is silent":
        assert isinstance(end, Result)
        assert peer.heard()[1]["params"]["inputResponses"] == {"a": CANCEL}
    else:
        assert ends(end) == UNKNOWN


def test_an_answer_may_come_from_any_thread(asking):
    peer, threads = asking(), []

    def later():
        threads.append(threading.Thread(target=agent.heard, args=(YES,)))
        threads[0].start()

    agent = Caller(later)
    peer.call(asks(7), relay=agent)
    threads[0].join()
    assert answers(peer) == [(7, YES)]
