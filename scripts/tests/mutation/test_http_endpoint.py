import logging
import socket
import ssl
import threading
import tracemalloc

import pytest
from marks import promise
from raw_http import PATIENCE, RawServer, answer, reset, whole_request
from tls_bench import signed_by_itself, tls_server

from assisted_benchmark.kernel.clock import SECOND, Deadline, Instant, ManualClock, SystemClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.mutation import http_endpoint
from assisted_benchmark.mutation.http_endpoint import HttpEndpoint, Origin
from assisted_benchmark.mutation.http_outcomes import Broken
from assisted_benchmark.mutation.ports import HttpReply, Request

BEARER = "secret-Bearer.of/an~operator+1=="
BODY = '{"name":"Zürich → Genève","n":1}'.encode()
REQUEST = Request("POST", "/fabric/v4/networks?dryRun=true", BODY)
CREATE = Request("POST", "/fabric/v4/networks", BODY)
NO_CONNECTION = NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
NO_TIME = NotSent(Reason.SERVER_UNAVAILABLE, "no time was left to write, or it is no request")


def claiming(body=BODY):
    return Claimed(Admitted(b"g", Digest("sha256:" + "0" * 64), "fabric", "network", body), "run")


def real(seconds=PATIENCE):
    return Deadline.after(SystemClock(), int(seconds * SECOND))


def endpoint(server, clock=None, **options):
    return HttpEndpoint(f"http://127.0.0.1:{server.port}", clock or ManualClock(), **options)


def uncertain(broken):
    """What a broken exchange comes to under a clock that stands still."""
    return broken.uncertain(ManualClock().now())


@promise("M18")
def test_what_arrives_is_the_claimed_body_and_a_head_of_ours_to_the_byte():
    with RawServer(answer(201, b'{"uuid":"u"}')) as server:
        reply = endpoint(server, bearer=BEARER).create(claiming(), CREATE, gate=lambda: True, deadline=real())
    now = ManualClock().now()
    assert reply == HttpReply(201, b'{"uuid":"u"}', now, now)
    head = (
        "POST /fabric/v4/networks HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        "Connection: close",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "User-Agent: assisted-benchmark",
        f"Authorization: Bearer {BEARER}",
        "Content-Type: application/json",
        f"Content-Length: {len(BODY)}",
    )
    assert server.requests == ["\r\n".join(head).encode() + b"\r\n\r\n" + BODY]


def test_a_read_has_no_body_and_no_bearer_that_was_not_given():
    with RawServer(answer(200)) as server:
        assert endpoint(server).ask(Request("GET", "/fabric/v4/networks"), deadline=real()).status == 200
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert (head.split(b"\r\n")[0], body) == (b"GET /fabric/v4/networks HTTP/1.1", b"")
    assert [line.split(b":")[0] for line in head.split(b"\r\n")[1:]] == [
        b"Host",
        b"Connection",
        b"Accept",
        b"Accept-Encoding",
        b"User-Agent",
    ]


@promise("M18")
@pytest.mark.parametrize("body", [b"", BODY + b" ", BODY.replace(b"1", b"2")])
def test_another_body_than_the_claimed_one_opens_no_connection(body):
    with RawServer(answer()) as server:
        reply = endpoint(server).create(claiming(body), CREATE, gate=lambda: True, deadline=real())
        assert reply == NotSent(Reason.BINDING_MISMATCH, "the body is not the claimed one")
    assert server.requests == []
    assert not server.accepted.acquire(blocking=False)


@promise("M14")
def test_the_gate_is_asked_once_when_the_connection_stands_and_nothing_is_written():
    asked = []

    def looks(connection):
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
        looked.set()
        connection.settimeout(PATIENCE)
        asked.append(whole_request(connection)[:4])
        connection.sendall(answer())

    def gate():
        asked.append("gate")
        return looked.wait(PATIENCE)

    looked = threading.Event()
    with RawServer(at_once=looks) as server:
        reply = endpoint(server).create(claiming(), CREATE, gate=gate, deadline=real())
    assert (reply.status, asked) == (201, ["gate", b"POST"])


