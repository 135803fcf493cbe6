"""`serve SCENARIO`: one case, played by whatever client comes; scored and reported at the end like any other."""

from __future__ import annotations

import argparse
from pathlib import Path

from attrs import evolve

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.interrupts import hold_interrupts
from assisted_benchmark.cli.place import command_line
from assisted_benchmark.cli.run import coloured, report
from assisted_benchmark.cli.serving import agent_for, at_work, print_config, wire
from assisted_benchmark.gateway.principals import OneGrant
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.report.terminal import Commands
from assisted_benchmark.suite.live.agents import Outside
from assisted_benchmark.suite.live.case_face import LIMITS, CaseFace, label_of, session_of
from assisted_benchmark.suite.live.scenario import LiveCase, Visibility
from assisted_benchmark.suite.live.served import ServedCase, for_client
from assisted_benchmark.suite.runner import discover, new_run_directory, plan_for, run


def serve_scenario(root: Path, arguments: argparse.Namespace) -> int:
    """Serve until the client closes its side, then report; an interrupt ends the session, and is reported too."""
    case = the_case(root, arguments.scenario)
    flags = [
        each
        for name in ("visibility", "seed", "durability")
        if (value := getattr(arguments, name)) is not None
        for each in (f"--{name}", str(value))
    ]
    if arguments.print_config:
        path = Path(arguments.scenario)
        what = str(path.absolute()) if path.exists() else case.id
        return print_config(case.id.split("/")[1], arguments, root, [what, *flags], {})
    if arguments.visibility is not None:
        case = evolve(case, visibility=Visibility(arguments.visibility))
    directory = new_run_directory(root)
    plan = plan_for(directory, seed=arguments.seed, durability=arguments.durability)
    client = _Client(arguments, case.id.split("/")[1], wire())
    result = run([for_client(case, Outside(drive=client.plays))], plan)
    hold_interrupts()
    result = evolve(result, interrupted=result.interrupted or client.interrupted)
    commands = Commands(command_line(arguments, "serve", *flags, *(["--http"] if arguments.http else [])))
    return exits.worst([*report(result, directory, commands, colour=coloured()), *client.codes])


class _Client:
    """The client at the other end of standard input and output, or the first to call over HTTP."""

    def __init__(self, arguments: argparse.Namespace, name: str, write_fd: int) -> None:
        self._arguments = arguments
        self._name = name
        self._write_fd = write_fd
        self.interrupted = False
        self.codes: list[int] = []

    def plays(self, served: ServedCase) -> None:
        """Serve it until it is done, or until we are told to end."""
        face = CaseFace(served)
        agent = agent_for(
            self._arguments,
            self._name,
            self._write_fd,
            face,
            OneGrant(session_of(served)),
            SystemClock(),
            on_malformed=served.refuse_malformed,
            on_leaving=face.leave,
            limits=LIMITS,
        )
        try:
            self.codes.append(at_work(agent, hold_interrupts))
        except KeyboardInterrupt:
            self.interrupted = True
        served.is_called(label_of(agent.client))


def the_case(root: Path, what: str) -> LiveCase:
    """The one case that a file or an id names."""
    path = Path(what)
    found = discover(root, [path] if path.exists() else (), real=True)
    cases = found if path.exists() else [each for each in found if each.id == what or each.id.startswith(f"{what}/")]
    if not cases:
        hint = did_you_mean(what, (each.id for each in found)) or "`list` shows the cases"
        raise MisuseError(Reason.NOTHING_SELECTED, f"`{shown(what)}` is neither a file nor a case; {hint}")
    if len(cases) > 1:
        some = ", ".join(f"`{each.id}`" for each in cases[:3])
        detail = f"`{shown(what)}` has {len(cases)} cases, and a client plays one; name it, such as {some}"
        raise MisuseError(Reason.MISUSE, detail)
    case = cases[0]
    if not isinstance(case, LiveCase):
        kinds = "`serve --changes` or `serve --registry` serves what it is about"
        raise MisuseError(Reason.MISUSE, f"`{case.id}` is a case of another broker than the live one; {kinds}")
    return case
