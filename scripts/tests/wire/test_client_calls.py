"""How a call ends, listing, progress, cancelling, and what a server may say meanwhile."""

import json
import os
import socket
import threading

import pytest
from marks import promise
from wire_peers import MS, OK, Caller, discovered, failure, initialized, reply, told

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.clock import Deadline, ManualClock
from assisted_benchmark.kernel.errors import MisuseError, ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.wire.client_session import ClientSession
from assisted_benchmark.wire.outcomes import Era, Error, Limits, Odd, Result


def kinds(peer):
    peer.session.drain()
    return [oddity.kind for oddity in peer.session.oddities]


def ends(end):
    return type(end), getattr(end, "reason", None)


UNKNOWN = (Uncertain, Reason.OUTCOME_UNKNOWN)
INVALID = (Uncertain, Reason.RESULT_INVALID)


# -- answers


def test_a_result_ends_a_call_with_its_canonical_bytes_and_both_instants(pipes):
    peer = pipes().connected()
    result = {"structuredContent": {"b": 1.0, "a": None}, "content": [], "x-unknown": "kept"}

    def later():
        peer.clock.advance(5)

    before = peer.clock.now()
    end = peer.call(later, reply(2, result))
    after = peer.clock.now()
    assert end == Result(canonical_bytes(result), result, after, after)
    assert after.mono_ns - before.mono_ns == 5
    assert not end.failed


def test_the_arguments_arrive_to_the_byte(pipes):
    peer = pipes().connected()
    peer.call(reply(2, OK), arguments=b'{"z":1.50,"a":9007199254740991}')
    assert peer.lines[-1] == (
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":'
        b'{"name":"t","arguments":{"z":1.50,"a":9007199254740991}}}'
    )


def test_a_tool_that_says_it_failed_has_a_result_that_failed(pipes):
    end = pipes().connected().call(reply(2, OK | {"isError": True}))
    assert isinstance(end, Result)
    assert end.failed


@promise("W8")
def test_an_error_of_the_server_is_told_apart_from_a_timeout_of_ours(pipes):
    peer = pipes().connected()
    error = {"code": -32602, "message": "no", "data": [1]}
    now = peer.clock.now()
    assert peer.call(failure(2, -32602, [1])) == Error(canonical_bytes(error), error, now, now)
    assert ends(peer.call(ms=2)) == UNKNOWN


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(2, None), id="null"),
        pytest.param(reply(2, [OK]), id="list"),
        pytest.param(reply(2, {}), id="no content"),
        pytest.param(reply(2, {"content": "ok"}), id="content is no list"),
        pytest.param(reply(2, OK | {"isError": "false"}), id="isError is text"),
        pytest.param(reply(2, OK | {"isError": 0}), id="isError is a number"),
        pytest.param(reply(2, OK | {"isError": None}), id="isError is null"),
        pytest.param(reply(2, OK | {"resultType": "input_required", "requestState": "s"}), id="wants more input"),
        pytest.param(reply(2, OK | {"resultType": None}), id="no result type"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":{"a":1,"a":2}}\n', id="duplicate key"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":{"a":NaN}}\n', id="NaN"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":{"a":9007199254740993}}\n', id="unsafe integer"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":{"a":"\xff"}}\n', id="bad UTF-8"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":""}}\n', id="both"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"error":true}\n', id="error is no object"),
    ],
)
def test_an_answer_that_is_no_sound_result_is_uncertain(pipes, answer):
    assert ends(pipes().connected().call(answer)) == INVALID


def test_a_complete_result_may_say_so(pipes):
    assert isinstance(pipes().connected().call(reply(2, OK | {"resultType": "complete"})), Result)


@promise("W4")
def test_two_answers_to_one_call_contradict_each_other(pipes):
    assert ends(pipes().connected().call(reply(2, OK), reply(2, OK))) == INVALID
    assert ends(pipes().connected().call(failure(2, -1), b'{"jsonrpc":"2.0","id":2,"result":NaN}\n')) == INVALID


@promise("W4")
def test_a_second_answer_behind_a_chunk_that_was_full_is_found(pipes):
    first = canonical_bytes(reply(2, OK | {"pad": ""}))
    first = canonical_bytes(reply(2, OK | {"pad": "x" * (65536 - len(first) - 1)})) + b"\n"
    assert len(first) == 65536
    peer = pipes().connected()
    writer = threading.Thread(target=os.write, args=(peer._out, first + canonical_bytes(reply(2, OK)) + b"\n"))
    assert ends(peer.call(writer.start, ms=5000)) in {INVALID, (Result, None)}
    writer.join()
    peer.session.drain()
    # Either it was there already, or it is known as a late one: never as an answer to the next call.
    assert isinstance(peer.call(reply(3, OK)), Result)


