"""Playing attacks: each from a fresh state against the real broker and ledger, and what came of it told apart.

An attack is a row of a scenario, so what is played is what a scenario file of it would play. It is *refused for the
right reason* if its last word is the expected one and no more was sent than the good calls before it; *let through* if
a call of it was admitted or more was sent; *refused for another reason* otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum, unique
from itertools import combinations, count, islice
from typing import Final

from attrs import evolve, frozen

from assisted_benchmark.suite.attacks.moves import Attack, Move, Place, pair, single, smaller
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.samples import Draw
from assisted_benchmark.suite.result import CaseResult, Verdict

ALL_PAIRS: Final = -1
_AT_ONCE: Final = 100


@unique
class Came(StrEnum):
    """What came of an attack, or of a benign case."""

    RIGHT = "refused"  # refused for the right reason; a benign one: not refused
    OTHER = "refused_otherwise"
    THROUGH = "let_through"
    ALARM = "false_alarm"  # a benign one was refused
    NO_VERDICT = "could_not_run"


@frozen(kw_only=True)
class Finding:
    """What came of one attack. `word` is the last decision's; `sent` counts all calls that reached a server."""

    attack: Attack
    came: Came
    word: str
    sent: int
    detail: str = ""


def attacks_of(place: Place, *, pairs: int, only: frozenset[str] = frozenset()) -> Iterator[Attack]:
    """Every applicable mutation of one good call: each by itself, then so many `pairs` of those that go together.

    With `ALL_PAIRS` there are all of them. `only` are the threats that one of the moves must be of; empty for all.
    """
    moves = place.moves()
    for move in moves:
        if not only or move.threat in only:
            yield single(place, move)
    if not pairs:
        return
    both = list(combinations(moves, 2))
    if 0 < pairs < len(both):
        both = _chosen(both, pairs, Draw(f"pairs/{place.name}"))
    for one, other in both:
        if not only or only & {one.threat, other.threat}:
            attack = pair(place, one, other)
            if attack is not None:
                yield attack


def _chosen(pairs: list[tuple[Move, Move]], most: int, draw: Draw) -> list[tuple[Move, Move]]:
    """So many of the pairs that can be made."""
    made: list[tuple[Move, Move]] = []
    left = list(pairs)
    while left and len(made) < most:
        at = draw.below(len(left))
        left[at], left[-1] = left[-1], left[at]
        one, other = left.pop()
        if not one.slots & other.slots:
            made.append((one, other))
    return made


def benign_of(place: Place) -> Iterator[Attack]:
    """Every spelling of one good call that must not be refused."""
    for move in place.benign():
        yield single(place, move)


class Player:
    """Plays attacks on one bench, each in a run of its own."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._numbers = count(1)

    def play(self, place: Place, attacks: Iterable[Attack]) -> Iterator[Finding]:
        """What comes of each attack, in order."""
        left = iter(attacks)
        while batch := list(islice(left, _AT_ONCE)):
            # A name is used once on a bench: on disk a ledger never forgets a run.
            rows = {f"a-{next(self._numbers)}": attack.row for attack in batch}
            cases = place.cases(place.scenario(rows))
            for attack, case in zip(batch, cases, strict=True):
                yield found(attack, self._bench.run(case, case.id).result)

    def shrunk(self, place: Place, finding: Finding) -> Finding:
        """The smallest attack that fails: one move of two, if it fails alone; then the least change that fails so."""
        moves = finding.attack.moves
        for move in moves if len(moves) > 1 else ():
            alone = self._one(place, single(place, move))
            if alone.came is not Came.RIGHT:
                finding = alone
                break
        better = True
        while better:
            better = False
            for attack in _smaller_attacks(place, finding.attack):
                again = self._one(place, attack)
                if (again.came, again.word) == (finding.came, finding.word):
                    finding, better = again, True
                    break
        return finding

    def _one(self, place: Place, attack: Attack) -> Finding:
        return next(self.play(place, [attack]))


def found(attack: Attack, result: CaseResult) -> Finding:
    """What a case that was played says of its attack."""
    if result.verdict is Verdict.COULD_NOT_RUN:
        return Finding(attack=attack, came=Came.NO_VERDICT, word=result.reason, sent=result.sent, detail=result.detail)
    word = last_word(result)
    expected = attack.expected
    if expected is None:
        good = word == ADMITTED and result.verdict is Verdict.PASSED
        came = Came.RIGHT if good else Came.ALARM
    elif result.sent > attack.sends or word == ADMITTED:
        came = Came.THROUGH
    else:
        came = Came.RIGHT if word in (expected.reason, attack.either) else Came.OTHER
    misses = "; ".join(f"{each.what}: expected {each.expected}, was {each.actual}" for each in result.misses)
    return Finding(attack=attack, came=came, word=word, sent=result.sent, detail=misses)


def last_word(result: CaseResult) -> str:
    """The last word that was said of a proposal: a reason, or `admitted` if it went well."""
    decided = [event for event in result.timeline if event.kind in ("decision", "dispatch")]
    return (decided[-1].reason or ADMITTED) if decided else ""


def _smaller_attacks(place: Place, attack: Attack) -> Iterator[Attack]:
    for at, move in enumerate(attack.moves):
        for less in smaller(move):
            moves = (*attack.moves[:at], less, *attack.moves[at + 1 :])
            yield evolve(attack, moves=moves, row=place.row(moves, attack.expected))
