"""The gateway over HTTP in this process, and clients that say exactly what a test wants them to say."""

import http.client
import json
import socket
import threading

from agent_peers import FORM, STATELESS, ask

from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.http_server import HttpServer
from assisted_benchmark.gateway.principals import EachItsOwn
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SystemClock

BEARER = "a-bearer-of-the-tests-that-is-long-enough"
LEGACY = "2025-11-25"
PATIENCE = 20
INITIALIZE = ask(
    "i", "initialize", protocolVersion=LEGACY, capabilities=FORM, clientInfo={"name": "me", "version": "1"}
)


def with_bearer(application, bearer=BEARER):
    """For clients that can bring none: one is added to each of their requests, and nothing else is done for them."""

    async def called(scope, receive, send):
        await application(
            {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {bearer}".encode())]}, receive, send
        )

    return called


class Place:
    """A gateway over HTTP at work."""

    def __init__(self, *tools, face=None, principals=None, limits=None, resources=None, bearerless=False, **options):
        self.malformed = []
        self.session = HttpServer(
            face or Face(tools, "", resources),
            principals or EachItsOwn("run-1"),
            SystemClock(),
            SystemChance(),
            bearer=BEARER,
            limits=limits or Limits(),
            on_malformed=lambda reason, detail: self.malformed.append(reason.value),
            **options,
        )
        if bearerless:
            self.session._server.config.app = with_bearer(self.session._face)
        self.crash = None
        self.clients = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        try:
            self.session.serve()
        except BaseException as crash:
            self.crash = crash

    @property
    def port(self):
        return self.session.port

    def joins(self):
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "it did not end"
        assert self.crash is None

    def close(self):
        for client in self.clients:
            client.close()
        self.session.leave()
        self.joins()

    def connects(self):
        """A connection, on which nothing is said yet."""
        self.clients.append(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE))
        return self.clients[-1]

    def asks(self, method="POST", body=b"", path="/mcp", headers=(), without=()):
        """One request on a connection of its own: its status, headers and body."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        self.clients.append(client)
        client.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**self.usual(body), **dict(headers)}.items():
            for each in value if isinstance(value, list) else [value]:
                if name not in without and each is not None:
                    client.putheader(name, each)
        client.endheaders(body)
        return client.getresponse()

    def usual(self, body=b""):
        return {
            "host": f"127.0.0.1:{self.port}",
            "authorization": f"Bearer {BEARER}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "content-length": str(len(body)),
        }

    def posts(self, message, **headers):
        """A message in the handshake era: the answer to it."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.asks(body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def opens(self, message=INITIALIZE):
        """The id of a new session."""
        answer = self.posts(message)
        assert answer.status == 200, answer.read()
        answer.read()
        return answer.headers["mcp-session-id"]

    def calls(self, message, **headers):
        """A request in the stateless era, with the headers that it needs."""
        return self.asks(body=json.dumps(message).encode(), headers=stateless(message, **headers))


def stateless(message, **headers):
    name = message.get("params", {}).get("name") or message.get("params", {}).get("uri")
    given = {"mcp-protocol-version": STATELESS, "mcp-method": message["method"], "mcp-name": name}
    return given | {name.replace("_", "-"): value for name, value in headers.items()}


def told(answer):
    """Status, and the JSON-RPC error's code and reason."""
    error = json.loads(answer.read())["error"]
    return answer.status, error["code"], (error.get("data") or {}).get("reason")


def result(answer):
    """What came, as one JSON answer."""
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    return json.loads(answer.read())


def events(answer, most=None):
    """The messages of a stream; all, or the first so many."""
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    found = []
    while most is None or len(found) < most:
        line = answer.readline()
        if not line:
            return found
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    return found


def raw(place, body=b"", method=b"POST", length=None, headers=b""):
    """The bytes of a request."""
    usual = place.usual()
    del usual["content-length"]
    lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in usual.items())
    size = b"content-length: %d\r\n" % (len(body) if length is None else length)
    return method + b" /mcp HTTP/1.1\r\n" + lines + headers + size + b"\r\n" + body


def heard(connection):
    """Everything that comes until the other side closes."""
    said = b""
    try:
        while chunk := connection.recv(1 << 16):
            said += chunk
    except ConnectionResetError:
        pass
    return said
