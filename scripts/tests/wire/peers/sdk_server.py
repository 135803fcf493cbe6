"""A server of the official SDK: echo, slow, fail, boom, more (input), change. `legacy` refuses the stateless era."""

import sys

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

bus = InMemorySubscriptionBus()
names = ["echo", "slow", "hang", "fail", "boom", "more", "change"]


async def list_tools(ctx, params):
    start = int(params.cursor) if params and params.cursor else 0
    page = [types.Tool(name=name, input_schema={"type": "object"}) for name in names[start : start + 4]]
    return types.ListToolsResult(tools=page, next_cursor=str(start + 4) if len(names) > start + 4 else None)


async def call_tool(ctx, params):
    if params.name == "slow":
        for step in (1, 2, 3):
            await ctx.session.report_progress(step, 3, f"step {step}")
    elif params.name == "hang":
        await anyio.sleep_forever()
    elif params.name == "boom":
        raise MCPError(code=-32602, message="no", data={"why": "boom"})
    elif params.name == "more":
        return types.InputRequiredResult(request_state="s", result_type="input_required")
    elif params.name == "change":
        names.append("new")
        await bus.publish(ToolsListChanged())
        if ctx.protocol_version != "2026-07-28":
            await ctx.session.send_tool_list_changed()
    text = [types.TextContent(type="text", text="ok")]
    return types.CallToolResult(content=text, structured_content=params.arguments, is_error=params.name == "fail")


server = Server(
    "sdk",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(bus),
)


async def main():
    async with stdio_server() as (read, write):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        if "legacy" in sys.argv:
            from mcp.server.runner import serve_loop

            await serve_loop(server, read, write, lifespan_state={}, init_options=options)
        else:
            await server.run(read, write, options)


anyio.run(main)
