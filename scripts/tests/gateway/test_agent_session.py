"""An agent's session over pipes: calls beside each other, questions to a person, cancellations, hostile agents."""

import json
import threading

import pytest
from agent_peers import FORM, MS, OK, SCHEMA, a_tool, ask, call, cancel, modern, reply, told
from marks import promise

from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.tools import Resumed, Session, input_required
from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.outcomes import Era, Odd
from assisted_benchmark.wire.relay import Silence
from assisted_benchmark.wire.server_side import CallCancelled, ToolProblem

MINUTE = 60 * SECOND


class Asking:
    """A tool that asks a person, keeps what it heard, and says so."""

    def __init__(self, within_ns=MINUTE):
        self.within_ns = within_ns
        self.ends = []
        self.heard = threading.Semaphore(0)

    def __call__(self, seen):
        self.ends.append(seen.ask("really?", SCHEMA, self.within_ns))
        self.heard.release()
        if seen.cancelled:
            raise CallCancelled
        return OK

    @property
    def tool(self):
        return a_tool("act", self, toolset="mutate", read_only=False)


class Holding:
    """A tool that waits until it is let go."""

    def __init__(self, *, read_only=True):
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()
        self.calls = 0
        self.tool = a_tool("hold", self, read_only=read_only)

    def __call__(self, seen):
        self.calls += 1
        self.begun.release()
        assert self.go.wait(20)
        return OK


def code(answer):
    return answer["id"], answer["error"]["code"]


def question(number=1, **more):
    return ask(f"ask-{number}", "elicitation/create", message="really?", requestedSchema=SCHEMA, **more)


YES = {"action": "accept", "content": {"confirm": True}}


# -- what a tool sees


def test_a_tool_sees_the_session_the_era_and_the_spelling_of_numbers(agent):
    seen = []
    tool = a_tool("act", lambda each: seen.append((each.session, each.era, each.arguments, each.resumed)) or OK)
    ours = agent(tool).opened()
    ours.says(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act","arguments":{"b":1.0,"a":[1]}}}\n')
    assert ours.hears() == reply(1, OK)
    assert seen == [(Session("run-1", "agent-1"), Era.HANDSHAKE, b'{"b":1.0,"a":[1]}', None)]


@promise("W1")
def test_both_eras_list_the_same_raw_tools(agent):
    tool = a_tool("act")
    old, new = agent(tool, instructions="be kind").opened(), agent(tool)
    old.says(ask(1, "tools/list"))
    assert old.hears() == reply(1, {"tools": [tool.definition]})
    new.says(ask(1, "tools/list", **modern(1)["params"]))
    listed = new.hears()["result"]
    assert (listed["tools"], listed["resultType"], listed["ttlMs"]) == ([tool.definition], "complete", 0)


@promise("M17")
@pytest.mark.parametrize(
    ("declared", "can"),
    [
        pytest.param({"elicitation": {}}, True, id="empty means form"),
        pytest.param({"elicitation": {"form": {}}}, True, id="form"),
        pytest.param({"elicitation": {"form": {}, "url": {}}}, True, id="form and url"),
        pytest.param({"elicitation": {"url": {}}}, False, id="url only"),
        pytest.param({"elicitation": {"form": None}}, False, id="null form"),
        pytest.param({"elicitation": {"form": True}}, False, id="form is no object"),
        pytest.param({"elicitation": None}, False, id="null"),
        pytest.param({"elicitation": True}, False, id="true"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_a_client_can_ask_if_it_declared_that_it_shows_forms(agent, declared, can):
    seen = []
    tool = a_tool("act", lambda each: seen.append(each.can_ask) or OK)
    old, new = agent(tool).opened(capabilities=declared), agent(tool)
    old.says(call(1))
    new.says(modern(1, capabilities=declared))
    assert (old.hears()["id"], new.hears()["id"]) == (1, 1)
    assert seen == [can, can]


@promise("M17")
@pytest.mark.parametrize(("version", "can"), [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True)])
def test_a_version_without_elicitation_cannot_ask(agent, version, can):
    seen = []
    ours = agent(a_tool("act", lambda each: seen.append(each.can_ask) or OK)).opened(version)
    ours.says(call(1))
    assert ours.hears() == reply(1, OK)
    assert seen == [can]


# -- asking a person, handshake era


@promise("M20")
@pytest.mark.parametrize(("version", "more"), [("2025-11-25", {"mode": "form"}), ("2025-06-18", {})])
def test_a_question_is_a_request_of_ours_with_an_id_of_ours(agent, version, more):
    asking = Asking()
    ours = agent(asking.tool).opened(version)
    ours.says(call(1))
    assert ours.hears() == question(**more)
    ours.says(reply("ask-1", YES))
    assert ours.hears() == reply(1, OK)
    ours.says(call(1))
    assert ours.hears()["id"] == "ask-2"
    ours.says(reply("ask-2", YES))
    assert ours.hears() == reply(1, OK)
    assert asking.ends == [YES, YES]
    assert ours.session.oddities == ()


@pytest.mark.parametrize("raw", [None, "timed_out", 1, [], {}, {"action": "decline"}, {"action": 3, "content": "x"}])
def test_a_tool_gets_the_raw_answer_whatever_it_is(agent, raw):
    asking = Asking()
    ours = agent(asking.tool).opened()
    ours.says(call(1))
    ours.hears()
    ours.says(reply("ask-1", raw))
    assert ours.hears() == reply(1, OK)
    assert asking.ends == [raw]


@promise("W3")
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'{"jsonrpc":"2.0","id":"ask-1","error":{"code":-32603,"message":"raised"}}\n', id="error"),
        pytest.param(b'{"jsonrpc":"2.0","id":"ask-1","result":{"action":NaN}}\n', id="NaN"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":"ask-1","result":{"action":"accept","action":"cancel"}}\n', id="key twice"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":"ask-1","result":{},"error":{}}\n', id="both"),
    ],
)
def test_an_answer_that_is_an_error_or_no_message_fails_the_question(agent, line):
    asking = Asking()
    ours = agent(asking.tool).opened()
    ours.says(call(1))
    ours.hears()
    ours.says(line)
    assert ours.hears() == reply(1, OK)
    assert asking.ends == [Silence.FAILED]


