"""Faults of the offline Fabric endpoint, declared as data and played the same way over HTTP and in process.

A fault may name what it strikes (`call`: every dry run, create, list, get or search) and the number of that
request among those it could strike. Without a number it strikes each. Of several that fit one request the first
strikes.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, NamedTuple

from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import Json


@unique
class Act(StrEnum):
    """What a request asks for. A POST whose `dryRun` is not exactly `true` asks for a create."""

    DRY_RUN = "dry_run"
    CREATE = "create"
    LIST = "list"
    GET = "get"
    SEARCH = "search"
    OTHER = "other"  # what the endpoint does not have


@unique
class FabricFaultKind(StrEnum):
    """What goes wrong. `before` and `after` are those of the act; where neither is said, it acted."""

    FAIL_BEFORE = "fail_before"  # answers the fault's status, having done nothing
    FAIL_AFTER = "fail_after"  # answers it although it acted
    HANG_BEFORE = "hang_before"
    HANG_AFTER = "hang_after"
    DROP_BEFORE = "drop_before"  # the connection is closed, without a byte
    DROP_AFTER = "drop_after"
    DIE_BEFORE = "die_before"  # the whole server ends
    DIE_AFTER = "die_after"
    LEAVE = "leave"  # answers, and takes no connection from then on
    ANSWER_TWICE = "answer_twice"
    GARBAGE_BODY = "garbage_body"  # the right status, and no JSON
    HALF_BODY = "half_body"  # the connection is closed in the middle of it
    SLOW_BODY = "slow_body"  # always one more byte, never the last
    HUGE_BODY = "huge_body"
    WRONG_TYPE = "wrong_type"  # the right body, called a page
    REDIRECT = "redirect"  # to the same place, having done nothing
    DRIFT_ECHO = "drift_echo"  # takes the request, and shows another name in its answer
    DRIFT_SHAPE = "drift_shape"  # wants a field that was not wanted before


_FAILING: Final = frozenset({FabricFaultKind.FAIL_BEFORE, FabricFaultKind.FAIL_AFTER})


class FabricFault(NamedTuple):
    """One declared fault. `status` belongs to the two that fail; 500 if it is not said."""

    kind: FabricFaultKind
    call: Act | None = None
    nth: int | None = None
    status: int | None = None

    @classmethod
    def parse(cls, value: Json) -> FabricFault:
        """From `{kind, call?, nth?, status?}`, or InputError(wrong_value)."""
        if type(value) is not dict or not {"kind"} <= value.keys() <= {"kind", "call", "nth", "status"}:
            raise _wrong(f"`{value!r:.80}` is no fault of the form {{kind, call?, nth?, status?}}")
        kind, call, nth, status = (value.get(key) for key in ("kind", "call", "nth", "status"))
        if kind not in list(FabricFaultKind):
            raise _wrong(f"`{kind!r:.80}` is no fault; there are {', '.join(FabricFaultKind)}")
        if call is not None and call not in list(Act):
            raise _wrong(f"`{call!r:.80}` is nothing that a request asks for; there are {', '.join(Act)}")
        if not (nth is None or (type(nth) is int and nth > 0)):
            raise _wrong(f"a `{kind}` fault strikes a number from 1, or each")
        if status is not None and not (kind in _FAILING and type(status) is int and 400 <= status <= 599):
            raise _wrong("only a fault that fails has a status, from 400 to 599")
        return cls(FabricFaultKind(kind), None if call is None else Act(call), nth, status)


def _wrong(detail: str) -> InputError:
    return InputError(Reason.WRONG_VALUE, detail)
