"""The progress of one operation, as its host reports it: held to its rules, told on, and kept for the result.

The first event has the sequence number 1; from then on numbers rise, `current` never falls and never passes `total`,
and `total` stays what it was. One event that breaks a rule ends the reporting: nothing after it is believed.

For the broker: one `Progress` an operation; each raw observation of `Host.request` goes into `take`, and what
comes back is told to a caller with a progress token. `events` go into the result, whoever listened.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from assisted_benchmark.capability.registry import Bounds
from assisted_benchmark.kernel.canonical import SAFE_INTEGER, Json

_REQUIRED: Final = {"sequence", "current", "total"}
_KNOWN: Final = {*_REQUIRED, "message"}


class Event(NamedTuple):
    """One event that keeps the rules."""

    sequence: int
    current: int
    total: int
    message: str = ""

    def value(self) -> dict[str, Json]:
        """As the result carries it."""
        told: dict[str, Json] = {"sequence": self.sequence, "current": self.current, "total": self.total}
        return {**told, "message": self.message} if self.message else told


class Progress:
    """What one operation has reported so far. `fault` says why nothing more is believed, or is empty."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._events: list[Event] = []
        self.fault = ""

    @property
    def events(self) -> tuple[Json, ...]:
        """The events that were believed, as JSON values."""
        return tuple(event.value() for event in self._events)

    def take(self, raw: Json) -> Event | None:
        """The event, if it is one that follows; None, and `fault` says why, from the first that does not on."""
        if self.fault:
            return None
        self.fault = self._wrong(raw)
        if self.fault:
            return None
        event = Event(**raw)
        self._events.append(event)
        return event

    def _wrong(self, raw: Json) -> str:
        if type(raw) is not dict or not _REQUIRED <= raw.keys() <= _KNOWN:
            return "an event is no object with sequence, current and total"
        numbers = (raw["sequence"], raw["current"], raw["total"])
        if not all(type(each) is int and 0 <= each <= SAFE_INTEGER for each in numbers):
            return "a number of an event is no integer from 0 up"
        message = raw.get("message", "")
        if type(message) is not str or len(message) > self._bounds.explanation_length:
            return f"a message is no text of at most {self._bounds.explanation_length} characters"
        if len(self._events) == self._bounds.progress_events:
            return f"more than {self._bounds.progress_events} events"
        sequence, current, total = numbers
        if current > total or total == 0:
            return f"current {current} of a total of {total}"
        if not self._events:
            return "" if sequence == 1 else f"the first event has the number {sequence}"
        last = self._events[-1]
        if sequence <= last.sequence:
            return f"event {sequence} after event {last.sequence}"
        if current < last.current:
            return f"current fell from {last.current} to {current}"
        return "" if total == last.total else f"total went from {last.total} to {total}"
