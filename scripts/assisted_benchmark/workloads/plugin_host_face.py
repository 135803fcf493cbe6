"""The plugin host behind its faults: the server without its process and without a socket.

A client is a link. What it asks is `take`n as the params of its message, and what is told is the message's content:
over a socket a line, in process a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from assisted_benchmark.kernel.strict_json import SAFE_INTEGER, Json
from assisted_benchmark.workloads.plugin_host import CANCEL, OFFER, Asked, PluginHost
from assisted_benchmark.workloads.plugin_host_faults import (
    AT_ONCE,
    DROPPING,
    DYING,
    HANGING,
    OF_CAPABILITY,
    HostFault,
    HostFaultKind,
    Step,
)
from assisted_benchmark.workloads.plugin_host_instance import Ability, canary_of
from assisted_benchmark.workloads.plugin_host_lies import Answered, HostError, told
from assisted_benchmark.workloads.plugin_host_task import Failed

_K = HostFaultKind
_FIRST: Final = "instance-1"
_BEFORE: Final = frozenset({_K.HANG_BEFORE, _K.DROP_BEFORE, _K.DIE_BEFORE})  # neither acts nor answers
_OFFERS: Final[dict[HostFaultKind, Json]] = {
    _K.OFFER_NEWER: {**OFFER, "lowest": 2, "highest": 3},
    _K.OFFER_OLDER: {**OFFER, "lowest": 1, "highest": 1},
    _K.OFFER_INVALID: {**OFFER, "lowest": 3, "highest": 1},
    _K.OFFER_MANDATES: {**OFFER, "mandatory": ["unheard-of"]},
    _K.OFFER_LACKS: {**OFFER, "optional": []},
}


class Played(NamedTuple):
    """What a step came to: what the host would tell, and the fault that stands between that and the client.

    `answered` is None if it neither acted nor answers.
    """

    answered: Answered | None
    fault: HostFaultKind | None = None


class Hanging(NamedTuple):
    """A request that waits. `tag` is the caller's own; `answered` is there if it has acted."""

    tag: Any
    link: int
    asked: Asked
    answered: Answered | None


