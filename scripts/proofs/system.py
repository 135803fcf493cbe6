"""What all models share: callers, brokers that crash and start again, one ledger, and a server that counts.

A broker is its memory, or None while it is down. Callers are its threads. Whatever a caller asks of the ledger may be
done and heard, done and not heard, or not done. From its marker on every caller goes the same way: gate, write, answer,
outcome. `facts` are what the world knows and no broker may rely on; invariants do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from assisted_benchmark.ledger.states import TransitionTable
from proofs.explorer import Holds, Step
from proofs.rows import ABSENT, CLAIMED, DONE, Question, Row, RowLedger, Rows, claim, put, recovery, settle

IDLE: Final = "idle"
HOLDS: Final = "holds a claim"
GATED: Final = "has passed the gate"
WAITS: Final = "waits for the answer"
KNOWS: Final = "knows the outcome"

# Facts: of a group, what its caller was told, what happened to it, and when.
TOLD_SUCCESS: Final = "told that it succeeded"
WRITTEN_LATE: Final = "written after its authority ended"

# Ways in which a broker can be wrong that every one of them shares.
SENDS_FIRST: Final = "the call is written before its marker"
SENDS_UNHEARD: Final = "an error in the claim is taken for a claim"
SENDS_AGAIN: Final = "a call without an answer is written again"
GATE_IS_OPEN: Final = "the gate looks at nothing"
LATE_IS_SUCCESS: Final = "nothing is looked at after the answer"
SILENCE_IS_SUCCESS: Final = "no answer is told as a success"


class Caller(NamedTuple):
    """A thread of a broker, and how far it has come with one call."""

    phase: str = IDLE
    group: int = 0
    candidate: str = ""
    verdict: str = ""


class State(NamedTuple):
    """The world. `past` are the rows that a power loss may bring back; `closed` is a ledger that refuses to open."""

    rows: Rows
    callers: tuple[Caller, ...]
    brokers: tuple[Any, ...]
    sends: tuple[tuple[str, ...], ...]
    ended: bool = False
    facts: frozenset[tuple[str, int]] = frozenset()
    past: tuple[Rows, ...] = ()
    closed: bool = False


class Power(NamedTuple):
    """What a loss of power does: `durable` commits stay; others go, and the anchor `tells` of it or is lost too."""

    durable: bool
    tells: bool = True


class System:
    """One broker's world. `threads` names the broker of each caller."""

    table: ClassVar[TransitionTable]
    candidates: ClassVar[tuple[str, ...]] = ("a",)
    # What a call comes to: the server's word, and what is recorded where there was no telling.
    words: ClassVar[tuple[str, ...]]
    succeeded: ClassVar[str]
    unknown: ClassVar[str]
    # Ends of a group that say that nothing of it was sent.
    unsent: ClassVar[frozenset[str]]
    # The outcome of a call whose own caller cancels it before the write; None where only its grant can be stopped.
    cancelled: ClassVar[str | None] = None

    def __init__(
        self,
        name: str,
        *,
        threads: tuple[int, ...] = (0, 1),
        groups: int = 1,
        power: Power | None = None,
        flaws: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self._threads = threads
        self._power = power
        self.flaws = flaws
        self._ledger = RowLedger(self.table, flaws)
        self._ready, self._claimed = str(self.table.ready), str(self.table.claimed)
        self._final = frozenset(map(str, self.table.terminal))
        self._unclaimed = frozenset(map(str, self.table.unclaimed)) | {ABSENT}
        count = self.groups = groups
        self.start = State(
            (Row(self.born),) * count,
            (Caller(),) * len(threads),
            (self.fresh((Row(self.born),) * count),) * (max(threads) + 1),
            ((),) * count,
        )
        self.guards: Mapping[str, Holds] = {"the gate saw no end": self._gate_saw_no_end}
        self.invariants: Mapping[str, Holds] = {
            "at most one send": lambda _, step: all(len(sent) <= 1 for sent in step.after.sends),
            "a marker before every send": self._marked,
            "a receipt of every send": self._receipted,
            "never back to before the claim": self._never_back,
            "an end stays": self._ends_stay,
            "what says unsent was not sent": self._unsent_is_unsent,
            "told as recorded": self._told_as_recorded,
            **self.own_invariants(),
        }

    # What each broker has of its own.

    @property
    def born(self) -> str:
        """The state in which a group begins."""
        return str(self.table.initial)

    def fresh(self, rows: Rows) -> Any:
        """The memory of a broker that has just started over these rows."""
        raise NotImplementedError

    def own_invariants(self) -> Mapping[str, Holds]:
        """What must hold of this broker alone."""
        return {}

    def asks(self, state: State, who: int) -> Iterator[Step]:
        """The steps of a caller until its claim."""
        raise NotImplementedError

    def operated(self, state: State, broker: int) -> Iterator[Step]:
        """What may be done to a broker from outside."""
        raise NotImplementedError

    def kept_in(self, state: State, who: int) -> str | None:
        """The outcome of a call that may not be written now; None if it may."""
        raise NotImplementedError

    def verdicts(self, state: State, who: int) -> tuple[str, ...]:
        """What a call may come to that was written."""
        raise NotImplementedError

    # What happens.

    def steps(self, state: State) -> Iterator[Step]:
        """All that may happen next."""
        for who, broker in enumerate(self._threads):
            if state.brokers[broker] is not None:
                caller = state.callers[who]
                yield from getattr(self, self._TAIL.get(caller.phase, "asks"))(state, who)
        for broker, memory in enumerate(state.brokers):
            if memory is not None:
                yield from self.operated(state, broker)
                yield Step(f"broker {broker} crashes", self._crashed(state, broker))
            elif not state.closed:
                for _, after, answer, asked in self.durably(state, recovery(broker)):
                    if answer is not None:
                        started = after._replace(brokers=put(state.brokers, broker, self.fresh(after.rows)))
                        yield Step(f"broker {broker} starts", started, asked)
        if not state.ended:
            yield Step("time runs out", state._replace(ended=True))
        if self._power is not None:
            yield from self._powerless(state, self._power)

    def over(self, state: State) -> bool:
        """Whether every group has come to an end that nobody works on."""
        settled = all(row.state in self._final or row.state == ABSENT for row in state.rows)
        return state.closed or (settled and all(caller.phase == IDLE for caller in state.callers))

    def durably(self, state: State, question: Question) -> Iterator[tuple[str, State, str | None, Question | None]]:
        """Ask the ledger: done and heard, done and unheard, not done. Words, the world, the answer if it was heard."""
        rows, answer = self._ledger.ask(state.rows, question)
        asked = question._replace(answer=answer)
        after = state
        if rows != state.rows:
            remembers = self._power is not None and not self._power.durable and state.rows not in state.past
            after = state._replace(rows=rows, past=(*state.past, state.rows) if remembers else state.past)
            yield " and does not hear it", after, None, asked
        yield "", after, answer, asked
        yield " and the ledger fails", state, None, None

    def claims(self, state: State, who: int, failed: Caller) -> Iterator[Step]:
        """The marker; `failed` is what becomes of the caller without one."""
        caller, broker = state.callers[who], self._threads[who]
        if SENDS_FIRST in self.flaws:
            yield Step(f"{who} goes on without a marker", self.to(state, who, caller._replace(phase=GATED)))
            return
        for words, after, answer, asked in self.durably(state, claim(broker, caller.group, caller.candidate)):
            heard = answer == CLAIMED or (answer is None and SENDS_UNHEARD in self.flaws)
            then = caller._replace(phase=HOLDS) if heard else failed
            yield Step(f"{who} claims{words}: {answer}", self.to(after, who, then), asked)

    def _at_gate(self, state: State, who: int) -> Iterator[Step]:
        caller = state.callers[who]
        outcome = None if GATE_IS_OPEN in self.flaws else self.kept_in(state, who)
        if outcome is None:
            yield Step(f"{who} passes the gate", self.to(state, who, caller._replace(phase=GATED)))
        else:
            yield Step(f"{who} is kept in", self.to(state, who, caller._replace(phase=KNOWS, verdict=outcome)))
        if self.cancelled is not None:
            stopped = caller._replace(phase=KNOWS, verdict=self.cancelled)
            yield Step(f"{who} is cancelled", self.to(state, who, stopped))

    def _write(self, state: State, who: int) -> Iterator[Step]:
        caller = state.callers[who]
        sent = (*state.sends[caller.group], caller.candidate)[-2:]
        after = state._replace(sends=put(state.sends, caller.group, sent))
        if state.ended:
            after = self.fact(after, WRITTEN_LATE, caller.group)
        yield Step(f"{who} writes", self.to(after, who, caller._replace(phase=WAITS)))

    def _answered(self, state: State, who: int) -> Iterator[Step]:
        caller = state.callers[who]
        for verdict in self.verdicts(state, who):
            known = caller._replace(phase=KNOWS, verdict=verdict)
            yield Step(f"{who} learns `{verdict}`", self.to(state, who, known))
        if SENDS_AGAIN in self.flaws and len(state.sends[caller.group]) < 2:
            yield Step(f"{who} hears nothing, and tries again", self.to(state, who, caller._replace(phase=GATED)))

    def _settled(self, state: State, who: int) -> Iterator[Step]:
        caller = state.callers[who]
        question = settle(self._threads[who], caller.group, caller.candidate, caller.verdict)
        if SENDS_FIRST in self.flaws:
            rows = put(state.rows, caller.group, Row(caller.verdict, caller.candidate))
            yield Step(f"{who} records `{caller.verdict}`", self.to(state._replace(rows=rows), who, Caller()))
            return
        for words, after, answer, asked in self.durably(state, question):
            done = answer == DONE and caller.verdict == self.succeeded
            if done or (SILENCE_IS_SUCCESS in self.flaws and caller.verdict == self.unknown):
                after = self.fact(after, TOLD_SUCCESS, caller.group)
            yield Step(f"{who} records `{caller.verdict}`{words}: {answer}", self.to(after, who, Caller()), asked)

    _TAIL: ClassVar = {HOLDS: "_at_gate", GATED: "_write", WAITS: "_answered", KNOWS: "_settled"}

    def _crashed(self, state: State, broker: int) -> State:
        callers = tuple(
            Caller() if self._threads[who] == broker else caller for who, caller in enumerate(state.callers)
        )
        return state._replace(callers=callers, brokers=put(state.brokers, broker, None))

    def _powerless(self, state: State, power: Power) -> Iterator[Step]:
        dark = state._replace(callers=(Caller(),) * len(state.callers), brokers=(None,) * len(state.brokers), past=())
        if dark != state and not state.closed:
            yield Step("power is lost", dark)
        if power.durable or state.closed:
            return
        if state.past:
            yield Step("the ledger's file is synced", state._replace(past=()))
        for rows in state.past:
            if rows != state.rows:
                # An anchor that is ahead of its ledger tells: no broker opens it, so nothing is sent.
                after = dark if power.tells else dark._replace(rows=rows)
                yield Step("power is lost, and the last commits with it", after._replace(closed=power.tells))

    @staticmethod
    def visible(state: State, step: Step) -> Hashable:
        """The ledger and the server before and after, and what the world knows."""
        after: State = step.after
        return state.rows, after.rows, state.sends, after.sends, after.facts, after.closed

    # Small things.

    @staticmethod
    def to(state: State, who: int, caller: Caller) -> State:
        """The world with one caller further on."""
        return state._replace(callers=put(state.callers, who, caller))

    @staticmethod
    def remember(state: State, broker: int, memory: Any) -> State:
        """The world with one broker's memory changed."""
        return state._replace(brokers=put(state.brokers, broker, memory))

    @staticmethod
    def fact(state: State, what: str, group: int) -> State:
        """The world with one more fact about a group."""
        return state._replace(facts=state.facts | {(what, group)})

    # What must hold.

    def _marked(self, state: State, step: Step) -> bool:
        after: State = step.after
        return all(
            sent == before or (row.state not in self._unclaimed and row.candidate == sent[-1])
            for row, before, sent in zip(state.rows, state.sends, after.sends, strict=True)
        )

    def _receipted(self, _: State, step: Step) -> bool:
        # A ledger writes a claim and its receipt in one transaction: a row that was claimed has one.
        return step.after.closed or all(
            not sent or (row.state not in self._unclaimed and row.candidate == sent[0])
            for row, sent in zip(step.after.rows, step.after.sends, strict=True)
        )

    def _never_back(self, state: State, step: Step) -> bool:
        return all(
            before.state in self._unclaimed or after.state not in self._unclaimed
            for before, after in zip(state.rows, step.after.rows, strict=True)
        )

    def _ends_stay(self, state: State, step: Step) -> bool:
        return all(
            before.state not in self._final or after == before
            for before, after in zip(state.rows, step.after.rows, strict=True)
        )

    def _unsent_is_unsent(self, _: State, step: Step) -> bool:
        return all(
            not sent or row.state not in self.unsent
            for row, sent in zip(step.after.rows, step.after.sends, strict=True)
        )

    def _gate_saw_no_end(self, state: State, step: Step) -> bool:
        for who, (before, after) in enumerate(zip(state.callers, step.after.callers, strict=True)):
            if before.phase == HOLDS and after.phase == GATED:
                return self.kept_in(state, who) is None
        return True

    def late_is_no_success(self, _: State, step: Step) -> bool:
        late = (group for what, group in step.after.facts if what == WRITTEN_LATE)
        return all(step.after.rows[group].state != self.succeeded for group in late)

    def _told_as_recorded(self, _: State, step: Step) -> bool:
        told = (group for what, group in step.after.facts if what == TOLD_SUCCESS)
        return all(step.after.rows[group].state == self.succeeded for group in told)
