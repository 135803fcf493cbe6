"""The live broker's model: choice groups with alternative candidates, in order, stopped by their run's owner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, NamedTuple

from assisted_benchmark.live_policy.states import LIVE_TABLE
from assisted_benchmark.live_policy.states import State as Of
from proofs.explorer import Holds, Step
from proofs.rows import FALSE, Row, Rows, move, note, put, settle
from proofs.system import GATED, HOLDS, KNOWS, LATE_IS_SUCCESS, WAITS, Caller, State, System

DECIDED: Final = "is admitted"

IGNORES_ORDER: Final = "a step is claimed whatever came of the one before"
REVOKES_ANYTHING: Final = "a revocation is written over what is in flight"
LEAVES_OTHERS: Final = "a revocation leaves what others carry as it is"
RECONCILES_OVER: Final = "a reconciliation changes the state"

_STOPS: Final = {"revoke": str(Of.REVOKED), "abort": str(Of.ABORTED)}


class Memory(NamedTuple):
    """What one broker knows by itself: how its grant was stopped, and how much of that is still to be written down.

    `todo` is the group to be closed next, and whether it is looked at once more as one that others may carry.
    """

    stopped: str = ""
    todo: tuple[int, bool] | None = None


class Live(System):
    """Groups are the steps of one grant. The first broker's owner may stop it; recovery and time are everybody's."""

    table = LIVE_TABLE
    candidates = ("a", "b")
    words = (str(Of.SUCCEEDED), str(Of.FAILED), str(Of.UNRESOLVED))
    succeeded = str(Of.SUCCEEDED)
    unknown = str(Of.UNRESOLVED)
    unsent = frozenset(map(str, (Of.SEALED, Of.EXPIRED, Of.REVOKED, Of.ABORTED, Of.EXHAUSTED)))
    _IN_FLIGHT: ClassVar = frozenset({HOLDS, GATED, WAITS, KNOWS})

    def fresh(self, _: Rows) -> Memory:
        return Memory()

    def own_invariants(self) -> Mapping[str, Holds]:
        return {
            "of a group's candidates one is sent": lambda _, step: all(
                len(set(sent)) <= 1 for sent in step.after.sends
            ),
            "no success after the end": self.late_is_no_success,
            "a step is sent after the one before succeeded": self._in_order,
        }

    def asks(self, state: State, who: int) -> Iterator[Step]:
        caller, memory = state.callers[who], state.brokers[self._threads[who]]
        if caller.phase == DECIDED:
            if self._is_open(state, caller.group):
                yield from self.claims(state, who, Caller())
            else:
                yield Step(f"{who} is refused: out of order", self.to(state, who, Caller()))
        elif not state.ended and not memory.stopped:
            for group, row in enumerate(state.rows):
                if row.state == Of.SEALED and self._is_open(state, group):
                    for candidate in self.candidates:
                        decided = Caller(DECIDED, group, candidate)
                        yield Step(f"{who} chooses {candidate} of {group}", self.to(state, who, decided))

    def operated(self, state: State, broker: int) -> Iterator[Step]:
        yield from self._beside(state, broker)
        memory: Memory = state.brokers[broker]
        if memory.todo is not None:
            yield from self._closing(state, broker, memory, memory.todo)
        elif broker == 0 and not memory.stopped:
            for how in _STOPS:
                stopped = self.remember(state, broker, Memory(how, (0, False)))
                yield Step(f"the owner tells broker {broker} to {how}", stopped)

    def kept_in(self, state: State, who: int) -> str | None:
        caller, memory = state.callers[who], state.brokers[self._threads[who]]
        if memory.stopped or state.rows[caller.group] != Row(str(Of.DISPATCHING), caller.candidate):
            return str(Of.FAILED)
        return str(Of.EXPIRED) if state.ended else None

    def verdicts(self, state: State, who: int) -> tuple[str, ...]:  # noqa: ARG002 - time is for all the same
        return self.words if not state.ended or LATE_IS_SUCCESS in self.flaws else (self.unknown,)

    def _is_open(self, state: State, group: int) -> bool:
        return group == 0 or IGNORES_ORDER in self.flaws or state.rows[group - 1].state == Of.SUCCEEDED

    def _beside(self, state: State, broker: int) -> Iterator[Step]:
        """What is written about a group that nobody carries."""
        for group, row in enumerate(state.rows):
            if row.state == Of.SEALED:
                ends = (Of.EXHAUSTED, Of.EXPIRED) if state.ended else (Of.EXHAUSTED,)
                for end in ends:
                    for words, after, _, asked in self.durably(state, move(broker, group, row.state, str(end))):
                        yield Step(f"broker {broker} writes {group} `{end}`{words}", after, asked)
            elif row.state == Of.UNRESOLVED:
                _, after, _, asked = next(self.durably(state, note(broker, group)))
                if RECONCILES_OVER in self.flaws:
                    after = after._replace(rows=put(state.rows, group, row._replace(state=str(Of.SUCCEEDED))))
                yield Step(f"broker {broker} records what an operator found of {group}", after, asked)

    def _closing(self, state: State, broker: int, memory: Memory, todo: tuple[int, bool]) -> Iterator[Step]:
        """Sealed groups end; one that others may carry is given up; after an abort, an own one that may be out."""
        group, again = todo
        if group == len(state.rows):
            done = self.remember(state, broker, memory._replace(todo=None))
            mine = self._flying(state, broker, None) if memory.stopped == "abort" else None
            if mine is None or state.callers[mine].phase == HOLDS:
                yield Step(f"broker {broker} has stopped", done)
                return
            caller = state.callers[mine]
            question = settle(broker, caller.group, caller.candidate, str(Of.UNRESOLVED))
            # The caller finds at its end that its call was given up.
            for words, after, _, asked in self.durably(done, question):
                yield Step(f"broker {broker} gives its own call up{words}", after, asked)
            return
        onward = memory._replace(todo=(group + 1, False))
        if again:
            before, end = str(Of.DISPATCHING), str(Of.UNRESOLVED)
        else:
            before, end = str(Of.SEALED), _STOPS[memory.stopped]
        if not again and REVOKES_ANYTHING in self.flaws:
            rows = put(state.rows, group, state.rows[group]._replace(state=end))
            yield Step(f"broker {broker} closes {group}", self.remember(state._replace(rows=rows), broker, onward))
            return
        for words, after, answer, asked in self.durably(state, move(broker, group, before, end)):
            mine = self._flying(state, broker, group)
            look = not again and answer == FALSE and mine is None and LEAVES_OTHERS not in self.flaws
            then = memory._replace(todo=(group, True)) if look else onward
            yield Step(
                f"broker {broker} closes {group} from `{before}`{words}", self.remember(after, broker, then), asked
            )

    def _flying(self, state: State, broker: int, group: int | None) -> int | None:
        """The caller of this broker that carries a call, of this group if one is named."""
        for who, caller in enumerate(state.callers):
            if self._threads[who] == broker and caller.phase in self._IN_FLIGHT and group in (None, caller.group):
                return who
        return None

    def _in_order(self, state: State, step: Step) -> bool:
        return all(
            group == 0 or sent == state.sends[group] or state.rows[group - 1].state == Of.SUCCEEDED
            for group, sent in enumerate(step.after.sends)
        )
