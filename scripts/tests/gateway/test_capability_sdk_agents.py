"""The official SDK's client operates: over real pipes, at `serve` and at a world that counts, in both eras."""

import asyncio
import base64
import json
import os
import sys
from pathlib import Path

import mcp_types as types
import pytest
from capability_bench import EVALUATE, INPUTS, PROJECTION, STATE_READ
from marks import promise
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

ROOT = Path(__file__).resolve().parents[3]
PEER = Path(__file__).parent / "peers" / "capability_server.py"
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
RENDER = "dev.pulp.render/offline@1"
ALLOWED = f"observe,develop,{RENDER}"
SERVE = ("--registry", "pulp", "--offline-host", "--eligible", f"{ALLOWED},{EVALUATE}", "--standing", ALLOWED)
READ_TOOL = "pulp_control_state_read"
READ = {"instance_id": "instance-1", "input": {}}


async def approves(context, params):
    return types.ElicitResult(action="accept", content={"confirm": True, "approved": True})


def talk(mode, words, conversation):
    """What a conversation of an SDK client, one that would approve of everything, with a process comes to."""
    kept = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")}
    launch = StdioServerParameters(
        command=sys.executable, args=list(map(str, words)), env={"PYTHONPATH": os.pathsep.join(sys.path)} | kept
    )

    async def run():
        client = Client(launch, mode=mode, elicitation_callback=approves)
        async with asyncio.timeout(90), client:
            assert client.protocol_version == VERSIONS[mode]
            return await conversation(client)

    return asyncio.run(run())


@pytest.fixture
def served():
    words = ("-m", "assisted_benchmark", "serve", "--root", ROOT, *SERVE, "--toolsets", "observe,control")
    return lambda mode, conversation: talk(mode, words, conversation)


@pytest.fixture
def counted(tmp_path):
    report = tmp_path / "report.json"

    def converse(mode, conversation):
        talk(mode, (PEER, ROOT, report), conversation)
        return json.loads(report.read_text())

    return converse


@promise("C1", "C4", "C5", "C8", "W1")
@MODES
def test_the_sdk_client_lists_what_the_registry_advertises_and_no_legacy_name(served, mode):
    async def conversation(client):
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == {tool.name for tool in PROJECTION.tools}
        for tool in PROJECTION.tools:
            assert listed[tool.name].input_schema == tool.definition["inputSchema"]
            assert listed[tool.name].output_schema == tool.definition["outputSchema"]
            hints = listed[tool.name].annotations
            assert hints.read_only_hint is tool.definition["annotations"]["readOnlyHint"]
            assert hints.open_world_hint is False
        for name in ("pulp_inspect_set_param", "pulp_inspect_evaluate", "pulp_inspect_screenshot", "pulp_create"):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, READ)
            assert caught.value.error.code == -32602

    served(mode, conversation)


@promise("C7", "W8", "W9")
@MODES
def test_the_sdk_client_operates_and_hears_how_each_call_ended(served, mode):
    async def conversation(client):
        async def calls(operation, **more):
            """The client holds it against the output schema."""
            named = PROJECTION.registry.tool_name(operation)
            result = await client.call_tool(named, {**READ, **more})
            assert result.is_error is not result.structured_content["ok"]
            return result.structured_content

        read = await calls(STATE_READ, request_id="r-1")
        assert (read["ok"], read["request_id"], read["state"]) == (True, "r-1", "completed")
        assert await calls(STATE_READ, request_id="r-1") == read
        for wrong in ({"approved": True}, {"input": {"approved": True}}, {"instance_id": "instance-9"}):
            assert (await calls(STATE_READ, **wrong))["error"]["data"]["may_have_applied"] is False
        refused = (await calls(EVALUATE, input=INPUTS[EVALUATE]))["error"]
        assert "broker-owned, single-use" in refused["message"]
        asked = await client.call_tool(
            "pulp_control_grant_request", {"instance_id": "instance-1", "operation_id": EVALUATE}
        )
        assert (asked.is_error, asked.structured_content["error"]["code"]) == (True, "not_authorised")

    served(mode, conversation)


