"""Peers over HTTP that are slow, half there, gone or many: raw sockets against the gateway."""

import json
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from agent_peers import OK, a_tool, ask, call, modern, reply
from http_peers import BEARER, INITIALIZE, heard, raw, result, stateless
from marks import promise

from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.http_protocol import PatientProtocol
from assisted_benchmark.kernel.strict_json import MIB

PING = json.dumps(ask(1, "ping")).encode()


def soon(monkeypatch, what):
    """Let this deadline pass at once."""
    module, _, name = what.rpartition(".")
    monkeypatch.setattr(f"assisted_benchmark.gateway.{module}.{name}", 0.05)


def serves(ours):
    """Whether others are served."""
    return result(ours.posts(PING, mcp_session_id=ours.opens())) == reply(1, {})


@promise("W16")
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"POST", id="a word"),
        pytest.param(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-", id="half a head"),
    ],
)
def test_who_does_not_come_to_the_end_of_a_head_is_cut_off(place, monkeypatch, said):
    soon(monkeypatch, "http_protocol.HEAD_SECONDS")
    ours = place()
    connection = ours.connects()
    connection.sendall(said)
    assert heard(connection) == b""
    monkeypatch.undo()  # who is served next has all the time there is
    assert serves(ours)


@promise("W16")
def test_the_head_of_a_second_request_has_its_deadline_too(place, monkeypatch):
    ours = place()
    connection = ours.connects()
    connection.sendall(raw(ours, PING))
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(1 << 16)
    soon(monkeypatch, "http_protocol.HEAD_SECONDS")
    connection.sendall(b"POST /mcp HT")
    assert heard(connection) == b""


@promise("W16")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_does_not_come_to_its_end_is_given_up(place, monkeypatch, chunked):
    soon(monkeypatch, "http_face._BODY_SECONDS")
    ours = place()
    connection = ours.connects()
    request = raw(ours, PING[:5], length=len(PING))
    if chunked:
        request = raw(ours, b"5\r\n" + PING[:5]).replace(b"content-length: 8", b"transfer-encoding: chunked")
    connection.sendall(request)
    answer = heard(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close\r\n" in answer
    assert ours.malformed == []


@promise("W16")
def test_a_client_that_leaves_in_the_middle_of_its_body_is_forgotten(place):
    ours = place(a_tool("act", lambda flight: pytest.fail("nothing was asked")))
    for reset in (False, True):
        connection = ours.connects()
        connection.sendall(raw(ours, PING[:5], length=len(PING)))
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    assert serves(ours)
    assert (ours.malformed, ours.session.oddities) == ([], ())


@promise("W3", "W16")
def test_a_body_that_never_ends_is_refused_as_soon_as_it_is_too_long(place):
    ours = place(limits=Limits(line=4096))
    connection = ours.connects()
    head = raw(ours).replace(b"content-length: 0", b"transfer-encoding: chunked")
    connection.sendall(head + b"2000\r\n" + b" " * 0x2000)
    assert heard(connection).startswith(b"HTTP/1.1 413 ")
    assert ours.malformed == ["too_large"]


@promise("W15a", "W16")
@pytest.mark.parametrize(
    ("header", "other", "status"),
    [
        pytest.param(b"Bearer a-", b"Bearer b-", b"401", id="another bearer"),
        pytest.param(b"host: ", b"host: x", b"403", id="another host"),
        pytest.param(b"/mcp", b"/other", b"404", id="another path"),
        pytest.param(b"POST", b"PUT", b"405", id="another method"),
        pytest.param(b"application/json\r\n", b"text/plain\r\n", b"415", id="another type"),
        pytest.param(b"accept", b"accepts", b"406", id="accepts nothing"),
    ],
)
def test_the_body_of_a_request_that_is_turned_away_is_not_read_to_its_end(place, header, other, status):
    ours = place()
    connection = ours.connects()
    head = raw(ours).replace(b"content-length: 0", b"transfer-encoding: chunked").replace(header, other)
    connection.sendall(head + b"5\r\nhello\r\n")  # and so on
    assert heard(connection).startswith(b"HTTP/1.1 " + status)
    assert serves(ours)


@promise("W16")
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", id="TLS"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", id="two hosts"),
        pytest.param(
            b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", id="two lengths"
        ),
        pytest.param(b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n", id="a negative length"),
        pytest.param(b"POST /mcp HTTP/1.1\r\nhost : a\r\n\r\n", id="a blank before a colon"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * (1 << 17) + b"\r\n\r\n", id="a long head"),
    ],
)
def test_what_is_no_http_is_refused(place, said):
    ours = place()
    connection = ours.connects()
    connection.sendall(said)
    assert heard(connection).startswith(b"HTTP/1.1 400 ")
    assert serves(ours)


@promise("W16")
def test_an_upgrade_is_not_made(place):
    ours = place()
    connection = ours.connects()
    more = b"connection: upgrade, close\r\nupgrade: websocket\r\nhost:"
    connection.sendall(raw(ours, method=b"GET").replace(b"host:", more))
    assert heard(connection).startswith(b"HTTP/1.1 400 ")


