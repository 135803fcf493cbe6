"""Faults of a workload, declared as data and played the same way in a process and in process-free cases.

A fault may name a tool, and the number of the call that it strikes: that tool's n-th call, or the
workload's n-th call of any tool. Without a number it strikes each. Of several that fit one call the
first strikes. `drift_tools` without tool and number strikes at once; `how` says what of the list is another then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum, unique
from typing import Final, NamedTuple

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.workloads.drifts import Drift, drifted
from assisted_benchmark.workloads.model import Model


@unique
class FaultKind(StrEnum):
    """What goes wrong. `before` and `after` are those of the act; the wire's own faults come after it."""

    HANG_BEFORE = "hang_before"
    HANG_AFTER = "hang_after"
    DIE_BEFORE = "die_before"
    DIE_AFTER = "die_after"
    DROP_ANSWER = "drop_answer"
    GARBAGE = "garbage"
    HALF_LINE = "half_line"
    DOUBLE_ANSWER = "double_answer"
    FOREIGN_ID = "foreign_id"
    CONTRADICT = "contradict"
    BAD_OUTPUT = "bad_output"
    DRIFT_TOOLS = "drift_tools"
    STDERR_FLOOD = "stderr_flood"


class Fault(NamedTuple):
    """One declared fault. `how` is a drift's alone; without one it is the description that drifts."""

    kind: FaultKind
    tool: str | None = None
    nth: int | None = None
    how: Drift | None = None

    @classmethod
    def parse(cls, value: Json) -> Fault:
        """From `{kind, tool?, nth?, how?}`, or InputError(wrong_value)."""
        if type(value) is not dict or not {"kind"} <= value.keys() <= {"kind", "tool", "nth", "how"}:
            raise InputError(Reason.WRONG_VALUE, f"`{value!r:.80}` is no fault of the form {{kind, tool?, nth?, how?}}")
        kind, tool, nth = value["kind"], value.get("tool"), value.get("nth")
        if kind not in list(FaultKind):
            raise InputError(Reason.WRONG_VALUE, f"`{kind!r:.80}` is no fault; there are {', '.join(FaultKind)}")
        if not (tool is None or type(tool) is str) or not (nth is None or (type(nth) is int and nth > 0)):
            raise InputError(Reason.WRONG_VALUE, f"a `{kind}` fault has a tool's name and a number from 1, or not")
        how = value.get("how")
        if how is not None and (kind != FaultKind.DRIFT_TOOLS or how not in list(Drift)):
            raise InputError(Reason.WRONG_VALUE, f"`how` is of `drift_tools`, and one of {', '.join(Drift)}")
        return cls(FaultKind(kind), tool, nth, None if how is None else Drift(how))


@unique
class Delivery(StrEnum):
    """What reaches the caller of an answer."""

    WHOLE = "whole"
    NEVER = "never"
    DIED = "died"
    GARBLED = "garbled"
    TWICE = "twice"


_DELIVERY: Final = {
    FaultKind.HANG_BEFORE: Delivery.NEVER,
    FaultKind.HANG_AFTER: Delivery.NEVER,
    FaultKind.DROP_ANSWER: Delivery.NEVER,
    FaultKind.FOREIGN_ID: Delivery.NEVER,
    FaultKind.DIE_BEFORE: Delivery.DIED,
    FaultKind.DIE_AFTER: Delivery.DIED,
    FaultKind.HALF_LINE: Delivery.DIED,
    FaultKind.GARBAGE: Delivery.GARBLED,
    FaultKind.DOUBLE_ANSWER: Delivery.TWICE,
}
_BEFORE: Final = frozenset({FaultKind.HANG_BEFORE, FaultKind.DIE_BEFORE})
HANGING: Final = frozenset({FaultKind.HANG_BEFORE, FaultKind.HANG_AFTER})
DYING: Final = frozenset({FaultKind.DIE_BEFORE, FaultKind.DIE_AFTER})
_LAST: Final = HANGING | DYING | {FaultKind.HALF_LINE}


class Answer(NamedTuple):
    """What a call came to.

    `result` is what the server answers even where that does not arrive; None if it did not act.
    """

    result: Json | None
    fault: FaultKind | None = None

    @property
    def delivery(self) -> Delivery:
        """How much of it the caller gets."""
        return Delivery.WHOLE if self.fault is None else _DELIVERY.get(self.fault, Delivery.WHOLE)


class Face:
    """A model behind its faults: the server without its process.

    `received` counts the calls that arrived, by tool; `changes` counts the `list_changed` notices;
    `ended` is the fault that hung or killed the server, after which it hears nothing.
    """

    def __init__(self, model: Model, faults: Iterable[Fault] = ()) -> None:
        self.model = model
        self.received: dict[str, int] = {}
        self.changes = 0
        self.ended: FaultKind | None = None
        self._drifted: list[Drift] = []
        self._faults: list[Fault] = []
        for fault in faults:
            self.arm(fault)

    def arm(self, fault: Fault) -> None:
        """From now on this fault too may strike."""
        if fault.kind is FaultKind.DRIFT_TOOLS and fault.tool is None and fault.nth is None:
            self._drift(fault.how)
        else:
            self._faults.append(fault)

    def tools(self) -> list[Json]:
        """The tool list as the server would answer it now."""
        tools = self.model.tools()
        for how in self._drifted:
            tools = drifted(tools, how)
        return tools

    def call(self, name: str, arguments: dict[str, Json]) -> Answer:
        """Let the call arrive, act unless a fault forbids it, and say what of the answer is delivered."""
        if self.ended is not None:
            return Answer(None, self.ended)
        self.received[name] = self.received.get(name, 0) + 1
        struck = self._strike(name) if self._faults else None
        if struck is None:
            return Answer(self.model.call(name, arguments))
        kind = struck.kind
        if kind in _LAST:
            self.ended = kind
        if kind in _BEFORE:
            return Answer(None, kind)
        result = self.model.call(name, arguments)
        if kind is FaultKind.DRIFT_TOOLS:
            self._drift(struck.how)
        spoil = _SPOIL.get(kind)
        return Answer(spoil(result) if spoil else result, kind)

    def _strike(self, name: str) -> Fault | None:
        for fault in self._faults:
            count = sum(self.received.values()) if fault.tool is None else self.received[name]
            if fault.tool in (None, name) and fault.nth in (None, count):
                return fault
        return None

    def _drift(self, how: Drift | None) -> None:
        self._drifted.append(how or Drift.DESCRIPTION)
        self.changes += 1


def _contradict(result: Json) -> Json:
    return {"structuredContent": {"accepted": True}, **result, "isError": True}


def _break_output(result: Json) -> Json:
    return {**result, "structuredContent": {"unexpected": 1}, "isError": False}


_SPOIL: Final[dict[FaultKind, Callable[[Json], Json]]] = {
    FaultKind.CONTRADICT: _contradict,
    FaultKind.BAD_OUTPUT: _break_output,
}
