"""The brink of a send: what is cancelled before its first byte is not written, and whoever cancels knows it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, TypeAlias

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent

Key: TypeAlias = tuple[str, str]  # client and request id

_CLOSED: Final = NotSent(Reason.EXPIRED, "the gate closed before the request was written")
_STOPPED: Final = NotSent(Reason.CANCELLED, "it was cancelled before it was written")


class Brink:
    """The requests that are not written yet. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stopped: dict[Key, bool] = {}

    def enter(self, key: Key) -> None:
        """The request is about to be written."""
        with self._lock:
            self._stopped[key] = False

    def cross(self, key: Key, gate: Callable[[], bool]) -> NotSent | None:
        """Ask the gate; None if the first byte may be written now, from when on nothing stops it here any more."""
        if not gate():
            return _CLOSED
        with self._lock:
            return _STOPPED if self._stopped.pop(key, False) else None

    def stop(self, key: Key) -> bool:
        """Whether the request is kept from being written. If not, its host has to be told."""
        with self._lock:
            if key not in self._stopped:
                return False
            self._stopped[key] = True
            return True

    def leave(self, key: Key) -> None:
        """It is written, or never will be."""
        with self._lock:
            self._stopped.pop(key, None)
