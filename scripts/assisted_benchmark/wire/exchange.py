"""One request at a time over a channel: written whole or known to be cut, then waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Clock, Deadline, Instant
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.wire.carrier import Carrier
from assisted_benchmark.wire.frames import Bad, Response, write_request
from assisted_benchmark.wire.inbox import Inbox

_ENDED: Final = "the server ended before it answered"


class Exchange:
    """Asks, and waits. `envelope` is what every request's `_meta` holds (nothing in the handshake era).

    `cancelled` is the last call that was cancelled, by its id, and why. Other threads set it.
    """

    def __init__(self, channel: Carrier, inbox: Inbox, clock: Clock) -> None:
        self.channel = channel
        self.inbox = inbox
        self.envelope: dict[str, Json] = {}
        self.cancelled: tuple[int, str] = (0, "")
        self._clock = clock

    @property
    def closed(self) -> bool:
        """Whether the server can no longer be asked."""
        return self.channel.eof or self.channel.broken

    def ask(self, method: str, params: dict[str, Json], deadline: Deadline) -> Response:
        """Send a request that changes nothing, and wait for its answer.

        Raises:
            ServerError: deadline_exceeded, server_unavailable or malformed_frame.
        """
        request_id = self.inbox.new_id()
        if self.envelope:
            params = {**params, "_meta": self.envelope}
        self.inbox.expect(request_id)
        try:
            sent = self.transmit(request_id, write_request(request_id, method, params), deadline, always)
            while not self.inbox.answers:
                lost = self.channel.lost(request_id) or (_ENDED if self.closed else "")
                if lost:
                    raise ServerError(self.channel.reason, f"{lost} {method}")
                if not isinstance(sent, Instant) or not self.wait(deadline):
                    raise ServerError(Reason.DEADLINE_EXCEEDED, f"no answer to {method} came in time")
            answer = self.inbox.answers[0]
        finally:
            self.inbox.settle()
        if isinstance(answer, Bad):
            raise ServerError(Reason.MALFORMED_FRAME, f"the answer to {method} is no message: {answer.detail}")
        return answer

    def transmit(
        self, request_id: int, frame: bytes, deadline: Deadline, gate: Callable[[], bool]
    ) -> Instant | NotSent | Uncertain:
        """Write a frame, whole; the instant of its first byte, or how it went wrong.

        Until that byte the request can be cancelled, and `gate` is asked right before it.
        """
        channel = self.channel
        view = memoryview(channel.framed(frame))
        wrote: Instant | None = None
        try:
            while not self.closed:
                if wrote is not None or channel.clear:
                    if wrote is None and self.cancelled[0] == request_id:
                        return NotSent(Reason.CANCELLED, "the call was cancelled before it was sent")
                    if wrote is None and not gate():
                        return NotSent(Reason.EXPIRED, "the gate closed before the call was sent")
                    written = channel.write(view)
                    if written:
                        # INVARIANT: from the first byte on there is no way back to NotSent.
                        wrote = wrote or self._clock.now()
                        view = view[written:]
                        channel.mid_frame = len(view) > 0
                        if not view:
                            return wrote
                        continue
                if not self.wait(deadline, writing=True):
                    break
        finally:
            if channel.mid_frame:
                # What follows would be read as the rest of this frame: nothing may follow.
                channel.mid_frame = False
                channel.hang_up()
        if wrote is None:
            return NotSent(Reason.SERVER_UNAVAILABLE, "the server does not read, or has ended")
        return Uncertain(Reason.OUTCOME_UNKNOWN, "the call could be written only in part", wrote)

    def wait(self, deadline: Deadline, *, writing: bool = False) -> bool:
        """Sleep until something happens and judge it; False if nothing did before the deadline."""
        happened = self.channel.wait(deadline, writing=writing)
        self.inbox.take_lines()
        return happened

    def drain(self) -> None:
        """Judge what has arrived, without waiting for more."""
        if not self.channel.eof and self.channel.drain():
            self.inbox.take_lines()


def always() -> bool:
    """The gate of what needs none."""
    return True