@promise("W7")
def test_an_answer_after_the_wait_is_ignored_and_recorded(agent):
    asking = Asking(within_ns=20 * MS)
    ours = agent(asking.tool).opened()
    ours.says(call(1))
    ours.hears()
    assert ours.hears() == told("notifications/cancelled", requestId="ask-1", reason="timed_out")
    assert ours.hears() == reply(1, OK)
    ours.says(reply("ask-1", YES), ask(2, "ping"))
    assert ours.hears() == reply(2, {})
    assert asking.ends == [Silence.TIMED_OUT]
    assert [each.kind for each in ours.session.oddities] == [Odd.SETTLED_ID]


def test_a_question_that_nobody_answered_is_not_kept(agent):
    ours = agent(Asking(within_ns=MS).tool).opened()
    ours.says(call(1))
    assert [ours.hears().get("id") for _ in range(3)] == ["ask-1", None, 1]
    assert ours.session._talk._questions._open == {}


@promise("W7")
def test_a_wait_for_a_person_is_bounded_whatever_the_tool_says(agent):
    asking = Asking(within_ns=10**6 * SECOND)
    ours = agent(asking.tool, limits=Limits(human_ns=20 * MS)).opened()
    ours.says(call(1))
    assert [ours.hears()["method"] for _ in range(2)] == ["elicitation/create", "notifications/cancelled"]
    assert ours.hears() == reply(1, OK)
    assert asking.ends == [Silence.TIMED_OUT]


@promise("W7")
def test_the_time_of_a_person_is_not_taken_from_the_time_of_the_call(agent):
    clock = ManualClock()
    left = []

    def act(seen):
        left.append(seen.deadline.remaining_ns())
        seen.ask("really?", SCHEMA, MINUTE)
        left.append(seen.deadline.remaining_ns())
        clock.advance(SECOND)
        left.append(seen.deadline.remaining_ns())
        return OK

    ours = agent(a_tool("act", act), clock=clock, limits=Limits(call_ns=10 * SECOND)).opened()
    ours.says(call(1))
    ours.hears()
    clock.advance(40 * SECOND)
    ours.says(reply("ask-1", YES))
    assert ours.hears() == reply(1, OK)
    assert left == [10 * SECOND, 10 * SECOND, 9 * SECOND]


@promise("W5")
def test_while_a_person_is_asked_pings_lists_and_other_calls_are_served(agent):
    asking = Asking()
    ours = agent(asking.tool, a_tool("read")).opened()
    ours.says(call(1))
    ours.hears()
    ours.says(ask(2, "ping"), ask(3, "tools/list"))
    assert [ours.hears()["id"] for _ in range(2)] == [2, 3]
    ours.says(call(4, "read"))
    assert ours.hears() == reply(4, OK)
    ours.says(reply("ask-1", YES))
    assert ours.hears() == reply(1, OK)


