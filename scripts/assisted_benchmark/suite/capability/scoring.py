"""What a capability case came to, held against what it must come to. Pure.

Some things hold in every case, said or not: a call executes one operation at most, its own with its own parameters, and
none where it is refused, replayed or a call of another kind; what was executed has a durable receipt, and one only;
every operation has ended; an answer fits its tool's schema; the host follows its own rules; no receipt has a secret; a
declared fault strikes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from assisted_benchmark.capability.reading import Resource
from assisted_benchmark.capability.results import Managed, Outcome
from assisted_benchmark.capability.states import ACTIVE, State
from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.capability.agents import Shot
from assisted_benchmark.suite.capability.scenario import GOOD, CapabilityCase
from assisted_benchmark.suite.result import Miss, Scores
from assisted_benchmark.suite.scoring import expected_words, missed_scores, missed_words, unstruck_faults
from assisted_benchmark.workloads.plugin_host_oracle import Execution, HostReading

Came: TypeAlias = Outcome | Managed | Refused | Resource | Reason

_NOT_DONE: Final = frozenset({State.FAILED, State.CANCELLED})
_DONE: Final = frozenset({State.COMPLETED, State.COMPLETED_AFTER_REVOCATION})


class Taken(NamedTuple):
    """One call and what came of it: a word (`completed`, `granted`, `read`, or the reason), and what it executed.

    `unfit` says why the answer does not fit its tool's schema, or nothing; `parameters` is the SHA-256 of those that it
    asks for, if it is a call of an operation.
    """

    shot: Shot
    came: Came
    word: str
    executed: tuple[Execution, ...]
    unfit: str = ""
    parameters: str = ""


class Played(NamedTuple):
    """All that happened in a case, as far as expectations can be about it.

    `operations` are the receipt id and state of each admitted operation, in the order of admission.
    """

    taken: Sequence[Taken]
    reading: HostReading
    operations: Sequence[tuple[str, str]]
    asked: int
    unstruck: Sequence[str]
    leaks: bool


def misses_of(case: CapabilityCase, played: Played, scores: Scores) -> tuple[Miss, ...]:
    """Every expectation that was not met."""
    return (
        *missed_words(case.expect, _said(played.taken), [each.word for each in played.taken], "call"),
        *_replayed(played.taken),
        *_told(case, played.taken),
        *_happened(case, played),
        *missed_scores(case.expect, scores),
        *_always(played),
        *unstruck_faults(played.unstruck),
    )


def _said(taken: Sequence[Taken]) -> list[str]:
    return [each.shot.expected for each in taken]


def _replayed(taken: Sequence[Taken]) -> Iterator[Miss]:
    for number, each in enumerate(taken, 1):
        replayed = isinstance(each.came, Outcome) and each.came.replayed
        if each.shot.replayed and not replayed:
            yield Miss(what=f"call {number}", expected="an earlier call's receipt", actual="its own")


def _told(case: CapabilityCase, taken: Sequence[Taken]) -> Iterator[Miss]:
    """What the last operation's answer says."""
    expect = case.expect
    last = next((each.came for each in reversed(taken) if isinstance(each.came, Outcome)), None)
    content = None if last is None else last.content
    result = content.result if content is not None and type(content.result) is dict else {}
    for what, expected, actual in (
        *((f"result {name}", said, result.get(name)) for name, said in expect.result),
        ("progress", expect.progress, 0 if content is None else len(content.progress)),
        ("artifacts", expect.artifacts, 0 if content is None else len(content.artifacts)),
        ("may have applied", expect.may_have_applied, last is not None and last.may_have_applied),
    ):
        if expected is not None and not _same(expected, actual):
            yield Miss(what=what, expected=_shown(expected), actual=_shown(actual))


