"""The way of an agent's program to its case: a socket in a private folder, which one client gets through."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Final

from assisted_benchmark.gateway import bridge
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock

SERVER: Final = "assisted-benchmark"
CONFIG: Final = "mcp.json"

_WAITING: Final = 16
_PATIENCE_NS: Final = 5 * SECOND  # for a client that has connected to say who it is
_LONGEST: Final = 256


class Door:
    """Lets the first in that knows the secret, and nobody after it. `folder` must be private."""

    def __init__(self, folder: Path, secret: str) -> None:
        self.turned_away = 0
        self._secret = secret
        self._closed = False
        self._path = folder / "session"
        self._guest: socket.socket | None = None
        self._asked: socket.socket | None = None
        self._came = threading.Event()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._path))
        self._listening.listen(_WAITING)
        self._porter = threading.Thread(target=self._receive)
        self._porter.start()

    def config(self) -> bytes:
        """The client's configuration, in the common `mcpServers` form."""
        environment = {bridge.SOCKET: str(self._path), bridge.SECRET: self._secret}
        arguments = ["-I", "-S", os.path.abspath(bridge.__file__)]
        server = {"command": sys.executable, "args": arguments, "env": environment}
        return json.dumps({"mcpServers": {SERVER: server}}, indent=2).encode()

    def guest(self) -> socket.socket | None:
        """The one that was let in, when it comes; None once the door is closed and nobody came."""
        self._came.wait()
        return self._guest

    def close(self) -> None:
        """Nobody is let in any more, and who is in hears that it is over."""
        self._closed = True
        for each in (self._listening, self._asked):  # on Linux the first wakes the one that waits
            if each is not None:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as knock:
            knock.connect(str(self._path))  # elsewhere this does
        self._listening.close()
        self._porter.join()
        self._came.set()
        if self._guest is not None:
            with contextlib.suppress(OSError):
                self._guest.shutdown(socket.SHUT_RDWR)

    def _receive(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            with line:
                self._asked = line
                if self._closed:
                    return
                kept = self._guest is None and self._knows(line)
                if not kept:
                    self.turned_away += 1
                    continue
                with contextlib.suppress(OSError):
                    line.sendall(bridge.WELCOME)
                self._guest = socket.socket(fileno=line.detach())
            self._came.set()

    def _knows(self, line: socket.socket) -> bool:
        deadline = Deadline.after(SystemClock(), _PATIENCE_NS)  # of all that it says, however slowly
        said = b""
        try:
            while not said.endswith(b"\n") and len(said) < _LONGEST and not deadline.passed:
                line.settimeout(deadline.remaining_ns() / SECOND)
                chunk = line.recv(_LONGEST)
                if not chunk:
                    return False
                said += chunk
        except OSError:
            return False
        line.settimeout(None)
        return hmac.compare_digest(said, self._secret.encode() + b"\n")
