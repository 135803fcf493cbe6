"""What happens in a call in flight, between the official SDK's client and its server, with the gateway in between."""

import asyncio
import os
import shutil
import sys

import pytest
from cli_bench import SCRIPTS, command, report_of
from marks import promise
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult
from talking_bench import noted, talking_root

ERAS = pytest.mark.parametrize("era", ["stateless", "legacy"])
CALLS = (
    "tool: give, arguments: {thing: key}",
    "tool: count, arguments: {}",
    "tool: hang, arguments: {}",
)
GIVE, COUNT, HANG = (f"talking__{name}" for name in ("give", "count", "hang"))


@pytest.fixture(scope="module")
def talking(tmp_path_factory):
    """A root for each era of the server, pinned once; forms are declared to it."""
    made = {}

    def make(era):
        if era not in made:
            folder = tmp_path_factory.mktemp(era)
            made[era] = talking_root(folder, *CALLS, legacy=era == "legacy")
        root = made[era]
        shutil.rmtree(root / "runs", ignore_errors=True)
        (root.parent / "noted").write_text("")
        return root

    return make


def talk(root, mode, conversation, **options):
    """A conversation of the SDK's client with `serve`; what it came to, and the case."""
    kept = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")}
    words = ["-m", "assisted_benchmark", "serve", "--root", str(root), "live/talking"]
    launch = StdioServerParameters(command=sys.executable, args=words, env={"PYTHONPATH": str(SCRIPTS)} | kept)

    async def run():
        async with asyncio.timeout(60), Client(launch, mode=mode, **options) as client:
            return await conversation(client)

    said = asyncio.run(run())
    (case,) = report_of(root)["cases"]
    return said, case


def text(result):
    return result.content[0].text


@promise("W1", "W4", "W5", "W6", "W7", "L18")
@pytest.mark.parametrize(
    ("mode", "era", "action"),
    [
        ("auto", "stateless", "accept"),
        ("auto", "legacy", "decline"),
        ("legacy", "stateless", "decline"),
        ("legacy", "legacy", "accept"),
    ],
)
def test_a_question_progress_and_a_cancellation_go_through_in_both_eras_on_both_sides(talking, mode, era, action):
    root, asked, steps = talking(era), [], []

    async def answers(_context, params):
        asked.append((params.message, sorted(params.requested_schema["properties"])))
        return ElicitResult(action=action, content={"name": "Ada"} if action == "accept" else None)

    async def progressed(current, total, message):
        steps.append((current, total, message))

    async def conversation(client):
        given = await client.call_tool(GIVE, {"thing": "key"})
        again = await client.call_tool(GIVE, {"thing": "key"})
        counted = await client.call_tool(COUNT, {}, progress_callback=progressed)
        with pytest.raises(Exception):  # noqa: B017 - how the SDK calls a timeout of its own is its own
            await client.call_tool(HANG, {}, read_timeout_seconds=1.0)
        last = await client.call_tool(HANG, {})
        return text(given), again.structured_content["error"], text(counted), last.structured_content["error"]

    said, case = talk(root, mode, conversation, elicitation_callback=answers)
    heard = "key for Ada" if action == "accept" else "nobody gets the key: decline"
    assert said == (heard, "spent", "counted", "spent")
    assert asked == [("The server `talking` asks: Who gets the key?", ["name"])]
    assert steps == [(step, 3.0, f"step {step}") for step in (1, 2, 3)]
    assert noted(root) == [f"give {action}", "count", "hang", "hang cancelled"]  # counted where they arrived
    counts = (case["admitted"], case["sent"], case["unresolved"], case["ends"])
    assert counts == (3, 3, 1, "unresolved")
    assert command(root, "verify")[0] == 0


@promise("W1", "W8")
@ERAS
def test_where_nobody_can_be_asked_the_server_hears_so(talking, era):
    root = talking(era)

    async def conversation(client):
        try:
            return text(await client.call_tool(GIVE, {"thing": "key"}))
        except Exception as error:
            return error.error.code

    said, case = talk(root, "auto", conversation)
    if era == "legacy":
        assert (said, noted(root)) == ("nobody gets the key: cancel", ["give cancel"])
    else:
        assert (said, noted(root), case["refusals"]) == (-32021, [], {"failed": 1})


@promise("W5", "L18")
def test_a_client_that_quits_in_a_call_leaves_a_case_that_is_reported(talking):
    root = talking("stateless")

    async def conversation(client):
        await client.call_tool(GIVE, {"thing": "key"})
        await client.call_tool(COUNT, {})
        call = asyncio.create_task(client.call_tool(HANG, {}))
        while "hang" not in noted(root):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        call.cancel()

    async def answers(_context, _params):
        return ElicitResult(action="cancel")

    _, case = talk(root, "auto", conversation, elicitation_callback=answers)
    assert noted(root)[-2:] == ["hang", "hang cancelled"]
    assert (case["ends"], case["unresolved"], case["sent"]) == ("unresolved", 1, 3)
