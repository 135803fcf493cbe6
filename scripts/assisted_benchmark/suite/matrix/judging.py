"""The reason matrix: each guard of each broker is taken away in turn, and something that ships has to notice.

What notices are the shipped cases and public vectors: a mutant is killed by one that does not come to what it says,
whatever the mutant answers instead, lets through or cannot finish; which of these it was is counted. Only
those are tried in which the guard answers, or its line is come to: to the others the mutant is the broker itself.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from attrs import evolve, frozen

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.matrix.explained import Explained
from assisted_benchmark.suite.matrix.guards import PACKAGE, Guard, How, spots
from assisted_benchmark.suite.matrix.lacking import forget, function_of, lacking, noting, target_of
from assisted_benchmark.suite.matrix.lists import LISTS
from assisted_benchmark.suite.plan import MEMORY, RunPlan
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.vectors.players import NO_ANSWER, answer
from assisted_benchmark.suite.vectors.vector import Vector
from assisted_benchmark.suite.vectors.watching import plays_here

SHARED: Final = "shared"
# Where the reasons of each broker's answers are given: its own room; and what all of them read bytes and claim by.
_ROOMS: Final = {"live": ("live_policy",), "mutation": ("mutation",), "capability": ("capability",)}
BROKERS: Final = (*_ROOMS, SHARED)
_SHARED: Final = ("kernel.strict_json", "kernel.names", "ledger.memory", "ledger.receipts", "ledger.exported")
# No answers of a broker: worlds that count, documents that are loaded (their faults have a test each), and the edges
# that carry bytes to a real peer, which cases in one process do not use.
_ELSEWHERE: Final = frozenset(
    {
        "live_policy.counting",
        "live_policy.compiler",
        "mutation.counting",
        "mutation.changes_document",
        "mutation.http_endpoint",
        "mutation.http_outcomes",
        "capability.counting",
        "capability.registry_document",
        "capability.socket_host",
        "capability.socket_host_messages",
    }
)


# Where a guard answers: a line of a module, or a check that says no.
Place: TypeAlias = tuple[str, int] | str


class Came(NamedTuple):
    """What an exam came to: whether it was as it says, how many calls were sent, what was refused, if it could run."""

    passed: bool
    sent: int
    words: frozenset[str]
    ran: bool = True


class Exam(Protocol):
    """One thing that ships and says what has to come of it."""

    @property
    def id(self) -> str: ...

    @property
    def broker(self) -> str: ...

    def sit(self) -> Came:
        """Try it on the brokers as they are now, made anew."""


@frozen
class CaseExam:
    """A case of a scenario."""

    case: Case

    @property
    def id(self) -> str:
        return self.case.id

    @property
    def broker(self) -> str:
        return self.case.broker

    def sit(self) -> Came:
        with closing(Bench(RunPlan(durability=MEMORY))) as bench:
            result = bench.run(self.case).result
        words = frozenset(word for word, _ in result.refusals)
        ran = result.verdict is not Verdict.COULD_NOT_RUN
        return Came(result.verdict is Verdict.PASSED, result.sent, words, ran)


@frozen
class VectorExam:
    """A public vector."""

    vector: Vector

    @property
    def id(self) -> str:
        return f"vectors/{self.vector.kind}/{self.vector.id}"

    @property
    def broker(self) -> str:
        return self.vector.kind if self.vector.kind in _ROOMS else SHARED

    def sit(self) -> Came:
        found = answer(self.vector)
        told = found if type(found) is list else [found]
        words = frozenset(str(each["code"]) for each in told if type(each) is dict and "code" in each)
        return Came(canonical_bytes(found) == canonical_bytes(self.vector.expected), 0, words, NO_ANSWER not in words)


def exams_of(cases: Sequence[Case], vectors: Sequence[Vector] = ()) -> tuple[Exam, ...]:
    """The vectors, and the cases whose brokers and servers are all here: of another process nothing can be taken."""
    return (*map(CaseExam, filter(plays_here, cases)), *map(VectorExam, vectors))


@frozen(kw_only=True)
class Tried:
    """What came of one mutant. `caught` counts the exams that meet the reason and failed: of them `let_through` sent
    more than the whole broker does, `stuck` could not run, and the others were told another answer.
    """

    guard: Guard
    broker: str
    reached: int
    killed_by: str
    caught: int
    let_through: int
    stuck: int
    explained: Explained | None = None

    @property
    def killed(self) -> bool:
        """Whether an exam failed."""
        return self.killed_by != ""

    @property
    def otherwise(self) -> int:
        """Exams that were only told another answer."""
        return self.caught - self.let_through - self.stuck


@frozen(kw_only=True)
class Row:
    """A reason of a broker: what came of the mutants that lack one of its guards each."""

    broker: str
    reason: Reason
    tried: tuple[Tried, ...]


@frozen(kw_only=True)
class Matrix:
    """All rows, and what is said of a guard though it is not so."""

    rows: tuple[Row, ...]
    stale: tuple[str, ...]
    failing: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether every mutant is killed or shown to be shadowed, and nothing is stale."""
        left = [each for row in self.rows for each in row.tried if not each.killed and each.explained is None]
        return not (left or self.stale or self.failing)