@promise("C27")
@MODES
def test_the_sdk_client_hears_progress_that_its_result_has_too(served, mode):
    async def conversation(client):
        heard = []

        async def progressed(progress, total, message):
            heard.append((progress, total))

        arguments = {"instance_id": "instance-1", "input": {"input_artifact_id": "a", "max_frames": 64}}
        result = await client.call_tool("pulp_control_render_offline", arguments, progress_callback=progressed)
        content = result.structured_content
        assert content["progress"]
        assert heard == [(each["current"], each["total"]) for each in content["progress"]]

    served(mode, conversation)


@promise("C28", "C29")
@MODES
def test_the_sdk_client_reads_instances_and_its_own_artifacts_as_resources(served, mode):
    async def conversation(client):
        made = await client.call_tool("pulp_control_diagnostics_read", READ)
        (artifact,) = made.structured_content["artifacts"]
        listed = {each.name: each for each in (await client.list_resources()).resources}
        (whole,) = (await client.read_resource(listed["instance-1"].uri)).contents
        assert json.loads(whole.text)["instance_id"] == "instance-1"
        kept = listed[artifact["artifact_id"]]
        (whole,) = (await client.read_resource(kept.uri)).contents
        data = base64.b64decode(whole.blob)
        assert (len(data), kept.mime_type) == (artifact["byte_size"], whole.mime_type)
        part = {"artifact_id": artifact["artifact_id"], "offset": 0, "max_bytes": 1 << 20}
        chunk = await client.call_tool("pulp_control_artifact_read", {"instance_id": "instance-1", "input": part})
        assert base64.b64decode(chunk.structured_content["result"]["chunk_base64"]) == data
        templates = (await client.list_resource_templates()).resource_templates
        assert {each.uri_template for each in templates} == {
            "pulp-control://instance/{instance_id}",
            "pulp-control://artifact/{instance_id}/{artifact_id}",
        }
        with pytest.raises(MCPError) as caught:
            await client.read_resource("pulp-control://instance/instance-9")
        assert caught.value.error.code == -32602

    served(mode, conversation)


@promise("C30")
@MODES
def test_the_sdk_client_subscribes_to_telemetry_polls_it_and_ends_it(served, mode):
    async def conversation(client):
        async def asks(**value):
            arguments = {"instance_id": "instance-1", "input": value}
            return (await client.call_tool("pulp_control_telemetry_subscribe", arguments)).structured_content

        channels = {"channel_ids": ["level", "host.account"], "max_hz": 60, "buffer_samples": 2}
        stream = (await asks(action="subscribe", **channels))["result"]["stream_id"]
        for _ in range(4):
            await client.call_tool(READ_TOOL, READ)
        polled = (await asks(action="poll", stream_id=stream))["result"]
        assert len(polled["samples"]) == 2
        assert polled["dropped"] > 0
        assert all("values" not in each for each in polled["samples"] if each["redacted"])
        assert (await asks(action="unsubscribe", stream_id=stream))["result"]["action"] == "unsubscribed"
        assert (await asks(action="poll", stream_id=stream))["ok"] is False

    served(mode, conversation)


@promise("C18", "C26", "W5")
@MODES
def test_a_call_that_the_sdk_client_gives_up_on_is_cancelled_at_the_host(counted, mode):
    async def conversation(client):
        begun = asyncio.Event()

        async def progressed(progress, total, message):
            begun.set()

        call = client.call_tool(READ_TOOL, {**READ, "request_id": "held"}, progress_callback=progressed)
        task = asyncio.create_task(call)
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.call_tool(READ_TOOL, READ)).structured_content["ok"] is True

    told = counted(mode, conversation)
    assert told == {
        "executed": {STATE_READ: 2},
        "cancelled": ["held"],
        "states": ["cancelled", "completed"],
        "prompts": 0,
        "odd": [],
    }


@promise("C26")
@MODES
def test_a_call_that_the_sdk_client_stops_by_the_tool_is_told_as_cancelled(counted, mode):
    async def conversation(client):
        begun = asyncio.Event()

        async def progressed(progress, total, message):
            begun.set()

        call = client.call_tool(READ_TOOL, {**READ, "request_id": "held"}, progress_callback=progressed)
        task = asyncio.create_task(call)
        await begun.wait()
        stop = await client.call_tool("pulp_control_cancel", {"instance_id": "instance-1", "request_id": "held"})
        assert stop.structured_content["status"] == "cancellation_requested"
        ended = await task
        assert (ended.is_error, ended.structured_content["error"]["data"]["state"]) == (True, "cancelled")

    assert counted(mode, conversation)["cancelled"] == ["held"]
