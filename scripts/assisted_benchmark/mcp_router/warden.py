"""The warden: a small process that starts servers, and outlives the harness just long enough to end them.

Run by its path (`python -I -S warden.py FD FOLDER`), on the standard library alone, with one thread. FD is a
stream socket to the harness, FOLDER holds the servers' private folders. Each start request is a header and the
descriptors of one server; the warden forks a keeper for it, and the keeper starts the server:

    harness -- warden -- keeper -- server (its own session and process group) -- whatever it starts

Why not straight from the harness. Of a harness that is killed somebody must be left who knows its servers,
those included who left their group; only a parent that is their subreaper does. And each keeper is the
subreaper of one server alone, so that a stray is never taken for another server's.

A keeper ends everything below it when its line to the harness closes, for whatever reason it does, or when
the warden dies. If a keeper is killed, the warden ends what it kept. If a server kills both, the harness ends what
it finds (`remains`), and does not call that known.

On Linux a server is executed from the descriptor whose bytes were hashed. Elsewhere there is neither that,
nor a subreaper, nor a signal at the warden's death: the path is executed right after a look at it (the gap is
small, not none), and a grandchild that left the group is not found.

Lines of a keeper to the harness: `{"pid": n, "keeper": its own}` or `{"failed": errno}` once; `{"exit": status}`
when the server ends (negative: by that signal); `{"strays": n, "left": [pids]}` in answer to `E`, and when the warden
died, after which it exits.
Letters of the harness to a keeper: `T` SIGTERM to the group, `K` SIGKILL to the group, `E` end all.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any, Final, NoReturn

LINUX: Final = sys.platform == "linux"
SWEEP_SECONDS: Final = 2.0
FD_COUNT: Final = 6  # executable, stdin, stdout, stderr, line, control

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_CONTROL_FD: Final = 3
_libc: Final = ctypes.CDLL(None, use_errno=True)


def main(fd: int, folder: str) -> None:
    """Take requests until the harness is gone, then see that nothing is left, in `folder` neither."""
    harness = socket.socket(fileno=fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _CONTROL_FD + 1))
    os.close(fd)
    # Takes the lowest number, the control channel's, so that nothing a keeper needs ever has it.
    os.open(os.devnull, os.O_RDONLY)
    keepers: set[int] = set()
    # What was ignored or blocked where the harness was started is not so for servers.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
        signal.signal(number, signal.SIG_DFL)
    wake = _begin(None)
    while True:
        readable, _, _ = select.select([harness.fileno(), wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
            _reap_keepers(keepers)
        if harness.fileno() in readable:
            request, fds = _receive(harness)
            if request is None:
                break
            warden = os.getpid()
            pid = os.fork()
            if pid == 0:
                harness.close()
                _Keeper(warden, request, fds).run()
            keepers.add(pid)
            for each in fds:
                os.close(each)
    # Each keeper has lost its line as well and ends its server; whoever is left then is ended here.
    end = time.monotonic() + SWEEP_SECONDS + 1.0
    while keepers and time.monotonic() < end:
        select.select([wake], [], [], 0.05)
        _reap_keepers(keepers)
    _sweep()
    shutil.rmtree(folder, ignore_errors=True)


def _begin(death_signal: signal.Signals | None) -> int:
    """Become a subreaper, ask for a signal when the parent dies, and return a descriptor that children's ends wake."""
    if LINUX:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if death_signal is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    heard, said = os.pipe()
    os.set_blocking(said, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(said, warn_on_full_buffer=False)
    return heard


def _receive(harness: socket.socket) -> tuple[Any, list[int]]:
    """One request and its descriptors; None at the end of the stream."""
    try:
        head, fds, _, _ = socket.recv_fds(harness, 4, FD_COUNT)
        for fd in fds:
            os.set_inheritable(fd, False)
        head += _exactly(harness, 4 - len(head)) if head else b""
        return (json.loads(_exactly(harness, *struct.unpack(">I", head))) if head else None), fds
    except OSError:
        return None, []


def _exactly(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = stream.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError
        data += chunk
    return data


class _Keeper:
    """One server's parent and subreaper."""

    def __init__(self, warden: int, request: Any, fds: list[int]) -> None:
        self._warden = warden
        self._request = request
        self._fds = fds
        self._line = socket.socket(fileno=fds[4])
        self._server = 0
        self._handle: object = None
        self._over = False

    def run(self) -> NoReturn:
        """Start the server, watch it, end it. Never returns into the warden's loop."""
        code = 1
        try:
            # The warden's death wakes us as a child's would; `_watch` tells them apart.
            wake = _begin(signal.SIGCHLD)
            if self._start():
                self._watch(wake)
            code = 0
        finally:
            # Whatever went wrong above, the fork must not come back as a second warden.
            os._exit(code)

    def _start(self) -> bool:
        executable, *streams = self._fds[:4]
        argv = self._request["argv"]
        for fd in self._fds[5:]:
            os.dup2(fd, _CONTROL_FD, inheritable=True)
        try:
            if not LINUX:
                found, hashed = os.stat(argv[0]), os.fstat(executable)
                if (found.st_dev, found.st_ino) != (hashed.st_dev, hashed.st_ino):
                    raise OSError(errno.ESTALE, "replaced")
            # Descriptors are closed by their own flags, not by a list: the executable's must live until the exec.
            server = subprocess.Popen(
                argv,
                executable=f"/proc/self/fd/{executable}" if LINUX else argv[0],
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                close_fds=False,
                cwd=self._request["cwd"],
                env=self._request["env"],
                start_new_session=True,
            )
        except OSError as error:
            self._say({"failed": error.errno})
            return False
        for fd in (*self._fds[:4], *self._fds[5:], _CONTROL_FD):
            os.close(fd)
        self._server = server.pid
        self._handle = server  # for as long as we live: its finalizer would reap the server behind our back
        self._say({"pid": server.pid, "keeper": os.getpid()})
        return True

    def _watch(self, wake: int) -> None:
        while True:
            readable, _, _ = select.select([self._line.fileno(), wake], [], [])
            if wake in readable:
                os.read(wake, 4096)
                self._reap()
                if os.getppid() != self._warden:
                    self._end()
                    return
            if self._line.fileno() not in readable:
                continue
            try:
                letters = self._line.recv(16)
            except OSError:
                letters = b""
            for letter in letters or b"E":
                if letter == ord("E"):
                    self._end()
                    return
                self._signal(signal.SIGTERM if letter == ord("T") else signal.SIGKILL)

    def _reap(self) -> None:
        """Everyone who ended but the server, whose number stays taken till `E`: it is the group's as well."""
        with contextlib.suppress(ChildProcessError):
            if sys.platform == "linux":
                while not self._over and (end := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
                    if end.si_pid != self._server:
                        os.waitpid(end.si_pid, 0)
                        continue
                    self._over = True
                    killed = end.si_code != os.CLD_EXITED
                    self._say({"exit": -end.si_status if killed else end.si_status})
            else:
                pid, status = os.waitpid(self._server, os.WNOHANG)
                if pid:
                    self._signal(signal.SIGKILL)
                    self._over = True
                    self._say({"exit": os.waitstatus_to_exitcode(status)})

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._server, number)

    def _end(self) -> None:
        if LINUX or not self._over:
            self._signal(signal.SIGKILL)
        strays, left = _sweep(first=self._server)
        self._say({"strays": strays, "left": left})

    def _say(self, value: Any) -> None:
        # A harness that is gone hears nothing; its line closing is what ends the server.
        with contextlib.suppress(OSError):
            self._line.sendall(json.dumps(value).encode() + b"\n")


def _sweep(first: int = 0) -> tuple[int, list[int]]:
    """SIGKILL to every descendant until there is none, or time is up: (how many besides `first`, who is left)."""
    seen = {first}
    alive: set[int] = set()
    end = time.monotonic() + SWEEP_SECONDS
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(seen) - 1, []
        if time.monotonic() > end:
            return len(seen) - 1, sorted(alive)
        alive = _end_descendants()
        seen |= alive
        time.sleep(0.0005)


def _end_descendants(spared: set[int] | frozenset[int] = frozenset()) -> set[int]:
    """SIGKILL to every process below this one, but for `spared` and theirs. Off Linux nobody is found."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if LINUX else ():
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The second field is a name in brackets that may hold anything; the parent is the second after it.
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found: set[int] = set()
    layer = {os.getpid()}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer} - spared
        found |= layer
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return found


def _reap_keepers(keepers: set[int]) -> None:
    """Forget keepers that ended; one that was killed left its server's strays to us."""
    killed = False
    with contextlib.suppress(ChildProcessError):
        while (end := os.waitpid(-1, os.WNOHANG))[0]:
            keepers.discard(end[0])
            killed |= end[1] != 0
    if killed:
        _end_descendants(spared=keepers)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
