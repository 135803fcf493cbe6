"""What all the conversations of one gateway share: what is served, the threads that serve it, and what was odd.

Over standard input and output there is one conversation; over HTTP there are as many as agents begin.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.workers import Workers
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.frames import Bad
from assisted_benchmark.wire.outcomes import Odd, Oddity


def unrecorded(_reason: Reason, _detail: str) -> None:
    """Nobody keeps receipts."""


def unnoticed() -> None:
    """Nothing has to be ended."""


class Hearer(Protocol):
    """Who may want to hear that there are other tools now."""

    def tools_changed(self) -> None:
        """Tell the client, if it can be told."""


class Service:
    """Calls run on a bounded set of threads, so that who reads never waits for a tool.

    `on_malformed` hears of each message that was none, and of each call that became none: the broker's receipt of it.
    `lock` guards what conversations count: `in_flight`, and who is one of the `hearers`.
    """

    def __init__(
        self, face: Face, clock: Clock, limits: Limits, on_malformed: Callable[[Reason, str], object] = unrecorded
    ) -> None:
        self.face = face
        self.clock = clock
        self.limits = limits
        self.calls = Workers(limits.calls, "call")
        self.urgent = Workers(limits.urgent, "urgent")
        self._apart = Workers(limits.urgent, "apart")
        self.lock = threading.Lock()
        self.in_flight = 0
        self.hearers: set[Hearer] = set()
        self._on_malformed = on_malformed
        self._shown = self._names()
        self._oddities: list[Oddity] = []

    @property
    def oddities(self) -> tuple[Oddity, ...]:
        """What agents did that fits nothing, and tools that broke; in order, bounded."""
        return tuple(self._oddities)

    def record(self, kind: Odd, detail: str, reason: Reason | None = None) -> None:
        """Note what was odd."""
        with self.lock:
            if len(self._oddities) < self.limits.oddities:
                self._oddities.append(Oddity(kind, detail, reason))

    def malformed(self, frame: Bad) -> None:
        """A message was none."""
        self.record(Odd.BAD_LINE, frame.detail, frame.reason)
        self.unmade(frame.reason, frame.detail)

    def unmade(self, reason: Reason, detail: str) -> None:
        """What an agent sent became no call, and leaves its receipt all the same."""
        try:
            self._on_malformed(reason, detail)
        except HarnessError as broken:  # the session goes on, and tells at its end that a receipt is missing
            self.record(Odd.CALLBACK_FAILED, broken.detail, broken.reason)

    def apart(self, act: Callable[[], None]) -> None:
        """Do something that may wait, for which the thread that reads has no time."""

        def acting() -> None:
            try:
                act()
            except Exception as broken:  # noqa: BLE001 - nobody waits for it: at the end it is told that it failed
                reason = broken.reason if isinstance(broken, HarnessError) else None
                self.record(Odd.CALLBACK_FAILED, f"a cancellation failed: {type(broken).__name__}", reason)

        self._apart.submit(acting)

    def after_call(self) -> None:
        """Tell whoever can be told that there are other tools now, if there are."""
        if not self.face.list_changed:
            return
        shown = self._names()
        with self.lock:
            same, self._shown = shown == self._shown, shown
            hearers = tuple(self.hearers)
        if not same:
            for each in hearers:
                each.tools_changed()

    def shutdown(self) -> None:
        """Wait until nothing runs any more."""
        self.calls.shutdown()
        self.urgent.shutdown()
        self._apart.shutdown()  # the last, for what still runs can be cancelled until then

    def _names(self) -> list[str]:
        return [tool["name"] for tool in self.face.tools()] if self.face.list_changed else []
