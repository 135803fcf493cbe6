"""Progress: events that keep their rules are told and kept, and the first that does not ends the reporting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise
from registry_bench import PULP_TOOLS

from assisted_benchmark.capability.progress import Event, Progress
from assisted_benchmark.capability.registry import Bounds
from assisted_benchmark.kernel.canonical import SAFE_INTEGER


def an_event(sequence, current, total, **more):
    return {"sequence": sequence, "current": current, "total": total, **more}


def progress_of(*events, bounds=None):
    progress = Progress(bounds or Bounds())
    return progress, [progress.take(each) for each in events]


@promise("C27")
def test_events_that_rise_are_told_and_kept():
    events = [an_event(1, 0, 10), an_event(2, 0, 10, message="half"), an_event(9, 10, 10)]
    progress, told = progress_of(*events)
    assert told == [Event(1, 0, 10), Event(2, 0, 10, "half"), Event(9, 10, 10)]
    assert progress.events == tuple(events)
    assert progress.fault == ""


@promise("C27")
def test_numbers_and_messages_may_be_as_large_as_they_are_allowed():
    events = [an_event(1, 0, SAFE_INTEGER, message="x" * 1024), an_event(SAFE_INTEGER, SAFE_INTEGER, SAFE_INTEGER)]
    progress, _ = progress_of(*events)
    assert progress.events == tuple(events)


@promise("C27")
@pytest.mark.parametrize(
    "bad",
    [
        an_event(2, 1, 10),
        an_event(1, 5, 10),
        an_event(3, 1, 10),
        an_event(3, 11, 10),
        an_event(3, 5, 11),
        an_event(3, 5, 9),
        an_event(3.0, 5, 10),
        an_event(3, True, 10),
        an_event(3, "5", 10),
        an_event(3, 5, None),
        an_event(2**53, 5, 10),
        an_event(-1, 5, 10),
        an_event(3, 5, 10, more=1),
        an_event(3, 5, 10, message=7),
        an_event(3, 5, 10, message="x" * 1025),
        {"sequence": 3, "current": 5},
        ["sequence", "current", "total"],
        "done",
        None,
    ],
    ids=str,
)
def test_a_bad_event_ends_the_reporting_and_what_was_told_stays(bad):
    good = [an_event(1, 0, 10), an_event(2, 2, 10)]
    progress, told = progress_of(*good, bad, an_event(4, 6, 10))
    assert told == [Event(1, 0, 10), Event(2, 2, 10), None, None]
    assert progress.events == tuple(good)
    assert progress.fault


@promise("C27")
@pytest.mark.parametrize("first", [an_event(2, 0, 1), an_event(0, 0, 1), an_event(1, 0, 0), an_event(1, 2, 1)], ids=str)
def test_the_first_event_has_the_number_1_and_a_total(first):
    progress, told = progress_of(first)
    assert (told, progress.events) == ([None], ())


@promise("C27")
def test_the_number_of_events_is_bounded():
    progress, told = progress_of(*(an_event(n, n, 9) for n in range(1, 5)), bounds=Bounds(progress_events=3))
    assert [each is None for each in told] == [False, False, False, True]
    assert len(progress.events) == 3


@promise("C27")
@given(st.lists(st.builds(an_event, st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), max_size=6))
def test_whatever_comes_what_is_believed_fits_the_result(events):
    progress, _ = progress_of(*events)
    kept = progress.events
    assert list(kept) == events[: len(kept)]
    numbers = [each["sequence"] for each in kept]
    assert numbers == sorted(set(numbers))
    assert numbers[:1] in ([], [1])
    assert [each["current"] for each in kept] == sorted(each["current"] for each in kept)
    assert len({each["total"] for each in kept}) <= 1
    checker = PULP_TOOLS.tool("pulp_control_logs_read").answers
    failure = {"ok": False, "error": {"code": "failed", "message": "", "data": {"progress": list(kept)}}}
    assert checker.faults(failure) == ()
