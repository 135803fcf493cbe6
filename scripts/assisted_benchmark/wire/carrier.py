"""What a client session needs of the way to its server: the pipes of a process, or requests over HTTP."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.frames import Bad


class Carrier(Protocol):
    """Messages from a server, frames to it, and a bell that other threads can ring. One thread uses the rest.

    `eof`: no message will come any more. `broken`: nothing can be written any more. `half`: the last message has no
    end. `more`: what came last may not be all that is there. `mid_frame` is set by whoever writes a frame in pieces.
    """

    lines: deque[bytes | Bad]
    tail: bytes
    eof: bool
    half: bool
    broken: bool
    more: bool
    mid_frame: bool

    @property
    def clear(self) -> bool:
        """Whether a new frame may begin."""

    @property
    def reason(self) -> Reason:
        """Why the server can no longer be asked, where that is so."""

    def framed(self, frame: bytes) -> bytes:
        """What has to be written for this frame."""

    def wait(self, deadline: Deadline, *, writing: bool = False) -> bool:
        """Sleep until something happens and take it in; False if nothing did before the deadline."""

    def drain(self) -> bool:
        """Take in what has arrived, without waiting for more; False if nothing has."""

    def ring(self) -> None:
        """Wake a thread that waits; from any thread."""

    def write(self, data: memoryview) -> int:
        """Write what is taken now of a frame that was `framed`, and say how much that was."""

    def post(self, frame: bytes) -> bool:
        """Write a frame that nobody waits for; False if that is not possible."""

    def lost(self, request_id: int) -> str:
        """Why this request gets no answer any more, or nothing."""

    def agreed(self, version: str) -> None:
        """The version that the handshake came to."""

    def settle(self) -> None:
        """No request is awaited any more."""

    def hang_up(self) -> None:
        """Write nothing any more."""

    def finish(self, deadline: Deadline) -> bool:
        """Take leave of the server, and wait until it has ended; False if it does not in time."""

    def close(self) -> None:
        """Let go of every descriptor. Idempotent."""
