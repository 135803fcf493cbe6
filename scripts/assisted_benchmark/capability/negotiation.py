"""Agreeing on a protocol version with a peer, as a pure function: the highest common one, or a refusal.

The floor is this side's own: whatever a peer offers, nothing below it is spoken, so that nobody in
between can talk both sides down.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, TypeAlias

from attrs import field, frozen

from assisted_benchmark.kernel.canonical import SAFE_INTEGER
from assisted_benchmark.kernel.names import name_fault
from assisted_benchmark.kernel.text import shown

MAX_FEATURES: Final = 64


@unique
class Outcome(StrEnum):
    """How a negotiation ends."""

    ACCEPTED = "accepted"
    INVALID_OFFER = "invalid_offer"
    NO_COMMON_VERSION = "no_common_version"
    DOWNGRADE_REJECTED = "downgrade_rejected"
    UNSUPPORTED_MANDATORY_FEATURE = "unsupported_mandatory_feature"


@frozen(kw_only=True)
class Offer:
    """What one side speaks: versions from `lowest` to `highest`, features it insists on, and others it knows."""

    lowest: int
    highest: int
    mandatory: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def fault(self) -> str:
        """What makes this no offer at all, or nothing."""
        if not 1 <= self.lowest <= self.highest <= SAFE_INTEGER:
            return "the versions are no range from 1 up"
        named = (*self.mandatory, *self.optional)
        if len(named) > MAX_FEATURES:
            return f"more than {MAX_FEATURES} features"
        if len(set(named)) != len(named):
            return "a feature stands twice"
        bad = next((name for name in named if name_fault(name) is not None), None)
        return "" if bad is None else f"`{shown(bad, 60)}` is no name of a feature"


@frozen
class Agreed:
    """The version that both sides now speak, and the features that both know, sorted."""

    version: int
    features: tuple[str, ...] = ()
    outcome: Outcome = field(default=Outcome.ACCEPTED, init=False)


@frozen
class NotAgreed:
    """Why nothing is spoken."""

    outcome: Outcome
    detail: str


Negotiated: TypeAlias = Agreed | NotAgreed


def negotiate(ours: Offer, theirs: Offer, floor: int) -> Negotiated:
    """The highest version that both speak, at or above `floor`, with every feature that either insists on."""
    for whose, offer in (("our", ours), ("the peer's", theirs)):
        if offer.fault:
            return NotAgreed(Outcome.INVALID_OFFER, f"{whose} offer: {offer.fault}")
    highest = min(ours.highest, theirs.highest)
    if highest < floor:
        return NotAgreed(Outcome.DOWNGRADE_REJECTED, f"version {highest} lies below the floor of {floor}")
    if highest < max(ours.lowest, theirs.lowest):
        return NotAgreed(Outcome.NO_COMMON_VERSION, "no version is spoken by both")
    known_to_us = {*ours.mandatory, *ours.optional}
    known_to_them = {*theirs.mandatory, *theirs.optional}
    for whose, wanted, known in (
        ("the peer does", ours.mandatory, known_to_them),
        ("we do", theirs.mandatory, known_to_us),
    ):
        missing = sorted(set(wanted) - known)
        if missing:
            detail = f"{whose} not know the mandatory feature `{missing[0]}`"
            return NotAgreed(Outcome.UNSUPPORTED_MANDATORY_FEATURE, detail)
    return Agreed(highest, tuple(sorted(known_to_us & known_to_them)))
