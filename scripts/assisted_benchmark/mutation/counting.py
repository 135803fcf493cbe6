"""An endpoint that counts: for tests and process-free experiments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from assisted_benchmark.kernel.clock import Clock, Deadline
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.mutation.ports import HttpReply, Reply, Request

DONE: Final = b'{"uuid":"00000000-0000-0000-0000-000000000001"}'

AnswerTo: TypeAlias = Callable[[Request], Reply]


class CountingEndpoint:
    """Counts what is asked and what is created. `asked` and `created` say what it answers; at first, that all is well.

    A dry run and a read are answered with their own body (or an empty object); a create with `DONE`.
    """

    def __init__(self, clock: Clock, asked: AnswerTo | None = None, created: AnswerTo | None = None) -> None:
        self._clock = clock
        self.asked = asked
        self.created = created
        self.asks: list[Request] = []
        self.creates: list[Request] = []

    def ask(self, request: Request, *, deadline: Deadline) -> Reply:
        if deadline.passed:
            return NotSent(Reason.DEADLINE_EXCEEDED)
        self.asks.append(request)
        return self.asked(request) if self.asked else self.replied(200, request.body or b"{}")

    def create(self, claimed: Claimed, request: Request, *, gate: Callable[[], bool], deadline: Deadline) -> Reply:
        if request.body != claimed.permit.arguments:
            return NotSent(Reason.BINDING_MISMATCH)
        if deadline.passed or not gate():
            return NotSent(Reason.EXPIRED)
        self.creates.append(request)
        return self.created(request) if self.created else self.replied(201, DONE)

    def replied(self, status: int, body: bytes) -> HttpReply:
        """An answer of this very instant."""
        now = self._clock.now()
        return HttpReply(status, body, now, now)
