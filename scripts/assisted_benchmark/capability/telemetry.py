"""Telemetry of an instance's value channels: bounded streams that lose the oldest and say how much.

A producer is never made to wait: what a slow reader has not fetched gives way to what is new, and is counted.
A stream belongs to one client under one grant, on one registration of one instance; to all others it does
not exist. Values of a sensitive channel are redacted before they are kept.

For the host: `offer` each sample; `subscribe`, `poll` and `unsubscribe` give the results of `telemetry/subscribe`
as the registry has them, or the reason why not. For the broker: `end` what a grant or a registration carried.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection
from threading import Lock
from typing import Final, NamedTuple

from attrs import define, field

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import SECOND, Clock
from assisted_benchmark.kernel.reasons import Reason

MAX_STREAMS: Final = 32
MAX_STREAMS_OF_CLIENT: Final = 4
MAX_VALUES: Final = 512
_ID_BYTES: Final = 16


class Owner(NamedTuple):
    """Whose stream it is."""

    client: str
    registration: str
    instance: str
    grant: str


class Sample(NamedTuple):
    """What a channel shows at one moment."""

    channel: str
    values: tuple[float, ...]
    shape: str = "scalar"


@define
class _Stream:
    owner: Owner
    channels: frozenset[str]
    every_ns: float
    buffer: deque[Json]
    due: dict[str, float] = field(factory=dict)
    sequence: int = 0
    dropped: int = 0


class Telemetry:
    """The streams of one host. Threads may share it; what is done under its lock is bounded."""

    def __init__(self, clock: Clock, chance: Chance, sensitive: Callable[[str], bool]) -> None:
        self._clock = clock
        self._chance = chance
        self._sensitive = sensitive
        self._lock = Lock()
        self._streams: dict[str, _Stream] = {}

    def subscribe(
        self, owner: Owner, channels: Collection[str], max_hz: float, buffer: int
    ) -> dict[str, Json] | Reason:
        """A new stream of these channels, of at most so many samples a second each; resource_exhausted if there are
        too many."""
        with self._lock:
            of_client = sum(each.owner.client == owner.client for each in self._streams.values())
            if len(self._streams) >= MAX_STREAMS or of_client >= MAX_STREAMS_OF_CLIENT:
                return Reason.RESOURCE_EXHAUSTED
            stream_id = self._chance.token(_ID_BYTES).hex()
            self._streams[stream_id] = _Stream(owner, frozenset(channels), SECOND / max_hz, deque(maxlen=buffer))
        return {"action": "subscribed", "stream_id": stream_id, "accepted_hz": max_hz}

    def offer(self, sample: Sample) -> None:
        """Take a sample in, for every stream that is due one of its channel. Never waits for a reader."""
        now = self._clock.now().mono_ns
        with self._lock:
            for stream in self._streams.values():
                if sample.channel in stream.channels and now >= stream.due.get(sample.channel, 0):
                    stream.due[sample.channel] = now + stream.every_ns
                    self._keep(stream, sample, now)

    def poll(self, owner: Owner, stream_id: str, *, available: bool = True) -> dict[str, Json] | Reason:
        """What the stream holds, which it then holds no more; `available` says whether its source is there."""
        with self._lock:
            stream = self._streams.get(stream_id)
            if stream is None or stream.owner != owner:
                return Reason.NOT_FOUND
            samples, dropped = list(stream.buffer), stream.dropped
            stream.buffer.clear()
            stream.dropped = 0
        told = {"action": "polled", "stream_id": stream_id, "available": available}
        return {**told, "dropped": dropped, "samples": samples}

    def unsubscribe(self, owner: Owner, stream_id: str) -> dict[str, Json] | Reason:
        """End a stream, for its owner only."""
        with self._lock:
            stream = self._streams.get(stream_id)
            if stream is None or stream.owner != owner:
                return Reason.NOT_FOUND
            del self._streams[stream_id]
        return {"action": "unsubscribed", "stream_id": stream_id}

    def end(self, *, grant: str = "", registration: str = "") -> int:
        """End all streams under a grant or a registration that is no more; how many there were."""
        with self._lock:
            kept = {
                name: each
                for name, each in self._streams.items()
                if each.owner.grant != grant and each.owner.registration != registration
            }
            ended = len(self._streams) - len(kept)
            self._streams = kept
            return ended

    def _keep(self, stream: _Stream, sample: Sample, now: int) -> None:
        stream.sequence += 1
        if len(sample.values) > MAX_VALUES:
            stream.dropped += 1
            return
        redacted = self._sensitive(sample.channel)
        kept: dict[str, Json] = {
            "sequence": stream.sequence,
            "channel": sample.channel,
            "sampled_at_ns": now,
            "redacted": redacted,
            "shape": sample.shape,
        }
        if not redacted:
            kept["values"] = [_written(each) for each in sample.values]
        # The oldest gives way; that is what a full deque does.
        stream.dropped += len(stream.buffer) == stream.buffer.maxlen
        stream.buffer.append(kept)


def _written(number: float) -> Json:
    """The number, or its name where JSON has none for it."""
    if math.isnan(number):
        return "NaN"
    return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"
