"""`completion`: shell completion, made from the parser."""

from __future__ import annotations

import argparse

import shtab

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.parser import parser


def command(arguments: argparse.Namespace) -> int:
    """Print the completion script of one shell."""
    print(shtab.complete(parser(), arguments.shell))
    return exits.OK
