"""Time is handed in: an instant has a wall and a monotonic reading, a deadline only shrinks.

Units are integer nanoseconds throughout. The monotonic clock counts suspension
(CLOCK_BOOTTIME on Linux), so a sleeping machine does not stretch a grant.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple, Protocol

SECOND = 1_000_000_000


class Instant(NamedTuple):
    """One reading of both clocks, in nanoseconds."""

    wall_ns: int
    mono_ns: int


class Clock(Protocol):
    """What brokers, routers and ledgers know of time."""

    @property
    def boot_id(self) -> str:
        """A name of this boot; readings of other boots cannot be compared."""

    def now(self) -> Instant:
        """Both clocks, read together."""


_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self._boot_id = _read_boot_id()

    @property
    def boot_id(self) -> str:
        return self._boot_id

    def now(self) -> Instant:
        # Read many times in each decision; made by its name, an instant costs as much as both readings.
        return tuple.__new__(Instant, (time.time_ns(), time.clock_gettime_ns(_BOOT)))


def _read_boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        # No such file off Linux: the boot's own start second is as good a name.
        started = (time.time_ns() - time.clock_gettime_ns(_BOOT)) // (60 * SECOND)
        return f"boot-minute-{started}"


class ManualClock:
    """A clock that stands still until it is told: for scenarios and tests."""

    def __init__(self, wall_ns: int = 1_900_000_000 * SECOND, mono_ns: int = SECOND, boot_id: str = "boot-1") -> None:
        self._now = Instant(wall_ns, mono_ns)
        self._boot_id = boot_id

    @property
    def boot_id(self) -> str:
        return self._boot_id

    def now(self) -> Instant:
        return self._now

    def advance(self, ns: int) -> None:
        """Both clocks go on by `ns` nanoseconds (>= 0)."""
        self._now = Instant(self._now.wall_ns + ns, self._now.mono_ns + ns)

    def set_wall(self, wall_ns: int) -> None:
        """Only the wall clock jumps, as when an operator sets it."""
        self._now = Instant(wall_ns, self._now.mono_ns)

    def reboot(self, boot_id: str) -> None:
        """Another boot: the monotonic clock starts again."""
        self._boot_id = boot_id
        self._now = Instant(self._now.wall_ns, SECOND)


class Deadline:
    """One monotonic budget that is handed down; a child never gets more than what remains."""

    __slots__ = ("_at_ns", "_clock")

    def __init__(self, clock: Clock, at_ns: int) -> None:
        self._clock = clock
        self._at_ns = at_ns

    @classmethod
    def after(cls, clock: Clock, ns: int) -> Deadline:
        """A budget of `ns` nanoseconds from now."""
        return cls(clock, clock.now().mono_ns + ns)

    def child(self, ns: int) -> Deadline:
        """At most `ns` nanoseconds, and never more than what remains."""
        return Deadline(self._clock, min(self._at_ns, self._clock.now().mono_ns + ns))

    def anew(self, ns: int) -> Deadline:
        """Another budget by the same clock, of `ns` nanoseconds from now."""
        return Deadline(self._clock, self._clock.now().mono_ns + ns)

    def remaining_ns(self) -> int:
        """What is left, never negative."""
        left = self._at_ns - self._clock.now().mono_ns
        return left if left > 0 else 0

    @property
    def passed(self) -> bool:
        """True from the very instant on."""
        return self._clock.now().mono_ns >= self._at_ns
