"""`attack`: what must be refused is tried, and what must not be, from the good calls that there are."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import chosen, root_of
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.report.attacks import attacks_lines, attacks_value
from assisted_benchmark.suite.attacks.attacking import attack_cases, attackable
from assisted_benchmark.suite.attacks.engine import ALL_PAIRS, Came
from assisted_benchmark.suite.attacks.outside import attack_documents, attack_records
from assisted_benchmark.suite.attacks.report import AttackReport, joined
from assisted_benchmark.suite.attacks.threats import by_id
from assisted_benchmark.suite.attacks.written import write_failures
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.plan import MEMORY


def command(arguments: argparse.Namespace) -> int:
    """Attack the good calls of the chosen cases; 1 if anything is let through, or refused that should not be."""
    only = _threats(arguments.threat)
    cases = [case for case in chosen(arguments, root_of(arguments)) if _meant(case, arguments)]
    if not cases:
        raise MisuseError(Reason.NOTHING_SELECTED, "no case with good calls alone is selected; `list` shows the cases")
    report = _report(arguments, cases, only)
    if arguments.json:
        print(json.dumps(attacks_value(report), indent=1))
    else:
        print(*attacks_lines(report, whole=arguments.all), sep="\n")
    if arguments.write_failures is not None:
        for path in write_failures(report.failures, arguments.write_failures):
            print(f"written: {path}", file=sys.stderr)
    return _code(report)


def _report(arguments: argparse.Namespace, cases: Sequence[Case], only: frozenset[str]) -> AttackReport:
    everything = arguments.all or arguments.what or arguments.k or arguments.tag
    picked = cases if everything else _one_each(cases)
    pairs = 0 if arguments.pairs is None else arguments.pairs or ALL_PAIRS
    brokers = attack_cases(
        picked,
        seed=arguments.seed,
        pairs=pairs,
        attacks=not arguments.benign,
        only=only,
        durability="process" if arguments.ledger == "sqlite" else MEMORY,
    )
    parts = [brokers]
    if arguments.all and arguments.broker is None:
        parts.append(attack_documents(only, attacks=not arguments.benign))
        parts += [] if arguments.benign else [attack_records(_one_each(cases), only)]
    return joined(parts)


def _meant(case: Case, arguments: argparse.Namespace) -> bool:
    return attackable(case) and arguments.broker in (None, case.broker)


def _one_each(cases: Sequence[Case]) -> list[Case]:
    """One case of each broker and policy."""
    return list({(case.broker, case.policy): case for case in reversed(cases)}.values())[::-1]


def _threats(names: Sequence[str]) -> frozenset[str]:
    known = by_id()
    for name in names:
        if name not in known:
            hint = (
                did_you_mean(name, known) or "such as C24; scripts/assisted_benchmark/suite/attacks/threats.csv has all"
            )
            raise MisuseError(Reason.MISUSE, f"the catalogue has no threat `{shown(name, 20)}`; {hint}")
        if not known[name].applies:
            raise MisuseError(Reason.NOTHING_SELECTED, f"{name} is not tried here: {known[name].why}")
    return frozenset(names)


def _code(report: AttackReport) -> int:
    failed = any(report.count(came) for came in (Came.THROUGH, Came.OTHER, Came.ALARM))
    held = [(report.count(Came.NO_VERDICT) > 0, exits.COULD_NOT_RUN), (failed, exits.FAILED)]
    return exits.worst([exits.NOTHING_SELECTED] if not report.tried else [code for holds, code in held if holds])
