"""What came of many attacks: counted by broker, layer and reason, detection and false alarms always together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from attrs import field, frozen

from assisted_benchmark.suite.attacks.engine import Came, Finding
from assisted_benchmark.suite.attacks.threats import Threat, by_id

NOT_REFUSED: Final = "not refused"


class Tally(NamedTuple):
    """One line of the table: attacks that must be refused for one reason, told of one layer of the catalogue.

    Of benign ones `reason` is `NOT_REFUSED`, and `alarms` counts those that were refused.
    """

    broker: str
    layer: str
    reason: str
    tried: int
    refused: int
    otherwise: int
    through: int
    alarms: int
    could_not_run: int


@frozen
class Failure:
    """What did not come to what it must, shrunk. `scenario` is a file that comes to the same, if a scenario can."""

    finding: Finding
    name: str = ""
    scenario: str = ""


@frozen(kw_only=True)
class AttackReport:
    """All of it. `failures` are what did not come to what it must, each shrunk; `seed` chose among many variants.

    `threats` are the ids that were tried.
    """

    seed: int
    tallies: tuple[Tally, ...]
    failures: tuple[Failure, ...] = ()
    threats: frozenset[str] = field(factory=frozenset)

    @property
    def sound(self) -> bool:
        """Whether every attack was refused for the right reason, and nothing else was."""
        return not self.failures

    @property
    def tried(self) -> int:
        """How many attacks and benign cases there were."""
        return sum(each.tried for each in self.tallies)

    def count(self, came: Came) -> int:
        """How many came to this; the right end of benign ones is `refused`, too."""
        places = {Came.RIGHT: 4, Came.OTHER: 5, Came.THROUGH: 6, Came.ALARM: 7, Came.NO_VERDICT: 8}
        return sum(int(each[places[came]]) for each in self.tallies)


class Counter:
    """Counts findings as they come; nothing but failures is kept."""

    def __init__(self) -> None:
        self.failed: list[Finding] = []
        self._counts: dict[tuple[str, str, str], dict[Came, int]] = {}
        self._threats: set[str] = set()
        self._known = by_id()

    def take(self, finding: Finding) -> None:
        """One more."""
        attack = finding.attack
        reason = NOT_REFUSED if attack.expected is None else attack.expected.reason
        key = (attack.broker, self._layer(attack.moves[0].threat), reason)
        counts = self._counts.setdefault(key, dict.fromkeys(Came, 0))
        counts[finding.came] += 1
        self._threats.update(move.threat for move in attack.moves)
        if finding.came is not Came.RIGHT:
            self.failed.append(finding)

    def _layer(self, threat: str) -> str:
        known: Threat | None = self._known.get(threat)
        return "" if known is None else known.layer

    def report(self, seed: int, failures: Sequence[Failure]) -> AttackReport:
        """What was counted, with the failures as they were shrunk."""
        tallies = (
            Tally(
                *key,
                sum(counts.values()),
                counts[Came.RIGHT],
                counts[Came.OTHER],
                counts[Came.THROUGH],
                counts[Came.ALARM],
                counts[Came.NO_VERDICT],
            )
            for key, counts in sorted(self._counts.items())
        )
        return AttackReport(
            seed=seed, tallies=tuple(tallies), failures=tuple(failures), threats=frozenset(self._threats)
        )


def joined(reports: Iterable[AttackReport]) -> AttackReport:
    """Several reports of one seed as one."""
    parts = list(reports)
    sums: dict[tuple[str, str, str], list[int]] = {}
    for part in parts:
        for each in part.tallies:
            counts = sums.setdefault(each[:3], [0] * 6)
            for at, count in enumerate(each[3:]):
                counts[at] += count
    return AttackReport(
        seed=parts[0].seed if parts else 0,
        tallies=tuple(Tally(*key, *counts) for key, counts in sorted(sums.items())),
        failures=tuple(each for part in parts for each in part.failures),
        threats=frozenset().union(*(part.threats for part in parts)),
    )
