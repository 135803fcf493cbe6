"""What a person reads in a terminal: the opening table, what failed and how to run it again, one closing line."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.text import shown
from assisted_benchmark.report.chances import COLUMNS as CHANCES
from assisted_benchmark.report.chances import chances
from assisted_benchmark.report.summary import (
    COLUMNS,
    DIVERGED_COLUMNS,
    LATTICE_COLUMNS,
    diverged,
    fault_lines,
    lattice,
    opening_table,
    refusals,
    verdicts,
)
from assisted_benchmark.suite.result import CaseResult, RunResult, Verdict

_COLOURS: Final = {Verdict.PASSED: "32", Verdict.FAILED: "31", Verdict.COULD_NOT_RUN: "33"}
_WORDS: Final = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.COULD_NOT_RUN: "could not run"}
_WIDTH: Final = 100


@frozen
class Commands:
    """The command lines, up to a case's id, that run it again and that explain it, if any can."""

    again: str
    why: str = ""


def paint(text: str, verdict: Verdict, *, colour: bool) -> str:
    """`text` in the colour of a verdict, where colours are wanted."""
    return f"\x1b[{_COLOURS[verdict]}m{text}\x1b[0m" if colour else text


def table(run: RunResult) -> str:
    """The opening table, agent by policy: headings of up to two words one above the other, numbers to the right."""
    headings = [("", *title.replace("-", "- ").rsplit(" ", 1))[-2:] for _, title in COLUMNS]
    rows = [[above for above, _ in headings], [below for _, below in headings]]
    rows += [[str(getattr(line, name)) for name, _ in COLUMNS] for line in opening_table(run.cases)]
    return _aligned(rows, texts=2)


def lattice_table(run: RunResult) -> str:
    """What a seal of each strength would have admitted and refused; nothing if no case tells."""
    return _counted(LATTICE_COLUMNS, lattice(run.cases), lambda cell: str(cell).replace("_", " "))


def chances_table(run: RunResult) -> str:
    """How often agents that vary succeeded; nothing if none varies."""
    return _counted(CHANCES, chances(run.cases), str)


def diverged_table(run: RunResult) -> str:
    """Where transcripts were answered otherwise than recorded; nothing if none was."""
    return _counted(DIVERGED_COLUMNS, diverged(run.cases), str)


def _counted(columns: Sequence[tuple[str, str]], found: Sequence[object], cell: Callable[[object], str]) -> str:
    """A row for each of what was found, under one line of titles; nothing if nothing was."""
    if not found:
        return ""
    rows = [[title for _, title in columns]]
    rows += [[cell(getattr(each, name)) for name, _ in columns] for each in found]
    return _aligned(rows, texts=1)


def _aligned(rows: list[list[str]], *, texts: int) -> str:
    """The first `texts` columns to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if at < texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def fault_line(case: CaseResult, *, colour: bool) -> str:
    """That one case did not pass, and which."""
    return f"{paint(_WORDS[case.verdict], case.verdict, colour=colour)}  {case.id}  ({shown(case.file)})"


def _failed(case: CaseResult, commands: Commands, *, colour: bool) -> str:
    lines = fault_lines(case)
    lines.append(f"again: {commands.again} {case.id}")
    if commands.why:
        lines.append(f"why:   {commands.why} {case.id}")
    return "\n".join([fault_line(case, colour=colour), *(f"    {shown(line, 2000)}" for line in lines)])


def _could_not_run(detail: str, cases: list[CaseResult], commands: Commands, *, colour: bool) -> str:
    """Cases that could not run for one and the same cause, told once."""
    lines = [fault_line(case, colour=colour) for case in cases]
    lines += [f"    {shown(detail, 2000)}", f"    again: {commands.again} {cases[0].id}"]
    return "\n".join(lines)


def closing_line(run: RunResult) -> str:
    """The last line: `N passed, N failed, N could not run`, and what was left when the run ended early."""
    counts = verdicts(run.cases)
    line = ", ".join(f"{counts[verdict]} {_WORDS[verdict]}" for verdict in Verdict)
    left = run.selected - len(run.cases)
    if run.repeat > 1:
        line += f"; each {run.repeat} times"
    if run.interrupted:
        line += f"; interrupted with {left} of {run.selected} left"
    elif left:
        line += f"; stopped at --maxfail with {left} of {run.selected} left"
    return line


def terminal(run: RunResult, *, colour: bool, commands: Commands) -> str:
    """The whole report as text."""
    parts = [table(run), ""]
    parts += [
        each for text in (lattice_table(run), chances_table(run), diverged_table(run)) if text for each in (text, "")
    ]
    given = ", ".join(f"{reason} {times}" for reason, times in refusals(run.cases).items())
    if given:
        parts += [textwrap.fill(f"reasons: {given}", _WIDTH, subsequent_indent="         "), ""]
    stuck: dict[str, list[CaseResult]] = {}
    for case in run.cases:
        if case.verdict is Verdict.FAILED:
            parts += [_failed(case, commands, colour=colour), ""]
        elif case.verdict is Verdict.COULD_NOT_RUN:
            stuck.setdefault(f"{case.detail} ({case.reason})", []).append(case)
    for detail, cases in stuck.items():
        parts += [_could_not_run(detail, cases, commands, colour=colour), ""]
    parts += [f"not guaranteed: {stamp}" for stamp in run.stamps]
    counts = verdicts(run.cases)
    worst = next((each for each in (Verdict.FAILED, Verdict.COULD_NOT_RUN) if counts[each]), Verdict.PASSED)
    parts.append(paint(closing_line(run), worst, colour=colour))
    return "\n".join(parts)
