"""The command line: `assisted-benchmark VERB`, also `python -m assisted_benchmark`."""

from assisted_benchmark.cli.main import main

__all__ = ["main"]
