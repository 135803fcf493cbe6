"""The official SDK's client as the agent, over real pipes to a real process, in both eras."""

import asyncio
import json
import os
import sys
from pathlib import Path

import mcp_types as types
import pytest
from gateway_bench import CONFIRM, MINUTE, PROPOSE, ROOT, a_contract
from marks import promise
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

PEER = Path(__file__).parent / "peers" / "change_server.py"
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
EXAMPLE = {"change_type": "connection", "spec": a_contract().change("connection").example.value}
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


def says(action, content=None):
    async def callback(context, params):
        return types.ElicitResult(action=action, content=content)

    return callback


class Peer:
    """Runs a conversation of the SDK's client with our server, and says what the endpoint was asked meanwhile."""

    def __init__(self, folder, mode):
        self.report = folder / "report.json"
        self.mode = mode

    def talk(self, conversation, callback=None, wait_ns=MINUTE):
        launch = StdioServerParameters(
            command=sys.executable,
            args=[str(PEER), str(ROOT), str(self.report), str(wait_ns)],
            env={"PYTHONPATH": os.pathsep.join(sys.path)}
            | {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")},
        )

        async def run():
            async with asyncio.timeout(60), Client(launch, mode=self.mode, elicitation_callback=callback) as client:
                assert client.protocol_version == VERSIONS[self.mode]
                return await conversation(client)

        return asyncio.run(run())

    def confirm(self, callback, wait_ns=MINUTE):
        """Propose and confirm: the confirmation's content."""

        async def conversation(client):
            confirmed = await client.call_tool(CONFIRM, {"token": await proposed(client)})
            assert confirmed.is_error is not confirmed.structured_content["executed"]
            return confirmed.structured_content

        return self.talk(conversation, callback, wait_ns)

    def told(self):
        return json.loads(self.report.read_text())

    @property
    def creates(self):
        return self.told()["received"].get("connections.create", 0)


async def proposed(client):
    result = await client.call_tool(PROPOSE, EXAMPLE)  # the client holds it against the output schema
    assert not result.is_error
    return result.structured_content["token"]


@pytest.fixture
def peer(tmp_path):
    return lambda mode: Peer(tmp_path, mode)


@promise("M1", "M2", "W1")
@MODES
def test_the_sdk_client_lists_the_tools_and_reads(peer, mode):
    async def conversation(client):
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name in (PROPOSE, CONFIRM):
            hints = listed[name].annotations
            assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (False, False, False)
        found = await client.call_tool("fabric_search_prices", {"type": "EVPL_VC", "bandwidth": 50})
        assert not found.is_error
        with pytest.raises(MCPError) as caught:
            await client.call_tool("fabric_delete_change", {})
        assert caught.value.error.code == -32602

    ours = peer(mode)
    ours.talk(conversation)
    assert ours.told()["odd"] == []


@promise("M16", "M17", "M20")
@MODES
@pytest.mark.parametrize(
    ("action", "content", "status", "creates"),
    [
        pytest.param("accept", {"confirm": True}, "accepted", 1, id="accept and confirm"),
        pytest.param("accept", None, "declined", 0, id="accept without confirm"),
        pytest.param("accept", {"confirm": False}, "declined", 0, id="confirm false"),
        pytest.param("accept", {"confirm": "true"}, "declined", 0, id="confirm text"),
        pytest.param("accept", {"confirm": 1}, "declined", 0, id="confirm 1"),
        pytest.param("decline", None, "declined", 0, id="decline"),
        pytest.param("cancel", None, "cancelled", 0, id="cancel"),
    ],
)
def test_what_the_person_at_an_sdk_client_answers_decides(peer, mode, action, content, status, creates):
    ours = peer(mode)
    told = ours.confirm(says(action, content))
    assert (told["human_confirmation"]["status"], told["executed"], ours.creates) == (status, creates == 1, creates)


@promise("M16", "W8")
def test_an_sdk_client_without_elicitation_is_refused_in_the_handshake_era(peer):
    ours = peer("legacy")
    told = ours.confirm(None)
    assert (told["human_confirmation"]["status"], ours.creates) == ("unsupported_by_client", 0)


@promise("W8")
def test_an_sdk_client_without_elicitation_hears_what_it_needs_in_the_stateless_era(peer):
    async def conversation(client):
        token = await proposed(client)
        with pytest.raises(MCPError) as caught:
            await client.call_tool(CONFIRM, {"token": token})
        return caught.value.error

    ours = peer("auto")
    error = ours.talk(conversation)
    needed = types.MissingRequiredClientCapabilityErrorData.model_validate(error.data).required_capabilities
    assert (error.code, needed.elicitation.form is not None, needed.elicitation.url) == (-32021, True, None)
    assert ours.creates == 0


@promise("M16")
def test_a_callback_that_raises_fails_the_confirmation_in_the_handshake_era(peer):
    async def callback(context, params):
        raise ZeroDivisionError

    ours = peer("legacy")
    told = ours.confirm(callback)
    assert (told["human_confirmation"]["status"], ours.creates) == ("failed", 0)


@promise("M16")
@MODES
def test_a_callback_that_answers_with_an_error_changes_nothing(peer, mode):
    async def callback(context, params):
        return types.ErrorData(code=-32603, message="no window")

    async def conversation(client):
        token = await proposed(client)
        if mode == "legacy":
            return (await client.call_tool(CONFIRM, {"token": token})).structured_content
        with pytest.raises(MCPError):
            await client.call_tool(CONFIRM, {"token": token})
        return None

    ours = peer(mode)
    told = ours.talk(conversation, callback)
    assert ours.creates == 0
    if told is not None:
        assert told["human_confirmation"]["status"] == "failed"
    else:
        assert ours.told()["outcomes"][-1] == "timed_out"  # the question stayed open to the end of the session


@promise("W7", "M16")
def test_a_person_who_never_answers_times_out_in_the_handshake_era(peer):
    async def callback(context, params):
        await asyncio.Event().wait()

    ours = peer("legacy")
    told = ours.confirm(callback, wait_ns=50_000_000)
    assert (told["human_confirmation"]["status"], ours.creates) == ("timed_out", 0)


@promise("M20")
def test_an_sdk_client_resumes_by_hand_once_and_only_with_the_state_that_it_got(peer):
    async def conversation(client):
        session = client.session
        answers = {"question": types.ElicitResult(action="accept", content={"confirm": True})}

        async def resumed(token, state):
            result = await session.call_tool(
                CONFIRM, {"token": token}, input_responses=answers, request_state=state, allow_input_required=True
            )
            return result.structured_content["token_state"], result.structured_content["executed"]

        token = await proposed(client)
        asked = await session.call_tool(CONFIRM, {"token": token}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        assert await resumed(token, asked.request_state[:-1] + "x") == ("replayed", False)
        assert await resumed(token, asked.request_state) == ("consumed", True)
        assert await resumed(token, asked.request_state) == ("replayed", False)

    ours = peer("auto")
    ours.talk(conversation, says("accept"))
    assert ours.creates == 1


@promise("M20")
def test_a_state_that_is_stale_times_out(peer):
    ours = peer("auto")
    told = ours.confirm(says("accept", {"confirm": True}), wait_ns=1)
    assert (told["human_confirmation"]["status"], ours.creates) == ("timed_out", 0)


@promise("M21", "W5")
def test_a_call_that_an_sdk_client_gives_up_on_is_cancelled(peer):
    async def conversation(client):
        asked = asyncio.Event()
        conversation.asked = asked
        task = asyncio.create_task(client.call_tool(CONFIRM, {"token": await proposed(client)}))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not (await client.call_tool("fabric_list_connections", {})).structured_content["result"]["data"]

    async def callback(context, params):
        conversation.asked.set()
        await asyncio.Event().wait()

    ours = peer("legacy")
    ours.talk(conversation, callback)
    assert ours.creates == 0
    assert ours.told()["outcomes"][-1] == "cancelled"
