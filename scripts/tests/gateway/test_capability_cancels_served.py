"""A registry's calls under way: their progress, how they are cancelled, and what comes of them if nobody listens."""

import threading

import pytest
from agent_peers import a_tool, ask, call, cancel
from capability_bench import GESTURE, INPUTS, PULP, STATE_READ
from marks import promise
from operating_bench import ERAS, WAIT, Held, Operating

from assisted_benchmark.capability.carrying import Moment
from assisted_benchmark.capability.ports import Answer, Cancellation, Unavailable, Verdict, Word
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.outcomes import Odd
from assisted_benchmark.wire.server_side import CallCancelled

both = pytest.mark.parametrize("era", ERAS)
READ_TOOL, GESTURE_TOOL = PULP.tool_name(STATE_READ), PULP.tool_name(GESTURE)
KEY = {"request_id": "r-1"}
TOLD = [Cancellation("r-1", "instance-1", "publication-1", "agent-1", "cancelled")]


@pytest.fixture
def operating(agent):
    return lambda **options: Operating(agent, **options)


def step(sequence, current, **more):
    return {"sequence": sequence, "current": current, "total": 3, **more}


def progress(agent, request_id):
    """The params of every notification before the answer, and the answer's content."""
    params = []
    while (heard := agent.pipes.hears()).get("id") != request_id:
        assert heard["method"] == "notifications/progress"
        params.append(heard["params"])
    return params, heard["result"]["structuredContent"]


def given_up(ours, error=None):
    """Set once the broker has been told that nobody waits for a call any more; `error` then strikes."""
    told, give_up = threading.Event(), ours.broker.give_up

    def tell(caller):
        give_up(caller)
        told.set()
        if error is not None:
            raise error

    ours.broker.give_up = tell
    return told


# -- progress


@promise("C27", "W6")
@both
@pytest.mark.parametrize("token", ["mine", "1", 1, 0, ""])
def test_progress_comes_under_the_agents_own_token_and_stands_in_the_result(operating, era, token):
    ours = operating()
    ours.world.observations = (step(1, 0), step(2, 0), step(3, 2, message="reading"), step(4, 3))
    agent = ours.agent(era)
    params, content = progress(agent, agent.operates(STATE_READ, token=token))
    assert params == [
        {"progressToken": token, "progress": 0, "total": 3},
        {"progressToken": token, "progress": 2, "total": 3, "message": "reading"},
        {"progressToken": token, "progress": 3, "total": 3},
    ]  # on the wire it must rise: the second event, which did not, is in the result alone
    assert content["progress"] == list(ours.world.observations)


@promise("C27")
@both
def test_without_a_token_the_result_alone_tells(operating, era):
    ours = operating()
    ours.world.observations = (step(1, 1),)
    assert ours.agent(era).operated(STATE_READ)["progress"] == [step(1, 1)]


@promise("C27")
@both
@pytest.mark.parametrize(
    "bad",
    [
        step(1, 2),
        step(2, 0),
        step(2, 4),
        step(2, 2) | {"total": 4},
        step(2, 2, more=1),
        step(2, 2, message="m" * 2000),
        step(2, 1.5),
        None,
        [],
    ],
)
def test_a_bad_event_stops_the_telling_and_nothing_else(operating, era, bad):
    ours = operating()
    ours.world.observations = (step(1, 1), bad, step(3, 3))
    agent = ours.agent(era)
    params, content = progress(agent, agent.operates(STATE_READ, token="mine"))
    assert [each["progress"] for each in params] == [1]
    assert (content["ok"], content["progress"]) == (True, [step(1, 1)])


@promise("C27", "W6")
@both
def test_a_failure_has_its_progress_too_and_nothing_follows_it(operating, era):
    ours = operating()
    late = []

    def request(claimed, envelope, *, gate, deadline, progress):
        assert gate()
        progress(step(1, 1))
        late.append(progress)
        return ours.world.ended(b"", Word.FAILED)

    ours.world.request = request
    agent = ours.agent(era)
    params, content = progress(agent, agent.operates(STATE_READ, token="mine"))
    assert ([each["progress"] for each in params], content["error"]["data"]["progress"]) == ([1], [step(1, 1)])
    late[0](step(2, 2))
    agent.answer(agent.asks("resources/templates/list"))


@promise("W6", "W8")
@both
@pytest.mark.parametrize("token", [1.5, True, [], {}])
def test_a_token_that_is_none_is_no_call(operating, era, token):
    ours = operating()
    agent = ours.agent(era)
    assert agent.answer(agent.operates(STATE_READ, token=token))["error"]["code"] == -32602
    assert agent.answer(agent.asks("resources/list", token=token))["error"]["code"] == -32602
    assert ours.world.steps == []


# -- cancelled by the agent's notification


@promise("C26", "W5")
@both
@pytest.mark.parametrize("operation", [STATE_READ, GESTURE], ids=["reads", "acts"])
def test_a_cancelled_call_that_stops_gets_no_further_message(operating, era, operation):
    ours = operating()
    agent, held = ours.agent(era), Held(ours)
    request_id = agent.operates(operation, INPUTS.get(operation), **KEY)
    held.wait()
    agent.pipes.says(cancel(request_id))
    assert agent.pipes.rest() == []
    assert (ours.world.cancelled, ours.bench.groups()) == (TOLD, ["cancelled"])


