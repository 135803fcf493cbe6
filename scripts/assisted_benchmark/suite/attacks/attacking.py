"""Attacks on cases, from one of them to all that are shipped.

    report = attack_case(case)                  # every mutation of each good call of one case, and what is benign
    report = attack_cases(cases, seed=7, pairs=200)

A case is one whose calls all go well; other cases have no good call to begin with, and none is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.suite.attacks import capability, live, mutation
from assisted_benchmark.suite.attacks.engine import Finding, Player, attacks_of, benign_of
from assisted_benchmark.suite.attacks.moves import Place
from assisted_benchmark.suite.attacks.report import AttackReport, Counter, Failure
from assisted_benchmark.suite.attacks.written import name_of, text_of_scenario
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


def attack_case(case: Case, *, seed: int = 0, pairs: int = 0) -> AttackReport:
    """Attack every good call of one case, in memory, with so many pairs a call; nothing of a case that has none."""
    return attack_cases([case], seed=seed, pairs=pairs)


def attack_cases(
    cases: Sequence[Case],
    *,
    seed: int = 0,
    pairs: int = 0,
    benign: bool = True,
    attacks: bool = True,
    only: frozenset[str] = frozenset(),
    durability: str = MEMORY,
    on_finding: Callable[[Finding], None] = lambda _: None,
) -> AttackReport:
    """Attack every good call of these cases, once where several have the same, with so many `pairs` a call.

    `only` are the threats that are tried, empty for all.

    Raises:
        HarnessError: there is no place for a ledger.
    """
    counter = Counter()
    failures: list[Failure] = []
    seen: set[bytes] = set()
    for case in cases:
        bench = Bench(RunPlan(seed=seed, durability=durability))
        player = Player(bench)
        try:
            for place in places_of(case, seed):
                if (key := _key(place)) in seen:
                    continue
                seen.add(key)
                tried = chain(
                    benign_of(place) if benign and not only else (),
                    attacks_of(place, pairs=pairs, only=only) if attacks else (),
                )
                for finding in player.play(place, tried):
                    counter.take(finding)
                    on_finding(finding)
                while counter.failed:
                    failed = counter.failed.pop(0)
                    least = player.shrunk(place, failed) if len(failures) < _SHRUNK else failed
                    failures.append(Failure(least, name_of(least), text_of_scenario(place, least)))
        finally:
            bench.close()
    return counter.report(seed, failures)


def _key(place: Place) -> bytes:
    """What two places have in common that are attacked alike."""
    return canonical_bytes([place.scenario({}), place.row((), None)])
