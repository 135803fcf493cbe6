"""One claimed call to the one server it names, by a process whose identity was looked at, or to a place that was.

Each server of the contract has one process here, started when it is first observed. What was launched and
what it lists are looked at on the very handle that then gets the call: at connecting, after `list_changed`, after
a restart, and whenever a fresh look is asked for. Only `observe` starts or restarts a process; `send` never
does, so that between the look and the call there is one process or no call. A server that others run has a session in
place of a process; as it could be another one each time, it is looked at whenever it is observed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from assisted_benchmark.contract.drift import drift
from assisted_benchmark.contract.model import Contract, Launch, Remote, Server, tools_digest
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline, SystemClock
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import (
    NO_RELAY,
    NotSent,
    Observation,
    Relay,
    Replied,
    Reply,
    Unavailable,
    Uncertain,
)
from assisted_benchmark.mcp_router.last_words import last_words, secrets_of
from assisted_benchmark.mcp_router.launch import Resolved, stamps
from assisted_benchmark.mcp_router.looking import list_settled
from assisted_benchmark.mcp_router.process import GRACE_NS, Ending, Launcher, Process
from assisted_benchmark.mcp_router.remote import Reached, reach, session_with
from assisted_benchmark.wire.client_session import ClientSession, Session
from assisted_benchmark.wire.outcomes import Error, Limits, Odd

_CLOSE_NS: Final = 10 * SECOND


class ControlEnd(Protocol):
    """The harness-only channel of one start of a test workload."""

    @property
    def child_fd(self) -> int:
        """The workload's end, which its process inherits."""

    def started(self) -> None:
        """The process has its end."""


class Router:
    """The servers of one contract, for one run. Thread-safe; the calls of one server take turns.

    `folder` is the contract file's. `control` makes the channel of a server whose contract asks for one, anew at
    each start. `grace_ns` is what each step of ending a server waits for it.
    """

    def __init__(
        self,
        contract: Contract,
        folder: Path,
        clock: Clock,
        launcher: Launcher,
        *,
        control: Callable[[str], ControlEnd] | None = None,
        limits: Limits | None = None,
        grace_ns: int = GRACE_NS,
    ) -> None:
        self.stamps = tuple(sorted({stamp for server in contract.servers for stamp in stamps(server.launch)}))
        self._routes = {
            server.id: _Route(server, folder, clock, launcher, control, limits, grace_ns) for server in contract.servers
        }

    def launches(self) -> dict[str, Digest]:
        """What each server's launch comes to on this machine, without starting it: for a grant to seal.

        From here on any other launch is drift.

        Raises:
            ServerError: launch_failed or artifact_drift.
        """
        return {name: route.resolved().digest for name, route in self._routes.items()}

    def observe(self, server: str, *, fresh: bool, deadline: Deadline) -> Observation | Unavailable:
        route = self._routes.get(server)
        if route is None:
            return Unavailable(
                Reason.UNKNOWN_SERVER, f"the contract has no such server; {did_you_mean(server, self._routes)}"
            )
        return route.observe(fresh=fresh, deadline=deadline)

    def send(self, claimed: Claimed, *, gate: Callable[[], bool], deadline: Deadline, relay: Relay = NO_RELAY) -> Reply:
        route = self._routes.get(claimed.permit.server)
        if route is None:
            return NotSent(Reason.SERVER_UNAVAILABLE, "the contract has no such server")
        return route.send(claimed.permit.tool, claimed.permit.arguments, gate, deadline, relay)

    def cancel(self, server: str, reason: str) -> bool:
        """Cancel the server's call in flight, from any thread; False if there is none."""
        route = self._routes.get(server)
        return route is not None and route.cancel(reason)

    @property
    def calls(self) -> dict[str, int]:
        """How many calls were written to each server, wholly or in part."""
        return {name: route.calls for name, route in self._routes.items()}

    def close(self) -> dict[str, tuple[Ending, ...]]:
        """End every server; how each of its processes ended. An ending with somebody `left` is an orphan to report."""
        return {name: route.close() for name, route in self._routes.items()}


class _Live:
    """One process (none, where others run the server) and the session with it, from its start to its end."""

    def __init__(self, resolved: Resolved | Reached, process: Process | None, session: Session) -> None:
        self.resolved = resolved
        self.process = process
        self.session = session
        self.observation: Observation | None = None
        self.called = False

    @property
    def over(self) -> bool:
        return self.session.closed or (self.process is not None and self.process.ended)

    @property
    def changed(self) -> bool:
        """Whether the server said that its list changed since. One that cannot say is looked at when asked."""
        return self.session.tools_changed and not any(oddity.kind is Odd.WATCH_LOST for oddity in self.session.oddities)