class _Known(NamedTuple):
    exam: Exam
    came: Came
    met: frozenset[Place]


class Judge:
    """Knows what every exam comes to with the whole brokers, and tries mutants by them."""

    def __init__(self, exams: Sequence[Exam]) -> None:
        watched = _watched_code()
        known = [_watched(exam, watched) for exam in exams]
        self.failing = tuple(each.exam.id for each in known if not each.came.passed)
        self._known = [each for each in known if each.came.passed]

    def kills(self, broker: str, *guards: Guard) -> Tried:
        """What comes of the mutant that lacks these guards; it is called by the first."""
        first = guards[0]
        likely, others = self._candidates(broker, guards)
        caught = let_through = stuck = 0
        killer = ""
        with lacking(*guards):
            for each in likely:
                came = each.exam.sit()
                if not came.passed:
                    killer = killer or each.exam.id
                    caught += 1
                    let_through += came.sent > each.came.sent
                    stuck += not came.ran
            if not killer:
                killer = next((each.exam.id for each in others if not each.exam.sit().passed), "")
        return Tried(
            guard=first,
            broker=broker,
            reached=len(likely) + len(others),
            killed_by=killer,
            caught=caught,
            let_through=let_through,
            stuck=stuck,
        )

    def _candidates(self, broker: str, guards: tuple[Guard, ...]) -> tuple[list[_Known], list[_Known]]:
        mine = [each for each in self._known if broker in (SHARED, each.exam.broker)]
        places = {guard.name if guard.how is How.CHECK else (guard.module, guard.line) for guard in guards}
        mine = [each for each in mine if places & each.met]
        words = {guard.reason.value for guard in guards}
        likely = [each for each in mine if words & each.came.words]
        return likely, [each for each in mine if not words & each.came.words]


def _watched_code() -> dict[CodeType, str]:
    """The code of every function that has guards, with what is in it, and its module."""
    found: dict[CodeType, str] = {}
    for broker in BROKERS:
        for guard in guards_of(broker):
            if guard.how is not How.CHECK:
                _add(function_of(guard.module, target_of(guard)).__code__, guard.module, found)
    return found


def _add(code: CodeType, module: str, found: dict[CodeType, str]) -> None:
    found[code] = module
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _add(inner, module, found)


def _watched(exam: Exam, watched: dict[CodeType, str]) -> _Known:
    """The exam with the whole broker, and every line of these functions that it comes to."""
    met: set[Place] = set()

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            met.add((watched[frame.f_code], frame.f_lineno))
        return on_line

    forget()
    before = sys.gettrace()
    sys.settrace(lambda frame, _event, _: on_line if frame.f_code in watched else None)
    try:
        with noting(met.add):
            came = exam.sit()
    finally:
        sys.settrace(before)
    return _Known(exam, came, frozenset(met))


def guards_of(broker: str) -> tuple[Guard, ...]:
    """Every guard of a broker, or of what they share: of its lists first, then of its modules."""
    if broker == SHARED:
        return tuple(spot.guard for module in _SHARED for spot in spots(module))
    rooms = _ROOMS[broker]
    listed = [guard for each in LISTS if each.module.partition(".")[0] in rooms for guard in each.guards]
    modules = [module for room in rooms for module in _modules(room) if module not in _ELSEWHERE]
    return (*listed, *(spot.guard for module in modules for spot in spots(module)))


def _modules(room: str) -> Iterator[str]:
    package = importlib.import_module(f"{PACKAGE}.{room}")
    return (f"{room}.{each.name}" for each in pkgutil.iter_modules(package.__path__))


def matrix(exams: Sequence[Exam], explained: Sequence[Explained]) -> Matrix:
    """Every mutant of every broker, tried by these exams; survivors are looked up in what is `explained`."""
    judge = Judge(exams)
    said = {each.guard: each for each in explained}
    names = {guard.name: guard for broker in BROKERS for guard in guards_of(broker)}
    stale = [f"{name}: there is no such guard" for name in said if name not in names]
    rows = []
    for broker in BROKERS:
        ordered = sorted(guards_of(broker), key=lambda each: list(Reason).index(each.reason))
        for reason, group in groupby(ordered, key=lambda each: each.reason):
            tried = [judge.kills(broker, guard) for guard in group]
            for place, each in enumerate(tried):
                known = said.get(each.guard.name)
                if known is not None and (wrong := _wrong(judge, each, known, names)):
                    stale.append(f"{known.guard}: {wrong}")
                elif known is not None:
                    tried[place] = evolve(each, explained=known)
            rows.append(Row(broker=broker, reason=reason, tried=tuple(tried)))
    return Matrix(rows=tuple(rows), stale=tuple(stale), failing=judge.failing)


def _wrong(judge: Judge, tried: Tried, said: Explained, names: dict[str, Guard]) -> str:
    """What of an explanation is not so."""
    if tried.killed:
        return f"the mutant that lacks it is killed by {tried.killed_by}"
    unknown = [each for each in said.behind if each not in names]
    if unknown:
        return f"there is no guard `{unknown[0]}`"
    if said.behind and not judge.kills(tried.broker, tried.guard, *(names[each] for each in said.behind)).killed:
        return "the mutant that lacks those behind it as well lives"
    return ""
