"""An open grant: the broker's own view of where it stands. The ledger decides; this remembers."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.kernel.clock import SECOND, Instant
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.live_policy.dispatch import Flight
from assisted_benchmark.live_policy.grant import Binding, group_key
from assisted_benchmark.live_policy.policy import Plan, PlannedStep
from assisted_benchmark.live_policy.states import State

# As a plain string: an enumeration's members compare and hash more slowly.
_SEALED: Final = State.SEALED.value


class OpenGrant:
    """One grant that was recompiled from the trusted policy.

    `position` is the step that is open, or the last one; `status` is that group's state and `key`
    its name in the ledger. Threads may race here: a stale view only costs a look at the ledger,
    as nothing is sent without a claim. `mark` is the highest wall reading so far; `stopped` says why
    nothing of this grant may be written any more.
    """

    __slots__ = (
        "expires_mono",
        "expires_wall",
        "flight",
        "key",
        "lifetime",
        "mark",
        "plan",
        "position",
        "session",
        "status",
        "step",
        "stopped",
    )

    def __init__(self, grant: Digest, binding: Binding, plan: Plan) -> None:
        wall = int(binding.issued_at)
        lifetime = plan.policy.expires_after_ns
        self.session = binding.session(grant)
        self.plan = plan
        self.lifetime = lifetime
        self.expires_wall = wall + lifetime
        self.expires_mono = int(binding.issued_mono) + lifetime
        self.mark = wall
        self.flight: Flight | None = None
        self.stopped: Reason | None = None
        self.position = 0
        self.step: PlannedStep = plan.steps[0]
        self.key = group_key(grant, 0)
        self.status: str = _SEALED

    def _stand(self, position: int, status: str) -> None:
        self.position = position
        self.step = self.plan.steps[position]
        self.key = group_key(self.session.grant, position)
        self.status = status

    def live(self, now: Instant) -> bool:
        """Whether `now` lies between sealing and expiry on both clocks, and no clock was set back."""
        wall, mono = now
        lifetime = self.lifetime
        return (
            0 < self.expires_wall - wall <= lifetime
            and 0 < self.expires_mono - mono <= lifetime
            and wall >= self.mark - SECOND
        )

    def expired(self, now: Instant) -> bool:
        """Either clock suffices; the very instant of expiry is expired."""
        return now.wall_ns >= self.expires_wall or now.mono_ns >= self.expires_mono

    def seen(self, now: Instant) -> None:
        """Raise the high-water mark."""
        if now.wall_ns > self.mark:
            self.mark = now.wall_ns

    def settled(self, state: State) -> None:
        """The open group came to its end; only a success opens the next step."""
        if state is State.SUCCEEDED and self.position + 1 < len(self.plan.steps):
            self._stand(self.position + 1, State.SEALED)
        else:
            self.status = state

    def refresh(self, ledger: Ledger) -> None:
        """Stand where the ledger's rows say.

        Raises:
            LedgerError: the ledger cannot answer, or lacks a group of this grant.
        """
        states = []
        for key in self.groups():
            row = ledger.row(key)
            if row is None:
                raise LedgerError(Reason.LEDGER_MALFORMED, "a group of an open grant is not in the ledger")
            states.append(row.state)
        position = next((at for at, state in enumerate(states) if state != State.SUCCEEDED), len(states) - 1)
        self._stand(position, states[position])

    def groups(self) -> tuple[bytes, ...]:
        """The names of all groups, in the steps' order."""
        return tuple(group_key(self.session.grant, index) for index in range(len(self.plan.steps)))
