"""Programs as agents: whatever one does, its case ends, is scored by what was proposed, and leaves nothing running."""

import json
import os
import signal
from pathlib import Path

import pytest
from attrs import evolve
from marks import promise
from suite_world import ROOT, a_root, cases_in, ran, scenario

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.suite.live.agents import Outside
from assisted_benchmark.suite.live.door import SERVER
from assisted_benchmark.suite.live.program import Program
from assisted_benchmark.suite.result import VARIES, Verdict
from assisted_benchmark.suite.runner import RunPlan, discover, run

PLAIN = f"import sys; sys.path.insert(0, {str(ROOT / 'fixtures' / 'agents')!r}); import plain\n"
LOOK = ["lba__get_benchmark_series", "{}"]
APPROVE = ["synthetic-ui__click_target", '{"taskId": "t-1", "targetId": "approve"}']
HOLD = ["synthetic-ui__click_target", '{"taskId": "t-1", "targetId": "hold"}']
PLAN = f"{PLAIN}plain.main({LOOK + APPROVE!r})\n"
DONE = "expect: {ends: succeeded, oracle: approved, calls: {lba: 1, synthetic-ui: 1}}\n"
UNTOUCHED = "expect: {decisions: [], ends: sealed}\n"

SDK = """
import asyncio, json, os, sys
from mcp import Client, StdioServerParameters

async def main(mode):
    with open(os.environ["ASSISTED_BENCHMARK_CONFIG"]) as file:
        (server,) = json.load(file)["mcpServers"].values()
    async with Client(StdioServerParameters(**server), mode=mode) as client:
        await client.list_tools()
        await client.call_tool("lba__get_benchmark_series", {})
        for target in ("approve", "hold"):
            await client.call_tool("synthetic-ui__click_target", {"taskId": "t-1", "targetId": target})
        print("spoke", client.protocol_version, file=sys.stderr)

asyncio.run(main(sys.argv[1]))
"""


def a_case(folder, program, expect=DONE, *words, **more):
    """A case whose agent is this text as a Python program."""
    script = folder / "agent.py"
    script.write_text(program)
    agent = {"command": ["{python}", str(script), *words], **more}
    text = scenario("tried", f"run: {{seed: 7}}\nagent: {json.dumps(agent)}\n{expect}")
    return cases_in(a_root(folder, tried=text))["tried/plain"]


def missed(result):
    return [(each.what, each.expected, each.actual) for each in result.misses]


@promise("H6")
@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_official_sdk_s_client_is_an_agent_in_both_eras(tmp_path, mode, version):
    expect = "expect: {decisions: [admitted, admitted, already_selected], ends: succeeded, oracle: approved}\n"
    result = ran(a_case(tmp_path, SDK, expect, mode)).result
    assert (result.verdict, missed(result)) == (Verdict.PASSED, [])
    assert f"spoke {version}" in result.detail
    assert (result.proposed, result.admitted, result.sent) == (3, 2, 2)
    assert result.agent == "command (mcp 0.1.0)"


@pytest.mark.npm
@promise("H6")
def test_the_inspector_s_command_line_is_an_agent(tmp_path, monkeypatch, peers):
    monkeypatch.setenv("PATH", str(peers.node.parent))  # where it looks for the Node that runs its other half
    script = peers.program("@modelcontextprotocol/inspector")
    words = ["--cli", "--config", "{config}", "--server", SERVER, "--method", "tools/call", "--tool-name", LOOK[0]]
    agent = json.dumps({"command": [str(peers.node), str(script), *words], "environment": ["PATH"]})
    text = scenario("tried", f"agent: {agent}\nexpect: {{decisions: [admitted], ends: sealed, calls: {{lba: 1}}}}\n")
    result = ran(cases_in(a_root(tmp_path, tried=text))["tried/plain"]).result
    assert (result.verdict, missed(result)) == (Verdict.PASSED, [])
    assert result.agent.startswith("command (")


@promise("H6", "H8")
def test_a_program_that_dies_is_scored_by_what_it_did(tmp_path):
    result = ran(a_case(tmp_path, f"{PLAIN}plain.main({LOOK!r}); sys.exit(3)\n")).result
    assert (result.verdict, result.proposed, result.sent) == (Verdict.FAILED, 1, 1)
    assert missed(result)[0] == ("calls at synthetic-ui", "1", "0")
    assert result.detail.startswith("the agent's program was started; it exited with status 3")


