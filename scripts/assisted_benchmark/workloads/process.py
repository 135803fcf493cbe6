"""A workload's model as a real MCP server process on standard input and output.

Through the control channel (a socket that only the harness holds the other end of; `control.py` has its
lines) the process is set up, and tells of each call before it answers it. So a server that dies right after
acting has told of its act. Without the channel it plays the setup's defaults and tells nobody.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import HarnessError, InputError
from assisted_benchmark.kernel.strict_json import Json, parse_strictly
from assisted_benchmark.wire.server_session import Call, ServerSession
from assisted_benchmark.workloads.faults import DYING, HANGING, Face, Fault, FaultKind
from assisted_benchmark.workloads.model import Model

CONTROL_ENV: Final = "ASSISTED_BENCHMARK_CONTROL_FD"
DEATH: Final = 70  # the exit status of a declared death

_ORPHANED: Final = 74  # the harness is gone
_FLOOD: Final = 1 << 20  # bytes on standard error: many times what a pipe holds


class Setup(NamedTuple):
    """What the harness configures. Workloads without a seed or a task leave them be."""

    seed: int = 0
    task: str = "t-1"
    faults: tuple[Fault, ...] = ()


def run(make: Callable[[Setup], Model]) -> int:
    """Serve the model that `make` builds until the peer closes its side; the process's exit status."""
    try:
        control = inherited()
        setup = Setup() if control is None else _setup(control.wait())
        handler = _Handler(Face(make(setup), setup.faults), control)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    handler.session.serve()
    return 0


class Channel:
    """The workload's end of the control channel. Once the harness is gone, the process ends at its next use."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def fileno(self) -> int:
        """Its descriptor, to be told when a line is there."""
        return self._fd

    def wait(self) -> bytes:
        """The first line."""
        while b"\n" not in self._rest:
            self._read()
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def lines(self) -> list[bytes]:
        """The lines that have come since, without waiting."""
        while self._poll.poll(0):
            self._read()
        *lines, self._rest = self._rest.split(b"\n")
        return lines

    def tell(self, values: list[Json]) -> None:
        """Say these to the harness, one a line; they are in the socket when this returns."""
        view = memoryview(b"".join(json.dumps(value).encode() + b"\n" for value in values))
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            os._exit(_ORPHANED)  # nobody hears what it did, so it answers nothing and does nothing more

    def _read(self) -> None:
        data = os.read(self._fd, 1 << 16)
        if not data:
            os._exit(_ORPHANED)
        self._rest += data


class _Session(ServerSession):
    """A session whose next answer may be spoilt on its way out."""

    spoil: FaultKind | None = None

    def send(self, line: bytes) -> None:
        kind, self.spoil = self.spoil, None
        if kind is FaultKind.DROP_ANSWER:
            return
        if kind is FaultKind.GARBAGE:
            line = b'{"jsonrpc": "2.0", garbage\xff\n'
        elif kind is FaultKind.HALF_LINE:
            line = line[: len(line) // 2]
        elif kind is FaultKind.DOUBLE_ANSWER:
            line += line
        elif kind is FaultKind.FOREIGN_ID:
            line = json.dumps({**parse_strictly(line), "id": "nobody-asked"}).encode() + b"\n"
        super().send(line)
        if kind is FaultKind.HALF_LINE:
            os._exit(DEATH)


class _Handler:
    """The face on the wire: it tells the harness, then plays out on the process what the face decided."""

    instructions = ""
    list_changed = True

    def __init__(self, face: Face, control: Channel | None) -> None:
        self.session = _Session(self)
        self._face = face
        self._control = control
        self._told = 0
        self._announced = face.changes

    def info(self) -> dict[str, Json]:
        return dict(self._face.model.server_info)

    def tools(self) -> list[Json]:
        self._listen()
        return self._face.tools()

    def call(self, name: str, arguments: dict[str, Json], _: Call) -> dict[str, Json]:
        answer = self._face.call(name, arguments)
        told: list[Json] = [{"received": {"tool": name, "count": self._face.received[name]}}]
        for seq, identity, kind, tool, facts in self._face.model.events[self._told :]:
            told.append({"event": {"seq": seq, "id": identity, "kind": kind, "tool": tool}, "state": facts})
            self._told = seq
        if self._control is not None:
            self._control.tell(told)
        if answer.fault in DYING:
            os._exit(DEATH)
        if answer.fault in HANGING or answer.result is None:
            _hang()
        if answer.fault is FaultKind.STDERR_FLOOD:
            _flood()
        self._announce()
        self.session.spoil = answer.fault
        result: dict[str, Json] = answer.result
        return result

    def _listen(self) -> None:
        for line in () if self._control is None else self._control.lines():
            self._face.arm(Fault.parse(parse_strictly(line)["arm"]))
        self._announce()

    def _announce(self) -> None:
        if self._face.changes != self._announced:
            self._announced = self._face.changes
            self.session.announce_tools()


def _hang() -> NoReturn:
    while True:
        select.select([], [], [])


def _flood() -> None:
    line = b"diagnostic output that nobody asked for\n" * 100
    for _ in range(_FLOOD // len(line)):
        os.write(2, line)


def inherited() -> Channel | None:
    """The channel that the harness handed to this process, if it did. It is handed on to no other."""
    text = os.environ.pop(CONTROL_ENV, None)
    if text is None:
        return None
    try:
        os.set_inheritable(int(text), False)
    except (OSError, ValueError) as error:
        raise InputError(Reason.WRONG_VALUE, f"{CONTROL_ENV} is `{text:.20}`, which is no open descriptor") from error
    return Channel(int(text))


def _setup(line: bytes) -> Setup:
    seed, task, faults = configured(line)
    return Setup(seed, task, tuple(Fault.parse(each) for each in faults))


def configured(line: bytes) -> tuple[int, str, list[Json]]:
    """Seed, task and the faults as they were declared, from the channel's first line; or InputError."""
    match parse_strictly(line):
        case {"configure": {"seed": int(seed), "task": str(task), "faults": list(faults), **extra}, **more} if not (
            extra or more
        ):
            return seed, task, faults
    raise InputError(
        Reason.WRONG_VALUE, "the first line of the control channel is no {configure: {seed, task, faults}}"
    )
