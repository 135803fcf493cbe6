"""Attacks on cases, from one of them to all that are shipped.

    report = attack_case(case)                  # every mutation of each good call of one case, and what is benign
    report = attack_cases(cases, seed=7, pairs=True)

A case is one whose calls all go well; other cases have no good call to begin with, and none is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from assisted_benchmark.suite.attacks import capability, live, mutation
from assisted_benchmark.suite.attacks.engine import Finding, attacks_of, benign_of, play, shrunk
from assisted_benchmark.suite.attacks.moves import Attack, Place
from assisted_benchmark.suite.attacks.report import AttackReport, Counter
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.live.samples import Draw
from assisted_benchmark.suite.plan import MEMORY, RunPlan

# So many failures are shrunk; of more there is one cause.
_SHRUNK: Final = 20

_PLACES: Final[dict[str, Callable[[Any, Draw], Iterator[Place]]]] = {
    "live": live.places,
    "mutation": mutation.places,
    "capability": capability.places,
}
_ATTACKABLE: Final[dict[str, Callable[[Any], bool]]] = {
    "live": live.attackable,
    "mutation": mutation.attackable,
    "capability": capability.attackable,
}


def attackable(case: Case) -> bool:
    """Whether a case has a good call that attacks can be made of."""
    return case.broker in _ATTACKABLE and _ATTACKABLE[case.broker](case)


def places_of(case: Case, seed: int = 0) -> Iterator[Place]:
    """Each good call of a case."""
    if attackable(case):
        yield from _PLACES[case.broker](case, Draw(f"attack/{seed}/{case.id}"))


def attack_case(case: Case, *, seed: int = 0, pairs: bool = False) -> AttackReport:
    """Attack every good call of one case, in memory; nothing is attacked of a case that has none."""
    return attack_cases([case], seed=seed, pairs=pairs)


def attack_cases(
    cases: Sequence[Case],
    *,
    seed: int = 0,
    pairs: bool = False,
    only: frozenset[str] = frozenset(),
    durability: str = MEMORY,
    on_finding: Callable[[Finding], None] = lambda _: None,
) -> AttackReport:
    """Attack every good call of these cases; `only` are the threats that are tried, empty for all.

    Raises:
        HarnessError: there is no place for a ledger.
    """
    counter = Counter()
    failures: list[Finding] = []
    for case in cases:
        bench = Bench(RunPlan(seed=seed, durability=durability))
        try:
            for place in places_of(case, seed):
                for finding in play(place, _all(place, pairs, only), bench):
                    counter.take(finding)
                    on_finding(finding)
                while counter.failed:
                    failed = counter.failed.pop(0)
                    failures.append(shrunk(place, failed, bench) if len(failures) < _SHRUNK else failed)
        finally:
            bench.close()
    return counter.report(seed, failures)


def _all(place: Place, pairs: bool, only: frozenset[str]) -> Iterator[Attack]:
    if not only:
        yield from benign_of(place)
    yield from attacks_of(place, pairs=pairs, only=only)
