"""Transcripts in every format: the same two calls, by their own bytes where the format keeps them."""

import json

import pytest
import transcript_samples as samples
from marks import promise
from transcript_samples import ANSWER, CHOICE, LOOK, SAID

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.live.transcripts.calls import (
    Answer,
    RecordedCall,
    SessionTurn,
    Transcript,
    result_digest,
    text_digest,
)
from assisted_benchmark.suite.live.transcripts.reading import read_transcript
from assisted_benchmark.suite.live.transcripts.session import written
from assisted_benchmark.suite.live.transcripts.spelling import at_text, duration, spelled

ONE, TWO = (spelled(each) for each in samples.values())
TOLD = Answer(text=text_digest(ANSWER))


def two_calls(kind, *, exact, said="", answer=None, times=(0, 0), places=("", ""), second=None):
    look, choice = (LOOK, CHOICE) if exact else (ONE, second or TWO)
    first = RecordedCall("get_benchmark_series", look, 0, "", times[0], said, answer, places[0])
    return Transcript(
        kind=kind, entries=(first, RecordedCall("click_target", choice, 1, "", times[1], "", None, places[1]))
    )


SAYS = text_digest(SAID)
MESSAGES = ("t, message 2", "t, message 4")
INSPECT = two_calls(
    "inspect",
    exact=False,
    said=SAYS,
    answer=TOLD,
    places=("t, message 2", "t, message 5"),
    second=b'{"taskId":"t-1","targetId":"approve"}',
)
FORMATS = {
    "mcp": (samples.mcp(), two_calls("mcp", exact=False, places=("t:2", "t:4"))),
    "mcp-directions": (
        samples.mcp_with_directions(),
        two_calls(
            "mcp",
            exact=False,
            answer=Answer(result=result_digest({"content": [{"type": "text", "text": ANSWER}]})),
            times=(250_000_000, 1_500_000_000),
            places=("t:1", "t:4"),
        ),
    ),
    "openai-chat": (
        samples.openai_chat(),
        two_calls("openai", exact=True, said=SAYS, answer=TOLD, places=MESSAGES),
    ),
    "openai-lines": (
        samples.openai_messages_by_line(),
        two_calls("openai", exact=True, said=SAYS, answer=TOLD, places=("t:2", "t:4")),
    ),
    "openai-responses": (
        samples.openai_responses(),
        two_calls("openai", exact=True, answer=TOLD, places=("t, message 1", "t, message 3")),
    ),
    "anthropic": (
        samples.anthropic(),
        two_calls("anthropic", exact=False, answer=TOLD, places=MESSAGES),
    ),
    "agentdojo": (
        samples.agentdojo(),
        two_calls("agentdojo", exact=False, said=SAYS, answer=TOLD, places=MESSAGES),
    ),
    "inspect": (
        samples.inspect_log(),
        INSPECT,
    ),
    "inspect-eval": (
        samples.inspect_archive(),
        INSPECT,
    ),
}


def refused(data, sample=""):
    with pytest.raises(DocumentError) as caught:
        read_transcript(data, "t", sample)
    (problem,) = caught.value.problems
    return problem


@promise("H6")
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_its_calls(name):
    data, expected = FORMATS[name]
    assert read_transcript(data, "t") == expected


@promise("H6")
def test_what_a_model_said_is_nowhere_but_in_a_digest():
    for data, _ in FORMATS.values():
        assert SAID not in repr(read_transcript(data, "t"))


@promise("H6")
def test_an_error_that_a_server_gave_is_an_answer_that_failed():
    back = {"direction": "server-to-client", "message": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603}}}
    call = {"direction": "client-to-server", "message": samples.call(1, "get_status", {})}
    (made,) = read_transcript(samples.lines(call, back), "t").entries
    assert made.answer == Answer(failed=True)
    assert result_digest({"content": [{"text": "\ud800"}]}) == ""  # no server's answer is that


