"""The gateway over HTTP: who may speak, what is answered with which status, sessions and single requests."""

import asyncio
import json
import threading

import pytest
from agent_peers import OK, SCHEMA, STATELESS, a_tool, ask, call, cancel, modern, reply
from agent_peers import told as notice
from http_peers import BEARER, INITIALIZE, LEGACY, Place, events, result, stateless, told
from marks import promise

from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.http_exchange import Exchange
from assisted_benchmark.gateway.principals import OneGrant
from assisted_benchmark.gateway.tools import Resources, Session
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.wire.outcomes import Odd
from assisted_benchmark.wire.relay import Silence

PING = ask(1, "ping")
LIST = ask(1, "tools/list")


@pytest.fixture(scope="module")
def standing():
    made = Place(a_tool("act"))
    yield made
    made.close()


@pytest.fixture
def shared(standing):
    """One gateway with one tool, for what leaves nothing behind in it."""
    standing.malformed.clear()
    return standing


class Asking:
    """A tool that asks a person, and keeps what came."""

    def __init__(self):
        self.ends = []
        self.heard = threading.Semaphore(0)
        self.tool = a_tool("ask", self, read_only=False)

    def __call__(self, flight):
        self.ends.append(flight.ask("really?", SCHEMA, 20 * SECOND))
        self.heard.release()
        return OK


