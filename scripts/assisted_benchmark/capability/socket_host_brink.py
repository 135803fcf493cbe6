"""The brink of a send: a request that is cancelled before its first byte is not written, and whoever cancels knows."""

from __future__ import annotations

from threading import Lock

Key = tuple[str, str]  # client and request id


class Brink:
    """The requests that are not written yet. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stopped: dict[Key, bool] = {}

    def enter(self, key: Key) -> None:
        """The request is about to be written."""
        with self._lock:
            self._stopped[key] = False

    def stop(self, key: Key) -> bool:
        """Whether the request is kept from being written. If not, its host has to be told."""
        with self._lock:
            if key not in self._stopped:
                return False
            self._stopped[key] = True
            return True

    def leave(self, key: Key) -> bool:
        """It is written now, unless it was stopped: whether it may be. Only the first to leave is told so."""
        with self._lock:
            return self._stopped.pop(key, True) is False
