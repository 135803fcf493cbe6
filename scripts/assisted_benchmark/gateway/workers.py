"""A bounded set of threads for calls. No futures: nobody waits for what a call comes to but who made it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue


class Workers:
    """At most so many threads, each started when there is something for it, that take in order what is submitted."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._undone = 0

    def submit(self, act: Callable[[], None]) -> None:
        """Have it done by the next thread that is free. It keeps its errors to itself."""
        with self._lock:
            self._undone += 1
            if len(self._threads) < min(self._undone, self._most):
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                thread.start()
                self._threads.append(thread)
        self._queue.put(act)

    def shutdown(self) -> None:
        """Wait until everything is done; nothing may be submitted any more. Again, it waits on after an interrupt."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (act := self._queue.get()) is not None:
            with suppress(BaseException):  # the thread is for the next one too
                act()
            with self._lock:
                self._undone -= 1
