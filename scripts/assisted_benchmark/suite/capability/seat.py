"""What one capability case is played with: its broker, ledger, clocks, host and person, and what watches each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from attrs import define, field

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.carrying import Moment
from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import (
    Answer,
    Cancellation,
    Enrolled,
    Envelope,
    HostReply,
    Instance,
    Prompt,
    Registered,
    Session,
    Unavailable,
    Verdict,
    Wanted,
)
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.suite.capability.faults import At, Others
from assisted_benchmark.suite.capability.scenario import CapabilityCase, Person
from assisted_benchmark.suite.capability.world import World
from assisted_benchmark.suite.instruments import CaseChance, CaseClock, CutOff

_NO_DECISION: Final = "sha256:" + "0" * 64
_VERDICTS: Final = {
    Person.APPROVE: Verdict.APPROVED,
    Person.REPLAY: Verdict.APPROVED,
    Person.LATE: Verdict.APPROVED,
    Person.DENY: Verdict.DENIED,
    Person.SILENT: Verdict.TIMED_OUT,
    Person.UNAVAILABLE: Verdict.UNAVAILABLE,
}


class CaseHost:
    """The world's host, with the moments of a call's way told as they come."""

    def __init__(self, world: World, clock: CaseClock, reach: Callable[[At], object]) -> None:
        self.others: Others | None = None
        self.deadline = Deadline(clock, 0)  # of the last request
        self._world = world
        self._reach = reach

    def connect(self, session: Session, *, deadline: Deadline) -> Enrolled | Unavailable:
        self._reach(At.CONNECT)
        enrolled = self._world.host.connect(session, deadline=deadline)
        if isinstance(enrolled, Enrolled) and self.others is not None:
            changed = {"client": "somebody-else"} if self.others is Others.CLIENT else {"peer": "somebody-else"}
            return enrolled._replace(**changed)
        return enrolled

    def inventory(self, enrolled: Enrolled, *, deadline: Deadline) -> tuple[Instance, ...] | Unavailable:
        self._reach(At.INVENTORY)
        return self._world.host.inventory(enrolled, deadline=deadline)

    def negotiate(
        self, enrolled: Enrolled, instance: Instance, offer: Offer, *, deadline: Deadline
    ) -> Offer | Unavailable:
        self._reach(At.NEGOTIATE)
        answer = self._world.host.negotiate(enrolled, instance, offer, deadline=deadline)
        self._reach(At.NEGOTIATED)
        return answer

    def request(
        self,
        claimed: Claimed,
        envelope: Envelope,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,
        progress: Callable[[Json], None],
    ) -> HostReply:
        self.deadline = deadline
        return self._world.host.request(claimed, envelope, gate=gate, deadline=deadline, progress=progress)

    def cancel(self, enrolled: Enrolled, cancellation: Cancellation, *, deadline: Deadline) -> Unavailable | None:
        return self._world.host.cancel(enrolled, cancellation, deadline=deadline)

    def registered(self, instance: str) -> Registered | None:
        return self._world.host.registered(instance)


class CasePerson:
    """The broker's own person, who does as the scenario says. `asked` are the questions so far."""

    def __init__(self, case: CapabilityCase, clock: CaseClock, reach: Callable[[At], object]) -> None:
        self.asked: list[Prompt] = []
        self.does = case.person
        self._standing = case.standing
        self._clock = clock
        self._reach = reach

    def standing(self, wanted: Wanted, *, deadline: Deadline) -> bool:  # noqa: ARG002 - answers at once
        return wanted.authority in self._standing

    def ask(self, prompt: Prompt, *, deadline: Deadline) -> Answer | None:
        before = self.asked[-1].id if self.asked else _NO_DECISION
        self.asked.append(prompt)
        self._reach(At.ASK)
        if self.does in (Person.SILENT, Person.LATE):
            self._clock.advance(deadline.remaining_ns())
        if self.does is Person.NOTHING:
            return None
        return Answer(before if self.does is Person.REPLAY else prompt.id, _VERDICTS[self.does])


@define
class Seat:
    """Everything around one case."""

    case: CapabilityCase
    run: str
    projection: Projection
    ledger: CutOff
    clock: CaseClock
    chance: CaseChance
    keys: KeyRing
    world: World
    reach: Callable[[At], object]
    host: CaseHost = field(init=False)
    person: CasePerson = field(init=False)
    broker: CapabilityBroker = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.host = CaseHost(self.world, self.clock, self.reach)
        self.person = CasePerson(self.case, self.clock, self.reach)
        self.start()

    def start(self) -> None:
        """A broker takes up what is there. It starts without sessions, grants and decisions."""
        self.broker = self.another_broker()

    def another_broker(self) -> CapabilityBroker:
        """One more broker over the same run, host and person."""
        return CapabilityBroker(
            run=self.run,
            projection=self.projection,
            eligible=self.case.eligible,
            ledger=self.ledger,
            host=self.host,
            consent=self.person,
            clock=self.clock,
            chance=self.chance,
            keys=self.keys,
            on_moment=self._on_moment,
        )

    def _on_moment(self, moment: Moment) -> None:
        """The broker's own moments."""
        self.reach(At(moment.value))

    def session(self, client: str, run: str = "") -> Session:
        """The session of the case, or another client's, or one of another run."""
        name = client or self.case.run.client
        return Session(run or self.run, name, f"peer-of-{name}")

    @contextmanager
    def person_does(self, word: str) -> Iterator[None]:
        """For one call the person does something else."""
        usual, self.person.does = self.person.does, Person(word) if word else self.person.does
        try:
            yield
        finally:
            self.person.does = usual
