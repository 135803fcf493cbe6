"""Decisions as the shipped cases come to them, each with everything that it depends on: what vectors are made of.

The brokers are watched in place while a case is played. What a case's faults did behind the broker's back is in no
vector: whoever makes vectors keeps those whose player comes to the very code that the broker gave in the case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, NamedTuple, TypeAlias

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import Case, Servers
from assisted_benchmark.suite.plan import MEMORY, RunPlan

# Tells of one decision: what was given, the authority that it was decided under, and the code.
Tell: TypeAlias = Callable[[Json, Any, str], None]
Method: TypeAlias = Callable[..., Any]
# A method of a broker, and what stands in its place while it is watched.
Watch: TypeAlias = tuple[type, str, Callable[[Method, Tell], Method]]


class Seen(NamedTuple):
    """One decision that a case came to."""

    case: Case
    given: Json
    authority: Any
    code: str


def plays_here(case: Case) -> bool:
    """Whether broker, servers and agent of a case are all in this process."""
    return case.servers is Servers.IN_PROCESS and getattr(case.agent, "outside", None) is None


def seen_in(cases: Sequence[Case], watches: Sequence[Watch]) -> Iterator[Seen]:
    """Every decision that is watched, in the order of the cases."""
    for case in cases:
        yield from _seen(case, watches)


def _seen(case: Case, watches: Sequence[Watch]) -> list[Seen]:
    found: list[Seen] = []

    def tell(given: Json, authority: Any, code: str) -> None:
        found.append(Seen(case, given, authority, code))

    with _watched(watches, tell), closing(Bench(RunPlan(durability=MEMORY))) as bench:
        bench.run(case)
    return found


@contextmanager
def _watched(watches: Sequence[Watch], tell: Tell) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, watching in watches:
            whole = vars(owner)[name]
            setattr(owner, name, watching(whole, tell))
            stack.callback(setattr, owner, name, whole)
        yield