def test_two_people_are_asked_at_a_time_and_each_answer_reaches_its_own_call(agent):
    heard = {}
    tool = a_tool("act", lambda seen: heard.update({seen.arguments: seen.ask("really?", SCHEMA, MINUTE)}) or OK)
    ours = agent(tool).opened()
    ours.says(call(1, arguments={"n": 1}))
    ours.hears()
    ours.says(call(2, arguments={"n": 2}))
    ours.hears()
    ours.says(reply("ask-2", "two"))
    assert ours.hears()["id"] == 2
    ours.says(reply("ask-1", "one"))
    assert ours.hears()["id"] == 1
    assert heard == {b'{"n":1}': "one", b'{"n":2}': "two"}


def test_a_client_that_cannot_ask_is_not_asked(agent):
    caught = []

    def act(seen):
        with pytest.raises(MisuseError) as error:
            seen.ask("really?", SCHEMA, MINUTE)
        caught.append(error.value.reason)
        return OK

    old, new = agent(a_tool("act", act)).opened(capabilities={}), agent(a_tool("act", act))
    old.says(call(1))
    new.says(modern(1))
    assert (old.hears()["id"], new.hears()["id"]) == (1, 1)
    assert caught == [Reason.MISUSE, Reason.MISUSE]


# -- asking a person, stateless era


@promise("M20")
def test_in_the_stateless_era_a_question_is_a_result_and_the_answer_comes_with_another_call(agent):
    seen = []

    def act(each):
        seen.append(each.resumed)
        return OK if each.resumed else input_required("state-1", "really?", SCHEMA)

    ours = agent(a_tool("act", act))
    ours.says(modern(1))
    asked = ours.hears()["result"]
    assert (asked["resultType"], asked["requestState"]) == ("input_required", "state-1")
    params = {"mode": "form", "message": "really?", "requestedSchema": SCHEMA}
    assert asked["inputRequests"] == {"question": {"method": "elicitation/create", "params": params}}
    ours.says(modern(2, requestState="state-1", inputResponses={"question": YES, "other": 1}))
    assert ours.hears()["result"]["resultType"] == "complete"
    assert seen == [None, Resumed("state-1", YES)]


@pytest.mark.parametrize(
    ("more", "resumed"),
    [
        ({"inputResponses": {"question": YES}}, None),
        ({"requestState": "s"}, Resumed("s", None)),
        ({"requestState": "s", "inputResponses": {"other": YES}}, Resumed("s", None)),
    ],
)
def test_only_a_call_with_a_state_resumes_another(agent, more, resumed):
    seen = []
    ours = agent(a_tool("act", lambda each: seen.append(each.resumed) or OK))
    ours.says(modern(1, **more))
    ours.hears()
    assert seen == [resumed]


@promise("W8")
@pytest.mark.parametrize("more", [{"requestState": 3}, {"requestState": None}, {"inputResponses": []}])
def test_a_resuming_call_of_a_wrong_shape_is_refused(agent, more):
    ours = agent(a_tool("act"))
    ours.says(modern(1, **more))
    assert code(ours.hears()) == (1, -32602)


def test_in_the_handshake_era_no_call_resumes_another(agent):
    seen = []
    ours = agent(a_tool("act", lambda each: seen.append(each.resumed) or OK)).opened()
    ours.says(call(1, requestState="s", inputResponses={"question": YES}))
    assert ours.hears() == reply(1, OK)
    assert seen == [None]


# -- cancelling


@promise("W5")
def test_a_call_that_waits_for_its_turn_and_is_cancelled_is_never_made(agent):
    holding, calls = Holding(), []
    act = a_tool("act", lambda seen: calls.append(1) or OK, read_only=False)
    ours = agent(holding.tool, act, limits=Limits(calls=1)).opened()
    ours.says(call(1, "hold"), call(2), cancel(2), ask(3, "ping"))
    assert ours.hears() == reply(3, {})
    holding.go.set()
    assert ours.hears() == reply(1, OK)
    assert ours.rest() == []
    assert calls == []