@promise("H6", "H8")
def test_a_program_that_never_comes_has_missed_that(tmp_path):
    result = ran(a_case(tmp_path, "", UNTOUCHED)).result
    assert (result.verdict, missed(result)) == (Verdict.FAILED, [("agent", "a session", "it never connected")])
    assert result.detail == "the agent's program was started; it exited with status 0"
    assert VARIES in result.stamps


@promise("H6")
@pytest.mark.parametrize("deaf", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"], ids=["hears", "deaf"])
def test_a_program_that_does_not_end_is_ended_and_has_missed_that(tmp_path, deaf):
    program = f"{PLAN}import signal\n{deaf}\nsignal.pause()\n"
    result = ran(a_case(tmp_path, program, within="1500ms")).result
    assert missed(result) == [("agent", "an end within 1.5 s", "it had to be ended")]
    assert (result.sent, result.ends) == (2, "succeeded")
    assert ("SIGKILL" if deaf else "SIGTERM") in result.detail


@promise("H6")
def test_what_a_program_floods_is_read_and_its_end_is_kept(tmp_path):
    flood = "import sys\nfor out in (sys.stdout, sys.stderr):\n    out.write('x' * 5_000_000 + '\\nlast\\n')\n"
    result = ran(a_case(tmp_path, flood + PLAN)).result
    assert result.verdict is Verdict.PASSED
    assert len(result.detail) < 1000
    assert result.detail.endswith('"taskId": "t-1"}}')


@promise("H6")
def test_lines_that_are_no_messages_are_refused_and_the_session_goes_on(tmp_path):
    program = PLAN.replace("plain.main", "plain.json.dumps = junk(plain.json.dumps); plain.main")
    junk = "def junk(real):\n    return lambda value: '{\\n' * 3 + real(value)\n"
    result = ran(a_case(tmp_path, junk + program, "expect: {ends: succeeded, oracle: approved}\n")).result
    assert result.verdict is Verdict.PASSED
    assert dict(result.refusals).keys() == {"malformed_call"}
    assert (result.sent, result.attacker_sent) == (2, 0)


@promise("H6", "W15a")
def test_one_client_gets_the_session_and_nobody_after_it(tmp_path):
    again = "try:\n    plain.main([])\nexcept Exception as refused:\n    sys.exit(7)\n"
    result = ran(a_case(tmp_path, PLAN + again)).result
    assert (result.verdict, result.proposed) == (Verdict.PASSED, 2)
    assert "exited with status 7" in result.detail
    assert "the session is another client's, or over" in result.detail
    assert result.detail.endswith("; 1 further connections were turned away")


@promise("H6", "W15a")
@pytest.mark.parametrize("said", ["b'guess\\n'", "b'x' * 1000", "b''"])
def test_nobody_gets_the_session_without_its_secret(tmp_path, said):
    stranger = (
        "import json, os, socket\n"
        "with open(os.environ['ASSISTED_BENCHMARK_CONFIG']) as file:\n"
        "    (server,) = json.load(file)['mcpServers'].values()\n"
        "line = socket.socket(socket.AF_UNIX)\n"
        "line.connect(server['env']['ASSISTED_BENCHMARK_SOCKET'])\n"
        f"line.sendall({said})\n"
        "line.shutdown(socket.SHUT_WR)\n"
        "try:\n    assert line.recv(1) == b''\nexcept ConnectionError:\n    pass\n"
    )
    result = ran(a_case(tmp_path, stranger + PLAN)).result
    assert (result.verdict, result.sent) == (Verdict.PASSED, 2)
    assert result.detail.endswith("; 1 further connections were turned away")


@promise("H6")
def test_a_program_gets_the_variables_that_its_scenario_names_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setenv("GIVEN", "a-secret-of-mine")
    monkeypatch.setenv("NOT_GIVEN", "another-secret")
    seen = tmp_path / "seen.json"
    program = (
        "import json, os, sys\n"
        "open(sys.argv[1], 'w').write(json.dumps([dict(os.environ), os.getcwd(), sys.argv[2]]))\n"
        "own = json.load(open(sys.argv[2]))['mcpServers']['assisted-benchmark']['env']\n"
        "open(sys.argv[3], 'w').write(own['ASSISTED_BENCHMARK_SECRET'])\n"
        "sys.stderr.write(os.environ['GIVEN'] + ' ' + own['ASSISTED_BENCHMARK_SECRET'] + '\\n')\n"
    )
    case = a_case(tmp_path, program, UNTOUCHED, str(seen), "{config}", str(tmp_path / "own"), environment=["GIVEN"])
    result = ran(case).result
    environment, folder, config = json.loads(seen.read_text())
    assert environment.keys() - {"LC_CTYPE"} == {"HOME", "GIVEN", "ASSISTED_BENCHMARK_CONFIG"}
    assert (environment["GIVEN"], environment["ASSISTED_BENCHMARK_CONFIG"]) == ("a-secret-of-mine", config)
    assert environment["HOME"] != os.environ.get("HOME")
    assert not any(os.path.exists(each) for each in (environment["HOME"], folder, config))
    assert "secret" not in result.detail
    assert (tmp_path / "own").read_text() not in result.detail
    assert "its standard error ends" in result.detail


@promise("H6", "H8")
def test_a_program_that_cannot_be_run_is_no_verdict(tmp_path, monkeypatch):
    monkeypatch.delenv("ABSENT", raising=False)
    wanting = ran(a_case(tmp_path, "", environment=["ABSENT"])).result
    assert (wanting.verdict, wanting.reason) == (Verdict.COULD_NOT_RUN, "launch_failed")
    lost = Program(argv=("/nowhere/agent",), folder=str(tmp_path), within_ns=1)
    case = a_case(tmp_path, "")
    nowhere = ran(evolve(case, agent=evolve(case.agent, outside=Outside(drive=lost)))).result
    assert (nowhere.verdict, nowhere.reason) == (Verdict.COULD_NOT_RUN, "launch_failed")


@promise("H6")
def test_nothing_that_a_program_started_outlives_its_case(tmp_path):
    child = tmp_path / "child"
    program = (
        "import subprocess, sys\n"
        "code = 'import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()'\n"
        "child = subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
        f"open({str(child)!r}, 'w').write(str(child.pid))\n"
    )
    assert ran(a_case(tmp_path, program + PLAN)).result.verdict is Verdict.PASSED
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), signal.SIGCONT)


