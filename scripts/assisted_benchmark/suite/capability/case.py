"""One capability case from its first call to its verdict, on a seat that was prepared for it.

What an agent hears of a crash is what the ledger can say: `outcome_unknown` where the request may be out, else
`cancelled`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Final

from assisted_benchmark.capability.progress import Event as Step
from assisted_benchmark.capability.reading import Resource
from assisted_benchmark.capability.receipt import read
from assisted_benchmark.capability.results import Managed, Outcome, told
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import REASONS, Reason
from assisted_benchmark.suite.capability.agents import Aim, Shot
from assisted_benchmark.suite.capability.experiment import Experiment
from assisted_benchmark.suite.capability.faults import At, Fault
from assisted_benchmark.suite.capability.scenario import COMPLETED, GOOD, GRANTED, READ, CapabilityCase
from assisted_benchmark.suite.capability.scoring import Came, Played, Taken, counts_of, misses_of, scores_of
from assisted_benchmark.suite.capability.seat import Seat
from assisted_benchmark.suite.instruments import BrokerDiedError
from assisted_benchmark.suite.result import CaseResult, Event, Verdict
from assisted_benchmark.suite.scoring import refusals_of
from assisted_benchmark.workloads.plugin_host_instance import canary_of

_UNKNOWN: Final = State.UNKNOWN_NEEDS_REFRESH


class CaseRun:
    """Plays one case: `play`, then `result`. `answers` are what each call came to, in order."""

    def __init__(self, case: CapabilityCase, experiment: Experiment, seat: Seat) -> None:
        self.answers: list[tuple[Shot, Came]] = []
        self._case = case
        self._seat = seat
        self._experiment = experiment
        self._taken: list[Taken] = []
        self._events: list[Event] = []
        self._agent = case.agent.begin()
        experiment.seat = seat
        experiment.tell = self._strikes
        experiment.aside = self._aside

    def play(self) -> None:
        """Let the agent call until it is done."""
        self._between(At.START)
        while (aim := self._agent.next()) is not None:
            self._seat.clock.advance(aim.shot.wait_ns)
            word = self._call(aim)
            if self._case.agent.plans and word not in GOOD:
                break
        self._between(At.END)

    def _between(self, at: At) -> None:
        """A moment at which no call is under way: a broker that dies then is followed by another."""
        try:
            self._experiment.reach(at)
        except BrokerDiedError:
            self._seat.start()

    def _strikes(self, fault: Fault) -> None:
        self._say("fault", f"{fault.kind} at {fault.at}")

    def _aside(self, name: str, came: object) -> None:
        word = came.reason.value if isinstance(came, Outcome | Refused) and came.reason is not None else COMPLETED
        self._say("decision", f"{name} of a fault", "" if word == COMPLETED else word)

    def _call(self, aim: Aim) -> str:
        seat, experiment, shot = self._seat, self._experiment, aim.shot
        self._say("proposal", shot.text, tool=shot.tool or "")
        before, rivals = len(seat.world.reading().executions), experiment.rivals
        experiment.next_turn(aim)
        came: Came
        try:
            with seat.person_does(shot.person):
                experiment.reach(At.TURN)
                came = self._answer(aim)
        except BrokerDiedError:
            seat.start()
            came = self._left()
        self._between(At.AFTER)
        self._agent.hear(came)
        self.answers.append((shot, came))
        word = self._heard(shot, came)
        executed = seat.world.reading().executions[before + experiment.rivals - rivals :]
        asked = _parameters(aim.raw) if shot.operation else ""
        self._taken.append(Taken(shot, came, word, executed, self._unfit(shot, came), asked))
        return word

    def _answer(self, aim: Aim) -> Came:
        seat, shot = self._seat, aim.shot
        session = seat.session(shot.client, shot.run)
        if shot.tool is None:
            address = parse(aim.raw)
            return seat.broker.read_resource(session, address["uri"] + address.get("artifact", ""))
        return seat.broker.call(session, shot.tool, aim.raw, listener=self._progresses)

    def _left(self) -> Reason:
        """What the ledger says of the call during which the broker died."""
        states = [row.state for _, row in self._seat.ledger.inner.groups(self._seat.run)]
        known = sum(isinstance(each.came, Outcome) and not each.came.replayed for each in self._taken)
        return Reason.OUTCOME_UNKNOWN if states[known:] and states[-1] == _UNKNOWN else Reason.CANCELLED

    def _progresses(self, step: Step) -> None:
        self._say("progress", f"{step.current} of {step.total}")

    def _heard(self, shot: Shot, came: Came) -> str:
        """What came of a call in one word, told in the timeline."""
        word, receipt = word_of(came), ""
        if isinstance(came, Reason):
            text = "the broker died"
        elif isinstance(came, Resource):
            text = f"{len(came.data)} bytes of {came.mime_type}"
        elif isinstance(came, Managed):
            text = came.status
        elif isinstance(came, Refused):
            text, receipt = came.detail, came.receipt_id or ""
        else:
            text, receipt = f"{came.state}{' (an earlier receipt)' if came.replayed else ''}", came.receipt_id
        self._say("decision", text, "" if word in GOOD else word, shot.tool or "")
        if receipt:
            self._say("receipt", receipt, word)
        return word

    def _unfit(self, shot: Shot, came: Came) -> str:
        """Why the answer is not what the tool's schema has, if it has a tool."""
        projection = self._seat.projection
        if isinstance(came, Reason | Resource) or shot.tool is None or projection.tool(shot.tool) is None:
            return ""
        unfit = projection.answer_faults(shot.tool, told(came))
        return "" if unfit is None else unfit.detail

    # --- what came of it

    def result(self, receipts: Digest | None) -> CaseResult:
        """The verdict, once the case was played; `receipts` is the end of its chain."""
        case, seat = self._case, self._seat
        reading = seat.world.reading()
        self._say("oracle", f"executed: {', '.join(each.operation for each in reading.executions) or 'nothing'}")
        ledger = seat.ledger.inner
        operations = [
            (read(ledger.group_record(name) or b"").receipt_id, row.state) for name, row in ledger.groups(seat.run)
        ]
        canary = canary_of(case.run.seed).encode()
        played = Played(
            taken=self._taken,
            reading=reading,
            operations=operations,
            asked=len(seat.person.asked),
            unstruck=self._experiment.unstruck(),
            leaks=any(canary in line for line in ledger.receipts(seat.run)),
        )
        scores = scores_of(case, played)
        misses = misses_of(case, played, scores)
        attacker, benign = counts_of(case, self._taken)
        sent = sum(reading.received.get(each.id, 0) for each in case.registry.operations)
        states = [state for _, state in operations]
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
            proposed=sum(bool(each.shot.operation) for each in self._taken) + self._experiment.raced,
            admitted=len(operations),
            sent=sent,
            confirmed=0 if reading.disagreements else len(reading.executions),
            attacker_sent=attacker,
            benign_refused=benign,
            unresolved=states.count(_UNKNOWN),
            refusals=refusals_of(each.word for each in self._taken if each.word not in GOOD),
            calls=tuple(sorted(Counter(each.operation for each in reading.executions).items())),
            ends=states[-1] if states else "none",
            receipts=receipts,
            timeline=tuple(self._events),
        )

    def _say(self, kind: str, text: str, reason: str = "", tool: str = "") -> None:
        at = self._seat.clock.now().mono_ns
        server = self._case.registry.id if tool else ""
        self._events.append(Event(kind=kind, text=text, at_ns=at, reason=reason, server=server, tool=tool))


def _parameters(raw: bytes) -> str:
    """The SHA-256 of the parameters that a call of an operation asks for; of what is no such call, nothing."""
    try:
        value = parse(raw)
    except CanonicalError:
        return ""
    given = value.get("input") if type(value) is dict else None
    return hashlib.sha256(canonical_bytes(given)).hexdigest()


def word_of(came: Came) -> str:
    """What came of a call in one word: `completed`, `granted`, `read`, or the reason."""
    if isinstance(came, Reason):
        return came.value
    if isinstance(came, Resource):
        return READ
    if isinstance(came, Managed):
        return GRANTED if came.status == GRANTED else COMPLETED
    return COMPLETED if came.reason is None else came.reason.value


def coarse(came: Came) -> str:
    """What the agent hears, in one word."""
    if isinstance(came, Reason):
        return "nothing"
    if isinstance(came, Refused):
        return came.coarse.value
    if isinstance(came, Outcome) and came.reason is not None:
        return REASONS[came.reason].coarse.value
    return word_of(came)
