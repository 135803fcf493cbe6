"""The plugin host in process: the broker's port over a face, without a socket.

What each fault comes to is what it comes to over the socket; a test holds the two side by side. Nothing waits here:
a request that hangs tells `on_hang` so, which may cancel it or let time go by, and has then run out of time.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Final

from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import (
    Cancellation,
    Enrolled,
    Envelope,
    HostReply,
    Instance,
    Registered,
    Session,
    Unavailable,
)
from assisted_benchmark.capability.socket_host_brink import Brink
from assisted_benchmark.capability.socket_host_messages import (
    MAX_EVENTS,
    Broken,
    cancellation_of,
    enrolment,
    instances_in,
    judged,
    misclaimed,
    negotiation,
    offer_in,
    requested,
    session_in,
)
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Clock, Deadline
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.workloads.plugin_host_face import PluginHostFace
from assisted_benchmark.workloads.plugin_host_faults import DROPPING, DYING, HANGING, HostFault, HostFaultKind, Step
from assisted_benchmark.workloads.plugin_host_lies import Answered
from assisted_benchmark.workloads.plugin_host_oracle import HostReading, read_host

_BROKEN: Final[dict[HostFaultKind | None, Broken]] = {
    HostFaultKind.DROP_BEFORE: Broken.CLOSED,
    HostFaultKind.DROP_AFTER: Broken.CLOSED,
    HostFaultKind.DIE_BEFORE: Broken.CLOSED,
    HostFaultKind.DIE_AFTER: Broken.CLOSED,
    HostFaultKind.HALF_LINE: Broken.CLOSED,
    HostFaultKind.HANG_BEFORE: Broken.LATE,
    HostFaultKind.HANG_AFTER: Broken.LATE,
    HostFaultKind.FOREIGN_ID: Broken.LATE,
    HostFaultKind.HUGE_LINE: Broken.LATE,
    HostFaultKind.BAD_ANSWER: Broken.NO_MESSAGE,
}
_UNHEARD: Final = DROPPING | DYING | {HostFaultKind.PROGRESS_STRAY, HostFaultKind.PROGRESS_LATE}
_NO_TIME: Final = Unavailable(Reason.DEADLINE_EXCEEDED, "no time was left to write it")
_NONE: Final = Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands", ended=True)


def _nobody(_: str) -> None:
    """Nothing happens while a request hangs."""


class InProcessHost:
    """The host as a broker has it, in this process. Threads may share it; what reaches the host takes turns."""

    def __init__(self, face: PluginHostFace, clock: Clock, *, on_hang: Callable[[str], None] = _nobody) -> None:
        self.face = face
        self.on_hang = on_hang
        self._clock = clock
        self._turn = RLock()
        self._brink = Brink()
        self._connections = 0
        self._link: int | None = None
        self._waiting: dict[object, Answered | None] = {}

    def reading(self) -> HostReading:
        """What really happened: the oracle's view."""
        with self._turn:
            return read_host(self.face.model.received, self.face.model.events)

    def arm(self, *faults: HostFault) -> None:
        """From the next step on these may strike too."""
        with self._turn:
            for fault in faults:
                self.face.arm(fault)

    def die(self) -> None:
        """The host ends, as it stands: nothing is told any more."""
        with self._turn:
            self.face.ended = True
            self._lose_with(HostFaultKind.DIE_BEFORE)

    def connect(self, session: Session, *, deadline: Deadline) -> Enrolled | Unavailable:
        with self._turn:
            if self.face.ended:
                return Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands")
            if self._link is None:
                self._link = self.face.open()
                self._connections += 1
            number = self._connections
            answered = self._step(Step.ENROL, self._link, enrolment(session), deadline)
        if isinstance(answered, Unavailable):
            return answered
        name = session_in(answered)
        if name is None:
            return Broken.NO_ANSWER.unavailable()
        return Enrolled(f"{number}.{name}", session.client, session.peer)

    def inventory(self, enrolled: Enrolled, *, deadline: Deadline) -> tuple[Instance, ...] | Unavailable:
        answered = self._ask(Step.INVENTORY, enrolled, lambda session: {"session": session}, deadline)
        if isinstance(answered, Unavailable):
            return answered
        found = instances_in(answered)
        return Broken.NO_ANSWER.unavailable() if found is None else found

    def negotiate(
        self, enrolled: Enrolled, instance: Instance, offer: Offer, *, deadline: Deadline
    ) -> Offer | Unavailable:
        answered = self._ask(Step.NEGOTIATE, enrolled, lambda session: negotiation(session, instance, offer), deadline)
        if isinstance(answered, Unavailable):
            return answered
        return offer_in(answered) or Broken.NO_ANSWER.unavailable()

    def request(
        self,
        claimed: Claimed,
        envelope: Envelope,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,
        progress: Callable[[Json], None],
    ) -> HostReply:
        no = misclaimed(claimed, envelope)
        if no is not None:
            return no
        key = (envelope.client, envelope.request_id)
        self._brink.enter(key)
        try:
            if self._link is None:
                return NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
            if deadline.passed:
                return NotSent(Reason.DEADLINE_EXCEEDED, "no time was left to write it")
            link = self._link
            unwritten = self._brink.cross(key, gate)
            return unwritten or self._written(link, claimed, envelope, progress)
        finally:
            self._brink.leave(key)

    def cancel(self, enrolled: Enrolled, cancellation: Cancellation, *, deadline: Deadline) -> Unavailable | None:
        if self._brink.stop((cancellation.client, cancellation.request_id)):
            return None
        with self._turn:
            session = self._session(enrolled)
            if session is None or self._link is None:
                return _NONE
            if deadline.passed:
                return _NO_TIME
            ended = self.face.cancel(self._link, cancellation_of(session, cancellation))
            if ended is not None and ended[0] in self._waiting:
                self._waiting[ended[0]] = ended[1]
        return None

    def registered(self, instance: str) -> Registered | None:
        with self._turn:
            found = [] if self._link is None else [each for each in self.face.model.live if each.id == instance]
            return Registered(found[0].registration, found[0].publication) if len(found) == 1 else None

    def _session(self, enrolled: Enrolled) -> str | None:
        """The host's own name of a session, if it is of the last connection."""
        number, _, name = enrolled.id.partition(".")
        return name if number == str(self._connections) else None

    def _ask(
        self, step: Step, enrolled: Enrolled, params: Callable[[str], dict[str, Json]], deadline: Deadline
    ) -> dict[str, Json] | Unavailable:
        """The answer to what an enrolled client asks, or why there is none."""
        with self._turn:
            session = self._session(enrolled)
            if session is None or self._link is None:
                return _NONE
            return self._step(step, self._link, params(session), deadline)

    def _step(
        self, step: Step, link: int, params: dict[str, Json], deadline: Deadline
    ) -> dict[str, Json] | Unavailable:
        """The answer to what changes nothing, or why there is none."""
        if deadline.passed:
            return _NO_TIME
        answered, kind = self.face.take(step, link, params)
        self._lose_with(kind)
        if kind in _BROKEN or answered is None:
            return _BROKEN[kind or HostFaultKind.HANG_BEFORE].unavailable()
        return answered.result if answered.error is None else Broken.ERROR.unavailable(ended=answered.error.ended)

    def _written(self, link: int, claimed: Claimed, envelope: Envelope, progress: Callable[[Json], None]) -> HostReply:
        """What comes of a request from its first byte on."""
        tag = object()
        with self._turn:
            if self._link != link:
                return NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
            wrote = self._clock.now()
            answered, kind = self.face.take(Step.REQUEST, link, requested(claimed, envelope), tag)
            self._lose_with(kind)
            if kind in HANGING:
                self._waiting[tag] = None
        if answered is not None and kind not in _UNHEARD:
            for event in answered.progress[:MAX_EVENTS]:
                progress(event)
        if kind in HANGING:
            self.on_hang(envelope.request_id)
            with self._turn:
                answered = self._waiting.pop(tag)
        elif kind in _BROKEN:
            return _BROKEN[kind].uncertain(wrote)
        if answered is None:
            return Broken.LATE.uncertain(wrote)
        if answered.error is not None:
            return Broken.ERROR.uncertain(wrote)
        return judged(answered.result, answered.made, envelope.receipt_id, wrote, self._clock.now())

    def _lose_with(self, kind: HostFaultKind | None) -> None:
        """The connection is gone, if the fault takes it away."""
        if self._link is not None and _BROKEN.get(kind) is Broken.CLOSED:
            self.face.close(self._link)
            self._link = None