@promise("W5")
def test_a_cancellation_abandons_the_question_and_the_call_gets_no_further_message(agent):
    asking = Asking()
    ours = agent(asking.tool).opened()
    ours.says(call(1, _meta={"progressToken": 1}))
    ours.hears()
    ours.says(cancel(1))
    assert ours.hears() == told("notifications/cancelled", requestId="ask-1", reason="cancelled")
    assert ours.rest() == []
    assert asking.ends == [Silence.CANCELLED]


@promise("W5")
def test_a_call_that_is_cancelled_before_it_asks_asks_nobody(agent):
    holding, asking = Holding(), Asking()

    def act(seen):
        holding(seen)
        return asking(seen)

    ours = agent(a_tool("act", act, read_only=False)).opened()
    ours.says(call(1))
    assert holding.begun.acquire(timeout=20)
    ours.says(cancel(1), ask(2, "ping"))
    ours.hears()
    holding.go.set()
    assert asking.heard.acquire(timeout=20)
    assert ours.rest() == []
    assert asking.ends == [Silence.CANCELLED]


@promise("W5")
@pytest.mark.parametrize(("read_only", "answers"), [(True, []), (False, [reply(1, OK)])])
def test_a_cancelled_call_sends_its_result_only_if_it_may_have_acted(agent, read_only, answers):
    holding = Holding(read_only=read_only)
    ours = agent(holding.tool).opened()
    ours.says(call(1, "hold"))
    assert holding.begun.acquire(timeout=20)
    ours.says(cancel(1), ask(2, "ping"))
    assert ours.hears() == reply(2, {})
    holding.go.set()
    assert ours.rest() == answers


@promise("W5")
@pytest.mark.parametrize("target", ["1", 2, "ask-1", 1.0, True, None, [1]])
def test_only_the_agents_own_call_in_flight_can_be_cancelled(agent, target):
    asking = Asking()
    ours = agent(asking.tool).opened()
    ours.says(call(1))
    ours.hears()
    ours.says(cancel(target), reply("ask-1", YES))
    assert ours.hears() == reply(1, OK)
    assert asking.ends == [YES]


@promise("W6")
def test_progress_carries_the_agents_token_and_ends_with_the_call(agent):
    kept = []

    def act(seen):
        kept.append(seen)
        for step in (1, 1, 0.5, 2):
            seen.progress(step)
        return OK

    ours = agent(a_tool("act", act)).opened()
    ours.says(call(1, _meta={"progressToken": "p"}))
    steps = [told("notifications/progress", progressToken="p", progress=step) for step in (1, 2)]
    assert [ours.hears() for _ in range(3)] == [*steps, reply(1, OK)]
    kept[0].progress(3)
    assert ours.rest() == []


# -- hostile agents


@promise("W4")
@pytest.mark.parametrize("answered", ["ask-2", "ask-01", "ask-", "ask-x", "1", 1, "ask-" + "9" * 5000])
def test_an_answer_to_what_was_never_asked_is_recorded_and_answers_nothing(agent, answered):
    asking = Asking()
    ours = agent(asking.tool).opened()
    ours.says(call(1))
    ours.hears()
    ours.says(reply(answered, YES), reply("ask-1", {"action": "decline"}))
    assert ours.hears() == reply(1, OK)
    assert asking.ends == [{"action": "decline"}]
    assert [each.kind for each in ours.session.oddities] == [Odd.UNKNOWN_ID]


@promise("W4")
def test_a_second_answer_is_recorded_and_changes_nothing(agent):
    asking = Asking()
    ours = agent(asking.tool).opened()
    ours.says(call(1))
    ours.hears()
    ours.says(reply("ask-1", {"action": "decline"}), reply("ask-1", YES))
    assert ours.hears() == reply(1, OK)
    ours.says(ask(2, "ping"))
    ours.hears()
    assert asking.ends == [{"action": "decline"}]
    assert [each.kind for each in ours.session.oddities] == [Odd.SETTLED_ID]


@promise("W3")
@pytest.mark.parametrize(
    ("line", "answer"),
    [
        pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1,"a":2}}\n', (7, -32700), id="key twice"),
        pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\xff"}}\n', (7, -32700), id="UTF-8"),
        pytest.param(b"\xef\xbb\xbf{}\n", (None, -32700), id="BOM"),
        pytest.param(b"[]\n", (None, -32600), id="batch"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', (None, -32600), id="null id"),
        pytest.param(b'"' + b"x" * 5000 + b'"\n', (None, -32600), id="too long"),
        pytest.param(b"\n", (None, -32700), id="nothing"),
    ],
)
def test_a_bad_line_is_answered_and_the_question_stays_open(agent, line, answer):
    asking = Asking()
    ours = agent(asking.tool, limits=Limits(line=4096)).opened()
    ours.says(call(1))
    ours.hears()
    ours.says(line)
    assert code(ours.hears()) == answer
    ours.says(reply("ask-1", YES))
    assert ours.hears() == reply(1, OK)