@promise("W4")
@pytest.mark.parametrize(
    ("stray", "kind"),
    [
        pytest.param(reply("2", OK), Odd.UNKNOWN_ID, id="the id as text"),
        pytest.param(reply(99, OK), Odd.UNKNOWN_ID, id="an id nobody used"),
        pytest.param(reply(0, OK), Odd.UNKNOWN_ID, id="zero"),
        pytest.param(reply(-2, OK), Odd.UNKNOWN_ID, id="negative"),
        pytest.param(failure(None, -32700), Odd.UNKNOWN_ID, id="no id"),
        pytest.param(reply(1, OK), Odd.SETTLED_ID, id="a settled id"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}\n', Odd.BAD_LINE, id="bad, for a settled id"),
        pytest.param(b'{"jsonrpc":"2.0","id":2.0,"result":{}}\n', Odd.BAD_LINE, id="the id as a float"),
        pytest.param(b'{"jsonrpc":"2.0","id":true,"result":{}}\n', Odd.BAD_LINE, id="the id as a boolean"),
    ],
)
def test_an_answer_that_nobody_waits_for_is_recorded_and_ignored(pipes, stray, kind):
    peer = pipes().connected()
    assert isinstance(peer.call(stray, reply(2, OK)), Result)
    assert kinds(peer) == [kind]
    assert peer.heard()[1:] == []


@promise("W4")
def test_a_late_answer_is_recorded_and_never_given_to_the_next_call(pipes):
    peer = pipes().connected()
    assert ends(peer.call(ms=2)) == UNKNOWN
    assert peer.call(reply(2, OK | {"late": True}), reply(3, OK)).value == OK
    assert kinds(peer) == [Odd.SETTLED_ID]


@promise("W4")
def test_an_answer_that_was_there_before_the_call_is_no_answer_to_it(pipes):
    peer = pipes().connected()
    peer.says(reply(2, OK))
    assert ends(peer.call(ms=2)) == UNKNOWN
    assert kinds(peer) == [Odd.UNKNOWN_ID]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"\xff\xfe\n", id="bad UTF-8"),
        pytest.param(b"\xef\xbb\xbf{}\n", id="BOM"),
        pytest.param(b"Server started\n", id="words"),
        pytest.param(b"\n", id="nothing"),
        pytest.param(b'[{"jsonrpc":"2.0","id":2,"result":{}}]\n', id="batch"),
        pytest.param(b'{"jsonrpc":"2.0","method":"tools/list"}\n', id="request without id"),
        pytest.param(b"x" * 5000 + b"\n", id="too long"),
    ],
)
def test_a_bad_line_is_recorded_and_ends_nothing(pipes, line):
    peer = pipes(limits=Limits(line=4096)).connected()
    assert isinstance(peer.call(line, reply(2, OK)), Result)
    assert kinds(peer) == [Odd.BAD_LINE]
    assert [message["method"] for message in peer.heard()] == ["tools/call"]


def test_an_answer_that_is_too_long_to_read_leaves_the_call_uncertain(pipes):
    peer = pipes(limits=Limits(line=4096)).connected()
    assert ends(peer.call(reply(2, OK | {"pad": "x" * 5000}), ms=5)) == UNKNOWN
    assert [oddity.reason for oddity in peer.session.oddities] == [Reason.TOO_LARGE]


# -- before and after the first byte


def test_a_closed_gate_sends_nothing(pipes):
    peer = pipes().connected()
    assert ends(peer.call(gate=lambda: False)) == (NotSent, Reason.EXPIRED)
    assert peer.heard() == []
    assert not peer.session.closed


def test_the_gate_is_asked_last_before_the_first_byte(pipes):
    peer = pipes().connected()
    seen = []

    def gate():
        seen.append(list(peer.heard()))
        return True

    peer.call(reply(2, OK), gate=gate)
    assert seen == [[]]


def test_a_gate_that_raises_sends_nothing_and_leaves_the_session_usable(pipes):
    peer = pipes().connected()
    with pytest.raises(ZeroDivisionError):
        peer.call(gate=lambda: 1 / 0)
    assert peer.heard() == []
    peer._answers.clear()
    assert isinstance(peer.call(reply(3, OK)), Result)


