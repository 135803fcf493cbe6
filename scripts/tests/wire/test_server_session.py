"""Our server, fed with bytes: both eras, strict frames, and calls that take long."""

import json
import os

import pytest
from marks import promise
from wire_peers import OK, reply, told

from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.server_session import ServerSession
from assisted_benchmark.wire.server_side import CallCancelled, ToolProblem

TOOLS = [{"name": name, "inputSchema": {"type": "object"}, "x-unknown": 1} for name in "abc"]
INFO = {"name": "ours", "version": "1"}
STAMP = {"io.modelcontextprotocol/serverInfo": INFO}
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Ours:
    """A handler whose one call is the test's."""

    instructions = ""
    list_changed = False

    def __init__(self, call=lambda ctx: OK):
        self.act = call
        self.calls = []

    def info(self):
        return INFO

    def tools(self):
        return TOOLS

    def call(self, name, arguments, ctx):
        self.calls.append((name, arguments))
        return self.act(ctx)


def served(*messages, handler=None, **options):
    """What the server says to these lines (bytes as they are), in order."""
    reading, writing = os.pipe()
    hearing, answering = os.pipe()
    lines = [message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n" for message in messages]
    os.write(writing, b"".join(lines))
    os.close(writing)
    ServerSession(handler or Ours(), reading, answering, **options).serve()
    os.close(answering)
    with os.fdopen(hearing, "rb") as heard:
        said = heard.read()
    os.close(reading)
    assert said.endswith(b"\n") or not said
    return [json.loads(line) for line in said.splitlines()]


def ask(request_id, method, **params):
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def modern(request_id, method, **params):
    return ask(request_id, method, **params, _meta=ENVELOPE)


def initialize(version="2025-06-18", **more):
    return ask("i", "initialize", protocolVersion=version, capabilities={}, **more)


def call(request_id, **more):
    return ask(request_id, "tools/call", name="a", arguments={"x": 1}, **more)


def code(answer):
    return answer["id"], answer["error"]["code"]


# -- the handshake era


@promise("W1")
@pytest.mark.parametrize(
    ("asked", "spoken"), [("2024-11-05", "2024-11-05"), ("2025-11-25", "2025-11-25"), ("2026-07-28", "2025-11-25")]
)
def test_the_handshake_agrees_on_a_version(asked, spoken):
    (answer,) = served(initialize(asked))
    result = {"protocolVersion": spoken, "serverInfo": INFO, "capabilities": {"tools": {"listChanged": False}}}
    assert answer == reply("i", result)


@promise("W1")
def test_a_handshake_session_lists_calls_and_pings():
    handler = Ours()
    handler.instructions = "be kind"
    first, *rest = served(
        ask("p", "ping"),
        initialize(),
        told("notifications/initialized"),
        ask(1, "tools/list"),
        call(2),
        ask(3, "tools/call", name="b"),
        handler=handler,
    )
    assert first == reply("p", {})
    assert rest[0]["result"]["instructions"] == "be kind"
    assert rest[1:] == [reply(1, {"tools": TOOLS}), reply(2, OK), reply(3, OK)]
    assert handler.calls == [("a", {"x": 1}), ("b", {})]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(initialize() | {"id": 0}, -32600, id="initialize twice"),
        pytest.param(ask(0, "tools/call", name="nobody"), -32602, id="unknown tool"),
        pytest.param(ask(0, "tools/call", name=3), -32602, id="name"),
        pytest.param(ask(0, "tools/call", arguments={}), -32602, id="no name"),
        pytest.param(ask(0, "tools/call", name="a", arguments=[]), -32602, id="arguments"),
        pytest.param(ask(0, "tools/call", name="a", arguments=None), -32602, id="null arguments"),
        pytest.param(call(0, _meta={"progressToken": True}), -32602, id="token"),
        pytest.param(call(0, _meta=[]), -32602, id="meta"),
        pytest.param(ask(0, "resources/list"), -32601, id="unknown method"),
        pytest.param(ask(0, "server/discover"), -32601, id="a method of the other era"),
        pytest.param(modern(0, "tools/list"), -32600, id="an envelope of the other era"),
        pytest.param(ask(0, "tools/list", cursor="9"), -32602, id="cursor beyond the end"),
        pytest.param(ask(0, "tools/list", cursor="-1"), -32602, id="negative cursor"),
        pytest.param(ask(0, "tools/list", cursor=1), -32602, id="cursor is no text"),
        pytest.param(ask(0, "tools/list", cursor="9" * 5000), -32602, id="endless cursor"),
    ],
)
@promise("W8")
def test_what_a_handshake_session_refuses(request_, expected):
    handler = Ours()
    _, answer = served(initialize(), request_, handler=handler)
    assert code(answer) == (request_["id"], expected)
    assert handler.calls == []


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ask(0, "tools/list"), -32600),
        (call(0), -32600),
        (ask(0, "resources/list"), -32601),
        (ask(0, "initialize", protocolVersion=3, capabilities={}), -32602),
        (ask(0, "initialize", protocolVersion="2025-06-18"), -32602),
    ],
)
def test_nothing_is_served_before_the_handshake(request_, expected):
    (answer,) = served(request_)
    assert code(answer) == (0, expected)


