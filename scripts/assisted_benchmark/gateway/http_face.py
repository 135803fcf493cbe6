"""Streamable HTTP on loopback: each request is one message, admitted as over any other way, in both protocol eras.

The header `MCP-Protocol-Version` tells the era. In the handshake era a session is opened by `initialize` and named by
`Mcp-Session-Id`; a client may hold one stream open in it (GET) and end it (DELETE). In the stateless era every request
stands for itself, and closing its answer cancels it. Streams cannot be resumed: what is decided is told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from assisted_benchmark.gateway.conversation import Conversation
from assisted_benchmark.gateway.http_exchange import Exchange
from assisted_benchmark.gateway.http_guard import Guard, Turned
from assisted_benchmark.gateway.http_headers import HEADER_MISMATCH, VERSION, mismatch, unmirrored, version_of
from assisted_benchmark.gateway.http_sessions import Talk, Talks
from assisted_benchmark.gateway.principals import HTTP, Principals
from assisted_benchmark.gateway.service import Service
from assisted_benchmark.kernel.canonical import parse
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire import frames
from assisted_benchmark.wire.frames import Bad, Frame, Notification, read_frame, write_error

SESSION: Final = "mcp-session-id"

_BODY_SECONDS: Final = 10.0
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"

# What errors are over HTTP: in the stateless era those of any request, in the other those of what was no message.
_MALFORMED: Final = {frames.PARSE_ERROR: 400, frames.INVALID_REQUEST: 400}
_STATELESS: Final = _MALFORMED | {
    frames.INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    frames.MISSING_CAPABILITY: 400,
    frames.UNSUPPORTED_VERSION: 400,
    frames.METHOD_NOT_FOUND: 404,
}


class HttpFace:
    """The ASGI application. `on_over` is called when nobody is left to serve."""

    def __init__(
        self, service: Service, principals: Principals, guard: Guard, chance: Chance, on_over: Callable[[], None]
    ) -> None:
        self._service = service
        self._principals = principals
        self._guard = guard
        self._talks = Talks(service, principals, service.clock, chance)
        self._on_over = on_over
        self._alone: set[Conversation] = set()  # those of single requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = scope["headers"]
        turned = self._guard.turns(scope["raw_path"].decode("latin-1"), headers)
        if turned is None:
            request = Request(scope, receive)
            stateless = _era(request)
            if request.method == "POST":
                turned = await self._post(request, stateless=stateless, send=send)
            elif stateless is not False or request.method not in ("GET", "DELETE"):
                turned = Turned(405, "POST it")
            else:
                turned = await self._of_session(request, send)
        if turned is not None:
            await _refused(turned, scope, receive, send, unread=True)

    def leave(self) -> None:
        """Everybody is sent away: what is in flight is cancelled, and open streams end."""
        self._talks.end_all()
        for conversation in tuple(self._alone):
            conversation.end()

    # -- messages

    async def _post(self, request: Request, *, stateless: bool | None, send: Send) -> Turned | None:
        if (
            _media(request, "content-type") != [_JSON]
            or request.headers.get("content-encoding", "identity") != "identity"
        ):
            return Turned(415, "a message is application/json, and not encoded")
        if not _accepts(request, _JSON) or not _accepts(request, _EVENTS):
            return Turned(406, f"an answer may be {_JSON} or {_EVENTS}: accept both")
        body = await self._body(request)
        if not isinstance(body, bytes):
            return body
        turned = await self._said(request, body, stateless=stateless, send=send)
        if turned is not None:
            await _refused(turned, request.scope, request.receive, send, unread=False)
        return None

    async def _said(self, request: Request, body: bytes, *, stateless: bool | None, send: Send) -> Turned | None:
        frame = read_frame(body, self._service.limits.line, parse)
        if isinstance(frame, Bad):
            self._service.malformed(frame)
            return _no_message(400, frame)
        if stateless is None:
            return _unsupported(request, frame)
        if stateless:
            return await self._stateless(request, frame, send)
        return await self._in_session(request, frame, send)

    async def _body(self, request: Request) -> bytes | Turned | None:
        """The whole body; None if the client is gone."""
        most = self._service.limits.line
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for piece in request.stream():
                    body += piece
                    if len(body) > most:
                        bad = Bad(Reason.TOO_LARGE, frames.INVALID_REQUEST, f"a message of more than {most} bytes")
                        self._service.malformed(bad)
                        return _no_message(413, bad)
        except TimeoutError:
            return Turned(408, f"the request was not there within {_BODY_SECONDS:g} seconds")
        except ClientDisconnect:
            return None
        return bytes(body)

    async def _stateless(self, request: Request, frame: Frame, send: Send) -> Turned | None:
        if isinstance(frame, Notification):
            # There is none in this era over HTTP that a server acts on.
            await Response(status_code=202)(request.scope, request.receive, send)
            return None
        if not isinstance(frame, frames.Request):
            return Turned(400, "in this version a client answers with another call")
        if frame.method == "initialize":
            return Turned(404, "no such method", frames.METHOD_NOT_FOUND, frame.id)
        said = version_of(frame)
        wrong = (mismatch(request.headers, frame) if said is not None else "") or self._unmirrored(request, frame)
        if wrong:
            return self._mismatched(wrong, frame)
        exchange = Exchange()
        conversation = Conversation(
            self._service,
            lambda: self._principals.session(HTTP, conversation.side.client),
            exchange,
            stateless=True,
        )
        self._alone.add(conversation)
        try:
            conversation.take(frame, exchange)
            await exchange.play(request.scope, request.receive, send, statuses=_STATELESS)
        finally:
            self._alone.remove(conversation)
            conversation.end()  # whoever closes the answer to a request has cancelled it
        return None

    def _mismatched(self, header: str, frame: frames.Request) -> Turned:
        detail = f"the header {header} is not what the body says"
        bad = Bad(Reason.MALFORMED_CALL, HEADER_MISMATCH, detail, frame.id)
        self._service.malformed(bad)
        return _no_message(400, bad)

    def _unmirrored(self, request: Request, frame: frames.Request) -> str:
        tool = (
            self._service.face.registered.get(str(frame.params.get("name"))) if frame.method == "tools/call" else None
        )
        if tool is None:
            return ""
        return unmirrored(request.headers.items(), frame.params.get("arguments"), tool.definition.get("inputSchema"))

    async def _in_session(self, request: Request, frame: Frame, send: Send) -> Turned | None:
        if isinstance(frame, frames.Request) and frame.method != "initialize" and version_of(frame) is not None:
            return self._mismatched("MCP-Protocol-Version", frame)
        opening = isinstance(frame, frames.Request) and frame.method == "initialize" and SESSION not in request.headers
        talk = self._talks.begin() if opening else self._named(request)
        if isinstance(talk, Turned):
            return talk
        if talk is None:
            return Turned(503, "too many sessions are open; end one")
        exchange = Exchange()
        self._talks.used(talk, more=1)
        try:
            talk.conversation.take(frame, exchange)
            if isinstance(frame, frames.Request):
                headers = {SESSION: talk.id} if opening and talk.conversation.side.version else {}
                await exchange.play(request.scope, request.receive, send, headers=headers, statuses=_MALFORMED)
            else:
                await Response(status_code=202)(request.scope, request.receive, send)
        finally:
            self._talks.used(talk, more=-1)
            if opening and not talk.conversation.side.version:
                self._talks.end(talk)  # it was not opened
        return None

    # -- sessions

    async def _of_session(self, request: Request, send: Send) -> Turned | None:
        talk = self._named(request)
        if isinstance(talk, Turned):
            return talk
        if request.method == "DELETE":
            self._talks.end(talk)
            await Response(status_code=204)(request.scope, request.receive, send)
            if self._principals.left(talk.principal):
                self._on_over()
            return None
        if not _accepts(request, _EVENTS):
            return Turned(406, f"what comes is {_EVENTS}: accept it")
        if talk.standing.stream is not None:
            return Turned(409, "a stream of this session is open already")
        exchange = Exchange()
        self._talks.used(talk, more=1)
        talk.standing.opened(exchange)
        try:
            await exchange.play(request.scope, request.receive, send, stream=True)
        finally:
            talk.standing.stream = None
            self._talks.used(talk, more=-1)
        return None

    def _named(self, request: Request) -> Talk | Turned:
        named = request.headers.get(SESSION)
        if named is None:
            return Turned(400, "a session is opened by `initialize`, and named by Mcp-Session-Id from then on")
        talk = self._talks.find(named)
        if talk is None:
            return Turned(404, "there is no such session, or not any more")
        if request.headers.get(VERSION, talk.conversation.side.version) != talk.conversation.side.version:
            return Turned(400, f"the session's version is {talk.conversation.side.version}")
        return talk


def _no_message(status: int, bad: Bad) -> Turned:
    return Turned(status, bad.detail, bad.code, None if bad.reply else bad.id, {"reason": bad.reason.value})


async def _refused(turned: Turned, scope: Scope, receive: Receive, send: Send, *, unread: bool) -> None:
    headers = {}
    if turned.status == 401:
        headers["www-authenticate"] = "Bearer"
    if turned.status == 405:
        headers["allow"] = "POST, GET, DELETE"
    if unread:
        headers["connection"] = "close"  # what else there is of the request is not read, however much it is
    body = write_error(turned.id, turned.code, turned.detail, turned.data).rstrip()
    await Response(body, turned.status, headers, _JSON)(scope, receive, send)


def _era(request: Request) -> bool | None:
    """Whether a request is of the stateless era; None if it is of a version that nobody knows."""
    version = request.headers.get(VERSION)
    if version is None or version in frames.HANDSHAKE_VERSIONS:
        return False
    if version in frames.STATELESS_VERSIONS:
        return True
    return None


def _unsupported(request: Request, frame: Frame) -> Turned:
    data = {"supported": list(frames.STATELESS_VERSIONS), "requested": request.headers[VERSION]}
    request_id = frame.id if isinstance(frame, frames.Request) else None
    return Turned(400, "this protocol version is not spoken here", frames.UNSUPPORTED_VERSION, request_id, data)


def _media(request: Request, name: str) -> list[str]:
    """The media types that a header names, without their parameters."""
    return [each.partition(";")[0].strip().lower() for each in request.headers.get(name, "").split(",")]


def _accepts(request: Request, media: str) -> bool:
    return not {media, f"{media.partition('/')[0]}/*", "*/*"}.isdisjoint(_media(request, "accept"))
