"""A world that counts: the host and the person for tests and process-free experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from assisted_benchmark.capability.calling import OFFER
from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import (
    Answer,
    Cancellation,
    Ended,
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
    Word,
)
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Clock, Deadline
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.ledger.protocol import Claimed

Execute: TypeAlias = Callable[[Claimed, Envelope], HostReply]


class CountingHost:
    """Counts what reaches each operation. `execute` says what comes of a request; at first, an empty result.

    `steps` holds every step that was asked for, with the time that it was given, and `sessions` the session that
    each came in; `on_step` is told of each step, and may let time go by. `live` are the instances, and may be
    changed; `fails` makes a step unavailable.
    """

    def __init__(self, clock: Clock, instances: tuple[Instance, ...], execute: Execute | None = None) -> None:
        self._clock = clock
        self.live = instances
        self.execute = execute or (lambda _claimed, _envelope: self.ended(b"{}"))
        self.executed: Counter[str] = Counter()
        self.requests: list[tuple[Claimed, Envelope]] = []
        self.cancelled: list[Cancellation] = []
        self.observations: tuple[Json, ...] = ()
        self.steps: list[tuple[str, int]] = []
        self.on_step: Callable[[str], None] = lambda _step: None
        self.fails: dict[str, Unavailable] = {}
        self.offer: Offer = OFFER
        self.offers: list[tuple[str, Offer]] = []
        self.sessions: list[str] = []
        self.enrolled: Enrolled | None = None

    def connect(self, session: Session, *, deadline: Deadline) -> Enrolled | Unavailable:
        opened = sum(step == "connect" for step, _ in self.steps)
        enrolled = self.enrolled or Enrolled(f"session-{opened + 1}", session.client, session.peer)
        return self._step("connect", deadline) or enrolled

    def inventory(self, enrolled: Enrolled, *, deadline: Deadline) -> tuple[Instance, ...] | Unavailable:
        return self._step("inventory", deadline, enrolled) or self.live

    def negotiate(
        self, enrolled: Enrolled, instance: Instance, ours: Offer, *, deadline: Deadline
    ) -> Offer | Unavailable:
        self.offers.append((instance.id, ours))
        return self._step("negotiate", deadline, enrolled) or self.offer

    def request(
        self,
        claimed: Claimed,
        envelope: Envelope,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,
        progress: Callable[[Json], None],
    ) -> HostReply:
        if unavailable := self._step("request", deadline):
            return NotSent(unavailable.reason, unavailable.detail)
        if not gate():
            return NotSent(Reason.CANCELLED)
        self.executed[claimed.permit.tool] += 1
        self.requests.append((claimed, envelope))
        for observation in self.observations:
            progress(observation)
        return self.execute(claimed, envelope)

    def cancel(self, enrolled: Enrolled, cancellation: Cancellation, *, deadline: Deadline) -> Unavailable | None:
        self.cancelled.append(cancellation)
        return self._step("cancel", deadline, enrolled)

    def registered(self, instance: str) -> Registered | None:
        return next((each.registered for each in self.live if each.id == instance), None)

    def ended(self, result: bytes, word: Word = Word.COMPLETED, code: str = "", explanation: str = "") -> Ended:
        """The host's word of this very instant."""
        now = self._clock.now()
        return Ended(word, result, now, now, code, explanation)

    def _step(self, step: str, deadline: Deadline, enrolled: Enrolled | None = None) -> Unavailable | None:
        self.steps.append((step, deadline.remaining_ns()))
        if enrolled is not None:
            self.sessions.append(enrolled.id)
        self.on_step(step)
        return self.fails.get(step)


class ScriptedConsent:
    """A person who decides as told, and counts what was asked; `policies` are the authorities of a standing policy.

    `decide` gives the answer to a prompt; at first everything is approved.
    """

    def __init__(
        self, decide: Callable[[Prompt], Answer | None] | None = None, policies: frozenset[str] = frozenset()
    ) -> None:
        self.decide = decide or (lambda prompt: Answer(prompt.id, Verdict.APPROVED))
        self.policies = policies
        self.prompts: list[Prompt] = []
        self.steps: list[tuple[str, int]] = []
        self.on_step: Callable[[str], None] = lambda _step: None

    def standing(self, wanted: Wanted, *, deadline: Deadline) -> bool:
        self._step("standing", deadline)
        return wanted.authority in self.policies

    def ask(self, prompt: Prompt, *, deadline: Deadline) -> Answer | None:
        self._step("ask", deadline)
        self.prompts.append(prompt)
        return self.decide(prompt)

    def _step(self, step: str, deadline: Deadline) -> None:
        self.steps.append((step, deadline.remaining_ns()))
        self.on_step(step)
