"""Clocks are handed in; a deadline is one monotonic budget that only shrinks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from marks import promise

from assisted_benchmark.kernel import clock
from assisted_benchmark.kernel.clock import SECOND, Deadline, Instant, ManualClock, SystemClock


@promise("K9")
def test_the_system_clock_reads_wall_and_suspend_aware_monotonic_time():
    suspend_aware = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    wall, mono = time.time_ns(), time.clock_gettime_ns(suspend_aware)
    now = SystemClock().now()
    assert wall <= now.wall_ns <= time.time_ns()
    assert mono <= now.mono_ns <= time.clock_gettime_ns(suspend_aware)


@promise("K9")
def test_the_boot_has_one_name_for_every_clock():
    assert SystemClock().boot_id == SystemClock().boot_id != ""


@promise("K9")
def test_without_the_kernels_boot_id_the_boots_own_minute_names_it(monkeypatch):
    monkeypatch.setattr(clock, "Path", lambda name: Path("/nonexistent") / name.lstrip("/"))
    monkeypatch.setattr(clock.time, "time_ns", lambda: 1_000_000 * SECOND)
    monkeypatch.setattr(clock.time, "clock_gettime_ns", lambda which: 40 * SECOND)
    assert SystemClock().boot_id == "boot-minute-16666"


@promise("K9")
def test_a_manual_clock_moves_only_when_told():
    hand = ManualClock(wall_ns=100, mono_ns=10)
    assert (hand.now(), hand.now(), hand.boot_id) == (Instant(100, 10), Instant(100, 10), "boot-1")
    hand.advance(5)
    assert hand.now() == Instant(105, 15)
    hand.set_wall(50)
    assert hand.now() == Instant(50, 15)
    hand.reboot("boot-2")
    assert (hand.now(), hand.boot_id) == (Instant(50, SECOND), "boot-2")


@promise("K9")
def test_a_deadline_has_passed_from_its_very_instant_on():
    hand = ManualClock(mono_ns=0)
    deadline = Deadline.after(hand, 10)
    hand.advance(9)
    assert (deadline.remaining_ns(), deadline.passed) == (1, False)
    hand.advance(1)
    assert (deadline.remaining_ns(), deadline.passed) == (0, True)
    hand.advance(1)
    assert (deadline.remaining_ns(), deadline.passed) == (0, True)


@promise("K9")
def test_a_deadline_does_not_see_the_wall_clock():
    hand = ManualClock(mono_ns=0)
    deadline = Deadline.after(hand, 10)
    hand.set_wall(0)
    assert deadline.remaining_ns() == 10
    hand.set_wall(2**62)
    assert deadline.remaining_ns() == 10


@promise("K9")
@pytest.mark.parametrize(("asked", "given"), [(3, 3), (10, 10), (11, 10), (2**62, 10), (0, 0)])
def test_a_child_never_gets_more_than_what_remains(asked, given):
    hand = ManualClock(mono_ns=0)
    parent = Deadline.after(hand, 25)
    hand.advance(15)
    assert parent.child(asked).remaining_ns() == given


@promise("K9")
def test_a_childs_budget_goes_on_running_with_its_parents():
    hand = ManualClock(mono_ns=0)
    child = Deadline.after(hand, 20).child(10)
    hand.advance(4)
    assert child.child(100).remaining_ns() == 6
    hand.advance(6)
    assert (child.passed, child.child(100).passed) == (True, True)
