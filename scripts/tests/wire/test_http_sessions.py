"""A session over HTTP where its server is odd, slow to read, or says more than it was asked."""

import json
import sys

import pytest
from http_servers import DONE, ERAS, Scripted, said, streamed
from marks import promise
from raw_http import RawServer, answer, reset
from tls_bench import fingerprint, signed_by_itself, tls_server

from assisted_benchmark.contract.model import Remote
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.origin import parse_url
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.mcp_router.remote import Reached, session_with
from assisted_benchmark.wire.http_channel import Endpoint
from assisted_benchmark.wire.http_connecting import trusted_by_pin
from assisted_benchmark.wire.http_session import HttpSession
from assisted_benchmark.wire.outcomes import Era, Limits, Odd, Result

CLOCK = SystemClock()


def soon(seconds=20):
    return Deadline.after(CLOCK, int(seconds * SECOND))


@pytest.fixture
def connected():
    """Sessions that are connected to a server, and are closed in the end."""
    opened = []

    def connect(server, **more):
        origin, target = parse_url(f"http://127.0.0.1:{server.port}/")
        opened.append(HttpSession(Endpoint(origin, target), CLOCK, **more))
        opened[-1].connect(soon())
        return opened[-1]

    yield connect
    for each in opened:
        each.close()
        each.close()


def called(session, tool="do", arguments=b"{}"):
    return session.call(tool, arguments, gate=lambda: True, deadline=soon())


def outcome(end):
    return end.value if isinstance(end, Result) else (end.reason, end.detail)


def odd(session):
    return [each.kind for each in session.oddities]


PING = b'{"jsonrpc":"2.0","id":5,"method":"ping"}'


@promise("W1")
@pytest.mark.parametrize(("era", "oddities"), [("stateless", [Odd.UNSENT]), ("handshake", [])])
def test_what_the_server_asks_is_answered_where_its_era_has_a_way_for_that(connected, era, oddities):
    with Scripted(lambda c, i: c.sendall(streamed(PING, said(i, DONE))), era=era) as server:
        session = connected(server)
        assert outcome(called(session)) == DONE
        assert odd(session) == oddities
    answers = [each for each in server.messages if each == {"jsonrpc": "2.0", "id": 5, "result": {}}]
    assert len(answers) == (1 if era == "handshake" else 0)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(lambda connection: connection.sendall(answer(500, b"")), id="refused"),
        pytest.param(reset, id="cut"),
        pytest.param(lambda connection: connection.sendall(b"nothing\r\n\r\n"), id="no HTTP"),
    ],
)
def test_an_answer_that_the_server_does_not_take_is_noted_and_the_call_goes_on(connected, how):
    with Scripted(lambda c, i: c.sendall(streamed(PING, said(i, DONE))), era="handshake") as server:
        session = connected(server)
        usual = server._answer

        def answering(connection):
            if b'"result":{}' in server.requests[-1]:
                how(connection)
            else:
                usual(connection)

        server._says = answering
        assert outcome(called(session)) == DONE
        assert odd(session) == [Odd.UNSENT]


def test_where_nobody_listens_any_more_nothing_can_be_posted(connected):
    with Scripted(era="handshake") as server:
        session = connected(server)
    assert not session._channel.post(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}\n')
    session.close()
    assert not session._channel.post(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}\n')
    assert session.closed
    assert called(session) == NotSent(Reason.SERVER_UNAVAILABLE, "the server does not read, or has ended")


@promise("W1")
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("do", b"Mcp-Name: do\r\n"),
        ("do it", b"Mcp-Name: do it\r\n"),
        ("zürich", b"Mcp-Name: =?base64?esO8cmljaA==?=\r\n"),
        (" do", b"Mcp-Name: =?base64?IGRv?=\r\n"),
        ("=?base64?ZG8=?=", b"Mcp-Name: =?base64?PT9iYXNlNjQ/Wkc4PT89?=\r\n"),
    ],
)
def test_a_tool_is_named_in_a_header_as_well(connected, name, header):
    with Scripted() as server:
        assert outcome(called(connected(server), name)) == DONE
    assert header in server.requests[-1]


