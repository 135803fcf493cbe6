"""The endpoint of a case: its model in this process, or its process over HTTP on loopback.

The case's clock stamps and decides; how long a real process may take is real time, whatever clock the case has.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

import assisted_benchmark
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline, SystemClock
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.mutation.changes import ChangeContract
from assisted_benchmark.mutation.ports import Endpoint, Reply, Request
from assisted_benchmark.workloads.control import Control
from assisted_benchmark.workloads.fabric_api import KINDS, ROOT, FabricApi, bearer_of
from assisted_benchmark.workloads.fabric_api_endpoint import FabricEndpoint
from assisted_benchmark.workloads.fabric_api_face import FabricFace
from assisted_benchmark.workloads.fabric_api_faults import FabricFault
from assisted_benchmark.workloads.fabric_api_oracle import FabricReading, read_fabric
from assisted_benchmark.workloads.process import CONTROL_ENV

START_SECONDS: Final = 20.0
ANSWER_NS: Final = 2 * SECOND
_END_SECONDS: Final = 5.0


# Where the one endpoint that there is takes changes.
_TAKEN: Final = tuple(f"{ROOT}/{kind}" for kind in KINDS)


def unplayable(contract: ChangeContract) -> tuple[str, str] | None:
    """That no endpoint here takes any change of a contract, and what can be done instead; None if one does."""
    if any(change.path in _TAKEN for change in contract.changes):
        return None
    return (
        f"no endpoint that comes with the harness takes a change of `{contract.id}`",
        f"scenarios play at {', '.join(_TAKEN)}; `serve --origin` brings this contract to an endpoint of yours",
    )


class World(Protocol):
    """The endpoint as the harness has it: it may look behind it and spoil it."""

    @property
    def endpoint(self) -> Endpoint:
        """What the broker is given."""

    def reading(self) -> FabricReading:
        """What really happened there: the oracle's view."""

    def arm(self, fault: FabricFault) -> None:
        """From its next request on, this fault too may strike."""

    def close(self) -> None:
        """Let go of it."""


class Modelled:
    """The endpoint as a model in this process."""

    def __init__(self, clock: Clock, seed: int, faults: Iterable[FabricFault]) -> None:
        self._face = FabricFace(FabricApi(seed), faults)
        self.endpoint: Endpoint = FabricEndpoint(self._face, clock, bearer=bearer_of(seed))

    def reading(self) -> FabricReading:
        return read_fabric(self._face.model.received, self._face.model.events)

    def arm(self, fault: FabricFault) -> None:
        self._face.arm(fault)

    def close(self) -> None:
        """A model needs nothing."""


class Served:
    """The endpoint as a process of its own, behind the broker's HTTP client."""

    def __init__(self, clock: Clock, seed: int, faults: Iterable[FabricFault]) -> None:
        """Start it, and wait until it listens.

        Raises:
            ServerError: it does not.
        """
        # The client's libraries are an extra: who has no such case needs none of them.
        try:
            from assisted_benchmark.mutation.http_endpoint import HttpEndpoint
        except ImportError as error:
            detail = f"the HTTP client needs the extra `http` ({error.name} is missing); install it"
            raise ServerError(Reason.COULD_NOT_RUN, detail) from error

        self._control = Control()
        package = Path(assisted_benchmark.__file__).parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "assisted_benchmark.workloads.fabric_api"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath, "PYTHONPATH": str(package), CONTROL_ENV: str(self._control.child_fd)},
            pass_fds=[self._control.child_fd],
        )
        try:
            self._control.started()
            self._control.configure(seed=seed, faults=faults)
            port = self._control.wait_port(START_SECONDS)
        except BaseException:
            self.close()
            raise
        self.endpoint: Endpoint = _RealTime(
            HttpEndpoint(f"http://127.0.0.1:{port}", clock, bearer=bearer_of(seed)), SystemClock()
        )

    def listen(self) -> None:
        """Take what the process has told of itself so far: it does not go on where nobody does."""
        self._control.poll()

    def reading(self) -> FabricReading:
        self._control.poll()
        return read_fabric(self._control.received, self._control.events)

    def arm(self, fault: FabricFault) -> None:
        self._control.arm(fault)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait(_END_SECONDS)
        self._control.close()


class _RealTime:
    """An endpoint whose deadlines are real: the case's clock stands still while a process is waited for."""

    def __init__(self, inner: Endpoint, real: Clock) -> None:
        self._inner = inner
        self._real = real

    def ask(self, request: Request, *, deadline: Deadline) -> Reply:
        return self._inner.ask(request, deadline=self._in_real_time(deadline))

    def create(self, claimed: Claimed, request: Request, *, gate: Callable[[], bool], deadline: Deadline) -> Reply:
        return self._inner.create(claimed, request, gate=gate, deadline=self._in_real_time(deadline))

    def _in_real_time(self, deadline: Deadline) -> Deadline:
        return Deadline.after(self._real, min(ANSWER_NS, deadline.remaining_ns()))