@promise("W3")
def test_an_id_in_flight_is_refused_and_acts_once_and_is_free_with_its_answer(agent):
    holding = Holding(read_only=False)
    ours = agent(holding.tool).opened()
    ours.says(call(1, "hold"), call(1, "hold"))
    refused = ours.hears()
    assert (code(refused), refused["error"]["data"]) == ((1, -32600), {"reason": "duplicate_request_id"})
    holding.go.set()
    for _ in range(50):
        assert ours.hears() == reply(1, OK)
        ours.says(call(1, "hold"))
    assert ours.rest() == [reply(1, OK)]
    assert holding.calls == 51


def test_more_calls_than_can_wait_are_refused_and_the_others_are_made(agent):
    holding = Holding()
    ours = agent(holding.tool, limits=Limits(calls=1, waiting=1)).opened()
    ours.says(*(call(number, "hold") for number in (1, 2, 3)))
    assert code(ours.hears()) == (3, -32603)
    holding.go.set()
    assert ours.rest() == [reply(1, OK), reply(2, OK)]


def test_a_flood_is_answered_line_by_line(agent):
    ours = agent(a_tool("act"), limits=Limits(waiting=1024)).opened()
    lines = [json.dumps(each).encode() + b"\n" for n in range(500) for each in (call(n), ask(f"p{n}", "ping"))]
    bad = [b"{}\n"] * 500
    flood = threading.Thread(target=ours.says, args=[b"".join(lines + bad)])
    flood.start()
    heard = [ours.hears() for _ in range(1500)]
    flood.join()
    assert {each["id"] for each in heard if "result" in each} == {*range(500), *(f"p{n}" for n in range(500))}
    assert sum("error" in each for each in heard) == 500
    assert len(ours.session.oddities) == 100


# -- ends


def call_threads():
    return [each for each in threading.enumerate() if each.name.startswith("call")]


@promise("W7")
def test_the_end_of_input_in_the_middle_of_a_question_fails_it_and_leaves_nothing_running(agent):
    asking = Asking()
    ours = agent(asking.tool).opened()
    ours.says(call(1), call(2))
    ours.hears()
    ours.hears()
    assert sorted(each["id"] for each in ours.rest()) == [1, 2]
    assert asking.ends == [Silence.FAILED, Silence.FAILED]
    assert call_threads() == []


def test_who_says_all_at_once_and_no_more_is_still_answered(agent):
    asking = Asking()
    ours = agent(asking.tool, a_tool("read")).opened()
    ours.says(*(call(number, "read") for number in range(100)), call(100))
    answers = ours.rest()
    assert sorted(each["id"] for each in answers if "result" in each) == list(range(101))
    assert asking.ends == [Silence.FAILED]


def test_a_half_line_at_the_end_is_told(agent):
    ours = agent().opened()
    ours.says(b'{"jsonrpc"')
    (answer,) = ours.rest()
    assert code(answer) == (None, -32700)


def test_an_agent_that_is_gone_has_cancelled_everything(agent):
    holding, seen = Holding(), []
    watched = a_tool("watched", lambda each: (holding(each) and seen.append(each)) or OK, read_only=False)
    ours = agent(watched).opened()
    ours.says(call(1, "watched"))
    assert holding.begun.acquire(timeout=20)
    ours.deafens()
    ours.says(ask(2, "ping"))
    holding.go.set()
    ours.joins()
    assert seen[0].cancelled
    assert call_threads() == []


def test_an_agent_that_does_not_read_is_given_up_in_bounded_time(agent):
    ends = []

    def act(seen):
        ends.append(seen.ask("x" * 2**20, SCHEMA, MINUTE))
        return OK

    ours = agent(a_tool("act", act), limits=Limits(write_ns=30 * MS)).opened()
    ours.says(call(1))
    ours.joins()
    # Who finds it out first settles the question: who writes, or who reads and cancels all calls.
    assert ends in ([Silence.FAILED], [Silence.CANCELLED])


