"""`serve --http`: the official SDK's client in both eras, against each of the three kinds that are served."""

import asyncio
import json
import signal

import mcp_types as types
import pytest
from cli_bench import PASSING, a_root, command
from http_serving import OverHttp, Session
from marks import promise
from served_bench import APPROVE, CLICK, HOLD, SERIES
from serving_bench import call

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
CHANGES = ("--changes", "fabric", "--offline-endpoint", "--toolsets", "connectivity,mutate")
PROPOSE, CONFIRM, LISTED = "fabric_propose_change", "fabric_confirm_change", "fabric_list_networks"
NETWORK = {
    "change_type": "network",
    "spec": {
        "name": "plant-floor",
        "type": "EVPLAN",
        "scope": "REGIONAL",
        "notifications": [{"type": "ALL", "emails": ["noc@example.com"]}],
    },
}
REGISTRY = ("--registry", "pulp", "--offline-host", "--eligible", "observe", "--standing", "observe")
OBSERVING = (*REGISTRY, "--toolsets", "observe,control")
READ = "pulp_control_state_read"
SIXTEEN = """\
schema: assisted-benchmark/policy@1
id: sixteen
contract: lba-and-synthetic-ui.contract.yaml
expires_after: 120s
steps:
"""
SCENARIO = "schema: assisted-benchmark/scenario@1\nid: sixteen\npolicy: sixteen\nagent: plan\nservers: process\n"


@pytest.fixture
def serving(tmp_path):
    """Serves what stands in a root of its own."""
    root = a_root(tmp_path, plain=PASSING)
    made = []

    def make(*words, **options):
        made.append(OverHttp(root, *words, **options))
        return made[-1]

    make.root = root
    yield make
    for each in made:
        each.__exit__()


def says(action, content=None):
    async def callback(context, params):
        return types.ElicitResult(action=action, content=content)

    return callback


def receipts_of(root):
    return [json.loads(line) for line in (root / "runs" / "0001" / "receipts.jsonl").read_bytes().splitlines()]


# -- a scenario


@promise("W1", "W15", "W16")
@MODES
def test_the_sdk_client_plays_the_plan(serving, mode):
    server = serving("live/plain/plain")

    async def conversation(client):
        assert {SERIES, CLICK} <= {tool.name for tool in (await client.list_tools()).tools}
        looked = await client.call_tool(SERIES, {})
        chose = await client.call_tool(CLICK, APPROVE)  # the client holds it against the output schema
        again = await client.call_tool(CLICK, HOLD)
        return looked.is_error, chose.structured_content["accepted"], again.structured_content["error"]

    assert server.talk(mode, conversation) == (False, True, "spent")
    # A client of the handshake era ends its session; in the other nobody can, but the operator.
    code, err = server.ended(signal.SIGINT if mode == "auto" else None)
    assert code == (130 if mode == "auto" else 0)
    assert "again: assisted-benchmark serve --http live/plain/plain" not in err
    case = server.case()
    assert (case["verdict"], case["misses"], case["agent"]) == ("passed", [], "client (mcp 0.1.0)")
    assert (case["proposed"], case["admitted"], case["sent"], case["confirmed"]) == (3, 2, 2, 2)
    assert command(serving.root, "verify")[0] == 0


@promise("W16", "W17")
@MODES
def test_sixteen_concurrent_callers_lose_nothing_of_what_is_authorised(serving, mode):
    steps = "  - call: {server: synthetic-ui, tool: read_task, arguments: {taskId: {from: run.task}}}\n" * 16
    (serving.root / "contracts" / "sixteen.policy.yaml").write_text(SIXTEEN + steps)
    (serving.root / "fixtures" / "live" / "sixteen.scenario.yaml").write_text(SCENARIO)
    assert command(serving.root, "lint", "--write-pins")[0] == 0
    server = serving("live/sixteen")

    async def conversation(client):
        calls = (client.call_tool("synthetic-ui__read_task", {"taskId": "t-1"}) for _ in range(16))
        return {(each.is_error, each.structured_content["taskId"]) for each in await asyncio.gather(*calls)}

    assert server.talk(mode, conversation) == {(False, "t-1")}
    server.ended(signal.SIGTERM if mode == "auto" else None)
    case = server.case()
    assert (case["verdict"], case["ends"]) == ("passed", "succeeded")
    assert (case["proposed"], case["admitted"], case["sent"], case["confirmed"]) == (16, 16, 16, 16)
    assert case["calls"] == {"lba": 0, "synthetic-ui": 16}  # counted by the server, in its own process


