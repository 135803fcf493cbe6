"""A host on a real socket that says what a test tells it to: for what no host of ours would say."""

import json
import queue
import socket
import threading
from contextlib import suppress

from assisted_benchmark.capability.socket_host import SocketHost
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.workloads.plugin_host_place import Place

PATIENCE = 10.0
INSTANCE = {
    "id": "instance-1",
    "registration": "registration-1",
    "publication": "publication-1",
    "state_generation": 1,
    "capabilities": [{"operation": "dev.pulp.state/read@1", "built": True, "available": True, "activated": True}],
}
PLACES = [["instance-1", "registration-1", "publication-1"]]


class Line:
    """One connection, as the host has it."""

    def __init__(self, connected):
        self.socket = connected
        self.file = connected.makefile("rb")

    def read(self):
        """The next message, or None at the end."""
        with suppress(OSError):
            line = self.file.readline()
            return json.loads(line) if line else None
        return None

    def say(self, *messages):
        for each in messages:
            data = each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n"
            self.socket.sendall(data)

    def tell(self, method, **params):
        self.say({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params})

    def answer(self, asked, result):
        self.say({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    def close(self):
        self.file.close()
        self.socket.close()


def said(asked, **change):
    """The answer to a request as it should be."""
    answer = {"word": "completed", "result": "{}", "code": "", "explanation": "", "artifacts": []}
    return {"receipt_id": asked["params"]["receipt_id"], **answer, **change}


def welcome(line):
    """Enrol whoever comes first."""
    line.tell("registered", instances=PLACES)
    line.answer(line.read(), {"session": "s-1"})


class ScriptedHost:
    """Each connection goes through the next of the scripts, in a thread; the connection ends with its script."""

    def __init__(self, *scripts):
        self.place = Place()
        self.host = SocketHost(self.place.path, SystemClock())
        self.lines = queue.Queue()
        self.failed = []
        self._scripts = scripts
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.host.close()
        with suppress(OSError):
            self.place._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)
        self.place.close()
        assert not self._thread.is_alive()
        assert self.failed == []

    def _serve(self):
        for script in self._scripts:
            try:
                connected, _ = self.place._listening.accept()
            except OSError:
                return
            line = Line(connected)
            self.lines.put(line)
            try:
                script(line)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client has left
            except Exception as error:
                self.failed.append(error)
            line.close()
