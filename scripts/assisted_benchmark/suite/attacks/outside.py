"""Attacks on what is no call: documents that are read, and receipts that are kept."""

from __future__ import annotations

from collections.abc import Sequence

from assisted_benchmark.ledger.receipts import verify
from assisted_benchmark.suite.attacks.documents import found_in, good_files, pinned, restyled, spoiled
from assisted_benchmark.suite.attacks.engine import Came, Finding
from assisted_benchmark.suite.attacks.moves import Attack, Move, Station
from assisted_benchmark.suite.attacks.records import edited
from assisted_benchmark.suite.attacks.report import AttackReport, Counter, Failure
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.brokers import BY_NAME
from assisted_benchmark.suite.case import ADMITTED, Case
from assisted_benchmark.suite.plan import MEMORY, RunPlan, ledger_id

DOCUMENTS, RECORDS = "documents", "records"


def attack_documents(only: frozenset[str] = frozenset(), *, attacks: bool = True) -> AttackReport:
    """Every spoiled document, and the same in other styles."""
    counter = Counter()
    good = pinned(good_files())
    _, digests = found_in(good)
    for threat, name, expected, spoil in spoiled() if attacks else ():
        if not only or threat in only:
            files = dict(good)
            spoil(files)
            reasons, _ = found_in(files)
            counter.take(_refused(DOCUMENTS, threat, name, expected, reasons))
    for name, restyle in restyled() if not only else ():
        files = dict(good)
        restyle(files)
        reasons, found = found_in(files)
        word = reasons[0] if reasons else ADMITTED
        came = Came.RIGHT if not reasons and found == digests else Came.ALARM
        counter.take(Finding(attack=_attack(DOCUMENTS, "G10", name, None), came=came, word=word, sent=0))
    return _report(counter)


def attack_records(cases: Sequence[Case], only: frozenset[str] = frozenset()) -> AttackReport:
    """Every edit of the receipts of these good cases."""
    counter = Counter()
    bench = Bench(RunPlan(durability=MEMORY, expect_identical=True))
    try:
        for case in cases:
            ended, ledger = bench.run(case, f"{case.id}:records"), ledger_id(0)
            table = BY_NAME[case.broker].table
            for threat, name, expected, lines, head in edited(ended.receipts, ended.head, ended.run, ledger):
                if not only or threat in only:
                    said = verify(lines, run=ended.run, ledger_id=ledger, head=head, table=table)
                    reasons = [each.reason.value for each in said.findings]
                    counter.take(_refused(RECORDS, threat, f"{case.broker}-{name}", expected.value, reasons))
    finally:
        bench.close()
    return _report(counter)


def _refused(part: str, threat: str, name: str, expected: str, reasons: Sequence[str]) -> Finding:
    word = reasons[0] if reasons else ADMITTED
    came = Came.RIGHT if word == expected else Came.OTHER if reasons else Came.THROUGH
    attack = _attack(part, threat, name, Station(0, expected))
    return Finding(attack=attack, came=came, word=word, sent=0, detail=", ".join(reasons))


def _attack(part: str, threat: str, name: str, station: Station | None) -> Attack:
    move = Move(threat=threat, name=name, slots=frozenset((part,)), station=station)
    return Attack(broker=part, base=part, moves=(move,), expected=station, row={}, sends=0)


def _report(counter: Counter) -> AttackReport:
    failed, counter.failed = counter.failed, []
    return counter.report(0, [Failure(each) for each in failed])
