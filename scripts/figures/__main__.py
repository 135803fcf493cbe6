"""`scripts/perf`: every figure, as a table or with `--json` as a list; exit 1 if one misses its bound."""

from __future__ import annotations

import argparse
import json
import sys

from figures import canonical, capability, decision, documents, ledgers, suite, wire
from figures.figure import Figure

_PARTS = {
    "canonical": canonical.figures,
    "decision": decision.figures,
    "ledgers": ledgers.figures,
    "documents": documents.figures,
    "suite": suite.figures,
    "wire": wire.figures,
    "capability": capability.figures,
}


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="scripts/perf", description="Measure every figure, beside its peers.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(_PARTS)}")
    parser.add_argument("--json", action="store_true", help="a list of {name, unit, ours, peers, bound, within}")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.parts) - set(_PARTS))
    if unknown:
        parser.error(f"no part is called `{unknown[0]}`; there are {', '.join(_PARTS)}")
    found: list[Figure] = []
    for name in arguments.parts or _PARTS:
        for figure in _PARTS[name]():
            found.append(figure)
            if not arguments.json:
                print(_line(figure), flush=True)
    if arguments.json:
        print(json.dumps([figure.value() for figure in found], indent=1))
    return 0 if all(figure.within for figure in found) else 1


def _line(figure: Figure) -> str:
    peers = "  ".join(
        f"{name} {'not installed' if value is None else f'{value:.4g}'}" for name, value in figure.peers.items()
    )
    mark = "ok  " if figure.within else "MISS"
    return f"{mark}  {figure.name:52}  {figure.ours:>10.4g} {figure.unit:22} {figure.bound:>10}  {peers}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
