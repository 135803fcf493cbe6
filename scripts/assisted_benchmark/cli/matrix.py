"""`matrix`: what the shipped cases are worth, measured by brokers that lack a guard and servers that lie."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of
from assisted_benchmark.contract.files import write
from assisted_benchmark.report.matrix import matrix_lines, matrix_page, matrix_value
from assisted_benchmark.suite.matrix.explained import explained_in
from assisted_benchmark.suite.matrix.judging import exams_of, matrix
from assisted_benchmark.suite.matrix.oracle import oracle_score
from assisted_benchmark.suite.runner import discover
from assisted_benchmark.suite.vectors.vector import vectors_of
from assisted_benchmark.suite.vectors.watching import plays_here


def command(arguments: argparse.Namespace) -> int:
    """Try every mutant of every broker, and every lie of every server; 1 if one of them goes unnoticed."""
    root = root_of(arguments)
    cases = discover(root)
    found = matrix(exams_of(cases, vectors_of(root)), explained_in(root))
    noticed = oracle_score([case for case in cases if plays_here(case)])
    if arguments.json:
        print(json.dumps(matrix_value(found, noticed), indent=1))
    else:
        print(*matrix_lines(found, noticed), sep="\n")
    sound = found.sound and not any(each.missed for each in noticed)
    return exits.OK if _kept(arguments, matrix_page(found, noticed)) and sound else exits.FAILED


def _kept(arguments: argparse.Namespace, text: str) -> bool:
    """Write the page, or hold it against what is there."""
    page: Path | None = arguments.write or arguments.check
    if page is None:
        return True
    if arguments.write:
        write(page, text.encode())
    elif not page.exists() or page.read_text(encoding="utf-8") != text:
        print(f"{page} is stale; `matrix --write {page}` writes it anew", file=sys.stderr)
        return False
    return True
