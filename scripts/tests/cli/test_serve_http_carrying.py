"""What happens in a call in flight, between the official SDK's client over HTTP and its server behind the broker."""

import asyncio
import json
import signal

import mcp_types as types
import pytest
from http_serving import OverHttp
from marks import promise
from talking_bench import noted, talking_root

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def talking(tmp_path):
    """Serves a case in which one call of one tool of the talking server is authorised."""
    made = []

    def make(tool, **arguments):
        root = talking_root(tmp_path, f"tool: {tool}, arguments: {json.dumps(arguments)}")
        made.append(OverHttp(root, "live/talking"))
        return made[-1]

    yield make
    for each in made:
        each.__exit__()


def case_of(server, mode):
    server.ended(signal.SIGINT if mode == "auto" else None)
    return server.case()


@promise("W1", "W4", "W16")
@MODES
def test_what_a_person_answers_over_http_reaches_the_server_that_asked(talking, mode):
    async def answers(_context, params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def conversation(client):
        return (await client.call_tool("talking__give", {"thing": "key"})).content[0].text

    server = talking("give", thing="key")
    said = server.talk(mode, conversation, answers)
    case = case_of(server, mode)
    assert (said, noted(server.root), case["verdict"], case["sent"]) == ("key for Ada", ["give accept"], "passed", 1)


@promise("W6", "W16")
@MODES
def test_a_server_s_progress_comes_as_events_before_the_result(talking, mode):
    async def conversation(client):
        steps = []

        async def heard(current, total, message):
            steps.append((current, total, message))

        return (await client.call_tool("talking__count", {}, progress_callback=heard)).content[0].text, steps

    server = talking("count")
    said = server.talk(mode, conversation)
    assert said == ("counted", [(step, 3.0, f"step {step}") for step in (1, 2, 3)])
    assert case_of(server, mode)["verdict"] == "passed"


@promise("W5", "W16", "L18")
@MODES
def test_a_call_that_is_given_up_over_http_is_cancelled_at_the_server_and_unresolved(talking, mode):
    server = talking("hang")

    async def conversation(client):
        call = asyncio.ensure_future(client.call_tool("talking__hang", {}))
        while not (server.root.parent / "noted").exists():
            await client.list_tools()
        call.cancel()
        await asyncio.wait([call])
        return (await client.call_tool("talking__hang", {})).structured_content["error"]

    assert server.talk(mode, conversation) == "spent"
    case = case_of(server, mode)
    assert noted(server.root) == ["hang", "hang cancelled"]
    assert (case["ends"], case["unresolved"], case["admitted"], case["sent"]) == ("unresolved", 1, 1, 1)