@promise("W16")
def test_requests_in_a_row_on_one_connection_are_answered_in_order(place):
    ours = place(a_tool("act"))
    session = f"mcp-session-id: {ours.opens()}\r\ncontent-length".encode()
    requests = [raw(ours, json.dumps(call(n)).encode()).replace(b"content-length", session) for n in range(5)]
    requests[-1] = requests[-1].replace(b"accept:", b"connection: close\r\naccept:")
    connection = ours.connects()
    connection.sendall(b"".join(requests))
    answers = [
        json.loads(each.partition(b"\r\n\r\n")[2]) for each in heard(connection).split(b"HTTP/1.1 200 OK\r\n")[1:]
    ]
    assert answers == [reply(n, OK) for n in range(5)]


@promise("W16")
def test_a_client_that_does_not_read_its_answer_is_cut_off_and_holds_up_nobody(place, monkeypatch):
    soon(monkeypatch, "http_protocol.READ_SECONDS")
    lost, ends = threading.Event(), PatientProtocol.connection_lost
    monkeypatch.setattr(PatientProtocol, "connection_lost", lambda self, exc: ends(self, exc) or lost.set())
    ours = place(a_tool("act", lambda flight: {"content": [{"type": "text", "text": "x" * (16 * MIB)}]}))
    message = modern(1)
    body = json.dumps(message).encode()
    more = "".join(f"{name}: {value}\r\n" for name, value in stateless(message).items()).encode() + b"host:"
    connection = ours.connects()
    connection.sendall(raw(ours, body).replace(b"host:", more))
    assert lost.wait(20)
    assert serves(ours)
    assert b"200 OK" in (said := heard(connection))
    assert len(said) < 16 * MIB


@promise("W16")
def test_a_client_that_reads_slowly_gets_all_of_its_answer(place):
    ours = place(a_tool("act", lambda flight: {"content": [{"type": "text", "text": "x" * (16 * MIB)}]}))
    answer = ours.posts(call(1), mcp_session_id=ours.opens())
    assert len(b"".join(iter(lambda: answer.read(1 << 16), b""))) > 16 * MIB


@promise("W6", "W16")
def test_progress_that_nobody_reads_is_kept_in_bounds_and_the_answer_still_comes(place):
    filler = "x" * 10_000

    def act(flight):
        for step in range(1, 1001):
            flight.progress(step, None, filler)
        return OK

    ours = place(a_tool("act", act))
    answer = ours.posts(call(1, _meta={"progressToken": 1}), mcp_session_id=ours.opens())
    messages = [json.loads(line[6:]) for line in answer.read().splitlines() if line.startswith(b"data: ")]
    steps = [each["params"]["progress"] for each in messages[:-1]]
    assert messages[-1] == reply(1, OK)
    assert steps == sorted(set(steps))


@promise("W16")
def test_more_connections_than_can_be_held_are_turned_away_and_room_is_made(place, monkeypatch):
    monkeypatch.setattr("assisted_benchmark.gateway.http_server._CONNECTIONS", 8)
    ours = place()
    held = [ours.asks("GET", headers={"mcp-session-id": session}) for session in [ours.opens() for _ in range(3)]]
    idle = [ours.connects() for _ in range(8)]
    assert ours.posts(json.dumps(INITIALIZE).encode()).status == 503
    for each in idle:
        each.close()
    while ours.posts(json.dumps(INITIALIZE).encode()).status == 503:
        pass  # until it has noticed that they are gone
    assert [each.status for each in held] == [200] * 3


@promise("W15a", "W16")
def test_a_flood_without_the_bearer_costs_those_who_have_it_nothing(place):
    ours = place(a_tool("act"))
    session = ours.opens()

    def knocks(_):
        return ours.asks(body=b"{" * 1000, headers={"authorization": f"Bearer {BEARER[::-1]}"}).status

    with ThreadPoolExecutor(8) as pool:
        knocked = pool.map(knocks, range(200))
        answered = [result(ours.posts(call(n), mcp_session_id=session)) for n in range(50)]
    assert set(knocked) == {401}
    assert answered == [reply(n, OK) for n in range(50)]
    assert (ours.malformed, ours.session.oddities) == ([], ())


@promise("W16")
def test_sixteen_callers_at_once_are_each_answered_and_each_acts_once(place):
    acted = []
    ours = place(a_tool("act", lambda flight: acted.append(json.loads(flight.arguments)["n"]) or OK, read_only=False))
    sessions = [ours.opens() for _ in range(8)]

    def calls(n):
        if n % 2:
            return result(ours.calls(modern(1, arguments={"n": n})))["result"]["content"]
        return result(ours.posts(call(n, arguments={"n": n}), mcp_session_id=sessions[n // 2 % 8]))["result"]["content"]

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(calls, range(160))) == [OK["content"]] * 160
    assert sorted(acted) == list(range(160))


def test_more_calls_than_can_wait_are_refused_whoever_makes_them(place):
    begun, go = threading.Semaphore(0), threading.Event()

    def hold(flight):
        begun.release()
        assert go.wait(20)
        return OK

    ours = place(a_tool("hold", hold), limits=Limits(calls=1, waiting=1))
    first, second = ours.opens(), ours.opens()
    with ThreadPoolExecutor(2) as pool:
        held = [
            pool.submit(lambda s: result(ours.posts(call(1, "hold"), mcp_session_id=s)), s) for s in (first, second)
        ]
        assert begun.acquire(timeout=20)
        while ours.session._service.in_flight < 2:
            assert serves(ours)  # until the second waits
        assert result(ours.calls(modern(3, "hold")))["error"]["code"] == -32603
        go.set()
        assert [each.result() for each in held] == [reply(1, OK)] * 2