# -- the stateless era


@promise("W1")
def test_a_stateless_session_discovers_lists_and_calls():
    discovered, listed, called = served(modern(1, "server/discover"), modern(2, "tools/list"), call(3, _meta=ENVELOPE))
    envelope = {"resultType": "complete", "_meta": STAMP}
    cache = {"ttlMs": 0, "cacheScope": "private"}
    capabilities = {"tools": {"listChanged": False}}
    assert discovered == reply(
        1, envelope | cache | {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
    )
    assert listed == reply(2, envelope | cache | {"tools": TOOLS})
    assert called == reply(3, envelope | OK)


@promise("W1")
@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(initialize(), -32022, id="initialize"),
        pytest.param(ask(0, "initialize", protocolVersion=3), -32022, id="initialize with nonsense"),
        pytest.param(ask(0, "tools/list"), -32602, id="no envelope"),
        pytest.param(
            ask(0, "tools/list", _meta=ENVELOPE | {"io.modelcontextprotocol/clientCapabilities": 3}), -32602, id="caps"
        ),
        pytest.param(
            ask(0, "tools/list", _meta=ENVELOPE | {"io.modelcontextprotocol/protocolVersion": 3}), -32602, id="type"
        ),
        pytest.param(
            ask(0, "tools/list", _meta=ENVELOPE | {"io.modelcontextprotocol/protocolVersion": "2027"}),
            -32022,
            id="version",
        ),
        pytest.param(modern(0, "ping"), -32601, id="ping is of the other era"),
        pytest.param(modern(0, "subscriptions/listen"), -32601, id="nothing to listen to"),
    ],
)
def test_what_a_stateless_session_refuses(request_, expected):
    _, answer = served(modern(1, "server/discover"), request_)
    assert code(answer) == (request_["id"], expected)
    if expected == -32022:
        assert answer["error"]["data"]["supported"] == ["2026-07-28"]


def test_a_list_can_come_in_pages():
    first, second = served(modern(1, "tools/list"), modern(2, "tools/list", cursor="2"), page_size=2)
    assert (first["result"]["tools"], first["result"]["nextCursor"]) == (TOOLS[:2], "2")
    assert second["result"]["tools"] == TOOLS[2:]
    assert "nextCursor" not in second["result"]


def changing(ctx):
    ctx.announce_tools()
    return OK


def test_a_changing_list_is_told_to_those_who_listen():
    later = [told("notifications/cancelled", requestId=7), call(7, _meta=ENVELOPE)]
    first, second, change, *rest = served_slowly(
        changing,
        *later,
        before=[
            modern(7, "subscriptions/listen", notifications={"toolsListChanged": True}),
            modern(8, "subscriptions/listen", notifications={}),
            call(1, _meta=ENVELOPE),
        ],
        list_changed=True,
    )[0]
    key = "io.modelcontextprotocol/subscriptionId"
    acknowledged = "notifications/subscriptions/acknowledged"
    assert first == told(acknowledged, notifications={"toolsListChanged": True}, _meta={key: 7})
    assert second == told(acknowledged, notifications={}, _meta={key: 8})
    assert change == told("notifications/tools/list_changed", _meta={key: 7})
    assert [message["id"] for message in rest] == [1, 7]  # after the cancellation nobody is told any more


