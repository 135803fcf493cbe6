"""One case from its first proposal to its verdict, on a seat that was prepared for it.

What an agent hears of a crash is what the ledger can say: before the marker the call is
`cancelled`, after it `outcome_unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import orjson
from attrs import evolve

from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.reasons import REASONS, Reason
from assisted_benchmark.ledger.receipts import DECISION
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.dispatch import Moment, Outcome
from assisted_benchmark.live_policy.grant import group_key
from assisted_benchmark.live_policy.ports import NO_RELAY, Relay
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.instruments import BrokerDiedError, CutOff
from assisted_benchmark.suite.live.agents import Heard, Shot
from assisted_benchmark.suite.live.experiment import Experiment
from assisted_benchmark.suite.live.faults import At, Fault
from assisted_benchmark.suite.live.in_process import is_synthetic
from assisted_benchmark.suite.live.lattice import lattice_of
from assisted_benchmark.suite.live.scenario import LiveCase, Reveal
from assisted_benchmark.suite.live.scoring import Played, Taken, counts_of, levels_of, misses_of, scores_of, sides_of
from assisted_benchmark.suite.live.seat import Seat
from assisted_benchmark.suite.live.transcripts.calls import parts
from assisted_benchmark.suite.result import VARIES, CaseResult, Event, Miss, Prefix, Verdict
from assisted_benchmark.suite.scoring import refusals_of
from assisted_benchmark.workloads.oracle import Oracle, OracleReading

# What stands for the proposal where the grant itself was refused.
_OPENING: Final = Shot(raw=b"", text="the grant is opened")
_NO_MESSAGE: Final = Shot(raw=b"", text="what is no proposal")
_MAY_BE_OUT: Final = (State.SUCCEEDED, State.UNRESOLVED)

Answer: TypeAlias = Outcome | Refused | Reason


class Took(NamedTuple):
    """What came of one proposal: the answer, what the agent hears of it, and the word for it (`admitted` or a reason).

    Where the broker died over it there is no answer but the reason.
    """

    answer: Answer
    heard: Heard
    word: str


class CaseRun:
    """Plays one case: `play`, then `result`. `faults` is the seat's ledger where the case declares faults.

    Of an agent from outside it is `begin`, each `propose` and `end` in place of `play`; one at a time, whatever
    threads they come from. `answers` are the broker's own, in order; `agent` is what reports call it,
    and `detail` and `misses` are what they tell of its own end.
    """

    def __init__(self, case: LiveCase, seat: Seat, faults: CutOff | None = None) -> None:
        self._case = case
        self._seat = seat
        self.answers: list[tuple[Shot, Answer]] = []
        self.agent = case.agent.name
        self.detail = ""
        self.misses: tuple[Miss, ...] = ()
        self._taken: list[Taken] = []
        self._events: list[Event] = []
        self._at_ns = 0
        self._done = 0
        self._diverged_at: int | None = None
        self._prefix: Prefix | None = None
        self._agent = case.agent.begin()
        self._experiment = Experiment(case, seat, faults, self._tell) if faults is not None else None

    def play(self, broker: LiveBroker | None = None) -> None:
        """Seal the grant and let the case's own agent propose until it is done."""
        if not self.begin(broker):
            return
        heard: Heard | None = None
        while (shot := self._agent.next(heard)) is not None:
            heard = self._turn(shot).heard
        self.end()

    def _turn(self, shot: Shot) -> Took:
        """One turn of the case's own agent, at its time."""
        if shot.at_ns > self._at_ns:
            self._seat.clock.advance(shot.at_ns - self._at_ns)
            self._at_ns = shot.at_ns
        was = shot.was
        if was is None:
            return self.propose(shot)
        if shot.malformed is not None:
            took = self.malformed(*shot.malformed)
        else:
            # A transcript's call aims at the step where its agent is.
            aimed = evolve(shot, step=min(self._done, len(self._case.plan.steps) - 1))
            took = self.propose(aimed, shot.principal)
        self._done += took.word == ADMITTED
        if self._prefix is None and parts(was, took.word, took.heard.result):
            self._diverged_at, self._prefix = was.turn, self._so_far()
        return took

    def _so_far(self) -> Prefix:
        """What the case has come to until now."""
        played = self._came_to(self._ends()[0], self._reading()[1])
        return Prefix(
            proposed=len(self._taken),
            admitted=self._admitted(),
            sent=sum(played.calls.values()),
            scores=scores_of(self._case, played),
        )

    def begin(self, broker: LiveBroker | None = None) -> bool:
        """Seal the grant; whether it is open then. `broker` is one that is ready on this seat."""
        try:
            self._reach(At.START)
            self._seat.seal(self._case, broker or self._seat.make_broker(self._case, self._on_moment))
        except IntegrityError as error:
            self._refused_opening(Refused(error.reason, error.detail))
            return False
        experiment = self._experiment
        return experiment is None or not experiment.opens_again or self._opened_again(experiment)

    def propose(self, shot: Shot, principal: str = "", relay: Relay = NO_RELAY) -> Took:
        """One proposal to its end. It comes under the case's session, unless another `principal` makes it."""
        seat, experiment = self._seat, self._experiment
        self._say("proposal", shot.text, server=shot.server, tool=shot.tool)
        before = seat.world.total
        injected = 0
        answer: Answer
        if experiment is None:
            answer = self._judged(shot, principal, relay)
        else:
            injected = experiment.injected
            experiment.next_turn()
            answer = self._under_faults(shot, principal, relay, experiment)
            injected = experiment.injected - injected
        return self._took(shot, answer, seat.world.total - before - injected)

    def malformed(self, reason: Reason, detail: str) -> Took:
        """What the agent sent was no message, so that it holds no proposal: refused, and nobody's turn."""
        refused = self._seat.broker.refuse_malformed(self._seat.session, reason, detail)
        self._say("proposal", _NO_MESSAGE.text)
        return self._took(_NO_MESSAGE, refused, 0)

    def end(self) -> None:
        """The agent is done."""
        self._reach(At.END)

    def _opened_again(self, experiment: Experiment) -> bool:
        self._reach(At.OPEN)
        seat, presented = self._seat, experiment.presented
        seat.broker = seat.make_broker(self._case, self._on_moment)
        opened = seat.broker.open(presented or seat.grant.data, seat.session)
        if isinstance(opened, Refused):
            self._refused_opening(opened)
            return False
        return True

    def _refused_opening(self, refused: Refused) -> None:
        self._say("decision", refused.detail, refused.reason.value)
        self.answers.append((_OPENING, refused))
        self._taken.append(Taken(shot=_OPENING, word=refused.reason.value, sent=0, may_send=False))

    def _judged(self, shot: Shot, principal: str, relay: Relay) -> Outcome | Refused:
        session = self._seat.session
        if principal and principal != self._case.run.session:
            session = session._replace(principal=principal)
        return self._seat.broker.propose(session, shot.raw, relay)

    def _under_faults(self, shot: Shot, principal: str, relay: Relay, experiment: Experiment) -> Answer:
        answer: Answer
        try:
            experiment.reach(At.PROPOSE)
            answer = self._judged(shot, principal, relay)
        except BrokerDiedError:
            answer = self._after_the_crash()
        self._reach(At.AFTER)
        return answer

    def _took(self, shot: Shot, answer: Answer, sent: int) -> Took:
        self.answers.append((shot, answer))
        heard, word, candidate = self._heard(answer)
        if heard.receipt_id is not None:
            self._say("receipt", heard.receipt_id, word)
        self._taken.append(Taken(shot=shot, word=word, sent=sent, may_send=_may_send(answer), candidate=candidate))
        return Took(answer, heard, word)

    def _after_the_crash(self) -> Reason:
        """Another broker takes up the ledger: it recovers, and opens the grant from its bytes."""
        seat = self._seat
        seat.broker = seat.make_broker(self._case, self._on_moment)
        lost = seat.broker.recover()
        seat.broker.open(seat.grant.data, seat.session)
        return Reason.OUTCOME_UNKNOWN if lost else Reason.CANCELLED

    def _heard(self, answer: Answer) -> tuple[Heard, str, str]:
        """What the agent is told, what is expected of it, and the candidate if one was claimed."""
        if isinstance(answer, Outcome):
            permit, reason = answer.permit, answer.reason
            word = ADMITTED if reason is None else reason.value
            self._say("decision", ADMITTED, server=permit.server, tool=permit.tool)
            self._say("dispatch", answer.detail or answer.state.value, word, permit.server, permit.tool)
            result = Canonical(answer.result).value if answer.result else None
            candidate = self._case.names[permit.server, permit.tool, permit.arguments]
            heard = Heard(word if reason is None else self._told(reason), answer.receipt_id, result)
            return heard, word, candidate
        reason = answer if isinstance(answer, Reason) else answer.reason
        receipt = None if isinstance(answer, Reason) else answer.receipt_id
        detail = "the broker died" if isinstance(answer, Reason) else answer.detail
        self._say("decision", detail, reason.value)
        return Heard(self._told(reason), receipt, None), reason.value, ""

    def _told(self, reason: Reason) -> str:
        return reason.value if self._case.reveal is Reveal.REASON else REASONS[reason].coarse.value

    # --- what came of it

    def result(self, receipts: Digest | None) -> CaseResult:
        """The verdict, once the case was played; `receipts` is the end of its chain."""
        case, experiment = self._case, self._experiment
        taken = self._taken
        ends, unresolved = self._ends()
        name, reading = self._reading()
        if reading is not None:
            self._say("oracle", reading.state, server=name)
        played = self._came_to(ends, reading)
        calls, levels, sides = played.calls, played.levels, sides_of(case, taken)
        scores = scores_of(case, played)
        misses = (*misses_of(case, played, scores), *self.misses)
        attacker, benign = counts_of(taken, sides)
        confirmed, unwatched = self._confirmed(calls, reading)
        return CaseResult(
            id=case.id,
            file=case.file,
            because=case.because,
            agent=self.agent,
            policy=case.policy,
            verdict=Verdict.FAILED if misses else Verdict.PASSED,
            tags=case.tags,
            scores=scores,
            misses=misses,
            detail=self.detail,
            proposed=len(taken) + (0 if experiment is None else experiment.rivals),
            admitted=self._admitted(),
            sent=sum(calls.values()),
            confirmed=confirmed,
            attacker_sent=attacker,
            benign_refused=benign,
            unresolved=unresolved,
            refusals=refusals_of(each.word for each in taken if each.word != ADMITTED),
            calls=tuple(sorted(calls.items())),
            ends=ends,
            receipts=receipts,
            stamps=self._stamps(unwatched),
            lattice=lattice_of(levels, sides),
            diverged_at=self._diverged_at,
            prefix=self._prefix,
            timeline=tuple(self._events),
        )

    def _ends(self) -> tuple[str, int]:
        """The state of the plan's last group as the ledger has it, and how many groups are unresolved."""
        seat, steps = self._seat, self._case.plan.steps
        if seat.sealed is None:
            return "", 0
        if self._experiment is None:
            row = seat.ledger.row(group_key(seat.sealed, len(steps) - 1))
            lost = sum(isinstance(each, Outcome) and each.state is State.UNRESOLVED for _, each in self.answers)
            return "" if row is None else row.state, lost
        # Under faults a group may have come to its end without the agent hearing of it.
        rows = [seat.ledger.row(group_key(seat.sealed, step.index)) for step in steps]
        states = ["" if row is None else row.state for row in rows]
        return states[-1], states.count(State.UNRESOLVED)

    def _came_to(self, ends: str, reading: OracleReading | None) -> Played:
        seat, experiment = self._seat, self._experiment
        return Played(
            taken=self._taken,
            levels=levels_of(self._taken),
            calls=seat.world.calls,
            ends=ends,
            reading=reading,
            claim=self._agent.claim(),
            unstruck=() if experiment is None else experiment.unstruck(),
            asides=() if experiment is None else tuple(experiment.asides),
            torn_down=tuple(seat.machine.torn_down),
        )

    def _reading(self) -> tuple[str, OracleReading | None]:
        """What the oracle sees now, and of which server, if it can see any."""
        for server in self._case.plan.policy.contract.servers:
            if is_synthetic(server):
                run = self._case.run
                return server.id, _oracle(run.seed, run.task).judge(*self._seat.world.starts(server.id))
        return "", None

    def _admitted(self) -> int:
        """How many proposals were admitted, of which the broker's death may have left no answer."""
        seat = self._seat
        if self._experiment is None:
            return sum(each.candidate != "" for each in self._taken)
        if seat.sealed is None:
            return 0
        receipts = [orjson.loads(line) for line in seat.ledger.receipts(seat.run)]
        return sum(each["kind"] == DECISION and each["reason"] == ADMITTED for each in receipts)

    def _confirmed(self, calls: Mapping[str, int], reading: OracleReading | None) -> tuple[int, tuple[str, ...]]:
        """How many calls had an effect that was seen, and a stamp for each server whose calls nobody could watch."""
        starts = {name: self._seat.world.starts(name) for name in calls}
        unwatched = tuple(f"not watched: {name}" for name, count in calls.items() if count and not starts[name])
        if reading is not None and reading.disagreements:
            return 0, unwatched
        events = [event for each in starts.values() for start in each for event in start]
        return sum(event.kind != "rejected" for event in events), unwatched

    def _stamps(self, unwatched: tuple[str, ...]) -> tuple[str, ...]:
        """What this case does not guarantee."""
        varies = (VARIES,) if self._case.agent.outside is not None else ()
        stamps = (*self._case.plan.policy.labels, *self._seat.world.stamps, *self._revealed(), *varies, *unwatched)
        return tuple(sorted(set(stamps))) if stamps else ()

    def _revealed(self) -> tuple[str, ...]:
        return ("reveal: reason",) if self._case.reveal is Reveal.REASON else ()

    def _tell(self, fault: Fault) -> None:
        self._say("fault", f"{fault.kind} at {fault.at}")

    def _say(self, kind: str, text: str, reason: str = "", server: str = "", tool: str = "") -> None:
        at = self._seat.clock.now().mono_ns
        self._events.append(_event(kind, text, at, reason, server, tool))

    def _reach(self, at: At) -> None:
        """A moment at which no proposal is under way: a broker that dies then is followed by another."""
        if self._experiment is None:
            return
        try:
            self._experiment.reach(at)
        except BrokerDiedError:
            if at in (At.AFTER, At.END):  # before that there is none yet: the next thing is to make one
                self._after_the_crash()

    @property
    def _on_moment(self) -> Callable[[Moment], None] | None:
        return None if self._experiment is None else self._experiment.on_moment


def _may_send(answer: Answer) -> bool:
    """Whether a call may have gone out: not if it was refused, nor if the broker says that nothing was written."""
    if isinstance(answer, Outcome):
        return answer.state in _MAY_BE_OUT or answer.reason is Reason.FAILED
    return answer is Reason.OUTCOME_UNKNOWN


# Cases of one scenario have the same scene, and say the same things again and again; neither ever changes.
_oracle: Final = lru_cache(maxsize=256)(Oracle)


@lru_cache(maxsize=4096)
def _event(kind: str, text: str, at_ns: int, reason: str, server: str, tool: str) -> Event:
    return Event(kind=kind, text=text, at_ns=at_ns, reason=reason, server=server, tool=tool)
