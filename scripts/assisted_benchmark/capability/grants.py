"""The grants of this broker: what a client may ask of one publication of one instance, until when.

They live in memory, with the broker: after a restart there are none, and everything has to be consented to
anew. What outlives the broker are the receipts of operations.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

from attrs import define, field, frozen

from assisted_benchmark.capability.ports import Wanted
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import SECOND, Clock, Instant
from assisted_benchmark.kernel.reasons import Reason

MAX_GRANTS: Final = 256
DEFAULT_TTL_NS: Final = 15 * 60 * SECOND
MAX_TTL_NS: Final = 24 * 60 * 60 * SECOND
_ID_BYTES: Final = 16


@frozen
class Grant:
    """One grant, as it was issued. `interactive` says that a person decided, and no standing policy."""

    id: str
    wanted: Wanted
    interactive: bool
    expires: Instant

    @property
    def operations(self) -> tuple[str, ...]:
        """Which operations it covers."""
        return self.wanted.operations

    def expired(self, now: Instant) -> bool:
        """Whether either clock says so; `expires <= now` is expired."""
        return self.expires.wall_ns <= now.wall_ns or self.expires.mono_ns <= now.mono_ns


@define
class _Held:
    grant: Grant
    revoked: bool = False
    # Of a one-shot operation: the one identity that this grant has admitted.
    spent: dict[str, bytes] = field(factory=dict)


class Grants:
    """All grants that were issued and are not forgotten. Threads may share it."""

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self._clock = clock
        self._chance = chance
        self._lock = Lock()
        self._held: dict[str, _Held] = {}

    def full(self) -> bool:
        """Whether there is no place for one more."""
        with self._lock:
            return self._crowded()

    def issue(self, wanted: Wanted, *, interactive: bool, ttl_ns: int) -> Grant | None:
        """A new grant of what was consented to; None if there is no place for it."""
        with self._lock:
            if self._crowded():
                return None
            now = self._clock.now()
            expires = Instant(now.wall_ns + ttl_ns, now.mono_ns + ttl_ns)
            grant = Grant(self._chance.token(_ID_BYTES).hex(), wanted, interactive, expires)
            self._held[grant.id] = _Held(grant)
            return grant

    def find(self, grant_id: str, client: str) -> Grant | None:
        """The grant of this id, for its owner only."""
        held = self._held.get(grant_id)
        return None if held is None or held.grant.wanted.client != client else held.grant

    def ended(self, grant: Grant) -> Reason | None:
        """Why the grant is good for nothing any more, if so."""
        held = self._held.get(grant.id)
        if held is None or held.revoked:
            return Reason.REVOKED
        return Reason.EXPIRED if grant.expired(self._clock.now()) else None

    def revoke(self, grant_id: str, client: str) -> Grant | Reason:
        """End a grant, for its owner only. The grant, or why it was not revoked now."""
        with self._lock:
            held = self._held.get(grant_id)
            if held is None or held.grant.wanted.client != client:
                return Reason.NOT_FOUND
            ended = self.ended(held.grant)
            if ended is not None:
                return ended
            held.revoked = True
            return held.grant

    def spend(self, grant: Grant, operation: str, identity: bytes) -> bool:
        """Let one identity of a one-shot operation use the grant: true for that identity alone."""
        with self._lock:
            held = self._held.get(grant.id)
            return held is not None and held.spent.setdefault(operation, identity) == identity

    def spent(self, grant: Grant, operation: str, identity: bytes | None = None) -> bool:
        """Whether an identity of a one-shot operation, other than this one, has used the grant up."""
        held = self._held.get(grant.id)
        return held is not None and held.spent.get(operation, identity) != identity

    def _crowded(self) -> bool:
        """Whether all places are taken, once those of grants that have ended were given back."""
        if len(self._held) < MAX_GRANTS:
            return False
        self._held = {each: held for each, held in self._held.items() if self.ended(held.grant) is None}
        return len(self._held) >= MAX_GRANTS
