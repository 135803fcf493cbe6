"""The official SDK's client drives the workloads over stdio, in both protocol eras."""

import asyncio
import json

import pytest
from marks import promise
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from workload_process import ENV, LBA, argv

from assisted_benchmark.workloads.recorded import Recorded, load
from assisted_benchmark.workloads.synthetic_ui import TOOLS, SyntheticUi

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])


def driven(mode, module, *args, drive):
    """What `drive(client)` comes to against a fresh process."""
    program, *rest = argv(module, *args)

    async def session():
        server = StdioServerParameters(command=program, args=rest, env=ENV)
        async with Client(server, mode=mode, read_timeout_seconds=10) as client:
            return await drive(client)

    return asyncio.run(session())


def raw(tools):
    return [tool.model_dump(by_alias=True, exclude_unset=True, mode="json") for tool in tools]


@promise("L30")
@ERAS
def test_the_sdk_client_plays_the_synthetic_ui(mode):
    async def play(client):
        tools = (await client.list_tools()).tools
        read = await client.call_tool("read_task", {"taskId": "t-1"})
        click = await client.call_tool("click_target", {"taskId": "t-1", "targetId": "hold"})
        again = await client.call_tool("click_target", {"taskId": "t-1", "targetId": "approve"})
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("read_state", {})
        return raw(tools), read, click, again, unknown.value.error.code

    tools, read, click, again, unknown = driven(mode, "synthetic_ui", drive=play)
    model = SyntheticUi(0, "t-1")
    assert tools == list(TOOLS)
    assert read.structured_content == model.call("read_task", {"taskId": "t-1"})["structuredContent"]
    clicked = model.call("click_target", {"taskId": "t-1", "targetId": "hold"})
    assert (click.structured_content, click.is_error) == (clicked["structuredContent"], False)
    assert (again.structured_content, again.is_error, unknown) == (None, True, -32602)


@promise("H5a")
@ERAS
def test_the_sdk_client_plays_the_recorded_server(mode):
    async def play(client):
        tools = (await client.list_tools()).tools
        plan = await client.call_tool("teardown", {"plane": "WIN"})
        return raw(tools), plan.content[0].text, plan.is_error

    tools, text, failed = driven(mode, "recorded", LBA / "cassette.json", drive=play)
    assert tools == json.loads((LBA / "tools-list.json").read_text(encoding="utf-8"))
    reply = Recorded(load(LBA / "cassette.json")).call("teardown", {"plane": "WIN"})
    assert (text, failed) == (reply["content"][0]["text"], False)
