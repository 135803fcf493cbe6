"""Agreeing on a protocol version: the highest common one at or above the floor, or a refusal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.capability.negotiation import MAX_FEATURES, Agreed, NotAgreed, Offer, Outcome, negotiate


def an_offer(lowest: int, highest: int, mandatory: str = "", optional: str = "") -> Offer:
    return Offer(lowest=lowest, highest=highest, mandatory=tuple(mandatory.split()), optional=tuple(optional.split()))


@promise("C13")
@pytest.mark.parametrize(
    ("ours", "theirs", "floor", "version"),
    [
        ((1, 1), (1, 1), 1, 1),
        ((1, 3), (2, 5), 1, 3),
        ((2, 5), (1, 3), 1, 3),
        ((1, 3), (2, 5), 3, 3),
        ((1, 9), (1, 4), 4, 4),
        ((4, 4), (1, 9), 2, 4),
        ((1, 2**53 - 1), (1, 2**53 - 1), 1, 2**53 - 1),
    ],
)
def test_the_highest_common_version_is_spoken(ours, theirs, floor, version):
    assert negotiate(an_offer(*ours), an_offer(*theirs), floor) == Agreed(version)
    assert negotiate(an_offer(*ours), an_offer(*theirs), floor).outcome is Outcome.ACCEPTED


@promise("C13")
@pytest.mark.parametrize(
    ("ours", "theirs", "floor", "outcome"),
    [
        ((3, 5), (6, 9), 1, Outcome.NO_COMMON_VERSION),
        ((6, 9), (3, 5), 1, Outcome.NO_COMMON_VERSION),
        ((3, 5), (1, 2), 2, Outcome.NO_COMMON_VERSION),
        ((1, 5), (1, 2), 3, Outcome.DOWNGRADE_REJECTED),
        ((3, 5), (1, 2), 3, Outcome.DOWNGRADE_REJECTED),  # they speak only what we have left behind
        ((1, 2), (1, 5), 3, Outcome.DOWNGRADE_REJECTED),
        ((0, 1), (1, 1), 1, Outcome.INVALID_OFFER),
        ((1, 1), (2, 1), 1, Outcome.INVALID_OFFER),
        ((1, 1), (1, 2**53), 1, Outcome.INVALID_OFFER),
    ],
)
def test_without_a_common_version_at_or_above_the_floor_nothing_is_spoken(ours, theirs, floor, outcome):
    found = negotiate(an_offer(*ours), an_offer(*theirs), floor)
    assert isinstance(found, NotAgreed)
    assert (found.outcome, bool(found.detail)) == (outcome, True)


@promise("C13")
def test_features_that_both_know_are_agreed_on():
    ours = an_offer(1, 1, mandatory="receipts", optional="progress cancel")
    theirs = an_offer(1, 1, mandatory="progress", optional="telemetry receipts")
    assert negotiate(ours, theirs, 1) == Agreed(1, ("progress", "receipts"))


@promise("C13")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (an_offer(1, 1, mandatory="receipts"), an_offer(1, 1, optional="progress")),
        (an_offer(1, 1, optional="progress"), an_offer(1, 1, mandatory="receipts")),
    ],
)
def test_a_feature_that_one_insists_on_and_the_other_does_not_know_ends_it(ours, theirs):
    assert negotiate(ours, theirs, 1).outcome is Outcome.UNSUPPORTED_MANDATORY_FEATURE


@promise("C13")
@pytest.mark.parametrize(
    "bad",
    [
        an_offer(1, 1, mandatory="a a"),
        an_offer(1, 1, mandatory="a", optional="a"),
        an_offer(1, 1, optional="a b,c"),
        Offer(lowest=1, highest=1, optional=("",)),
        Offer(lowest=1, highest=1, optional=tuple(f"f{n}" for n in range(MAX_FEATURES + 1))),
        Offer(lowest=1, highest=1, mandatory=("\u202ea",)),
    ],
    ids=str,
)
def test_an_offer_that_is_none_is_told_so_whoever_makes_it(bad):
    fine = an_offer(1, 1)
    assert negotiate(bad, fine, 1).outcome is Outcome.INVALID_OFFER
    assert negotiate(fine, bad, 1).outcome is Outcome.INVALID_OFFER
    assert negotiate(
        fine, Offer(lowest=1, highest=1, optional=tuple(f"f{n}" for n in range(MAX_FEATURES))), 1
    ) == Agreed(1)


def test_an_offer_has_at_most_64_features():
    assert MAX_FEATURES == 64


def test_there_are_five_outcomes():
    assert {each.value for each in Outcome} == {
        "accepted",
        "invalid_offer",
        "no_common_version",
        "downgrade_rejected",
        "unsupported_mandatory_feature",
    }


VERSIONS = st.integers(0, 6)
FEATURES = st.lists(st.sampled_from("abc"), max_size=3).map(tuple)
OFFERS = st.builds(Offer, lowest=VERSIONS, highest=VERSIONS, mandatory=FEATURES, optional=FEATURES)


@promise("C13")
@given(ours=OFFERS, theirs=OFFERS, floor=VERSIONS)
def test_what_is_agreed_on_both_speak_and_no_higher_one_is_left(ours, theirs, floor):
    found = negotiate(ours, theirs, floor)
    both = [v for v in range(1, 7) if ours.lowest <= v <= ours.highest and theirs.lowest <= v <= theirs.highest]
    fitting = [version for version in both if version >= floor]
    if isinstance(found, Agreed):
        assert found.version == max(fitting)
        assert {*ours.mandatory, *theirs.mandatory} <= set(found.features)
    elif found.outcome in (Outcome.NO_COMMON_VERSION, Outcome.DOWNGRADE_REJECTED):
        assert not fitting
    mirrored = negotiate(theirs, ours, floor)
    assert found.outcome is mirrored.outcome
