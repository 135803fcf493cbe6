"""The command at work, as a client starts it: over pipes, with no terminal but the one that a test gives it."""

import fcntl
import json
import os
import subprocess
import sys
import termios
import threading
from functools import partial

from cli_bench import SCRIPTS

PROPOSE = "fabric_propose_change"


def ask(request_id, method, **params):
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(request_id, name, **arguments):
    return ask(request_id, "tools/call", name=name, arguments=arguments)


def initialize(**capabilities):
    return ask("i", "initialize", protocolVersion="2025-11-25", capabilities=capabilities)


class Serving:
    """The command at work, and a client that speaks with it."""

    def __init__(self, root, *words, terminal=None, verb="serve", **environment):
        kept = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE") or key == "PATH"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "assisted_benchmark", verb, *map(str, words)],
            cwd=root,
            env=kept | {"PYTHONPATH": str(SCRIPTS), "HOME": str(root)} | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # without the terminal of whoever runs the tests
            preexec_fn=None if terminal is None else partial(fcntl.ioctl, terminal, termios.TIOCSCTTY, 0),
        )
        self._watch = threading.Timer(60, self.process.kill)
        self._watch.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._watch.cancel()
        self.process.kill()
        self.process.communicate()

    def says(self, *messages):
        for message in messages:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hears(self):
        return json.loads(self.process.stdout.readline())

    def opens(self, **capabilities):
        self.says(initialize(**capabilities))
        return self.hears()["result"]

    def calls(self, name, **arguments):
        self.says(call(1, name, **arguments))
        return self.hears()["result"]["structuredContent"]

    def proposes(self):
        spec = {
            "type": "EVPL_VC",
            "name": "lab",
            "bandwidth": 50,
            "notifications": [{"type": "ALL", "emails": ["noc@example.com"]}],
            "aSide": {"serviceToken": {"uuid": "c4d9350e-77c5-7c5d-1ce0-306a5c00a600"}},
            "zSide": {"serviceToken": {"uuid": "c4d9350e-77c5-7c5d-1ce0-306a5c00a601"}},
        }
        return self.calls(PROPOSE, change_type="connection", spec=spec)

    def ends(self):
        """Say no more: the exit code, and what was written to both outputs since."""
        out, err = self.process.communicate()
        assert b"Traceback" not in err, err.decode()
        return self.process.returncode, out.decode(), err.decode()
