"""Where a command works: the folder of contracts/ and fixtures/, and what was asked for in it."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from assisted_benchmark.cli.parser import PROGRAM
from assisted_benchmark.kernel.errors import MisuseError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.runner import REAL, discover, failed_in, latest_run, select


def root_of(arguments: argparse.Namespace) -> Path:
    """`--root`, or the nearest folder upwards that has contracts/ and fixtures/."""
    if arguments.root is not None:
        root: Path = arguments.root
        if not root.is_dir():
            raise MisuseError(Reason.MISUSE, f"`{shown(str(root))}` is no folder; give --root a folder of contracts/")
        return root
    here = Path.cwd()
    # The checkout's own commands say where it is, so that they work from any folder.
    given = os.environ.get("ASSISTED_BENCHMARK_ROOT")
    for folder in (here, *here.parents):
        if (folder / "contracts").is_dir() and (folder / "fixtures").is_dir():
            return folder
    if given:
        return Path(given)
    raise MisuseError(
        Reason.MISUSE, f"no contracts/ and fixtures/ here or above ({shown(str(here))}); go there, or give --root"
    )


def command_line(arguments: argparse.Namespace, *words: str) -> str:
    """A command of ours as the user can call it from here, for that same root."""
    program = os.environ.get("ASSISTED_BENCHMARK_COMMAND", PROGRAM)
    if program != PROGRAM:
        program = min(program, os.path.relpath(program), key=len)
    root = ["--root", str(arguments.root)] if arguments.root is not None else []
    return shlex.join([program, *words, *root])


def chosen(arguments: argparse.Namespace, root: Path) -> tuple[Case, ...]:
    """The cases that paths, ids, -k, --tag and --failed select together."""
    paths = [Path(text) for text in arguments.what if Path(text).exists()]
    ids = {text for text in arguments.what if not Path(text).exists()}
    resumed = getattr(arguments, "resume", None) is not None
    real = resumed or REAL in arguments.tag or any(text.startswith(f"{REAL}/") for text in ids)
    cases = discover(root, paths if paths else (), real=real)
    known = {case.id for case in cases}
    for asked in sorted(ids - known):
        below = sum(each.startswith(f"{asked.rstrip('/')}/") for each in known)
        hint = f"`-k {shown(asked)}` selects {below} cases of it" if below else did_you_mean(asked, known)
        raise MisuseError(Reason.MISUSE, f"`{shown(asked)}` is neither a file nor a case{'; ' + hint if hint else ''}")
    if getattr(arguments, "failed", False):
        last = latest_run(root)
        if last is None:
            raise MisuseError(Reason.MISUSE, "there is no run yet whose failures could be run again; `run` makes one")
        failed = failed_in(last)
        if not failed:
            print(f"every case passed in {last}", file=sys.stderr)
        ids = (ids & failed) if ids else set(failed)
        return select(cases, k=arguments.k, tags=arguments.tag, ids=ids)
    return select(cases, k=arguments.k, tags=arguments.tag, ids=ids or None)


def tell(problems: Sequence[Problem], sound: str, *, as_json: bool) -> None:
    """Print problems: a JSON list on standard output, or a line each on standard error; `sound` if there are none."""
    if as_json:
        print(json.dumps([problem._asdict() for problem in problems], indent=1))
    elif problems:
        print(*problems, sep="\n", file=sys.stderr)
    else:
        print(sound)
