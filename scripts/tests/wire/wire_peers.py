"""Peers for wire tests: a server that is only pipes, and real server processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

from assisted_benchmark.kernel.clock import SECOND, Deadline, ManualClock, SystemClock
from assisted_benchmark.wire.client_session import ClientSession
from assisted_benchmark.wire.outcomes import Era, Limits
from assisted_benchmark.wire.relay import Silence

PEERS = Path(__file__).parent / "peers"
OK = {"content": [{"type": "text", "text": "ok"}]}
MS = 1_000_000


class Caller:
    """Who makes a call: keeps what it hears, and answers a question when it is told to, or at once with `answer`."""

    def __init__(self, *answers, wants_progress=False, can_ask=True):
        self.wants_progress, self.can_ask, self.cancelled = wants_progress, can_ask, False
        self.steps, self.asked, self.ended = [], [], 0
        self._answers = list(answers)
        self._stop = lambda: None
        self.heard = None

    def on_cancel(self, stop):
        self._stop = stop

    def cancels(self):
        """Change its mind, as an agent does: the question that is open is abandoned first."""
        self.cancelled = True
        if self.heard is not None:
            self.heard(Silence.CANCELLED)
        self._stop()

    def progress(self, current, total=None, message=""):
        self.steps.append((current, total, message))

    def question(self, message, requested_schema, heard):
        self.asked.append((message, requested_schema))
        self.heard = heard
        if self._answers:
            answer = self._answers.pop(0)
            if callable(answer):
                answer()
            else:
                heard(answer)
        return self._end

    def _end(self):
        self.ended += 1
        self.heard = None


def reply(request_id, result):
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id, code, data=None):
    error = {"code": code, "message": "no"}
    return {"jsonrpc": "2.0", "id": request_id, "error": error if data is None else error | {"data": data}}


def told(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def initialized(version="2025-11-25", capabilities=None):
    info = {"name": "pipes", "version": "1"}
    return {"protocolVersion": version, "capabilities": capabilities or {}, "serverInfo": info}


def discovered(versions=("2026-07-28",), capabilities=None):
    return {"resultType": "complete", "supportedVersions": list(versions), "capabilities": capabilities or {}}


class Pipes:
    """A server that is only pipes. `says` puts lines there at once; `answers` are said one by one, as requests come."""

    def __init__(self, *answers, limits=None, **options):
        self.clock = ManualClock()
        from_server, self._out = os.pipe()
        self._in, to_server = os.pipe()
        from_stderr, self._err = os.pipe()
        os.set_blocking(self._in, False)
        limits = limits or Limits(probe_ns=5 * MS, grace_ns=5 * MS)
        self.session = ClientSession(from_server, to_server, from_stderr, self.clock, limits=limits, **options)
        self._answers = list(answers)
        self._begun = b""
        self._heard = []
        self.lines = []
        self._write = self.session._channel.write
        self.session._channel.write = self._answering

    def _answering(self, data):
        written = self._write(data)
        self.read()
        return written

    def read(self):
        """Read what the client wrote, and answer each request with what is next."""
        try:
            *lines, self._begun = (self._begun + os.read(self._in, 1 << 20)).split(b"\n")
        except OSError:
            return
        for line in lines:
            self.lines.append(line)
            self._heard.append(json.loads(line))
            if "id" in self._heard[-1] and "method" in self._heard[-1] and self._answers:
                answer = self._answers.pop(0)
                self.says(*(answer if isinstance(answer, list) else [answer]))

    def says(self, *messages):
        for message in messages:
            if callable(message):
                message()
            else:
                os.write(self._out, message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    def grumbles(self, text):
        os.write(self._err, text)

    def heard(self):
        """What the client has written since this was asked last."""
        self.read()
        heard, self._heard = self._heard, []
        return heard

    def within(self, ms):
        return Deadline.after(self.clock, ms * MS)

    def connected(self, capabilities=None):
        """This server after a handshake (request 1)."""
        self.session._era = Era.HANDSHAKE
        self._answers.insert(0, reply(1, initialized(capabilities=capabilities)))
        self.session.connect(self.within(100))
        self.heard()
        return self

    def call(self, *answers, ms=20, arguments=b'{"a":1}', gate=lambda: True, **options):
        """Call (request 2 after `connected`); these answers come once the call is written."""
        self._answers.append(list(answers))
        return self.session.call("t", arguments, gate=gate, deadline=self.within(ms), **options)

    def dies(self):
        for name in ("_out", "_err", "_in"):
            self.shuts(name)

    def shuts(self, name):
        if getattr(self, name) >= 0:
            os.close(getattr(self, name))
            setattr(self, name, -1)

    def close(self):
        self.dies()
        self.session.close()


class Process:
    """A real server process and a session with it."""

    def __init__(self, peer, *args, **options):
        self.clock = SystemClock()
        self.process = subprocess.Popen(
            [sys.executable, str(PEERS / peer), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        fds = [os.dup(pipe.fileno()) for pipe in (self.process.stdout, self.process.stdin, self.process.stderr)]
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.session = ClientSession(*fds, self.clock, **options)

    def within(self, ms):
        return Deadline.after(self.clock, ms * MS)

    def call(self, tool="t", arguments=b"{}", ms=10_000, **options):
        return self.session.call(tool, arguments, gate=lambda: True, deadline=self.within(ms), **options)

    def close(self):
        self.session.close()
        self.process.kill()
        self.process.wait()


PATIENT = 60 * SECOND // MS
