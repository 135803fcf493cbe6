"""`scripts/schedules`: real brokers over real ledgers, in every order of their steps; exit 1 if any goes wrong.

    scripts/schedules [--quick] [--json]

Two at once are interleaved in every way; three at once, and two with a death anywhere, in every way of at most so many
preemptions. The wrong ledgers are there to be found out.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from multiprocessing import get_context
from time import perf_counter
from typing import Any, Final

from attrs import frozen

from proofs.capability_world import CapabilityWorld
from proofs.live_world import LiveWorld
from proofs.mutation_world import MutationWorld
from proofs.naive_ledger import WRONG
from proofs.scheduler import Tried, explore
from proofs.stores import KINDS
from proofs.worlds import World


@frozen
class Plan:
    """What goes on at once over which ledger; in every way with so many preemptions (None: any) and deaths."""

    world: type[World]
    who: tuple[str, ...]
    ledger: str = "memory"
    preemptions: int | None = None
    deaths: int = 0

    @property
    def wrong(self) -> bool:
        """Whether something must go wrong."""
        return self.ledger in WRONG

    def __str__(self) -> str:
        broker = self.world.__name__.removesuffix("World").lower()
        ways = "every way" if self.preemptions is None else f"at most {self.preemptions} preemptions"
        deaths = ", and a death anywhere" if self.deaths else ""
        return f"{broker}, {self.ledger}: {' | '.join(self.who)}; {ways}{deaths}"


_TWO: Final[tuple[tuple[type[World], tuple[str, ...]], ...]] = (
    (LiveWorld, ("approve", "hold")),
    (LiveWorld, ("approve", "twin")),
    (LiveWorld, ("approve", "revoke")),
    (LiveWorld, ("approve", "revoke elsewhere")),
    (LiveWorld, ("approve", "abort")),
    (LiveWorld, ("approve", "recover")),
    (LiveWorld, ("approve", "time")),
    (MutationWorld, ("confirm", "confirm elsewhere")),
    (MutationWorld, ("confirm", "twin")),
    (MutationWorld, ("confirm", "cancel")),
    (MutationWorld, ("confirm", "crowd out")),
    (MutationWorld, ("confirm", "recover")),
    (MutationWorld, ("confirm", "time")),
    (CapabilityWorld, ("call", "call again")),
    (CapabilityWorld, ("call", "call again", "grant named")),
    (CapabilityWorld, ("call", "revoke", "grant named")),
    (CapabilityWorld, ("call", "cancel")),
    (CapabilityWorld, ("call", "take over")),
    (CapabilityWorld, ("call", "time")),
)
_THREE: Final[tuple[tuple[type[World], tuple[str, ...]], ...]] = (
    (LiveWorld, ("approve", "hold", "rival")),
    (LiveWorld, ("approve", "hold", "revoke")),
    (LiveWorld, ("approve", "hold", "abort")),
    (LiveWorld, ("approve", "hold", "recover")),
    (MutationWorld, ("confirm", "confirm elsewhere", "rival")),
    (MutationWorld, ("confirm", "confirm elsewhere", "cancel")),
    (MutationWorld, ("confirm", "confirm elsewhere", "crowd out")),
    (CapabilityWorld, ("call", "call again", "call once more")),
    (CapabilityWorld, ("call", "call again", "revoke", "grant named")),
    (CapabilityWorld, ("call", "call again", "cancel")),
    (CapabilityWorld, ("call", "call again", "take over")),
)
# Of each broker the first.
_FIRST: Final = tuple(next(each for each in _TWO if each[0] is world) for world in dict(_TWO))


def plans(*, quick: bool = False) -> list[Plan]:
    """All of them, the longest first; the quick ones are enough to notice that something broke."""
    if quick:
        return [
            *[Plan(*each, preemptions=1) for each in _THREE],
            *[Plan(*each, preemptions=2) for each in _TWO],
            *[Plan(*each, preemptions=1, deaths=1) for each in _FIRST],
            *[Plan(*each, ledger="sqlite", preemptions=1) for each in _FIRST],
            *_wrong(),
        ]
    return [
        *[Plan(*each, ledger=kind, preemptions=2) for kind in KINDS for each in _THREE],
        *[Plan(*each, ledger=kind, preemptions=2, deaths=1) for kind in KINDS for each in _TWO],
        *[Plan(*each, ledger=kind) for kind in KINDS for each in _TWO],
        *_wrong(),
    ]


def _wrong() -> list[Plan]:
    # A read that authorises needs no death. Two calls of one broker meet in its memory before they could meet there.
    read_first = [Plan(*each, ledger="read_then_update", preemptions=2) for each in _FIRST[:2]]
    others = [each for each in WRONG if each != "read_then_update"]
    return read_first + [Plan(*each, ledger=ledger, preemptions=2, deaths=1) for ledger in others for each in _FIRST]


def tried(plan: Plan) -> Tried:
    """Try a plan: to its end, or where something must go wrong, until it does."""
    return explore(
        lambda: plan.world(plan.ledger, plan.who),
        preemptions=plan.preemptions,
        deaths=plan.deaths,
        until_wrong=plan.wrong,
    )


def holds(plan: Plan, found: Tried) -> bool:
    """Whether that is what must come of it."""
    return bool(found.wrong) == plan.wrong


def value(plan: Plan, found: Tried) -> dict[str, Any]:
    """As a JSON value."""
    way, fault = found.first or ((), "")
    told = {"plan": str(plan), "schedules": found.schedules, "wrong": found.wrong, "must_go_wrong": plan.wrong}
    return {**told, "holds": holds(plan, found), "fault": fault, "way": list(way)}


def main(arguments: list[str] | None = None) -> int:
    """Try every plan, and say what came of it."""
    parser = argparse.ArgumentParser(
        prog="scripts/schedules", description="Real brokers, in every order of their steps."
    )
    parser.add_argument("--quick", action="store_true", help="fewer preemptions, and the disk seldom")
    parser.add_argument("--json", action="store_true", help="a list of {plan, schedules, wrong, holds, fault, way, …}")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many processes (default 2)")
    options = parser.parse_args(arguments)
    began = perf_counter()
    work = plans(quick=options.quick)
    values = []
    with get_context("spawn").Pool(options.jobs) as pool:
        for plan, found in zip(work, pool.imap(tried, work), strict=True):
            values.append(value(plan, found))
            if not options.json:
                sys.stdout.write(_line(values[-1]))
                sys.stdout.flush()
    right = [each for each in values if not each["must_go_wrong"]]
    schedules = sum(each["schedules"] for each in right)
    if options.json:
        sys.stdout.write(json.dumps(values, indent=1) + "\n")
    else:
        caught = sum(each["holds"] for each in values if each["must_go_wrong"])
        sys.stdout.write(
            f"{schedules:,} schedules of {len(right)} plans, {sum(each['wrong'] for each in right)} wrong; {caught} of "
            f"{len(values) - len(right)} wrong ledgers caught; {perf_counter() - began:.0f} s\n"
        )
    return 0 if all(each["holds"] for each in values) else 1


def _line(told: dict[str, Any]) -> str:
    mark = "ok  " if told["holds"] else "FAIL"
    line = f"{mark}  {told['schedules']:6,} schedules, {told['wrong']:3} wrong  {told['plan']}\n"
    way = "".join(f"          {each}\n" for each in told["way"])
    return line + (f"        {told['fault']}:\n{way}" if told["fault"] else "")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough ends it, without a traceback
    sys.exit(main())
