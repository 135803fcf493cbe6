"""`scripts/kills`: brokers are killed until enough were, and nothing may have arrived twice."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.suite.dispatch_designs import CONTROLS, Ledgered
from assisted_benchmark.suite.kills import Arena, Groups, Tally, kill
from proofs.kill_changes import Changes
from proofs.kill_grants import Grants
from proofs.kill_operations import Operations
from proofs.naive_ledger import WRONG
from proofs.stores import real

Make: TypeAlias = Callable[[Path], Arena]


# One broker of a run at a time has no rival that a read could authorise beside it.
_ALONE: Final = frozenset({"read_then_update"})

# What is killed: ours by its own name, and the wrong ones.
ARENAS: Final[dict[str, tuple[Make, dict[str, Make]]]] = {
    "ledger": (partial(Groups, Ledgered), {name: partial(Groups, each) for name, each in CONTROLS.items()}),
    "live": (partial(Grants, real), {name: partial(Grants, each) for name, each in WRONG.items()}),
    "mutation": (partial(Changes, real), {name: partial(Changes, each) for name, each in WRONG.items()}),
    "capability": (
        partial(Operations, real),
        {name: partial(Operations, each) for name, each in WRONG.items() if name not in _ALONE},
    ),
}


def _shown(name: str, tally: Tally, seconds: float) -> str:
    return (
        f"{name:30} kills {tally.kills:6,}  sends {tally.sends:7,}  double dispatches {tally.doubles:5,}"
        f"  unresolved {tally.unresolved:5,}  unsound receipts {tally.unsound}  ({seconds:.1f} s)\n"
    )


def main(arguments: list[str] | None = None) -> int:
    """0 if nothing arrived twice (with --control: and every control's double was caught), else 1."""
    parser = argparse.ArgumentParser(prog="scripts/kills", description="prove at-most-once dispatch by killing it")
    parser.add_argument(
        "--broker", choices=[*ARENAS, "all"], default="ledger", help="what is killed (default: the bare ledger)"
    )
    parser.add_argument("--kills", type=int, default=2000, help="how many processes of each to kill (default 2000)")
    parser.add_argument("--seed", default="0", help="where the moments of the kills come from (default 0)")
    parser.add_argument("--control", action="store_true", help="kill wrong designs too; each must be caught")
    options = parser.parse_args(arguments)
    held = True
    for broker in ARENAS if options.broker == "all" else (options.broker,):
        ours, controls = ARENAS[broker]
        for name, make in {"": ours, **(controls if options.control else {})}.items():
            began = time.monotonic()
            tally = kill(make, options.kills, SeededChance(f"{options.seed}/{broker}/{name}"))
            sys.stdout.write(_shown(f"{broker} {name}".strip(), tally, time.monotonic() - began))
            sys.stdout.flush()
            held = held and (tally.doubles > 0) == bool(name) and tally.unsound == 0
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
