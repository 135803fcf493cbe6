"""The router dispatches to servers over HTTP as to its own processes: one POST a call, its outcomes told apart."""

import json
import threading

import pytest
from http_servers import DO, DONE, ERAS, Scripted, a_router, said, streamed
from marks import promise
from raw_http import RawServer, answer, reset
from router_bench import claimed, soon
from tls_bench import fingerprint, signed_by_itself, tls_server

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.ports import NotSent, Observation, Replied, Unavailable, Uncertain
from assisted_benchmark.mcp_router.remote import reach
from assisted_benchmark.wire.outcomes import Limits

SMALL = Limits(line=4096)


def seen(router, *, fresh=False):
    return router.observe("there", fresh=fresh, deadline=soon())


def sent(router, what="it", *, seconds=20, gate=lambda: True):
    return router.send(claimed(what, "there"), gate=gate, deadline=soon(seconds))


def told(reply):
    """A reply without its instants."""
    if isinstance(reply, Replied):
        return ("failed" if reply.failed else "done", json.loads(reply.result))
    return (reply.reason, reply.detail)


@promise("W1", "W12", "W14")
@pytest.mark.parametrize("era", ERAS)
def test_a_call_is_one_post_to_the_one_place(launcher, era):
    with Scripted(era=era) as server:
        router = a_router(server, launcher)
        launches = router.launches()
        looked = seen(router)
        assert isinstance(looked, Observation)
        assert (looked.launch, looked.drift) == (launches["there"], ())
        assert told(sent(router)) == ("done", DONE)
        assert router.calls == {"there": 1}
        router.close()
    connecting = ["server/discover"] + (["initialize", "notifications/initialized"] if era == "handshake" else [])
    assert server.methods == [*connecting, "tools/list", "tools/call"]
    (call,) = [each for each in server.requests if b'"tools/call"' in each]
    head, _, body = call.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    assert line == "POST /mcp?of=one HTTP/1.1"
    shown = {name.lower(): value for name, value in (each.split(": ", 1) for each in headers)}
    assert shown == {
        "host": f"127.0.0.1:{server.port}",
        "connection": "close",
        "accept": "application/json, text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "assisted-benchmark",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(
            {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "do"}
            if era == "stateless"
            else {"mcp-protocol-version": "2025-11-25", "mcp-session-id": "session-1"}
        ),
    }
    assert json.loads(body)["params"]["arguments"] == {"what": "it"}
    assert [each[:6] for each in server.requests if b"\r\n\r\n{" not in each] == (
        [b"DELETE"] if era == "handshake" else []
    )


def cut(connection, _):
    reset(connection)


def half(connection, request_id):
    whole = answer(200, said(request_id, DONE))
    connection.sendall(whole[:-5])


def progress(token, current):
    return json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": current}}
    ).encode()


def replies(make):
    """What is said to a call, made of its id."""
    return lambda connection, request_id: connection.sendall(make(request_id))


OTHER = {"code": -32000, "message": "no"}
STATUS = "HTTP {} came where the server should have answered"
CUT = "the connection was cut before the server answered"
ENDED = "the stream ended before the server answered"
REDIRECT = "the server answered with a redirect (HTTP {}), which nobody follows, and so never"
UNKNOWN, INVALID = Reason.OUTCOME_UNKNOWN, Reason.RESULT_INVALID