class Holding:
    """A tool that waits until the test lets it go, or until it is cancelled."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()
        self.stopped = threading.Event()
        self.tool = a_tool("hold", self)

    def __call__(self, flight):
        flight.on_cancel(lambda: (self.stopped.set(), self.go.set()))
        self.begun.release()
        assert self.go.wait(20)
        return OK


# -- who may speak at all


@promise("W16")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 200, id="the port by its address"),
        pytest.param({"host": "localhost:{port}"}, 200, id="the port by its name"),
        pytest.param({"origin": "http://localhost:{port}"}, 200, id="a page of ours"),
        pytest.param({"origin": "http://127.0.0.1:{port}"}, 200, id="a page of ours, by address"),
        pytest.param({"host": "evil.example:{port}"}, 403, id="a rebound name"),
        pytest.param({"host": "127.0.0.1"}, 403, id="another port"),
        pytest.param({"host": None}, 400, id="no host"),
        pytest.param({"host": ["127.0.0.1:{port}", "evil.example"]}, 400, id="two hosts"),
        pytest.param({"origin": "http://evil.example"}, 403, id="another page"),
        pytest.param({"origin": "https://localhost:{port}"}, 403, id="another scheme"),
        pytest.param({"origin": "null"}, 403, id="a page of no origin"),
        pytest.param({"origin": ""}, 403, id="an empty origin"),
        pytest.param({"origin": ["http://localhost:{port}", "http://evil.example"]}, 400, id="two origins"),
    ],
)
def test_only_who_asks_for_this_server_by_name_and_is_nobody_s_page_is_served(shared, headers, status):
    ours = shared
    filled = {
        name: [each.format(port=ours.port) for each in value]
        if isinstance(value, list)
        else value and value.format(port=ours.port)
        for name, value in headers.items()
    }
    body = json.dumps(INITIALIZE).encode()
    assert ours.asks(body=body, headers=filled).status == status


@promise("W15a")
@pytest.mark.parametrize(
    "bearer",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Basic {BEARER}",
        BEARER,
        f"Bearer {BEARER}x",
        f"Bearer {BEARER[:-1]}",
        f"bearer {BEARER}, Bearer other",
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_without_the_bearer_nothing_is_read_and_nothing_found(shared, method, bearer):
    ours = shared
    answer = ours.asks(method, b"{", "/secret", {"authorization": bearer})
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert ours.malformed == []


@promise("W16")
@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp/x", "/%6dcp", "//mcp", "/sse", "/MCP"])
def test_there_is_one_path(shared, path):
    assert shared.asks(path=path).status == 404


@promise("W16")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "BREW"])
def test_other_methods_are_not_allowed(shared, method):
    answer = shared.asks(method)
    assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")


@promise("W16")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_stateless_era_knows_only_posts(shared, method):
    assert shared.asks(method, headers={"mcp-protocol-version": STATELESS}).status == 405


@promise("W16")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": "Application/JSON"}, 200),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": None}, 415),
        ({"content-type": "application/json, text/plain"}, 415),
        ({"content-type": "application/jsonx"}, 415),
        ({"content-encoding": "gzip"}, 415),
        ({"content-encoding": "identity"}, 200),
        ({"accept": "*/*"}, 200),
        ({"accept": "application/*;q=0.5, text/*"}, 200),
        ({"accept": "application/json"}, 406),
        ({"accept": "text/event-stream"}, 406),
        ({"accept": None}, 406),
    ],
)
def test_a_message_is_json_and_its_sender_takes_either_kind_of_answer(shared, headers, status):
    assert shared.asks(body=json.dumps(INITIALIZE).encode(), headers=headers).status == status


# -- bodies are admitted as lines are


@promise("W3", "W16")
@pytest.mark.parametrize("era", ["none", LEGACY, STATELESS])
@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        pytest.param(b'{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}', -32700, "duplicate_key", id="key twice"),
        pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', -32700, "malformed_unicode", id="UTF-8"),
        pytest.param(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"ping"}', -32700, "malformed_unicode", id="BOM"),
        pytest.param(b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700, "non_finite_number", id="NaN"),
        pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"\\ud800"}', -32700, "malformed_unicode", id="surrogate"),
        pytest.param(b'{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', -32700, "unsafe_integer", id="id"),
        pytest.param(b"[" * 200 + b"]" * 200, -32700, "too_deep", id="depth"),
        pytest.param(b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', -32600, "malformed_frame", id="batch"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, "malformed_frame", id="null id"),
        pytest.param(b'{"jsonrpc":"2.0","method":"ping"}', -32600, "malformed_frame", id="no id"),
        pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"ping"}{}', -32700, "malformed_call", id="trailing"),
        pytest.param(b"", -32700, "malformed_call", id="nothing"),
    ],
)
def test_a_body_that_is_no_message_is_refused_with_its_reason_and_has_its_receipt(shared, body, code, reason, era):
    ours = shared
    headers = {"none": {}, LEGACY: {"mcp-session-id": ours.opens()}, STATELESS: {"mcp-protocol-version": STATELESS}}
    assert told(ours.asks(body=body, headers=headers[era])) == (400, code, reason)
    assert ours.malformed == [reason]


@promise("W3", "W16")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_beyond_the_bound_is_refused_and_one_at_it_is_not(place, chunked):
    ours = place(limits=Limits(line=4096))
    filler = len(json.dumps(PING)) - 1
    for size, status in ((4096, 400), (4097, 413)):
        body = json.dumps(PING)[:-1].encode() + b" " * (size - filler - 1) + b"}"
        assert len(body) == size
        if chunked:
            sent = b"%x\r\n%b\r\n0\r\n\r\n" % (size, body)
            answer = ours.asks(body=sent, headers={"content-length": None, "transfer-encoding": "chunked"})
        else:
            answer = ours.asks(body=body)
        assert answer.status == status
    assert (answer.headers["connection"], ours.malformed) == ("close", ["too_large"])


# -- sessions of the handshake era


@promise("W1", "W16")
def test_initialize_opens_a_session_whose_id_nobody_can_guess_and_every_request_names_it(shared):
    ours = shared
    answer = ours.posts(INITIALIZE)
    session = answer.headers["mcp-session-id"]
    assert result(answer)["result"]["protocolVersion"] == LEGACY
    assert len(session) == 64
    assert ours.opens() != session
    assert ours.posts(notice("notifications/initialized"), mcp_session_id=session).status == 202
    assert result(ours.posts(PING, mcp_session_id=session)) == reply(1, {})
    again = ours.posts(call(2), mcp_session_id=session, mcp_protocol_version=LEGACY)
    assert result(again) == reply(2, OK)
    assert "mcp-session-id" not in again.headers


@promise("W16")
@pytest.mark.parametrize(
    ("message", "headers", "status"),
    [
        pytest.param(PING, {}, 400, id="no session"),
        pytest.param(notice("notifications/initialized"), {}, 400, id="no session for a notification"),
        pytest.param(PING, {"mcp-session-id": "0" * 64}, 404, id="another session"),
        pytest.param(INITIALIZE, {"mcp-session-id": "0" * 64}, 404, id="initialize in another session"),
        pytest.param(PING, {"mcp-session-id": "{id}", "mcp-protocol-version": "2025-06-18"}, 400, id="another version"),
        pytest.param(PING, {"mcp-session-id": "{id}", "mcp-protocol-version": "1999-01-01"}, 400, id="no version"),
        pytest.param(PING, {"mcp-session-id": ["{id}", "{id}"]}, 400, id="two sessions"),
        pytest.param(INITIALIZE, {"mcp-session-id": "{id}"}, 400, id="initialized already"),
        pytest.param(modern(1), {"mcp-session-id": "{id}"}, 400, id="a call of the other era"),
        pytest.param(modern(1), {}, 400, id="a call of the other era without a header"),
        pytest.param(ask(1, "initialize"), {}, 400, id="initialize without anything"),
        pytest.param({"jsonrpc": "2.0", "result": {}, "error": {}, "id": 1}, {}, 400, id="a bad answer"),
    ],
)
def test_what_names_no_session_or_not_as_it_is_is_refused(shared, message, headers, status):
    ours = shared
    session = ours.opens()
    filled = {
        name: [session, session] if isinstance(value, list) else value.format(id=session)
        for name, value in headers.items()
    }
    answer = ours.asks(body=json.dumps(message).encode(), headers=filled)
    if message == ask(1, "initialize"):
        assert result(answer)["error"]["code"] == -32602
        assert "mcp-session-id" not in answer.headers
    else:
        assert answer.status == status


@promise("W16")
def test_an_unknown_version_hears_which_are_spoken(shared):
    answer = shared.posts(LIST, mcp_protocol_version="1999-01-01")
    error = json.loads(answer.read())
    assert (answer.status, error["id"], error["error"]["code"]) == (400, 1, -32022)
    assert error["error"]["data"] == {"supported": [STATELESS], "requested": "1999-01-01"}


@promise("W16")
def test_a_session_that_was_ended_is_no_more_and_what_was_in_flight_in_it_is_cancelled(place):
    holding = Holding()
    ours = place(holding.tool)
    session = ours.opens()
    answers = []
    caller = threading.Thread(
        target=lambda: answers.append(events(ours.posts(call(1, "hold"), mcp_session_id=session)))
    )
    caller.start()
    assert holding.begun.acquire(timeout=20)
    assert ours.asks("DELETE", headers={"mcp-session-id": session}).status == 204
    assert holding.stopped.wait(20)
    caller.join()
    assert answers == [[]]  # what only reads says nothing more
    for method in ("POST", "GET", "DELETE"):
        answer = ours.asks(method, json.dumps(PING).encode(), headers={"mcp-session-id": session})
        assert answer.status == 404


def test_a_session_is_ended_by_its_own_id_alone(shared):
    ours = shared
    mine = ours.opens()
    assert ours.asks("DELETE", headers={"mcp-session-id": ours.opens()}).status == 204
    assert ours.asks("DELETE").status == 400
    assert result(ours.posts(PING, mcp_session_id=mine)) == reply(1, {})


def test_so_many_sessions_and_no_more_are_open_at_a_time(place, monkeypatch):
    monkeypatch.setattr("assisted_benchmark.gateway.http_sessions._MOST", 3)
    ours = place()
    first, *_ = [ours.opens() for _ in range(3)]
    assert ours.posts(INITIALIZE).status == 503
    assert ours.asks("DELETE", headers={"mcp-session-id": first}).status == 204
    assert ours.posts(INITIALIZE).status == 200


def test_sessions_that_nobody_has_used_for_long_make_room(place, monkeypatch):
    monkeypatch.setattr("assisted_benchmark.gateway.http_sessions._MOST", 2)
    ours = place()
    idle, listening = ours.opens(), ours.opens()
    stream = ours.asks("GET", headers={"mcp-session-id": listening})
    monkeypatch.setattr("assisted_benchmark.gateway.http_sessions._IDLE_NS", -SECOND)
    assert ours.posts(INITIALIZE).status == 200
    assert ours.posts(PING, mcp_session_id=idle).status == 404
    assert ours.posts(PING, mcp_session_id=listening).status == 200
    assert stream.status == 200


# -- answers, streams and questions


@promise("W6", "W16")
@pytest.mark.parametrize("era", [LEGACY, STATELESS])
def test_progress_comes_as_events_before_the_answer_and_an_answer_alone_is_json(place, era):
    def act(flight):
        for step in (1, 1, 2):
            flight.progress(step, 2)
        return OK

    ours = place(a_tool("act", act))
    session = ours.opens()

    def answer(**more):
        if era == LEGACY:
            return ours.posts(call(1, _meta=more), mcp_session_id=session)
        message = modern(1)
        message["params"]["_meta"] |= more
        return ours.calls(message)

    assert result(answer())["result"]["content"] == OK["content"]
    *steps, last = events(answer(progressToken="p"))
    assert [each["params"] for each in steps] == [
        {"progressToken": "p", "progress": step, "total": 2} for step in (1, 2)
    ]
    assert last["result"]["content"] == OK["content"]


@promise("W16")
def test_a_call_that_takes_long_becomes_a_stream_that_says_that_it_is_still_there(place, monkeypatch):
    monkeypatch.setattr("assisted_benchmark.gateway.http_exchange._STILL_THERE", 0.01)
    holding = Holding()
    ours = place(holding.tool)
    answer = ours.posts(call(1, "hold"), mcp_session_id=ours.opens())
    assert [answer.readline() for _ in range(4)] == [b":\n", b"\n"] * 2
    holding.go.set()
    assert events(answer) == [reply(1, OK)]


@promise("W16")
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_question_comes_on_the_stream_of_its_call_and_its_answer_is_posted(place, action):
    asking = Asking()
    ours = place(asking.tool)
    session = ours.opens()
    answer = ours.posts(call(1, "ask"), mcp_session_id=session)
    (question,) = events(answer, 1)
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", "really?")
    said = reply(question["id"], {"action": action})
    assert ours.posts(said, mcp_session_id=session).status == 202
    assert events(answer) == [reply(1, OK)]
    assert asking.ends == [{"action": action}]


@promise("W4", "W15a")
def test_a_question_is_answered_in_its_own_session_alone(place):
    asking = Asking()
    ours = place(asking.tool)
    mine, other = ours.opens(), ours.opens()
    answer = ours.posts(call(1, "ask"), mcp_session_id=mine)
    (question,) = events(answer, 1)
    assert ours.posts(reply(question["id"], {"action": "accept"}), mcp_session_id=other).status == 202
    assert ours.posts(reply(question["id"], {"action": "decline"}), mcp_session_id=mine).status == 202
    events(answer)
    assert asking.ends == [{"action": "decline"}]
    assert [each.kind for each in ours.session.oddities] == [Odd.UNKNOWN_ID]


@promise("W5", "W16")
def test_a_call_is_cancelled_by_its_notification_in_the_handshake_era(place):
    asking = Asking()
    ours = place(asking.tool)
    session = ours.opens()
    answer = ours.posts(call(1, "ask"), mcp_session_id=session)
    events(answer, 1)
    other = ours.opens()
    assert ours.posts(cancel(1), mcp_session_id=other).status == 202  # which cancels nothing
    assert ours.posts(cancel(1), mcp_session_id=session).status == 202
    taken_back, last = events(answer)
    assert (taken_back["method"], taken_back["params"]["requestId"]) == ("notifications/cancelled", "ask-1")
    assert last == reply(1, OK)  # of a tool that may have acted
    assert asking.ends == [Silence.CANCELLED]


@promise("W5", "W16")
def test_a_connection_that_is_cut_cancels_nothing_in_the_handshake_era(place):
    asking = Asking()
    ours = place(asking.tool)
    session = ours.opens()
    answer = ours.posts(call(1, "ask"), mcp_session_id=session)
    (question,) = events(answer, 1)
    answer.close()
    ours.clients[-1].close()
    assert ours.posts(reply(question["id"], {"action": "accept"}), mcp_session_id=session).status == 202
    assert asking.heard.acquire(timeout=20)
    assert asking.ends == [{"action": "accept"}]


@promise("W5", "W16")
def test_closing_the_answer_cancels_the_call_in_the_stateless_era(place):
    holding = Holding()
    ours = place(holding.tool)
    connection = ours.connects()
    message = modern(1, "hold")
    body = json.dumps(message).encode()
    headers = ours.usual(body) | stateless(message)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    connection.sendall(b"POST /mcp HTTP/1.1\r\n" + head.encode() + b"\r\n" + body)
    assert holding.begun.acquire(timeout=20)
    connection.close()
    assert holding.stopped.wait(20)


@promise("W3")
def test_an_id_in_flight_is_refused_in_its_session_and_good_in_another(place):
    holding = Holding()
    ours = place(holding.tool)
    mine, other = ours.opens(), ours.opens()
    answers = []

    def calling(session):
        answers.append(result(ours.posts(call(1, "hold"), mcp_session_id=session)))

    callers = [threading.Thread(target=calling, args=[each]) for each in (mine, other)]
    for each in callers:
        each.start()
    for _ in callers:
        assert holding.begun.acquire(timeout=20)
    assert told(ours.posts(call(1, "hold"), mcp_session_id=mine)) == (400, -32600, "duplicate_request_id")
    holding.go.set()
    for each in callers:
        each.join()
    assert answers == [reply(1, OK)] * 2


class Changing(Face):
    """A face with one tool more after each call."""

    list_changed = True

    def __init__(self):
        super().__init__([a_tool("act")])
        self.calls = 0
        self.registered["act"] = a_tool("act", self._act)

    def _act(self, flight):
        self.calls += 1
        return OK

    def tools(self):
        return [*super().tools(), *({"name": f"more-{each}"} for each in range(self.calls))]


CHANGED = "notifications/tools/list_changed"


@promise("W1", "W16")
def test_who_listens_hears_of_other_tools_whoever_called(place):
    ours = place(face=Changing())
    session, deaf = ours.opens(), ours.opens()
    get = ours.asks("GET", headers={"mcp-session-id": session})
    stream = ours.calls(listening(9))
    (acknowledged,) = events(stream, 1)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert result(ours.calls(modern(1)))["result"]["content"] == OK["content"]
    assert events(get, 1) == [notice(CHANGED)]
    assert events(stream, 1) == [notice(CHANGED, _meta={"io.modelcontextprotocol/subscriptionId": 9})]
    late = ours.asks("GET", headers={"mcp-session-id": deaf})
    assert events(late, 1) == [notice(CHANGED)]  # what came before it listened, once


@promise("W16")
def test_a_session_has_one_stream_at_a_time_and_it_ends_with_the_session(place):
    ours = place()
    session = ours.opens()
    stream = ours.asks("GET", headers={"mcp-session-id": session})
    assert ours.asks("GET", headers={"mcp-session-id": session}).status == 409
    assert ours.asks("GET", headers={"mcp-session-id": session, "accept": "application/json"}).status == 406
    ours.asks("DELETE", headers={"mcp-session-id": session})
    assert events(stream) == []


def listening(number):
    listen = modern(number)
    listen["method"] = "subscriptions/listen"
    listen["params"] = {"_meta": listen["params"]["_meta"], "notifications": {"toolsListChanged": True}}
    return listen


def test_who_is_sent_away_hears_the_end_of_every_stream(place):
    ours = place(face=Changing())
    stream = ours.asks("GET", headers={"mcp-session-id": ours.opens()})
    subscription = ours.calls(listening(9))
    events(subscription, 1)
    ours.session.leave()
    assert events(stream) == []
    (last,) = events(subscription)
    assert last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == last["id"] == 9
    ours.joins()


# -- the stateless era


@promise("W1", "W16")
def test_a_single_request_says_all_there_is_to_know(shared):
    ours = shared
    answer = ours.calls(modern(1))
    assert result(answer)["result"]["resultType"] == "complete"
    assert "mcp-session-id" not in answer.headers
    assert ours.calls(modern(1), mcp_session_id="any").status == 200
    assert ours.asks(body=json.dumps(cancel(1)).encode(), headers={"mcp-protocol-version": STATELESS}).status == 202


@promise("W8", "W16")
@pytest.mark.parametrize(
    ("message", "headers", "status", "code"),
    [
        pytest.param(modern(1), {"mcp_protocol_version": None}, 400, -32020, id="no version"),
        pytest.param(modern(1), {"mcp_protocol_version": LEGACY}, 400, -32020, id="another version"),
        pytest.param(modern(1), {"mcp_method": None}, 400, -32020, id="no method"),
        pytest.param(modern(1), {"mcp_method": "tools/list"}, 400, -32020, id="another method"),
        pytest.param(modern(1), {"mcp_method": "Tools/Call"}, 400, -32020, id="another case"),
        pytest.param(modern(1), {"mcp_name": None}, 400, -32020, id="no name"),
        pytest.param(modern(1), {"mcp_name": "other"}, 400, -32020, id="another name"),
        pytest.param(modern(1), {"mcp_name": "=?base64?YWN0?="}, 200, None, id="the name in Base64"),
        pytest.param(modern(1), {"mcp_name": "=?base64?YWN0=?="}, 400, -32020, id="the name in bad Base64"),
        pytest.param(modern(1), {"mcp_name": "=?base64?YWN1?="}, 400, -32020, id="another name in Base64"),
        pytest.param(modern(1), {"mcp_name": "=?base64?/w==?="}, 400, -32020, id="no text in Base64"),
        pytest.param(modern(1), {"mcp_name": ["act", "act"]}, 400, -32600, id="the name twice"),
        pytest.param(modern(1, "nobody"), {}, 400, -32602, id="no such tool"),
        pytest.param(call(1), {}, 400, -32602, id="nothing about itself"),
        pytest.param(ask(1, "initialize"), {}, 404, -32601, id="initialize"),
        pytest.param(ask(1, "tools/list", _meta=modern(1)["params"]["_meta"]), {}, 200, None, id="a list"),
        pytest.param(ask(1, "nothing", _meta=modern(1)["params"]["_meta"]), {}, 404, -32601, id="no such method"),
    ],
)
def test_headers_that_say_another_thing_than_the_body_are_refused(shared, message, headers, status, code):
    answer = shared.calls(message, **headers)
    said = json.loads(answer.read())
    assert (answer.status, said.get("error", {}).get("code")) == (status, code)
    assert ("malformed_call" in shared.malformed) is (code == -32020)
    assert said["id"] == (1 if code != -32600 else None)


@promise("W16")
def test_an_answer_is_no_message_of_the_stateless_era(shared):
    body = json.dumps(reply("ask-1", {})).encode()
    assert shared.asks(body=body, headers={"mcp-protocol-version": STATELESS}).status == 400


@promise("W15a")
def test_each_session_is_a_principal_and_so_is_who_needs_none(place):
    seen = []
    ours = place(a_tool("act", lambda flight: seen.append(flight.session) or OK))
    for session in (ours.opens(), ours.opens()):
        for number in (1, 2):
            ours.posts(call(number), mcp_session_id=session).read()
    for number in (1, 2):
        ours.calls(modern(number)).read()
    assert {each.run for each in seen} == {"run-1"}
    first, second, alone = (each.principal for each in seen[::2])
    assert [each.principal for each in seen] == [first, first, second, second, alone, alone]
    assert (len({first, second, alone}), alone) == (3, "http")


@promise("W15a")
@pytest.mark.parametrize("stateless_first", [True, False])
def test_the_grant_is_whose_call_came_first_and_nobody_else_s(place, stateless_first):
    seen = []
    ours = place(
        a_tool("act", lambda flight: seen.append(flight.session.principal) or OK),
        principals=OneGrant(Session("run-1", "agent-1")),
    )
    looking, session = ours.opens(), ours.opens()
    assert ours.asks("DELETE", headers={"mcp-session-id": looking}).status == 204  # it never called
    calls = [lambda: ours.calls(modern(1)), lambda: ours.posts(call(1), mcp_session_id=session)]
    for each in calls if stateless_first else reversed(calls):
        each().read()
    assert seen[0] == "agent-1"
    assert seen[1] == ("http" if not stateless_first else seen[1])
    assert seen[1] != "agent-1"
    assert ours.session.client == (None if stateless_first else {"name": "me", "version": "1"})


@promise("W16")
def test_when_the_session_that_holds_the_grant_ends_there_is_nobody_left_to_serve(place):
    ours = place(a_tool("act"), principals=OneGrant(Session("run-1", "agent-1")))
    session = ours.opens()
    ours.posts(call(1), mcp_session_id=session).read()
    assert ours.asks("DELETE", headers={"mcp-session-id": session}).status == 204
    ours.joins()


def test_resources_are_read_with_their_address_in_a_header(place):
    def read(flight):
        return {"contents": []}

    ours = place(resources=Resources(read, read, read))
    message = ask(1, "resources/read", uri="test://é", _meta=modern(1)["params"]["_meta"])
    assert ours.calls(message, mcp_name="=?base64?dGVzdDovL8OpIA==?=").status == 400
    assert ours.calls(message, mcp_name="=?base64?dGVzdDovL8Op?=").status == 200


def test_a_thread_that_is_late_for_a_loop_that_has_ended_reaches_nobody():
    async def made():
        return Exchange()

    exchange = asyncio.run(made())
    assert exchange.send(b"late\n") is False
