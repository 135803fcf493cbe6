"""Which tool a transcript's call means: by whatever name clients have for it, and never by a guess between two."""

import json

import pytest
from live_bench import CLICK, READ, SERIES, a_server
from marks import promise

from assisted_benchmark.contract.model import SERVER_SET, Contract
from assisted_benchmark.kernel.errors import DocumentError, InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.live.transcripts.calls import RecordedCall, SessionTurn, Transcript
from assisted_benchmark.suite.live.transcripts.naming import Names
from assisted_benchmark.suite.live.transcripts.playing import proposals_of

# Both have click_target; one has a name that is plain, the other one that clients change.
CONTRACT = Contract(
    schema=SERVER_SET, id="two", servers=(a_server("lba", SERIES, CLICK), a_server("my.ui", CLICK, READ))
)


@promise("H6")
@pytest.mark.parametrize(
    ("server", "tool", "place"),
    [
        ("", "get_benchmark_series", ("lba", "get_benchmark_series")),
        ("", "lba__get_benchmark_series", ("lba", "get_benchmark_series")),
        ("", "mcp__lba__get_benchmark_series", ("lba", "get_benchmark_series")),
        ("", "mcp__assisted-benchmark__lba__get_benchmark_series", ("lba", "get_benchmark_series")),
        ("", "mcp__my_ui__click_target", ("my.ui", "click_target")),
        ("", "lba__click_target", ("lba", "click_target")),
        ("lba", "click_target", ("lba", "click_target")),
        ("my.ui", "click_target", ("my.ui", "click_target")),
        ("", "bash", None),
        ("", "mcp__other__read", None),
        ("", "lba__", None),
        ("other", "click_target", None),
        ("lba", "read_task", None),
    ],
)
def test_a_name_means_the_tool_that_clients_call_so(server, tool, place):
    assert Names(CONTRACT).find(server, tool) == place


@promise("H6")
def test_a_name_of_two_tools_means_neither_and_both_are_named():
    with pytest.raises(InputError) as caught:
        Names(CONTRACT).find("", "click_target")
    assert caught.value.reason is Reason.DUPLICATE_TOOL
    assert all(word in caught.value.detail for word in ("`lba`", "`my.ui`", "`lba__click_target`"))


@promise("H6")
def test_every_name_that_is_of_two_is_told_with_its_place():
    calls = tuple(RecordedCall("click_target", b"{}", turn, place=f"t:{turn}") for turn in range(2))
    with pytest.raises(DocumentError) as caught:
        proposals_of(Transcript(kind="mcp", entries=calls), CONTRACT)
    assert [(each.reason, each.file) for each in caught.value.problems] == [
        (Reason.DUPLICATE_TOOL, "t:0"),
        (Reason.DUPLICATE_TOOL, "t:1"),
    ]


def proposed(arguments, tool="get_benchmark_series", server=""):
    (raw,) = proposals_of(Transcript(kind="mcp", entries=(RecordedCall(tool, arguments, 0, server),)), CONTRACT)
    return raw


@promise("H6")
@pytest.mark.parametrize("arguments", [b"{ }", b'{"a": 1.0, "a": 2}', b"[1,2]", b"NaN", b'{"a":1e999}', b' "x" '])
def test_the_bytes_of_arguments_are_the_proposals(arguments):
    assert proposed(arguments) == b'{"arguments":%b,"server":"lba","tool":"get_benchmark_series"}' % arguments


@promise("H6")
@pytest.mark.parametrize("arguments", [b'{},"grant":"x"', b"", b"{", b"{}}", b"\xff", b"[" * 100_000])
def test_arguments_that_are_no_json_can_become_none_beside_other_bytes(arguments):
    assert proposed(arguments) == arguments


@promise("H6")
def test_a_call_of_a_tool_that_nobody_has_is_proposed_all_the_same():
    assert json.loads(proposed(b"{}", "bash")) == {"arguments": {}, "server": "unknown-server", "tool": "bash"}
    assert json.loads(proposed(b"{}", "bash", "shell")) == {"arguments": {}, "server": "shell", "tool": "bash"}


@promise("H7")
def test_a_recorded_turn_is_proposed_as_it_was():
    turn = SessionTurn(b'{"arguments" : {}}', 0, word="malformed_call")
    assert proposals_of(Transcript(kind="session", entries=(turn,)), CONTRACT) == (b'{"arguments" : {}}',)
