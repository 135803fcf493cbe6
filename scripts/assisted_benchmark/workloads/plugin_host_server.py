"""The plugin host as a real process on a local socket.

Set up and watched over the control channel, as every workload: it tells the harness of each step before it answers,
so that a host that dies after acting has told of its act. It ends when the harness is gone. One loop does everything:
what was armed before a step is in force for it, and what it tells of its instances is written before the answer.
"""

from __future__ import annotations

import os
import select
import socket
import sys
from base64 import b64encode
from contextlib import suppress
from typing import Final, NoReturn

from assisted_benchmark.kernel.canonical import parse
from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import HarnessError, InputError
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.frames import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Bad,
    Id,
    Notification,
    Request,
    Splitter,
    read_frame,
    write_error,
    write_notification,
    write_result,
)
from assisted_benchmark.workloads.plugin_host_face import PluginHostFace
from assisted_benchmark.workloads.plugin_host_faults import DROPPING, DYING, HANGING, HostFault, HostFaultKind, Step
from assisted_benchmark.workloads.plugin_host_lies import Answered
from assisted_benchmark.workloads.plugin_host_place import LISTENER_ENV, inherited_listener
from assisted_benchmark.workloads.process import CONTROL_ENV, DEATH, Channel, configured, inherited

MAX_LINE: Final = 2 << 20
CHUNK: Final = 1 << 20

_READ: Final = 1 << 16
_ENOUGH: Final = 1 << 20  # bytes that wait to be written, until when no more is read
_HOST_ERROR: Final = -32000
_NOBODYS: Final = 1 << 40  # an id that no client uses
_STEPS: Final = {step.value: step for step in Step}
_K = HostFaultKind


def main() -> int:
    """Serve until the harness is gone; the process's exit status, if it never came to serve."""
    try:
        channel = inherited()
        listening = inherited_listener()
        if channel is None or listening is None:
            detail = f"{CONTROL_ENV} and {LISTENER_ENV} are not both set: this host runs under a harness only"
            raise InputError(Reason.MISUSE, detail)
        seed, _, faults = configured(channel.wait())
        face = PluginHostFace(seed, [HostFault.parse(each) for each in faults])
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return _Server(face, channel, listening).serve()


class _Peer:
    """One connection: what came and is no line yet, and what is not written yet. Closed once that is, if `closing`."""

    def __init__(self, connected: socket.socket, link: int) -> None:
        connected.setblocking(False)
        self.socket = connected
        self.link = link
        self.splitter = Splitter(MAX_LINE)
        self.outbox = bytearray()
        self.closing = False
        self.places: list[Json] | None = None  # as it was told last
        self.hanging: set[Id] = set()

    def flush(self) -> bool:
        """Write what the socket takes; whether the connection is still one."""
        try:
            if self.outbox:
                del self.outbox[: self.socket.send(self.outbox)]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return bool(self.outbox) or not self.closing


