"""The plugin host in a process of its own, with the harness's end of its control channel and its socket."""

import json
import select
import socket
import subprocess
import tempfile
from contextlib import suppress

from host_requests import SEED
from workload_process import ENV, PATIENCE, argv

from assisted_benchmark.capability.socket_host import SocketHost
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.workloads.control import Control
from assisted_benchmark.workloads.plugin_host_oracle import read_host
from assisted_benchmark.workloads.plugin_host_place import LISTENER_ENV, Place
from assisted_benchmark.workloads.process import CONTROL_ENV


class HostProcess:
    """Started and configured; it can be connected to at once."""

    def __init__(self, *faults, seed=SEED):
        self.control = Control()
        self.place = Place()
        self.hosts = []
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        fds = (self.control.child_fd, self.place.child_fd)
        self.process = subprocess.Popen(
            argv("plugin_host"),
            stdin=subprocess.DEVNULL,
            stderr=self.stderr,
            env=ENV | {CONTROL_ENV: str(fds[0]), LISTENER_ENV: str(fds[1])},
            pass_fds=fds,
        )
        self.control.started()
        self.place.started()
        self.control.configure(seed=seed, faults=faults)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.close()
        self.control.close()  # which ends it
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.stderr.close()
            self.place.close()

    def host(self):
        """A client edge to it, closed with it."""
        self.hosts.append(SocketHost(self.place.path, SystemClock()))
        return self.hosts[-1]

    def reading(self):
        self.control.poll()
        return read_host(self.control.received, self.control.events)

    def heard(self, test):
        """Wait until what it has told passes this test; its reading then."""
        while not test(self.reading()):
            assert select.select([self.control._own], [], [], PATIENCE)[0]
            assert not self.control.ended
        return self.reading()

    def told(self, kind, count=1):
        """Wait until it has told of so many events of this kind."""
        self.heard(lambda _: sum(event.kind == kind for event in self.control.events) >= count)

    def end(self):
        """Wait for its own end, and hear the rest; its exit status."""
        status = self.process.wait(PATIENCE)
        self.control.finish(PATIENCE)
        return status

    def stderr_bytes(self):
        self.stderr.seek(0)
        return self.stderr.read()


class Raw:
    """A socket to a host, for bytes that no client of ours would send. `line` reads the next message."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self.file.close()
        self.socket.close()

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.socket.sendall(data)

    def line(self):
        """The next message, or None at the end."""
        line = self.file.readline()
        return json.loads(line) if line else None

    def answer(self):
        """The next message that is no notification."""
        while (said := self.line()) is not None and "id" not in said:
            pass
        return said
