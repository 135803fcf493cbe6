"""One connection to a host: frames out under a deadline and a gate, frames in by one reading thread.

The thread reads as long as the connection lasts, so that nothing that the host tells piles up, and gives what comes to
whom it belongs. Each asker waits for its own id in a mailbox of its own. Reading is a matter of a lock, not of the
thread: `catch_up` takes in what has arrived before it returns, so what the host had written by then is known.

A frame is written whole, or the connection is given up: what followed would be read as its rest.
"""

from __future__ import annotations

import math
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple, TypeAlias

from assisted_benchmark.capability.ports import Registered
from assisted_benchmark.capability.socket_host_messages import (
    ARTIFACT,
    MAX_ARTIFACT_BYTES,
    MAX_EVENTS,
    MAX_LINE,
    PROGRESS,
    REGISTERED,
    Broken,
    places_in,
)
from assisted_benchmark.kernel.canonical import Json, parse
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline, Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.wire.frames import Bad, Frame, Notification, Response, Splitter, read_frame

_CHUNK: Final = 1 << 16
_ARRIVED: Final = 256  # chunks: more than any socket holds
_MOST_SECONDS: Final = 86_400.0  # more than this nobody waits
# Base64 of all artifacts of a request, and some for the last chunk of each.
_MAX_ENCODED: Final = MAX_ARTIFACT_BYTES * 4 // 3 + (1 << 20)
_MAX_ODD: Final = 100

_NO_CONNECTION: Final = NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
_NO_TIME: Final = NotSent(Reason.DEADLINE_EXCEEDED, "no time was left to write it")


class Chunk(NamedTuple):
    """A part of an artifact, as it came."""

    artifact: Json
    data: str


class Told(NamedTuple):
    """One event of progress, as it came."""

    event: Json


class Cut(NamedTuple):
    """A frame that is out in part. `wrote` is when its first byte was."""

    wrote: Instant


Mail: TypeAlias = Told | Chunk | Response | Bad | Broken


class Mailbox:
    """What comes for one id, in order and bounded. Its reader waits; whoever reads the connection puts in."""

    __slots__ = ("_encoded", "_events", "_mail", "id")

    def __init__(self, request_id: int) -> None:
        self.id = request_id
        self._mail: SimpleQueue[Mail] = SimpleQueue()
        self._events = 0
        self._encoded = 0

    def put(self, mail: Mail) -> bool:
        """Whether it was taken: of progress and artifacts only so much is."""
        if isinstance(mail, Told):
            self._events += 1
            if self._events > MAX_EVENTS:
                return False
        elif isinstance(mail, Chunk):
            self._encoded += len(mail.data)
            if self._encoded > _MAX_ENCODED:
                return False
        self._mail.put(mail)
        return True

    def take(self, deadline: Deadline) -> Mail:
        """The next, or that it is late. What is there is taken even at the last moment."""
        try:
            return self._mail.get(timeout=seconds(deadline))
        except Empty:
            return Broken.LATE


