"""The points at which an experiment can strike: a fault, a crash, another caller that comes in between."""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class Moment(StrEnum):
    """Where a change's way can be interrupted, in the order of the way."""

    DRY_RUN = "dry_run"  # the spec is sound; the dry run is about to be sent
    PRICE = "price"  # the dry run passed; the price is about to be asked
    SEAL = "seal"  # the proposal is about to be taken into the store
    CONSUME = "consume"  # the token is about to be consumed
    CONSUMED = "consumed"  # the token is consumed for good
    ASK = "ask"  # the question is about to be handed out
    ANSWERED = "answered"  # a person agreed, or nobody had to; nothing is sent
    CLAIM = "claim"  # the marker is about to be written
    CLAIMED = "claimed"  # the marker is durable, nothing is written to the endpoint
    WRITE = "write"  # the last check said yes, the create is about to be written
    ANSWER = "answer"  # the endpoint's answer, or its absence, is known
    SETTLE = "settle"  # the outcome is about to be recorded
