"""The offline Fabric endpoint in process: the broker's port over a face, without HTTP.

What each fault comes to is what it comes to over HTTP; a test holds the two side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from assisted_benchmark.kernel.clock import Clock, Deadline
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.mutation.http_outcomes import MAX_ANSWER, Broken, unbelievable
from assisted_benchmark.mutation.ports import HttpReply, Reply, Request
from assisted_benchmark.workloads.fabric_api import Asked
from assisted_benchmark.workloads.fabric_api_face import FabricFace
from assisted_benchmark.workloads.fabric_api_faults import FabricFaultKind

_BROKEN: Final = {
    FabricFaultKind.HANG_BEFORE: Broken.LATE,
    FabricFaultKind.HANG_AFTER: Broken.LATE,
    FabricFaultKind.SLOW_BODY: Broken.LATE,
    FabricFaultKind.DROP_BEFORE: Broken.CLOSED,
    FabricFaultKind.DROP_AFTER: Broken.CLOSED,
    FabricFaultKind.DIE_BEFORE: Broken.CLOSED,
    FabricFaultKind.DIE_AFTER: Broken.CLOSED,
    FabricFaultKind.HALF_BODY: Broken.CLOSED,
    FabricFaultKind.ANSWER_TWICE: Broken.TWICE,
}


class FabricEndpoint:
    """Carries requests to a face. Thread-safe; requests take turns. `bearer` as the client would be given it."""

    def __init__(self, face: FabricFace, clock: Clock, *, bearer: str = "") -> None:
        self._face = face
        self._clock = clock
        self._authorization = f"Bearer {bearer}" if bearer else ""
        self._turn = threading.Lock()

    def ask(self, request: Request, *, deadline: Deadline) -> Reply:
        return self._exchange(request, lambda: True, deadline)

    def create(self, claimed: Claimed, request: Request, *, gate: Callable[[], bool], deadline: Deadline) -> Reply:
        if request.body != claimed.permit.arguments:
            return NotSent(Reason.BINDING_MISMATCH, "the body is not the claimed one")
        return self._exchange(request, gate, deadline)

    def _exchange(self, request: Request, gate: Callable[[], bool], deadline: Deadline) -> Reply:
        with self._turn:
            if self._face.ended or deadline.passed:
                return NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
            if not gate():
                return NotSent(Reason.EXPIRED, "the gate closed before the request was written")
            wrote = self._clock.now()
            media = "application/json" if request.body else ""
            played = self._face.take(Asked(*request, media, self._authorization))
            answered, fault = played
            if answered is None or fault in _BROKEN:
                return _BROKEN[fault or FabricFaultKind.HANG_BEFORE].uncertain(wrote)
            if len(answered.body) > MAX_ANSWER:
                return Broken.TOO_LARGE.uncertain(wrote)
            broken = unbelievable(answered.status, answered.media)
            if broken is not None:
                return broken.uncertain(wrote)
            return HttpReply(answered.status, answered.body, wrote, self._clock.now())
