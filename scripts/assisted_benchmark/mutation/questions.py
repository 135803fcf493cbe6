"""The questions that are open: one row each, found again by an opaque nonce that is good once.

A row is bound to the tool, the arguments and the session of the call that asked, and to the time
in which an answer counts. The nonce says nothing by itself, so there is nothing in it to forge. Rows are in this
process only: a question does not outlive it, and its proposal is refused on the next start.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from attrs import define

from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.mutation.changes import ChangeType
from assisted_benchmark.mutation.compiler import Compiled
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.results import Refusal
from assisted_benchmark.mutation.store import Found

_STATE_BYTES: Final = 16


class Call(NamedTuple):
    """What a nonce is bound to: the tool, its arguments (the token alone), the session."""

    tool: str
    token: str
    session: Session


@define
class Question:
    """A consumed proposal, and what was asked about it. `over` is its end, if time ran out before an answer."""

    call: Call
    found: Found
    change: ChangeType
    compiled: Compiled
    until_mono_ns: int
    shown: Digest
    over: Refusal | None = None


class Questions:
    """All open questions of one broker."""

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self._clock = clock
        self._chance = chance
        # Both oldest first, as all wait equally long: a sweep looks at those only whose time is over.
        self._rows: dict[str, Question] = {}
        self._over: dict[str, Question] = {}
        self._lock = Lock()

    def open(self, question: Question) -> str:
        """Keep the question; the nonce that finds it again."""
        state = self._chance.token(_STATE_BYTES).hex()
        with self._lock:
            self._rows[state] = question
        return state

    def take(self, state: str, call: Call) -> Question | None:
        """The question of this nonce, once, for the call it is bound to; None for every other."""
        with self._lock:
            rows = self._rows if state in self._rows else self._over
            row = rows.get(state)
            if row is None or row.call != call:
                return None
            return rows.pop(state)

    def overdue(self, question: Question) -> bool:
        """Whether an answer would come too late, from the very instant on."""
        return self._clock.now().mono_ns >= question.until_mono_ns

    def sweep(self, end: Callable[[Question], Refusal], *, closing: bool = False) -> None:
        """End what is overdue (all, when closing). Who comes for it later hears so once more, for one lifetime."""
        if not self._rows and not self._over:
            return
        with self._lock:
            now = self._clock.now().mono_ns
            while self._over:
                state, row = next(iter(self._over.items()))
                if now < row.until_mono_ns + row.found.proposal.ttl_ns:
                    break
                del self._over[state]
            while self._rows:
                state, row = next(iter(self._rows.items()))
                if not closing and now < row.until_mono_ns:
                    break
                row.over = end(row)
                self._over[state] = self._rows.pop(state)
