"""`merge`: the runs of several shards as one."""

from __future__ import annotations

import argparse
import shutil

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of
from assisted_benchmark.cli.run import coloured, commands, report
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.suite.runner import merge, new_run_directory


def command(arguments: argparse.Namespace) -> int:
    """Join the runs into a new run directory, and report that as `run` would."""
    directory = new_run_directory(root_of(arguments))
    try:
        result = merge(arguments.directories, directory)
    except HarnessError:
        shutil.rmtree(directory)  # nothing was merged, so nothing is the latest run
        raise
    again = commands(result, arguments, [])
    return exits.worst(report(result, directory, again, colour=coloured(), as_json=arguments.json))
