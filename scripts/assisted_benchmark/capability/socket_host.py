"""The host of live instances over a local socket: the broker's port, at the edge.

One connection serves every client and every request at once, each under an id of its own. It is opened by `connect`,
and opened anew by the next `connect` after it was lost; nothing else opens one, and nothing is ever sent again. With a
connection its sessions are over, and where instances are registered is not known.

The socket stands in a folder that belongs to this user alone, and that is looked at before each connection: what
others can put there is not spoken to.
"""

from __future__ import annotations

import binascii
import os
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import (
    Cancellation,
    Enrolled,
    Envelope,
    HostReply,
    Instance,
    Registered,
    Session,
    Unavailable,
)
from assisted_benchmark.capability.socket_host_brink import Brink
from assisted_benchmark.capability.socket_host_connection import Chunk, Connection, Cut, Mailbox, Told, seconds
from assisted_benchmark.capability.socket_host_messages import (
    CANCEL,
    ENROL,
    INVENTORY,
    MAX_ARTIFACT,
    MAX_ARTIFACTS,
    MAX_CHUNK,
    MAX_LINE,
    NEGOTIATE,
    REQUEST,
    Broken,
    cancellation_of,
    enrolment,
    instances_in,
    judged,
    misclaimed,
    negotiation,
    offer_in,
    requested,
    session_in,
)
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Clock, Deadline, Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.wire.frames import Response, write_notification, write_request

_NO_CONNECTION: Final = Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands", ended=True)
_UNWRITABLE: Final = NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
_TOO_LARGE: Final = NotSent(Reason.TOO_LARGE, "the request is larger than a host takes")