@promise("M14")
def test_a_gate_that_says_no_leaves_a_connection_without_a_byte():
    got = []
    with RawServer(at_once=lambda connection: got.append(connection.recv(1))) as server:
        reply = endpoint(server).create(claiming(), CREATE, gate=lambda: False, deadline=real())
        assert server.over.acquire(timeout=PATIENCE)
    assert (reply, got) == (NotSent(Reason.EXPIRED, "the gate closed before the request was written"), [b""])


def test_a_gate_that_fails_is_the_callers_to_hear_and_nothing_is_written():
    def gate():
        raise LookupError

    got = []
    with RawServer(at_once=lambda connection: got.append(connection.recv(1))) as server:
        with pytest.raises(LookupError):
            endpoint(server).create(claiming(), CREATE, gate=gate, deadline=real())
        assert server.over.acquire(timeout=PATIENCE)
    assert got == [b""]


@promise("W7")
def test_a_deadline_that_passes_at_the_gate_lets_nothing_be_written():
    clock = ManualClock()

    def gate():
        clock.advance(2 * SECOND)
        return True

    got = []
    with RawServer(at_once=lambda connection: got.append(connection.recv(1))) as server:
        reply = endpoint(server).create(claiming(), CREATE, gate=gate, deadline=Deadline.after(clock, SECOND))
        assert server.over.acquire(timeout=PATIENCE)
    assert (reply, got) == (NO_TIME, [b""])


@promise("W7")
def test_a_deadline_that_passed_opens_no_connection():
    with RawServer(answer()) as server:
        reply = endpoint(server).create(claiming(), CREATE, gate=lambda: True, deadline=real(0))
        assert not server.accepted.acquire(blocking=False)
    assert (reply, server.requests) == (NO_CONNECTION, [])


def test_where_nobody_listens_nothing_is_sent():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    nobody = HttpEndpoint(f"http://127.0.0.1:{port}", ManualClock())
    assert nobody.create(claiming(), CREATE, gate=lambda: True, deadline=real()) == NO_CONNECTION


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (REQUEST._replace(target="http://elsewhere/"), NotSent(Reason.SERVER_UNAVAILABLE, "the target is no path")),
        (REQUEST._replace(target="/a b"), NotSent(Reason.SERVER_UNAVAILABLE, "the target is no path")),
        (REQUEST._replace(target="/a\r\nX: y"), NotSent(Reason.SERVER_UNAVAILABLE, "the target is no path")),
        (REQUEST._replace(method="PO ST"), NO_TIME),
    ],
    ids=["absolute", "space", "header", "method"],
)
def test_what_cannot_be_a_request_is_not_written(request_, expected):
    with RawServer(answer()) as server:
        assert endpoint(server).ask(request_, deadline=real()) == expected
    assert server.requests in ([], [b""])


def test_a_connection_that_broke_when_the_gate_had_opened_may_have_carried_it():
    opening, broken = threading.Event(), threading.Event()

    def breaks(connection):
        opening.wait(PATIENCE)
        reset(connection)
        broken.set()

    def gate():
        opening.set()
        return broken.wait(PATIENCE)

    with RawServer(at_once=breaks) as server:
        reply = endpoint(server).create(claiming(), CREATE, gate=gate, deadline=real())
    assert reply == uncertain(Broken.CLOSED)


@promise("M18", "W14")
def test_nothing_is_retried_followed_or_kept_and_each_request_has_a_connection_of_its_own():
    seen = answer(
        307, b"", b"Location: /fabric/v4/elsewhere", b"Set-Cookie: session=1; Path=/", b"Connection: keep-alive"
    )
    with RawServer(seen) as server:
        ours = endpoint(server)
        for _ in range(2):
            reply = ours.create(claiming(), CREATE, gate=lambda: True, deadline=real())
            assert (reply.status, reply.body) == (307, b"")
    assert len(server.requests) == 2
    assert server.requests[0] == server.requests[1]
    assert b"ookie" not in server.requests[1]
    assert [server.accepted.acquire(blocking=False) for _ in range(3)] == [True, True, False]


@promise("W14")
def test_no_proxy_of_the_environment_is_asked(monkeypatch):
    with RawServer(answer(502)) as proxy, RawServer(answer(200)) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert endpoint(server).ask(REQUEST, deadline=real()).status == 200
    assert (len(server.requests), proxy.requests) == (1, [])


