"""`record`: a live session with a case becomes a scenario, which is replayed at once to see that it can be."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from attrs import evolve

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.interrupts import hold_interrupts
from assisted_benchmark.cli.place import command_line, root_of
from assisted_benchmark.cli.replay import compared
from assisted_benchmark.cli.run import coloured, report
from assisted_benchmark.cli.serve_scenario import the_case
from assisted_benchmark.cli.serving import at_work, say, wire
from assisted_benchmark.contract.files import check_below, write
from assisted_benchmark.contract.scalar import duration_ns
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.report.terminal import Commands
from assisted_benchmark.suite.live.agents import Outside
from assisted_benchmark.suite.live.case_face import label_of, served_to
from assisted_benchmark.suite.live.program import Program
from assisted_benchmark.suite.live.recording import named_as, scenario_text, session_bytes, session_file
from assisted_benchmark.suite.live.scenario import RECORDING_SEED, LiveCase
from assisted_benchmark.suite.live.served import ServedCase, ServedTurn, for_client
from assisted_benchmark.suite.replay import ended_in
from assisted_benchmark.suite.result import CaseResult, Verdict
from assisted_benchmark.suite.runner import discover, new_run_directory, plan_for, run

_WITHIN: Final = "60s"


def command(arguments: argparse.Namespace) -> int:
    """Serve the case (or start the client that plays it), report as `run` does, and write the scenario."""
    root = root_of(arguments)
    given = the_case(root, arguments.scenario)
    case = named_as(given, arguments.output.absolute(), root)
    check_below(arguments.output.absolute(), root)
    if case.id in {each.id for each in discover(root, real=True)}:
        raise MisuseError(Reason.DUPLICATE_ID, f"there is a case `{case.id}` already; choose another name")
    session = _Session(case, arguments)
    directory = new_run_directory(root)
    result = run([for_client(case, Outside(drive=session.plays))], plan_for(directory, seed=RECORDING_SEED))
    hold_interrupts()
    result = evolve(result, interrupted=result.interrupted or session.interrupted)
    again = Commands(command_line(arguments, "replay", str(arguments.output)))
    codes = [*report(result, directory, again, colour=coloured()), *session.codes]
    if not session.turns or result.cases[0].verdict is Verdict.COULD_NOT_RUN:
        say("nothing was recorded: no proposal came to its end")
        return exits.worst([*codes, exits.COULD_NOT_RUN])
    _write(root, arguments.output.absolute(), case, result.cases[0], session.turns, directory, given.id)
    print(f"recorded: {arguments.output}")
    print(f"replay:   {command_line(arguments, 'replay', str(arguments.output))}")
    return exits.worst([*codes, compared(root, arguments.output.absolute())])


class _Session:
    """The session of whoever plays the case: a client that is started, or the one at standard input and output.

    A scenario whose own agent is a program has it started.
    """

    def __init__(self, case: LiveCase, arguments: argparse.Namespace) -> None:
        self.interrupted = False
        self.codes: list[int] = []
        self.turns: tuple[ServedTurn, ...] = ()
        self._drive: Callable[[ServedCase], None]
        if arguments.client:
            self._drive = _program(case, arguments)
        elif arguments.environment or arguments.within is not None:
            raise MisuseError(Reason.MISUSE, "--environment and --within are of a client that is named behind `--`")
        elif case.agent.outside is not None:
            self._drive = case.agent.outside.drive
        else:
            self._drive = partial(self._serve, wire())

    def plays(self, served: ServedCase) -> None:
        """Have it play until it is done, and keep its turns."""
        self._drive(served)
        self.turns = served.turns

    def _serve(self, write_fd: int, served: ServedCase) -> None:
        agent = served_to(served, 0, write_fd)
        try:
            self.codes.append(at_work(agent, hold_interrupts))
        except KeyboardInterrupt:
            self.interrupted = True
        served.is_called(label_of(agent.client))


def _program(case: LiveCase, arguments: argparse.Namespace) -> Program:
    return Program(
        argv=_argv(arguments.client),
        folder=case.folder,
        environment=tuple(arguments.environment),
        within_ns=duration_ns(arguments.within or _WITHIN),
    )


def _argv(words: list[str]) -> tuple[str, ...]:
    """The client's command with whole paths: it starts in a folder of its own, where no other leads anywhere."""
    program = words[0] if words[0].startswith("{") else shutil.which(words[0])
    if program is None:
        raise MisuseError(Reason.LAUNCH_FAILED, f"there is no program `{shown(words[0])}`; give its path")
    rest = (os.path.abspath(each) if os.sep in each and os.path.exists(each) else each for each in words[1:])
    return (program if program.startswith("{") else os.path.abspath(program), *rest)


def _write(
    root: Path,
    path: Path,
    case: LiveCase,
    result: CaseResult,
    turns: tuple[ServedTurn, ...],
    directory: Path,
    came_from: str,
) -> None:
    schemas = os.path.relpath(root / "schemas", path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    receipts = ended_in(directory, case.id).receipts
    write(session_file(path), session_bytes(result.agent, turns, receipts))
    write(path, scenario_text(case, result, turns, came_from, schemas).encode())
    sys.stdout.flush()