class Connection:
    """A connected socket, which it owns. `number` tells it apart from the other connections of its host.

    `lost` is true once nothing can be asked any more; `odd` is what came that fits nothing, within a bound.
    """

    def __init__(self, connected: socket.socket, clock: Clock, number: int) -> None:
        connected.setblocking(False)
        self.number = number
        self.lost = False
        self.odd: list[str] = []
        self._socket = connected
        self._clock = clock
        self._writing = threading.RLock()  # a gate may write too
        self._reading = threading.Lock()
        self._ids = 0
        self._waiting: dict[int, Mailbox] = {}
        self._places: tuple[tuple[str, Registered], ...] = ()
        self._splitter = Splitter(MAX_LINE)
        self._thread = threading.Thread(target=self._read_on, name=f"host-connection-{number}", daemon=True)
        self._thread.start()

    def open_mailbox(self) -> Mailbox:
        """One for an id that was not used before."""
        with self._reading:
            self._ids += 1
            mailbox = self._waiting[self._ids] = Mailbox(self._ids)
            if self.lost:
                mailbox.put(Broken.CLOSED)
            return mailbox

    def close_mailbox(self, mailbox: Mailbox) -> None:
        """Its id is settled: whatever still comes for it is odd."""
        with self._reading:
            self._waiting.pop(mailbox.id, None)

    def write(
        self, frame: bytes, deadline: Deadline, cross: Callable[[], NotSent | None] = lambda: None
    ) -> Instant | NotSent | Cut:
        """Write a frame, whole; the instant of its first byte, or how it went wrong.

        `cross` is asked right before that byte, once the socket takes one.
        """
        if not self._writing.acquire(timeout=seconds(deadline)):
            return _NO_TIME
        try:
            return self._write(memoryview(frame), deadline, cross)
        finally:
            self._writing.release()

    def catch_up(self) -> None:
        """Take in what has arrived, without waiting for more; of a host that does not stop, no more than that."""
        with self._reading:
            for _ in range(_ARRIVED):
                if self.lost or not self._take_in():
                    return

    def place(self, instance: str) -> Registered | None:
        """Where the one instance with this id is registered, by the host's last word; None if there is not just one."""
        self.catch_up()
        found = [place for name, place in self._places if name == instance]
        return found[0] if len(found) == 1 and not self.lost else None

    def close(self) -> None:
        """Give it up, and wait for its thread. Idempotent."""
        self._hang_up()
        self._thread.join()
        with self._writing:  # a writer has noticed by now, and leaves
            self._socket.close()

    def _write(
        self, view: memoryview, deadline: Deadline, cross: Callable[[], NotSent | None]
    ) -> Instant | NotSent | Cut:
        if self.lost:
            return _NO_CONNECTION
        wrote: Instant | None = None
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        while view and not self.lost:
            if deadline.passed or not poll.poll(math.ceil(1000 * seconds(deadline))):
                break
            if wrote is None and not self.lost:
                unwritten = cross()
                if unwritten is not None:
                    return unwritten
            now = self._clock.now()
            try:
                written = self._socket.send(view)
            except BlockingIOError:
                continue
            except OSError:
                self._hang_up()
                break
            # INVARIANT: from the first byte on there is no way back to NotSent.
            wrote = wrote or now
            view = view[written:]
        if wrote is None:
            return _NO_CONNECTION if self.lost else _NO_TIME
        if view:
            self._hang_up()
            return Cut(wrote)
        return wrote

    def _hang_up(self) -> None:
        """Nothing more goes out or comes in, and who waits knows; what had come before is taken in."""
        with suppress(OSError):  # it is down already
            self._socket.shutdown(socket.SHUT_RDWR)
        while not self.lost:
            self.catch_up()

    def _read_on(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while not self.lost:
            poll.poll()
            self.catch_up()

    def _take_in(self) -> bool:
        """Take in a piece; whether there may be more."""
        try:
            piece = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self.lost = True
            for mailbox in self._waiting.values():
                mailbox.put(Broken.CLOSED)
            return False
        for line in self._splitter.feed(piece):
            self._sort(line if isinstance(line, Bad) else read_frame(line, MAX_LINE, parse))
        return True

    def _sort(self, frame: Frame) -> None:
        """Give a frame to whom it belongs."""
        match frame:
            case Response(int(request_id)) if type(request_id) is int and request_id in self._waiting:
                # Its id is settled: a second answer belongs to nobody.
                self._waiting.pop(request_id).put(frame)
            case Bad(id=int(request_id), reply=True) if request_id in self._waiting:
                self._waiting.pop(request_id).put(frame)
            case Notification(method, params) if method == REGISTERED:
                places = places_in(params)
                if places is None:
                    self._strange("a list of instances that is none")
                self._places = places or ()
            case Notification(method, {"request": int(request_id), "event": event, **more}) if (
                method == PROGRESS and not more
            ):
                self._deliver(request_id, Told(event))
            case Notification(method, {"request": int(request_id), "artifact": number, "data": str(data), **more}) if (
                method == ARTIFACT and not more
            ):
                self._deliver(request_id, Chunk(number, data))
            case Bad():
                self._strange(f"no message: {frame.detail}")
            case _:
                self._strange("a message that fits nothing")

    def _deliver(self, request_id: int, mail: Mail) -> None:
        mailbox = self._waiting.get(request_id)
        if mailbox is None or type(request_id) is not int or not mailbox.put(mail):
            self._strange("news of a request that does not wait, or too much of it")

    def _strange(self, detail: str) -> None:
        if len(self.odd) < _MAX_ODD:
            self.odd.append(detail)


def seconds(deadline: Deadline) -> float:
    """What is left, for whoever waits."""
    return min(deadline.remaining_ns() / SECOND, _MOST_SECONDS)