@promise("H6")
def test_the_folder_of_a_programs_configuration_goes_with_all_that_a_killed_harness_leaves(tmp_path):
    note = tmp_path / "note"
    names = "os.environ['HOME'], os.environ['ASSISTED_BENCHMARK_CONFIG']"
    program = f"import json, os\nopen({str(note)!r}, 'w').write(json.dumps([{names}]))\n"
    assert ran(a_case(tmp_path, program + PLAN)).result.verdict is Verdict.PASSED
    home, config = map(Path, json.loads(note.read_text()))
    assert (config.parents[1], config.parents[1].exists()) == (home.parents[1], False)


@promise("H6", "H8")
def test_repetitions_of_a_program_are_counted_and_never_said_to_be_identical(tmp_path):
    note = tmp_path / "note"
    once = f"import os, sys\nif os.path.exists({str(note)!r}):\n    sys.exit(1)\nopen({str(note)!r}, 'w').close()\n"
    case = a_case(tmp_path, once + PLAN)
    plan = RunPlan(durability="memory", repeat=3, expect_identical=True)
    (result,) = run([case], plan).cases
    assert (result.verdict, result.runs, result.passes) == (Verdict.FAILED, 3, 1)
    assert "identical" not in [miss.what for miss in result.misses]
    scripted = cases_in(a_root(tmp_path / "b", x=scenario("x", "agent: {plan: approve}\n")))["x/plain"]
    (fixed,) = run([scripted], plan).cases
    assert (fixed.runs, fixed.passes, fixed.stamps) == (0, 0, ())


@promise("H6", "H15")
def test_programs_play_in_several_workers_at_a_time(tmp_path):
    cases = discover(ROOT, [ROOT / "fixtures" / "live" / "a-program.scenario.yaml"])
    servers = RunPlan(durability="memory", jobs=2, servers="process")
    result = run(cases, servers)
    assert [(case.verdict, missed(case)) for case in result.cases] == [(Verdict.PASSED, [])] * 3
    assert VARIES in result.stamps


@promise("H3")
@pytest.mark.parametrize("body", ["[]", "agent", "[1]", "[a], within: soon", "[a], environment: [1]", "[a], other: 1"])
def test_a_command_that_makes_no_sense_is_refused(tmp_path, body):
    root = a_root(tmp_path, x=scenario("x", f"agent: {{command: {body}}}\n"))
    with pytest.raises(DocumentError):
        discover(root)
