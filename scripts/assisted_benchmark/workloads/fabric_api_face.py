"""The offline Fabric endpoint behind its faults: the server without its process and without HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.workloads.fabric_api import Answered, Asked, Call, FabricApi
from assisted_benchmark.workloads.fabric_api_faults import FabricFault, FabricFaultKind

HUGE: Final = 16 << 20  # bytes of a huge body

_BEFORE: Final = frozenset(
    {FabricFaultKind.HANG_BEFORE, FabricFaultKind.DROP_BEFORE, FabricFaultKind.DIE_BEFORE}
)  # neither acts nor answers
_LAST: Final = frozenset({FabricFaultKind.DIE_BEFORE, FabricFaultKind.DIE_AFTER, FabricFaultKind.LEAVE})


class Played(NamedTuple):
    """What a request came to: what the endpoint would answer, and the fault that stands between that and the asker.

    `answered` is None if it neither acted nor answers.
    """

    answered: Answered | None
    fault: FabricFaultKind | None = None


class FabricFace:
    """A model and its faults. `ended` is true once the server is gone and hears nothing more."""

    def __init__(self, model: FabricApi, faults: Iterable[FabricFault] = ()) -> None:
        self.model = model
        self.ended = False
        self._faults = list(faults)

    def arm(self, fault: FabricFault) -> None:
        """From now on this fault too may strike."""
        self._faults.append(fault)

    def take(self, asked: Asked) -> Played:
        """Let a request arrive, act unless a fault forbids it, and say what is answered."""
        model = self.model
        call = model.arrive(asked)
        fault = self._strike(call)
        if fault is None:
            return Played(model.answer(asked, call))
        kind = fault.kind
        self.ended = self.ended or kind in _LAST
        if kind in _BEFORE:
            return Played(None, kind)
        if kind is FabricFaultKind.FAIL_BEFORE:
            return Played(model.error(call, fault.status or 500), kind)
        if kind is FabricFaultKind.REDIRECT:
            return Played(Answered(307, b"", headers=(("location", asked.target),)), kind)
        answered = model.answer(asked, call, wants_more=kind is FabricFaultKind.DRIFT_SHAPE)
        if kind is FabricFaultKind.FAIL_AFTER:
            answered = model.error(call, fault.status or 500)
        return Played(_spoilt(answered, kind), kind)

    def _strike(self, call: Call) -> FabricFault | None:
        received = self.model.received
        for fault in self._faults:
            if fault.call in (None, call.act):
                count = sum(n for name, n in received.items() if fault.call is None or name.endswith(fault.call))
                if fault.nth in (None, count):
                    return fault
        return None


def _spoilt(answered: Answered, kind: FabricFaultKind) -> Answered:
    """What of the answer is wrong in itself, however it is delivered."""
    match kind:
        case FabricFaultKind.GARBAGE_BODY:
            return answered._replace(body=b'{"uuid": \xff garbage')
        case FabricFaultKind.HUGE_BODY:
            return answered._replace(body=answered.body + b" " * (HUGE - len(answered.body)))
        case FabricFaultKind.WRONG_TYPE:
            return answered._replace(media="text/html")
        case FabricFaultKind.DRIFT_ECHO if answered.status < 300:
            return answered._replace(body=canonical_bytes({**parse(answered.body), "name": "another than was asked"}))
        case _:
            return answered
