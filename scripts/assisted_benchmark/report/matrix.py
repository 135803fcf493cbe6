"""The reason matrix and the oracle mutation score, for people, for pages and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.suite.matrix.explained import Explained
from assisted_benchmark.suite.matrix.judging import BROKERS, Matrix, Row, Tried
from assisted_benchmark.suite.matrix.oracle import Noticed

SCHEMA: Final = "assisted-benchmark/matrix@1"


def matrix_value(matrix: Matrix, noticed: Sequence[Noticed]) -> Json:
    """All of it as plain JSON."""
    tried = [each for row in matrix.rows for each in row.tried]
    return {
        "schema": SCHEMA,
        "killed": sum(each.killed for each in tried),
        "tested": sum(bool(each.explained and each.explained.test) for each in tried),
        "shadowed": sum(bool(each.explained and each.explained.behind) for each in tried),
        "total": len(tried),
        "stale": list(matrix.stale),
        "failing": list(matrix.failing),
        "reasons": [
            {"broker": row.broker, "reason": row.reason.value, "mutants": [_mutant(each) for each in row.tried]}
            for row in matrix.rows
        ],
        "oracle": [
            {
                "broker": each.broker,
                "lie": each.lie.value,
                "cases": each.cases,
                "noticed": each.calls - len(each.missed),
                "total": each.calls,
                "missed": list(each.missed),
            }
            for each in noticed
        ],
    }


def _mutant(tried: Tried) -> Json:
    said = tried.explained
    return {
        "guard": tried.guard.name,
        "lacks": tried.guard.how.value,
        "killed": tried.killed,
        "by": tried.killed_by,
        "cases": tried.reached,
        "otherwise": tried.otherwise,
        "let_through": tried.let_through,
        "stuck": tried.stuck,
        "behind": [] if said is None else list(said.behind),
        "test": "" if said is None else said.test,
        "because": "" if said is None else said.because,
    }


def matrix_page(matrix: Matrix, noticed: Sequence[Noticed]) -> str:
    """The page: a row a reason, a column a broker; then what lives and why, and what the oracle notices."""
    return "\n".join(_page(matrix, noticed)) + "\n"


def _page(matrix: Matrix, noticed: Sequence[Noticed]) -> Iterator[str]:
    yield "# Reason matrix"
    yield ""
    yield "Each cell: killed mutants of all that lack one guard of that reason; `+n` more are explained below. In"
    yield "brackets: under how many of them a case had more sent than the whole broker sends. What it means is in"
    yield "`docs/assurance.md`. Written by `scripts/assisted-benchmark matrix --write`; its output counts calls, too."
    yield ""
    yield f"{_summary(matrix)}."
    yield ""
    yield f"| reason | {' | '.join(BROKERS)} |"
    yield f"|---|{'---|' * len(BROKERS)}"
    cells = {(row.reason, row.broker): _cell(row) for row in matrix.rows}
    for reason in sorted({row.reason for row in matrix.rows}):
        yield f"| `{reason.value}` | {' | '.join(cells.get((reason, each), '') for each in BROKERS)} |"
    yield ""
    yield "## Mutants that no case kills"
    yield ""
    for each in _explained(matrix):
        yield f"- `{each.guard.name}`: {_why(each.explained)}"
    yield ""
    yield "## What the oracles notice"
    yield ""
    yield "| broker | dropped | corrupted |"
    yield "|---|---|---|"
    for broker in dict.fromkeys(each.broker for each in noticed):
        told = (f"{len(each.missed)} unnoticed" if each.missed else "all" for each in noticed if each.broker == broker)
        yield f"| {broker} | {' | '.join(told)} |"


def _why(said: Explained | None) -> str:
    if said is None:
        return ""
    others = ", ".join(f"`{each}`" for each in said.behind)
    return f"{said.because}; {f'behind it: {others}' if others else f'`{said.test}` fails'}"


def _cell(row: Row) -> str:
    killed, explained = sum(each.killed for each in row.tried), sum(each.explained is not None for each in row.tried)
    through = sum(each.let_through > 0 for each in row.tried)
    more = f" +{explained}" if explained else ""
    return f"{killed} of {len(row.tried)}{more}{f' ({through})' if through else ''}"


def _explained(matrix: Matrix) -> list[Tried]:
    return [each for row in matrix.rows for each in row.tried if each.explained is not None]


def _summary(matrix: Matrix) -> str:
    tried = [each for row in matrix.rows for each in row.tried]
    through = sum(each.let_through > 0 for each in tried)
    said = [each.explained for each in tried if each.explained is not None]
    tested, shadowed = sum(bool(each.test) for each in said), sum(bool(each.behind) for each in said)
    return (
        f"{len(matrix.rows)} reasons of brokers, {len(tried)} mutants: {sum(each.killed for each in tried)} killed "
        f"by cases and vectors ({through} had sent more than is allowed), {tested} by a test alone, {shadowed} shadowed"
    )


def matrix_lines(matrix: Matrix, noticed: Sequence[Noticed]) -> Iterator[str]:
    """For a terminal: the counts, and everything that is not as it must be."""
    yield _summary(matrix)
    for row in matrix.rows:
        for each in row.tried:
            if not each.killed and each.explained is None:
                where = f"{each.reached} cases come to it and none fails" if each.reached else "no case comes to it"
                yield f"LIVES: {row.broker}, {each.guard.name} (line {each.guard.line}): {where}"
    yield from (f"STALE: {each}" for each in matrix.stale)
    yield from (f"FAILS: {each} without any mutant" for each in matrix.failing)
    for one in noticed:
        seen = one.calls - len(one.missed)
        yield f"oracle of {one.broker}: {seen} of {one.calls} {one.lie.value} calls noticed, in {one.cases} cases"
        yield from (f"UNNOTICED: {one.lie.value}, {each}" for each in one.missed)
