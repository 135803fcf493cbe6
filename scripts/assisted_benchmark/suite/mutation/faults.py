"""What goes wrong in a mutation case, and at which moment of which of the agent's calls.

    start      before the agent's first call
    turn       before the call is judged
    dry_run    the spec is sound, the dry run is about to be sent
    price      the dry run passed, the price is about to be asked
    seal       the proposal is about to be taken into the store
    consume    the token is about to be consumed
    consumed   the token is consumed, for good
    ask        the question is about to be handed out
    asked      the question is out, and nobody has answered
    answered   a person agreed, or nobody had to; nothing is sent
    claim      the marker is about to be written
    claimed    the marker is durable, nothing is written to the endpoint
    write      the last check said yes, the create is about to be written
    answer     the endpoint's answer, or its absence, is known
    settle     the outcome is about to be recorded
    after      the agent has its answer
    end        the agent is done

Those from `dry_run` to `settle` are the broker's own and come only if the call gets that far; a fault whose
moment never comes does nothing, and the case fails for it.
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
    DRY_RUN = "dry_run"
    PRICE = "price"
    SEAL = "seal"
    CONSUME = "consume"
    CONSUMED = "consumed"
    ASK = "ask"
    ASKED = "asked"
    ANSWERED = "answered"
    CLAIM = "claim"
    CLAIMED = "claimed"
    WRITE = "write"
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
    REBOOT = "reboot"  # the host starts again: another boot
    ENDPOINT = "endpoint"  # the endpoint misbehaves: a workload's fault
    CANCEL = "cancel"  # the agent's client cancels the call
    CRASH = "crash"  # the broker dies, and another takes up what it left
    RESTART = "restart"  # the broker ends in order, and another takes up what it left
    TAMPER = "tamper"  # the store gives back another proposal than it took in
    MAPPING = "mapping"  # the code that makes a request of a spec is another
    CONTRACT = "contract"  # the change contract is another than at the proposal
    LEDGER = "ledger"  # the ledger cannot be reached from here on
    RACE = "race"  # another confirmation of the same token comes in between


@unique
class Tampers(StrEnum):
    """What of a stored proposal is another."""

    SPEC = "spec"
    CHANGE = "change"  # its change type
    BOUND = "bound"  # the digest that its token is bound to


@unique
class Mappings(StrEnum):
    """How the request of a spec is made wrongly."""

    CHANGED = "changed"  # another body, and its own digest
    TIMED = "timed"  # a body that has the time of day in it
    LYING = "lying"  # another body, under the digest of the right one


USUAL: Final[dict[Kind, At]] = {
    Kind.ENDPOINT: At.START,
    Kind.CANCEL: At.ASKED,
    Kind.CRASH: At.CLAIMED,
    Kind.RACE: At.ASKED,
}


@frozen(kw_only=True)
class Fault:
    """One fault. `turn` counts the agent's calls from 1; 0 is the last one."""

    kind: Kind
    value: Json = None
    at: At = At.TURN
    turn: int = 0
