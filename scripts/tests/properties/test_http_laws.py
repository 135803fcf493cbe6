"""Laws of the endpoint of changes: no answer raises, and none makes a request that was written one that was not."""

import socket
from unittest.mock import patch

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.kernel.clock import SECOND, Deadline, ManualClock, SystemClock
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.mutation import http_endpoint
from assisted_benchmark.mutation.http_endpoint import HttpEndpoint
from assisted_benchmark.mutation.ports import HttpReply, Request

REQUEST = Request("POST", "/fabric/v4/networks", b"{}")
LINES = st.sampled_from(
    [
        b"HTTP/1.1 201 Created",
        b"HTTP/1.1 103 Early",
        b"HTTP/1.0 200 OK",
        b"HTTP/1.1 999 X",
        b"Content-Type: application/json",
        b"Content-Length: 2",
        b"Content-Length: 0",
        b"Content-Length: 99999999999999999999",
        b"Transfer-Encoding: chunked",
        b"Connection: keep-alive",
        b"2",
        b"{}",
        b"0",
        b"",
    ]
)
SAID = st.binary(max_size=60) | st.lists(LINES | st.binary(max_size=6), max_size=12).map(b"\r\n".join)
GOOD = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def exchange(said):
    """What is made of a server that has said everything already, and has closed."""
    ours, theirs = socket.socketpair()
    theirs.sendall(said)
    theirs.shutdown(socket.SHUT_WR)
    theirs.settimeout(10)
    endpoint = HttpEndpoint("http://127.0.0.1:9", ManualClock(), max_answer=64)
    with theirs, patch.object(http_endpoint, "connect", lambda *_: ours):
        reply = endpoint.ask(REQUEST, deadline=Deadline.after(SystemClock(), 10 * SECOND))
        written = b""
        while piece := theirs.recv(1 << 16):
            written += piece
    assert written.endswith(b"\r\n\r\n{}")
    return reply


@promise("M18")
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(SAID)
@example(GOOD)
@example(GOOD + GOOD)
def test_whatever_is_said_is_a_whole_answer_or_leaves_the_outcome_open(said):
    reply = exchange(said)
    assert isinstance(reply, HttpReply | Uncertain)
    if isinstance(reply, HttpReply):
        assert 200 <= reply.status <= 999
        assert reply.body in said or b"chunked" in said


@promise("M18")
def test_a_good_answer_that_is_cut_anywhere_is_none():
    whole = [isinstance(exchange(GOOD[:at]), HttpReply) for at in range(len(GOOD) + 1)]
    assert whole == [False] * len(GOOD) + [True]
