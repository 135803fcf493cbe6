"""The official SDK's client over HTTP, in both eras: progress, cancellation, many clients, and what ends with them."""

import asyncio
import threading

import httpx2
import mcp_types as types
import pytest
from agent_peers import OK, SCHEMA, a_tool
from http_peers import BEARER
from marks import promise
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from assisted_benchmark.gateway.tools import input_required
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.wire.outcomes import Era

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


def talk(ours, mode, *conversations, bearer=BEARER, callback=None):
    """What clients of their own say at once, one for each conversation."""

    async def one(conversation):
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {bearer}"}) as client:
            transport = streamable_http_client(ours.session.url, http_client=client)
            async with Client(transport, mode=mode, elicitation_callback=callback) as agent:
                return await conversation(agent)

    async def run():
        async with asyncio.timeout(60):
            return await asyncio.gather(*map(one, conversations))

    return asyncio.run(run())


@promise("W6", "W16")
@MODES
def test_the_sdk_client_hears_every_step_in_order_before_the_result(place, mode):
    def act(flight):
        for step in range(1, 6):
            flight.progress(step, 5, f"step {step}")
        return OK

    async def conversation(client):
        steps = []

        async def heard(progress, total, message):
            steps.append((progress, total, message))

        await client.call_tool("act", {}, progress_callback=heard)
        return steps

    assert talk(place(a_tool("act", act)), mode, conversation) == [[(n, 5, f"step {n}") for n in range(1, 6)]]


@promise("W5", "W16")
@MODES
@pytest.mark.parametrize("streams", [False, True])
def test_a_call_that_the_sdk_client_gives_up_is_cancelled_and_the_session_goes_on(place, mode, streams):
    begun, stopped = threading.Event(), threading.Event()

    def hold(flight):
        flight.on_cancel(stopped.set)
        if streams:
            flight.progress(1)
        begun.set()
        assert stopped.wait(20)
        return OK

    async def conversation(client):
        async def heard(progress, total, message):
            pass

        call = asyncio.ensure_future(client.call_tool("hold", {}, progress_callback=heard))
        await asyncio.to_thread(begun.wait, 20)
        call.cancel()
        await asyncio.wait([call])
        await asyncio.to_thread(stopped.wait, 20)
        return stopped.is_set(), (await client.call_tool("act", {})).content[0].text

    assert talk(place(a_tool("hold", hold), a_tool("act")), mode, conversation) == [(True, "ok")]


@promise("W16")
@MODES
def test_sixteen_clients_of_four_calls_each_lose_nothing(place, mode):
    acted = []

    def act(flight):
        acted.append(flight.session.principal)
        return OK

    async def conversation(client):
        results = await asyncio.gather(*(client.call_tool("act", {}) for _ in range(4)))
        return [each.content[0].text for each in results]

    ours = place(a_tool("act", act, read_only=False))
    assert talk(ours, mode, *[conversation] * 16) == [["ok"] * 4] * 16
    assert len(acted) == 64  # counted where the calls come to
    assert len(set(acted)) == (1 if mode == "auto" else 16)
    assert ours.session._face._sessions._open == {}  # each has ended its session
    assert (ours.malformed, ours.session.oddities) == ([], ())


@promise("W15a")
@MODES
def test_an_sdk_client_without_the_bearer_gets_nowhere(place, mode):
    ours = place(a_tool("act", lambda flight: pytest.fail("it was called")))

    async def conversation(client):
        return await client.list_tools()

    with pytest.raises((MCPError, BaseExceptionGroup)):
        talk(ours, mode, conversation, bearer=BEARER[:-1])
    assert ours.malformed == []


@promise("W16")
@MODES
def test_a_person_at_one_client_answers_its_own_question(place, mode):
    def act(flight):
        if flight.era is Era.HANDSHAKE:
            answer = flight.ask("really?", SCHEMA, 20 * SECOND)
        elif flight.resumed is None:
            return input_required("state-1", "really?", SCHEMA)
        else:
            answer = flight.resumed.answer
        return {"content": [{"type": "text", "text": answer["action"]}]}

    async def callback(context, params):
        return types.ElicitResult(action="decline")

    async def conversation(client):
        return (await client.call_tool("act", {})).content[0].text

    ours = place(a_tool("act", act, read_only=False))
    assert talk(ours, mode, *[conversation] * 4, callback=callback) == ["decline"] * 4
