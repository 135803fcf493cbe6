"""An open grant: the broker's own view of where it stands. The ledger decides; this remembers."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from assisted_benchmark.kernel.clock import SECOND, Instant
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.live_policy.dispatch import Flight
from assisted_benchmark.live_policy.grant import Binding, group_key
from assisted_benchmark.live_policy.policy import Plan, PlannedStep
from assisted_benchmark.live_policy.states import State


class Standing(NamedTuple):
    """Where a grant stands: the step that is open, or the last one, its group's name in the ledger and its state."""

    step: PlannedStep
    key: bytes
    status: str


class OpenGrant:
    """One grant that was recompiled from the trusted policy.

    `standing` is one value that is swapped at once: who judges takes it once, as it may be another
    the next time. It may lag behind the ledger, which only costs a look there, and is never ahead of
    it. `keys` are the groups' names in the ledger, in the steps' order. `mark` is the highest wall reading so
    far; `stopped` says why nothing of this grant may be written any more.
    """

    __slots__ = (
        "_lock",
        "expires_mono",
        "expires_wall",
        "flight",
        "keys",
        "lifetime",
        "mark",
        "plan",
        "session",
        "standing",
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
        self._lock = Lock()
        self.keys = tuple([group_key(grant, index) for index in range(len(plan.steps))])
        self.standing = self._at(0, State.SEALED)

    def _at(self, position: int, status: str) -> Standing:
        return Standing(self.plan.steps[position], self.keys[position], status)

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

    def came_to(self, position: int, state: State) -> None:
        """The group of this step came to `state`; only a success opens the next step.

        Nothing changes where the grant stands elsewhere by now: then another thread has read it in the ledger.
        """
        with self._lock:
            if self.standing.step.index != position:
                return
            if state is State.SUCCEEDED and position + 1 < len(self.plan.steps):
                self.standing = self._at(position + 1, State.SEALED)
            else:
                self.standing = self._at(position, state)

    def refresh(self, ledger: Ledger) -> None:
        """Stand where the ledger's rows say; a step that is done stays done, however old the rows are by now.

        Raises:
            LedgerError: the ledger cannot answer, or lacks a group of this grant.
        """
        states = []
        for key in self.keys:
            row = ledger.row(key)
            if row is None:
                raise LedgerError(Reason.LEDGER_MALFORMED, "a group of an open grant is not in the ledger")
            states.append(row.state)
        position = next((at for at, state in enumerate(states) if state != State.SUCCEEDED), len(states) - 1)
        with self._lock:
            if position >= self.standing.step.index:
                self.standing = self._at(position, states[position])