HEAD = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
HOSTILE = {
    "nothing at all": (b"", Broken.CLOSED),
    "half a head": (HEAD, Broken.CLOSED),
    "half a body": (HEAD + b"Content-Length: 9\r\n\r\n{}", Broken.CLOSED),
    "half a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{}", Broken.CLOSED),
    "no last chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", Broken.CLOSED),
    "no protocol": (b"\x00\xff" * 40 + b"\r\n\r\n", Broken.NO_HTTP),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", Broken.NO_HTTP),
    "http/2": (b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00d\r\n\r\n", Broken.NO_HTTP),
    "a header without a name": (HEAD + b": x\r\n\r\n", Broken.NO_HTTP),
    "two lengths": (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", Broken.NO_HTTP),
    "a negative length": (HEAD + b"Content-Length: -2\r\n\r\n{}", Broken.NO_HTTP),
    "a chunk without a size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", Broken.NO_HTTP),
    "a head without an end": (HEAD + b"X: " + b"y" * (1 << 17), Broken.TOO_LARGE),
    "heads without an end": (b"HTTP/1.1 103 Early\r\n\r\n" * (1 << 17), Broken.TOO_LARGE),
    "a body beyond the bound": (HEAD + b"Content-Length: 1000\r\n\r\n" + b" " * 1000, Broken.TOO_LARGE),
    "a body far beyond the bound": (HEAD + b"Content-Length: 9999999\r\n\r\n" + b" " * (1 << 20), Broken.TOO_LARGE),
    "a body of many chunks": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * (1 << 15),
        Broken.TOO_LARGE,
    ),
    "an upgrade": (b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", Broken.NO_HTTP),
    "another answer": (answer() * 2, Broken.TWICE),
    "a byte after the answer": (answer() + b" ", Broken.TWICE),
    "a success without a type": (b"HTTP/1.1 204 None\r\n\r\n", Broken.NO_JSON),
    "a page of success": (answer(media=b"text/html"), Broken.NO_JSON),
    "a type that begins so": (answer(media=b"application/jsonx"), Broken.NO_JSON),
}
SOUND = {
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 201, b"{}"),
    "an older protocol": (b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n[1]", 200, b"[1]"),
    "an early hint": (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + answer(), 201, b"{}"),
    "another case": (answer(media=b"Application/JSON; charset=UTF-8"), 201, b"{}"),
    "no json": (answer(201, b"\xff{"), 201, b"\xff{"),
    "a page of failure": (answer(502, b"<p>", media=b"text/html"), 502, b"<p>"),
    "as much as is taken": (answer(201, b" " * 999), 201, b" " * 999),
}


@promise("M18")
@pytest.mark.parametrize(("said", "broken"), HOSTILE.values(), ids=HOSTILE.keys())
def test_an_answer_that_is_none_leaves_the_outcome_open(said, broken):
    with RawServer(said) as server:
        reply = endpoint(server, max_answer=999).create(claiming(), CREATE, gate=lambda: True, deadline=real())
    assert reply == uncertain(broken)


@promise("M18")
@pytest.mark.parametrize(("said", "status", "body"), SOUND.values(), ids=SOUND.keys())
def test_a_whole_answer_is_handed_on_as_it_came(said, status, body):
    now = ManualClock().now()
    with RawServer(said) as server:
        reply = endpoint(server, max_answer=999).create(claiming(), CREATE, gate=lambda: True, deadline=real())
    assert reply == HttpReply(status, body, now, now)


def test_a_second_answer_is_noticed_although_it_comes_later():
    said = threading.Event()

    def twice(connection):
        connection.sendall(answer())
        said.wait(PATIENCE)
        connection.sendall(answer())

    class TellingClock(ManualClock):
        """Read for the last time when the first answer is whole."""

        def now(self):
            if server.requests:
                said.set()
            return super().now()

    with RawServer(twice) as server:
        reply = endpoint(server, TellingClock()).ask(REQUEST, deadline=real())
    assert reply == uncertain(Broken.TWICE)


