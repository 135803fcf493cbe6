"""The mutation broker's model: a token is used up, a person is asked, and what was agreed to is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.mutation.states import State as Of
from proofs.explorer import Holds, Step
from proofs.rows import TRUE, Rows, move
from proofs.system import IDLE, Caller, State, System

PRESENTED: Final = "has looked at the token"
CONSUMED: Final = "has used the token up"
AGREED: Final = "has a person's word"
LOOKED: Final = "has looked at the time once more"
ENDS: Final = "ends what will not be sent"

USED: Final = "the token was used up"
USED_AGAIN: Final = "the token was used up twice"
ASKED: Final = "an answer was taken"
ASKED_AGAIN: Final = "two answers were taken"
YES: Final = "a person agreed"

LOOKS_ONLY: Final = "a token is used by whoever has seen it unused"
ASKS_NOBODY: Final = "what is consumed is sent, whoever answers what"
KEEPS_QUESTIONS: Final = "a question stays open after its answer"
ENDS_ANYTHING: Final = "a no is written over what may be out"

# The questions that are open, by group: they live with their broker.
Memory: TypeAlias = frozenset[int]


class Mutation(System):
    """Groups are proposals whose dry run passed. Callers bring tokens and answers; any of them may be cancelled."""

    table = MUTATION_TABLE
    words = (str(Of.SUCCEEDED), str(Of.FAILED), str(Of.UNRESOLVED))
    succeeded = str(Of.SUCCEEDED)
    unknown = str(Of.UNRESOLVED)
    cancelled = str(Of.REFUSED)
    unsent = frozenset(map(str, (Of.SEALED, Of.CONFIRMING, Of.REFUSED, Of.EXPIRED, Of.EVICTED)))

    def fresh(self, _: Rows) -> Memory:
        return frozenset()

    def own_invariants(self) -> Mapping[str, Holds]:
        def never(what: str) -> Holds:
            return lambda _, step: all(each != what for each, _ in step.after.facts)

        return {
            "a token is used up once": never(USED_AGAIN),
            "an answer counts once": never(ASKED_AGAIN),
            "only what a person agreed to is sent": lambda _, step: all(
                not sent or (YES, group) in step.after.facts for group, sent in enumerate(step.after.sends)
            ),
        }

    def asks(self, state: State, who: int) -> Iterator[Step]:
        caller = state.callers[who]
        if caller.phase == IDLE:
            yield from self._calls(state, who)
        elif caller.phase == PRESENTED:
            yield from self._consumes(state, who)
        elif caller.phase == CONSUMED:
            broker = self._threads[who]
            asking = self.remember(state, broker, state.brokers[broker] | {caller.group})
            yield Step(f"{who} has a person asked", self.to(asking, who, Caller()))
            yield Step(f"{who} finds another request", self.to(state, who, caller._replace(phase=ENDS)))
        elif caller.phase == AGREED:
            yield Step(f"{who} is cancelled", self.to(state, who, caller._replace(phase=ENDS)))
            looked = ENDS if state.ended else LOOKED
            yield Step(f"{who} looks once more", self.to(state, who, caller._replace(phase=looked)))
        elif caller.phase == LOOKED:
            yield from self.claims(state, who, caller._replace(phase=ENDS))
        else:
            yield from self._ends(state, who)

    def operated(self, state: State, broker: int) -> Iterator[Step]:
        for group, row in enumerate(state.rows):
            if row.state == Of.SEALED:
                for words, after, _, asked in self.durably(state, move(broker, group, str(Of.SEALED), str(Of.EVICTED))):
                    yield Step(f"broker {broker} makes room: {group} goes{words}", after, asked)

    def kept_in(self, state: State, who: int) -> str | None:  # noqa: ARG002 - time is for all the same
        return str(Of.REFUSED) if state.ended else None

    def verdicts(self, state: State, who: int) -> tuple[str, ...]:  # noqa: ARG002 - no answer is too late
        return self.words

    def _calls(self, state: State, who: int) -> Iterator[Step]:
        broker = self._threads[who]
        for group, row in enumerate(state.rows):
            if row.state == Of.SEALED and not state.ended:
                presented = Caller(PRESENTED, group, "a")
                yield Step(f"{who} presents the token of {group}", self.to(state, who, presented))
            elif row.state == Of.SEALED:
                question = move(broker, group, str(Of.SEALED), str(Of.EXPIRED))
                for words, after, _, asked in self.durably(state, question):
                    yield Step(f"{who} finds the token of {group} expired{words}", after, asked)
        for group in state.brokers[broker]:
            left = frozenset() if KEEPS_QUESTIONS in self.flaws else frozenset({group})
            taken = self.remember(state, broker, state.brokers[broker] - left)
            again = (ASKED, group) in state.facts
            taken = self.fact(taken, ASKED_AGAIN if again else ASKED, group)
            yield Step(
                f"{who} brings a yes to {group}", self.to(self.fact(taken, YES, group), who, Caller(AGREED, group, "a"))
            )
            no = Caller(AGREED if ASKS_NOBODY in self.flaws else ENDS, group, "a")
            yield Step(f"{who} brings a no to {group}, or nothing in time", self.to(taken, who, no))

    def _consumes(self, state: State, who: int) -> Iterator[Step]:
        caller = state.callers[who]
        question = move(self._threads[who], caller.group, str(Of.SEALED), str(Of.CONFIRMING))
        for words, after, answer, asked in self.durably(state, question):
            used = after.rows != state.rows or (LOOKS_ONLY in self.flaws and answer is not None)
            if used:
                again = (USED, caller.group) in state.facts
                after = self.fact(after, USED_AGAIN if again else USED, caller.group)
            heard = answer == TRUE or (LOOKS_ONLY in self.flaws and answer is not None)
            then = caller._replace(phase=CONSUMED) if heard else Caller()
            yield Step(f"{who} uses the token of {caller.group} up{words}: {answer}", self.to(after, who, then), asked)

    def _ends(self, state: State, who: int) -> Iterator[Step]:
        caller = state.callers[who]
        before = str(Of.CONFIRMING)
        if ENDS_ANYTHING in self.flaws:
            before = state.rows[caller.group].state
            rows = list(state.rows)
            rows[caller.group] = rows[caller.group]._replace(state=str(Of.REFUSED))
            yield Step(f"{who} refuses {caller.group}", self.to(state._replace(rows=tuple(rows)), who, Caller()))
            return
        question = move(self._threads[who], caller.group, before, str(Of.REFUSED))
        for words, after, _, asked in self.durably(state, question):
            yield Step(f"{who} refuses {caller.group}{words}", self.to(after, who, Caller()), asked)
