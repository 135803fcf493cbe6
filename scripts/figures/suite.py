"""Cases a second, in process and with a fresh server process each; and how soon the command answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from assisted_benchmark.suite.speed import cases_a_second
from figures.bench import ROOT
from figures.figure import Figure, at_least, at_most

_PROCESS_CASE = "over-stdio/plain"  # the synthetic UI alone, by two calls


def figures() -> Iterator[Figure]:
    """Two durabilities in process, one case with real servers, the start of the command."""
    for durability, least in (("memory", 10_000), ("process", 5_000)):
        yield at_least(f"cases a second in process, {durability}", "1/s", cases_a_second(ROOT, durability), least)
    rate = cases_a_second(ROOT, "memory", k=_PROCESS_CASE, count=40)
    yield at_least("cases a second, a fresh synthetic UI process each", "1/s", rate, 40)
    yield at_most("the command's --version", "s", _version(), 0.15)


def _version() -> float:
    times = []
    for _ in range(7):
        began = perf_counter()
        subprocess.run(
            [sys.executable, "-m", "assisted_benchmark", "--version"],
            cwd=ROOT / "scripts",
            check=True,
            stdout=subprocess.DEVNULL,
        )
        times.append(perf_counter() - began)
    return median(times)