def test_a_server_that_does_not_close_its_connection_is_not_waited_for():
    held = threading.Event()

    def holds(connection):
        connection.sendall(answer())
        held.wait(PATIENCE)

    with RawServer(holds) as server:
        reply = endpoint(server).ask(REQUEST, deadline=real())
        assert not server.over.acquire(blocking=False)  # it still holds
        held.set()
    assert reply.status == 201


@promise("W7")
@pytest.mark.parametrize("said", [b"", HEAD + b"Content-Length: 99999\r\n\r\n"], ids=["head", "body"])
def test_an_answer_that_drips_does_not_stretch_the_deadline(said):
    clock = ManualClock()

    def drips(connection):
        connection.sendall(said)
        while True:  # until the other side has had enough
            connection.sendall(b"H")
            clock.advance(SECOND)

    with RawServer(drips) as server:
        reply = endpoint(server, clock).create(
            claiming(), CREATE, gate=lambda: True, deadline=Deadline.after(clock, 30 * SECOND)
        )
    assert (type(reply), reply.reason, reply.detail) == (Uncertain, Reason.OUTCOME_UNKNOWN, Broken.LATE.value)


@promise("W7")
def test_a_server_that_reads_nothing_does_not_stretch_the_deadline():
    read = threading.Event()
    large = CREATE._replace(body=b" " * (64 << 20))  # more than any socket holds
    with RawServer(at_once=lambda connection: read.wait(PATIENCE)) as server:
        reply = endpoint(server).ask(large, deadline=real(0.2))
        read.set()
    assert reply == uncertain(Broken.LATE)


@promise("M18")
def test_an_answer_of_16_mebibytes_is_taken_in_pieces_and_held_once():
    body = b" " * (16 << 20)
    with RawServer(answer(200, body)) as server:
        ours = endpoint(server, max_answer=len(body))
        tracemalloc.start()
        reply = ours.ask(REQUEST, deadline=real())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert reply.body == body
    assert peak < 2.5 * len(body)  # the pieces, and what they are joined to


def test_of_an_answer_beyond_the_bound_no_more_is_taken_than_shows_it(monkeypatch):
    taken = []
    read = http_endpoint._Stream.read

    def counting(stream, max_bytes, timeout=None):
        taken.append(max_bytes)
        return read(stream, max_bytes, timeout)

    monkeypatch.setattr(http_endpoint._Stream, "read", counting)
    with RawServer(answer(200, b" " * (16 << 20))) as server:
        assert endpoint(server).ask(REQUEST, deadline=real()) == uncertain(Broken.TOO_LARGE)
    assert max(taken) <= 1 << 16


