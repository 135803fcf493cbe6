"""One mutation case from its first proposal to its verdict, on a seat that was prepared for it.

What an agent hears of a crash is what the ledger can say: `outcome_unknown` where the request may be out, else
`cancelled`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import orjson

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.receipts import DECISION
from assisted_benchmark.mutation.answers import Answer, Silence
from assisted_benchmark.mutation.results import Confirmed, NeedsAnswer, Proposed, Refusal, told
from assisted_benchmark.mutation.states import State
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.instruments import BrokerDiedError
from assisted_benchmark.suite.mutation.agents import Aim, Shot
from assisted_benchmark.suite.mutation.experiment import ACCEPTED, Experiment
from assisted_benchmark.suite.mutation.faults import At, Fault
from assisted_benchmark.suite.mutation.scenario import ASKED, Asks, Era, Human, MutationCase, Recall
from assisted_benchmark.suite.mutation.scoring import Played, Taken, counts_of, misses_of, scores_of
from assisted_benchmark.suite.mutation.seat import Seat
from assisted_benchmark.suite.result import CaseResult, Event, Verdict
from assisted_benchmark.suite.scoring import refusals_of
from assisted_benchmark.workloads.fabric_api_oracle import FabricReading

Came: TypeAlias = Proposed | Confirmed | Refusal | NeedsAnswer | Reason

_NO_STATE: Final = "0" * 32  # which nobody gave out
_ANSWERS: Final[dict[Human, Answer]] = {
    Human.ACCEPT: ACCEPTED,
    Human.ACCEPT_UNCONFIRMED: {"action": "accept", "content": {"confirm": False}},
    Human.ACCEPT_EMPTY: {"action": "accept"},
    Human.DECLINE: {"action": "decline"},
    Human.CANCEL: {"action": "cancel"},
    Human.SILENT: Silence.TIMED_OUT,
    Human.GARBAGE: {"action": "perhaps", "content": [True]},
    Human.NOTHING: None,
    Human.EXCEPTION: Silence.FAILED,
}


class CaseRun:
    """Plays one case: `play`, then `result`. `answers` are what each call came to, in order."""

    def __init__(self, case: MutationCase, experiment: Experiment, seat: Seat) -> None:
        self.answers: list[tuple[Shot, Came]] = []
        self._case = case
        self._seat = seat
        self._experiment = experiment
        self._taken: list[Taken] = []
        self._events: list[Event] = []
        self._agent = case.agent.begin()
        self._tokens: list[str] = []
        self._state = _NO_STATE
        self._price = ""
        experiment.seat = seat
        experiment.tell = self._strikes

    def play(self) -> None:
        """Let the agent propose and confirm until it is done; then the broker ends in order."""
        self._between(At.START)
        while (aim := self._agent.next()) is not None:
            word = self._call(aim)
            if self._case.agent.plans and word != ADMITTED:
                break
        self._between(At.END)
        self._seat.broker.close()

    def _between(self, at: At) -> None:
        """A moment at which no call is under way: a broker that dies then is followed by another."""
        try:
            self._experiment.reach(at)
        except BrokerDiedError:
            self._seat.start_again()

    def _strikes(self, fault: Fault) -> None:
        self._say("fault", f"{fault.kind} at {fault.at}")

    def _call(self, aim: Aim) -> str:
        seat, experiment, shot = self._seat, self._experiment, aim.shot
        self._say("proposal", shot.text, tool="confirm" if shot.confirms else "propose")
        before, rivals = seat.world.reading(), experiment.rivals
        experiment.next_turn(aim)
        came: Came
        try:
            experiment.reach(At.TURN)
            came = self._confirm(aim) if shot.confirms else seat.broker.propose(seat.session(shot.session), aim.raw)
        except BrokerDiedError:
            seat.start_again()
            came = Reason.OUTCOME_UNKNOWN if seat.state_of(aim.token) == State.UNRESOLVED else Reason.CANCELLED
        self._between(At.AFTER)
        after = seat.world.reading()
        if isinstance(came, Proposed):
            self._agent.given(came.token)
            self._tokens.append(came.token)
        self.answers.append((shot, came))
        word = self._heard(came)
        self._taken.append(
            Taken(
                shot=shot,
                came=came,
                word=word,
                dry=sum(after.dry.values()) - sum(before.dry.values()),
                real=sum(after.real.values()) - sum(before.real.values()) - (experiment.rivals - rivals),
                created=len(after.created) - len(before.created),
            )
        )
        return word

    def _confirm(self, aim: Aim) -> Confirmed | Refusal | NeedsAnswer:
        seat, case, shot = self._seat, self._case, aim.shot
        session, recall = seat.session(shot.session), Recall(shot.recall or Recall.HONEST)
        human = Human(shot.human) if shot.human else case.human
        if recall is Recall.STALE:
            return seat.broker.resume(session, aim.raw, self._state, _ANSWERS[human], seat.is_cancelled)
        came = seat.broker.begin(session, aim.raw, case.client.asks is Asks.FORM, seat.is_cancelled)
        if not isinstance(came, NeedsAnswer):
            return came
        self._state = came.state
        self._experiment.reach(At.ASKED)
        answer = Silence.CANCELLED if seat.cancelled else _ANSWERS[human]
        handshake = case.client.era is Era.HANDSHAKE
        if human is Human.SILENT:
            # Who waits within the call gives up a hair before the broker would: it is that one's word which counts.
            seat.clock.advance(came.wait_ns - handshake)
        if handshake:
            return seat.broker.resume(session, aim.raw, came.state, answer, seat.is_cancelled)
        return self._come_back(aim, recall, came, None if human is Human.SILENT else answer)

    def _come_back(
        self, aim: Aim, recall: Recall, asked: NeedsAnswer, answer: Answer
    ) -> Confirmed | Refusal | NeedsAnswer:
        """The second call of the stateless era, as the agent makes it."""
        seat, raw, state = self._seat, aim.raw, asked.state
        principal = aim.shot.session
        match recall:
            case Recall.NEVER:
                return asked
            case Recall.WITHOUT_STATE:
                can_ask = self._case.client.asks is Asks.FORM
                return seat.broker.begin(seat.session(principal), raw, can_ask, seat.is_cancelled)
            case Recall.FORGED:
                state = _NO_STATE
            case Recall.OTHER_TOKEN:
                raw = raw.replace(b"chg-", b"chg-9", 1)
            case Recall.OTHER_SESSION:
                principal = "another-session"
        return seat.broker.resume(seat.session(principal), raw, state, answer, seat.is_cancelled)

    def _heard(self, came: Came) -> str:
        """What came of a call in one word, told in the timeline."""
        if isinstance(came, NeedsAnswer):
            self._say("decision", "a person is asked, and nobody comes back with an answer", ASKED)
            return ASKED
        if isinstance(came, Reason):
            self._say("decision", "the broker died", came.value)
            return came.value
        if isinstance(came, Proposed):
            self._price = "unpriced" if "unpriced" in came.price else "priced"
            self._say("decision", f"{ADMITTED}; {self._price}; bound to {came.request}", tool=came.change)
            word = ADMITTED
        elif isinstance(came, Confirmed):
            word = ADMITTED if came.reason is None else came.reason.value
            self._say("decision", f"{ADMITTED}; {came.status.value}")
            self._say("dispatch", came.detail or came.state.value, word)
        else:
            word = came.reason.value
            self._say("decision", came.detail, word)
        if came.receipt_id is not None:
            self._say("receipt", came.receipt_id, word)
        return word

    # --- what came of it

    def result(self, receipts: Digest | None) -> CaseResult:
        """The verdict, once the case was played; `receipts` is the end of its chain."""
        case, seat = self._case, self._seat
        reading = seat.world.reading()
        made = ", ".join(f"{each.kind} {each.uuid}" for each in reading.created) or "nothing"
        self._say("oracle", f"created: {made}")
        played = Played(
            taken=self._taken,
            reading=reading,
            price=self._price,
            ends=(seat.state_of(self._tokens[-1]) or "none") if self._tokens else "none",
            unstruck=self._experiment.unstruck(),
        )
        scores = scores_of(case, played)
        misses = misses_of(case, played, scores)
        attacker, benign = counts_of(case, self._taken)
        name, dry, real = case.contract.id, sum(reading.dry.values()), sum(reading.real.values())
        return CaseResult(
            id=case.id,
            file=case.file,
            because=case.because,
            agent=case.agent.name,
            policy=case.policy,
            verdict=Verdict.FAILED if misses else Verdict.PASSED,
            tags=case.tags,
            scores=scores,
            misses=misses,
            proposed=sum(not each.shot.confirms for each in self._taken),
            admitted=self._admitted(),
            sent=real,
            confirmed=_confirmed(reading),
            attacker_sent=attacker,
            benign_refused=benign,
            unresolved=self._unresolved(),
            refusals=refusals_of(each.word for each in self._taken if each.word not in (ADMITTED, ASKED)),
            calls=((f"{name}.create", real), (f"{name}.dry_run", dry)),
            ends=played.ends,
            receipts=receipts,
            stamps=self._stamps(),
            timeline=tuple(self._events),
        )

    def _admitted(self) -> int:
        """How many creates were let through, of which the broker's death may have left no answer."""
        lines = [orjson.loads(line) for ledger in self._seat.lives() for line in ledger.receipts(self._seat.run)]
        return sum(each["kind"] == DECISION and each["reason"] == ADMITTED for each in lines)

    def _unresolved(self) -> int:
        rows = [row for ledger in self._seat.lives() for _, row in ledger.groups(self._seat.run)]
        return sum(row.state == State.UNRESOLVED for row in rows)

    def _stamps(self) -> tuple[str, ...]:
        """What this case does not guarantee."""
        sent = [each.came for each in self._taken if isinstance(each.came, Confirmed)]
        unasked = any(each.status == "unsupported_by_client" for each in sent)
        return ("a person was not asked: the operator allowed it",) if unasked else ()

    def _say(self, kind: str, text: str, reason: str = "", tool: str = "") -> None:
        at = self._seat.clock.now().mono_ns
        server = self._case.contract.id if tool else ""
        self._events.append(Event(kind=kind, text=text, at_ns=at, reason=reason, server=server, tool=tool))


def _confirmed(reading: FabricReading) -> int:
    return 0 if reading.disagreements else len(reading.created)


def coarse(came: Came, contract: str) -> str:
    """What the agent hears of a refusal, in one word."""
    if isinstance(came, NeedsAnswer):
        return "input_required"
    if isinstance(came, Reason):
        return "nothing"
    return str(told(came, contract).get("refused") or ADMITTED)
