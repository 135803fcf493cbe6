"""The harness's end of the control channel: it sets a workload process up and hears what it really did.

A stream socket that only the harness and the workload hold, with one JSON object a line. To the workload:
`{"configure": {seed, task, faults}}` once and first, then `{"arm": fault}` at any time; what is sent
before a call is in force for that call. From the workload, always before the answer that it belongs to:

    {"received": {"tool": …, "count": …}}                                  a call of this tool arrived
    {"event": {"seq": …, "id": …, "kind": …, "tool": …}, "state": {…}}     and this came of it
    {"ready": {"port": …}}                                                 a workload on loopback listens there

A workload that cannot tell does not answer: who makes more than some hundred calls polls in between, or the
socket fills and the workload waits.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from assisted_benchmark.kernel.errors import CanonicalError, ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import Json, parse_strictly
from assisted_benchmark.workloads.model import Event


class DeclaredFault(Protocol):
    """A fault of some workload: a named tuple of what it is declared with."""

    def _asdict(self) -> dict[str, Any]: ...


class Control:
    """One workload process as the oracle sees it, while it runs and after its death.

    `events` and `received` grow with `poll`; `ended` is true once the workload's end is closed, when
    nothing more can come. `port` is known once a workload that listens is ready.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.received: dict[str, int] = {}
        self.port: int | None = None
        self.ended = False
        self._rest = b""
        self._own, self._theirs = socket.socketpair()

    @property
    def child_fd(self) -> int:
        """The workload's end, to be inherited by its process and then let go of with `started`."""
        return self._theirs.fileno()

    def started(self) -> None:
        """The workload has its end now, and ours of it is closed, so that its death can be heard."""
        self._theirs.close()

    def configure(self, *, seed: int = 0, task: str = "t-1", faults: Iterable[DeclaredFault] = ()) -> None:
        """The first line; the workload waits for it."""
        self._say({"configure": {"seed": seed, "task": task, "faults": [_fault(each) for each in faults]}})

    def arm(self, fault: DeclaredFault) -> None:
        """From the next call on, this fault too may strike."""
        self._say({"arm": _fault(fault)})

    def poll(self) -> None:
        """Take what has come so far, without waiting.

        Raises:
            ServerError: malformed_frame, if the workload said what no workload says.
        """
        self._take(socket.MSG_DONTWAIT)

    def wait_port(self, seconds: float) -> int:
        """The port that the workload listens on, once it does.

        Raises:
            ServerError: as `poll`; launch_failed, if it ended before; deadline_exceeded, `seconds` after its last word.
        """
        self._wait(lambda: self.port is not None, seconds)
        if self.port is None:
            raise ServerError(Reason.LAUNCH_FAILED, "the workload ended before it listened")
        return self.port

    def wait_told(self, seconds: float) -> None:
        """Wait until the workload has told of something, as one does at its start that tells what lives in it.

        Raises:
            ServerError: as `wait_port`.
        """
        self._wait(lambda: bool(self.events), seconds)
        if not self.events:
            raise ServerError(Reason.LAUNCH_FAILED, "the workload ended before it told of anything")

    def _wait(self, ready: Callable[[], bool], seconds: float) -> None:
        self._own.settimeout(seconds)
        try:
            while not ready() and not self.ended:
                self._take_once(0)
        except TimeoutError as error:
            raise ServerError(Reason.DEADLINE_EXCEEDED, "the workload was not ready in time") from error
        finally:
            self._own.settimeout(None)

    def finish(self, seconds: float) -> None:
        """Take all that comes until the workload's end closes, at most `seconds` after the last of it.

        Raises:
            ServerError: as `poll`; deadline_exceeded, if the workload is still there.
        """
        self._own.settimeout(seconds)
        try:
            self._take(0)
        except TimeoutError as error:
            raise ServerError(Reason.DEADLINE_EXCEEDED, "the workload did not end in time") from error

    def close(self) -> None:
        """Let go of both ends. Idempotent."""
        self._own.close()
        self._theirs.close()

    def _take(self, flags: int) -> None:
        try:
            while not self.ended:
                self._take_once(flags)
        except BlockingIOError:
            return

    def _take_once(self, flags: int) -> None:
        try:
            data = self._own.recv(1 << 16, flags)
        except ConnectionResetError:  # it died with a line of ours unread
            data = b""
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._hear(line)

    def _hear(self, line: bytes) -> None:
        try:
            match parse_strictly(line):
                case {"received": {"tool": str(tool), "count": int(count), **extra}, **more} if not extra and not more:
                    self.received[tool] = count
                case {
                    "event": {"seq": int(seq), "id": str(name), "kind": str(kind), "tool": str(tool), **extra},
                    "state": dict(facts),
                    **more,
                } if not extra and not more:
                    self.events.append(Event(seq, name, kind, tool, facts))
                case {"ready": {"port": int(port), **extra}, **more} if not extra and not more:
                    self.port = port
                case _:
                    raise ServerError(Reason.MALFORMED_FRAME, "the workload said what no workload says")
        except CanonicalError as error:
            raise ServerError(Reason.MALFORMED_FRAME, f"the workload's line is not JSON: {error.detail}") from error

    def _say(self, value: Json) -> None:
        try:
            self._own.sendall(json.dumps(value).encode() + b"\n")
        except BrokenPipeError:
            # It died. That is heard with `poll`, and it is often what a scenario wants.
            self.ended = self.ended


def _fault(fault: DeclaredFault) -> Json:
    return {key: value for key, value in fault._asdict().items() if value is not None}
