"""The official SDK's server over HTTP on loopback, in a process of its own.

`sdk_http_server.py FOLDER stateless|handshake`.

It writes its port to FOLDER/port, each POST of a call to FOLDER/posts, and what its tools did to FOLDER/did. As
`handshake` it knows the stateless era no more than servers did before it was there.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

FOLDER = Path(sys.argv[1])
server = MCPServer("there")


class Sure(BaseModel):
    sure: bool


def note(name, text):
    with (FOLDER / name).open("a") as file:
        file.write(text + "\n")


@server.tool()
async def do(what: str, context: Context) -> str:
    """Does it."""
    note("did", what)
    for step in (1, 2):
        await context.report_progress(step, 2, f"step {step}")
    return f"done: {what}"


@server.tool()
async def ask(context: Context) -> str:
    """Asks first."""
    answer = await context.elicit("sure?", Sure)
    note("did", f"asked: {answer.action}")
    return answer.action


@server.tool()
async def hang() -> str:
    """Never answers, but hears that it is cancelled."""
    note("did", "hangs")
    try:
        await asyncio.sleep(600)
    finally:
        note("did", "cancelled")


class Counting:
    """Counts the calls that arrive, before anything judges them."""

    def __init__(self, application, stateless):
        self._application = application
        self._stateless = stateless

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._application(scope, receive, send)
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        message = json.loads(body)
        if message.get("method") == "tools/call":
            note("posts", message["params"]["name"])
        headers = dict(scope["headers"])
        if not self._stateless and headers.get(b"mcp-protocol-version") == b"2026-07-28":
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "unsupported version"}}
            data = json.dumps(error).encode()
            head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
            await send({"type": "http.response.start", "status": 400, "headers": head})
            await send({"type": "http.response.body", "body": data})
            return
        given = False

        async def again():
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._application(scope, again, send)


def main():
    listening = socket.create_server(("127.0.0.1", 0))
    application = Counting(server.streamable_http_app(), sys.argv[2] == "stateless")
    (FOLDER / "port.new").write_text(str(listening.getsockname()[1]))
    (FOLDER / "port.new").rename(FOLDER / "port")
    serving = uvicorn.Server(uvicorn.Config(application, log_level="critical"))
    asyncio.run(serving.serve(sockets=[listening]))


main()
