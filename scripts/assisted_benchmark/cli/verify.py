"""`verify`: a run's receipts against their anchored chains."""

from __future__ import annotations

import argparse
from pathlib import Path

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of, tell
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import REASONS, Reason, Severity
from assisted_benchmark.suite.runner import latest_run, verify_run


def command(arguments: argparse.Namespace) -> int:
    """Print what is wrong with a run's receipts; a torn last line is recoverable and only a note."""
    directory: Path | None = arguments.directory or latest_run(root_of(arguments))
    if directory is None or not directory.is_dir():
        raise MisuseError(Reason.MISUSE, f"there is no run to verify at `{directory}`; `run` makes one")
    problems = verify_run(directory)
    tell(problems, f"receipts verified: {directory}", as_json=arguments.json)
    errors = [each for each in problems if REASONS[each.reason].severity is Severity.ERROR]
    return exits.INTEGRITY if errors else exits.OK