def test_a_changing_list_is_told_unasked_in_the_handshake_era():
    _, change, answer = served(initialize(), call(1), handler=Ours(changing))
    assert change == told("notifications/tools/list_changed")
    assert answer == reply(1, OK)


# -- strict frames


@promise("W3")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":1,"a":2}}\n', (5, -32700, "duplicate_key"), id="key"
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":NaN}}\n', (5, -32700, "non_finite_number"), id="NaN"
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"\xff"}}\n',
            (5, -32700, "malformed_unicode"),
            id="UTF-8",
        ),
        pytest.param(b"\xef\xbb\xbf{}\n", (None, -32700, "malformed_unicode"), id="BOM"),
        pytest.param(b"words\n", (None, -32700, "malformed_call"), id="words"),
        pytest.param(b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]\n', (None, -32600, "malformed_frame"), id="batch"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', (None, -32600, "malformed_frame"), id="null id"),
        pytest.param(b'{"jsonrpc":"2.0","method":"ping"}\n', (None, -32600, "malformed_frame"), id="no id"),
        pytest.param(b'"' + b"x" * 5000 + b'"\n', (None, -32600, "too_large"), id="too long"),
    ],
)
def test_a_bad_line_is_answered_and_the_session_goes_on(line, expected):
    bad, good = served(line, ask(6, "ping"), max_bytes=4096)
    assert (bad["id"], bad["error"]["code"], bad["error"]["data"]["reason"]) == expected
    assert good == reply(6, {})


@promise("W3")
def test_a_bad_answer_is_never_answered():
    assert served(b'{"jsonrpc":"2.0","id":5,"result":NaN}\n', reply(5, OK), ask(6, "ping")) == [reply(6, {})]


@promise("W3")
def test_a_last_line_without_an_end_is_no_message():
    (answer,) = served(json.dumps(ask(1, "ping")).encode())
    assert code(answer) == (None, -32700)


@promise("W3")
def test_a_duplicate_id_in_flight_is_refused_and_acts_once():
    handler = Ours()
    refused, _, answered = served(initialize(), call(1) | {"id": "1"}, call(1) | {"id": "1"}, handler=handler)
    assert (code(refused), refused["error"]["data"]) == (("1", -32600), {"reason": "duplicate_request_id"})
    assert answered == reply("1", OK)
    assert len(handler.calls) == 1


@promise("W4")
def test_a_text_and_a_number_are_two_ids_in_flight():
    assert [answer["id"] for answer in served(ask(33, "ping"), ask("33", "ping"))] == [33, "33"]


def test_an_id_may_be_used_again_when_it_is_settled():
    seen = []

    def slow(ctx):
        seen.append(ctx.cancelled)
        return OK

    handler = Ours(slow)
    assert [answer["id"] for answer in served(initialize(), call(1), handler=handler)] == ["i", 1]
    assert seen == [False]


# -- calls that take long


@promise("W5")
def test_a_call_that_waits_and_is_cancelled_is_never_made():
    handler = Ours()
    said = served(initialize(), call(1), call(2), told("notifications/cancelled", requestId=2), handler=handler)
    assert [answer["id"] for answer in said] == ["i", 1]
    assert len(handler.calls) == 1


@promise("W5")
@pytest.mark.parametrize("target", ["1", 2, 1.0, True, None, [1]])
def test_only_the_peers_own_request_in_flight_can_be_cancelled(target):
    seen = []
    said = served(
        initialize(),
        call(1),
        told("notifications/cancelled", requestId=target),
        handler=Ours(lambda ctx: seen.append(ctx.cancelled) or OK),
    )
    assert seen == [False]
    assert said[1:] == [reply(1, OK)]


@promise("W5")
def test_the_handshake_cannot_be_cancelled():
    said = served(initialize(), told("notifications/cancelled", requestId="i"))
    assert [answer["id"] for answer in said] == ["i"]


class Slow(Ours):
    """A handler during whose call the rest of the input arrives."""

    def __init__(self, act, writing, later):
        super().__init__(act)
        self.writing, self.later = writing, later

    def call(self, name, arguments, ctx):
        if self.later:
            os.write(self.writing, b"".join(json.dumps(each).encode() + b"\n" for each in self.later))
            os.close(self.writing)
            self.later = None
        return super().call(name, arguments, ctx)