class SocketHost:
    """The host behind the socket at `path`. Threads may share it. `close` ends its connection and its thread."""

    def __init__(self, path: str | os.PathLike[str], clock: Clock) -> None:
        self._path = Path(path)
        self._clock = clock
        self._opening = threading.Lock()
        self._connection: Connection | None = None
        self._connections = 0
        self._brink = Brink()

    @property
    def odd(self) -> tuple[str, ...]:
        """What came on the present connection that fits nothing."""
        return () if self._connection is None else tuple(self._connection.odd)

    def connect(self, session: Session, *, deadline: Deadline) -> Enrolled | Unavailable:
        try:
            connection = self._standing(deadline)
        except TimeoutError:
            return Broken.LATE.unavailable()
        except OSError:  # why not is the system's to say, in words that vary: that none stands is enough
            return Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands")
        answer = self._ask(connection, ENROL, enrolment(session), deadline)
        if isinstance(answer, Unavailable):
            return answer
        name = session_in(answer)
        if name is None:
            return Broken.NO_ANSWER.unavailable()
        return Enrolled(f"{connection.number}.{name}", session.client, session.peer)

    def inventory(self, enrolled: Enrolled, *, deadline: Deadline) -> tuple[Instance, ...] | Unavailable:
        connection, session = self._of(enrolled)
        answer = self._ask(connection, INVENTORY, {"session": session}, deadline)
        if isinstance(answer, Unavailable):
            return answer
        found = instances_in(answer)
        return Broken.NO_ANSWER.unavailable() if found is None else found

    def negotiate(
        self, enrolled: Enrolled, instance: Instance, offer: Offer, *, deadline: Deadline
    ) -> Offer | Unavailable:
        connection, session = self._of(enrolled)
        answer = self._ask(connection, NEGOTIATE, negotiation(session, instance, offer), deadline)
        if isinstance(answer, Unavailable):
            return answer
        return offer_in(answer) or Broken.NO_ANSWER.unavailable()

    def request(
        self,
        claimed: Claimed,
        envelope: Envelope,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,
        progress: Callable[[Json], None],
    ) -> HostReply:
        no = misclaimed(claimed, envelope)
        if no is not None:
            return no
        key = (envelope.client, envelope.request_id)
        self._brink.enter(key)
        try:
            connection = self._connection
            if connection is None:
                return _UNWRITABLE
            mailbox = connection.open_mailbox()
            try:
                frame = write_request(mailbox.id, REQUEST, requested(claimed, envelope))
                if len(frame) > MAX_LINE:
                    return _TOO_LARGE
                wrote = connection.write(frame, deadline, lambda: self._brink.cross(key, gate))
                if isinstance(wrote, NotSent):
                    return wrote
                if isinstance(wrote, Cut):
                    return Broken.CUT.uncertain(wrote.wrote)
                return self._awaited(mailbox, envelope, wrote, deadline, progress)
            finally:
                connection.close_mailbox(mailbox)
        finally:
            self._brink.leave(key)

    def cancel(self, enrolled: Enrolled, cancellation: Cancellation, *, deadline: Deadline) -> Unavailable | None:
        if self._brink.stop((cancellation.client, cancellation.request_id)):
            return None
        connection, session = self._of(enrolled)
        if connection is None:
            return _NO_CONNECTION
        sent = connection.write(write_notification(CANCEL, cancellation_of(session, cancellation)), deadline)
        if isinstance(sent, Instant):
            return None
        return Broken.CUT.unavailable() if isinstance(sent, Cut) else Unavailable(sent.reason, sent.detail)

    def registered(self, instance: str) -> Registered | None:
        connection = self._connection
        return None if connection is None else connection.place(instance)

    def close(self) -> None:
        """Give the connection up: what waits is told so, and no thread is left. Idempotent."""
        with self._opening:
            if self._connection is not None:
                self._connection.close()

    def _standing(self, deadline: Deadline) -> Connection:
        """The connection that stands, or a new one; OSError if none comes to stand in time."""
        if not self._opening.acquire(timeout=seconds(deadline)):
            raise TimeoutError
        try:
            if self._connection is None or self._connection.lost:
                if self._connection is not None:
                    self._connection.close()
                connected = self._connect(deadline)
                self._connections += 1
                self._connection = Connection(connected, self._clock, self._connections)
            return self._connection
        finally:
            self._opening.release()

    def _connect(self, deadline: Deadline) -> socket.socket:
        folder = self._path.parent.lstat()
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
            raise PermissionError
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if deadline.passed:
                raise TimeoutError
            connected.settimeout(seconds(deadline))
            connected.connect(str(self._path))
        except OSError:
            connected.close()
            raise
        return connected

    def _of(self, enrolled: Enrolled) -> tuple[Connection | None, str]:
        """The connection of a session, if it still stands, and the host's own name of the session."""
        number, _, session = enrolled.id.partition(".")
        connection = self._connection
        stands = connection is not None and number == str(connection.number) and not connection.lost
        return (connection if stands else None), session

    def _ask(
        self, connection: Connection | None, method: str, params: dict[str, Json], deadline: Deadline
    ) -> Json | Unavailable:
        """The answer to what changes nothing, or why there is none."""
        if connection is None:
            return _NO_CONNECTION
        mailbox = connection.open_mailbox()
        try:
            wrote = connection.write(write_request(mailbox.id, method, params), deadline)
            if isinstance(wrote, NotSent):
                return Unavailable(wrote.reason, wrote.detail, ended=connection.lost)
            if isinstance(wrote, Cut):
                return Broken.CUT.unavailable()
            while True:
                mail = mailbox.take(deadline)
                if isinstance(mail, Broken):
                    return mail.unavailable()
                if isinstance(mail, Response):
                    return mail.result if mail.error is None else Broken.ERROR.unavailable(ended=_ended(mail.error))
                if not isinstance(mail, Told | Chunk):
                    return Broken.NO_MESSAGE.unavailable()
        finally:
            connection.close_mailbox(mailbox)

    def _awaited(
        self,
        mailbox: Mailbox,
        envelope: Envelope,
        wrote: Instant,
        deadline: Deadline,
        progress: Callable[[Json], None],
    ) -> HostReply:
        """What comes of a request that is written."""
        pieces: list[bytearray] = []
        sound = True
        while True:
            mail = mailbox.take(deadline)
            if isinstance(mail, Told):
                progress(mail.event)
            elif isinstance(mail, Chunk):
                sound = sound and _joined(pieces, mail)
            elif isinstance(mail, Broken):
                return mail.uncertain(wrote)
            elif not isinstance(mail, Response):
                return Broken.NO_MESSAGE.uncertain(wrote)
            elif mail.error is not None:
                return Broken.ERROR.uncertain(wrote)
            elif not sound:
                return Broken.ARTIFACTS.uncertain(wrote)
            else:
                came = tuple(map(bytes, pieces))
                return judged(mail.result, came, envelope.receipt_id, wrote, self._clock.now())


def _joined(pieces: list[bytearray], chunk: Chunk) -> bool:
    """Put a chunk where it belongs, if it does: artifacts come one after the other, within their bounds."""
    try:
        data = binascii.a2b_base64(chunk.data, strict_mode=True)
    except ValueError:
        return False
    number = chunk.artifact
    if type(number) is not int or len(data) > MAX_CHUNK:
        return False
    if number == len(pieces) < MAX_ARTIFACTS:
        pieces.append(bytearray())
    elif number != len(pieces) - 1 or number < 0:
        return False
    pieces[number] += data
    return len(pieces[number]) <= MAX_ARTIFACT


def _ended(error: dict[str, Json]) -> bool:
    """Whether a host's error says that the session is over."""
    data = error.get("data")
    return type(data) is dict and data.get("ended") is True