@promise("C26", "W5", "C25")
@both
def test_a_call_that_completes_all_the_same_is_told(operating, era):
    ours = operating()
    agent, held = ours.agent(era), Held(ours, Word.COMPLETED)
    request_id = agent.operates(GESTURE, INPUTS[GESTURE], **KEY)
    held.wait()
    agent.pipes.says(cancel(request_id), cancel(request_id), cancel(request_id))
    assert agent.told(GESTURE_TOOL, request_id)["state"] == "completed"
    assert (ours.world.cancelled, ours.bench.groups()) == (TOLD, ["completed"])


@promise("C26", "W5")
@both
def test_a_call_that_is_cancelled_while_the_brokers_person_decides_is_never_admitted(operating, era):
    ours = operating(policies=())
    agent = ours.agent(era)
    asked, told = threading.Event(), given_up(ours)

    def decide(prompt):
        asked.set()
        assert told.wait(WAIT)
        return Answer(prompt.id, Verdict.APPROVED)

    ours.person.decide = decide
    request_id = agent.operates(GESTURE, INPUTS[GESTURE])
    assert asked.wait(WAIT)
    agent.pipes.says(cancel(request_id))
    assert agent.pipes.rest() == []
    assert (ours.bench.executed, ours.bench.groups(), ours.refusals) == ({}, [], ["cancelled"])


@promise("C26", "W5")
def test_a_call_that_is_cancelled_between_its_receipt_and_its_request_is_not_sent(operating):
    ours = operating()
    agent = ours.agent()
    reached, told = threading.Event(), given_up(ours)

    def wait():
        reached.set()
        assert told.wait(WAIT)

    ours.bench.at(Moment.CLAIMED, wait)
    request_id = agent.operates(GESTURE, INPUTS[GESTURE])
    assert reached.wait(WAIT)
    agent.pipes.says(cancel(request_id))
    assert agent.pipes.rest() == []
    assert (ours.bench.executed, ours.world.cancelled, ours.bench.groups()) == ({}, [], ["cancelled"])


@promise("C26", "W4", "W5")
@both
@pytest.mark.parametrize("wrong", ["as text", "other", "mine"])
def test_a_cancellation_of_another_id_stops_nothing(operating, era, wrong):
    ours = operating()
    agent, held = ours.agent(era), Held(ours, Word.COMPLETED)
    request_id = agent.operates(STATE_READ, **KEY)
    held.wait()
    ids = {"as text": str(request_id), "other": request_id + 1, "mine": "r-1"}
    agent.pipes.says(cancel(ids[wrong]))
    agent.answer(agent.asks("tools/list"))
    held.let_go()
    assert agent.told(READ_TOOL, request_id)["ok"] is True
    assert ours.world.cancelled == []


def test_a_call_that_is_cancelled_before_its_turn_is_not_begun(operating):
    ours = operating()
    agent, held = ours.agent(limits=Limits(calls=1)), Held(ours, Word.COMPLETED)
    first = agent.operates(STATE_READ, **KEY)
    held.wait()
    agent.pipes.says(cancel(agent.operates(GESTURE, INPUTS[GESTURE])))
    agent.answer(agent.asks("tools/list"))
    held.let_go()
    assert agent.told(READ_TOOL, first)["ok"] is True
    assert agent.pipes.rest() == []
    assert ours.bench.executed == {STATE_READ: 1}


@promise("C26")
def test_a_cancellation_that_cannot_be_written_down_stops_all_the_same_and_is_told_at_the_end(operating):
    ours = operating()
    given_up(ours, LedgerError(Reason.STORE_UNAVAILABLE, "the ledger cannot be reached"))
    agent, held = ours.agent(), Held(ours)
    request_id = agent.operates(STATE_READ, **KEY)
    held.wait()
    agent.pipes.says(cancel(request_id))
    assert agent.pipes.rest() == []
    (odd,) = agent.pipes.session.oddities
    assert (odd.kind, odd.reason) == (Odd.CALLBACK_FAILED, Reason.STORE_UNAVAILABLE)
    assert ours.bench.groups() == ["cancelled"]


def test_a_tool_that_begins_to_listen_for_a_cancellation_after_it_came_is_told_at_once(agent):
    entered, go_on, told = threading.Event(), threading.Event(), []

    def handle(call):
        entered.set()
        assert go_on.wait(WAIT)
        call.on_cancel(lambda: told.append(threading.current_thread()))
        assert told == [threading.current_thread()]
        raise CallCancelled

    pipes = agent(a_tool("act", handle)).opened()
    pipes.says(call(1))
    assert entered.wait(WAIT)
    pipes.says(cancel(1), ask(2, "ping"))
    assert pipes.hears()["id"] == 2
    go_on.set()
    assert pipes.rest() == []
    assert (len(told), pipes.session.oddities) == (1, ())


