"""The capability broker's model: one-shot operations, named by what is asked, under grants of a person's consent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.capability.states import State as Of
from proofs.explorer import Holds, Step
from proofs.rows import ABSENT, TRUE, Row, Rows, opening, put
from proofs.system import IDLE, LATE_IS_SUCCESS, Caller, State, System

CHECKED: Final = "has passed the checks"
ADMITTED: Final = "has a durable receipt"

LATE: Final = "done after its authority ended"

LOOKS_NOTHING_UP: Final = "whether an identity was admitted before is not looked up"
ASKS_ONE_GRANT: Final = "a key that was left to the broker is looked up under one grant, when it is admitted"
SPENDS_NOTHING: Final = "a consent is not used up"
NEEDS_NO_GRANT: Final = "an operation is admitted under no grant"
RUNS_WHAT_WAS_RUNNING: Final = "a new broker carries on what the last one left"


class Grant(NamedTuple):
    """One that a person consented to: whether it still holds, and the key of the one operation that it was used for."""

    holds: bool = True
    spent: int = -1


# A broker's grants by number, and the groups that it has at hand.
Memory: TypeAlias = tuple[tuple[tuple[int, Grant], ...], frozenset[int]]


class Capability(System):
    """A group is a key under a grant. Grants are numbered in the order of their consents, and die with their broker."""

    table = CAPABILITY_TABLE
    words = (str(Of.COMPLETED), str(Of.FAILED), str(Of.CANCELLED), str(Of.UNKNOWN_NEEDS_REFRESH))
    succeeded = str(Of.COMPLETED)
    unknown = str(Of.UNKNOWN_NEEDS_REFRESH)
    cancelled = str(Of.CANCELLED)
    unsent = frozenset({ABSENT, str(Of.ADMITTED)})

    def __init__(self, name: str, *, grants: int = 1, keys: int = 2, automatic: bool = False, **more: Any) -> None:
        """With `automatic`, callers leave the grant to the broker: a key then means one operation under all of them."""
        self._grants, self._keys, self._automatic = grants, keys, automatic
        super().__init__(name, groups=grants * keys, **more)
        self.start = self.start._replace(facts=frozenset())

    @property
    def born(self) -> str:
        return ABSENT

    def fresh(self, rows: Rows) -> Memory:
        """There are no grants; the receipts of the last broker's operations are taken over."""
        return (), frozenset(group for group, row in enumerate(rows) if row.state != ABSENT)

    def own_invariants(self) -> Mapping[str, Holds]:
        once: dict[str, Holds] = {
            "a key is executed once under all grants": lambda _, step: all(
                sum(len(sent) for sent in step.after.sends[key :: self._keys]) <= 1 for key in range(self._keys)
            )
        }
        return (once if self._automatic else {}) | {
            "a consent is used once": lambda _, step: all(
                sum(len(sent) for sent in step.after.sends[grant * self._keys :][: self._keys]) <= 1
                for grant in range(self._grants)
            ),
            "nothing is sent without a consent": lambda _, step: all(
                not sent or ("given", group // self._keys) in step.after.facts
                for group, sent in enumerate(step.after.sends)
            ),
            "what ended before its marker was not sent": lambda _, step: all(
                not sent or row != Row(str(Of.CANCELLED))
                for row, sent in zip(step.after.rows, step.after.sends, strict=True)
            ),
            "no success after the end": self.late_is_no_success,
            "done after the end is told apart": lambda _, step: all(
                step.after.rows[group].state != Of.COMPLETED for what, group in step.after.facts if what == LATE
            ),
        }

    def asks(self, state: State, who: int) -> Iterator[Step]:
        caller, broker = state.callers[who], self._threads[who]
        held = dict(state.brokers[broker][0])
        if caller.phase == CHECKED:
            yield from self._admits(state, who, held)
        elif caller.phase == ADMITTED:
            yield from self.claims(state, who, Caller())
        elif caller.phase == IDLE:
            for grant in range(self._grants):
                good = grant in held and held[grant].holds and not state.ended
                if good or NEEDS_NO_GRANT in self.flaws:
                    for key in range(self._keys):
                        group = grant * self._keys + key
                        if not self._met(state, broker, group) or LOOKS_NOTHING_UP in self.flaws:
                            checked = Caller(CHECKED, group, "a")
                            yield Step(f"{who} asks for {key} under grant {grant}", self.to(state, who, checked))

    def operated(self, state: State, broker: int) -> Iterator[Step]:
        held, known = state.brokers[broker]
        given = sum(what == "given" for what, _ in state.facts)
        if given < self._grants and not state.ended:
            grants = (*held, (given, Grant()))
            consented = self.remember(state, broker, (grants, known))
            yield Step(f"a person gives broker {broker} grant {given}", self.fact(consented, "given", given))
        for place, (number, grant) in enumerate(held):
            if grant.holds:
                revoked = put(held, place, (number, grant._replace(holds=False)))
                yield Step(f"grant {number} is revoked", self.remember(state, broker, (revoked, known)))
        if RUNS_WHAT_WAS_RUNNING in self.flaws:
            for who, caller in enumerate(state.callers):
                for group, row in enumerate(state.rows):
                    if caller.phase == IDLE and self._threads[who] == broker and row.state == Of.UNKNOWN_NEEDS_REFRESH:
                        rows = put(state.rows, group, Row(str(Of.ADMITTED)))
                        again = self.to(state._replace(rows=rows), who, Caller(ADMITTED, group, "a"))
                        yield Step(f"{who} carries {group} on", again)

    def kept_in(self, state: State, who: int) -> str | None:
        running = state.rows[state.callers[who].group] == Row(str(Of.RUNNING), "a")
        return None if running and self._authority(state, who) else str(Of.CANCELLED)

    def verdicts(self, state: State, who: int) -> tuple[str, ...]:
        if self._authority(state, who) or LATE_IS_SUCCESS in self.flaws:
            return self.words
        return (str(Of.COMPLETED_AFTER_REVOCATION), *self.words[1:])

    def _met(self, state: State, broker: int, group: int) -> bool:
        """Whether the broker has the same operation at hand: one of the same key under any grant, if left to it."""
        known = state.brokers[broker][1]
        same = range(group % self._keys, self.groups, self._keys) if self._automatic else (group,)
        return any(each in known for each in same)

    def _authority(self, state: State, who: int) -> bool:
        """Whether the grant of a caller's operation holds, at its broker."""
        grant = dict(state.brokers[self._threads[who]][0]).get(state.callers[who].group // self._keys)
        return (grant is None and NEEDS_NO_GRANT in self.flaws) or (
            grant is not None and grant.holds and not state.ended
        )

    def _answered(self, state: State, who: int) -> Iterator[Step]:
        late = not self._authority(state, who)
        for step in super()._answered(state, who):
            yield step._replace(after=self.fact(step.after, LATE, state.callers[who].group)) if late else step

    def _admits(self, state: State, who: int, held: dict[int, Grant]) -> Iterator[Step]:
        """The consent is used up and the receipt is opened, under one lock of the broker."""
        caller, broker = state.callers[who], self._threads[who]
        number, key = divmod(caller.group, self._keys)
        grants, known = state.brokers[broker]
        under_lock = ASKS_ONE_GRANT not in self.flaws
        met = self._met(state, broker, caller.group) if under_lock else caller.group in known
        if met and LOOKS_NOTHING_UP not in self.flaws:
            yield Step(f"{who} is answered with the receipt of {caller.group}", self.to(state, who, Caller()))
            return
        grant = held.get(number, Grant())
        if grant.spent not in (-1, key) and SPENDS_NOTHING not in self.flaws:
            yield Step(f"{who} is refused: the consent is used up", self.to(state, who, Caller()))
            return
        spent = tuple((n, each._replace(spent=key) if n == number else each) for n, each in grants)
        taken = self.remember(state, broker, (spent, known))
        for words, after, answer, asked in self.durably(taken, opening(broker, caller.group)):
            fresh = answer == TRUE
            then = caller._replace(phase=ADMITTED) if fresh else Caller()
            if fresh:
                after = self.remember(after, broker, (spent, known | {caller.group}))
            yield Step(f"{who} is admitted with {caller.group}{words}: {answer}", self.to(after, who, then), asked)