class _Server:
    """The face on the socket: it tells the harness, then plays out what the face decided."""

    def __init__(self, face: PluginHostFace, channel: Channel, listening: socket.socket) -> None:
        self._face = face
        self._channel = channel
        self._listening = listening
        self._peers: dict[int, _Peer] = {}
        self._told = 0
        self._counts: dict[str, int] = {}
        self._poll = select.poll()

    def serve(self) -> NoReturn:
        """Serve for as long as the harness is there: the channel ends the process when it is not."""
        self._listening.setblocking(False)
        self._poll.register(self._channel, select.POLLIN)
        self._poll.register(self._listening, select.POLLIN)
        self._tell()
        while True:
            events = dict(self._poll.poll())
            newcomer = events.pop(self._listening.fileno(), 0)
            if events.pop(self._channel.fileno(), 0):
                self._listen()
            for fd, event in events.items():
                if event & ~select.POLLOUT:  # its bytes, or its end
                    self._hear(self._peers[fd])
            if newcomer:  # last, as its descriptor may be one that has just been closed
                self._accept()
            for peer in list(self._peers.values()):
                self._settle(peer)

    def _listen(self) -> None:
        lines = self._channel.lines()
        for line in lines:
            self._face.arm(HostFault.parse(parse(line)["arm"]))
        if lines:
            self._announce()
            self._tell()

    def _accept(self) -> None:
        with suppress(OSError):  # it may have left again
            connected, _ = self._listening.accept()
            self._peers[connected.fileno()] = _Peer(connected, self._face.open())
            self._poll.register(connected, select.POLLIN)
        self._announce()

    def _settle(self, peer: _Peer) -> None:
        """Write what waits, and be woken for what there is to do next."""
        if not peer.flush():
            self._close(peer)
            return
        reading = select.POLLIN if len(peer.outbox) < _ENOUGH and not peer.closing else 0
        self._poll.modify(peer.socket, reading | (select.POLLOUT if peer.outbox else 0))

    def _close(self, peer: _Peer) -> None:
        self._face.close(peer.link)
        self._poll.unregister(peer.socket)
        del self._peers[peer.socket.fileno()]
        peer.socket.close()

    def _hear(self, peer: _Peer) -> None:
        try:
            piece = peer.socket.recv(_READ)
        except OSError:
            piece = b""
        if not piece:
            self._close(peer)
            return
        for line in peer.splitter.feed(piece):
            if peer.closing or peer.socket.fileno() < 0:
                return
            self._take(peer, line if isinstance(line, Bad) else read_frame(line, MAX_LINE, parse))

    def _take(self, peer: _Peer, frame: object) -> None:
        self._listen()
        match frame:
            case Request(request_id, method, params) if method in _STEPS and request_id not in peer.hanging:
                self._play(peer, _STEPS[method], request_id, params)
            case Request(request_id, method, _):
                taken = method in _STEPS
                code, what = (INVALID_REQUEST, "it is in flight") if taken else (METHOD_NOT_FOUND, "no such method")
                peer.outbox += write_error(request_id, code, what)
            case Notification("notifications/cancel", params):
                ended = self._face.cancel(peer.link, params)
                self._tell()
                if ended is not None:
                    request_id, answered = ended
                    peer.hanging.discard(request_id)
                    self._answer(peer, request_id, answered, None)
            case Bad(reply=False, id=request_id, code=code, detail=detail):
                peer.outbox += write_error(request_id, code, detail)

    def _play(self, peer: _Peer, step: Step, request_id: Id, params: dict[str, Json]) -> None:
        answered, fault = self._face.take(step, peer.link, params, request_id)
        self._announce()
        self._tell()
        if fault in DYING or fault in DROPPING:
            peer.flush()  # what was said before is heard
        if fault in DYING:
            os._exit(DEATH)
        if fault in DROPPING:
            self._close(peer)
        elif fault in HANGING or answered is None:
            peer.hanging.add(request_id)
            if answered is not None:
                self._progress(peer, request_id, answered)
        else:
            if fault is not _K.PROGRESS_LATE:
                self._progress(peer, _NOBODYS if fault is _K.PROGRESS_STRAY else request_id, answered)
            self._answer(peer, request_id, answered, fault)

    def _progress(self, peer: _Peer, request_id: Id, answered: Answered) -> None:
        for event in answered.progress:
            peer.outbox += write_notification("notifications/progress", {"request": request_id, "event": event})

    def _answer(self, peer: _Peer, request_id: Id, answered: Answered, fault: HostFaultKind | None) -> None:
        for number, data in enumerate(answered.made):
            for at in range(0, len(data) or 1, CHUNK):
                piece = b64encode(data[at : at + CHUNK]).decode()
                chunk = {"request": request_id, "artifact": number, "data": piece}
                peer.outbox += write_notification("notifications/artifact", chunk)
        if answered.error is not None:
            data_of = {"ended": True} if answered.error.ended else None
            line = write_error(request_id, _HOST_ERROR, answered.error.message, data_of)
        else:
            line = write_result(_NOBODYS if fault is _K.FOREIGN_ID else request_id, answered.result)
        if fault is _K.ANSWER_TWICE:
            line += line
        elif fault is _K.GARBAGE:
            line = b'{"jsonrpc": "2.0", garbage\xff\n' + line
        elif fault is _K.BAD_ANSWER:
            line = line[:-2] + b',"jsonrpc":"2.0"}\n'
        elif fault is _K.HUGE_LINE:
            line = b" " * (MAX_LINE + 1) + line
        elif fault is _K.HALF_LINE:
            line = line[: len(line) // 2]
            peer.closing = True
        peer.outbox += line
        if fault is _K.PROGRESS_LATE:
            self._progress(peer, request_id, answered)

    def _announce(self) -> None:
        """Tell every client where the instances are, if that is news to it: it has that before the harness has it."""
        places = self._face.model.places()
        for peer in self._peers.values():
            if peer.places != places:
                peer.places = places
                peer.outbox += write_notification("notifications/registered", {"instances": places})
                peer.flush()

    def _tell(self) -> None:
        model = self._face.model
        told: list[Json] = [
            {"received": {"tool": name, "count": count}}
            for name, count in model.received.items()
            if self._counts.get(name) != count
        ]
        self._counts = dict(model.received)
        for seq, identity, kind, tool, facts in model.events[self._told :]:
            told.append({"event": {"seq": seq, "id": identity, "kind": kind, "tool": tool}, "state": facts})
            self._told = seq
        self._channel.tell(told)
