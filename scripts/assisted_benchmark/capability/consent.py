"""The prompt machine: one question at a time to the broker's own person, and each decision good for one grant.

A prompt is opened, put to the person outside of any lock, and closed. While it is open no other is, and for a
while after it none is opened again: five seconds for anybody, thirty for the same client, so that nobody is
worn down. A decision that comes too late, or after the instance has published anew, is void. Its id is a digest
of the whole lineage, of this broker's epoch and of a nonce, so that a decision answers its own prompt only, and
none outlives the broker.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final

from attrs import frozen

from assisted_benchmark.capability.ports import Answer, Consent, Prompt, Verdict, Wanted
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.reasons import Reason

PROMPT_FOR_NS: Final = 30 * SECOND
COOLDOWN_NS: Final = 5 * SECOND
CLIENT_COOLDOWN_NS: Final = 30 * SECOND
_NONCE_BYTES: Final = 16


@frozen
class Approved:
    """A person's yes: what it is for, and the decision that issues one grant."""

    decision: str
    wanted: Wanted


@frozen
class NotApproved:
    """No yes. `verdict` is how the prompt ended; `reason` is consent_required or consent_replay."""

    verdict: Verdict
    reason: Reason
    detail: str


class Prompts:
    """The one place where the broker's person is asked. Threads may share it."""

    def __init__(self, consent: Consent, clock: Clock, chance: Chance, epoch: str) -> None:
        self._consent = consent
        self._clock = clock
        self._chance = chance
        self._epoch = epoch
        self._lock = Lock()
        self._open: Prompt | None = None
        self._closed_ns: int | None = None
        self._closed_by_client: dict[str, int] = {}
        self._unspent: set[str] = set()

    def decide(self, wanted: Wanted, *, deadline: Deadline, still: Callable[[], bool]) -> Approved | NotApproved:
        """Ask, and wait. `still` says whether the instance is as it was when the question was put."""
        prompt = self._begin(wanted)
        if isinstance(prompt, NotApproved):
            return prompt
        within = deadline.child(PROMPT_FOR_NS)
        try:
            answer = self._consent.ask(prompt, deadline=within)
        finally:
            self._end(wanted.client)
        decided = _judge(prompt, answer, late=within.passed, still=still)
        if isinstance(decided, Approved):
            with self._lock:
                self._unspent.add(decided.decision)
        return decided

    def spend(self, decision: str) -> bool:
        """Use a decision up: true once."""
        with self._lock:
            if decision not in self._unspent:
                return False
            self._unspent.remove(decision)
            return True

    def _begin(self, wanted: Wanted) -> Prompt | NotApproved:
        with self._lock:
            now = self._clock.now().mono_ns
            if self._open is not None:
                return _unavailable("another question is open; there is one at a time")
            if self._closed_ns is not None and now < self._closed_ns + COOLDOWN_NS:
                return _unavailable("a question was asked a moment ago")
            # What is past its cooldown is of no more use: no more clients are kept than can have been asked.
            self._closed_by_client = {
                client: at for client, at in self._closed_by_client.items() if now < at + CLIENT_COOLDOWN_NS
            }
            if wanted.client in self._closed_by_client:
                return _unavailable("this client had a question asked a moment ago")
            self._open = Prompt(self._decision_id(wanted), wanted)
            return self._open

    def _end(self, client: str) -> None:
        with self._lock:
            self._open = None
            self._closed_ns = self._closed_by_client[client] = self._clock.now().mono_ns

    def _decision_id(self, wanted: Wanted) -> Digest:
        *lineage, operations = wanted
        texts = (*lineage, *operations, self._epoch)
        return digest_of("consent-decision@1", *map(str.encode, texts), self._chance.token(_NONCE_BYTES))


def _judge(prompt: Prompt, answer: Answer | None, *, late: bool, still: Callable[[], bool]) -> Approved | NotApproved:
    if late:
        return NotApproved(Verdict.TIMED_OUT, Reason.CONSENT_REQUIRED, "nobody decided in time")
    if answer is None:
        return _unavailable("there came no decision")
    if answer.decision != prompt.id:
        return NotApproved(answer.verdict, Reason.CONSENT_REPLAY, "the decision is another question's")
    if answer.verdict is not Verdict.APPROVED:
        return NotApproved(answer.verdict, Reason.CONSENT_REQUIRED, f"the decision is: {answer.verdict}")
    if not still():
        return NotApproved(Verdict.APPROVED, Reason.CONSENT_REQUIRED, "the instance has changed since it was asked")
    return Approved(answer.decision, prompt.wanted)


def _unavailable(detail: str) -> NotApproved:
    return NotApproved(Verdict.UNAVAILABLE, Reason.CONSENT_REQUIRED, detail)