@promise("M18")
def test_one_endpoint_serves_many_threads_and_each_request_arrives_once():
    bodies = [b'{"n":%d}' % number for number in range(40)]
    replies = {}

    def one(body):
        reply = ours.create(claiming(body), CREATE._replace(body=body), gate=lambda: True, deadline=real())
        replies[body] = reply.status

    with RawServer(answer()) as server:
        ours = endpoint(server)
        threads = [threading.Thread(target=one, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert replies == dict.fromkeys(bodies, 201)
    assert sorted(each.partition(b"\r\n\r\n")[2] for each in server.requests) == sorted(bodies)


def test_the_instants_are_those_of_the_first_byte_and_of_the_whole_answer():
    class TickingClock(ManualClock):
        """No two readings are the same."""

        def now(self):
            self.advance(1)
            return super().now()

    clock = TickingClock()
    start = clock.now()
    with RawServer(answer()) as server:
        reply = endpoint(server, clock).ask(REQUEST, deadline=real())
    assert (reply.wrote, reply.replied) == tuple(
        Instant(start.wall_ns + ticks, start.mono_ns + ticks) for ticks in (1, 2)
    )


@promise("M18")
def test_a_bearer_that_the_endpoint_says_again_is_told_to_nobody():
    with RawServer(answer(401, b'{"errorMessage":"Bearer %b is not known"}' % BEARER.encode())) as server:
        reply = endpoint(server, bearer=BEARER).ask(REQUEST, deadline=real())
    assert reply.body == b'{"errorMessage":"Bearer [redacted] is not known"}'


def test_the_bearer_is_in_no_reply_no_error_and_no_log(caplog):
    caplog.set_level(logging.DEBUG)
    said = []
    for said_back in (b"", b"\xff", answer(401, b"{}")):
        with RawServer(said_back) as server:
            ours = endpoint(server, bearer=BEARER)
            said.append(repr(ours.create(claiming(), CREATE, gate=lambda: True, deadline=real())))
            said.append(repr(ours))
        said.append(repr(ours.ask(REQUEST, deadline=real())))  # nobody listens now
    with pytest.raises(MisuseError) as caught:
        HttpEndpoint("http://127.0.0.1:1", ManualClock(), bearer=f"{BEARER}\r\nX: y")
    text = "\n".join([*said, str(caught.value), repr(caught.value), caplog.text])
    assert (BEARER in text, caught.value.reason) == (False, Reason.MISUSE)


@promise("W14")
@pytest.mark.parametrize(
    ("text", "origin", "authority"),
    [
        ("http://127.0.0.1:8080", Origin("http", "127.0.0.1", 8080), "127.0.0.1:8080"),
        ("http://localhost", Origin("http", "localhost", 80), "localhost"),
        ("http://[::1]:9", Origin("http", "::1", 9), "[::1]:9"),
        ("https://api.example.com", Origin("https", "api.example.com", 443), "api.example.com"),
        ("https://api.example.com:8443", Origin("https", "api.example.com", 8443), "api.example.com:8443"),
        ("https://[2001:db8::1]", Origin("https", "2001:db8::1", 443), "[2001:db8::1]"),
    ],
)
def test_an_origin_is_a_scheme_a_host_and_a_port(text, origin, authority):
    assert (Origin.parse(text), Origin.parse(text).authority) == (origin, authority)


@promise("W14")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "api.example.com",
        "http://api.example.com",
        "http://10.0.0.1",
        "http://127.0.0.1.example.com",
        "http://localhost.",
        "http://[2001:db8::1]:80",
        "https://api.example.com/",
        "https://api.example.com/fabric",
        "https://api.example.com?x",
        "https://user@api.example.com",
        "https://user:word@api.example.com",
        "https://API.example.com",
        "https://api..example.com",
        f"https://{'a' * 64}.example.com",
        f"https://{'a.' * 200}com",
        "https://api.example.com:0",
        "https://api.example.com:65536",
        "https://api.example.com:",
        "https://api.example.com\n",
        "https://api.example.com\r\nX: y",
        "ftp://127.0.0.1",
        "unix:/tmp",
    ],
)
def test_what_is_no_origin_or_would_be_spoken_to_in_the_clear_is_refused(text):
    with pytest.raises(MisuseError) as caught:
        HttpEndpoint(text, ManualClock())
    assert caught.value.reason is Reason.MISUSE


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_name_of_this_machine_is_tried_at_each_of_its_addresses(host):
    with RawServer(answer(200)) as server:
        ours = HttpEndpoint(f"http://{host}:{server.port}", ManualClock())
        assert ours.ask(REQUEST, deadline=real()).status == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return signed_by_itself(tmp_path_factory.mktemp("tls"))


@promise("W14")
def test_over_tls_a_server_is_spoken_to_only_if_it_is_trusted(certificate, monkeypatch):
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # the environment's trust is not the operator's
    with RawServer(answer(), tls=tls_server(certificate)) as server:
        origin = f"https://127.0.0.1:{server.port}"
        reply = HttpEndpoint(origin, ManualClock()).create(claiming(), CREATE, gate=lambda: True, deadline=real())
        assert reply == NO_CONNECTION
        reply = HttpEndpoint(origin, ManualClock(), tls=trusting).create(
            claiming(), CREATE, gate=lambda: True, deadline=real()
        )
        assert (reply.status, reply.body) == (201, b"{}")
    assert [request.partition(b"\r\n\r\n")[2] for request in server.requests] == [BODY]


@promise("W7")
def test_a_handshake_that_nobody_answers_ends_with_the_deadline():
    held = threading.Event()
    with RawServer(at_once=lambda connection: held.wait(PATIENCE)) as server:
        ours = HttpEndpoint(f"https://127.0.0.1:{server.port}", ManualClock())
        reply = ours.create(claiming(), CREATE, gate=lambda: True, deadline=real(0.2))
        assert not server.over.acquire(blocking=False)
        held.set()
    assert reply == NO_CONNECTION
