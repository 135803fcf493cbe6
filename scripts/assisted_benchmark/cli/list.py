"""`list`: the cases, a line each."""

from __future__ import annotations

import argparse
import json
import sys

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import chosen, root_of


def command(arguments: argparse.Namespace) -> int:
    """Print the selected cases' ids (and, as JSON, what they are about)."""
    cases = chosen(arguments, root_of(arguments))
    if arguments.json:
        rows = [
            {
                "id": c.id,
                "file": c.file,
                "because": c.because,
                "agent": c.agent.name,
                "policy": c.policy,
                "tags": list(c.tags),
            }
            for c in cases
        ]
        print(json.dumps(rows, indent=1))
    else:
        for case in cases:
            print(case.id)
    if not cases:
        print("assisted-benchmark: no case is selected (nothing_selected)", file=sys.stderr)
        return exits.NOTHING_SELECTED
    return exits.OK
