"""The host of a case: its model in this process, or its process on a local socket.

The case's clock stamps and decides; how long a real process may take is real time, whatever clock the case has.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final, Protocol

import assisted_benchmark
from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import (
    Cancellation,
    Enrolled,
    Envelope,
    Host,
    HostReply,
    Instance,
    Registered,
    Session,
    Unavailable,
)
from assisted_benchmark.capability.socket_host import SocketHost
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline, SystemClock
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.workloads.control import Control
from assisted_benchmark.workloads.plugin_host_face import PluginHostFace
from assisted_benchmark.workloads.plugin_host_faults import HANGING, HostFault, HostFaultKind
from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost
from assisted_benchmark.workloads.plugin_host_oracle import HostReading, read_host
from assisted_benchmark.workloads.plugin_host_place import LISTENER_ENV, Place
from assisted_benchmark.workloads.process import CONTROL_ENV

ANSWER_NS: Final = SECOND
START_NS: Final = 20 * SECOND
_LOOK_SECONDS: Final = 0.001
_FIRST: Final = "instance-1"
_END_SECONDS: Final = 5.0


class World(Protocol):
    """The host as the harness has it: it may look behind it, spoil it and end it.

    `hangs` is told that a request was written and not answered; a process cannot tell.
    """

    @property
    def host(self) -> Host:
        """What the broker reaches."""

    def reading(self) -> HostReading:
        """What really happened there, at every start of it: the oracle's view."""

    def arm(self, fault: HostFault) -> None:
        """From its next step on, this fault too may strike."""

    def kill(self) -> None:
        """It dies, as it stands."""

    def start(self) -> None:
        """It starts again, knowing nothing of before."""

    def close(self) -> None:
        """Let go of it."""


class Modelled:
    """The host as a model in this process."""

    def __init__(self, clock: Clock, seed: int, hangs: Callable[[], None]) -> None:
        self._clock = clock
        self._seed = seed
        self._hangs = hangs
        self._starts: list[InProcessHost] = []
        self.start()

    @property
    def host(self) -> Host:
        return self._starts[-1]

    def reading(self) -> HostReading:
        return joined([each.reading() for each in self._starts])

    def arm(self, fault: HostFault) -> None:
        self._starts[-1].arm(fault)

    def kill(self) -> None:
        self._starts[-1].die()

    def start(self) -> None:
        self._starts.append(
            InProcessHost(PluginHostFace(self._seed), self._clock, on_hang=lambda _request: self._hangs())
        )

    def close(self) -> None:
        """A model needs nothing."""


class Served:
    """The host as a process of its own, behind the broker's socket edge."""

    def __init__(self, _: Clock, seed: int, hangs: Callable[[], None]) -> None:
        self._seed = seed
        self._hangs = hangs
        self._past: list[HostReading] = []
        self._begin()

    @property
    def host(self) -> Host:
        return self._host

    def listen(self) -> None:
        """Take what the process has told of itself so far: it does not go on where nobody does."""
        self._control.poll()

    def reading(self) -> HostReading:
        return joined([*self._past, self._reading()])

    def arm(self, fault: HostFault) -> None:
        at_once = fault.kind in (HostFaultKind.REPUBLISH, HostFaultKind.TEAR_DOWN)
        instance = fault.instance or _FIRST
        before = self._edge.registered(instance) if at_once else None
        self._control.arm(fault)
        self._host.hanging = self._host.hanging or fault.kind in HANGING
        # What happens at once has happened when the edge has heard of it.
        patience = Deadline.after(SystemClock(), START_NS)
        while before is not None and self._edge.registered(instance) == before and not patience.passed:
            time.sleep(_LOOK_SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(_END_SECONDS)
        self._edge.registered(_FIRST)  # which takes in that the connection is gone

    def start(self) -> None:
        self._past.append(self._reading())
        self.close()
        self._begin()

    def close(self) -> None:
        """End the process, and what leads to it."""
        self._edge.close()
        self.kill()
        self._control.close()
        self._place.close()

    def _begin(self) -> None:
        self._control, self._place = Control(), Place()
        package = Path(assisted_benchmark.__file__).parent.parent
        fds = (self._control.child_fd, self._place.child_fd)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "assisted_benchmark.workloads.plugin_host"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={
                "PATH": os.defpath,
                "PYTHONPATH": str(package),
                CONTROL_ENV: str(fds[0]),
                LISTENER_ENV: str(fds[1]),
            },
            pass_fds=fds,
        )
        self._control.started()
        self._place.started()
        self._edge = SocketHost(self._place.path, SystemClock())
        self._host = _RealTime(self._edge, self._hangs)
        try:
            self._control.configure(seed=self._seed, faults=())
            self._control.wait_told(START_NS / SECOND)
        except BaseException:
            self.close()
            raise

    def _reading(self) -> HostReading:
        self._control.poll()
        return read_host(self._control.received, self._control.events)


class _RealTime:
    """A host whose deadlines are real: the case's clock stands still while a process is waited for."""

    def __init__(self, inner: Host, hangs: Callable[[], None]) -> None:
        self.hanging = False  # whether the process was told to leave a request without an answer
        self._inner = inner
        self._real = SystemClock()
        self._hangs = hangs

    def connect(self, session: Session, *, deadline: Deadline) -> Enrolled | Unavailable:
        return self._inner.connect(session, deadline=self._in_real_time(deadline))

    def inventory(self, enrolled: Enrolled, *, deadline: Deadline) -> tuple[Instance, ...] | Unavailable:
        return self._inner.inventory(enrolled, deadline=self._in_real_time(deadline))

    def negotiate(
        self, enrolled: Enrolled, instance: Instance, offer: Offer, *, deadline: Deadline
    ) -> Offer | Unavailable:
        return self._inner.negotiate(enrolled, instance, offer, deadline=self._in_real_time(deadline))

    def request(
        self,
        claimed: Claimed,
        envelope: Envelope,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,
        progress: Callable[[Json], None],
    ) -> HostReply:
        real = self._in_real_time(deadline)
        if not self.hanging:
            return self._inner.request(claimed, envelope, gate=gate, deadline=real, progress=progress)
        with ThreadPoolExecutor(1) as aside:
            asked = aside.submit(self._inner.request, claimed, envelope, gate=gate, deadline=real, progress=progress)
            if not wait([asked], ANSWER_NS / 2 / SECOND).done:
                self._hangs()
            return asked.result()

    def cancel(self, enrolled: Enrolled, cancellation: Cancellation, *, deadline: Deadline) -> Unavailable | None:
        return self._inner.cancel(enrolled, cancellation, deadline=self._in_real_time(deadline))

    def registered(self, instance: str) -> Registered | None:
        return self._inner.registered(instance)

    def _in_real_time(self, deadline: Deadline) -> Deadline:
        return Deadline.after(self._real, 0 if deadline.passed else ANSWER_NS)


def joined(readings: Sequence[HostReading]) -> HostReading:
    """What happened at every start of a host; what lives there is what lives at the last."""
    received: Counter[str] = Counter()
    for each in readings:
        received.update(each.received)
    return HostReading(
        dict(received),
        tuple(one for each in readings for one in each.executions),
        tuple(one for each in readings for one in each.made),
        tuple(one for each in readings for one in each.refused),
        tuple(one for each in readings for one in each.stopped),
        readings[-1].generations,
        tuple(one for each in readings for one in each.disagreements),
    )
