"""Where a plugin host listens: a socket in a fresh folder that is this user's alone.

The harness opens it before it starts the process and hands it down, so that a client can connect at once, and so that
nothing is left behind by a host that dies.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Final

LISTENER_ENV: Final = "ASSISTED_BENCHMARK_LISTENER_FD"

# A socket's path has at most 104 bytes on some systems, and the temporary folder of a user may be long by itself.
_ROOT: Final = "/tmp"  # noqa: S108 - the folder in it is made unguessable and private


class Place:
    """An open socket, at `path`, whose listening end a process inherits."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="plugin-host-", dir=_ROOT)
        self.path = Path(self._folder, "socket")
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listening.bind(str(self.path))
            self._listening.listen(16)
        except BaseException:
            self.close()
            raise

    @property
    def child_fd(self) -> int:
        """The listening end, to be inherited by the process and then let go of with `started`."""
        return self._listening.fileno()

    def started(self) -> None:
        """The process has the listening end now; ours is closed, so that nobody connects to one that is gone."""
        self._listening.close()

    def close(self) -> None:
        """Let go of the socket, and leave nothing behind. Idempotent."""
        self._listening.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def inherited_listener() -> socket.socket | None:
    """The listening end that the harness handed to this process, if it did."""
    text = os.environ.pop(LISTENER_ENV, "")
    try:
        return socket.socket(fileno=int(text))
    except (OSError, ValueError):
        return None
