"""`new`: a scenario to start from."""

from __future__ import annotations

import argparse
import os
import re

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import command_line, root_of
from assisted_benchmark.contract.files import check_below
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX
from assisted_benchmark.suite.runner import scaffold

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def command(arguments: argparse.Namespace) -> int:
    """Write fixtures/FOLDER/ID.scenario.yaml; an existing file is never overwritten. Or all that a transcript gives."""
    if (arguments.transcript is None) != (arguments.contract is None):
        raise MisuseError(Reason.MISUSE, "--from and --contract go together")
    if arguments.id is not None and (len(arguments.id) > 100 or _ID.fullmatch(arguments.id) is None):
        raise MisuseError(Reason.MISUSE, f"`{shown(arguments.id)}` is no id; use lower-case words joined by `-`")
    if arguments.transcript is not None:
        from assisted_benchmark.cli.new_from import new_from  # it loads what running needs

        return new_from(arguments)
    if arguments.id is None:
        raise MisuseError(Reason.MISUSE, "a new scenario needs an id; or give --from TRANSCRIPT --contract CONTRACT")
    root = root_of(arguments)
    new = scaffold(root, arguments.id, policy=arguments.policy, candidate=arguments.candidate)
    path = root / "fixtures" / new.folder / f"{arguments.id}{SCENARIO_SUFFIX}"
    check_below(path, root)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(new.text)
    except FileExistsError as error:
        raise MisuseError(Reason.DUPLICATE_ID, f"`{path}` is there already; choose another id") from error
    print(f"written: {path}")
    print(f"run it:  {command_line(arguments, 'run', os.path.relpath(path))}")
    return exits.OK
