"""An agent's session on two descriptors: strict lines in, whole lines out.

One thread reads and never waits for a tool, so that a cancellation, a ping or another call is served while a person
is being asked.

When the agent closes its side, open questions fail, what was asked before is still answered,
and `serve` returns once nothing runs any more. An interrupt cancels what is in flight first, and so does an agent
that reads no more either: nobody is left to hear what it comes to.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Final

from assisted_benchmark.gateway.conversation import Conversation
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.lines_out import LinesOut
from assisted_benchmark.gateway.service import Service, unnoticed, unrecorded
from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.canonical import parse
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.bell import Bell
from assisted_benchmark.wire.frames import PARSE_ERROR, Bad, Splitter, read_frame, write_error
from assisted_benchmark.wire.outcomes import Oddity

_CHUNK: Final = 1 << 16


class AgentSession:
    """Serves one agent on two descriptors, which stay the caller's.

    `on_malformed` hears of each line that was no message, from the thread that reads: the broker's receipt of it.
    `on_leaving` is called once the agent is gone or is sent away, before what it has asked for has ended.
    """

    def __init__(
        self,
        face: Face,
        session: Session,
        clock: Clock,
        *,
        read_fd: int = 0,
        write_fd: int = 1,
        limits: Limits | None = None,
        on_malformed: Callable[[Reason, str], object] = unrecorded,
        on_leaving: Callable[[], None] = unnoticed,
    ) -> None:
        self._on_leaving = on_leaving
        self._limits = limits or Limits()
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._over = False
        self._splitter = Splitter(self._limits.line)
        self._service = Service(face, clock, self._limits, on_malformed)
        self._bell = Bell()
        self._out = LinesOut(write_fd, clock, self._limits.write_ns, self._bell.ring)
        self._talk = Conversation(self._service, lambda: session, self._out)

    @property
    def oddities(self) -> tuple[Oddity, ...]:
        """What the agent did that fits nothing, and tools that broke; in order, bounded."""
        return self._service.oddities

    @property
    def client(self) -> Json:
        """What the client says that it is. It may say anything."""
        return self._talk.side.client

    def serve(self) -> None:
        """Answer until the agent closes its side or stops reading ours. Nothing runs any more when this returns."""
        try:
            self._read_on()
        except BaseException:
            self._talk.cancel_all()
            raise
        finally:
            self._talk.close()
            self._on_leaving()
            self._end()

    def _end(self) -> None:
        watch = threading.Thread(target=self._watch)
        watch.start()
        try:
            self._service.shutdown()  # which may take long: an interrupt cancels what is left
        except BaseException:
            self._talk.cancel_all()
            raise
        finally:
            self._service.shutdown()
            self._over = True
            self._bell.ring()
            watch.join()
            self._bell.close()

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._bell.fd, select.POLLIN)
        poll.register(self._write_fd, 0)  # which tells of nothing but that it leads nowhere
        poll.poll()
        if not self._over:
            self._talk.cancel_all()

    def _read_on(self) -> None:
        poll = select.poll()
        poll.register(self._read_fd, select.POLLIN)
        poll.register(self._bell.fd, select.POLLIN)
        while True:
            poll.poll()
            if self._out.broken:
                self._talk.cancel_all()  # nobody will hear what they come to
                return
            try:
                chunk = os.read(self._read_fd, _CHUNK)
            except OSError:
                return
            if not chunk:
                break
            for line in self._splitter.feed(chunk):
                frame = line if isinstance(line, Bad) else read_frame(line, self._limits.line, parse)
                self._talk.take(frame, self._out)
        if self._splitter.half:
            self._out.send(write_error(None, PARSE_ERROR, "the last line has no end"))