@promise("W15a")
def test_a_second_session_that_asks_for_the_grant_of_the_first_is_refused_with_a_receipt(serving):
    server = serving("live/plain/plain")
    looking, mine, other = (Session(server) for _ in range(3))
    looking.leaves()  # it never called, so that it ends nothing but itself
    assert "error" not in mine.calls(SERIES)
    assert other.calls(CLICK, **APPROVE)["error"] == "not_authorised"
    assert mine.calls(CLICK, **APPROVE)["accepted"] is True
    other.leaves()
    mine.leaves()
    code, _ = server.ended()
    case = server.case()
    assert (code, case["verdict"], case["refusals"]) == (0, "passed", {"wrong_principal": 1})
    assert case["calls"] == {"lba": 1, "synthetic-ui": 1}
    decided = [each["reason"] for each in receipts_of(serving.root) if each["kind"] == "decision"]
    assert decided == ["admitted", "wrong_principal", "admitted"]


@promise("H20", "W16")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_what_is_served_and_the_report_is_still_written(serving, number):
    server = serving("live/plain/plain")
    session = Session(server)
    listening = session.asks("GET")
    session.calls(SERIES)
    code, err = server.ended(number)
    assert (code, listening.read()) == (130, b":\n\n")
    assert "0 passed, 1 failed, 0 could not run; interrupted with 0 of 1 left" in err.splitlines()
    assert "again: assisted-benchmark serve --http live/plain/plain" in [line.strip() for line in err.splitlines()]
    assert server.case()["sent"] == 1
    assert command(serving.root, "verify")[0] == 0


@promise("W3", "W16")
def test_a_body_that_is_no_message_has_its_receipt_as_a_line_has(serving):
    server = serving("live/plain/plain")
    session = Session(server)
    assert session.asks("POST", b"{]").status == 400
    session.calls(SERIES)
    session.leaves()
    server.ended()
    decided = [each["reason"] for each in receipts_of(serving.root) if each["kind"] == "decision"]
    assert decided == ["malformed_call", "admitted"]


# -- changes


@promise("M16", "M17", "M20", "W16")
@MODES
@pytest.mark.parametrize(
    ("action", "content", "networks"), [("accept", {"confirm": True}, 1), ("accept", None, 0), ("decline", None, 0)]
)
def test_what_the_person_at_an_sdk_client_answers_decides(serving, mode, action, content, networks):
    server = serving(*CHANGES)

    async def conversation(client):
        proposed = await client.call_tool(PROPOSE, NETWORK)
        confirmed = await client.call_tool(CONFIRM, {"token": proposed.structured_content["token"]})
        listed = await client.call_tool(LISTED, {})
        return confirmed.structured_content["executed"], listed.structured_content

    executed, listed = server.talk(mode, conversation, says(action, content))
    assert (executed, json.dumps(listed).count('"plant-floor"')) == (networks == 1, networks)
    code, err = server.ended(signal.SIGINT)
    assert (code, err) == (130, "assisted-benchmark: interrupted\n")


@promise("W15a")
def test_a_change_that_one_session_proposed_is_confirmed_by_no_other(serving):
    server = serving(*CHANGES)
    mine, other = Session(server, elicitation={}), Session(server, elicitation={})
    token = mine.calls(PROPOSE, **NETWORK)["token"]
    refused = other.calls(CONFIRM, token=token)
    assert (refused["executed"], refused["refused"]) == (False, "not_authorised")
    assert mine.calls(LISTED)["result"]["data"] == []


@promise("H20", "W5")
def test_an_interrupt_in_the_middle_of_a_question_sends_nothing_and_exits_130(serving):
    server = serving(*CHANGES, "--ledger", "kept")
    session = Session(server, elicitation={})
    token = session.calls(PROPOSE, **NETWORK)["token"]
    stream = session.posts(call(2, CONFIRM, token=token))
    while b"elicitation/create" not in stream.readline():
        pass
    code, err = server.ended(signal.SIGINT)
    assert (code, err) == (130, "assisted-benchmark: interrupted\n")
    again = serving(*CHANGES, "--ledger", "kept")
    assert again.ended(signal.SIGINT) == (130, "assisted-benchmark: interrupted\n")  # nothing was left open


# -- a registry


