"""Whole lines onto one descriptor, from any thread."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Final

from assisted_benchmark.kernel.clock import Clock, Deadline

_MILLISECOND: Final = 1_000_000


class LinesOut:
    """Writes one line after the other. A peer that does not read costs a bounded time, and that only once.

    `on_broken` is called when nothing can be written any more, from the thread that found out.
    """

    def __init__(self, fd: int, clock: Clock, patience_ns: int, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._clock = clock
        self._patience_ns = patience_ns
        self._on_broken = on_broken
        self._lock = threading.Lock()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self.broken = False

    def send(self, line: bytes) -> bool:
        """Write one line, whole; False if the peer is gone or does not read."""
        with self._lock:
            if self.broken:
                return False
            whole = False
            try:
                whole = self._write(memoryview(line))
            finally:
                if not whole:
                    # INVARIANT: after a line that was cut off nothing follows, which would be read as its rest.
                    self.broken = True
                    self._on_broken()
            return whole

    def answer(self, line: bytes | None, _code: int = 0) -> None:
        """An answer is a line like any other."""
        if line:
            self.send(line)

    def _write(self, view: memoryview) -> bool:
        deadline = Deadline.after(self._clock, self._patience_ns)
        while view:
            if not self._poll.poll(-(-deadline.remaining_ns() // _MILLISECOND)):
                return False
            try:
                # No more than this never blocks once the pipe has room.
                view = view[os.write(self._fd, view[: select.PIPE_BUF]) :]
            except OSError:
                return False
        return True