class PluginHostFace:
    """A model and its faults. `ended` is true once the host is gone and hears nothing more."""

    def __init__(self, seed: int, faults: Iterable[HostFault] = ()) -> None:
        self.model = PluginHost(seed)
        self.ended = False
        self._secret = canary_of(seed)
        self._links = 0
        self._faults: list[tuple[HostFault, list[int]]] = []
        self._hanging: list[Hanging] = []
        for fault in faults:
            self.arm(fault)

    def arm(self, fault: HostFault) -> None:
        """From now on this fault too may strike; one that happens at once has happened."""
        if fault.kind in AT_ONCE:
            self._change(fault.kind, fault.instance or _FIRST, fault.operation or "")
        else:
            self._faults.append((fault, [0]))

    def open(self) -> int:
        """A client connects; its link."""
        self._links += 1
        return self._links

    def close(self, link: int) -> None:
        """A client is gone, and what it waited for."""
        self.model.leave(link)
        self._hanging = [each for each in self._hanging if each.link != link]

    def take(self, step: Step, link: int, params: dict[str, Json], tag: Any = None) -> Played:
        """Let a step arrive, act unless a fault forbids it, and say what is told. `tag` comes back if it hangs."""
        asked = read_request(link, params) if step is Step.REQUEST else None
        operation, instance = (asked.operation, asked.instance) if asked else ("", params.get("instance"))
        self.model.arrive(operation or step)
        kind = self._strike(step, operation, instance)
        target = instance if type(instance) is str else _FIRST
        if kind is None:
            return Played(self._answered(step, link, params, asked, None))
        self.ended = self.ended or kind in DYING
        if kind in _BEFORE:
            played = Played(None, kind)
        elif kind is _K.ERROR:
            played = Played(Answered({}, HostError("it is not done")), kind)
        else:
            self._change(_BEFORE_IT.get(kind), target)
            played = Played(self._answered(step, link, params, asked, kind), kind)
            self._change(_AFTER_IT.get(kind), target)
        if kind in HANGING and asked is not None:
            self._hanging.append(Hanging(tag, link, asked, played.answered))
        if kind in DROPPING or kind is _K.HALF_LINE:
            self.close(link)
        return played

    def cancel(self, link: int, params: dict[str, Json]) -> tuple[Any, Answered] | None:
        """Let a cancellation arrive; the tag of the request that it ends, and what is told of that."""
        self.model.arrive(CANCEL)
        found = [each for each in self._hanging if each.link == link and _meant(each.asked, params)]
        if not found or not self.model.enrolled(link, params["session"]):
            return None
        (hanging,) = found[:1]
        self._hanging.remove(hanging)
        if hanging.answered is not None:  # it is too late
            return hanging.tag, hanging.answered
        return hanging.tag, told(hanging.asked, self.model.stop(hanging.asked), None, self._secret)

    def _strike(self, step: Step, operation: str, instance: Json) -> HostFaultKind | None:
        struck: HostFaultKind | None = None
        for fault, count in self._faults:
            fits = fault.at is step and fault.operation in (None, operation) and fault.instance in (None, instance)
            count[0] += fits
            if fits and struck is None and fault.nth in (None, count[0]):
                struck = fault.kind
        return struck

    def _change(self, kind: HostFaultKind | None, instance: str, operation: str = "") -> None:
        """Change the world, if the fault does."""
        model = self.model
        if kind in OF_CAPABILITY:
            model.change_ability(instance, operation, _ABILITIES[kind](operation))
        elif kind is not None:
            changes: dict[HostFaultKind, Callable[[], None]] = {
                _K.REPUBLISH: lambda: model.republish(instance),
                _K.TEAR_DOWN: lambda: model.tear_down(instance),
                _K.MOVE_STATE: lambda: model.move_state(instance),
                _K.TWIN: lambda: model.twin(instance),
                _K.END_SESSIONS: model.end_sessions,
            }
            changes[kind]()

    def _answered(
        self, step: Step, link: int, params: dict[str, Json], asked: Asked | None, kind: HostFaultKind | None
    ) -> Answered:
        if kind is _K.NONSENSE:
            return self._answered(step, link, params, asked, None)._replace(result={"answer": 42}, made=())
        if asked is not None:
            failed = Failed("internal", "something went wrong")
            said = self.model.refuse(asked, failed) if kind is _K.FAIL_BEFORE else self.model.execute(asked)
            return told(asked, said, kind, self._secret)
        match step, params:
            case Step.ENROL, {"client": str(client), "peer": str(), **more} if not more:
                return Answered({"session": self.model.enrol(link, client)})
            case Step.INVENTORY, {"session": str(session), **more} if not more:
                if self.model.enrolled(link, session):
                    return Answered({"instances": [each.described() for each in self.model.live]})
                return Answered({}, HostError("the session is over", ended=True))
            case Step.NEGOTIATE, {"session": str(session), "instance": str(instance), "publication": str(published)}:
                if not self.model.enrolled(link, session):
                    return Answered({}, HostError("the session is over", ended=True))
                if self.model.exactly(instance, published) is None:
                    return Answered({}, HostError("there is no such publication"))
                return Answered({"offer": dict(OFFER if kind is None else _OFFERS.get(kind, OFFER))})
        return Answered({}, HostError(f"the params are none of `{step}`"))


def read_request(link: int, params: dict[str, Json]) -> Asked | None:
    """The request that params are, to the letter; None if they are none."""
    if params.keys() != set(Asked._fields[1:]):
        return None
    *texts, version, generation = (params[name] for name in Asked._fields[1:])
    expected = generation is None or (type(generation) is int and 0 <= generation <= SAFE_INTEGER)
    if not all(type(each) is str for each in texts) or type(version) is not int or not expected:
        return None
    return Asked._make((link, *texts, version, generation))


def _meant(asked: Asked, params: dict[str, Json]) -> bool:
    """Whether params are the cancellation of this request, with all that it goes by."""
    match params:
        case {"session": str(), "reason": str(), **named} if named == {
            "request_id": asked.request_id,
            "instance": asked.instance,
            "publication": asked.publication,
            "client": asked.client,
        }:
            return True
    return False


_BEFORE_IT: Final = {
    _K.REPUBLISH_BEFORE: _K.REPUBLISH,
    _K.TEAR_DOWN_BEFORE: _K.TEAR_DOWN,
    _K.MOVE_STATE_BEFORE: _K.MOVE_STATE,
    _K.END_SESSIONS_BEFORE: _K.END_SESSIONS,
}
_AFTER_IT: Final = {_K.REPUBLISH_AFTER: _K.REPUBLISH, _K.TEAR_DOWN_AFTER: _K.TEAR_DOWN}
_ABILITIES: Final[dict[HostFaultKind | None, Callable[[str], Ability | None]]] = {
    _K.LACKS: lambda _: None,
    _K.UNBUILT: lambda operation: Ability(operation, built=False),
    _K.UNAVAILABLE: lambda operation: Ability(operation, available=False),
    _K.INACTIVE: lambda operation: Ability(operation, activated=False),
}
