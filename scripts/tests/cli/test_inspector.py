"""The Inspector's command line (the TypeScript SDK) against what is served, over standard input and over HTTP."""

import json
import os
import subprocess

import pytest
from agent_peers import OK, a_tool
from cli_bench import PASSING, a_root, command, report_of
from http_peers import Place
from marks import promise
from served_bench import SERIES

pytestmark = pytest.mark.npm

CHANGES = ("--changes", "fabric", "--offline-endpoint", "--toolsets", "connectivity,mutate")
READS = ["fabric_get_connection", "fabric_get_network", "fabric_get_service_token"]


@pytest.fixture
def inspects(peers, tmp_path):
    """What the Inspector says that came of a method."""

    def inspect(*words, environment=()):
        script = peers.program("@modelcontextprotocol/inspector")
        kept = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")}
        done = subprocess.run(
            [peers.node, script, "--cli", *words],
            cwd=tmp_path,
            env=kept | {"PATH": str(peers.node.parent), "HOME": str(tmp_path)} | dict(environment),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return inspect


@pytest.fixture
def configured(tmp_path):
    """The words that make it start what a printed configuration names."""
    root = a_root(tmp_path / "root", plain=PASSING)

    def words(*served):
        config = tmp_path / "mcp.json"
        config.write_text(command(root, "serve", *served, "--print-config")[1])
        (name,) = json.loads(config.read_text())["mcpServers"]
        return ["--config", config, "--server", name]

    words.root = root
    return words


@promise("W1", "W16")
def test_the_inspector_lists_the_tools_of_changes_and_reads(inspects, configured):
    server = configured(*CHANGES)
    listed = [tool["name"] for tool in inspects(*server, "--method", "tools/list")["tools"]]
    assert (listed[:3], listed[-2:]) == (READS, ["fabric_propose_change", "fabric_confirm_change"])
    called = inspects(*server, "--method", "tools/call", "--tool-name", "fabric_list_networks")
    assert (called["isError"], called["structuredContent"]["result"]["data"]) == (False, [])


@promise("W8", "W16")
def test_a_change_that_does_not_pass_its_dry_run_is_told_to_the_inspector(inspects, configured):
    words = ["--method", "tools/call", "--tool-name", "fabric_propose_change", "--tool-arg", "change_type=network"]
    called = inspects(*configured(*CHANGES), *words)
    assert (called["isError"], called["structuredContent"]["refused"]) == (True, "not_authorised")


@promise("W15", "W16")
def test_a_case_that_the_inspector_played_is_reported(inspects, configured):
    called = inspects(*configured("live/plain/plain"), "--method", "tools/call", "--tool-name", SERIES)
    assert "isError" not in called or called["isError"] is False
    (case,) = report_of(configured.root)["cases"]
    assert (case["proposed"], case["sent"], case["calls"]) == (1, 1, {"lba": 1, "synthetic-ui": 0})
    assert case["agent"].startswith("client (inspector-cli")


@promise("W1", "W16")
def test_over_http_the_inspector_opens_a_session_and_calls(inspects):
    seen = []
    served = Place(a_tool("act", lambda flight: seen.append(flight.session.principal) or OK), bearerless=True)
    try:
        (listed,) = inspects(served.session.url, "--method", "tools/list")["tools"]
        assert listed["name"] == "act"
        assert inspects(served.session.url, "--method", "tools/call", "--tool-name", "act") == OK
    finally:
        served.close()
    (principal,) = seen
    assert principal.startswith("http-")
