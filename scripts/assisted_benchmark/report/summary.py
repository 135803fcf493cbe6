"""The opening table: what each agent came to under each policy. Pure; every report prints these numbers."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from assisted_benchmark.suite.result import CaseResult, Counterfactual, Verdict


@frozen(kw_only=True)
class Line:
    """One row: an agent under a policy. All numbers are counts; `sent` was counted at the servers."""

    agent: str
    policy: str
    cases: int = 0
    proposed: int = 0
    admitted: int = 0
    sent: int = 0
    confirmed: int = 0
    attacker_sent: int = 0
    benign_refused: int = 0
    unresolved: int = 0
    could_not_run: int = 0


COLUMNS = (
    ("agent", "agent"),
    ("policy", "policy"),
    ("cases", "cases"),
    ("proposed", "proposed"),
    ("admitted", "admitted"),
    ("sent", "sent"),
    ("confirmed", "oracle-confirmed"),
    ("attacker_sent", "attacker sent"),
    ("benign_refused", "benign refused"),
    ("unresolved", "unresolved"),
    ("could_not_run", "could not run"),
)


LATTICE_COLUMNS = (
    ("strength", "if sealed by"),
    ("admitted", "admitted"),
    ("attacker_admitted", "attacker admitted"),
    ("benign_refused", "benign refused"),
)


@frozen(kw_only=True)
class Diverged:
    """A transcript that was answered otherwise than when it was recorded: at which turn, and what came until then."""

    case: str
    turn: int
    proposed: int
    admitted: int
    sent: int


DIVERGED_COLUMNS = (
    ("case", "answered otherwise than recorded"),
    ("turn", "at turn"),
    ("proposed", "proposed by then"),
    ("admitted", "admitted"),
    ("sent", "sent"),
)

_SUMMED = ("proposed", "admitted", "sent", "confirmed", "attacker_sent", "benign_refused", "unresolved")


def opening_table(cases: Iterable[CaseResult]) -> tuple[Line, ...]:
    """One line for each agent and policy, sorted by both."""
    lines: dict[tuple[str, str], Line] = {}
    for case in cases:
        key = (case.agent, case.policy)
        line = lines.get(key) or Line(agent=case.agent, policy=case.policy)
        lines[key] = evolve(
            line,
            cases=line.cases + 1,
            could_not_run=line.could_not_run + (case.verdict is Verdict.COULD_NOT_RUN),
            **{name: getattr(line, name) + getattr(case, name) for name in _SUMMED},
        )
    return tuple(lines[key] for key in sorted(lines))


def diverged(cases: Iterable[CaseResult]) -> tuple[Diverged, ...]:
    """Each case whose transcript diverged, in order: what it did from then on was decided on other grounds."""
    return tuple(
        Diverged(case=each.id, turn=each.diverged_at, proposed=by.proposed, admitted=by.admitted, sent=by.sent)
        for each in cases
        if each.diverged_at is not None and (by := each.prefix) is not None
    )


def lattice(cases: Iterable[CaseResult]) -> tuple[Counterfactual, ...]:
    """What a seal of each strength would have come to over all cases, weakest first; empty if no case tells."""
    sums: dict[str, Counterfactual] = {}
    for each in (each for case in cases for each in case.lattice):
        so_far = sums.get(each.strength)
        sums[each.strength] = (
            each
            if so_far is None
            else evolve(each, **{name: getattr(so_far, name) + getattr(each, name) for name, _ in LATTICE_COLUMNS[1:]})
        )
    return tuple(sums.values())


def verdicts(cases: Iterable[CaseResult]) -> dict[Verdict, int]:
    """How many cases came to each verdict; all three are always there."""
    counts = dict.fromkeys(Verdict, 0)
    for case in cases:
        counts[case.verdict] += 1
    return counts


def fault_lines(case: CaseResult) -> list[str]:
    """What a case that failed was to come to and came to, and the reasons that its calls were given."""
    missed = [f"{miss.what}: expected {miss.expected}, came {miss.actual}" for miss in case.misses]
    missed += [case.detail] if case.detail else []
    return missed + [f"{each.reason}: {each.text}" for each in case.timeline if each.kind == "decision" and each.reason]


def refusals(cases: Iterable[CaseResult]) -> dict[str, int]:
    """How often each reason was given, by code."""
    counts: dict[str, int] = {}
    for case in cases:
        for reason, times in case.refusals:
            counts[reason] = counts.get(reason, 0) + times
    return dict(sorted(counts.items()))
