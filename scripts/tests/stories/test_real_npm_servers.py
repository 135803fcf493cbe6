"""Public npm servers are pinned, driven through the live broker, and compared with what they were."""

import json

import pytest
from marks import promise
from pin_bench import a_root, cases_of, drifted, file_of, fill_in, pinned, results, the_cases, the_server

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.result import Verdict

pytestmark = pytest.mark.npm

MCP = "@modelcontextprotocol"


@pytest.fixture
def root(tmp_path):
    return a_root(tmp_path / "root")


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder.resolve()


def words(peers, name, *arguments):
    return (peers.node, peers.program(f"{MCP}/server-{name}"), *arguments)


@promise("W10", "W12")
@pytest.mark.parametrize(
    ("name", "tools", "steps"),
    [
        ("everything", 13, [("echo", {"message": "once"}), ("get-sum", {"a": 2, "b": 3})]),
        (
            "sequential-thinking",
            1,
            [
                (
                    "sequentialthinking",
                    {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
                )
            ],
        ),
    ],
)
def test_a_server_is_pinned_filled_in_and_driven_through_the_broker(root, peers, name, tools, steps):
    assert pinned(root, name, words(peers, name)) == 0
    with pytest.raises(DocumentError) as caught:
        load_contract(file_of(root, name), root)
    assert [each.reason for each in caught.value.problems] == [Reason.MISSING_KEY] * tools
    assert fill_in(root, name) == tools
    done = results(the_cases(root, name, *steps), name)
    assert {key: (each.verdict, each.misses) for key, each in done.items()} == {
        f"{name}/again": (Verdict.PASSED, ()),
    }


@promise("L14")
def test_a_file_is_written_once_however_often_the_agent_asks(root, peers, data):
    assert pinned(root, "filesystem", words(peers, "filesystem", data)) == 0
    assert fill_in(root, "filesystem", "act") == 14
    edit = {"path": f"{data}/log", "edits": [{"oldText": "x", "newText": "xx"}], "dryRun": False}
    cases = the_cases(root, "filesystem", ("edit_file", edit), ("read_text_file", {"path": f"{data}/log"}))
    (data / "log").write_text("x\n")
    (done,) = results(cases, "filesystem").values()
    assert (done.verdict, done.misses) == (Verdict.PASSED, ())
    assert (data / "log").read_text() == "xx\n"  # a second call would make it `xxx`


@promise("L14")
def test_a_memory_holds_one_entry_of_two_calls(root, peers, data):
    variable = f"MEMORY_FILE_PATH={data}/memory.jsonl"
    assert pinned(root, "memory", words(peers, "memory"), "--env", variable) == 0
    assert fill_in(root, "memory", "act") == 9
    entity = {"name": "a", "entityType": "thing", "observations": ["seen"]}
    cases = the_cases(root, "memory", ("create_entities", {"entities": [entity]}), ("read_graph", {}))
    done = results({"memory/again": cases["memory/again"]}, "memory")["memory/again"]
    assert (done.verdict, done.misses) == (Verdict.PASSED, ())
    assert [json.loads(line) for line in (data / "memory.jsonl").read_text().splitlines()] == [
        {"type": "entity", **entity}
    ]


@promise("W11")
def test_a_server_that_lists_other_tools_to_other_clients_has_two_identities(root, peers, capsys):
    asks = 'elicitation={"form": {}, "url": {}}'
    for name, flags in (("plain", ()), ("asking", ("--capability", asks))):
        assert pinned(root, name, words(peers, "everything"), "--server", "everything", *flags) == 0
        fill_in(root, name)
    plain, asking = (the_server(root, name) for name in ("plain", "asking"))
    assert (len(plain.tools), len(asking.tools)) == (13, 15)
    assert plain.launch == asking.launch
    assert plain.digest != asking.digest
    code, rows = drifted(root, capsys=capsys)
    assert (code, [row["outcome"] for row in rows]) == (0, ["as_pinned", "as_pinned"])
    # What was declared is part of the pin: without it the same program is another server.
    text = file_of(root, "asking").read_text()
    file_of(root, "asking").write_text(
        "".join(line for line in text.splitlines(keepends=True) if "capabilities:" not in line)
    )
    code, (row,) = drifted(root, "asking", capsys=capsys)
    assert (code, row["outcome"]) == (4, "drift")
    gone = {each["tool"] for each in row["changes"] if each["after"] is None}
    assert gone == {tool.name for tool in asking.tools} - {tool.name for tool in plain.tools}


@promise("W11")
def test_two_servers_that_say_the_same_of_themselves_are_told_apart_by_what_is_launched(root, peers, tmp_path, data):
    other = tmp_path / "other"
    other.mkdir()
    for name, folder in (("one", data), ("two", other.resolve())):
        assert pinned(root, name, words(peers, "filesystem", folder)) == 0
        fill_in(root, name, "act")
    one, two = the_server(root, "one"), the_server(root, "two")
    assert one.tools_digest == two.tools_digest
    assert one.digest != two.digest
    # Both in one contract: the call that was sealed for one of them reaches that one.
    block = file_of(root, "two").read_text().partition("servers:\n")[2]
    with file_of(root, "one").open("a") as contract:
        contract.write(block)
    file_of(root, "two").unlink()
    the_cases(root, "one", ("write_file", {"path": f"{data}/x", "content": "y"}))
    scenario = root / "fixtures" / "live" / "one.scenario.yaml"
    text = scenario.read_text().replace("calls: {one: 1}", "calls: {one: 1, two: 0}")
    scenario.write_text(f"{text}proposals:\n  elsewhere: {{at: 1, server: two, refused: server_substituted}}\n")
    cases = cases_of(root)
    assert sorted(cases) == ["one/again", "one/elsewhere"]
    done = results(cases, "one")
    assert {key: each.misses for key, each in done.items()} == dict.fromkeys(cases, ())
