"""The proposals that wait for a confirmation: each in the ledger, by its token's digest.

Over a ledger in memory the store forgets with its process, so that every token is unknown after a
restart; over a durable one the same proposals are there again. What a ledger says decides. This
process remembers beside it only the proposals that are waiting, each run's oldest first, to make room
for new ones: processes that share a ledger each count the ones they know.

A token is used up by its first confirmation, whatever its end. It is bound to one session, lives
for `ttl_ns`, and is remembered for as long again after its expiry; from then on it is unknown. A run
has room for `capacity` waiting proposals; a further one takes the place of the oldest.
"""

from __future__ import annotations

from threading import Lock
from typing import Final, NamedTuple

from attrs import define

from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import SECOND, Clock
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Draft, Ledger
from assisted_benchmark.mutation.changes import ChangeContract
from assisted_benchmark.mutation.compiler import Compiled
from assisted_benchmark.mutation.desk import DECISION, EVENT, Desk
from assisted_benchmark.mutation.proposal import Proposal, Session, group_key, token_text
from assisted_benchmark.mutation.states import State

TTL_NS: Final = 600 * SECOND
CAPACITY: Final = 20
_TOKEN_BYTES: Final = 12


class Found(NamedTuple):
    """A proposal as the ledger has it now."""

    key: bytes
    proposal: Proposal
    state: str


class Sealed(NamedTuple):
    """A proposal that was taken in, and the one copy of its token."""

    token: str
    proposal: Proposal
    receipt_id: str


@define
class _Waiting:
    """The names of a run's proposals that are sealed, oldest first, and how many it has had."""

    keys: dict[bytes, None]
    count: int


class ProposalStore:
    """The proposals of one pair of tools. Threads may share it; the ledger orders them.

    `clock` and `chance` are those of the broker that uses the store, and `keys` make its receipts' digests.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        chance: Chance,
        keys: KeyRing,
        capacity: int = CAPACITY,
        ttl_ns: int = TTL_NS,
    ) -> None:
        self.desk = Desk(ledger, clock, chance, keys)
        self.ledger = ledger
        self.clock = clock
        self.chance = chance
        self.ttl_ns = ttl_ns
        self._capacity = capacity
        self._runs: dict[str, _Waiting] = {}
        self._proposals: dict[bytes, Proposal] = {}  # those of all runs' waiting ones
        self._lock = Lock()

    def ready(self, run: str) -> None:
        """Make the run in the ledger, or take up what it holds already.

        Raises:
            LedgerError: the ledger cannot be used.
        """
        with self._lock:
            self._waiting(run)

    def seal(
        self, session: Session, contract: ChangeContract, compiled: Compiled, spec: Canonical, price: Canonical
    ) -> Sealed:
        """Take in what a dry run took, for the whole lifetime from now on.

        Raises:
            LedgerError: the ledger cannot be used; there is no token then.
        """
        with self._lock:
            waiting = self._waiting(session.run)
            self._make_room(session.run, waiting, contract.id)
            proposal = Proposal(
                session=session,
                change=compiled.change,
                spec=spec,
                bound=compiled.digest,
                contract=contract.digest,
                price=price,
                arguments=self.desk.keyed(compiled.body),
                issued=self.clock.now(),
                boot=self.clock.boot_id,
                ttl_ns=self.ttl_ns,
            )
            token = token_text(waiting.count + 1, self.chance.token(_TOKEN_BYTES))
            key = group_key(token)
            draft = self.desk.about(DECISION, "proposed", proposal, contract.id)
            if key is None or not self.ledger.open_group(session.run, key, proposal.record, draft):
                raise LedgerError(Reason.ILLEGAL_TRANSITION, "a proposal with this token exists already")
            waiting.keys[key] = None
            waiting.count += 1
            self._proposals[key] = proposal
            return Sealed(token, proposal, draft.id)

    def find(self, token: str) -> Found | None:
        """The proposal of this token, whoever asks, evicted ones included; None if there never was one.

        Raises:
            LedgerError: the ledger cannot be used.
        """
        key = group_key(token)
        row = None if key is None else self.ledger.row(key)
        if key is None or row is None:
            return None
        proposal = self._proposals.get(key)
        if proposal is None:
            record = self.ledger.group_record(key)
            if record is None:
                return None
            proposal = Proposal.of_record(record)
        return Found(key, proposal, row.state)

    def leave(self, found: Found, state: State, draft: Draft) -> bool:
        """A waiting proposal comes to `state` (confirming, expired), with its receipt; False if it waits no more.

        Raises:
            LedgerError: the ledger cannot be used; the token counts as used.
        """
        run = found.proposal.session.run
        moved = self.ledger.move(found.key, run, State.SEALED, state, draft)
        with self._lock:
            self._forget(run, found.key)
        return moved

    def _waiting(self, run: str) -> _Waiting:
        known = self._runs.get(run)
        if known is None:
            known = _Waiting({}, 0)
            if not self.desk.open_run(run):
                for key, row in self.ledger.groups(run):
                    known.count += 1
                    record = self.ledger.group_record(key) if row.state == State.SEALED else None
                    if record is not None:
                        known.keys[key] = None
                        self._proposals[key] = Proposal.of_record(record)
            self._runs[run] = known
        return known

    def _make_room(self, run: str, waiting: _Waiting, server: str) -> None:
        """What has expired makes room first, then the oldest."""
        now, boot = self.clock.now(), self.clock.boot_id
        while waiting.keys:
            oldest = next(iter(waiting.keys))
            proposal = self._proposals[oldest]
            over = proposal.expired(now, boot)  # they expire in the order in which they came
            if not over and len(waiting.keys) < self._capacity:
                return
            state = State.EXPIRED if over else State.EVICTED
            draft = self.desk.about(EVENT, state.value, proposal, server)
            self.ledger.move(oldest, run, State.SEALED, state, draft)
            self._forget(run, oldest)

    def _forget(self, run: str, key: bytes) -> None:
        """The proposal does not wait any more."""
        if run in self._runs:
            self._runs[run].keys.pop(key, None)
        self._proposals.pop(key, None)
