"""Deterministic schedules of real code: threads that run one at a time, and give way at named steps only.

What they do between two steps is one act to all others. Every way in which their acts can follow one another is tried,
each from the start in a world of its own; a process may also die at a step, and all its threads with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from attrs import define, field, frozen

_PATIENCE_S: Final = 20.0


class DiedError(BaseException):
    """The process ends here. No handler for errors may catch it: the dead handle nothing."""


class Act(NamedTuple):
    """One thread of a process, by the name of what it does."""

    name: str
    process: int
    do: Callable[[], object]


class World(Protocol):
    """One world, for one schedule."""

    @property
    def acts(self) -> Sequence[Act]:
        """What goes on in it at once."""

    def ends(self) -> str:
        """When all have ended: start anew, try everything again, and look. What is wrong, or nothing."""


class Choice(NamedTuple):
    """What happens next: a thread goes on, or its process dies."""

    process: int
    place: int
    dies: bool


# The thread that asks is the one that runs.
_current: Final = threading.local()

Schedule: TypeAlias = tuple[str, ...]


@frozen
class Tried:
    """How many schedules there were, and the shortest of those that went wrong, with what was wrong."""

    schedules: int
    wrong: int
    first: tuple[Schedule, str] | None


def step(name: str) -> None:
    """Give way. Outside of a schedule this does nothing."""
    thread: _Thread | None = getattr(_current, "thread", None)
    if thread is not None:
        thread.give_way(name)


def explore(
    world: Callable[[], World], *, preemptions: int | None = None, deaths: int = 0, until_wrong: bool = False
) -> Tried:
    """Try every schedule with at most so many preemptions (as many as there can be, if None) and deaths.

    With `until_wrong` the first that goes wrong is the last.
    """
    count = wrong = 0
    first: tuple[Schedule, str] | None = None
    waiting: list[tuple[int, ...]] = [()]
    while waiting and not (until_wrong and wrong):
        prefix = waiting.pop()
        made = world()
        run = _Run(made.acts, prefix, preemptions, deaths)
        words, branches = run.all()
        count += 1
        waiting += branches
        fault = run.fault or made.ends()
        if fault:
            wrong += 1
            if first is None or len(words) < len(first[0]):
                first = (words, fault)
    return Tried(count, wrong, first)


def follow(made: World, order: Sequence[str]) -> str:
    """One schedule again: who goes on at each step (or `process N dies`), then all to their ends. What is wrong.

    Whoever has ended by then is passed over, so that an order outlives small changes of the code.
    """
    run = _Run(made.acts, (), None, len(order))
    run.in_order(order)
    return run.fault or made.ends()


@define(eq=False)
class _Thread:
    """One act under way."""

    act: Act
    back: threading.Semaphore
    go: threading.Semaphore = field(factory=lambda: threading.Semaphore(0))
    at: str = "start"
    ended: bool = False
    dead: bool = False
    fault: str = ""

    def begin(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def give_way(self, name: str) -> None:
        self.at = name
        self.back.release()
        self.go.acquire()
        if self.dead:
            raise DiedError

    def _run(self) -> None:
        _current.thread = self
        self.go.acquire()
        try:
            if not self.dead:
                self.act.do()
        except DiedError:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the schedule's finding
            self.fault = f"{self.act.name}: {type(error).__name__}: {error}"
        finally:
            self.ended = True
            self.back.release()


class _Run:
    """One schedule: the choices of a prefix, then always the first; what else could have been chosen is told."""

    def __init__(self, acts: Sequence[Act], prefix: tuple[int, ...], preemptions: int | None, deaths: int) -> None:
        self._back = threading.Semaphore(0)
        self._threads = [_Thread(act, self._back) for act in acts]
        self._prefix = prefix
        self._preemptions = preemptions
        self._deaths = deaths
        self._last: int | None = None

    @property
    def fault(self) -> str:
        """What one of the acts raised."""
        return next((each.fault for each in self._threads if each.fault), "")

    def all(self) -> tuple[Schedule, list[tuple[int, ...]]]:
        """Go through it: what happened, and the prefixes of the schedules that branch off."""
        for each in self._threads:
            each.begin()
        words: list[str] = []
        taken: list[int] = []
        branches = []
        while choices := list(self._choices()):
            depth = len(taken)
            number = self._prefix[depth] if depth < len(self._prefix) else 0
            if depth >= len(self._prefix):
                branches += [(*taken, other) for other in range(1, len(choices))]
            taken.append(number)
            words.append(self._happens(choices[number]))
        return tuple(words), branches

    def in_order(self, order: Sequence[str]) -> None:
        """Let those that are named go on, then all others."""
        for each in self._threads:
            each.begin()
        for name in order:
            for choice in self._choices():
                words = f"process {choice.process} dies" if choice.dies else self._threads[choice.place].act.name
                if words == name:
                    self._happens(choice)
                    break
        self._deaths = 0
        while choices := list(self._choices()):
            self._happens(choices[0])

    def _choices(self) -> Iterator[Choice]:
        """All that may happen next; that the one which ran goes on comes first."""
        left = [place for place, thread in enumerate(self._threads) if not thread.ended]
        going = self._last if self._last in left else None
        free = going is None or self._preemptions is None or self._preemptions > 0
        for place in sorted(left, key=lambda each: each != going):
            if free or place == going:
                yield Choice(self._threads[place].act.process, place, dies=False)
        if self._deaths:
            for process in sorted({self._threads[place].act.process for place in left}):
                yield Choice(process, -1, dies=True)

    def _happens(self, choice: Choice) -> str:
        if choice.dies:
            self._deaths -= 1
            dying = [each for each in self._threads if each.act.process == choice.process and not each.ended]
            for thread in dying:
                thread.dead = True
                self._let(thread)
            return f"process {choice.process} dies, at {', '.join(each.at for each in dying)}"
        thread = self._threads[choice.place]
        if self._last not in (None, choice.place) and not self._threads[self._last or 0].ended:
            self._preemptions = None if self._preemptions is None else self._preemptions - 1
        self._last = choice.place
        began = thread.at
        self._let(thread)
        return f"{thread.act.name}: from {began} to {'its end' if thread.ended else thread.at}"

    def _let(self, thread: _Thread) -> None:
        thread.go.release()
        if not self._back.acquire(timeout=_PATIENCE_S):
            raise AssertionError(f"`{thread.act.name}` waits for another thread, between two steps, at {thread.at}")
