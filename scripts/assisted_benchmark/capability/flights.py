"""Operations between their admission and their end: what may still stop them. The first reason wins.

A caller may give its call up at any time. Before its operation is admitted it then never is; from then on it is
stopped like any other.
"""

from __future__ import annotations

from threading import Lock

from assisted_benchmark.capability.lineage import Lineage
from assisted_benchmark.capability.ports import Enrolled, Instance
from assisted_benchmark.kernel.reasons import Reason


class Flight:
    """One operation on its way. The lock orders the gate against those who stop it."""

    __slots__ = ("_lock", "enrolled", "instance", "lineage", "request_id", "stopped", "writing")

    def __init__(self, request_id: str, lineage: Lineage, enrolled: Enrolled, instance: Instance) -> None:
        self.request_id = request_id
        self.lineage = lineage
        self.enrolled = enrolled
        self.instance = instance
        self.stopped: Reason | None = None
        self.writing = False
        self._lock = Lock()

    def stop(self, reason: Reason) -> bool:
        """Stop it. Whether the host has to be told: the request may be out, and nobody has stopped it before."""
        with self._lock:
            first = self.stopped is None
            self.stopped = self.stopped or reason
            return first and self.writing

    def pass_gate(self, fault: Reason | None) -> bool:
        """Whether the request may be written now; `fault` is what the caller has found against it."""
        with self._lock:
            self.stopped = self.stopped or fault
            self.writing = self.stopped is None
            return self.writing


class Caller:
    """Whoever waits for one call: since when, on the monotonic clock, if not just now; and whether it was given up."""

    __slots__ = ("_flight", "_lock", "given_up", "since_ns")

    def __init__(self, since_ns: int | None = None) -> None:
        self.since_ns = since_ns
        self.given_up = False
        self._flight: Flight | None = None
        self._lock = Lock()

    def board(self, flight: Flight) -> None:
        """The call has become an operation; one that was given up meanwhile does not pass its gate."""
        with self._lock:
            self._flight = flight
            if self.given_up:
                flight.stop(Reason.CANCELLED)

    def give_up(self) -> Flight | None:
        """Nobody waits any more; the operation, if the call has become one."""
        with self._lock:
            self.given_up = True
            return self._flight


class Flights:
    """All operations on their way, by client and request id. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._flying: dict[tuple[str, str], Flight] = {}

    def add(self, flight: Flight) -> None:
        """An operation was admitted."""
        with self._lock:
            self._flying[flight.lineage.client, flight.request_id] = flight

    def remove(self, flight: Flight) -> None:
        """It has ended."""
        with self._lock:
            del self._flying[flight.lineage.client, flight.request_id]

    def find(self, client: str, request_id: str) -> Flight | None:
        """The client's operation of this request id, while it is on its way."""
        with self._lock:
            return self._flying.get((client, request_id))

    def under(self, grant: str) -> tuple[Flight, ...]:
        """All that are on their way under one grant."""
        with self._lock:
            return tuple(flight for flight in self._flying.values() if flight.lineage.grant == grant)