@promise("W1", "W3", "W14", "L14")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("to_call", "expected"),
    [
        pytest.param(replies(lambda i: streamed(said(i, DONE))), ("done", DONE), id="an event"),
        pytest.param(
            replies(lambda i: streamed(progress(i, 1), said(i, DONE), end=b"\r\n\r\n")), ("done", DONE), id="events"
        ),
        pytest.param(
            replies(lambda i: answer(200, b" \n" + said(i, DONE) + b"\r\n", media=b"Application/JSON; charset=utf-8")),
            ("done", DONE),
            id="space around",
        ),
        pytest.param(replies(lambda i: answer(200, said(i, error=OTHER))), ("failed", OTHER), id="an error"),
        pytest.param(replies(lambda i: answer(400, said(i, error=OTHER))), ("failed", OTHER), id="an error with 400"),
        pytest.param(
            replies(lambda _: answer(400, said(None, error=OTHER))), (UNKNOWN, STATUS.format(400)), id="whose error"
        ),
        pytest.param(answer(500, b"<p>", media=b"text/html"), (UNKNOWN, STATUS.format(500)), id="a page"),
        pytest.param(answer(401, b""), (UNKNOWN, STATUS.format(401)), id="401"),
        pytest.param(answer(202, b""), (UNKNOWN, STATUS.format(202)), id="accepted"),
        pytest.param(answer(307, b"", b"Location: /mcp?of=one"), (UNKNOWN, REDIRECT.format(307)), id="307"),
        pytest.param(answer(303, b"", b"Location: /mcp?of=one"), (UNKNOWN, REDIRECT.format(303)), id="303"),
        pytest.param(cut, (UNKNOWN, CUT), id="cut at once"),
        pytest.param(lambda *_: None, (UNKNOWN, CUT), id="closed without a word"),
        pytest.param(half, (UNKNOWN, CUT), id="half an answer"),
        pytest.param(replies(lambda i: streamed(progress(i, 1))), (UNKNOWN, ENDED), id="a stream without the answer"),
        pytest.param(replies(lambda i: streamed(progress(i, 1), whole=False)), (UNKNOWN, CUT), id="a stream cut"),
        pytest.param(
            b"hello\r\n\r\n",
            (UNKNOWN, "what came is not HTTP, where the server should have answered"),
            id="no HTTP",
        ),
        pytest.param(replies(lambda i: answer(200, said(i + 7, DONE))), (UNKNOWN, STATUS.format(200)), id="another id"),
        pytest.param(
            replies(lambda i: answer(200, said(str(i), DONE))), (UNKNOWN, STATUS.format(200)), id="the id as text"
        ),
        pytest.param(replies(lambda _: answer(200, b"{")), (UNKNOWN, STATUS.format(200)), id="no JSON"),
        pytest.param(
            replies(lambda i: answer(200, said(i, DONE), media=b"text/plain")),
            (UNKNOWN, STATUS.format(200)),
            id="not called JSON",
        ),
        pytest.param(
            replies(lambda i: answer(200, said(i, DONE), b"Content-Encoding: gzip")),
            (UNKNOWN, STATUS.format(200)),
            id="encoded",
        ),
        pytest.param(
            replies(lambda i: streamed(said(i, DONE), said(i, DONE))),
            (INVALID, "the server answered the call twice"),
            id="twice",
        ),
        pytest.param(
            replies(lambda i: answer(200, said(i, {"content": [], "x": "y" * 5000}))),
            (UNKNOWN, "the answer is larger than is taken, so nobody knows what the server answered"),
            id="too large",
        ),
        pytest.param(
            replies(lambda i: streamed(said(i, {"content": [], "x": "y" * 5000}))), (UNKNOWN, ENDED), id="a large event"
        ),
    ],
)
def test_what_comes_of_a_call_is_told_apart_and_it_is_never_made_again(launcher, era, to_call, expected):
    with Scripted(to_call, era=era) as server:
        router = a_router(server, launcher, limits=SMALL)
        assert isinstance(seen(router), Observation)
        assert told(sent(router)) == expected
        assert isinstance(seen(router), Observation)  # it goes on, and what was written stays the one call
        router.close()
    assert (server.calls, router.calls) == (1, {"there": 1})


@promise("W7", "L14")
@pytest.mark.parametrize("era", ERAS)
def test_silence_ends_with_the_deadline_and_only_who_hears_of_it_is_told(launcher, era):
    over = threading.Event()
    with Scripted(lambda *_: over.wait(20), era=era) as server:
        router = a_router(server, launcher)
        assert isinstance(seen(router), Observation)
        assert told(sent(router, seconds=0.3)) == (UNKNOWN, "no answer came in time")
        over.set()
        router.close()
    assert server.calls == 1
    assert server.methods[-1] == ("tools/call" if era == "stateless" else "notifications/cancelled")


@promise("L14")
def test_a_session_that_is_over_is_not_begun_anew_for_the_call(launcher):
    with Scripted(answer(404, b""), era="handshake") as server:
        router = a_router(server, launcher)
        assert isinstance(seen(router), Observation)
        assert told(sent(router)) == (UNKNOWN, "the server says that the session is over, and never answered")
        assert sent(router) == NotSent(Reason.SERVER_UNAVAILABLE, "the server does not read, or has ended")
        assert (server.calls, server.sessions) == (1, 1)
        assert isinstance(seen(router), Observation)  # only a look begins one, and makes no call
        router.close()
    assert (server.calls, server.sessions) == (1, 2)