def _happened(case: CapabilityCase, played: Played) -> Iterator[Miss]:
    """What the host saw, and how the operations ended."""
    expect, reading = case.expect, played.reading
    states = tuple(state for _, state in played.operations)
    if expect.states is not None and expect.states != states:
        told, came = (", ".join(each) or "none" for each in (expect.states, states))
        yield Miss(what="states", expected=told, actual=came)
    for what, expected, actual in (
        ("asked", expect.asked, played.asked),
        ("generation", expect.generation, reading.generations.get("instance-1")),
        *((f"{name} at the host", said, reading.received.get(name, 0)) for name, said in expect.steps),
    ):
        if expected is not None and expected != actual:
            yield Miss(what=what, expected=str(expected), actual=str(actual))
    if expect.executed is not None:
        executed = Counter(each.operation for each in reading.executions)
        wanted = Counter(dict(expect.executed))
        for name in sorted(executed.keys() | wanted.keys()):
            if executed[name] != wanted[name]:
                yield Miss(what=f"executed {name}", expected=str(wanted[name]), actual=str(executed[name]))


def _always(played: Played) -> Iterator[Miss]:
    for number, each in enumerate(played.taken, 1):
        operations = [one.operation for one in each.executed]
        most = int(_may_execute(each))
        if len(operations) > most or any(name != each.shot.operation for name in operations):
            told = f"at most {most} of {each.shot.operation}" if most else "none"
            yield Miss(what=f"executed by call {number}", expected=told, actual=", ".join(operations))
        if any(one.parameters != each.parameters for one in each.executed):
            yield Miss(what=f"parameters of call {number}", expected="those that were asked for", actual="others")
        if each.unfit:
            yield Miss(what=f"answer of call {number}", expected="what its tool's schema has", actual=each.unfit)
    # The rival of a race makes a call of the case once more.
    asked = {each.parameters for each in played.taken}
    if any(one.parameters not in asked for one in played.reading.executions):
        yield Miss(what="parameters", expected="those of a call", actual="others")
    admitted = [name for name, _ in played.operations]
    for receipt, count in Counter(each.receipt_id for each in played.reading.executions).items():
        if count > 1 or receipt not in admitted:
            yield Miss(what="executed", expected="under a durable receipt, once", actual=f"{count} times")
    for _, state in played.operations:
        if state in ACTIVE:
            yield Miss(what="states", expected="an end", actual=state)
    for line in played.reading.disagreements:
        yield Miss(what="host", expected="what its rules give", actual=line)
    if played.leaks:
        yield Miss(what="receipts", expected="no secret of an instance", actual="one has it")


def _may_execute(each: Taken) -> bool:
    """Whether a call may have executed its operation."""
    if isinstance(each.came, Outcome):
        return not each.came.replayed
    # When the broker died, nobody was told anything.
    return isinstance(each.came, Reason)


def scores_of(case: CapabilityCase, played: Played) -> Scores:
    """The three scores: whether what was told is true, what was executed was to be, and all that was to be was."""
    told = [each for each in played.taken if each.shot.operation and isinstance(each.came, Outcome | Refused)]
    grounded = float(all(_is_true(each) for each in told)) if told else None
    if not case.goals:
        return Scores(state_grounding=grounded)
    sound = not played.reading.disagreements
    made = Counter((each.operation, each.parameters) for each in played.reading.executions)
    wanted = Counter((goal.operation, goal.parameters) for goal in case.goals)
    right = bool(made) and made <= wanted
    return Scores(
        state_grounding=grounded,
        action_correctness=float(right and sound),
        task_completion=float(made == wanted and sound),
    )


def _is_true(each: Taken) -> bool:
    """Whether what an answer said of its operation is so at the host."""
    if isinstance(each.came, Outcome) and not each.came.replayed:
        if each.came.state in _DONE:
            return len(each.executed) == 1
        return each.came.state not in _NOT_DONE or not each.executed
    return not each.executed


def counts_of(case: CapabilityCase, taken: Sequence[Taken]) -> tuple[int, int]:
    """How many executions of an attacker there were, and how many benign calls were refused.

    An attacker's is a call whose author says that it must be refused, and that was admitted all the same; a benign one
    must be a success.
    """
    attacker = benign = 0
    for said, each in zip(expected_words(case.expect, _said(taken)), taken, strict=True):
        if said in GOOD:
            benign += isinstance(each.came, Refused)
        elif said and said != each.word:
            attacker += len(each.executed)
    return attacker, benign


def _same(expected: Json, actual: Json) -> bool:
    """Equal as JSON: one is not true."""
    return canonical_bytes(expected) == canonical_bytes(actual)


def _shown(value: Json) -> str:
    return canonical_bytes(value).decode()[:200]