def test_a_server_that_has_ended_gets_nothing(pipes):
    peer = pipes().connected()
    peer.dies()
    assert ends(peer.call()) == (NotSent, Reason.SERVER_UNAVAILABLE)
    assert peer.session.closed


def test_a_server_that_closed_only_its_input_gets_nothing(pipes):
    peer = pipes().connected()
    peer.shuts("_in")
    assert ends(peer.call()) == (NotSent, Reason.SERVER_UNAVAILABLE)
    assert peer.session.closed
    assert ends(peer.call()) == (NotSent, Reason.SERVER_UNAVAILABLE)


def test_a_server_that_ends_after_the_first_byte_leaves_the_call_uncertain(pipes):
    peer = pipes().connected()
    assert ends(peer.call(peer.dies)) == UNKNOWN


def test_an_answer_right_before_the_end_counts(pipes):
    peer = pipes().connected()
    assert isinstance(peer.call(reply(2, OK), peer.dies), Result)
    assert ends(peer.call()) == (NotSent, Reason.SERVER_UNAVAILABLE)


@promise("W3")
def test_an_answer_without_a_line_end_is_half_an_answer(pipes):
    peer = pipes().connected()
    assert ends(peer.call(canonical_bytes(reply(2, OK)), peer.dies)) == UNKNOWN
    assert kinds(peer) == [Odd.HALF_LINE]


BIG = b'{"a":"' + b"x" * 200_000 + b'"}'


def test_a_server_that_stops_reading_cannot_hold_us_past_the_deadline(pipes):
    peer = pipes().connected()
    peer.session._channel.write = peer._write  # nobody reads any more
    assert ends(peer.call(arguments=BIG, ms=5)) == UNKNOWN
    assert peer.session.closed  # what would follow would be read as the rest of the call
    assert ends(peer.call()) == (NotSent, Reason.SERVER_UNAVAILABLE)


def test_a_server_that_does_not_read_at_all_is_unavailable(pipes):
    peer = pipes().connected()
    peer.session._channel.write = peer._write
    full = 0
    while taken := peer._write(memoryview(b"\n" * 65536)):
        full += taken
    asked = []
    assert ends(peer.call(ms=5, gate=lambda: not asked.append(1))) == (NotSent, Reason.SERVER_UNAVAILABLE)
    assert asked
    assert len(os.read(peer._in, 1 << 20)) == full
    assert isinstance(peer.session.closed, bool)
    assert not peer.session.closed


def test_the_gate_is_asked_again_when_the_pipe_was_full(pipes):
    peer = pipes().connected()
    peer.session._channel.write = peer._write
    while peer._write(memoryview(b"\n" * 65536)):
        pass
    asked = []

    def gate():
        asked.append(1)
        if len(asked) == 1:
            os.read(peer._in, 1 << 20)  # room again, but the gate has closed by then
        return len(asked) == 1

    assert ends(peer.call(gate=gate)) in {(NotSent, Reason.EXPIRED), UNKNOWN}
    assert asked


def test_a_long_call_is_written_in_pieces_and_arrives_whole(pipes):
    peer = pipes().connected()
    assert isinstance(peer.call(reply(2, OK), arguments=BIG, ms=5000), Result)
    assert peer.lines[-1].endswith(b'"arguments":' + BIG + b"}}")


def test_a_server_that_ends_in_the_middle_of_a_call_leaves_it_uncertain(pipes):
    peer = pipes().connected()

    def read_some(data):
        written = peer._write(data)
        peer.dies()
        return written

    peer.session._channel.write = read_some
    assert ends(peer.call(arguments=BIG, ms=5000)) == UNKNOWN


# -- deadlines and cancelling


@promise("W5", "W7")
def test_a_call_without_an_answer_in_time_is_uncertain_and_cancelled_with_the_servers_id(pipes):
    peer = pipes().connected()
    assert ends(peer.call(ms=2)) == UNKNOWN
    call, cancelled = peer.heard()
    assert cancelled == told("notifications/cancelled", requestId=call["id"], reason="the time budget ran out")


@promise("W5")
def test_a_call_that_is_cancelled_before_it_is_written_is_not_sent(pipes):
    peer = pipes().connected()
    peer.session._channel.write = lambda data: 0  # the pipe is full
    asked = []

    def gate():
        asked.append(peer.session.cancel("enough"))
        return True

    assert ends(peer.call(gate=gate, ms=1000)) == (NotSent, Reason.CANCELLED)
    assert asked == [True]
    assert peer.lines == peer.lines[:2]


