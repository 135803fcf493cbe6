"""What a person reads in a terminal: the opening table, what failed and how to run it again, one closing line."""

from __future__ import annotations

from assisted_benchmark.kernel.text import shown
from assisted_benchmark.report.summary import COLUMNS, opening_table, refusals, verdicts
from assisted_benchmark.suite.result import CaseResult, RunResult, Verdict

_COLOURS = {"passed": "32", "failed": "31", "could not run": "33"}


def paint(text: str, word: str, *, colour: bool) -> str:
    """`text` in the colour of a verdict word, where colours are wanted."""
    return f"\x1b[{_COLOURS[word]}m{text}\x1b[0m" if colour else text


def table(run: RunResult) -> str:
    """The opening table, agent by policy, numbers to the right."""
    rows = [[title for _, title in COLUMNS]]
    rows += [[str(getattr(line, name)) for name, _ in COLUMNS] for line in opening_table(run.cases)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def fault_lines(case: CaseResult, *, colour: bool) -> str:
    """Why one case did not pass, and the command that runs it again."""
    if case.verdict is Verdict.FAILED:
        head = paint("failed", "failed", colour=colour)
        why = [f"{miss.what}: expected {miss.expected}, came {miss.actual}" for miss in case.misses]
    else:
        head = paint("could not run", "could not run", colour=colour)
        why = [f"{case.detail} ({case.reason})"]
    lines = [f"{head}  {case.id}  ({case.file})"]
    lines += [f"    {shown(text, 2000)}" for text in why]
    return "\n".join(lines)


def closing_line(run: RunResult) -> str:
    """The last line: `N passed, N failed, N could not run`, and what was left when interrupted."""
    counts = verdicts(run.cases)
    line = (
        f"{counts[Verdict.PASSED]} passed, {counts[Verdict.FAILED]} failed, "
        f"{counts[Verdict.COULD_NOT_RUN]} could not run"
    )
    if run.interrupted:
        line += f"; interrupted with {run.selected - len(run.cases)} of {run.selected} left"
    return line


def terminal(run: RunResult, *, colour: bool, rerun: str) -> str:
    """The whole report as text. `rerun` is the command line up to the case id."""
    parts = [table(run), ""]
    given = refusals(run.cases)
    if given:
        parts += ["refused: " + ", ".join(f"{reason} {times}" for reason, times in given.items()), ""]
    for case in run.cases:
        if case.verdict is not Verdict.PASSED:
            parts += [fault_lines(case, colour=colour), f"    again: {rerun} {case.id}", ""]
    for stamp in run.stamps:
        parts.append(f"not guaranteed: {stamp}")
    counts = verdicts(run.cases)
    word = "failed" if counts[Verdict.FAILED] else "could not run" if counts[Verdict.COULD_NOT_RUN] else "passed"
    parts.append(paint(closing_line(run), word, colour=colour))
    return "\n".join(parts)
