"""The states of a choice group (a single call is a group of one)."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final

from assisted_benchmark.ledger.states import TransitionTable


@unique
class State(StrEnum):
    """Where a group is. Everything but `sealed` and `dispatching` is terminal."""

    SEALED = "sealed"
    DISPATCHING = "dispatching"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNRESOLVED = "unresolved"
    EXPIRED = "expired"
    REVOKED = "revoked"
    ABORTED = "aborted"
    EXHAUSTED = "exhausted"


LIVE_TABLE: Final = TransitionTable(
    name="live",
    initial=State.SEALED,
    claimed=State.DISPATCHING,
    after_crash={State.DISPATCHING: State.UNRESOLVED},
    edges=frozenset(
        {
            (State.SEALED, State.DISPATCHING),
            (State.SEALED, State.EXPIRED),
            (State.SEALED, State.REVOKED),
            (State.SEALED, State.ABORTED),
            (State.SEALED, State.EXHAUSTED),
            (State.DISPATCHING, State.SUCCEEDED),
            (State.DISPATCHING, State.FAILED),
            (State.DISPATCHING, State.UNRESOLVED),
            (State.DISPATCHING, State.EXPIRED),
        }
    ),
)
