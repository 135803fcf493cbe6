"""The states of a proposed change, from its dry run to its end."""

from __future__ import annotations

from enum import StrEnum, unique


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