class _Route:
    """The one way to one server."""

    def __init__(
        self,
        server: Server,
        folder: Path,
        clock: Clock,
        launcher: Launcher,
        control: Callable[[str], ControlEnd] | None,
        limits: Limits | None,
        grace_ns: int,
    ) -> None:
        self._server = server
        self._folder = folder
        self._clock = clock
        self._launcher = launcher
        self._control = control if isinstance(server.launch, Launch) and server.launch.control else None
        self._limits = limits or Limits()
        self._grace_ns = grace_ns
        self._sealed: Resolved | None = None
        self._reached: Reached | None = None
        self._live: _Live | None = None
        self._endings: list[Ending] = []
        self._closed = False
        self._lock = threading.Lock()
        self.calls = 0

    def resolved(self) -> Resolved | Reached:
        """The launch as it was the first time; ServerError(artifact_drift) if it is another by now."""
        launch = self._server.launch
        return self._there(launch) if isinstance(launch, Remote) else self._here(launch)

    def _there(self, remote: Remote) -> Reached:
        if self._reached is None:
            self._reached = reach(remote)
        return self._reached

    def _here(self, launch: Launch) -> Resolved:
        found = self._launcher.resolve(launch, self._folder)
        if self._sealed is None:
            self._sealed = found
        elif found.digest != self._sealed.digest:
            other = sorted({each.path for each in set(self._sealed.files) ^ set(found.files)}) or [found.argv[0]]
            raise ServerError(Reason.ARTIFACT_DRIFT, f"what is launched is not what was sealed: {_some(other)}")
        return found

    def observe(self, *, fresh: bool, deadline: Deadline) -> Observation | Unavailable:
        with self._lock:
            try:
                return self._observe(fresh, deadline)
            except ServerError as error:
                detail = error.detail
                if self._live is not None and (self._live.observation is None or self._live.over):
                    # Nothing is known of it, so nothing may be sent to it, and it gets no more time.
                    detail += self._given_up(self._live)
                return Unavailable(error.reason, detail)

    def _given_up(self, live: _Live) -> str:
        """End a process that could not be looked at; what it says of the cause, if no call ever reached it."""
        itself = live.session.closed
        # One that let go of its output is about to end: a moment more shows how.
        self._stop(self._grace_ns if itself else 0, hear=True)
        launch, resolved = self._server.launch, live.resolved
        if live.called or not isinstance(resolved, Resolved) or not isinstance(launch, Launch):
            return ""
        ending = self._endings[-1]
        tail = live.session.stderr_tail
        return last_words(
            ending.status if itself and ending.by in {"exit", "stdin"} else None,
            tail,
            secrets_of(launch.env, resolved.env),
            cut=len(tail) >= self._limits.stderr_tail,
        )

    def _observe(self, fresh: bool, deadline: Deadline) -> Observation:
        if self._closed:
            raise ServerError(Reason.SERVER_UNAVAILABLE, "the router is closed")
        live = self._live
        if live is not None:
            live.session.drain()
            if live.over:
                self._stop(0)
                live = None
        if live is None:
            live = self._start(deadline)
        elif live.observation is not None and not fresh and not live.session.tools_changed and live.process is not None:
            return live.observation
        live.observation = None
        tools = list_settled(live.session, lambda: live.changed, deadline)
        # Once more after the server has loaded what it runs: what was replaced in between shows now.
        changed = live.resolved.changed() if isinstance(live.resolved, Resolved) else ()
        if changed:
            raise ServerError(Reason.ARTIFACT_DRIFT, f"changed since the server was started: {_some(changed)}")
        listed = tools_digest(tools)
        same = listed == self._server.tools_digest
        lines = () if same else tuple(change.line() for change in drift(self._server, tools))
        live.observation = Observation(live.resolved.digest, listed, lines)
        return live.observation

    def _start(self, deadline: Deadline) -> _Live:
        launch = self._server.launch
        self._live = self._reach(launch) if isinstance(launch, Remote) else self._run(launch)
        self._live.session.connect(deadline)
        return self._live

    def _reach(self, remote: Remote) -> _Live:
        reached = self._there(remote)
        session = session_with(reached, self._clock, self._limits, self._server.capabilities.value)
        return _Live(reached, None, session)

    def _run(self, launch: Launch) -> _Live:
        resolved = self._here(launch)
        control = self._control(self._server.id) if self._control is not None else None
        try:
            process = self._launcher.start(resolved, None if control is None else control.child_fd)
        finally:
            if control is not None:
                control.started()
        session = ClientSession(
            process.stdout,
            process.stdin,
            process.stderr,
            self._clock,
            limits=self._limits,
            capabilities=self._server.capabilities.value,
        )
        return _Live(resolved, process, session)

    def send(self, tool: str, arguments: bytes, gate: Callable[[], bool], deadline: Deadline, relay: Relay) -> Reply:
        with self._lock:
            live = self._live
            if live is None or live.observation is None or live.observation.drift:
                return NotSent(Reason.SERVER_UNAVAILABLE, "no process of this server stands as it was pinned")
            if self._server.tool(tool) is None:
                return NotSent(Reason.SERVER_UNAVAILABLE, "the server has no such tool in the contract")
            changed = False
            live.called = True

            def open_still() -> bool:
                nonlocal changed
                changed = live.changed
                return not changed and gate()

            end = live.session.call(tool, arguments, gate=open_still, deadline=deadline, relay=relay)
            if isinstance(end, NotSent):
                if changed:
                    return NotSent(Reason.SERVER_UNAVAILABLE, "the tool list changed after it was looked at")
                return end
            self.calls += 1
            if isinstance(end, Uncertain):
                return end
            # Whether a result contradicts itself or its schema is the broker's to judge, for every dispatcher.
            return Replied(end.data, isinstance(end, Error) or end.failed, end.wrote, end.replied)

    def cancel(self, reason: str) -> bool:
        live = self._live  # without the lock: the call in flight holds it
        return live is not None and live.session.cancel(reason)

    def close(self) -> tuple[Ending, ...]:
        with self._lock:
            self._closed = True
            self._stop(self._grace_ns)
            return tuple(self._endings)

    def _stop(self, grace_ns: int, *, hear: bool = False) -> None:
        live, self._live = self._live, None
        if live is not None:
            # Real processes end in real time, whatever clock a scenario has.
            deadline = Deadline.after(SystemClock(), _CLOSE_NS)
            if live.process is None:
                live.session.finish(deadline.child(grace_ns))
            else:
                self._endings.append(live.process.stop(live.session.finish, deadline, grace_ns))
            if hear:
                live.session.finish(deadline.child(self._grace_ns))  # who could write has ended: this is the last of it
            live.session.close()


def _some(paths: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(f"`{path}`" for path in paths[:3])
    return shown + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
