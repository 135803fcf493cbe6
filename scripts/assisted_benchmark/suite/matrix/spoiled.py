"""Servers that lie about one state-changing call: they drop it, or do another thing, and answer as if all were well.

The models are changed in place while this lasts, so that every case of this process meets the liar. State-changing is
what a workload really changed by: a click, a create, an executed operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum, unique
from typing import Any, Final, TypeAlias

from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse
from assisted_benchmark.mutation.ports import HttpReply
from assisted_benchmark.workloads.fabric_api import FabricApi
from assisted_benchmark.workloads.fabric_api_endpoint import FabricEndpoint
from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost
from assisted_benchmark.workloads.plugin_host_oracle import HostReading
from assisted_benchmark.workloads.synthetic_ui import SyntheticUi

Method: TypeAlias = Callable[..., Any]

_OTHER: Final = {"approve": "hold", "hold": "approve"}
_ANSWER: Final = b'{"uuid":"00000000-0000-0000-0000-000000000001"}'


@unique
class Lie(StrEnum):
    """What becomes of the call."""

    DROPPED = "dropped"
    CORRUPTED = "corrupted"


class Liar:
    """Counts the calls of a case from 1, and lies about one of them. `changed` are those that changed something."""

    def __init__(self, lie: Lie | None, about: int) -> None:
        self.changed: list[int] = []
        self._lie = lie
        self._about = about
        self._calls = 0

    def next(self) -> Lie | None:
        """One more call has come; what becomes of it."""
        self._calls += 1
        return self._lie if self._calls == self._about else None

    def note(self, before: int, after: int) -> None:
        """So many changes there were before the call and after it."""
        if after > before:
            self.changed.append(self._calls)


@contextmanager
def lying(lie: Lie | None = None, about: int = 0) -> Iterator[Liar]:
    """While this lasts, the servers of this process lie about that call; about none, if they only count."""
    liar = Liar(lie, about)
    whole = [(model, name, vars(model)[name]) for model, name, _ in _SPOILED]
    for model, name, spoiled in _SPOILED:
        setattr(model, name, spoiled(vars(model)[name], liar))
    try:
        yield liar
    finally:
        for model, name, method in whole:
            setattr(model, name, method)


def _call(whole: Method, liar: Liar) -> Method:
    def call(self: SyntheticUi, name: str, arguments: dict[str, Json]) -> Json:
        lie = liar.next()
        if lie is Lie.DROPPED:
            said = {**arguments, "frame": "f1-000000000000", "accepted": True}
            return {"content": [{"type": "text", "text": "done"}], "structuredContent": said, "isError": False}
        if lie is Lie.CORRUPTED:
            result = whole(self, name, {**arguments, "targetId": _OTHER[arguments["targetId"]]})
            said = {**result["structuredContent"], "targetId": arguments["targetId"]}
            return {**result, "structuredContent": said}
        before = _count(self, "click")
        result = whole(self, name, arguments)
        liar.note(before, _count(self, "click"))
        return result

    return call


def _count(model: SyntheticUi | FabricApi, kind: str) -> int:
    return sum(event.kind == kind for event in model.events)


def _create(whole: Method, liar: Liar) -> Method:
    def create(self: Any, claimed: Any, request: Any, *, gate: Callable[[], bool], deadline: Any) -> Any:
        model = self._face.model
        lie = liar.next()
        if lie is Lie.DROPPED and gate():
            now = self._clock.now()
            return HttpReply(201, _ANSWER, now, now)
        if lie is Lie.CORRUPTED:
            body = canonical_bytes({**parse(request.body), "name": "corrupted"})
            request = request._replace(body=body)
            claimed = claimed._replace(permit=claimed.permit._replace(arguments=body))
        before = _count(model, "created")
        reply = whole(self, claimed, request, gate=gate, deadline=deadline)
        liar.note(before, _count(model, "created"))
        return reply

    return create


def _request(whole: Method, liar: Liar) -> Method:
    def request(self: Any, claimed: Any, envelope: Any, **more: Any) -> Any:
        lie = liar.next()
        before = len(InProcessHost.reading(self).executions)
        if lie is Lie.CORRUPTED:
            other = claimed.permit.arguments.replace(b"{", b"{ ", 1)
            claimed = claimed._replace(permit=claimed.permit._replace(arguments=other))
        reply = whole(self, claimed, envelope, **more)
        liar.note(before, len(InProcessHost.reading(self).executions))
        if lie is Lie.DROPPED:
            self.face.model.dropped = envelope.receipt_id
        return reply

    return request


def _reading(whole: Method, _: Liar) -> Method:
    def reading(self: InProcessHost) -> HostReading:
        read: HostReading = whole(self)
        dropped = getattr(self.face.model, "dropped", None)
        return read._replace(
            executions=tuple(each for each in read.executions if each.receipt_id != dropped),
            made=tuple(each for each in read.made if each.receipt_id != dropped),
        )

    return reading


_SPOILED: Final[tuple[tuple[type, str, Callable[[Method, Liar], Method]], ...]] = (
    (SyntheticUi, "call", _call),
    (FabricEndpoint, "create", _create),
    (InProcessHost, "request", _request),
    (InProcessHost, "reading", _reading),
)
