"""One figure, and how its numbers are taken."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from attrs import asdict, field, frozen


@frozen(kw_only=True)
class Figure:
    """`ours` in `unit`; `peers` by name, in the same unit, None where a peer is not installed.

    `bound` is the promise in words, `within` whether it holds in this run.
    """

    name: str
    unit: str
    ours: float
    bound: str
    within: bool
    peers: dict[str, float | None] = field(factory=dict)

    def value(self) -> dict[str, object]:
        """As a JSON value, numbers to four digits."""
        row = asdict(self)
        row["ours"] = rounded(self.ours)
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
    now = time.perf_counter_ns
    times = []
    with quiet():
        for call in calls:
            began = now()
            call()
            times.append(now() - began)
    return median(times) / 1000


def seconds(call: Callable[[], object], rounds: int = 3) -> float:
    """The best of a few whole runs, in seconds."""
    best = float("inf")
    for _ in range(rounds):
        with quiet():
            began = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - began)
    return best
