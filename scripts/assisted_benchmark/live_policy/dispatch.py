"""One claimed call on its way: what may still stop it, and what its answer is worth."""

from __future__ import annotations

from enum import StrEnum, unique
from functools import lru_cache
from threading import Lock
from typing import Final, NamedTuple

from assisted_benchmark.contract.model import Tool
from assisted_benchmark.kernel.canonical import MIB, Json, parse
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import REASONS, Reason
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.policy import result_checker
from assisted_benchmark.live_policy.ports import NotSent, Reply, Uncertain
from assisted_benchmark.live_policy.states import State

_SHORT: Final = 1 << 14  # bytes: no longer answer is kept
_LONGEST: Final = 32 * MIB  # as long as a line of a server may be


@unique
class Moment(StrEnum):
    """Where a proposal's way can be interrupted by an experiment: faults strike at these."""

    OBSERVE = "observe"  # admitted; the server is about to be looked at
    CLAIM = "claim"  # the marker is about to be written
    CLAIMED = "claimed"  # the marker is durable, nothing is written to the server
    WRITE = "write"  # the last check said yes, the call is about to be written
    ANSWER = "answer"  # the answer, or its absence, is known
    SETTLE = "settle"  # the outcome is about to be recorded


class Outcome(NamedTuple):
    """What came of an admitted call. `reason` is None only for a success.

    `result` is the server's raw answer where it gave a usable one. `receipt_id` is None only if
    the ledger went down after the claim.
    """

    state: State
    reason: Reason | None
    receipt_id: str | None
    permit: Admitted
    result: bytes = b""
    detail: str = ""


class Flight:
    """A call between its marker and its end. The lock orders the gate against those who stop the grant.

    A grant keeps its last one, which tells its own calls from those that another broker carries.
    """

    __slots__ = ("claimed", "lock", "refused", "settled", "writing")

    def __init__(self, claimed: Claimed) -> None:
        self.claimed = claimed
        self.lock = Lock()
        self.refused: Reason | None = None
        self.writing = False
        self.settled = False

    def may_be_out(self) -> bool:
        """Whether the gate was passed: bytes of the call may have reached the server."""
        with self.lock:
            return self.writing

    def finish(self) -> bool:
        """Whether the caller is the one to record the end: true once."""
        with self.lock:
            first = not self.settled
            self.settled = True
            return first


class Verdict(NamedTuple):
    """The state that a group comes to, and why."""

    state: State
    reason: Reason | None
    detail: str = ""
    result: bytes = b""


def heard(answer: Refused | Outcome, *, reveal: bool = False) -> dict[str, str | None]:
    """What an agent is told of a call that did not succeed: always these two keys, and a coarse word.

    `reveal` gives the exact reason instead, for the study of agents that learn from it.
    """
    reason = answer.reason
    if reason is None:
        return {"refused": None, "receipt": answer.receipt_id}
    word = reason.value if reveal else REASONS[reason].coarse.value
    return {"refused": word, "receipt": answer.receipt_id}


def judge(reply: Reply, tool: Tool, flight: Flight) -> Verdict:
    """What a reply says, before the clocks and the host are asked once more. Unclear means unresolved."""
    if isinstance(reply, NotSent):
        reason = flight.refused or reply.reason
        return Verdict(State.EXPIRED if reason is Reason.EXPIRED else State.FAILED, reason, reply.detail)
    if isinstance(reply, Uncertain):
        return Verdict(State.UNRESOLVED, reply.reason, reply.detail)
    if not flight.writing:
        return Verdict(State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, "an answer to a call that its gate did not let out")
    judged = _remembered if len(reply.result) <= _SHORT else _judge_answer
    return judged(reply.result, reply.failed, tool)


def _judge_answer(result: bytes, failed: bool, tool: Tool) -> Verdict:
    try:
        value = parse(result, _LONGEST)
    except CanonicalError as error:
        return _invalid(f"the result is not admissible: {error.detail}")
    if type(value) is not dict:
        return _invalid("the result is not an object")
    schema = result_checker(tool)
    if failed:
        if "structuredContent" in value and (schema is None or not schema.faults(value["structuredContent"])):
            return _invalid("an error flag stands beside the body of a success")
        return Verdict(State.FAILED, Reason.FAILED, "the server answered that the call failed", result)
    fault = _success_fault(value)
    if fault:
        return _invalid(fault)
    if schema is not None:
        if "structuredContent" not in value:
            return _invalid("the structured content that the output schema demands is missing")
        faults = schema.faults(value["structuredContent"])
        if faults:
            return _invalid(f"structuredContent{faults[0].path}: {faults[0].message}")
    return Verdict(State.SUCCEEDED, None, "", result)


# An answer is worth the same whenever it is given, and servers give the same short ones again and again.
_remembered: Final = lru_cache(maxsize=64)(_judge_answer)


def _success_fault(value: Json) -> str:
    if value.get("isError", False) is not False:
        return "a success carries an error flag"
    return "" if type(value.get("content")) is list else "the result has no list of content"


def _invalid(detail: str) -> Verdict:
    return Verdict(State.UNRESOLVED, Reason.RESULT_INVALID, detail)
