"""The offline Fabric endpoint as a real HTTP server on a port of loopback, in a process of its own.

Set up and watched over the control channel, as every workload: it tells the harness its port, and of each request
before it answers it, so that a server that dies after acting has told of its act. It ends when the harness is gone.
One event loop does everything, so what was armed before a request is in force for it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Final

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from assisted_benchmark.kernel.errors import HarnessError, InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import Json, parse_strictly
from assisted_benchmark.workloads.fabric_api import MAX_BODY, Answered, Asked, FabricApi
from assisted_benchmark.workloads.fabric_api_face import FabricFace
from assisted_benchmark.workloads.fabric_api_faults import FabricFault, FabricFaultKind
from assisted_benchmark.workloads.process import CONTROL_ENV, DEATH, Channel, configured, inherited

_DYING: Final = frozenset({FabricFaultKind.DIE_BEFORE, FabricFaultKind.DIE_AFTER})
_HANGING: Final = frozenset({FabricFaultKind.HANG_BEFORE, FabricFaultKind.HANG_AFTER})
_DROPPING: Final = frozenset({FabricFaultKind.DROP_BEFORE, FabricFaultKind.DROP_AFTER})
_RAW: Final = frozenset({FabricFaultKind.ANSWER_TWICE, FabricFaultKind.HALF_BODY, FabricFaultKind.SLOW_BODY})
_DRIP_SECONDS: Final = 0.02
_DRIPS: Final = 1 << 20


def main() -> int:
    """Serve until the harness is gone; the process's exit status, if it never came to serve."""
    try:
        channel = inherited()
        if channel is None:
            raise InputError(Reason.MISUSE, f"{CONTROL_ENV} is not set: this server runs under a harness only")
        seed, _, faults = configured(channel.wait())
        face = FabricFace(FabricApi(seed), [FabricFault.parse(each) for each in faults])
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    asyncio.run(_Server(face, channel).serve())
    return 0


class _Protocol(H11Protocol):
    """One that can be found by its peer's address, so that a fault can have its transport."""

    transports: Final[dict[object, asyncio.Transport]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its parent has it
        super().connection_made(transport)
        self.transports[transport.get_extra_info("peername")] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.transports.pop(self.transport.get_extra_info("peername"), None)
        super().connection_lost(exc)


class _Server:
    """The face on the wire: it tells the harness, then plays out on the connection what the face decided."""

    def __init__(self, face: FabricFace, channel: Channel) -> None:
        self._face = face
        self._channel = channel
        self._told = 0
        config = uvicorn.Config(
            self._application,
            interface="asgi3",
            proxy_headers=False,
            http=_Protocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
        )
        self._server = uvicorn.Server(config)

    async def serve(self) -> None:
        """Listen, say where, and serve until the server leaves; a harness that is gone ends the process."""
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
            asyncio.get_running_loop().add_reader(self._channel.fileno(), self._listen)
            self._channel.tell([{"ready": {"port": listening.getsockname()[1]}}])
            await self._server.serve(sockets=[listening])

    def _listen(self) -> None:
        for line in self._channel.lines():
            self._face.arm(FabricFault.parse(parse_strictly(line)["arm"]))

    async def _application(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = b""
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY:
                    break
        except ClientDisconnect:
            return  # half a request is none
        self._listen()
        query = scope["query_string"].decode("latin-1")
        asked = Asked(
            request.method,
            scope["raw_path"].decode("latin-1") + (f"?{query}" if query else ""),
            body,
            request.headers.get("content-type", ""),
            request.headers.get("authorization", ""),
        )
        answered, fault = self._face.take(asked)
        self._tell()
        if fault in _DYING:
            os._exit(DEATH)
        if self._face.ended:
            for listener in self._server.servers:
                listener.close()
            self._server.should_exit = True
        if fault in _HANGING or fault in _DROPPING or fault in _RAW or answered is None:
            transport = _Protocol.transports[scope["client"]]
            gone = asyncio.ensure_future(_until_gone(receive))
            if fault in _DROPPING:
                transport.abort()
            elif answered is not None and fault in _RAW:
                await _spoil(transport, answered, fault, gone)
            await gone
            return
        headers = dict(answered.headers)
        await Response(answered.body, answered.status, headers, answered.media)(scope, receive, send)

    def _tell(self) -> None:
        told: list[Json] = [{"received": {"tool": n, "count": c}} for n, c in self._face.model.received.items()]
        for seq, identity, kind, tool, facts in self._face.model.events[self._told :]:
            told.append({"event": {"seq": seq, "id": identity, "kind": kind, "tool": tool}, "state": facts})
            self._told = seq
        self._channel.tell(told)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _spoil(
    transport: asyncio.Transport, answered: Answered, fault: FabricFaultKind | None, gone: asyncio.Future[None]
) -> None:
    """Write an answer as no server should; then the connection is closed, unless the other side closes it."""
    slow = fault is FabricFaultKind.SLOW_BODY
    length = len(answered.body) + (_DRIPS if slow else 0)
    head = (
        f"HTTP/1.1 {answered.status} Answer\r\ncontent-type: {answered.media}\r\ncontent-length: {length}\r\n"
        "connection: close\r\n\r\n"
    ).encode("ascii")
    if fault is FabricFaultKind.ANSWER_TWICE:
        transport.write((head + answered.body) * 2)
    elif slow:
        transport.write(head + answered.body)
        while not (await asyncio.wait({gone}, timeout=_DRIP_SECONDS))[0]:
            transport.write(b" ")
    else:
        transport.write(head + answered.body[: len(answered.body) // 2])
    transport.close()
