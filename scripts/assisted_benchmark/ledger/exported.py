"""Receipts outside of a ledger: the lines of many runs, one run after the other, held against their anchored ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson
from attrs import evolve

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.ledger.receipts import Finding, verify
from assisted_benchmark.ledger.states import TransitionTable


class Chain(NamedTuple):
    """What is known of a run whose receipts were written out: how they end, and the table that they must keep to."""

    head: Head
    table: TransitionTable


def verify_export(raw: bytes, chains: Mapping[str, Chain], ledger_id: str) -> Iterator[tuple[str, Finding]]:
    """All that is wrong with a file of receipts, each with the run it is said of; empty: of none that is anchored.

    `chains` are the runs in the order of the file. A finding's `line` counts the lines of the file.
    """
    lines = raw.split(b"\n")
    if not lines[-1]:
        lines.pop()
    held: dict[str, list[tuple[int, bytes]]] = {run: [] for run in chains}
    places = {run: place for place, run in enumerate(chains)}
    at, mark = next(iter(chains), ""), b"\n"
    for number, line in enumerate(lines, 1):
        if mark not in line:
            run = _run_of(line, at)
            if run not in held:
                yield "", Finding(Reason.RUN_MISMATCH, number, 0, "a receipt of a run that is not anchored")
                continue
            if places[run] < places[at]:
                yield run, Finding(Reason.CHAIN_BROKEN, number, 0, "a receipt stands behind those of a later run")
                continue
            at, mark = run, _mark(run)
        held[at].append((number, line))
    for run, numbered in held.items():
        for finding in _of_run(run, numbered, chains[run], ledger_id):
            yield run, finding


def _of_run(run: str, numbered: list[tuple[int, bytes]], chain: Chain, ledger_id: str) -> Iterator[Finding]:
    head, table = chain
    found = verify((line for _, line in numbered), run=run, ledger_id=ledger_id, head=head, table=table)
    torn = 0
    for finding in found.findings:
        where = numbered[finding.line - 1][0] if finding.line else 0
        torn = where if finding.reason is Reason.TORN_TAIL else torn
        yield evolve(finding, line=where)
    # What was torn off beyond the anchored end is nobody's; within it, a receipt is lost.
    if torn and found.count == head.length - 1:
        detail = f"the receipt that is cut off is one of the {head.length} that are anchored"
        yield Finding(Reason.CHAIN_TRUNCATED, torn, 0, detail)


def _mark(run: str) -> bytes:
    """What every receipt of a run has within it, and no receipt of another: in a text each quote has a backslash."""
    return b',"run":' + orjson.dumps(run) + b',"schema":"'


def _run_of(line: bytes, otherwise: str) -> str:
    """The run that a receipt names; one that cannot be read is taken for that of the run that it stands among."""
    try:
        run = orjson.loads(line)["run"]
    except (ValueError, KeyError, TypeError):
        return otherwise
    return run if type(run) is str else otherwise
