"""The official SDK as the other side, in both eras: its servers with our client, its client with our server."""

import asyncio
import os
import sys

import pytest
from marks import promise
from wire_peers import PEERS, Caller

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.wire.outcomes import Era, Error, Limits, Result

MINUTE = 60_000
ERAS = pytest.mark.parametrize("era", [Era.HANDSHAKE, Era.STATELESS])


@promise("W1", "W2")
@pytest.mark.parametrize(
    ("peer", "mode", "era", "version"),
    [
        pytest.param("sdk_server.py", "both", None, "2026-07-28", id="the SDK's server"),
        pytest.param("sdk_server.py", "legacy", None, "2025-11-25", id="the SDK's server of the handshake era"),
        pytest.param("sdk_server.py", "both", Era.HANDSHAKE, "2025-11-25", id="the SDK's server, era known"),
        pytest.param("our_server.py", "", None, "2026-07-28", id="our server"),
        pytest.param("our_server.py", "", Era.HANDSHAKE, "2025-11-25", id="our server, era known"),
    ],
)
def test_our_client_speaks_with_servers_of_both_eras(process, peer, mode, era, version):
    server = process(peer, mode, era=era, limits=Limits(probe_ns=20_000_000_000, grace_ns=20_000_000))
    session = server.session
    connected = session.connect(server.within(MINUTE))
    assert connected.version == version
    assert connected.server_info["version"] == "1"
    assert connected.list_changed

    names = [tool["name"] for tool in session.list_tools(server.within(MINUTE))]
    assert names[:2] == ["echo", "slow"]
    assert len(names) in {6, 7}
    assert not session.tools_changed

    echoed = server.call("echo", b'{"n":9007199254740991,"s":"\xe2\x80\xa8"}')
    assert isinstance(echoed, Result)
    assert echoed.value["structuredContent"] == {"n": 9007199254740991, "s": "\u2028"}
    assert not echoed.failed

    agent = Caller(wants_progress=True)
    assert isinstance(server.call("slow", relay=agent), Result)
    assert agent.steps == [(step, 3, f"step {step}") for step in (1, 2, 3)]

    assert server.call("fail").failed
    refused = server.call("boom")
    assert isinstance(refused, Error)
    assert (refused.value["code"], refused.value["data"]) == (-32602, {"why": "boom"})

    assert isinstance(server.call("change"), Result)
    for _ in range(1000):  # the news comes by itself, at the latest with some later answer
        if session.tools_changed:
            break
        assert isinstance(server.call("echo"), Result)
    assert session.tools_changed
    assert len(session.list_tools(server.within(MINUTE))) == len(names) + 1
    assert not session.tools_changed

    assert session.oddities == ()
    assert session.finish(server.within(MINUTE))


@promise("W5")
@ERAS
def test_a_cancelled_call_and_one_that_wants_more_input_stay_uncertain_with_the_sdk_server(process, era):
    server = process("sdk_server.py", era=era, limits=Limits(grace_ns=50_000_000))
    session = server.session
    session.connect(server.within(MINUTE))
    end = server.call("hang", ms=100)
    assert (type(end), end.reason) == (Uncertain, Reason.OUTCOME_UNKNOWN)
    assert isinstance(server.call("echo"), Result)
    assert session.oddities == ()
    if era is Era.STATELESS:
        end = server.call("more")
        assert (type(end), end.reason) == (Uncertain, Reason.RESULT_INVALID)


@promise("W1")
@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_sdk_client_speaks_with_our_server_in_both_eras(mode, version):
    from mcp import Client, StdioServerParameters
    from mcp.shared.exceptions import MCPError

    async def talk():
        launch = StdioServerParameters(
            command=sys.executable,
            args=[str(PEERS / "our_server.py")],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        seen = []

        async def progressed(current, total, message):
            seen.append((current, total, message))

        async with Client(launch, mode=mode) as client:
            assert client.protocol_version == version
            assert client.instructions == "be kind"
            first = await client.list_tools()
            rest = await client.list_tools(cursor=first.next_cursor)
            assert [tool.name for tool in (*first.tools, *rest.tools)] == [
                "echo",
                "slow",
                "fail",
                "boom",
                "change",
                "wait",
            ]
            echoed = await client.call_tool("echo", {"n": 1})
            assert echoed.structured_content == {"n": 1}
            assert not echoed.is_error
            assert (await client.call_tool("fail", {})).is_error
            await client.call_tool("slow", {}, progress_callback=progressed)
            assert seen == [(1.0, 3.0, "step 1"), (2.0, 3.0, "step 2"), (3.0, 3.0, "step 3")]
            with pytest.raises(MCPError) as caught:
                await client.call_tool("boom", {})
            assert caught.value.error.code == -32602
            with pytest.raises(MCPError) as caught:
                await client.call_tool("nobody", {})
            assert caught.value.error.code == -32602

    asyncio.run(talk())
