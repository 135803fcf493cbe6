"""The states of an operation's durable receipt, from its admission to its end."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final

from assisted_benchmark.ledger.states import TransitionTable


@unique
class State(StrEnum):
    """Where an operation is. Everything but `admitted` and `running` is terminal."""

    ADMITTED = "admitted"  # durable; nothing is sent to the host
    RUNNING = "running"  # the durable marker: the request may be out
    COMPLETED = "completed"
    FAILED = "failed"  # the host answered that it did not do it
    CANCELLED = "cancelled"  # nothing was sent, or the host answered that it stopped
    COMPLETED_AFTER_REVOCATION = "completed_after_revocation"  # it was done, and its authority had ended
    UNKNOWN_NEEDS_REFRESH = "unknown_needs_refresh"  # it was sent, and what came of it is not known


ACTIVE: Final = frozenset({State.ADMITTED, State.RUNNING})

CAPABILITY_TABLE: Final = TransitionTable(
    name="capability",
    initial=State.ADMITTED,
    claimed=State.RUNNING,
    after_crash={State.ADMITTED: State.CANCELLED, State.RUNNING: State.UNKNOWN_NEEDS_REFRESH},
    edges=frozenset(
        {
            (State.ADMITTED, State.RUNNING),
            (State.ADMITTED, State.CANCELLED),
            (State.RUNNING, State.COMPLETED),
            (State.RUNNING, State.FAILED),
            (State.RUNNING, State.CANCELLED),
            (State.RUNNING, State.COMPLETED_AFTER_REVOCATION),
            (State.RUNNING, State.UNKNOWN_NEEDS_REFRESH),
        }
    ),
)
