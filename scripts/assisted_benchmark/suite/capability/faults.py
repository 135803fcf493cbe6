"""What goes wrong in a capability case, and at which moment of which of the agent's calls.

    start       before the agent's first call
    turn        before the call is judged
    connect     the client is about to be connected and enrolled
    inventory   the live instances are about to be asked for
    ask         the broker's own person has the question
    negotiate   the instance is about to be asked for versions and features
    negotiated  it has answered
    admit       every check has passed, the receipt is about to be written
    admitted    the receipt is durable
    claimed     the marker is durable, nothing is written to the host
    write       the last look said yes, the request is about to be written
    hanging     the host has the request and does not answer
    answer      the host's word, or its absence, is known
    settle      the end is about to be recorded
    after       the agent has its answer
    end         the agent is done

Those from `connect` to `settle` come only if the call gets that far, and the first three of them only if there is no
session or grant to use again; a fault whose moment never comes does nothing, and the case fails for it.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.canonical import Json


@unique
class At(StrEnum):
    """A moment of a call's way, in order."""

    START = "start"
    TURN = "turn"
    CONNECT = "connect"
    INVENTORY = "inventory"
    ASK = "ask"
    NEGOTIATE = "negotiate"
    NEGOTIATED = "negotiated"
    ADMIT = "admit"
    ADMITTED = "admitted"
    CLAIMED = "claimed"
    WRITE = "write"
    HANGING = "hanging"
    ANSWER = "answer"
    SETTLE = "settle"
    AFTER = "after"
    END = "end"


# Moments that come whatever the turn.
ANY_TURN: Final = frozenset({At.START, At.END})


@unique
class Kind(StrEnum):
    """What goes wrong; the value is the key in a scenario."""

    ADVANCE = "advance"  # both clocks go on by a duration
    SET_BACK = "set_back"  # the wall clock alone is set back by a duration
    HOST = "host"  # the host misbehaves, or what lives there changes: a workload's fault
    CRASH = "crash"  # the broker dies, and another takes up what it left; or the host dies
    RESTART = "restart"  # the broker ends in order, and another takes up what it left; or the host starts again
    RIVAL = "rival"  # another broker takes up the run while this one is at work
    CANCEL = "cancel"  # the agent's client cancels the call
    REVOKE = "revoke"  # the agent's client revokes the grant that the call goes by
    RACE = "race"  # the same call comes once more at the same time
    ENROLLED = "enrolled"  # the host's service gives the session of somebody else
    LEDGER = "ledger"  # the ledger cannot be reached from here on, or can again


@unique
class Dies(StrEnum):
    """Who dies, or starts again."""

    BROKER = "broker"
    HOST = "host"


@unique
class Others(StrEnum):
    """Whose session the host's service gives."""

    CLIENT = "other_client"
    PEER = "other_peer"


USUAL: Final[dict[Kind, At]] = {
    Kind.HOST: At.START,
    Kind.CRASH: At.CLAIMED,
    Kind.RIVAL: At.CLAIMED,
    Kind.CANCEL: At.CLAIMED,
    Kind.REVOKE: At.CLAIMED,
    Kind.RACE: At.CLAIMED,
    Kind.ENROLLED: At.START,
}


@frozen(kw_only=True)
class Fault:
    """One fault. `turn` counts the agent's calls from 1; 0 is the last one."""

    kind: Kind
    value: Json = None
    at: At = At.TURN
    turn: int = 0
