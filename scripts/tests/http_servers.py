"""Servers over HTTP for the tests of who calls them: one whose every answer is up to the test, and the SDK's."""

import json
import subprocess
import sys
import time
from pathlib import Path

from raw_http import RawServer, answer

from assisted_benchmark.contract.model import SERVER_SET, Contract, Effect, Remote, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.mcp_router.router import Router

SDK = Path(__file__).parent / "sdk_http_server.py"
DO = {"name": "do", "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}}, "x-kept": True}
DONE = {"content": [{"type": "text", "text": "done"}]}
ERAS = ("stateless", "handshake")


def said(request_id, result=None, error=None):
    """An answer's message."""
    outcome = {"result": result} if error is None else {"error": error}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, **outcome}).encode()


def streamed(*messages, end=b"\n\n", whole=True):
    """An answer of events; cut before its end, unless it is `whole`."""
    body = b"".join(b"event: message\ndata: " + each + end for each in messages)
    sized = b"%x\r\n%b\r\n" % (len(body), body) + (b"0\r\n\r\n" if whole else b"")
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + sized


class Scripted(RawServer):
    """A server with the one tool DO. `to_call` is what it says to a call: bytes, or a function of connection and id."""

    def __init__(self, to_call=None, *, era="stateless", tools=(DO,), to_list=None, **options):
        super().__init__(self._answer, **options)
        self.era = era
        self.tools = list(tools)
        self.sessions = 0
        self._to_call = to_call
        self._to_list = to_list

    @property
    def messages(self):
        return [json.loads(body) for body in (each.partition(b"\r\n\r\n")[2] for each in self.requests) if body]

    @property
    def methods(self):
        return [each.get("method", "an answer") for each in self.messages]

    @property
    def calls(self):
        return self.methods.count("tools/call")

    def _answer(self, connection):
        request = self.requests[-1]
        if not request:
            self.requests.pop()  # it came and went without a byte
            return
        if request.startswith(b"DELETE"):
            connection.sendall(answer(200, b""))
            return
        message = json.loads(request.partition(b"\r\n\r\n")[2])
        method, request_id = message.get("method", "notifications/answer"), message.get("id")
        if method == "tools/call":
            if callable(self._to_call):
                self._to_call(connection, request_id)
            else:
                connection.sendall(self._to_call or answer(200, said(request_id, DONE)))
        elif method == "tools/list" and self._to_list is not None:
            connection.sendall(self._to_list)
        else:
            connection.sendall(self._told(method, request_id))

    def _told(self, method, request_id):
        if method == "server/discover" and self.era == "stateless":
            found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
            return answer(200, said(request_id, found))
        if method == "initialize" and self.era == "handshake":
            self.sessions += 1
            found = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
            return answer(200, said(request_id, found), b"Mcp-Session-Id: session-%d" % self.sessions)
        if method == "tools/list":
            return answer(200, said(request_id, {"tools": self.tools}))
        if method.startswith("notifications/"):
            return answer(202, b"")
        return answer(400, said(None, error={"code": -32600, "message": "no such thing here"}))


def a_contract(url, *, tools=(DO,), capabilities=None, **more):
    pinned = tuple(Tool(effect=Effect.ACT, definition=Canonical.of(each)) for each in tools)
    remote = Remote(url=url, **more)
    server = Server(id="there", launch=remote, tools=pinned, capabilities=Canonical.of(capabilities or {}))
    return Contract(schema=SERVER_SET, id="there", servers=(server,))


def a_router(server, launcher, *, scheme="http", limits=None, **more):
    """A router to a server at a port of loopback."""
    url = f"{scheme}://127.0.0.1:{server.port}/mcp?of=one"
    return Router(a_contract(url, **more), Path("/"), SystemClock(), launcher, limits=limits)


class SdkServer:
    """The SDK's server in its process."""

    def __init__(self, folder, era):
        self.folder = folder
        self._process = subprocess.Popen([sys.executable, str(SDK), str(folder), era])
        while not (folder / "port").exists():
            assert self._process.poll() is None
            time.sleep(0.01)
        self.port = int((folder / "port").read_text())

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"

    def noted(self, name):
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def close(self):
        self._process.kill()
        self._process.wait()
