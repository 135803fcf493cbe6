"""An agent that is only pipes, and tools whose calls are the test's."""

import json
import os
import select
import threading

from assisted_benchmark.gateway.agent_session import AgentSession
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.tools import Session, ToolRegistration
from assisted_benchmark.kernel.clock import SystemClock

MS = 1_000_000
PATIENCE_MS = 20_000
OK = {"content": [{"type": "text", "text": "ok"}]}
SCHEMA = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
STATELESS = "2026-07-28"
FORM = {"elicitation": {"form": {}}}


def a_tool(name, handle=lambda call: OK, *, toolset="design", read_only=True):
    definition = {
        "name": name,
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": read_only},
    }
    return ToolRegistration(definition, toolset, handle)


def ask(request_id, method, **params):
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(request_id, name="act", arguments=None, **more):
    return ask(request_id, "tools/call", name=name, arguments=arguments or {}, **more)


def modern(request_id, name="act", capabilities=None, **more):
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": FORM if capabilities is None else capabilities,
    }
    return call(request_id, name, **more, _meta=meta)


def told(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancel(request_id):
    return told("notifications/cancelled", requestId=request_id)


def reply(request_id, result):
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


class Agent:
    """The agent's side of a session that a thread serves. Waits are for what must come, never for time to pass."""

    def __init__(
        self,
        *tools,
        clock=None,
        limits=None,
        instructions="",
        resources=None,
        session=("run-1", "agent-1"),
        face=None,
        **options,
    ):
        ours, self._said = os.pipe()
        self._heard, theirs = os.pipe()
        self._ours = (ours, theirs)
        self._kept = b""
        self.session = AgentSession(
            face or Face(tools, instructions, resources),
            Session(*session),
            clock or SystemClock(),
            read_fd=ours,
            write_fd=theirs,
            limits=limits or Limits(),
            **options,
        )
        self.broken = threading.Event()  # set once the session has found that nobody reads
        ring = self.session._out._on_broken
        self.session._out._on_broken = lambda: self.broken.set() or ring()
        self.crash = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        try:
            self.session.serve()
        except BaseException as crash:
            self.crash = crash

    def opened(self, version="2025-11-25", capabilities=None):
        """This agent after its handshake."""
        params = {"protocolVersion": version, "capabilities": FORM if capabilities is None else capabilities}
        self.says(ask("i", "initialize", **params), told("notifications/initialized"))
        assert self.hears()["id"] == "i"
        return self

    def says(self, *messages):
        for message in messages:
            os.write(self._said, message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    def hears(self):
        """The next line."""
        while b"\n" not in self._kept:
            chunk = self._read()
            assert chunk, "the session ended"
            self._kept += chunk
        line, self._kept = self._kept.split(b"\n", 1)
        return json.loads(line)

    def _read(self):
        poll = select.poll()
        poll.register(self._heard, select.POLLIN)
        assert poll.poll(PATIENCE_MS), "nothing came"
        return os.read(self._heard, 1 << 16)

    def hangs_up(self):
        """Says no more."""
        if self._said >= 0:
            os.close(self._said)
            self._said = -1

    def deafens(self):
        """Reads no more."""
        if self._heard >= 0:
            os.close(self._heard)
            self._heard = -1

    def rest(self):
        """Says no more, and hears everything that still comes."""
        self.hangs_up()
        self.joins()
        os.close(self._ours[1])
        self._ours = (self._ours[0],)
        while chunk := self._read():
            self._kept += chunk
        lines, self._kept = self._kept, b""
        assert not lines or lines.endswith(b"\n")
        return [json.loads(line) for line in lines.splitlines()]

    def joins(self):
        self._thread.join(PATIENCE_MS / 1000)
        assert not self._thread.is_alive(), "the session did not end"

    def close(self):
        self.deafens()
        self.hangs_up()
        self.joins()
        for fd in self._ours:
            os.close(fd)
        self._ours = ()
