"""The official SDK's client plays a case over real pipes, in both eras, with its configuration as it is printed."""

import asyncio
import json
import os

import pytest
from cli_bench import PASSING, ROOT, a_root, command, report_of
from marks import promise
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from served_bench import APPROVE, CLICK, HOLD, SERIES

VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
MODES = pytest.mark.parametrize("mode", VERSIONS)
READING = """\
schema: assisted-benchmark/scenario@1
id: {id}
policy: ui-reading
run: {{seed: 7}}
agent: {{plan: approve}}
servers: process
expect: {{ends: succeeded, oracle: approved, calls: {{synthetic-ui: 2}}}}
"""
OPEN = PASSING + "visibility: open\n"
STEPS = range(16)
SIXTEEN = """\
schema: assisted-benchmark/policy@1
id: sixteen
contract: lba-and-synthetic-ui.contract.yaml
expires_after: 120s
steps:
"""
SCENARIO = "schema: assisted-benchmark/scenario@1\nid: sixteen\n"
SHIPPED = ROOT / "fixtures" / "live" / "read-and-decide.scenario.yaml"


@pytest.fixture
def root(tmp_path):
    return a_root(tmp_path, plain=PASSING, reading=READING, open=OPEN)


def talk(root, mode, conversation, *words):
    """A conversation of the SDK's client with what the printed configuration starts; the case that came of it."""
    (server,) = json.loads(command(root, "serve", *words, "--print-config")[1])["mcpServers"].values()
    kept = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")}
    launch = StdioServerParameters(command=server["command"], args=server["args"], env=server["env"] | kept)

    async def run():
        async with asyncio.timeout(60), Client(launch, mode=mode) as client:
            assert client.protocol_version == VERSIONS[mode]
            return await conversation(client)

    said = asyncio.run(run())
    (case,) = report_of(root)["cases"]
    assert command(root, "verify")[0] == 0
    return said, case


@promise("W1", "W15")
@MODES
@pytest.mark.parametrize("scenario", ["live/plain", "live/reading"], ids=["models", "processes"])
def test_the_sdk_client_plays_the_plan(root, mode, scenario):
    first = SERIES if scenario == "live/plain" else "synthetic-ui__read_task"
    reads = {} if scenario == "live/plain" else {"taskId": "t-1"}

    async def conversation(client):
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert {first, CLICK} <= listed
        looked = await client.call_tool(first, reads)
        chose = await client.call_tool(CLICK, APPROVE)  # the client holds it against the output schema
        again = await client.call_tool(CLICK, HOLD)
        return looked.is_error, chose.structured_content["accepted"], again.is_error, again.structured_content["error"]

    said, case = talk(root, mode, conversation, scenario)
    assert said == (False, True, True, "spent")
    assert (case["verdict"], case["misses"], case["agent"]) == ("passed", [], "client (mcp 0.1.0)")
    assert (case["proposed"], case["admitted"], case["sent"]) == (3, 2, 2)


@promise("H6", "L32")
@MODES
@pytest.mark.parametrize(("wrongly", "verdict"), [(False, "passed"), (True, "failed")])
def test_a_client_that_reads_and_decides_is_judged_by_what_the_oracle_saw(root, mode, wrongly, verdict):
    (root / "fixtures" / "live" / SHIPPED.name).write_text(SHIPPED.read_text())

    async def conversation(client):
        assert "Read it first." in client.instructions
        (read,) = (await client.list_tools()).tools
        seen = (await client.call_tool(read.name, {"taskId": "t-1"})).structured_content
        right = "approve" if seen["reading"] <= seen["limit"] else "hold"
        target = {"approve": "hold", "hold": "approve"}[right] if wrongly else right
        (click,) = (await client.list_tools()).tools
        assert not (await client.call_tool(click.name, {"taskId": "t-1", "targetId": target})).is_error

    _, case = talk(root, mode, conversation, "live/read-and-decide")
    scores = (case["scores"]["action_correctness"], case["scores"]["task_completion"])
    assert (case["verdict"], scores) == (verdict, (float(not wrongly), float(not wrongly)))


@promise("W8")
@MODES
def test_the_sdk_client_hears_that_a_tool_is_unknown(root, mode):
    async def conversation(client):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("lba__nothing", {})
        return caught.value.error.code

    said, case = talk(root, mode, conversation, "live/plain")
    assert (said, case["proposed"], case["refusals"]) == (-32602, 1, {"unknown_tool": 1})


@promise("W17")
@MODES
@pytest.mark.parametrize("durability", ["memory", "process"])
def test_of_sixteen_concurrent_calls_none_is_lost_and_one_reaches_the_server(root, mode, durability):
    async def conversation(client):
        await client.list_tools()
        results = await asyncio.gather(*(client.call_tool(SERIES, {}) for _ in range(16)))
        return sorted(each.structured_content["error"] if each.is_error else "done" for each in results)

    said, case = talk(root, mode, conversation, "live/plain", "--durability", durability)
    assert said == ["done", *["spent"] * 15]
    assert (case["proposed"], case["admitted"], case["calls"]["lba"]) == (16, 1, 1)
    assert case["refusals"] == {"replayed": 15}


@promise("W17")
@MODES
@pytest.mark.parametrize("servers", ["in_process", "process"])
def test_sixteen_concurrent_callers_lose_nothing_of_what_is_authorised(root, mode, servers):
    steps = "  - call: {server: synthetic-ui, tool: read_task, arguments: {taskId: {from: run.task}}}\n" * 16
    (root / "contracts" / "sixteen.policy.yaml").write_text(SIXTEEN + steps)
    scenario = f"policy: sixteen\nagent: plan\nservers: {servers}\n"
    (root / "fixtures" / "live" / "sixteen.scenario.yaml").write_text(SCENARIO + scenario)
    assert command(root, "lint", "--write-pins")[0] == 0

    async def conversation(client):
        results = await asyncio.gather(*(client.call_tool("synthetic-ui__read_task", {"taskId": "t-1"}) for _ in STEPS))
        return {(each.is_error, each.structured_content["taskId"]) for each in results}

    said, case = talk(root, mode, conversation, "live/sixteen")
    assert (said, case["verdict"], case["ends"]) == ({(False, "t-1")}, "passed", "succeeded")
    assert (case["proposed"], case["admitted"], case["sent"], case["confirmed"]) == (16, 16, 16, 16)
    assert case["calls"] == {"lba": 0, "synthetic-ui": 16}  # counted by the server, in its own process


@promise("W15")
@MODES
def test_the_sdk_client_sees_the_open_step_alone(root, mode):
    async def conversation(client):
        names = []
        for name, arguments in ((SERIES, {}), (CLICK, APPROVE)):
            names.append([tool.name for tool in (await client.list_tools()).tools])
            await client.call_tool(name, arguments)
        names.append([tool.name for tool in (await client.list_tools()).tools])
        return names

    said, case = talk(root, mode, conversation, "live/open")
    assert (said, case["verdict"]) == ([[SERIES], [CLICK], []], "passed")
