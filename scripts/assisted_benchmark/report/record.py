"""report.json: the whole run as one JSON document, the source of every other report.

Holds nothing that differs between two runs of the same cases with the same seed: no clock time,
no path of the machine, no duration (those are in `timing.jsonl`).
"""

from __future__ import annotations

from typing import Final

import orjson
from attrs import asdict

from assisted_benchmark.contract.shape import (
    DIGEST,
    AnyJson,
    ByKind,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
    Word,
    must,
)
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.report.chances import COLUMNS as CHANCES
from assisted_benchmark.report.chances import chances
from assisted_benchmark.report.summary import COLUMNS, LATTICE_COLUMNS, lattice, opening_table, refusals, verdicts
from assisted_benchmark.suite.result import VARIES, CaseResult, RunResult, Verdict

SCHEMA: Final = "assisted-benchmark/report@1"


def record(run: RunResult) -> Json:
    """The run as a JSON value of schema `assisted-benchmark/report@1`."""
    return {
        "schema": SCHEMA,
        "seed": run.seed,
        "durability": run.durability,
        "repeat": run.repeat,
        "interrupted": run.interrupted,
        "selected": run.selected,
        "stamps": list(run.stamps),
        "verdicts": {verdict.value: count for verdict, count in verdicts(run.cases).items()},
        "refusals": refusals(run.cases),
        "table": [asdict(line) for line in opening_table(run.cases)],
        "lattice": [asdict(each) for each in lattice(run.cases)],
        "varying": [asdict(each) for each in chances(run.cases)],
        "cases": [_case(case) for case in run.cases],
    }


def record_bytes(run: RunResult) -> bytes:
    """`record` as indented UTF-8, keys sorted, one line end at the end."""
    return orjson.dumps(record(run), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _case(case: CaseResult) -> Json:
    value = asdict(case, value_serializer=lambda _case, _field, each: list(each) if type(each) is tuple else each)
    return value | {
        "verdict": case.verdict.value,
        "deterministic": VARIES not in case.stamps and case.verdict is not Verdict.COULD_NOT_RUN,
        "refusals": dict(case.refusals),
        "calls": dict(case.calls),
    }


_TEXT: Final = Text(limit=1_000_000)
_COUNT: Final = Integer(0)
_SCORE: Final = ByKind((Number(0, 1), AnyJson()))
_COUNTS: Final = MapOf(_COUNT)

_LATTICE: Final = ListOf(
    Record({name: must(_COUNT if at else _TEXT, title) for at, (name, title) in enumerate(LATTICE_COLUMNS)})
)

_SHARE: Final = Number(0, 1)
_CHANCES: Final[dict[str, Shape]] = {"scenario": _TEXT, "low": _SHARE, "high": _SHARE, "all_pass": _SHARE}

_SCORES: Final = Record(
    {
        "state_grounding": must(_SCORE, "0 to 1, or null"),
        "action_correctness": must(_SCORE, "0 to 1, or null"),
        "task_completion": must(_SCORE, "0 to 1, or null"),
    }
)
# Where a transcript parted from what its agent had seen; null where it did not, or where none was played.
_PREFIX: Final = ByKind(
    (
        Record(
            {
                "proposed": must(_COUNT, "proposals until then, the one that was answered otherwise included"),
                "admitted": must(_COUNT, "admitted ones of them"),
                "sent": must(_COUNT, "calls that had reached a server by then"),
                "scores": must(_SCORES, "the scores as they stood then"),
            }
        ),
        AnyJson(),
    )
)

_CASE: Final = Record(
    {
        "id": must(_TEXT, "the case's stable id, folder/file/case"),
        "file": must(_TEXT, "the fixture, from the root"),
        "because": must(_TEXT, "why the case is there"),
        "agent": must(_TEXT, "who proposed"),
        "policy": must(_TEXT, "the policy's id"),
        "verdict": must(Word(tuple(Verdict)), "never merged: could_not_run is neither passed nor failed"),
        "tags": must(ListOf(_TEXT), "the fixture's tags"),
        "scores": must(_SCORES, "three separate scores"),
        "misses": must(
            ListOf(Record({"what": must(_TEXT, "which"), "expected": must(_TEXT, ""), "actual": must(_TEXT, "")})),
            "the expectations that were not met",
        ),
        "reason": must(_TEXT, "the code, where the case could not run"),
        "detail": must(_TEXT, "why, for people; of a program that was the agent, how it ended"),
        "proposed": must(_COUNT, "proposals"),
        "admitted": must(_COUNT, "admitted proposals"),
        "sent": must(_COUNT, "calls that reached a server, counted there"),
        "confirmed": must(_COUNT, "calls whose effect the oracle saw"),
        "attacker_sent": must(_COUNT, "calls of an attacker that reached a server"),
        "benign_refused": must(_COUNT, "refusals of what should have been admitted"),
        "unresolved": must(_COUNT, "groups whose outcome is not known"),
        "refusals": must(_COUNTS, "refusals by reason"),
        "calls": must(_COUNTS, "calls by server"),
        "ends": must(_TEXT, "the last group's state"),
        "receipts": must(ByKind((DIGEST, AnyJson())), "the digest over the case's receipts, or null"),
        "stamps": must(ListOf(_TEXT), "what this case does not guarantee"),
        "deterministic": must(Flag(), "whether the same case comes to the same, whenever it is run"),
        "runs": must(_COUNT, "of a case that varies: how often it came to a verdict"),
        "passes": must(_COUNT, "and how often it passed"),
        "lattice": must(_LATTICE, "what seals of each strength would have said of the proposals, weakest first"),
        "diverged_at": must(
            ByKind((_COUNT, AnyJson())),
            "a transcript's turn, from 0, that was answered otherwise than recorded",
        ),
        "prefix": must(_PREFIX, "what a transcript came to until it diverged, or null"),
        "timeline": must(
            ListOf(
                Record(
                    {
                        "kind": must(_TEXT, "proposal, decision, dispatch, receipt, fault or oracle"),
                        "text": must(_TEXT, "redacted"),
                        "at_ns": must(_COUNT, "the injected monotonic clock"),
                        "reason": must(_TEXT, ""),
                        "server": must(_TEXT, ""),
                        "tool": must(_TEXT, ""),
                    }
                )
            ),
            "what happened, in order",
        ),
    },
    "a case",
)

SHAPE: Final = Record(
    {
        "schema": must(Word((SCHEMA,)), "this document's kind"),
        "seed": must(_COUNT, "the run's seed"),
        "durability": must(_TEXT, "the ledger's durability"),
        "repeat": must(Integer(1), "how often each case was run"),
        "interrupted": must(Flag(), "whether the run was cut short"),
        "selected": must(_COUNT, "how many cases were to run"),
        "stamps": must(ListOf(_TEXT), "what the run does not guarantee"),
        "verdicts": must(_COUNTS, "cases by verdict"),
        "refusals": must(_COUNTS, "refusals by reason"),
        "table": must(
            ListOf(
                Record({name: must(_TEXT if at < 2 else _COUNT, title) for at, (name, title) in enumerate(COLUMNS)})
            ),
            "agent by policy",
        ),
        "lattice": must(_LATTICE, "what seals of each strength would have come to over all cases, weakest first"),
        "varying": must(
            ListOf(Record({name: must(_CHANCES.get(name, _COUNT), title) for name, title in CHANCES})),
            "how often agents that vary succeeded, by scenario",
        ),
        "cases": must(ListOf(_CASE, most=10_000_000), "every case, in order"),
    },
    "a report",
)
