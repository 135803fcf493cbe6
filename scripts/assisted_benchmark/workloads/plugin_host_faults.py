"""Faults of the plugin host, declared as data and played the same way over a socket and in process.

A fault strikes a step (`request` where none is said), of requests perhaps only those of one operation or on one
instance, and of those the `nth` since it was armed; without a number it strikes each. Of several that fit the first
strikes. Some are bound to one step by their nature; some change the host as soon as they are armed, and have no step.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, NamedTuple

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.strict_json import Json


@unique
class Step(StrEnum):
    """What a client asks of the host and waits for."""

    ENROL = "enrol"
    INVENTORY = "inventory"
    NEGOTIATE = "negotiate"
    REQUEST = "request"


@unique
class HostFaultKind(StrEnum):
    """What goes wrong. `before` and `after` are those of the act; where neither is said, it acted."""

    # any step: how the answer is delivered
    HANG_BEFORE = "hang_before"  # until it is cancelled, and then it says so
    HANG_AFTER = "hang_after"  # until it is cancelled, which is too late: then it answers
    DROP_BEFORE = "drop_before"  # the connection is closed
    DROP_AFTER = "drop_after"
    DIE_BEFORE = "die_before"  # the whole host ends
    DIE_AFTER = "die_after"
    ANSWER_TWICE = "answer_twice"
    FOREIGN_ID = "foreign_id"  # the answer goes to an id that nobody used
    GARBAGE = "garbage"  # a line that is none, and then the answer
    BAD_ANSWER = "bad_answer"  # the answer has a key twice
    HALF_LINE = "half_line"  # half the answer, and the connection is closed
    HUGE_LINE = "huge_line"  # more than a line may have, instead of the answer
    ERROR = "error"  # an error, having done nothing
    NONSENSE = "nonsense"  # an answer of another shape
    # any step: the world changes under it
    REPUBLISH_BEFORE = "republish_before"  # the instance publishes anew
    REPUBLISH_AFTER = "republish_after"
    TEAR_DOWN_BEFORE = "tear_down_before"  # the instance is gone
    TEAR_DOWN_AFTER = "tear_down_after"
    MOVE_STATE_BEFORE = "move_state_before"  # its own user moves a parameter
    END_SESSIONS_BEFORE = "end_sessions_before"  # no client is enrolled any more
    # requests: what is said of them
    FAIL_BEFORE = "fail_before"  # says that it failed, having done nothing
    FAIL_AFTER = "fail_after"  # says so although it acted
    CANCELLED_AFTER = "cancelled_after"  # says that it was cancelled although it acted
    UNKNOWN_WORD = "unknown_word"
    FALSE_SCHEMA = "false_schema"  # a result with a key that its schema does not have
    NO_JSON = "no_json"  # a result that is no JSON text
    WRONG_GENERATION = "wrong_generation"  # a generation of the state that it does not have
    OTHER_RECEIPT = "other_receipt"  # a result that names another receipt
    CROSSED = "crossed"  # the answer to another request
    LEAK = "leak"  # the host's secret in code and explanation
    OTHER_BYTES = "other_bytes"  # an artifact that is not the one of its digest
    OTHER_ARTIFACT = "other_artifact"  # a whole artifact that the result does not name
    NO_ARTIFACT = "no_artifact"  # a result that names one which was not sent
    HUGE_ARTIFACT = "huge_artifact"
    MANY_ARTIFACTS = "many_artifacts"
    # requests: progress
    PROGRESS = "progress"  # as it should be
    PROGRESS_BACK = "progress_back"  # a number that does not rise
    PROGRESS_TOTAL = "progress_total"  # a total that changes
    PROGRESS_FLOOD = "progress_flood"
    PROGRESS_STRAY = "progress_stray"  # of a request that nobody made
    PROGRESS_LATE = "progress_late"  # after the answer
    # negotiation: what is offered
    OFFER_NEWER = "offer_newer"  # no common version
    OFFER_OLDER = "offer_older"  # nothing newer than the first version
    OFFER_INVALID = "offer_invalid"
    OFFER_MANDATES = "offer_mandates"  # insists on a feature that nobody knows
    OFFER_LACKS = "offer_lacks"  # knows no feature
    # at once
    REPUBLISH = "republish"
    TEAR_DOWN = "tear_down"
    MOVE_STATE = "move_state"
    END_SESSIONS = "end_sessions"
    TWIN = "twin"  # another instance with the same id
    LACKS = "lacks"  # the operation is not there at all
    UNBUILT = "unbuilt"
    UNAVAILABLE = "unavailable"
    INACTIVE = "inactive"


_K = HostFaultKind
_KINDS: Final = list(HostFaultKind)
_OF_NEGOTIATION: Final = frozenset(_KINDS[_KINDS.index(_K.OFFER_NEWER) : _KINDS.index(_K.REPUBLISH)])
_OF_REQUESTS: Final = frozenset(_KINDS[_KINDS.index(_K.FAIL_BEFORE) : _KINDS.index(_K.OFFER_NEWER)])
AT_ONCE: Final = frozenset(_KINDS[_KINDS.index(_K.REPUBLISH) :])
OF_CAPABILITY: Final = frozenset({_K.LACKS, _K.UNBUILT, _K.UNAVAILABLE, _K.INACTIVE})
HANGING: Final = frozenset({_K.HANG_BEFORE, _K.HANG_AFTER})
DROPPING: Final = frozenset({_K.DROP_BEFORE, _K.DROP_AFTER})
DYING: Final = frozenset({_K.DIE_BEFORE, _K.DIE_AFTER})


class HostFault(NamedTuple):
    """One declared fault. `instance` is the one that it strikes or is about: `instance-1`, where one has to be."""

    kind: HostFaultKind
    step: Step | None = None
    operation: str | None = None
    instance: str | None = None
    nth: int | None = None

    @classmethod
    def parse(cls, value: Json) -> HostFault:
        """From `{kind, step?, operation?, instance?, nth?}`, or InputError(wrong_value)."""
        if type(value) is not dict or not {"kind"} <= value.keys() <= set(cls._fields):
            raise _wrong(f"`{value!r:.80}` is no fault of the form {{kind, step?, operation?, instance?, nth?}}")
        kind, step, operation, instance, nth = map(value.get, cls._fields)
        if kind not in _KINDS:
            raise _wrong(f"`{kind!r:.80}` is no fault; there are {', '.join(_KINDS)}")
        if step is not None and step not in list(Step):
            raise _wrong(f"`{step!r:.80}` is no step; there are {', '.join(Step)}")
        if not all(each is None or type(each) is str for each in (operation, instance)):
            raise _wrong(f"a `{kind}` fault has the ids of an operation and an instance, or not")
        if not (nth is None or (type(nth) is int and nth > 0)):
            raise _wrong(f"a `{kind}` fault strikes a number from 1, or each")
        fault = cls(HostFaultKind(kind), None if step is None else Step(step), operation, instance, nth)
        if fault.misplaced:
            raise _wrong(f"a `{kind}` fault does not go with what else is said: {fault.misplaced}")
        return fault

    @property
    def at(self) -> Step:
        """The step that it strikes, if it strikes one."""
        return self.step or (Step.NEGOTIATE if self.kind in _OF_NEGOTIATION else Step.REQUEST)

    @property
    def misplaced(self) -> str:
        """What is said and makes no sense, or nothing."""
        if self.kind in AT_ONCE:
            if self.step is not None or self.nth is not None:
                return "it happens at once, so it has neither step nor number"
            wants = self.kind in OF_CAPABILITY
            return "" if (self.operation is not None) is wants else "an operation is for what it can do"
        if self.kind in _OF_REQUESTS and self.at is not Step.REQUEST:
            return "it is one of requests"
        if self.kind in _OF_NEGOTIATION and self.at is not Step.NEGOTIATE:
            return "it is one of negotiation"
        return "only requests have an operation" if self.operation and self.at is not Step.REQUEST else ""


def _wrong(detail: str) -> InputError:
    return InputError(Reason.WRONG_VALUE, detail)
