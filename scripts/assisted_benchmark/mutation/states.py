"""The states of a proposed change, from its dry run to its end."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final

from assisted_benchmark.ledger.states import TransitionTable


@unique
class State(StrEnum):
    """Where a proposal is. Everything but `sealed`, `confirming` and `dispatching` is terminal."""

    SEALED = "sealed"  # the dry run passed; its token is usable
    CONFIRMING = "confirming"  # the token is consumed; nothing is sent
    DISPATCHING = "dispatching"  # the durable marker: the request may be out
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the endpoint answered that it did not create
    UNRESOLVED = "unresolved"  # it was sent, and what came of it is not known
    REFUSED = "refused"  # consumed, and nothing was sent
    EXPIRED = "expired"  # nobody confirmed it in time
    EVICTED = "evicted"  # a newer proposal took its place


_S = State

MUTATION_TABLE: Final = TransitionTable(
    name="mutation",
    initial=_S.SEALED,
    ready=_S.CONFIRMING,
    claimed=_S.DISPATCHING,
    after_crash={_S.CONFIRMING: _S.REFUSED, _S.DISPATCHING: _S.UNRESOLVED},
    edges=frozenset(
        {
            (_S.SEALED, _S.CONFIRMING),
            (_S.SEALED, _S.EXPIRED),
            (_S.SEALED, _S.EVICTED),
            (_S.CONFIRMING, _S.DISPATCHING),
            (_S.CONFIRMING, _S.REFUSED),
            (_S.DISPATCHING, _S.SUCCEEDED),
            (_S.DISPATCHING, _S.FAILED),
            (_S.DISPATCHING, _S.UNRESOLVED),
            (_S.DISPATCHING, _S.REFUSED),  # the marker is durable, the gate said no, nothing was written
        }
    ),
)
