"""`lint`: every file checked, nothing run."""

from __future__ import annotations

import argparse
import sys

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of, tell
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.lint import lint, write_pins


def command(arguments: argparse.Namespace) -> int:
    """Print every problem, in file order. A pin that does not match is an integrity fault (4), the rest misuse (2)."""
    root = root_of(arguments)
    if arguments.write_pins:
        print(f"written: {write_pins(root)}", file=sys.stderr)
    problems = lint(root, arguments.paths)
    tell(problems, "nothing wrong", as_json=arguments.json)
    pinned = {Reason.PIN_MISMATCH, Reason.POLICY_DRIFT, Reason.CONTRACT_DRIFT}
    return exits.worst(exits.INTEGRITY if each.reason in pinned else exits.MISUSE for each in problems)