def test_an_interrupt_cancels_what_is_in_flight_and_goes_on(agent):
    asking = Asking()
    ours = agent(asking.tool).opened()
    ours.says(call(1))
    ours.hears()

    def interrupted(frame):
        raise KeyboardInterrupt

    ours.session._talk.side.judge = interrupted
    ours.says(ask(2, "ping"))
    ours.joins()
    assert type(ours.crash) is KeyboardInterrupt
    assert asking.ends == [Silence.CANCELLED]
    assert call_threads() == []


def test_an_interrupt_cancels_what_still_runs_when_the_agent_is_gone(agent):
    running, cancelled = threading.Event(), threading.Event()

    def act(flight):
        flight.on_cancel(cancelled.set)
        running.set()
        cancelled.wait()
        return OK

    ours = agent(a_tool("act", act)).opened()
    shutdown = ours.session._service.calls.shutdown

    def interrupted():
        ours.session._service.calls.shutdown = shutdown
        raise KeyboardInterrupt

    ours.session._service.calls.shutdown = interrupted
    ours.says(call(1))
    running.wait()
    ours.hangs_up()
    ours.joins()
    assert type(ours.crash) is KeyboardInterrupt
    assert call_threads() == []


@promise("W5")
@pytest.mark.parametrize("first", ["hangs_up", "deafens"])
def test_an_agent_that_is_gone_on_both_sides_has_cancelled_what_it_never_waited_for(agent, first):
    running, cancelled = threading.Event(), threading.Event()

    def act(flight):
        flight.on_cancel(cancelled.set)
        running.set()
        cancelled.wait()
        return OK

    ours = agent(a_tool("act", act)).opened()
    ours.says(call(1))
    running.wait()
    getattr(ours, first)()
    ours.hangs_up()
    ours.deafens()
    ours.joins()
    assert ours.crash is None
    assert call_threads() == []


def test_a_call_that_brings_an_answer_waits_for_nobody_and_can_be_cancelled_to_the_end(agent):
    waiting, answered, cancelled = threading.Event(), threading.Event(), threading.Event()

    def act(flight):
        if flight.resumed is None:
            waiting.set()
            answered.wait()
            return OK
        flight.on_cancel(cancelled.set)
        answered.set()
        cancelled.wait()
        raise CallCancelled

    ours = agent(a_tool("act", act, read_only=False), limits=Limits(calls=1))
    ours.says(modern(1))
    waiting.wait()
    ours.says(modern(2, requestState="s"))
    assert ours.hears()["id"] == 1  # it ends by what the second brought
    ours.says(cancel(2))
    assert ours.rest() == []


# -- tools that fail


@promise("W8")
def test_an_unknown_tool_is_an_error_of_the_protocol(agent):
    ours = agent(a_tool("act")).opened()
    ours.says(call(1, "nobody"))
    assert code(ours.hears()) == (1, -32602)


@promise("W8")
def test_a_tool_may_answer_with_an_error_of_the_protocol(agent):
    def act(seen):
        raise ToolProblem(-32021, "needs elicitation", {"requiredCapabilities": FORM})

    ours = agent(a_tool("act", act)).opened()
    ours.says(call(1))
    error = {"code": -32021, "message": "needs elicitation", "data": {"requiredCapabilities": FORM}}
    assert ours.hears() == {"jsonrpc": "2.0", "id": 1, "error": error}


@pytest.mark.parametrize("reads", [True, False])
def test_a_tool_that_breaks_and_may_have_acted_says_that_this_is_not_known(agent, reads):
    ours = agent(a_tool("act", lambda seen: 1 / 0, read_only=reads)).opened()
    ours.says(call(1))
    unknown = "" if reads else "; what it did is not known: look before you call it again"
    assert ours.hears()["error"] == {"code": -32603, "message": f"the tool failed{unknown}"}


@pytest.mark.parametrize("result", [None, {"n": 2**60}, {"s": "\ud800"}])
def test_a_tool_that_breaks_or_gives_no_sound_result_tells_nothing(agent, result):
    def act(seen):
        return result if result else 1 / 0

    ours = agent(a_tool("act", act)).opened()
    ours.says(call(1), ask(2, "ping"))
    answers = {each["id"]: each for each in (ours.hears(), ours.hears())}
    assert code(answers[1]) == (1, -32603)
    assert "division" not in json.dumps(answers[1])
    assert answers[2] == reply(2, {})
    assert [each.kind for each in ours.session.oddities] == ([] if result else [Odd.CALLBACK_FAILED])