@promise("W1", "W14")
@pytest.mark.parametrize("era", ERAS)
def test_a_news_stream_that_is_refused_leaves_a_session_that_says_so(connected, era):
    with Scripted(era=era) as server:
        usual = server._told

        def sized(method, request_id):
            head, _, body = usual(method, request_id).partition(b"\r\n\r\n")
            body = body.replace(b'"tools": {}', b'"tools": {"listChanged": true}')
            lines = [each for each in head.split(b"\r\n") if not each.startswith(b"Content-Length")]
            return b"\r\n".join([*lines, b"Content-Length: %d" % len(body)]) + b"\r\n\r\n" + body

        server._told = sized
        session = connected(server)
        assert session.watch_lost is (era == "stateless")
        assert outcome(called(session)) == DONE
    assert server.methods.count("subscriptions/listen") == (1 if era == "stateless" else 0)


def test_what_comes_before_the_answers_head_is_passed_over(connected):
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"
    with Scripted(lambda c, i: c.sendall(early + answer(200, said(i, DONE)))) as server:
        assert outcome(called(connected(server))) == DONE


def test_a_session_id_that_is_none_is_not_said_again(connected):
    with Scripted(era="handshake") as server:
        usual = server._told
        server._told = lambda *asked: usual(*asked).replace(b"session-1", b"a b")
        session = connected(server)
        assert outcome(called(session)) == DONE
        assert session.finish(soon())
    assert not any(b"Mcp-Session-Id" in each for each in server.requests)


def test_a_server_of_no_known_era_is_said_to_be_one(connected):
    with Scripted(era="none") as server:
        with pytest.raises(ServerError) as caught:
            connected(server)
        assert caught.value.reason is Reason.FAILED
    assert server.methods == ["server/discover", "initialize"]


@promise("W14")
def test_a_large_call_over_tls_is_written_whole(tmp_path):
    certificate = signed_by_itself(tmp_path)
    with Scripted(tls=tls_server(certificate)) as server:
        origin, target = parse_url(f"https://127.0.0.1:{server.port}")
        assert target == "/"
        session = HttpSession(Endpoint(origin, target, trusted_by_pin(), fingerprint(certificate)), CLOCK)
        assert session.connect(soon()).era is Era.STATELESS
        text = json.dumps({"what": "x" * 5_000_000}).encode()
        large = {"content": [{"type": "text", "text": "y" * 5_000_000}]}
        server._to_call = lambda c, i: c.sendall(answer(200, said(i, large)))
        assert outcome(called(session, arguments=text)) == large
        session.close()
    assert text in server.requests[-1]


def test_a_handshake_of_tls_with_who_speaks_none_is_no_connection():
    with RawServer(at_once=lambda connection: connection.sendall(b"hello")) as server:
        origin, target = parse_url(f"https://127.0.0.1:{server.port}/")
        session = HttpSession(Endpoint(origin, target, trusted_by_pin(), "0" * 64), CLOCK)
        with pytest.raises(ServerError) as caught:
            session.connect(soon())
        assert caught.value.reason is Reason.SERVER_UNAVAILABLE
        session.close()


def test_without_the_extra_the_server_cannot_be_reached_and_the_message_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "assisted_benchmark.wire.http_session", None)
    with pytest.raises(ServerError) as caught:
        session_with(Reached(remote=Remote(url="http://localhost/")), CLOCK, Limits(), {})
    assert caught.value.reason is Reason.LAUNCH_FAILED
    assert "`assisted-benchmark[http]`" in caught.value.detail


@promise("W3")
def test_of_an_answer_that_is_no_message_only_the_head_is_taken(connected):
    def pages(connection, _):
        connection.sendall(b"HTTP/1.1 502 Bad\r\nContent-Type: text/html\r\nContent-Length: 9999999999\r\n\r\n<html>")
        connection.recv(1)  # until the other side closes

    with Scripted(pages) as server:
        end = called(connected(server))
        assert outcome(end) == (Reason.OUTCOME_UNKNOWN, "HTTP 502 came where the server should have answered")
