"""Every state of a model, breadth first: what can be reached, what is wrong in it, and the shortest way there."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from attrs import field, frozen

from proofs.rows import Question


class Step(NamedTuple):
    """One thing that may happen: what it is, what the world is like after it, and what of a ledger it asked."""

    name: str
    after: Any
    asked: Question | None = None


# Whether a step from a state is as it should be.
Holds: TypeAlias = Callable[[Any, Step], bool]


class Model(Protocol):
    """A world in which things happen one at a time. States are values."""

    @property
    def name(self) -> str:
        """What it is a model of."""

    @property
    def start(self) -> Any:
        """How it begins."""

    @property
    def guards(self) -> Mapping[str, Holds]:
        """What must hold of every step, by name."""

    @property
    def invariants(self) -> Mapping[str, Holds]:
        """The same, of what `visible` gives of a step."""

    def visible(self, state: Any, step: Step) -> Hashable:
        """All that the invariants look at: they are asked once for each."""

    def steps(self, state: Any) -> Iterator[Step]:
        """All that may happen next."""

    def over(self, state: Any) -> bool:
        """Whether nothing is open any more."""


@frozen
class Explored:
    """A closed exploration. `broken` has, for each invariant that does not hold, the shortest way to break it.

    `stuck` is the shortest way to a state from which nothing is ever over; None if there is no such state.
    `asked` are the different questions to a ledger, each with the rows that it was asked at.
    """

    states: int
    edges: int
    broken: dict[str, tuple[str, ...]]
    stuck: tuple[str, ...] | None
    asked: frozenset[tuple[Any, Question]] = field(repr=False)

    @property
    def sound(self) -> bool:
        """Whether everything holds."""
        return not self.broken and self.stuck is None


def explore(model: Model, *, only: str | None = None) -> Explored:
    """Visit every state. With `only`, that invariant is looked at alone, and its first break ends the visit."""
    guards = [each for each in model.guards.items() if only in (None, each[0])]
    invariants = [each for each in model.invariants.items() if only in (None, each[0])]
    seen: set[Hashable] = set()
    came: dict[Any, tuple[Any, str]] = {model.start: (None, "")}
    before: defaultdict[Any, list[Any]] = defaultdict(list)
    broken: dict[str, tuple[str, ...]] = {}
    asked: set[tuple[Any, Question]] = set()
    ends = []
    edges = 0
    waiting = deque([model.start])
    while waiting and not (only and broken):
        state = waiting.popleft()
        if model.over(state):
            ends.append(state)
        for step in model.steps(state):
            edges += 1
            visible = model.visible(state, step)
            for name, holds in guards if visible in seen else (*guards, *invariants):
                if name not in broken and not holds(state, step):
                    broken[name] = (*_way(came, state), step.name)
            seen.add(visible)
            if step.asked is not None:
                asked.add((state.rows, step.asked))
            before[step.after].append(state)
            if step.after not in came:
                came[step.after] = (state, step.name)
                waiting.append(step.after)
    return Explored(len(came), edges, broken, None if only else _stuck(came, before, ends), frozenset(asked))


def _stuck(
    came: dict[Any, tuple[Any, str]], before: Mapping[Any, list[Any]], ends: list[Any]
) -> tuple[str, ...] | None:
    """The shortest way to a state that leads to no end."""
    leading = set(ends)
    waiting = list(ends)
    while waiting:
        for state in before.get(waiting.pop(), ()):
            if state not in leading:
                leading.add(state)
                waiting.append(state)
    # States came in the order of their distance.
    return next((_way(came, state) for state in came if state not in leading), None)


def _way(came: Mapping[Any, tuple[Any, str]], state: Any) -> tuple[str, ...]:
    names = []
    while state is not None:
        state, name = came[state]
        names.append(name)
    return tuple(names[-2::-1])
