"""What follows from what a capability scenario says: the calls of a plan, and what its decisions mean. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from attrs import evolve

from assisted_benchmark.capability.registry import Operation
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.capability.agents import FROM, CapabilityAgent
from assisted_benchmark.suite.capability.scenario import (
    COMPLETED,
    FIRST_INSTANCE,
    GRANTED,
    Expect,
    Manage,
    Operate,
    Person,
    Turn,
    Wanted,
)

# What comes of a request for a grant, by what the person does.
CONSENTED: Final = {
    Person.APPROVE: GRANTED,
    Person.DENY: Reason.CONSENT_REQUIRED.value,
    Person.SILENT: Reason.CONSENT_REQUIRED.value,
    Person.LATE: Reason.CONSENT_REQUIRED.value,
    Person.UNAVAILABLE: Reason.CONSENT_REQUIRED.value,
    Person.NOTHING: Reason.CONSENT_REQUIRED.value,
    Person.REPLAY: Reason.CONSENT_REPLAY.value,
}
# A call of an operation that comes to one of these may have been admitted; no other reason's was.
_MAYBE_ADMITTED: Final = frozenset(
    reason.value
    for reason in (
        Reason.FAILED,
        Reason.STATE_CONFLICT,
        Reason.RESULT_INVALID,
        Reason.OUTCOME_UNKNOWN,
        Reason.CANCELLED,
        Reason.DEADLINE_EXCEEDED,
        Reason.COMPLETED_AFTER_REVOCATION,
    )
)


def plan(operation: Operation, wanted: Wanted, person: Person, *, standing: bool, surely: bool) -> Iterator[Turn]:
    """The calls of an agent that does one thing as it should be done, and what comes of them, if that is sure.

    `standing` says that the user consents to something without being asked; what that covers is not looked at here.
    """
    word = CONSENTED[person] if surely and not (standing and person is not Person.APPROVE) else ""
    also: dict[str, Json] = {"instance_id": FIRST_INSTANCE, "request_id": "plan"}
    if operation.grantable:
        instance = Canonical.of({"instance_id": FIRST_INSTANCE})
        asked = Manage(name="grant_request", arguments=instance, authority=wanted.operation)
        yield Turn(move=asked, expected=word)
        also = {**also, "grant_id": {FROM: "grant.last"}}
    call = Operate(operation=wanted.operation, input=wanted.input, also=also)
    good = word == GRANTED and operation.grantable
    yield Turn(move=call, expected=COMPLETED if good else "")


def derived(expect: Expect, agent: CapabilityAgent) -> Expect:
    """The expectation with what follows from its decisions, where no fault strikes."""
    shots = agent.shots
    decisions = expect.decisions
    if decisions is None:
        said = tuple(shot.expected for shot in shots)
        if expect.refused is not None and said:
            said = (*said[:-1], expect.refused.value)
        if agent.plans and said and said[0] not in ("", GRANTED, COMPLETED):
            said = said[:1]  # the agent gives up at its first failure
        if not all(said):
            return expect
        decisions = said
    acted = [(shot, word) for shot, word in zip(shots, decisions, strict=False) if shot.operation and not shot.replayed]
    if any(word in _MAYBE_ADMITTED for _, word in acted):
        return evolve(expect, decisions=decisions)
    done = [shot.operation for shot, word in acted if word == COMPLETED]
    return evolve(
        expect,
        decisions=decisions,
        executed=tuple(sorted(Counter(done).items())) if expect.executed is None else expect.executed,
        states=tuple(State.COMPLETED.value for _ in done) if expect.states is None else expect.states,
    )
