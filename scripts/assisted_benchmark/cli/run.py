"""`run`: cases to verdicts, a report directory and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from attrs import evolve

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.interrupts import hold_interrupts
from assisted_benchmark.cli.place import chosen, command_line, root_of
from assisted_benchmark.kernel.errors import MisuseError, Problem
from assisted_benchmark.kernel.reasons import REASONS, Reason, Severity
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.report.junit import junit
from assisted_benchmark.report.progress import Progress
from assisted_benchmark.report.record import record_bytes
from assisted_benchmark.report.summary import verdicts
from assisted_benchmark.report.terminal import Commands, terminal
from assisted_benchmark.suite.offline import SocketGuard
from assisted_benchmark.suite.result import CaseResult, RunResult, Verdict
from assisted_benchmark.suite.runner import RunPlan, new_run_directory, plan_for, run, shard, verify_run
from assisted_benchmark.suite.storage import write_whole


def command(arguments: argparse.Namespace) -> int:
    """Run the selected cases. Writes report.json and junit.xml into the run's directory, whatever happens."""
    if arguments.expect_identical and (arguments.repeat or 1) < 2:
        raise MisuseError(Reason.MISUSE, "--expect-identical has nothing to compare; add --repeat 2 or more")
    guard = SocketGuard() if arguments.offline else None
    root = root_of(arguments)
    cases = chosen(arguments, root)
    asked = len(shard(cases, *arguments.shard)) if arguments.shard else len(cases)
    if not asked:
        print("assisted-benchmark: no case is selected (nothing_selected)", file=sys.stderr)
        print("  `assisted-benchmark list` shows the cases", file=sys.stderr)
        return exits.NOTHING_SELECTED
    directory: Path = arguments.resume or new_run_directory(root)
    if arguments.resume and not (directory / "run.json").is_file():
        raise MisuseError(Reason.MISUSE, f"`{shown(str(directory))}` holds no run to go on with; `run` makes one")
    plan = plan_for(
        directory,
        seed=arguments.seed,
        jobs=arguments.jobs or os.cpu_count() or 1,
        maxfail=arguments.maxfail,
        durability=arguments.durability,
        servers=arguments.servers,
        repeat=arguments.repeat,
        expect_identical=arguments.expect_identical,
        shard=arguments.shard,
    )
    colour = coloured()
    live = sys.stderr.isatty() and "CI" not in os.environ
    progress = Progress(sys.stderr, asked, colour=colour and live, live=live)
    left = asked

    def ended(case: CaseResult) -> None:
        nonlocal left
        progress.case(case)
        left -= 1
        if not left:
            hold_interrupts()  # all that remains is to write it down

    result = evolve(run(cases, plan, on_case=ended), repeat=plan.repeat)
    progress.end()
    codes = report(result, directory, commands(result, arguments, _again(plan)), colour=colour, as_json=arguments.json)
    if result.interrupted:
        print(f"go on:  {command_line(arguments, 'run', '--resume', str(directory))}", file=sys.stderr)
    if guard is not None and guard.blocked:
        print(f"assisted-benchmark: offline, yet a connection was tried: {guard.blocked[0]}", file=sys.stderr)
        codes.append(exits.COULD_NOT_RUN)
    return exits.worst(codes)


def report(result: RunResult, directory: Path, again: Commands, *, colour: bool, as_json: bool = False) -> list[int]:
    """Write and print what came of a run, with its receipts verified; the exit codes that hold."""
    problems = verify_run(directory)
    record = record_bytes(result)
    write_whole(directory / "report.json", record)
    write_whole(directory / "junit.xml", junit(result))
    if as_json:
        sys.stdout.buffer.write(record)
    else:
        print(terminal(result, colour=colour, commands=again))
        print(f"report: {directory}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return _codes(result, problems)


def commands(result: RunResult, arguments: argparse.Namespace, again: list[str]) -> Commands:
    """How a case of this run is run again and explained; `again` are the flags of `run` that it was run with."""
    seed = ["--seed", str(result.seed)]
    return Commands(command_line(arguments, "run", *seed, *again), command_line(arguments, "explain", *seed))


def coloured() -> bool:
    """Whether standard output is a terminal that wants colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _codes(result: RunResult, problems: tuple[Problem, ...]) -> list[int]:
    counts = verdicts(result.cases)
    held = [
        (result.interrupted, exits.INTERRUPTED),
        (any(REASONS[each.reason].severity is Severity.ERROR for each in problems), exits.INTEGRITY),
        (counts[Verdict.COULD_NOT_RUN] > 0, exits.COULD_NOT_RUN),
        (counts[Verdict.FAILED] > 0, exits.FAILED),
    ]
    return [code for holds, code in held if holds]


def _again(plan: RunPlan) -> list[str]:
    flags = ["--durability", plan.durability]
    return [*flags, "--servers", plan.servers] if plan.servers else flags