@promise("W5")
def test_a_call_that_is_cancelled_after_it_is_written_is_told_to_the_server_and_waits_for_grace(pipes):
    peer = pipes().connected()
    end = peer.call(lambda: peer.session.cancel("enough"), ms=5000)
    assert ends(end) == UNKNOWN
    call, cancelled = peer.heard()
    assert cancelled == told("notifications/cancelled", requestId=call["id"], reason="enough")


@promise("W5")
def test_a_result_within_the_grace_counts(pipes):
    peer = pipes(limits=Limits(grace_ns=5000 * MS)).connected()
    post = peer.session._channel.post

    def answer_the_cancellation(frame):
        peer.says(reply(2, OK))
        return post(frame)

    peer.session._channel.post = answer_the_cancellation
    assert isinstance(peer.call(lambda: peer.session.cancel("enough"), ms=5000), Result)


@promise("W5")
def test_another_thread_wakes_the_one_that_waits(pipes):
    peer = pipes().connected()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(peer.session.cancel("enough")))
    assert ends(peer.call(thread.start, ms=60_000)) == UNKNOWN
    thread.join()
    assert answers == [True]


def test_a_cancellation_without_a_call_does_nothing_and_hits_no_later_one(pipes):
    peer = pipes().connected()
    assert not peer.session.cancel("early")
    assert ends(peer.call(lambda: peer.session.cancel("now"), ms=1000)) == UNKNOWN
    assert isinstance(peer.call(reply(3, OK)), Result)


def test_a_bell_that_rings_often_stays_one_bell(pipes):
    peer = pipes().connected()
    for _ in range(70_000):
        peer.session._channel.ring()
    assert isinstance(peer.call(reply(2, OK)), Result)


@promise("W7")
def test_a_session_that_is_busy_past_the_deadline_sends_nothing(pipes):
    peer = pipes().connected()
    peer.session._turn.acquire()
    assert ends(peer.call(ms=2)) == (NotSent, Reason.SERVER_UNAVAILABLE)
    with pytest.raises(ServerError) as caught:
        peer.session.list_tools(peer.within(2))
    assert caught.value.reason is Reason.DEADLINE_EXCEEDED
    peer.session.drain()
    assert peer.heard() == []
    peer.session._turn.release()


def test_arguments_that_are_no_object_are_a_misuse_and_leave_the_session_usable(pipes):
    peer = pipes().connected()
    with pytest.raises(MisuseError):
        peer.call(arguments=b"[]")
    peer._answers.clear()
    assert isinstance(peer.call(reply(3, OK)), Result)


# -- progress


def progress(token, current, **more):
    return told("notifications/progress", progressToken=token, progress=current, **more)


@promise("W6")
def test_progress_is_handed_on_in_order_with_our_token_and_nothing_after_the_answer(pipes):
    peer = pipes().connected()
    agent = Caller(wants_progress=True)
    steps = [progress(2, 1, total=3, message="a"), progress(2, 1.5, total="x", message=4), progress(2, 3)]
    peer.call(*steps, reply(2, OK), progress(2, 4), relay=agent)
    assert agent.steps == [(1, 3, "a"), (1.5, None, ""), (3, None, "")]
    assert peer.heard()[0]["params"]["_meta"] == {"progressToken": 2}
    assert kinds(peer) == [Odd.STRAY_PROGRESS]


@promise("W6")
@pytest.mark.parametrize(
    "stray",
    [
        pytest.param(progress(1, 5), id="another token"),
        pytest.param(progress("2", 5), id="the token as text"),
        pytest.param(progress(True, 5), id="the token as a boolean"),
        pytest.param(progress(2, "5"), id="no number"),
        pytest.param(progress(2, True), id="a boolean"),
        pytest.param(progress(2, 1), id="standing still"),
        pytest.param(progress(2, 0.5), id="going back"),
        pytest.param(told("notifications/progress"), id="nothing"),
    ],
)
def test_progress_that_is_not_ours_or_does_not_grow_is_recorded_and_dropped(pipes, stray):
    peer = pipes().connected()
    agent = Caller(wants_progress=True)
    peer.call(progress(2, 1), stray, progress(2, 6), reply(2, OK), relay=agent)
    assert [current for current, *_ in agent.steps] == [1, 6]
    assert kinds(peer) == [Odd.STRAY_PROGRESS]


