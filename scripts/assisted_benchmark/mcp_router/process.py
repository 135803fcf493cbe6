"""Server processes: started from what was resolved, and ended for good.

A server gets a private folder with a fresh HOME, a fresh working directory (unless the contract names one)
and copies of the files that it declared; three pipes; a test workload its control channel as descriptor 3; and
nothing else. How it is kept from outliving the harness is the warden's part.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND, Deadline
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router import warden
from assisted_benchmark.mcp_router.identity import Artifact, Artifacts, sha256_of
from assisted_benchmark.mcp_router.launch import Resolved, resolve
from assisted_benchmark.mcp_router.remains import end_remains

CONTROL_FD: Final = "ASSISTED_BENCHMARK_CONTROL_FD"
GRACE_NS: Final = SECOND

_START_SECONDS: Final = 10.0
# What the warden takes at most: its keepers' sweeps, and its own.
_END_SECONDS: Final = 2 * warden.SWEEP_SECONDS + 2.0


@frozen
class Ending:
    """How a server ended.

    `by` is the first thing that helped: exit (it had ended), stdin (closing it), term, kill. `strays` counts
    processes of its own that were still there and were ended; `left` are those that could not be ended. Unless it is
    `known`, its keeper was killed or stood still, and more may be left than anybody can say.
    """

    by: str
    status: int | None
    strays: int = 0
    left: tuple[int, ...] = ()
    known: bool = True


class Launcher:
    """Starts servers through one warden, and remembers hashes.

    Thread-safe; one a harness process is enough. A process that forks makes its own after the fork: a copy of this
    one's line would hide the end of the harness from the warden.
    """

    def __init__(self) -> None:
        self.artifacts = Artifacts()
        self._resolved: dict[tuple[Launch, Path], Resolved] = {}
        self._lock = threading.Lock()
        self._warden: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._top: str | None = None

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def folder(self) -> Path:
        """A new private folder, which goes with the launcher, or with a harness that is killed."""
        with self._lock:
            if self._top is None:
                self._top = tempfile.mkdtemp(prefix="assisted-benchmark-")
            return Path(tempfile.mkdtemp(dir=self._top))

    def resolve(self, launch: Launch, folder: Path) -> Resolved:
        """The launch on this machine now; nothing is read again that did not change.

        Raises:
            ServerError: see `launch.resolve`.
        """
        with self._lock:
            known = self._resolved.get((launch, folder))
            if known is None or known.changed():
                known = self._resolved[launch, folder] = resolve(launch, folder, self.artifacts)
            return known

    def start(self, resolved: Resolved, control: int | None = None) -> Process:
        """Run exactly what was resolved; `control` is the descriptor that the server gets as its control channel.

        Raises:
            ServerError: artifact_drift if a file is no longer the one that was hashed, launch_failed if the
                operating system does not run it.
        """
        room = self.folder()
        with contextlib.ExitStack() as undo, contextlib.ExitStack() as theirs:
            undo.callback(shutil.rmtree, room, ignore_errors=True)
            with self._lock:
                executable = self._open(resolved.executable)
                theirs.callback(os.close, executable)
                copies = self._copies(resolved.copied, room)
            for name in ("home", "cwd"):
                (room / name).mkdir(mode=0o700)
            env = {"HOME": str(room / "home"), **{name: copies.get(value, value) for name, value in resolved.env}}
            request = {
                "argv": [resolved.argv[0], *(copies.get(each, each) for each in resolved.argv[1:])],
                "cwd": resolved.cwd or str(room / "cwd"),
                "env": env,
            }
            fds = [executable]
            ours: list[int] = []
            for mine in (1, 0, 0):
                ends = os.pipe()
                undo.callback(_close, ends[mine])
                theirs.callback(os.close, ends[1 - mine])
                ours.append(ends[mine])
                fds.append(ends[1 - mine])
            line, other = socket.socketpair()
            undo.callback(line.close)
            theirs.callback(other.close)
            fds.append(other.fileno())
            if control is not None:
                fds.append(control)
                env[CONTROL_FD] = "3"
            self._request(request, fds)
            theirs.close()
            process = Process(ours, line, room)
            process.wait_started(resolved.argv[0])
            # A file may be written to in place between its hash and its run, not without leaving a trace.
            with self._lock:
                os.close(self._open(resolved.executable))
            undo.pop_all()
            return process

    def close(self) -> None:
        """Let the warden go; it ends every server that is left. Idempotent."""
        with self._lock:
            if self._line is not None:
                self._line.close()
                self._line = None
            if self._warden is not None:
                self._warden.send_signal(signal.SIGCONT)  # a server may have stopped it
                try:
                    self._warden.wait(_END_SECONDS)
                except subprocess.TimeoutExpired:
                    # Killed, it wakes its keepers, which end all.
                    self._warden.kill()
                    self._warden.wait()
                self._warden = None
            if self._top is not None:
                # The warden has done so, unless it was killed.
                shutil.rmtree(self._top, ignore_errors=True)
                self._top = None

    def _open(self, expected: Artifact) -> int:
        fd, found = self.artifacts.open(expected.path)
        if found.digest != expected.digest or found.key[:2] != expected.key[:2]:
            os.close(fd)
            raise ServerError(Reason.ARTIFACT_DRIFT, f"`{expected.path}` changed after it was checked")
        return fd

    def _copies(self, files: Iterable[Artifact], room: Path) -> dict[str, str]:
        """Private copies, at the places that the files have to each other."""
        files = tuple(files)
        if not files:
            return {}
        top = os.path.commonpath([os.path.dirname(os.path.abspath(each.path)) for each in files])
        copies = {}
        for each in files:
            copy = room / "files" / os.path.relpath(each.path, top)
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(self._open(each), "rb") as source:
                source.seek(0)
                data = source.read()
            if sha256_of(data) != each.digest:
                raise ServerError(Reason.ARTIFACT_DRIFT, f"`{each.path}` changed while it was copied")
            copy.write_bytes(data)
            copies[each.path] = str(copy)
        return copies

    def _request(self, request: Json, fds: list[int]) -> None:
        body = json.dumps(request).encode()
        with self._lock:
            if self._line is None or self._warden is None or self._warden.poll() is not None:
                self._begin()
            line = self._line
            assert line is not None  # noqa: S101 - `_begin` has just made it; for the type checker
            try:
                socket.send_fds(line, [struct.pack(">I", len(body))], fds)
                line.sendall(body)
            except OSError as error:
                raise ServerError(Reason.LAUNCH_FAILED, f"the warden is gone: {error.strerror}") from error

    def _begin(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line, child = socket.socketpair()
        with child:
            self._warden = subprocess.Popen(
                [sys.executable, "-I", "-S", warden.__file__, str(child.fileno()), str(self._top)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={},
                cwd="/",
                pass_fds=(child.fileno(),),
                start_new_session=True,
            )


class Process:
    """One running server. The descriptors `stdin`, `stdout` and `stderr` are the caller's to use and close."""

    def __init__(self, ours: list[int], line: socket.socket, room: Path) -> None:
        self.stdin, self.stdout, self.stderr = ours
        self.pid = 0
        self._line = line
        self._room = room
        self._heard = b""
        self._told: dict[str, Json] = {}
        self._gone = False

    def wait_started(self, program: str) -> None:
        """Hear whether it runs; ServerError(launch_failed) if not."""
        self._hear(_START_SECONDS)
        if "pid" not in self._told:
            number = self._told.get("failed", errno.EPIPE)
            reason = Reason.ARTIFACT_DRIFT if number == errno.ESTALE else Reason.LAUNCH_FAILED
            raise ServerError(reason, f"`{program}` could not be run: {os.strerror(number)}")
        self.pid = self._told["pid"]

    @property
    def ended(self) -> bool:
        """Whether the server itself is known to have ended."""
        return self._ended_within(0.0)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, by itself, within that time."""
        return self._ended_within(seconds)

    def stop(self, finish: Callable[[Deadline], bool], deadline: Deadline, grace_ns: int) -> Ending:
        """End it: close stdin, wait, SIGTERM, wait, SIGKILL, then everyone it left behind.

        `finish` closes its standard input and drains its output, for it may have something left to say; it
        returns False if the output did not end in time. Each wait is a grace, and never more than what remains.
        """
        ending = self._stop(finish, deadline, grace_ns)
        self._line.close()
        shutil.rmtree(self._room, ignore_errors=True)
        return ending

    def _stop(self, finish: Callable[[Deadline], bool], deadline: Deadline, grace_ns: int) -> Ending:
        by = "exit"
        ended = self.ended
        self._signal_keeper(signal.SIGCONT)  # the server may have stopped it
        for step, letter in (("stdin", b""), ("term", b"T"), ("kill", b"K")):
            if ended:
                break
            by = step
            self._say(letter)
            drained = finish(deadline.child(grace_ns))
            ended = self._ended_within(min(grace_ns, deadline.remaining_ns()) / SECOND if drained else 0.0)
        self._say(b"E")
        while "left" not in self._told and self._hear(warden.SWEEP_SECONDS + 1.0):
            pass
        status = self._told.get("exit")
        if "left" in self._told:
            return Ending(by, status, self._told["strays"], tuple(self._told["left"]))
        # The warden, if it still is there, ends what a keeper leaves, and cannot say how many.
        self._signal_keeper(signal.SIGKILL)
        return Ending(by, status, left=end_remains(self.pid, str(self._room)), known=False)

    def _signal_keeper(self, number: signal.Signals) -> None:
        # As long as it holds its line it lives, and its number is its own.
        if not self._gone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._told["keeper"], number)

    def _ended_within(self, seconds: float) -> bool:
        if not self._told.keys() & {"exit", "left"}:
            self._hear(seconds)
        return self._gone or bool(self._told.keys() & {"exit", "left"})

    def _say(self, letter: bytes) -> None:
        with contextlib.suppress(OSError):
            self._line.sendall(letter)

    def _hear(self, seconds: float) -> bool:
        """Take in the keeper's next line; False if none comes in that time."""
        try:
            self._line.settimeout(max(seconds, 0.0))
            while b"\n" not in self._heard:
                chunk = self._line.recv(4096)
                if not chunk:
                    raise ConnectionResetError
                self._heard += chunk
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            self._gone = True  # the keeper has ended
            return False
        line, _, self._heard = self._heard.partition(b"\n")
        self._told.update(json.loads(line))
        return True


def _close(fd: int) -> None:
    with contextlib.suppress(OSError):
        os.close(fd)