@promise("W14")
def test_where_nobody_listens_nothing_is_sent(launcher):
    with Scripted() as server:
        router = a_router(server, launcher)
        assert isinstance(seen(router), Observation)
    assert sent(router) == NotSent(Reason.SERVER_UNAVAILABLE, "the server does not read, or has ended")
    unavailable = Unavailable(
        Reason.SERVER_UNAVAILABLE, "no connection to the server stands, so it never answered server/discover"
    )
    assert seen(router) == unavailable
    assert router.calls == {"there": 0}
    router.close()


@promise("L16")
def test_the_gate_is_asked_once_the_connection_stands_and_a_no_leaves_it_without_a_byte(launcher):
    with Scripted() as server:
        router = a_router(server, launcher)
        seen(router)
        before = len(server.requests)
        for _ in range(before):
            server.accepted.acquire()

        def gate():
            assert server.accepted.acquire(timeout=20)
            return False

        assert sent(router, gate=gate) == NotSent(Reason.EXPIRED, "the gate closed before the call was sent")
        router.close()
    assert (server.calls, router.calls) == (0, {"there": 0})


@promise("W14")
def test_no_proxy_of_the_environment_is_asked(launcher, monkeypatch):
    with Scripted() as server, RawServer(answer()) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        router = a_router(server, launcher)
        assert isinstance(seen(router), Observation)
        assert told(sent(router)) == ("done", DONE)
        router.close()
    assert proxy.requests == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return signed_by_itself(tmp_path_factory.mktemp("tls"))


@promise("W14")
def test_with_a_pin_exactly_that_certificate_is_taken(launcher, certificate):
    with Scripted(tls=tls_server(certificate)) as server:
        router = a_router(server, launcher, scheme="https", tls_sha256=fingerprint(certificate))
        assert isinstance(seen(router), Observation)
        assert told(sent(router)) == ("done", DONE)
        router.close()
    assert server.calls == 1


@promise("W14")
def test_another_certificate_is_drift_and_gets_no_request(launcher, certificate):
    with Scripted(tls=tls_server(certificate)) as server:
        router = a_router(server, launcher, scheme="https", tls_sha256="0" * 64)
        drifted = Unavailable(
            Reason.ARTIFACT_DRIFT, "its certificate is not the pinned one, so it was never asked for server/discover"
        )
        assert seen(router) == drifted
        router.close()
    assert server.requests == []