@promise("H6")
def test_the_server_is_taken_where_the_format_names_it():
    hosted = {
        "type": "mcp_call",
        "id": "a",
        "server_label": "lba",
        "name": "get_status",
        "arguments": "{}",
        "output": "ok",
    }
    claude = {"type": "mcp_tool_use", "id": "a", "server_name": "lba", "name": "get_status", "input": {}}
    for data in ({"output": [hosted]}, {"messages": [{"role": "assistant", "content": [claude]}]}):
        (made,) = read_transcript(json.dumps(data).encode(), "t").entries
        assert (made.server, made.tool, made.arguments) == ("lba", "get_status", b"{}")


@promise("H6")
def test_a_whole_answer_of_the_api_and_one_message_by_itself_are_read_as_well():
    whole = json.dumps({"choices": [{"index": 0, "message": samples.chat()[1]}]}).encode()
    alone = json.dumps(samples.chat()[1]).encode()
    assert [each.tool for data in (whole, alone) for each in read_transcript(data, "t").entries] == [
        "get_benchmark_series"
    ] * 2


@promise("H6")
def test_several_calls_of_one_message_are_turns_in_their_order():
    message = samples.chat()[1] | {"tool_calls": [*samples.chat()[1]["tool_calls"], *samples.chat()[3]["tool_calls"]]}
    found = read_transcript(json.dumps([message]).encode(), "t").entries
    assert [(each.turn, each.tool) for each in found] == [(0, "get_benchmark_series"), (1, "click_target")]


@promise("H6")
def test_what_a_later_version_adds_is_passed_over():
    odd = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, 7],
        "tool_calls": [{"type": "custom"}, 3],
    }
    data = json.dumps(
        {"messages": [*samples.chat(), odd, {"role": "assistant", "tool_calls": "none"}], "new": {}}
    ).encode()
    assert len(read_transcript(data, "t").entries) == 2


@promise("H6")
@pytest.mark.parametrize("made", [samples.inspect_log, samples.inspect_archive])
def test_of_a_log_with_several_samples_one_is_named(made):
    data = made(samples.inspect_sample("one"), samples.inspect_sample("two"), samples.inspect_sample("two", epoch=2))
    assert len(read_transcript(data, "t", "one").entries) == 2
    assert len(read_transcript(data, "t", "two_epoch_2").entries) == 2
    assert (refused(data).reason, refused(data).hint) == (
        Reason.MISSING_KEY,
        "name one as `sample`, such as `one_epoch_1`, `two_epoch_1`, `two_epoch_2`",
    )
    assert refused(data, "two").reason is Reason.MISSING_KEY
    assert refused(data, "three").reason is Reason.UNKNOWN_REFERENCE


@promise("H6")
def test_only_a_log_has_samples():
    assert refused(samples.openai_chat(), "one").reason is Reason.UNKNOWN_REFERENCE


@promise("H7")
def test_a_recorded_session_is_read_back_as_it_was_written():
    turns = (
        SessionTurn(b'{"arguments":{"text":"\xed\xa0\x80"}}', 0, 1_250_000_000, "malformed_unicode"),
        SessionTurn(b"{}", 1, 2_000_000_000, "admitted", result_digest({"content": []}), said=text_digest("so")),
        SessionTurn(b"", 2, 2_000_000_000, "malformed_call", malformed=(Reason.MALFORMED_CALL, "no JSON")),
        SessionTurn(b"x", 3, 3_000_000_000, "wrong_principal", principal="another"),
        SessionTurn(b"y", 4),
    )
    receipts = (b'{"id":"1"}', b'{"id":"2"}')
    data = written("client (me 1)", turns[:4], receipts)
    assert read_transcript(data, "t") == Transcript(
        kind="session", entries=turns[:4], agent="client (me 1)", receipts=receipts
    )
    assert read_transcript(written("", turns[4:]), "t").entries == (turns[4]._replace(turn=0),)


@pytest.mark.parametrize("text", ["0s", "0.000s", "1.250s", "12s", "999999999.999s"])
def test_a_time_is_written_as_it_is_read(text):
    assert duration(at_text(duration(text))) == duration(text)
