"""What came of generated attacks: one table with detection and false alarms, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from assisted_benchmark.contract.shape import Flag, Integer, ListOf, Record, Text, Word, must
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.suite.attacks.engine import Came
from assisted_benchmark.suite.attacks.report import AttackReport, Failure, Tally
from assisted_benchmark.suite.attacks.threats import PARTS, Threat, threats

SCHEMA: Final = "assisted-benchmark/attacks@1"
_COLUMNS: Final = ("tried", "right reason", "other reason", "let through", "false alarms", "could not run")
_SHOWN: Final = 20


def attacks_value(report: AttackReport) -> Json:
    """The report as plain JSON."""
    return {
        "schema": SCHEMA,
        "seed": report.seed,
        "tried": report.tried,
        "came": {came.value: report.count(came) for came in Came},
        "table": [each._asdict() for each in report.tallies],
        "threats": [_threat(each, report) for each in threats()],
        "failures": [_failure(each) for each in report.failures],
    }


def _threat(threat: Threat, report: AttackReport) -> Json:
    return {
        "id": threat.id,
        "layer": threat.layer,
        "field": threat.field,
        "mutation": threat.what,
        "parts": [part for part in PARTS if part in threat.expected],
        "tried": threat.id in report.threats,
        "why_not": threat.why,
    }


def _failure(failure: Failure) -> Json:
    finding = failure.finding
    expected = finding.attack.expected
    return {
        "attack": finding.attack.id,
        "expected": "admitted" if expected is None else expected.reason,
        "word": finding.word,
        "came": finding.came.value,
        "sent": finding.sent,
        "detail": finding.detail,
    }


def attacks_lines(report: AttackReport, *, whole: bool) -> Iterator[str]:
    """The table, what does not apply (of the `whole` catalogue with why), and everything that is not as it must be."""
    rows: list[tuple[str, ...]] = [("layer", "reason", "part", *_COLUMNS)]
    rows += [(each.layer, each.reason, each.broker, *map(str, each[3:])) for each in _ordered(report.tallies)]
    sums = [sum(int(each[at]) for each in report.tallies) for at in range(3, 9)]
    rows.append(("all", "", "", *map(str, sums)))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        texts = (
            text.ljust(width) if at < 3 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(texts).rstrip()
    yield ""
    untried = [each for each in threats() if not each.applies]
    if whole:
        yield from (f"not tried here: {each.id} {each.what}: {each.why}" for each in untried)
    else:
        yield f"{len(untried)} threats of the catalogue are tried nowhere here; `attack --all` says which, and why"
    for failure in report.failures[:_SHOWN]:
        told = _failure(failure)
        came = f"expected {told['expected']}, was {told['word']}, sent {told['sent']}"
        yield f"{told['came'].upper()}: {told['attack']}: {came}"
    if len(report.failures) > _SHOWN:
        yield f"and {len(report.failures) - _SHOWN} more"
    yield (
        f"{report.tried} tried with seed {report.seed}: {report.count(Came.THROUGH)} let through, "
        f"{report.count(Came.ALARM)} false alarms, {report.count(Came.OTHER)} refused for another reason"
    )


def _ordered(tallies: tuple[Tally, ...]) -> list[Tally]:
    return sorted(tallies, key=lambda each: (each.layer, each.reason, each.broker))


_COUNT: Final = Integer(0)
_TEXT: Final = Text()
SHAPE: Final = Record(
    {
        "schema": must(Word((SCHEMA,)), "the kind of document"),
        "seed": must(Integer(0), "what chose among many variants"),
        "tried": must(_COUNT, "attacks and benign cases together"),
        "came": must(Record({came.value: must(_COUNT, "how many") for came in Came}, "counts"), "what came of them"),
        "table": must(
            ListOf(
                Record(
                    {
                        "broker": must(_TEXT, "the broker, or the part of the product"),
                        "layer": must(_TEXT, "the catalogue's layer"),
                        "reason": must(_TEXT, "the reason that they must be refused for, or `not refused`"),
                        "tried": must(_COUNT, "how many"),
                        "refused": must(_COUNT, "for the right reason; benign ones: not refused"),
                        "otherwise": must(_COUNT, "refused for another reason"),
                        "through": must(_COUNT, "let through"),
                        "alarms": must(_COUNT, "benign ones that were refused"),
                        "could_not_run": must(_COUNT, "without a verdict"),
                    },
                    "a line of the table",
                )
            ),
            "a line a broker, layer and reason",
        ),
        "threats": must(
            ListOf(
                Record(
                    {
                        "id": must(_TEXT, "its id in the catalogue"),
                        "layer": must(_TEXT, "where it strikes"),
                        "field": must(_TEXT, "at what"),
                        "mutation": must(_TEXT, "what is done"),
                        "parts": must(ListOf(Word(PARTS)), "the parts that it is tried on"),
                        "tried": must(Flag(), "whether it was tried in this run"),
                        "why_not": must(_TEXT, "why it does not apply, where it does not"),
                    },
                    "a threat",
                )
            ),
            "the whole catalogue",
        ),
        "failures": must(
            ListOf(
                Record(
                    {
                        "attack": must(_TEXT, "where, and which mutations"),
                        "expected": must(_TEXT, "what it must come to"),
                        "word": must(_TEXT, "what it came to"),
                        "came": must(Word(tuple(Came)), "what that is"),
                        "sent": must(_COUNT, "calls that reached a server"),
                        "detail": must(_TEXT, "what was missed"),
                    },
                    "a failure",
                )
            ),
            "everything that is not as it must be, shrunk",
        ),
    },
    "a report of attacks",
)
