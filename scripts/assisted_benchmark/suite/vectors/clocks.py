"""Time and chance as a vector has them."""

from __future__ import annotations

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Clock, Instant


class StandingClock:
    """Clocks that stand where a vector says."""

    def __init__(self, value: Json) -> None:
        self.stand(value)

    def stand(self, value: Json) -> None:
        """From now on it is then."""
        self._now = Instant(int(value["wall_ns"]), int(value["mono_ns"]))
        self._boot: str = value["boot"]

    @property
    def boot_id(self) -> str:
        return self._boot

    def now(self) -> Instant:
        return self._now


class NoChance:
    """Nothing of a decision depends on chance."""

    def token(self, size: int) -> bytes:
        return bytes(size)


def instant_value(at: Instant, boot: str) -> Json:
    """A reading of both clocks, as a vector has it: nanoseconds in text, as they exceed 2^53."""
    return {"wall_ns": str(at.wall_ns), "mono_ns": str(at.mono_ns), "boot": boot}


def clock_value(clock: Clock) -> Json:
    """The same of a clock as it is now."""
    return instant_value(clock.now(), clock.boot_id)