@promise("W14")
def test_without_a_pin_a_certificate_that_the_machine_does_not_trust_gets_no_request(
    launcher, certificate, monkeypatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # the environment's trust is not the machine's
    with Scripted(tls=tls_server(certificate)) as server:
        router = a_router(server, launcher, scheme="https")
        looked = seen(router)
        assert isinstance(looked, Unavailable)
        assert looked.reason is Reason.SERVER_UNAVAILABLE
        router.close()
    assert server.requests == []


@promise("W13")
def test_what_it_lists_is_compared_before_every_call_and_drift_gets_none(launcher):
    with Scripted() as server:
        router = a_router(server, launcher)
        assert seen(router).drift == ()
        server.tools = [DO | {"x-kept": False}]
        assert seen(router).drift == ("tool `do` at /x-kept: was `true`, is `false`",)
        assert sent(router) == NotSent(Reason.SERVER_UNAVAILABLE, "no process of this server stands as it was pinned")
        router.close()
    assert server.calls == 0


@pytest.mark.parametrize(
    ("to_list", "reason"),
    [
        (answer(500, b"", media=b"text/html"), Reason.SERVER_UNAVAILABLE),
        (answer(302, b"", b"Location: /"), Reason.SERVER_UNAVAILABLE),
        (answer(403, said(None, error=OTHER)), Reason.FAILED),
    ],
)
@promise("W14")
def test_a_list_that_does_not_come_leaves_the_server_unavailable(launcher, to_list, reason):
    with Scripted(to_list=to_list) as server:
        router = a_router(server, launcher)
        looked = seen(router)
        assert isinstance(looked, Unavailable)
        assert looked.reason is reason
        router.close()
    assert server.methods == ["server/discover", "tools/list"]


@promise("L23")
def test_the_values_of_headers_are_the_environments_and_are_told_to_the_server_alone(launcher, monkeypatch):
    monkeypatch.setenv("THE_TOKEN", "Bearer s3cret-token")
    echoed = {"content": [{"type": "text", "text": "you said s3cret-token"}]}
    with Scripted(replies(lambda i: answer(200, said(i, echoed)))) as server:
        router = a_router(server, launcher, headers=(("authorization", "THE_TOKEN"),))
        looked = seen(router)
        reply = sent(router)
        assert json.loads(reply.result) == {"content": [{"type": "text", "text": "you said [redacted]"}]}
        router.close()
    assert all(b"authorization: Bearer s3cret-token" in each for each in server.requests)
    remote = router._routes["there"]._server.launch
    assert "s3cret" not in repr(reach(remote)) + repr(router._routes["there"]._server)
    monkeypatch.setenv("THE_TOKEN", "another")
    assert reach(remote).digest == looked.launch  # what is pinned are names


@pytest.mark.parametrize("value", [None, "", "two\r\nlines", "ü", " led by a space"])
def test_a_header_whose_value_is_not_there_or_is_none_is_not_sent(launcher, monkeypatch, value):
    monkeypatch.delenv("THE_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("THE_TOKEN", value)
    with Scripted() as server:
        router = a_router(server, launcher, headers=(("authorization", "THE_TOKEN"),))
        with pytest.raises(ServerError) as caught:
            router.launches()
        assert caught.value.reason is Reason.LAUNCH_FAILED
        assert seen(router).reason is Reason.LAUNCH_FAILED
        router.close()
    assert server.requests == []


def test_a_large_call_is_written_whole_and_to_the_byte(launcher):
    arguments = "é" * 3_000_000
    with Scripted() as server:
        router = a_router(server, launcher)
        seen(router)
        assert told(sent(router, arguments)) == ("done", DONE)
        router.close()
    (call,) = [each for each in server.requests if b'"tools/call"' in each]
    assert canonical_bytes({"what": arguments}) in call


@promise("L14")
def test_a_call_that_is_cut_while_it_is_written_is_unknown_and_not_made_again(launcher):
    def cuts(connection):
        connection.recv(1024)
        reset(connection)

    with Scripted() as server:
        router = a_router(server, launcher)
        seen(router)
        server._at_once = cuts
        reply = sent(router, "x" * 20_000_000)
        assert isinstance(reply, Uncertain)
        assert told(reply) == (UNKNOWN, "the call could be written only in part")
        server._at_once = None
        router.close()
    assert (server.calls, router.calls) == (0, {"there": 1})


class Agreeing:
    """An agent at whose client a person says yes."""

    cancelled = False
    wants_progress = False
    can_ask = True

    def on_cancel(self, stop):
        """It does not change its mind."""

    def question(self, message, requested_schema, heard):
        heard({"action": "accept", "content": {"sure": True}})
        return lambda: None


ASKS = {
    "resultType": "input_required",
    "requestState": "its own",
    "inputRequests": {
        "a": {
            "method": "elicitation/create",
            "params": {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}},
        }
    },
}


@promise("W1", "L14")
@pytest.mark.parametrize("forms", [True, False])
def test_only_a_server_that_asks_and_may_ask_gets_one_more_request_for_the_same_call(launcher, forms):
    asked = []

    def to_call(connection, request_id):
        connection.sendall(answer(200, said(request_id, DONE if asked else ASKS)))
        asked.append(request_id)

    with Scripted(to_call) as server:
        router = a_router(server, launcher, capabilities={"elicitation": {"form": {}}} if forms else {})
        assert isinstance(seen(router), Observation)
        reply = router.send(claimed("it", "there"), gate=lambda: True, deadline=soon(), relay=Agreeing())
        assert told(reply) == (("done", DONE) if forms else (INVALID, "the result is input_required"))
        assert router.calls == {"there": 1}
        router.close()
    calls = [each["params"] for each in server.messages if each["method"] == "tools/call"]
    assert [each["arguments"] for each in calls] == [{"what": "it"}] * (2 if forms else 1)
    assert [each.get("requestState") for each in calls] == [None, "its own"][: len(calls)]


@promise("L14")
def test_a_call_that_is_cut_after_a_question_does_not_go_on(launcher):
    asked = []

    def to_call(connection, request_id):
        if asked:
            reset(connection)
        else:
            connection.sendall(answer(200, said(request_id, ASKS)))
        asked.append(request_id)

    with Scripted(to_call) as server:
        router = a_router(server, launcher, capabilities={"elicitation": {"form": {}}})
        seen(router)
        reply = router.send(claimed("it", "there"), gate=lambda: True, deadline=soon(), relay=Agreeing())
        assert told(reply) == (UNKNOWN, CUT)
        router.close()
    assert len(asked) == 2
