"""What an attack is made of: moves against one good case, each with the reason that it must be refused for. Pure.

A move touches slots. Two moves of different slots make a pair, which is refused at whichever station comes first: a
station is a reason and the phase in which its check is asked, and each broker has them in one order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from attrs import evolve, field, frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.reasons import REASONS, Layer, Reason
from assisted_benchmark.suite.attacks.spelling import NO_EDITS, Edits, text_of
from assisted_benchmark.suite.case import Case

# A reader meets these in the order of the text.
OF_BYTES: Final = frozenset(reason.value for reason, info in REASONS.items() if info.layer is Layer.BYTES)
# A document that is too large is not read, so that nothing else can be wrong with it.
_ALONE: Final = frozenset(("C49",))


class Station(NamedTuple):
    """Where a refusal comes from: the phase, from 0, and the reason."""

    phase: int
    reason: str


class Shrink(NamedTuple):
    """A text that was altered, for an attack to be made smaller: where it stands, what it was, and what it is."""

    at: str
    was: str
    now: str


@frozen(kw_only=True)
class Move:
    """One mutation of one good case. `threat` is its id in the catalogue, `name` says which variant.

    `station` is None of a benign one, which must change nothing. `sends` counts what the attacked turn may send all
    the same. `turns` come before the attacked one, each with its word; `turn` are keys of the attacked turn itself,
    `keys` those of the scenario's row. `ends` says that nothing is decided after the station.
    """

    threat: str
    name: str
    slots: frozenset[str]
    station: Station | None
    edits: Edits = NO_EDITS
    turns: tuple[tuple[Json, str], ...] = ()
    faults: tuple[Json, ...] = ()
    turn: Mapping[str, Json] = field(factory=dict)
    keys: Mapping[str, Json] = field(factory=dict)
    sends: int = 0
    ends: bool = False
    shrink: Shrink | None = None

    @property
    def id(self) -> str:
        """The threat and the variant."""
        return f"{self.threat}.{self.name}"


@frozen(kw_only=True)
class Attack:
    """One or two moves against one good place of one case, and the row of a scenario that is the whole of it.

    The first move is the one whose station is `expected`. `either` is a second reason that is as right: of two faults
    of the bytes the reader tells the one that it meets first. `sends` counts all calls that the row may cause.
    """

    broker: str
    base: str
    moves: tuple[Move, ...]
    expected: Station | None
    row: Mapping[str, Json]
    sends: int
    either: str = ""

    @property
    def id(self) -> str:
        """The place and the moves."""
        return f"{self.base}:{'+'.join(move.id for move in self.moves)}"

    @property
    def benign(self) -> bool:
        """Whether nothing of it may be refused."""
        return self.expected is None


class Place(Protocol):
    """One good call of one good case, which can be attacked. `name` is its case's id and which call it is."""

    @property
    def name(self) -> str: ...

    @property
    def broker(self) -> str: ...

    @property
    def order(self) -> Sequence[Station]:
        """The broker's stations, first to last."""

    def moves(self) -> Sequence[Move]:
        """Every applicable mutation."""

    def benign(self) -> Sequence[Move]:
        """Every spelling that must change nothing."""

    def row(self, moves: Sequence[Move], expected: Station | None) -> dict[str, Json]:
        """The row of a scenario's table in which these moves are made."""

    def scenario(self, rows: Mapping[str, Json]) -> dict[str, Json]:
        """A whole scenario with these rows as its cases."""

    def cases(self, scenario: Mapping[str, Json]) -> tuple[Case, ...]:
        """The cases of such a scenario, ready to be played.

        Raises:
            DocumentError: it is none.
        """

    def sends(self, moves: Sequence[Move]) -> int:
        """How many sends the whole may cause."""


def refused(
    threat: str,
    name: str,
    reason: Reason,
    slots: Iterable[str],
    *,
    phase: int = 1,
    edits: Edits = NO_EDITS,
    turns: tuple[tuple[Json, str], ...] = (),
    faults: tuple[Json, ...] = (),
    turn: Mapping[str, Json] | None = None,
    keys: Mapping[str, Json] | None = None,
    sends: int = 0,
    ends: bool = False,
    shrink: Shrink | None = None,
) -> Move:
    """A move that must be refused for this reason, in this phase."""
    return Move(
        threat=threat,
        name=name,
        slots=frozenset(slots),
        station=Station(phase, reason.value),
        edits=edits,
        turns=turns,
        faults=faults,
        turn=turn or {},
        keys=keys or {},
        sends=sends,
        ends=ends,
        shrink=shrink,
    )


def harmless(
    threat: str,
    name: str,
    slots: Iterable[str],
    *,
    edits: Edits = NO_EDITS,
    faults: tuple[Json, ...] = (),
    turn: Mapping[str, Json] | None = None,
) -> Move:
    """A move that must change nothing."""
    return Move(
        threat=threat,
        name=name,
        slots=frozenset(slots),
        station=None,
        edits=edits,
        faults=faults,
        turn=turn or {},
    )


def single(place: Place, move: Move) -> Attack:
    """One move."""
    return _attack(place, (move,), move.station)


def pair(place: Place, one: Move, other: Move) -> Attack | None:
    """Both at once, refused at the station that comes first; None where they cannot be made at once."""
    if one.slots & other.slots or one.station is None or other.station is None or _ALONE & {one.threat, other.threat}:
        return None
    order = place.order
    first, second = sorted((one, other), key=lambda move: order.index(_there(move.station)))
    if first.ends and second.ends:
        return None
    attack = _attack(place, (first, second), first.station)
    reasons = (_there(first.station).reason, _there(second.station).reason)
    return evolve(attack, either=reasons[1]) if OF_BYTES.issuperset(reasons) else attack


def _there(station: Station | None) -> Station:
    if station is None:
        raise ValueError("a benign move is refused nowhere")
    return station


def _attack(place: Place, moves: tuple[Move, ...], expected: Station | None) -> Attack:
    return Attack(
        broker=place.broker,
        base=place.name,
        moves=moves,
        expected=expected,
        row=place.row(moves, expected),
        sends=place.sends(moves),
    )


def smaller(move: Move) -> list[Move]:
    """The same move, made smaller in one step each."""
    shrink = move.shrink
    if shrink is None:
        return []
    texts = [shrink.now[:at] + shrink.now[at + 1 :] for at in range(len(shrink.now))]
    found = []
    for text in dict.fromkeys(texts):
        if text != shrink.was:
            edits = evolve(move.edits, texts={**move.edits.texts, shrink.at: text_of(text)})
            found.append(evolve(move, edits=edits, shrink=shrink._replace(now=text)))
    return found


def joined(moves: Sequence[Move]) -> Edits:
    """All the edits of moves that are made at once."""
    edits = NO_EDITS
    for move in moves:
        edits = edits.joined(move.edits)
    return edits
