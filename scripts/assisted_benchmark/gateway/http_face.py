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
from assisted_benchmark.gateway.http_guard import Guard, Rejected
from assisted_benchmark.gateway.http_headers import HEADER_MISMATCH, VERSION, mismatch, unmirrored, version_of
from assisted_benchmark.gateway.http_sessions import McpSession, McpSessions
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
        self._sessions = McpSessions(service, principals, chance)
        self._on_over = on_over
        self._alone: set[Conversation] = set()  # those of single requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = scope["headers"]
        rejected = self._guard.rejects(scope["raw_path"].decode("latin-1"), headers)
        if rejected is None:
            request = Request(scope, receive)
            stateless = _era(request)
            if request.method == "POST":
                rejected = await self._post(request, stateless=stateless, send=send)
            elif stateless is not False or request.method not in ("GET", "DELETE"):
                rejected = Rejected(405, "POST it")
            else:
                rejected = await self._of_session(request, send)
        if rejected is not None:
            await _reject(rejected, scope, receive, send, unread=True)

    def leave(self) -> None:
        """Everybody is sent away: what is in flight is cancelled, and open streams end."""
        self._sessions.end_all()
        for conversation in tuple(self._alone):
            conversation.end()

    # -- messages

    async def _post(self, request: Request, *, stateless: bool | None, send: Send) -> Rejected | None:
        if (
            _media(request, "content-type") != [_JSON]
            or request.headers.get("content-encoding", "identity") != "identity"
        ):
            return Rejected(415, "a message is application/json, and not encoded")
        if not _accepts(request, _JSON) or not _accepts(request, _EVENTS):
            return Rejected(406, f"an answer may be {_JSON} or {_EVENTS}: accept both")
        body = await self._body(request)
        if not isinstance(body, bytes):
            return body
        rejected = await self._said(request, body, stateless=stateless, send=send)
        if rejected is not None:
            await _reject(rejected, request.scope, request.receive, send, unread=False)
        return None

    async def _said(self, request: Request, body: bytes, *, stateless: bool | None, send: Send) -> Rejected | None:
        frame = read_frame(body, self._service.limits.line, parse)
        if isinstance(frame, Bad):
            self._service.malformed(frame)
            return _no_message(400, frame)
        if stateless is None:
            return _unsupported(request, frame)
        if stateless:
            return await self._stateless(request, frame, send)
        return await self._in_session(request, frame, send)

    async def _body(self, request: Request) -> bytes | Rejected | None:
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
            return Rejected(408, f"the request was not there within {_BODY_SECONDS:g} seconds")
        except ClientDisconnect:
            return None
        return bytes(body)

    async def _stateless(self, request: Request, frame: Frame, send: Send) -> Rejected | None:
        if isinstance(frame, Notification):
            # There is none in this era over HTTP that a server acts on.
            await Response(status_code=202)(request.scope, request.receive, send)
            return None
        if not isinstance(frame, frames.Request):
            return Rejected(400, "in this version a client answers with another call")
        if frame.method == "initialize":
            return Rejected(404, "no such method", frames.METHOD_NOT_FOUND, frame.id)
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

    def _mismatched(self, header: str, frame: frames.Request) -> Rejected:
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

    async def _in_session(self, request: Request, frame: Frame, send: Send) -> Rejected | None:
        if isinstance(frame, frames.Request) and frame.method != "initialize" and version_of(frame) is not None:
            return self._mismatched("MCP-Protocol-Version", frame)
        opening = isinstance(frame, frames.Request) and frame.method == "initialize" and SESSION not in request.headers
        session = self._sessions.begin() if opening else self._named(request)
        if isinstance(session, Rejected):
            return session
        if session is None:
            return Rejected(503, "too many sessions are open; end one")
        exchange = Exchange()
        try:
            with self._sessions.in_use(session):
                session.conversation.take(frame, exchange)
                if isinstance(frame, frames.Request):
                    headers = {SESSION: session.id} if opening and session.conversation.side.version else {}
                    await exchange.play(request.scope, request.receive, send, headers=headers, statuses=_MALFORMED)
                else:
                    await Response(status_code=202)(request.scope, request.receive, send)
        finally:
            if opening and not session.conversation.side.version:
                self._sessions.end(session)  # it was not opened
        return None

    # -- sessions

    async def _of_session(self, request: Request, send: Send) -> Rejected | None:
        session = self._named(request)
        if isinstance(session, Rejected):
            return session
        if request.method == "DELETE":
            self._sessions.end(session)
            await Response(status_code=204)(request.scope, request.receive, send)
            if self._principals.left(session.principal):
                self._on_over()
            return None
        if not _accepts(request, _EVENTS):
            return Rejected(406, f"what comes is {_EVENTS}: accept it")
        if session.standing.stream is not None:
            return Rejected(409, "a stream of this session is open already")
        exchange = Exchange()
        session.standing.opened(exchange)
        try:
            with self._sessions.in_use(session):
                await exchange.play(request.scope, request.receive, send, stream=True)
        finally:
            session.standing.stream = None
        return None

    def _named(self, request: Request) -> McpSession | Rejected:
        named = request.headers.get(SESSION)
        if named is None:
            return Rejected(400, "a session is opened by `initialize`, and named by Mcp-Session-Id from then on")
        session = self._sessions.find(named)
        if session is None:
            return Rejected(404, "there is no such session, or not any more")
        if request.headers.get(VERSION, session.conversation.side.version) != session.conversation.side.version:
            return Rejected(400, f"the session's version is {session.conversation.side.version}")
        return session


def _no_message(status: int, bad: Bad) -> Rejected:
    return Rejected(status, bad.detail, bad.code, None if bad.reply else bad.id, {"reason": bad.reason.value})


async def _reject(rejected: Rejected, scope: Scope, receive: Receive, send: Send, *, unread: bool) -> None:
    headers = {}
    if rejected.status == 401:
        headers["www-authenticate"] = "Bearer"
    if rejected.status == 405:
        headers["allow"] = "POST, GET, DELETE"
    if unread:
        headers["connection"] = "close"  # what else there is of the request is not read, however much it is
    body = write_error(rejected.id, rejected.code, rejected.detail, rejected.data).rstrip()
    await Response(body, rejected.status, headers, _JSON)(scope, receive, send)


def _era(request: Request) -> bool | None:
    """Whether a request is of the stateless era; None if it is of a version that nobody knows."""
    version = request.headers.get(VERSION)
    if version is None or version in frames.HANDSHAKE_VERSIONS:
        return False
    if version in frames.STATELESS_VERSIONS:
        return True
    return None


def _unsupported(request: Request, frame: Frame) -> Rejected:
    data = {"supported": list(frames.STATELESS_VERSIONS), "requested": request.headers[VERSION]}
    request_id = frame.id if isinstance(frame, frames.Request) else None
    return Rejected(400, "this protocol version is not spoken here", frames.UNSUPPORTED_VERSION, request_id, data)


def _media(request: Request, name: str) -> list[str]:
    """The media types that a header names, without their parameters."""
    return [each.partition(";")[0].strip().lower() for each in request.headers.get(name, "").split(",")]


def _accepts(request: Request, media: str) -> bool:
    return not {media, f"{media.partition('/')[0]}/*", "*/*"}.isdisjoint(_media(request, "accept"))
