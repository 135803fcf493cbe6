"""`scripts/perf`: every figure, as a table or with `--json` as a list; exit 1 if one misses its bound."""

from __future__ import annotations

import argparse
import json
import signal
import sys

from figures import attacks, canonical, capability, decision, documents, gateway, ledgers, mutation, suite, wire
from figures.figure import Figure
from figures.machine import SET_AT_US, machine_factor

_PARTS = {
    "canonical": canonical.figures,
    "decision": decision.figures,
    "ledgers": ledgers.figures,
    "documents": documents.figures,
    "mutation": mutation.figures,
    "suite": suite.figures,
    "wire": wire.figures,
    "capability": capability.figures,
    "gateway": gateway.figures,
    "attacks": attacks.figures,
}


def main() -> int:
    """Measure what was asked for."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough ends it, without a traceback
    parser = argparse.ArgumentParser(prog="scripts/perf", description="Measure every figure, beside its peers.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(_PARTS)}")
    parser.add_argument(
        "--json", action="store_true", help="a list of {name, unit, ours, at_par, peers, bound, within}"
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.parts) - set(_PARTS))
    if unknown:
        parser.error(f"no part is called `{unknown[0]}`; there are {', '.join(_PARTS)}")
    found: list[Figure] = []
    factors = [machine_factor()]
    for name in arguments.parts or _PARTS:
        for figure in _PARTS[name]():
            # The machine is looked at before and after each, as others may work on it; its better moment counts.
            factors.append(machine_factor())
            found.append(figure.beside(min(factors[-2:])))
            if not arguments.json:
                print(_line(found[-1]), flush=True)
    if arguments.json:
        print(json.dumps([figure.value() for figure in found], indent=1))
    else:
        print(_of_the_machine(factors))
    return 0 if all(figure.within for figure in found) else 1


def _line(figure: Figure) -> str:
    peers = "  ".join(
        f"{name} {'not installed' if value is None else f'{value:.4g}'}" for name, value in figure.peers.items()
    )
    mark = "ok  " if figure.within else "MISS"
    par = "" if figure.at_par is None else f"({figure.at_par:.4g} at par)"
    ours = f"{figure.ours:>10.4g} {figure.unit:22} {figure.bound:>10}  {par:18}"
    return f"{mark}  {figure.name:52}  {ours}  {peers}".rstrip()


def _of_the_machine(factors: list[float]) -> str:
    low, high = min(factors), max(factors)
    return (
        f"machine: the peer's work took {low * SET_AT_US:.3g} to {high * SET_AT_US:.3g} us in this run, and "
        f"{SET_AT_US:g} us where the bounds were set ({low:.2g} to {high:.2g} times); bounds are absolute, "
        "`at par` is a figure at that machine's speed"
    )


if __name__ == "__main__":
    sys.exit(main())