def served_slowly(act, *later, before=(), list_changed=False):
    """What the server says to `before`, whose last is a call, and to what arrives while that runs."""
    reading, writing = os.pipe()
    hearing, answering = os.pipe()
    before = before or [initialize(), call(1, _meta={"progressToken": "p"})]
    os.write(writing, b"".join(json.dumps(each).encode() + b"\n" for each in before))
    handler = Slow(act, writing, later)
    handler.list_changed = list_changed
    ServerSession(handler, reading, answering).serve()
    os.close(answering)
    os.close(reading)
    with os.fdopen(hearing, "rb") as heard:
        said = [json.loads(line) for line in heard.read().splitlines()]
    return [message for message in said if message.get("id") != "i"], handler


CANCEL = told("notifications/cancelled", requestId=1)


@promise("W5")
def test_a_cancelled_call_that_can_stop_gets_no_further_message():
    def act(ctx):
        ctx.progress(1)
        if ctx.cancelled:
            raise CallCancelled
        return OK

    said, _ = served_slowly(act, CANCEL, ask(2, "ping"))
    assert [message["id"] for message in said] == [2]


@promise("W5")
def test_a_cancelled_call_that_acted_already_sends_its_result():
    said, _ = served_slowly(lambda ctx: OK if ctx.cancelled else None, CANCEL)
    assert said == [reply(1, OK)]


@promise("W3")
def test_a_duplicate_of_the_running_call_is_refused_while_it_runs():
    said, handler = served_slowly(lambda ctx: OK if not ctx.cancelled else None, call(1), call(3))
    assert [code(said[0]), said[1]["id"], said[2]["id"]] == [(1, -32600), 1, 3]
    assert len(handler.calls) == 2


@promise("W6")
def test_progress_grows_carries_the_callers_token_and_ends_with_the_answer():
    kept = []

    def act(ctx):
        kept.append(ctx)
        ctx.progress(1, 3, "one")
        ctx.progress(1)
        ctx.progress(0.5)
        ctx.progress(2)
        return OK

    said, _ = served_slowly(act, ask(2, "ping"))
    assert said[:3] == [
        told("notifications/progress", progressToken="p", progress=1, total=3, message="one"),
        told("notifications/progress", progressToken="p", progress=2),
        reply(1, OK),
    ]


@promise("W6")
def test_without_a_token_there_is_no_progress():
    assert served(initialize(), call(1), handler=Ours(lambda ctx: ctx.progress(1) or OK))[1:] == [reply(1, OK)]


# -- handlers that fail


@promise("W8")
def test_a_handler_may_answer_with_an_error_of_the_protocol():
    def act(ctx):
        raise ToolProblem(-32021, "needs elicitation", {"requiredCapabilities": {"elicitation": ctx.capabilities}})

    answer = served(initialize(), call(1), handler=Ours(act))[1]
    data = {"requiredCapabilities": {"elicitation": {}}}
    assert answer == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32021, "message": "needs elicitation", "data": data},
    }


@promise("W8")
@pytest.mark.parametrize("number", [-31999, -32769, 0, 1])
def test_an_error_code_outside_the_protocols_is_a_misuse(number):
    with pytest.raises(MisuseError) as caught:
        ToolProblem(number, "x")
    assert caught.value.reason is Reason.MISUSE


def raises(ctx):
    raise ZeroDivisionError("a secret")


@pytest.mark.parametrize(
    "act", [raises, lambda ctx: {"n": 2**60}, lambda ctx: {"n": b"x"}, lambda ctx: {"s": "\ud800"}]
)
def test_a_handler_that_breaks_answers_with_an_internal_error_that_tells_nothing(act):
    _, broken, good = served(initialize(), call(1), ask(2, "ping"), handler=Ours(act))
    assert code(broken) == (1, -32603)
    assert "secret" not in json.dumps(broken)
    assert good == reply(2, {})


def test_a_peer_that_stops_reading_ends_the_session():
    reading, writing = os.pipe()
    hearing, answering = os.pipe()
    os.close(hearing)
    os.write(writing, json.dumps(initialize()).encode() + b"\n")
    ServerSession(Ours(), reading, answering).serve()
    for fd in (reading, writing, answering):
        os.close(fd)
