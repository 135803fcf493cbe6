"""Questions of servers, put to clients of both eras: by whom, for whom, and how often a state is good."""

import threading
from types import SimpleNamespace

import pytest
from marks import promise

from assisted_benchmark.gateway.held import Asked, HeldCalls
from assisted_benchmark.gateway.names import Place
from assisted_benchmark.gateway.tools import Resumed, Session
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.relay import Silence

TOOL, OTHER = Place("files", "move"), Place("files", "copy")
SCHEMA = {"type": "object", "properties": {}}
YES = {"action": "accept", "content": {}}


class ACall(SimpleNamespace):
    """A call of an agent's, and what it heard."""

    def __init__(self, state=None, answer=None, **more):
        resumed = None if state is None else Resumed(state, answer)
        values = {
            "era": Era.STATELESS,
            "can_ask": True,
            "wants_progress": True,
            "cancelled": False,
            "session": Session("run", "agent"),
            "arguments": b"{}",
            "resumed": resumed,
        }
        super().__init__(**values | more)
        self.steps = []
        self.stop = None

    def on_cancel(self, stop):
        self.stop = stop

    def progress(self, current, total=None, message=""):
        self.steps.append(current)

    def question(self, message, schema, heard):
        self.asked = message, schema
        heard(YES)
        return lambda: None


class Server:
    """What carries the call out: it asks these messages one after the other, and ends as what it heard."""

    def __init__(self, *messages):
        self.messages = messages
        self.heard, self.stopped = [], threading.Event()
        self.relay = None

    def __call__(self, relay):
        self.relay = relay
        relay.on_cancel(self.stopped.set)
        for number, message in enumerate(self.messages):
            relay.progress(number + 1)
            come = threading.Event()
            over = relay.question(message, SCHEMA, lambda answer, come=come: (self.heard.append(answer), come.set()))
            come.wait(20)
            over()
        return Refused(Reason.FAILED, repr(self.heard))


def joined():
    """Every call that is held has ended."""
    for thread in threading.enumerate():
        if thread.name == "held":
            thread.join(20)


@pytest.fixture
def held():
    return HeldCalls(SystemChance())


@promise("W1", "M17")
def test_a_client_of_the_handshake_era_is_asked_while_its_call_waits_and_told_who_asks(held):
    call, server = ACall(era=Era.HANDSHAKE), Server("may I?")
    assert isinstance(held.made(call, TOOL, server), Refused)
    assert call.asked == ("The server `files` asks: may I?", SCHEMA)
    assert (server.heard, call.steps, server.relay.can_ask, server.relay.cancelled) == ([YES], [1], True, False)


@pytest.mark.parametrize("era", list(Era))
def test_the_relay_of_a_client_that_shows_no_forms_says_so(held, era):
    server = Server()
    held.made(ACall(era=era, can_ask=False), TOOL, server)
    assert not server.relay.can_ask


@promise("W1", "M17", "W6")
def test_a_client_of_the_stateless_era_answers_by_calling_again_as_often_as_it_is_asked(held):
    first, server = ACall(), Server("one?", "two?")
    asked = held.made(first, TOOL, server)
    assert (asked.message, asked.requested_schema) == ("The server `files` asks: one?", SCHEMA)
    server.relay.progress(7)  # nobody waits now, and what was answered hears no more
    second = ACall(asked.state, YES)
    again = held.made(second, TOOL, server)
    assert (again.message, again.state != asked.state) == ("The server `files` asks: two?", True)
    end = held.made(ACall(again.state, None), TOOL, server)
    assert (end.detail, server.heard) == (repr([YES, None]), [YES, None])
    assert (first.steps, second.steps) == ([1], [2])


@promise("W15a", "L17")
@pytest.mark.parametrize(
    ("tool", "more"),
    [
        pytest.param(OTHER, {}, id="another tool"),
        pytest.param(TOOL, {"arguments": b'{"x":1}'}, id="other arguments"),
        pytest.param(TOOL, {"session": Session("run", "mallory")}, id="another session"),
        pytest.param(TOOL, {"can_ask": False, "session": Session("run-2", "agent")}, id="another run"),
    ],
)
def test_a_state_is_good_for_its_call_alone_and_once(held, tool, more):
    server, made = Server("one?"), []
    asked = held.made(ACall(), TOOL, server)
    assert held.made(ACall(asked.state, YES, **more), tool, made.append) is None
    assert held.made(ACall("0" * 32, YES), TOOL, made.append) is None
    assert isinstance(held.made(ACall(asked.state, YES), TOOL, made.append), Refused)
    assert held.made(ACall(asked.state, YES), TOOL, made.append) is None
    assert (made, server.heard) == ([], [YES])  # and nothing was carried out anew


@promise("W7")
def test_an_answer_after_the_question_is_over_hears_what_came_of_the_call(held):
    heard, ended, relays = [], threading.Event(), []

    def impatient(relay):
        relays.append(relay)
        over = relay.question("one?", SCHEMA, heard.append)
        ended.wait(20)
        over()
        return Refused(Reason.FAILED, "nobody answered")

    asked = held.made(ACall(), TOOL, impatient)
    ended.set()
    joined()
    assert held.made(ACall(asked.state, YES), TOOL, impatient).detail == "nobody answered"
    assert (heard, len(relays)) == ([], 1)


@promise("W5")
def test_a_cancellation_reaches_the_server_from_whichever_call_waits(held):
    server = Server("one?", "two?")
    asked = held.made(ACall(), TOOL, server)
    second = ACall(asked.state, YES)
    again = held.made(second, TOOL, server)
    assert isinstance(again, Asked)
    second.stop()
    assert server.stopped.wait(20)
    end = held.made(ACall(again.state, YES), TOOL, server)
    assert (end.detail, server.relay.cancelled) == (repr([YES, Silence.CANCELLED]), True)
    late = []
    server.relay.on_cancel(lambda: late.append(1))
    server.relay.question("three?", SCHEMA, late.append)()
    assert late == [1, Silence.CANCELLED]


@promise("W5", "L18")
def test_when_the_client_is_gone_what_it_was_asked_is_cancelled_and_so_is_what_is_asked_later(held):
    servers = [Server("one?"), Server("one?")]
    held.made(ACall(), TOOL, servers[0])
    held.close()
    assert servers[0].stopped.wait(20)
    held.made(ACall(), TOOL, servers[1])
    assert servers[1].stopped.wait(20)
    joined()
    assert [each.heard for each in servers] == [[Silence.CANCELLED]] * 2


def test_of_calls_that_nobody_comes_back_for_only_some_are_kept(held):
    servers = [Server("one?") for _ in range(17)]
    first, *_, last = [held.made(ACall(), TOOL, each) for each in servers]
    assert held.made(ACall(first.state, YES), TOOL, print) is None
    assert isinstance(held.made(ACall(last.state, YES), TOOL, print), Refused)
    assert servers[0].stopped.wait(20)
    held.close()


def test_what_breaks_while_a_call_is_held_is_raised_where_it_is_waited_for(held):
    def breaks(_relay):
        raise HarnessError(Reason.LEDGER_TAMPERED, "somebody edited it")

    with pytest.raises(HarnessError) as caught:
        held.made(ACall(), TOOL, breaks)
    assert caught.value.reason is Reason.LEDGER_TAMPERED


def test_a_call_whose_client_is_gone_while_it_waits_is_cancelled(held):
    seen = []
    call = ACall(cancelled=True)
    held.made(call, TOOL, lambda relay: seen.append(relay.cancelled) or Refused(Reason.CANCELLED))
    assert seen == [True]
