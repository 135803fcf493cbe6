"""The pipes of one server process, without threads: whoever waits also reads, writes and drains.

Nothing here blocks beyond the time that it is given. Standard error is read whenever
standard output is, so that a talkative server never stalls; only its tail is kept. A frame
that cannot be written at once waits in a bounded outbox and never lands inside another one.
"""

from __future__ import annotations

import os
import select
from collections import deque
from typing import Final

from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.bell import Bell
from assisted_benchmark.wire.frames import Bad, Splitter

_CHUNK: Final = 1 << 16
_MILLISECOND: Final = 1_000_000
_LONGEST: Final = 2**31 - 1  # milliseconds that poll(2) can count


class Channel:
    """Lines from a server, frames to it, its standard error, and a bell that other threads can ring.

    Owns the descriptors. `eof`: no line will come any more. `broken`: nothing can be written
    any more. `mid_frame` is set by whoever writes a frame in pieces, and holds the outbox back.
    """

    def __init__(
        self, read_fd: int, write_fd: int, stderr_fd: int | None, *, max_line: int, max_tail: int, max_outbox: int
    ) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._stderr_fd = -1 if stderr_fd is None else stderr_fd
        self._bell = Bell()
        self._max_tail = max_tail
        self._max_outbox = max_outbox
        self._splitter = Splitter(max_line)
        self._outbox = bytearray()
        self._poll = select.poll()
        self._reading: set[int] = set()
        self._poll.register(self._bell.fd, select.POLLIN)
        for fd in (read_fd, self._stderr_fd):
            if fd >= 0:
                os.set_blocking(fd, False)
                self._poll.register(fd, select.POLLIN)
                self._reading.add(fd)
        os.set_blocking(write_fd, False)
        self._watching_write = False
        self.lines: deque[bytes | Bad] = deque()
        self.tail = b""
        self.eof = False
        self.half = False
        self.broken = False
        self.more = False
        self.mid_frame = False

    @property
    def reason(self) -> Reason:
        """Why the server can no longer be asked, where that is so."""
        return Reason.SERVER_UNAVAILABLE

    def wait(self, deadline: Deadline, *, writing: bool = False) -> bool:
        """Sleep until something happens and take it in; False if nothing did before the deadline.

        With `writing`, room for a write counts as something.
        """
        remaining = deadline.remaining_ns()
        if remaining == 0:
            return False
        wanted = writing or (bool(self._outbox) and not self.mid_frame)
        if wanted is not self._watching_write:
            self._watch_write(wanted)
        return self._take_in(min(-(-remaining // _MILLISECOND), _LONGEST))

    def drain(self) -> bool:
        """Take in what has arrived, without waiting for more; False if nothing has."""
        self.more = False
        return self._take_in(0)

    def ring(self) -> None:
        """Wake a thread that waits; from any thread."""
        self._bell.ring()

    @property
    def clear(self) -> bool:
        """Whether a new frame may begin: nothing of another one is left to write."""
        return not self._outbox

    def framed(self, frame: bytes) -> bytes:
        """A frame is written as it is."""
        return frame

    def lost(self, request_id: int) -> str:  # noqa: ARG002 - all of them, or none
        """Why this request gets no answer any more, or nothing."""
        return "the server ended before it answered" if self.eof else ""

    def agreed(self, version: str) -> None:
        """Pipes are the same in every version."""

    def settle(self) -> None:
        """Nothing is kept for a request."""

    def write(self, data: memoryview) -> int:
        """Write what the pipe takes now and say how much that was."""
        try:
            return os.write(self._write_fd, data)
        except BlockingIOError:
            return 0
        except OSError:
            self.hang_up()
            return 0

    def post(self, frame: bytes) -> bool:
        """Write a frame as soon as the pipe takes it; False if it cannot be kept that long."""
        if self.broken or len(self._outbox) + len(frame) > self._max_outbox:
            return False
        self._outbox += frame
        self._flush()
        return not self.broken

    def hang_up(self) -> None:
        """Close our side: the server reads its end of input."""
        if not self.broken:
            self.broken = True
            self._outbox.clear()
            if self._watching_write:
                self._watch_write(wanted=False)
            os.close(self._write_fd)
            self._write_fd = -1  # the number may soon be somebody else's

    def finish(self, deadline: Deadline) -> bool:
        """Close our side and drain the server's until it ends; False if it does not in time."""
        self.hang_up()
        while self._reading:
            if not self.wait(deadline):
                return False
            self.lines.clear()
        return True

    def close(self) -> None:
        """Let go of every descriptor. Idempotent."""
        self.hang_up()
        self.eof = True
        for fd in (self._read_fd, self._stderr_fd):
            self._stop_reading(fd)
        if self._bell.fd >= 0:
            self._poll.unregister(self._bell.fd)
            self._bell.close()

    # -- inside

    def _watch_write(self, wanted: bool) -> None:
        if wanted and not self.broken:
            self._poll.register(self._write_fd, select.POLLOUT)
            self._watching_write = True
        elif self._watching_write:
            self._poll.unregister(self._write_fd)
            self._watching_write = False

    def _take_in(self, milliseconds: int) -> bool:
        events = self._poll.poll(milliseconds)
        for fd, _ in events:
            if fd == self._read_fd:
                self._read_lines()
            elif fd == self._write_fd:
                self._flush()
            elif fd == self._stderr_fd:
                self._read_stderr()
            else:
                self._bell.silence()
        return bool(events)

    def _read(self, fd: int) -> bytes | None:
        """What is there now; None if nothing is, and empty at the end, which is for good."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            chunk = b""
        if not chunk:
            self._stop_reading(fd)
        return chunk

    def _read_lines(self) -> None:
        chunk = self._read(self._read_fd)
        if chunk is None:
            return
        self.more = len(chunk) == _CHUNK
        if chunk:
            self.lines.extend(self._splitter.feed(chunk))
        else:
            self.eof = True
            self.half = self._splitter.half

    def _read_stderr(self) -> None:
        chunk = self._read(self._stderr_fd)
        if chunk:
            self.tail = (self.tail + chunk)[-self._max_tail :]

    def _stop_reading(self, fd: int) -> None:
        if fd in self._reading:
            self._reading.discard(fd)
            self._poll.unregister(fd)
            os.close(fd)

    def _flush(self) -> None:
        if self._outbox and not self.mid_frame:
            written = self.write(memoryview(bytes(self._outbox)))
            del self._outbox[:written]