# -- cancelled by the tool


@promise("C26")
@both
def test_the_cancel_tool_stops_another_call_of_this_client(operating, era):
    ours = operating()
    agent, held = ours.agent(era), Held(ours)
    request_id = agent.operates(STATE_READ, **KEY)
    held.wait()
    stop = agent.calls("pulp_control_cancel", {"instance_id": "instance-1", "request_id": "r-1", "reason": "enough"})
    heard = {each["id"]: each["result"]["structuredContent"] for each in (agent.pipes.hears(), agent.pipes.hears())}
    assert heard[stop] == {"ok": True, "status": "cancellation_requested", "data": {"request_id": "r-1"}}
    error = heard[request_id]["error"]
    assert (error["data"]["state"], error["data"]["may_have_applied"]) == ("cancelled", False)
    assert ours.world.cancelled == TOLD


@promise("C26")
@both
@pytest.mark.parametrize(
    ("client", "wrong"),
    [("agent-1", {"instance_id": "instance-2"}), ("agent-1", {"request_id": "r-2"}), ("agent-2", {})],
    ids=["instance", "request", "client"],
)
def test_the_cancel_tool_stops_nothing_else(operating, era, client, wrong):
    ours = operating()
    agent, held = ours.agent(era), Held(ours, Word.COMPLETED)
    other = ours.agent(era, session=("run-1", client))
    request_id = agent.operates(STATE_READ, **KEY)
    held.wait()
    error = other.manages("cancel", **{"instance_id": "instance-1", **KEY, **wrong})["error"]
    assert (error["code"], ours.world.cancelled) == ("not_authorised", [])
    held.let_go()
    assert agent.told(READ_TOOL, request_id)["ok"] is True


@promise("C26")
@both
def test_what_ends_others_waits_for_none_of_them(operating, era):
    ours = operating()
    agent, held = ours.agent(era, limits=Limits(calls=1, waiting=0, urgent=1)), Held(ours)
    request_id = agent.operates(STATE_READ, **KEY)
    held.wait()
    refused = agent.answer(agent.operates(GESTURE, INPUTS[GESTURE]))
    assert refused["error"]["code"] == -32603
    stop = agent.calls("pulp_control_cancel", {"instance_id": "instance-1", **KEY})
    assert {agent.pipes.hears()["id"], agent.pipes.hears()["id"]} == {request_id, stop}
    assert ours.bench.groups() == ["cancelled"]


@promise("C25")
@both
def test_a_grant_that_is_revoked_during_a_call_ends_it(operating, era):
    ours = operating()
    agent = ours.agent(era, limits=Limits(calls=1))
    grant = agent.manages("grant_request", instance_id="instance-1", operation_id=STATE_READ)["data"]["grant_id"]
    held = Held(ours, Word.COMPLETED)
    request_id = agent.operates(STATE_READ, **KEY, grant_id=grant)
    held.wait()
    stop = agent.calls("pulp_control_revoke", {"grant_id": grant})
    heard = {each["id"]: each["result"] for each in (agent.pipes.hears(), agent.pipes.hears())}
    assert heard[stop]["structuredContent"]["status"] == "revoked"
    error = heard[request_id]["structuredContent"]["error"]
    assert heard[request_id]["isError"] is True
    assert (error["data"]["state"], error["data"]["may_have_applied"]) == ("completed_after_revocation", True)


# -- the agent is gone


@promise("C26", "W7")
def test_what_is_under_way_for_an_agent_that_does_not_read_any_more_is_stopped(operating):
    ours = operating()
    agent, held = ours.agent(tools=(*ours.tools, a_tool("other"))), Held(ours)
    agent.operates(STATE_READ, **KEY)
    held.wait()
    agent.pipes.deafens()
    agent.calls("other", {})
    assert agent.pipes.broken.wait(WAIT)
    agent.pipes.joins()
    assert (ours.world.cancelled, ours.bench.groups()) == (TOLD, ["cancelled"])


def test_whoever_has_to_know_is_told_once_that_the_agent_leaves_before_its_calls_have_ended(operating):
    ours = operating()
    left = []
    agent = ours.agent(on_leaving=lambda: (left.append(ours.bench.groups()), held.let_go()))
    held = Held(ours, Word.COMPLETED)
    request_id = agent.operates(STATE_READ, **KEY)
    held.wait()
    (answer,) = agent.pipes.rest()
    assert (answer["id"], left, ours.bench.groups()) == (request_id, [["running"]], ["completed"])


def test_a_host_that_cannot_be_told_of_a_cancellation_is_on_record(operating):
    ours = operating()
    agent, held = ours.agent(), Held(ours)
    ours.world.fails["cancel"] = Unavailable(Reason.SERVER_UNAVAILABLE, "no answer")
    request_id = agent.operates(STATE_READ, **KEY)
    held.wait()
    agent.pipes.says(cancel(request_id))
    assert agent.pipes.rest() == []
    (told,) = [each for each in ours.bench.receipts() if each["kind"] == "event" and each["reason"] == "cancelled"]
    assert told["detail"] == "the client gave a call up, and the host could not be told: no answer"