@promise("W6")
def test_progress_is_bounded_and_nobody_hears_it_who_did_not_ask(pipes):
    peer = pipes(limits=Limits(progress=2)).connected()
    agent = Caller(wants_progress=True)
    peer.call(*(progress(2, n) for n in range(4)), reply(2, OK), relay=agent)
    assert len(agent.steps) == 2
    peer.call(progress(3, 1), reply(3, OK))
    assert kinds(peer) == [Odd.STRAY_PROGRESS] * 3


@promise("W6")
def test_a_progress_callback_that_raises_does_not_lose_the_call(pipes):
    peer = pipes().connected()
    agent, seen = Caller(wants_progress=True), []

    def raises(current, *_):
        seen.append(current)
        raise ZeroDivisionError

    agent.progress = raises
    assert isinstance(peer.call(progress(2, 1), progress(2, 2), reply(2, OK), relay=agent), Result)
    assert seen == [1]
    assert kinds(peer) == [Odd.CALLBACK_FAILED, Odd.STRAY_PROGRESS]


@promise("W7")
def test_progress_does_not_extend_the_deadline(pipes):
    peer = pipes().connected()
    agent = Caller(wants_progress=True)
    agent.progress = lambda *_: peer.clock.advance(20 * MS)
    end = peer.call(progress(2, 1), relay=agent, ms=20)
    assert ends(end) == UNKNOWN


# -- what a server may ask


def test_pings_are_answered_and_other_requests_refused(pipes):
    peer = pipes().connected()
    ask = {"jsonrpc": "2.0", "method": "ping", "id": "p"}
    peer.call(ask, ask | {"method": "elicitation/create", "id": 7, "params": {}}, reply(2, OK))
    _, pong, refusal = peer.heard()
    assert pong == reply("p", {})
    assert (refusal["id"], refusal["error"]["code"]) == (7, -32601)
    assert kinds(peer) == [Odd.REFUSED_REQUEST]


def test_a_bad_request_with_a_readable_id_is_answered(pipes):
    peer = pipes().connected()
    peer.call(b'{"jsonrpc":"2.0","id":"x","method":"ping","params":[]}\n', reply(2, OK))
    refusal = peer.heard()[1]
    assert (refusal["id"], refusal["error"]["code"]) == ("x", -32600)


def test_notifications_of_no_concern_are_ignored(pipes):
    peer = pipes().connected()
    news = [
        told("notifications/message", level="info", data="x"),
        told("notifications/x"),
        told("notifications/cancelled"),
    ]
    assert isinstance(peer.call(*news, reply(2, OK)), Result)
    assert kinds(peer) == []


def test_answers_that_the_server_does_not_read_are_bounded(pipes):
    peer = pipes(limits=Limits(outbox=100)).connected()
    peer.session._channel.write = lambda data: 0
    peer.says(*({"jsonrpc": "2.0", "method": "ping", "id": n} for n in range(5)))
    peer.session.drain()
    assert kinds(peer) == [Odd.UNSENT] * 3
    peer.session._channel.write = peer._write
    assert isinstance(peer.call(ms=50), Uncertain)
    *pongs, call = peer.heard()
    assert pongs == [reply(0, {}), reply(1, {})]  # in front of the call, whole
    assert call["method"] == "tools/call"


# -- standard error and ending


def test_standard_error_is_drained_and_its_tail_kept(pipes):
    peer = pipes(limits=Limits(stderr_tail=10)).connected()
    peer.grumbles(b"x" * 60_000 + b"the end")
    peer.call(reply(2, OK))
    assert peer.session.stderr_tail == b"xxxthe end"
    peer.shuts("_err")
    assert isinstance(peer.call(reply(3, OK)), Result)


def test_finishing_closes_the_servers_input_and_drains_it_to_the_end(pipes):
    peer = pipes().connected()
    peer.grumbles(b"bye")
    peer.says(told("notifications/message"))
    assert not peer.session.finish(peer.within(2))
    assert peer.session.stderr_tail == b"bye"
    assert os.read(peer._in, 1) == b""
    peer.dies()
    assert peer.session.finish(peer.within(1000))
    peer.session.close()
    peer.session.close()
    assert peer.session.closed


# -- listing


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}} | more


@promise("W12")
def test_every_page_is_followed_and_unknown_keys_are_kept(pipes):
    odd = tool("b", **{"x-unknown": {"n": 1.0}})
    peer = pipes().connected()
    peer._answers += [
        reply(2, {"tools": [tool("a")], "nextCursor": "c1"}),
        reply(3, {"tools": [odd], "nextCursor": None}),
    ]
    assert peer.session.list_tools(peer.within(50)) == [tool("a"), odd]
    assert [message["params"] for message in peer.heard()] == [{}, {"cursor": "c1"}]


