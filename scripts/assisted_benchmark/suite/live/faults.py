"""Faults as data: what goes wrong, and at which moment of which proposal.

A proposal's way has named moments. Those from `observe` to `settle` come only if it gets that
far; a fault whose moment never comes does nothing, and the case fails for it.

    start      before the grant is sealed
    open       the grant is sealed and not opened yet
    propose    before the proposal is judged
    observe    the server is about to be looked at
    claim      the marker is about to be written
    claimed    the marker is durable, nothing is written to the server
    write      the last check said yes, the call is about to be written
    answer     the server's answer (or its absence) is known to the router
    settle     the outcome is about to be recorded
    after      the outcome, or the refusal, is recorded
    end        the agent is done

What a server does wrong is the workload's own fault (`server: {id: …, does: hang_before}`): it is
played by the model itself, in a process and in process-free cases alike.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.canonical import Json


@unique
class At(StrEnum):
    """A moment of a proposal's way, in order."""

    START = "start"
    OPEN = "open"
    PROPOSE = "propose"
    OBSERVE = "observe"
    CLAIM = "claim"
    CLAIMED = "claimed"
    WRITE = "write"
    ANSWER = "answer"
    SETTLE = "settle"
    AFTER = "after"
    END = "end"


# Moments that come whatever the turn.
ANY_TURN: Final = frozenset({At.START, At.OPEN, At.END})


@unique
class Kind(StrEnum):
    """What goes wrong; the value is the key in a scenario."""

    ADVANCE = "advance"  # both clocks go on by a duration
    SET_BACK = "set_back"  # the wall clock alone is set back by a duration
    REBOOT = "reboot"  # the host starts again: another boot
    SERVER = "server"  # a server misbehaves, from the start on: a workload's fault
    KILL = "kill"  # this server dies at the moment itself, not at a call
    SUBSTITUTE = "substitute"  # another program stands where this server was
    CRASH = "crash"  # the broker dies, and is opened again on the same ledger
    CANCEL = "cancel"  # the run is aborted by the one who asked
    RACE = "race"  # another selection, of this candidate, comes at the same moment
    REVOKE = "revoke"  # the operator revokes the grant
    TEARDOWN = "teardown"  # the run is torn down
    RECONCILE = "reconcile"  # the operator records what came of the unresolved call
    SETTING = "setting"  # the proposal comes under another binding: run, vm, host or session
    GRANT = "grant"  # the grant is edited before it is opened: one of Edits
    POLICY = "policy"  # the trusted policy is changed after its pin
    CONTRACT = "contract"  # the contract is changed after its pin
    STORE = "store"  # the ledger cannot be reached from here on


@unique
class Edits(StrEnum):
    """How a grant is edited before it is opened."""

    UNSEALED = "unsealed"  # the plan differs, the seal is the old one
    RESEALED = "resealed"  # the plan differs, every digest and the MAC are computed anew
    MAC_BIT = "mac_bit"  # one bit of the MAC is another
    MAC_CUT = "mac_cut"  # half of the MAC
    MAC_EMPTY = "mac_empty"
    MAC_NONE = "mac_none"  # no MAC at all
    OTHER_PURPOSE = "other_purpose"  # sealed with a key of another purpose
    OTHER_KEY = "other_key"  # a key of another name
    ALGORITHM = "algorithm"  # a member that names an algorithm: none
    TYPED = "typed"  # a member that names another type of payload
    UNSIGNED = "unsigned"  # a second plan beside the sealed one
    RESPELLED = "respelled"  # the same value in other bytes
    LONGER = "longer"  # another end of its time, everything computed anew
    TIMELESS = "timeless"  # an end of its time that is no number, everything computed anew
    NARROWER = "narrower"  # a candidate of the choice gone, everything computed anew
    OTHER_RUN = "other_run"  # another run, everything computed anew
    OTHER_VM = "other_vm"
    OTHER_CONTRACT = "other_contract"


# When a fault strikes if its scenario does not say; the others strike before the proposal is judged.
USUAL: Final[dict[Kind, At]] = {
    Kind.SERVER: At.START,
    Kind.KILL: At.OBSERVE,
    Kind.SUBSTITUTE: At.OBSERVE,
    Kind.CRASH: At.CLAIMED,
    Kind.CANCEL: At.CLAIMED,
    Kind.RACE: At.CLAIM,
    Kind.GRANT: At.OPEN,
    Kind.POLICY: At.OPEN,
    Kind.CONTRACT: At.OPEN,
    Kind.RECONCILE: At.END,
}


@frozen(kw_only=True)
class Fault:
    """One fault. `turn` counts the agent's proposals from 1; 0 is the last one."""

    kind: Kind
    value: Json = None
    at: At = At.PROPOSE
    turn: int = 0
