"""What every broker's scenarios share of faults: how they are written, and each striking at its moment, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeVar

from attrs import frozen

from assisted_benchmark.contract.shape import ByKey, Integer, ListOf, Record, Shape, Word, duration_ns, may, must
from assisted_benchmark.kernel.canonical import Json

TURN_NUMBER: Final = Integer(1, 1000)

KindT = TypeVar("KindT", bound=StrEnum)
AtT = TypeVar("AtT", bound=StrEnum)


class Due(Protocol):
    """A fault that waits for its moment. `turn` counts the agent's calls from 1; 0 is the last one."""

    @property
    def turn(self) -> int: ...


@frozen(kw_only=True)
class Written(Generic[KindT, AtT]):
    """How a broker's faults are written: their kinds with the values' shapes, and when each strikes unless said.

    What `needs_grant` cannot strike at the first moment, when nothing is sealed yet.
    """

    kinds: Mapping[KindT, tuple[Shape, str]]
    durations: frozenset[KindT]
    moments: type[AtT]
    usual: Mapping[KindT, AtT]
    otherwise: AtT
    needs_grant: frozenset[KindT] = frozenset()

    def shape(self) -> ListOf:
        """A list of such faults."""
        moments = tuple(self.moments)
        return ListOf(
            ByKey(
                {
                    kind.value: Record(
                        {
                            kind.value: must(shape, doc),
                            "at": may(
                                Word(moments[kind in self.needs_grant :]),
                                f"the moment; usually `{self.usual.get(kind, self.otherwise)}`",
                            ),
                            "turn": may(TURN_NUMBER, "at which of the agent's calls, from 1; usually the last"),
                        },
                        f"a fault `{kind.value}`",
                    )
                    for kind, (shape, doc) in self.kinds.items()
                }
            ),
            most=20,
        )

    def read(self, value: Json) -> tuple[KindT, Json, AtT, int]:
        """One fault that fits the shape: what, its value (a duration in nanoseconds), when, and at which turn."""
        kind = next(kind for kind in self.kinds if kind.value in value)
        detail = value[kind.value]
        at = self.moments(value["at"]) if "at" in value else self.usual.get(kind, self.otherwise)
        return kind, duration_ns(detail) if kind in self.durations else detail, at, value.get("turn", 0)


FaultT = TypeVar("FaultT", bound=Due)


class Waiting(Generic[FaultT]):
    """The faults of one case that have not struck. One without a turn is due at the last of `turns`."""

    def __init__(self, faults: Sequence[FaultT], turns: int) -> None:
        self._left = [(each.turn or turns, each) for each in faults]
        self.turn = 0

    @property
    def left(self) -> tuple[FaultT, ...]:
        """Those whose moment never came."""
        return tuple(each for _, each in self._left)

    def take(self, comes: Callable[[FaultT], bool], *, any_turn: bool) -> Iterator[FaultT]:
        """Those whose moment has come, one by one: where one of them ends the broker, the others have not struck."""
        for each in [each for each in self._left if comes(each[1]) and (any_turn or each[0] == self.turn)]:
            self._left.remove(each)
            yield each[1]
