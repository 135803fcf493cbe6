import json

import pytest
from marks import promise
from workload_process import LBA

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.faults import Delivery, Face, Fault, FaultKind
from assisted_benchmark.workloads.recorded import Recorded, load

TOOL = {"name": "look", "inputSchema": {"type": "object"}, "x-unknown": [1.0, None]}


def result(text):
    return {"content": [{"type": "text", "text": text}]}


def a_cassette(**changes):
    good = {
        "schema": "assisted-benchmark/cassette@1",
        "protocol": "2025-06-18",
        "server_info": {"name": "recorded"},
        "tools": [TOOL],
        "replies": {"look": [{"arguments": {"at": 1}, "result": result("one")}]},
    }
    return {key: value for key, value in (good | changes).items() if value is not None}


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "cassette.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


@promise("H5a")
def test_the_tool_list_is_the_recorded_one_unknown_keys_included(written):
    model = Recorded(load(written(a_cassette())))
    assert (model.tools(), model.server_info) == ([TOOL], {"name": "recorded"})
    assert type(model.tools()[0]["x-unknown"][0]) is float


@promise("H5a")
def test_the_lba_cassette_has_the_public_tool_list_and_a_reply_to_every_tool():
    cassette = load(LBA / "cassette.json")
    recorded = json.loads((LBA / "tools-list.json").read_text(encoding="utf-8"))
    assert (list(cassette.tools), len(cassette.tools)) == (recorded, 13)
    assert cassette.replies.keys() == {tool["name"] for tool in recorded}
    assert cassette.server_info == {"name": "labview-benchmark-actor", "version": "1.4.14"}


@promise("H5a")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param({"at": 1, "how": "far"}, "one", id="the same"),
        pytest.param({"how": "far", "at": 1}, "one", id="another key order"),
        pytest.param({"at": 2}, "any", id="no reply of its own"),
        pytest.param({"at": True, "how": "far"}, "any", id="true is not 1"),
        pytest.param({"at": "1", "how": "far"}, "any", id="a string is no number"),
        pytest.param({}, "any", id="nothing"),
    ],
)
def test_the_first_reply_whose_arguments_are_the_calls_is_played(written, arguments, text):
    replies = [
        {"arguments": {"at": 1, "how": "far"}, "result": result("one")},
        {"result": result("any")},
        {"arguments": {"at": 2}, "result": result("never")},
    ]
    model = Recorded(load(written(a_cassette(replies={"look": replies}))))
    assert model.call("look", arguments) == result(text)
    assert [(event.kind, event.tool, event.facts) for event in model.events] == [("replied", "look", {})]


@promise("H5a")
@pytest.mark.parametrize(("name", "arguments"), [("look", {"at": 2}), ("peek", {"at": 1})])
def test_a_call_that_no_reply_fits_is_an_error_result(written, name, arguments):
    model = Recorded(load(written(a_cassette())))
    assert model.call(name, arguments)["isError"] is True
    assert [event.kind for event in model.events] == ["rejected"]


def test_a_cassette_behind_a_face_has_faults_too():
    face = Face(Recorded(load(LBA / "cassette.json")), [Fault(FaultKind.CONTRADICT, "run_quorum")])
    answer = face.call("run_quorum", {"bundles": []})
    assert (answer.delivery, answer.result["isError"]) == (Delivery.WHOLE, True)
    assert answer.result["structuredContent"] == {"accepted": True}
    assert face.call("run_quorum", {"bundles": []}).result == answer.result


@promise("L10")
@pytest.mark.parametrize("tool", ["spin_up_witness", "teardown"])
@pytest.mark.parametrize("plane", ["CODESPACE", "VBOX", "WIN"])
def test_the_inert_text_fixture_speaks_of_commands_and_carries_nothing_but_text(tool, plane):
    reply = Recorded(load(LBA / "cassette.json")).call(tool, {"plane": plane})
    assert (list(reply), len(reply["content"])) == (["content"], 1)
    content = reply["content"][0]
    assert content["type"] == "text"
    assert any(word in content["text"] for word in ("click_target", "tools/call"))


@pytest.mark.parametrize(
    ("content", "reasons"),
    [
        pytest.param(b"{", [Reason.MALFORMED_CALL], id="no JSON"),
        pytest.param(b'{"tools": [], "tools": []}', [Reason.DUPLICATE_KEY], id="a key twice"),
        pytest.param([], [Reason.WRONG_VALUE], id="no object"),
        pytest.param(
            a_cassette(protocol=None, tools={}, speed=2),
            [Reason.UNKNOWN_KEY, Reason.MISSING_KEY, Reason.WRONG_VALUE],
            id="several faults at once",
        ),
        pytest.param(a_cassette(schema="assisted-benchmark/cassette@2"), [Reason.WRONG_VALUE], id="another schema"),
        pytest.param(
            a_cassette(tools=[{"name": "look"}], replies={}), [Reason.WRONG_VALUE], id="a tool without schema"
        ),
        pytest.param(a_cassette(tools=["look"], replies={}), [Reason.WRONG_VALUE], id="a tool that is no object"),
        pytest.param(a_cassette(tools=[TOOL, TOOL]), [Reason.DUPLICATE_ID], id="a tool twice"),
        pytest.param(a_cassette(replies={"peek": []}), [Reason.UNKNOWN_REFERENCE], id="a reply of no tool"),
        pytest.param(a_cassette(replies={"look": {}}), [Reason.WRONG_VALUE], id="replies that are no list"),
        pytest.param(
            a_cassette(replies={"look": [{}, {"result": {}}, {"result": result("x"), "when": 1}, {"result": "x"}]}),
            [Reason.WRONG_VALUE] * 4,
            id="replies of the wrong shape",
        ),
    ],
)
def test_a_cassette_of_another_shape_is_refused_with_everything_that_is_wrong(written, content, reasons):
    path = written(content)
    with pytest.raises(DocumentError) as caught:
        load(path)
    assert [problem.reason for problem in caught.value.problems] == reasons
    assert {problem.file for problem in caught.value.problems} == {str(path)}


def test_a_cassette_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DocumentError) as caught:
        load(tmp_path / "none.json")
    assert caught.value.reason is Reason.UNREADABLE
