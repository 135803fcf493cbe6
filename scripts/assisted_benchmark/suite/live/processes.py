"""The servers of a case as real processes behind the router.

The case's clock stamps and decides; how long a real process may take is real time, whatever clock
the case has: as long as the broker waits, and less where the case makes a server misbehave. Calls are counted
at the server where it has a channel to the harness, else where they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import evolve

from assisted_benchmark.contract.model import Contract, Launch
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline, SystemClock
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import NO_RELAY, Observation, Relay, Reply, Unavailable
from assisted_benchmark.mcp_router.process import Launcher
from assisted_benchmark.mcp_router.router import Router
from assisted_benchmark.workloads.control import Control
from assisted_benchmark.workloads.faults import Fault
from assisted_benchmark.workloads.model import Event

START_NS: Final = 20 * SECOND
FAULTY_ANSWER_NS: Final = 2 * SECOND
_END_SECONDS: Final = 5.0


class Processes:
    """Carries claimed calls to real servers, started when they are first looked at."""

    def __init__(
        self, contract: Contract, folder: str, clock: Clock, launcher: Launcher, *, seed: int, task: str
    ) -> None:
        self._contract = contract
        self._seed = seed
        self._task = task
        self._real = SystemClock()
        self._faults: dict[str, list[Fault]] = {}
        self._controls: dict[str, list[Control]] = {}
        self._substituted: set[str] = set()
        self._router = Router(contract, Path(folder), clock, launcher, control=self._control)
        self.stamps = self._router.stamps

    def launches(self) -> dict[str, Digest]:
        """What each server's launch resolves to on this machine.

        Raises:
            ServerError: launch_failed or artifact_drift.
        """
        return self._router.launches()

    @property
    def calls(self) -> dict[str, int]:
        """How many calls arrived at each server (written to it, where it cannot tell)."""
        counts = self._router.calls
        for name, controls in self._controls.items():
            for control in controls:
                control.poll()
            counts[name] = sum(sum(control.received.values()) for control in controls)
        return counts

    @property
    def total(self) -> int:
        """How many calls arrived at all servers."""
        return sum(self.calls.values())

    def starts(self, server: str) -> list[list[Event]]:
        """What a server really did, as it told the harness, by its starts; nothing, for one that has no channel."""
        controls = self._controls.get(server, ())
        for control in controls:
            control.poll()
        return [control.events for control in controls]

    def arm(self, server: str, fault: Fault) -> None:
        """From its next call on, this server misbehaves.

        Raises:
            ServerError: it has no channel to the harness, so nobody can make it.
        """
        pinned = self._contract.server(server)
        if pinned is None or not isinstance(pinned.launch, Launch) or not pinned.launch.control:
            raise ServerError(Reason.COULD_NOT_RUN, f"the process of `{server}` has no channel to play faults over")
        self._faults.setdefault(server, []).append(fault)
        for control in self._controls.get(server, ()):
            control.arm(fault)

    def kill(self, server: str) -> None:
        """A process that dies between calls is started again by the router, so only models can be killed so.

        Raises:
            ServerError: always.
        """
        raise ServerError(Reason.COULD_NOT_RUN, f"the router starts `{server}` again; let it die at a call instead")

    def substitute(self, server: str) -> None:
        """From now on another program stands where this server was."""
        self._substituted.add(server)

    def observe(self, server: str, *, fresh: bool, deadline: Deadline) -> Observation | Unavailable:
        seen = self._router.observe(server, fresh=fresh, deadline=self._real_time(deadline, START_NS))
        if server in self._substituted and isinstance(seen, Observation):
            # The look itself is the router's, tested with real programs; here only its answer is another program's.
            return evolve(seen, launch=Digest("sha256:" + "0" * 64))
        return seen

    def send(self, claimed: Claimed, *, gate: Callable[[], bool], deadline: Deadline, relay: Relay = NO_RELAY) -> Reply:
        most_ns = FAULTY_ANSWER_NS if self._faults else deadline.remaining_ns()
        return self._router.send(claimed, gate=gate, deadline=self._real_time(deadline, most_ns), relay=relay)

    def close(self) -> None:
        """End every server, and hear the last of what they did.

        Raises:
            ServerError: could_not_run, if a process of a server is still there, or may be; what the workloads' channels
                raise.
        """
        endings = self._router.close()
        controls = [control for each in self._controls.values() for control in each]
        try:
            for control in controls:
                control.finish(_END_SECONDS)
        finally:
            for control in controls:
                control.close()
        for server, ended in endings.items():
            left = [str(pid) for ending in ended for pid in ending.left]
            if left:
                raise ServerError(
                    Reason.COULD_NOT_RUN,
                    f"processes of `{server}` could not be ended: {', '.join(left)}; end them before the next run",
                )
            if not all(ending.known for ending in ended):
                raise ServerError(
                    Reason.COULD_NOT_RUN,
                    f"what watched the processes of `{server}` was killed or stopped, so some may be left; look for "
                    "them before the next run",
                )

    def _real_time(self, deadline: Deadline, most_ns: int) -> Deadline:
        return Deadline.after(self._real, min(most_ns, deadline.remaining_ns()))

    def _control(self, server: str) -> Control:
        control = Control()
        control.configure(seed=self._seed, task=self._task, faults=self._faults.get(server, ()))
        self._controls.setdefault(server, []).append(control)
        return control
