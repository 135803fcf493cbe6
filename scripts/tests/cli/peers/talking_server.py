"""A server of the official SDK whose calls have something to say before they end. Every call is noted in FOLDER.

talking_server.py FOLDER [legacy]
"""

import sys
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

FOLDER = Path(sys.argv[1])
server = MCPServer("talking", version="1")


class Name(BaseModel):
    name: str


def note(what):
    with (FOLDER / "noted").open("a") as file:
        file.write(what + "\n")


async def who(thing: str) -> Elicit[Name]:
    return Elicit(f"Who gets the {thing}?", Name)


@server.tool()
async def give(thing: str, answer: Annotated[ElicitationResult[Name], Resolve(who)]) -> str:
    """Asks a person, and does it only if the person said so."""
    note(f"give {answer.action}")
    return (
        f"{thing} for {answer.data.name}" if answer.action == "accept" else f"nobody gets the {thing}: {answer.action}"
    )


@server.tool()
async def count(ctx: Context) -> str:
    """Says how far it is."""
    note("count")
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, f"step {step}")
    return "counted"


@server.tool()
async def hang() -> str:
    """Never ends, unless it is told to."""
    note("hang")
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        note("hang cancelled")
        raise


async def main():
    if "legacy" not in sys.argv:
        await server.run_stdio_async()
        return
    from mcp.server.lowlevel import NotificationOptions
    from mcp.server.runner import serve_loop
    from mcp.server.stdio import stdio_server

    inner = server._lowlevel_server
    async with stdio_server() as (read, write):
        options = inner.create_initialization_options(NotificationOptions())
        await serve_loop(inner, read, write, lifespan_state={}, init_options=options)


anyio.run(main)
