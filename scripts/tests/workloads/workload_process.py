"""A workload process on raw pipes, with the harness's end of its control channel."""

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

import assisted_benchmark
from assisted_benchmark.workloads.control import Control
from assisted_benchmark.workloads.process import CONTROL_ENV

ROOT = Path(assisted_benchmark.__file__).parents[1]
LBA = ROOT.parent / "fixtures" / "lba"
# What coverage hands down, so that it sees what these processes reach.
ENV = {"PYTHONPATH": str(ROOT), **{key: value for key, value in os.environ.items() if key.startswith("COVERAGE_")}}
PATIENCE = 10.0  # seconds until a test gives up; nothing waits that long unless it fails

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def argv(module, *args):
    return [sys.executable, "-m", f"assisted_benchmark.workloads.{module}", *map(str, args)]


class Workload:
    """Started, configured and, unless told otherwise, initialised in the handshake era."""

    def __init__(self, module="synthetic_ui", *args, seed=7, task="t-1", faults=(), hello=True, stderr=None):
        self.control = Control()
        self.stderr = stderr or tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.process = subprocess.Popen(
            argv(module, *args),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env=ENV | {CONTROL_ENV: str(self.control.child_fd)},
            pass_fds=[self.control.child_fd],
        )
        self.control.started()
        self.control.configure(seed=seed, task=task, faults=faults)
        self.out = b""
        self._seen = 0
        self._ids = 0
        if hello:
            self.hello = self.ask("initialize", HELLO)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for each in (self.process.stdin, self.process.stdout, self.process.stderr, self.control):
            if each:
                each.close()
        if hasattr(self.stderr, "close"):
            self.stderr.close()

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def request(self, method, params=None):
        """Send without waiting; the id."""
        self._ids += 1
        self.send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params or {}})
        return self._ids

    def line(self, seconds=PATIENCE):
        """The next line as bytes; what is left, perhaps nothing, at the end or when the time is up."""
        while b"\n" not in self.out[self._seen :]:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                break
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                break
            self.out += data
        line, end, _ = self.out[self._seen :].partition(b"\n")
        self._seen += len(line) + len(end)
        return line + end

    def ask(self, method, params=None):
        """Send and take the next line, as a value."""
        self.request(method, params)
        return json.loads(self.line())

    def call(self, name, **arguments):
        return self.request("tools/call", {"name": name, "arguments": arguments})

    def lines_until_ping(self):
        """Every line up to the answer of a ping that is sent now, without that answer."""
        ping = self.request("ping")
        lines = []
        while (line := self.line()) and not (line.endswith(b"}\n") and json.loads(line).get("id") == ping):
            lines.append(line)
        return lines

    def end(self):
        """Close its input, wait, and hear the rest of both channels; its exit status."""
        self.process.stdin.close()
        while self.line():
            pass
        status = self.process.wait(PATIENCE)
        self.control.finish(PATIENCE)
        return status

    def stderr_bytes(self):
        self.stderr.seek(0)
        return self.stderr.read()