@promise("W12")
@pytest.mark.parametrize(
    ("limits", "pages"),
    [
        pytest.param(Limits(), [{"tools": [], "nextCursor": "c"}] * 3, id="the same cursor again"),
        pytest.param(Limits(pages=2), [{"tools": [], "nextCursor": str(n)} for n in range(3)], id="too many pages"),
        pytest.param(Limits(tools=1), [{"tools": [tool("a"), tool("b")], "nextCursor": "c"}], id="too many tools"),
        pytest.param(Limits(tools=1), [{"tools": [tool("a"), tool("b")]}], id="too many tools on the last page"),
    ],
)
def test_a_listing_that_does_not_end_is_incomplete(pipes, limits, pages):
    peer = pipes(limits=limits).connected()
    peer._answers += [reply(n + 2, page) for n, page in enumerate(pages)]
    with pytest.raises(ServerError) as caught:
        peer.session.list_tools(peer.within(50))
    assert caught.value.reason is Reason.INCOMPLETE_LISTING


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(reply(2, {"tools": [tool("a"), tool("a")]}), Reason.DUPLICATE_TOOL, id="twice"),
        pytest.param(reply(2, {}), Reason.MALFORMED_FRAME, id="no tools"),
        pytest.param(reply(2, {"tools": ["a"]}), Reason.MALFORMED_FRAME, id="no object"),
        pytest.param(reply(2, {"tools": [{"name": 1}]}), Reason.MALFORMED_FRAME, id="no name"),
        pytest.param(reply(2, {"tools": [], "nextCursor": 1}), Reason.MALFORMED_FRAME, id="cursor"),
        pytest.param(reply(2, {"tools": [], "resultType": "input_required"}), Reason.MALFORMED_FRAME, id="more input"),
        pytest.param(reply(2, []), Reason.MALFORMED_FRAME, id="no object at all"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":NaN}\n', Reason.MALFORMED_FRAME, id="bad line"),
        pytest.param(failure(2, -32603), Reason.FAILED, id="error"),
        pytest.param([], Reason.DEADLINE_EXCEEDED, id="silence"),
    ],
)
def test_a_listing_that_cannot_be_trusted_has_a_reason(pipes, answer, reason):
    peer = pipes().connected()
    peer._answers.append(answer)
    with pytest.raises(ServerError) as caught:
        peer.session.list_tools(peer.within(5))
    assert caught.value.reason is reason


def test_a_listing_of_a_server_that_ended_is_unavailable(pipes):
    peer = pipes().connected()
    peer.dies()
    with pytest.raises(ServerError) as caught:
        peer.session.list_tools(peer.within(50))
    assert caught.value.reason is Reason.SERVER_UNAVAILABLE


@promise("W1")
def test_in_the_stateless_era_every_call_carries_the_envelope(pipes):
    peer = pipes(reply(1, discovered()))
    peer.session.connect(peer.within(50))
    probe = peer.heard()[0]["params"]["_meta"]
    peer.call(reply(2, OK | {"resultType": "complete"}), relay=Caller(wants_progress=True))
    assert peer.heard()[0]["params"] == {"name": "t", "arguments": {"a": 1}, "_meta": probe | {"progressToken": 2}}


@promise("W2")
def test_a_call_is_never_made_again_in_another_version(pipes):
    peer = pipes(reply(1, discovered()), failure(2, -32022, {"supported": ["2025-11-25"]}))
    peer.session.connect(peer.within(50))
    assert isinstance(peer.call(), Error)
    assert [message["method"] for message in peer.heard()] == ["server/discover", "tools/call"]


# -- descriptors


def test_a_server_over_a_socket_without_standard_error_may_break_off():
    ours, theirs = socket.socketpair()
    clock = ManualClock()
    session = ClientSession(os.dup(ours.fileno()), ours.detach(), None, clock, era=Era.HANDSHAKE)
    session._channel._read_lines()  # woken for nothing
    theirs.sendall(json.dumps(reply(1, initialized())).encode() + b"\n")
    session.connect(Deadline.after(clock, 100 * MS))
    theirs.close()  # with something unread, so that reading on our side fails instead of ending
    session.drain()
    assert session.closed
    assert session.stderr_tail == b""
    session.close()


def test_a_budget_of_years_can_be_waited_for(pipes):
    assert isinstance(pipes().connected().call(reply(2, OK), ms=10**11), Result)
