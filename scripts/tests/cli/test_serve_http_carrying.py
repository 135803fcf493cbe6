"""What happens in a call in flight, between the official SDK's client over HTTP and its server behind the broker."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import mcp_types as types
import pytest
from http_serving import OverHttp
from marks import promise
from pin_bench import a_root, fill_in, pinned

from assisted_benchmark.suite.lint import write_pins

PEER = Path(__file__).parent / "peers" / "talking_server.py"
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
POLICY = """\
schema: assisted-benchmark/policy@1
id: talking
contract: talking.contract.yaml
expires_after: 120s
steps:
  - call: {{server: talking, tool: {tool}, arguments: {arguments}}}
"""
SCENARIO = "schema: assisted-benchmark/scenario@1\nid: talking\npolicy: talking\nagent: plan\nservers: process\n"


@pytest.fixture
def talking(tmp_path, capsys):
    """Serves a case in which one call of one tool of the talking server is authorised."""
    made = []

    def make(tool, **arguments):
        root = a_root(tmp_path / "root")
        words = [sys.executable, str(PEER), str(tmp_path)]
        assert pinned(root, "talking", words, "--unpinned", "--capability", "elicitation") == 0
        fill_in(root, "talking", "act")
        policy = POLICY.format(tool=tool, arguments=json.dumps(arguments))
        (root / "contracts" / "talking.policy.yaml").write_text(policy)
        (root / "fixtures" / "live" / "talking.scenario.yaml").write_text(SCENARIO)
        write_pins(root)
        made.append(OverHttp(root, "live/talking"))
        return made[-1]

    yield make
    for each in made:
        each.__exit__()


def noted(server):
    return (server.root.parent / "noted").read_text().splitlines()


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
    assert (said, noted(server), case["verdict"], case["sent"]) == ("key for Ada", ["give accept"], "passed", 1)


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
    assert noted(server) == ["hang", "hang cancelled"]
    assert (case["ends"], case["unresolved"], case["admitted"], case["sent"]) == ("unresolved", 1, 1, 1)
