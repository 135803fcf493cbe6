"""`scripts/models`: every model explored to its end, every wrong one caught; exit 1 if anything is otherwise."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from multiprocessing import get_context
from time import perf_counter

from attrs import asdict

from proofs.findings import Caught, Proof, jobs, prove, untaken


def main(arguments: list[str] | None = None) -> int:
    """Explore, and say what was found."""
    parser = argparse.ArgumentParser(
        prog="scripts/models", description="Explore the models of all brokers to their end."
    )
    parser.add_argument("--json", action="store_true", help="an object {models, variants, limits, untaken, seconds}")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many processes (default 2)")
    options = parser.parse_args(arguments)
    began = perf_counter()
    work = jobs()
    with get_context("spawn").Pool(options.jobs) as pool:
        found = list(zip(work, pool.imap(prove, work), strict=True))
    models = tuple(each for _, each in found if isinstance(each, Proof))
    variants = [each for (kind, _), each in found if kind == "variant" and isinstance(each, Caught)]
    limits = [each for (kind, _), each in found if kind == "limit" and isinstance(each, Caught)]
    left = untaken(models)
    seconds = round(perf_counter() - began, 1)
    if options.json:
        value = {
            "models": [asdict(each) for each in models],
            "variants": [asdict(each) for each in variants],
            "limits": [asdict(each) for each in limits],
            "untaken": left,
            "seconds": seconds,
        }
        print(json.dumps(value, indent=1))
    else:
        for line in _told(models, variants, limits, left, seconds):
            print(line)
    return 0 if not left and all(each.sound for _, each in found) else 1


def _told(
    models: tuple[Proof, ...], variants: list[Caught], limits: list[Caught], left: tuple[str, ...], seconds: float
) -> list[str]:
    lines = []
    for each in models:
        lines.append(f"{'ok  ' if each.sound else 'FAIL'}  {each.model}")
        asked = ", ".join(f"{kind} {count:,}" for kind, count in each.replayed.items())
        lines.append(
            f"      {each.states:,} states, {each.edges:,} edges; {len(each.holds)} invariants hold; "
            f"questions replayed: {asked}; {each.seconds:.1f} s"
        )
        lines += [f"      BROKEN {name}: {'; '.join(way)}" for name, way in each.broken.items()]
        lines += [f"      DIFFERS {each_}" for each_ in each.differing[:5]]
    for broker in ("live", "mutation", "capability"):
        holds = {name: None for each in models if each.model.startswith(broker) for name in each.holds}
        lines.append(f"\n{broker}: holds of every step: {'; '.join(holds)}")
    lines.append("\nwrong on purpose, each with the shortest way to what breaks in it:")
    lines += [_way(each) for each in variants]
    lines.append("\npromised of nobody:")
    lines += [_way(each) for each in limits]
    lines += [f"\nFAIL  no model takes the edge {each}" for each in left]
    states, edges = sum(each.states for each in models), sum(each.edges for each in models)
    caught = sum(each.sound for each in variants)
    lines.append(
        f"\n{len(models)} models closed: {states:,} states, {edges:,} edges; {caught} of {len(variants)} wrong ones "
        f"caught; every edge of the tables is {'not ' if left else ''}taken; {seconds} s"
    )
    return lines


def _way(each: Caught) -> str:
    flaws = " and ".join(each.flaws)
    mark = "ok  " if each.sound else "MISS"
    return f"{mark}  {each.model}: `{each.breaks}` breaks where {flaws}\n        {'; '.join(each.way)}"


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough ends it, without a traceback
    sys.exit(main())
