"""Generated attacks a minute, and how soon the models of all brokers are explored to their end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter

from assisted_benchmark.suite.attacks.attacking import attack_cases, attackable
from assisted_benchmark.suite.runner import discover
from figures.bench import ROOT
from figures.figure import Figure, at_least, at_most, quiet


def figures() -> Iterator[Figure]:
    """One process over a case of each broker and policy; then `scripts/models` with its two."""
    cases = {(case.broker, case.policy): case for case in discover(ROOT) if attackable(case)}
    with quiet():
        began = perf_counter()
        report = attack_cases(list(cases.values()))
        taken = perf_counter() - began
    if not report.sound:
        raise AssertionError("an attack to measure with did not come to what it must")
    yield at_least("generated attacks, in memory", "1/min", 60 * report.tried / taken, 10_000)
    yield at_most("the models of all brokers, to their end", "s", _models(), 60)


def _models() -> float:
    done = subprocess.run(
        [sys.executable, "-m", "proofs", "--json"], cwd=ROOT / "scripts", check=True, stdout=subprocess.PIPE
    )
    return float(json.loads(done.stdout)["seconds"])
