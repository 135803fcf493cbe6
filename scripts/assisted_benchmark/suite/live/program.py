"""Agents that are programs: started with their configuration, and left to play until they end or their time is up.

A program gets a fresh HOME and working directory, the environment variables that its scenario names and no other, and
`mcp.json` in the common `mcpServers` form (`{config}` in its command, and the variable ASSISTED_BENCHMARK_CONFIG). The
server in there joins it to the case. What is left of the program when it has ended is ended too.

The case is scored by what was proposed. That a program never came, or did not end, is missed beside that; of its exit
status and its standard error only the report tells.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router.last_words import last_words, secrets_of
from assisted_benchmark.mcp_router.process import GRACE_NS, Ending, Launcher, Process
from assisted_benchmark.suite.live.case_face import label_of, served_to
from assisted_benchmark.suite.live.door import CONFIG, Door
from assisted_benchmark.suite.live.served import ServedCase
from assisted_benchmark.suite.result import Miss

CONFIG_VARIABLE: Final = "ASSISTED_BENCHMARK_CONFIG"

_PLACE: Final = "{config}"
_TAIL: Final = 1 << 14
_CHUNK: Final = 1 << 16
_END_NS: Final = 20 * SECOND


@frozen
class _Came:
    """What a program came to: whether it ended by itself, how, and the end of its standard error."""

    by_itself: bool
    status: int | None
    tail: bytes
    cut: bool

    def told(self, secrets: Iterable[str], turned_away: int) -> str:
        """This for a report, without what is secret."""
        hidden = secrets_of((), (("", each) for each in secrets))
        words = last_words(self.status, self.tail, hidden, cut=self.cut)
        more = f"; {turned_away} further connections were turned away" if turned_away else ""
        return f"the agent's program was started{words}{more}"


class _Watched:
    """A running program, whose output is read for as long as it lives: it hears nothing and says what it likes."""

    def __init__(self, process: Process) -> None:
        self._process = process
        os.close(process.stdin)
        self._tail = b""
        self._cut = False
        readers = ((process.stdout, lambda _: None), (process.stderr, self._keep))
        self._readers = [threading.Thread(target=_read, args=each, daemon=True) for each in readers]
        for each in self._readers:
            each.start()

    def until(self, within_ns: int) -> _Came:
        """Wait for its end, at most so long, then end it and whatever it has left behind.

        Raises:
            ServerError: some of it cannot be ended.
        """
        by_itself = False
        try:
            by_itself = self._process.wait(within_ns / SECOND)
        finally:
            ending = self._process.stop(self._drained, Deadline.after(SystemClock(), _END_NS), GRACE_NS)
        _require_ended(ending)
        self._drained(Deadline.after(SystemClock(), GRACE_NS))
        return _Came(by_itself, ending.status, self._tail, self._cut)

    def _drained(self, deadline: Deadline) -> bool:
        for each in self._readers:
            each.join(deadline.remaining_ns() / SECOND)
        return not any(each.is_alive() for each in self._readers)

    def _keep(self, chunk: bytes) -> None:
        whole = self._tail + chunk
        self._cut = self._cut or len(whole) > _TAIL
        self._tail = whole[-_TAIL:]


class _Session:
    """The case's side of the session, on a thread of its own."""

    def __init__(self, door: Door, served: ServedCase) -> None:
        self.came = False
        self._door = door
        self._served = served
        self._broke: Exception | None = None
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        """Wait for its end, which the closed door brings.

        Raises:
            Exception: what it broke over.
        """
        self._thread.join()
        if self._broke is not None:
            raise self._broke

    def _serve(self) -> None:
        try:
            guest = self._door.guest()
            if guest is None:
                return
            self.came = True
            with guest:
                agent = served_to(self._served, guest.fileno(), guest.fileno())
                agent.serve()
            self._served.is_called(label_of(agent.client))
        except Exception as broken:  # noqa: BLE001 - it is raised where the session is closed
            self._broke = broken


def _read(fd: int, keep: Callable[[bytes], None]) -> None:
    with open(fd, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            keep(chunk)


def _require_ended(ending: Ending) -> None:
    if ending.left or not ending.known:
        left = ", ".join(map(str, ending.left)) or "nobody knows which"
        raise ServerError(Reason.COULD_NOT_RUN, f"the agent left processes behind that cannot be ended: {left}")


def _miss(expected: str, actual: str) -> Miss:
    return Miss(what="agent", expected=expected, actual=actual)


@frozen(kw_only=True)
class Program:
    """How a program is started.

    `environment` names the variables that it gets from the harness's own; `argv` may have `{config}` and the
    placeholders of a contract's launch, whose folder is `folder`.
    """

    argv: tuple[str, ...]
    folder: str
    environment: tuple[str, ...] = ()
    within_ns: int

    def __call__(self, served: ServedCase) -> None:
        """Play the case.

        Raises:
            ServerError: launch_failed or artifact_drift: the program cannot be run at all.
        """
        environment = self._environment()
        with Launcher() as launcher:
            folder = launcher.folder()
            secret = SystemChance().token(32).hex()
            door = Door(folder, secret)
            session = _Session(door, served)
            try:
                config = folder / CONFIG
                config.write_bytes(door.config())
                process = launcher.start(launcher.resolve(self._launch(config, environment), Path(self.folder)))
                came = _Watched(process).until(self.within_ns)
            finally:
                door.close()
                session.close()
            misses = [] if session.came else [_miss("a session", "it never connected")]
            if not came.by_itself:
                misses.append(_miss(f"an end within {self.within_ns / SECOND:g} s", "it had to be ended"))
            served.ended_as(came.told((*environment.values(), secret), door.turned_away), misses)

    def _environment(self) -> dict[str, str]:
        lacking = [name for name in self.environment if name not in os.environ]
        if lacking:
            detail = f"the agent wants `{'`, `'.join(lacking)}` in the environment; set it, or name other variables"
            raise ServerError(Reason.LAUNCH_FAILED, detail)
        return {name: os.environ[name] for name in self.environment}

    def _launch(self, config: Path, environment: dict[str, str]) -> Launch:
        return Launch(
            argv=tuple(each.replace(_PLACE, str(config)) for each in self.argv),
            env=(*environment.items(), (CONFIG_VARIABLE, str(config))),
            unpinned=True,
        )
