"""One figure, and how its numbers are taken."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Final

from attrs import asdict, evolve, field, frozen

# How a figure of such a unit goes with the machine: times shrink on a faster one, rates grow.
_PER_FACTOR: Final = {"us": -1, "s": -1, "1/s": 1, "1/min": 1}


@frozen(kw_only=True)
class Figure:
    """`ours` in `unit`; `peers` by name, in the same unit, None where a peer is not installed.

    `bound` is the promise in words, `within` whether it holds in this run. `at_par` is what `ours` would be at the
    speed of the machine where the bounds were set; None of what is no time or rate, or was not put beside it.
    """

    name: str
    unit: str
    ours: float
    bound: str
    within: bool
    peers: dict[str, float | None] = field(factory=dict)
    at_par: float | None = None

    def beside(self, factor: float) -> Figure:
        """The same beside a machine that is `factor` times as fast as this one."""
        if self.unit not in _PER_FACTOR:
            return self
        return evolve(self, at_par=self.ours * factor ** _PER_FACTOR[self.unit])

    def value(self) -> dict[str, object]:
        """As a JSON value, numbers to four digits."""
        row = asdict(self)
        row["ours"] = rounded(self.ours)
        row["at_par"] = rounded(self.at_par)
        row["peers"] = {name: rounded(peer) for name, peer in self.peers.items()}
        return row


def rounded(number: float | None) -> float | None:
    """Four significant digits, which is more than a measurement has."""
    return None if number is None else float(f"{number:.4g}")


def at_most(name: str, unit: str, ours: float, most: float, peers: dict[str, float | None] | None = None) -> Figure:
    """A figure that must not exceed `most`."""
    return Figure(name=name, unit=unit, ours=ours, bound=f"<= {most:g}", within=ours <= most, peers=peers or {})


def at_least(name: str, unit: str, ours: float, least: float, peers: dict[str, float | None] | None = None) -> Figure:
    """A figure that must not fall below `least`."""
    return Figure(name=name, unit=unit, ours=ours, bound=f">= {least:g}", within=ours >= least, peers=peers or {})


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection while something is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def p50_us(calls: list[Callable[[], object]]) -> float:
    """The median time of the calls, each timed by itself, in microseconds."""
    return p50s_us(calls)[0]


def p50s_us(*kinds: list[Callable[[], object]]) -> list[float]:
    """The same of several kinds, whose calls take turns, so that a slow moment of the machine strikes all."""
    now = time.perf_counter_ns
    times: list[list[int]] = [[] for _ in kinds]
    with quiet():
        for turn in zip(*kinds, strict=True):
            for call, taken in zip(turn, times, strict=True):
                began = now()
                call()
                taken.append(now() - began)
    return [median(taken) / 1000 for taken in times]


def seconds(call: Callable[[], object], rounds: int = 3) -> float:
    """The best of a few whole runs, in seconds."""
    best = float("inf")
    for _ in range(rounds):
        with quiet():
            began = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - began)
    return best