@promise("C21", "W16")
@MODES
def test_an_sdk_client_operates_an_instance_and_reads_of_it(serving, mode):
    server = serving(*OBSERVING)

    async def conversation(client):
        called = await client.call_tool(READ, {"instance_id": "instance-1", "input": {}})
        resources = (await client.list_resources()).resources
        read = await client.read_resource(str(resources[0].uri))
        return called.structured_content["ok"], len(read.contents)

    assert server.talk(mode, conversation) == (True, 1)
    assert server.ended(signal.SIGTERM) == (130, "assisted-benchmark: interrupted\n")


@promise("W15a")
def test_a_grant_of_one_session_is_no_other_s(serving):
    server = serving(*OBSERVING, "--ledger", "kept")
    mine, other = Session(server), Session(server)
    asked = {"instance_id": "instance-1", "operation_id": "dev.pulp.state/read@1"}
    grant = mine.calls("pulp_control_grant_request", **asked)["data"]["grant_id"]
    reads = {"instance_id": "instance-1", "input": {}, "grant_id": grant}
    assert mine.calls(READ, **reads)["ok"] is True
    refused = other.calls(READ, **reads)
    assert (refused["ok"], refused["error"]["code"]) == (False, "not_authorised")


# -- the configuration


SECRET = "a-secret-of-the-operator-0123456789"


@promise("W15a", "W16")
def test_what_is_printed_is_all_that_a_client_needs_and_each_start_has_a_bearer_of_its_own(serving):
    first, second = serving(*CHANGES), serving(*CHANGES)
    bearers = {each.config["headers"].pop("Authorization") for each in (first, second)}
    assert len(bearers) == 2
    assert {len(each) for each in bearers} == {len("Bearer ") + 64}
    for each in (first, second):
        assert each.config == {"type": "http", "url": f"http://127.0.0.1:{each.port}/mcp", "headers": {}}


@promise("W15a")
def test_the_operator_may_set_the_bearer_and_the_configuration_is_printed_beforehand(serving):
    words = (*CHANGES, "--http", "--port", "8123", "--print-config")
    printed = {}
    for secret in ("", SECRET):
        code, out, err = command(serving.root, "serve", *words, ASSISTED_BENCHMARK_AGENT_BEARER=secret)
        (printed[secret],) = json.loads(out)["mcpServers"].values()
        assert (code, err) == (0, "")
    assert printed[SECRET]["headers"] == {"Authorization": f"Bearer {SECRET}"}
    assert printed[""]["headers"] == {"Authorization": "Bearer ${ASSISTED_BENCHMARK_AGENT_BEARER}"}
    assert {each["url"] for each in printed.values()} == {"http://127.0.0.1:8123/mcp"}
    server = serving(*CHANGES, ASSISTED_BENCHMARK_AGENT_BEARER=SECRET)
    assert server.config["headers"] == printed[SECRET]["headers"]
    assert PROPOSE in json.dumps(Session(server).answers("tools/list"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "8123"), "--port is of --http alone"),
        (("--http", "--print-config"), "give --port"),
        (("--http", "--port", "70000"), "`70000` is not the number of a port"),
        (("--http", "--port", "x"), "`x` is not a whole number"),
    ],
)
def test_a_wrong_call_is_told_on_standard_error_alone(serving, words, said):
    code, out, err = command(serving.root, "serve", *CHANGES, *words)
    assert (code, out, said in err) == (2, "", True)


@pytest.mark.parametrize("secret", ["short", "a bearer with blanks in it, long enough", "ümlaut" * 10])
def test_a_bearer_that_no_header_can_hold_or_that_can_be_guessed_is_refused(serving, secret):
    code, out, err = command(serving.root, "serve", *CHANGES, "--http", ASSISTED_BENCHMARK_AGENT_BEARER=secret)
    assert (code, out, "is not a bearer" in err, secret in err) == (2, "", True, False)


def test_a_port_that_is_taken_is_told(serving):
    port = serving(*CHANGES).port
    code, out, err = command(serving.root, "serve", *CHANGES, "--http", "--port", port)
    assert (code, out, "the system refused" in err) == (2, "", True)


def test_without_the_extra_http_serves_nothing_and_says_what_to_install(serving, tmp_path):
    (tmp_path / "lacking").mkdir()
    (tmp_path / "lacking" / "uvicorn.py").write_text("raise ModuleNotFoundError(name='uvicorn')\n")
    from cli_bench import SCRIPTS

    path = f"{tmp_path / 'lacking'}:{SCRIPTS}"
    code, out, err = command(serving.root, "serve", *CHANGES, "--http", PYTHONPATH=path)
    assert (code, out) == (2, "")
    assert "`uvicorn`" in err
    assert "assisted-benchmark[http]" in err
