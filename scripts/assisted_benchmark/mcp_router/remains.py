"""What is left of a server whose keeper was killed: found by the traces that it was started with, and ended.

A net below the warden's, for a server that kills both its keeper and the warden: it runs under the same user, so
nothing stops it. On Linux everyone is found who is in the server's session or process group, or who has the server's
private folder in its environment or as its place; elsewhere the process group alone is ended. Who shed all
of that is not found, so what was looked for here is never called known.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Final

LOOK_SECONDS: Final = 2.0

_LINUX: Final = sys.platform == "linux"


def end_remains(server: int, room: str) -> tuple[int, ...]:
    """SIGKILL to everyone found of the server until there is none, or time is up: who is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server, signal.SIGKILL)
    end = time.monotonic() + LOOK_SECONDS
    alone = False
    while True:
        found = _found(server, room)
        # Whoever was forked after the numbers were listed, by one that ended before it was looked at, shows at the
        # next look only.
        if (alone and not found) or time.monotonic() > end:
            return found
        alone = not found
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _found(server: int, room: str) -> tuple[int, ...]:
    pids = sorted(int(name) for name in (os.listdir("/proc") if _LINUX else ()) if name.isdigit())
    return tuple(pid for pid in pids if pid != os.getpid() and _is_of(pid, server, room.encode()))


def _is_of(pid: int, server: int, room: bytes) -> bool:
    """Whether a process bears a trace of the server. One that has ended, or is another user's, does not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is a name in brackets that may hold anything.
            state, _, group, session = file.read().rpartition(b")")[2].split()[:4]
        if state in b"ZX":
            return False
        if server in {int(group), int(session)}:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:
            if room + b"/" in file.read():
                return True
        return os.readlink(b"/proc/%d/cwd" % pid).startswith(room + b"/")
    except OSError:
        return False
