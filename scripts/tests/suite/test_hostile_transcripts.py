"""Transcripts that somebody made to do harm, or that are broken: refused with a code and a place, and never costly."""

import io
import json
import struct
import zipfile
from contextlib import suppress

import pytest
import transcript_samples as samples
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.live.transcripts import inspect_log, reading
from assisted_benchmark.suite.live.transcripts.calls import MOST
from assisted_benchmark.suite.live.transcripts.reading import read_transcript

HEAD = b'{"schema":"assisted-benchmark/session@1"}\n'
ZIPPED = samples.archive({"samples/a_epoch_1.json": b"{}"})


def place_of(data, sample=""):
    """Why and where it is refused."""
    with pytest.raises(DocumentError) as caught:
        read_transcript(data, "t", sample)
    (problem,) = caught.value.problems
    assert problem.file.startswith("t")
    assert problem.detail
    return problem.reason, problem.line, problem.column


@promise("H6")
@pytest.mark.parametrize(
    ("data", "place"),
    [
        pytest.param(b"", (Reason.MALFORMED_CALL, 1, 1), id="empty"),
        pytest.param(b"{}", (Reason.WRONG_VALUE, 1, 1), id="nothing known"),
        pytest.param(b'"text"', (Reason.WRONG_VALUE, 1, 1), id="a text"),
        pytest.param(b"[]", (Reason.WRONG_VALUE, 1, 1), id="an empty list"),
        pytest.param(b'{"messages": []}', (Reason.WRONG_VALUE, 1, 1), id="no messages"),
        pytest.param(b'{"messages": [}', (Reason.MALFORMED_CALL, 1, 15), id="no JSON"),
        pytest.param(b'{"a":1}\n{"a":\n', (Reason.MALFORMED_CALL, 2, 6), id="a line that is no JSON"),
        pytest.param(b'\xef\xbb\xbf{"messages": []}', (Reason.MALFORMED_UNICODE, 1, 1), id="byte order mark"),
        pytest.param(b'{"messages":\n "\xff"}', (Reason.MALFORMED_UNICODE, 2, 3), id="no UTF-8"),
        pytest.param(b'{"a":1}\n{"b":"\xc3"}\n', (Reason.MALFORMED_UNICODE, 2, 7), id="a line that is no UTF-8"),
        pytest.param(b'{"a":1,"messages":[],"a":2}', (Reason.DUPLICATE_KEY, 1, 1), id="a key twice"),
        pytest.param(b'{"a":1}\n{"b":1,"b":1}\n', (Reason.DUPLICATE_KEY, 2, 1), id="a key twice in a line"),
        pytest.param(b"[" * 200_000, (Reason.TOO_DEEP, 1, 1), id="deep"),
        pytest.param(b'{"a":' * 200_000, (Reason.TOO_DEEP, 1, 1), id="deep objects"),
        pytest.param(b"[" + b"9" * 5000 + b"]", (Reason.TOO_LARGE, 1, 1), id="a number of many digits"),
        pytest.param(b"[" + b"0," * reading.MAX_VALUES + b"0]", (Reason.TOO_LARGE, 0, 1), id="many values"),
        pytest.param(
            b'{"a":1}\n' + (b"[" + b"0," * (reading.MAX_VALUES // 2) + b"0]\n") * 2,
            (Reason.TOO_LARGE, 0, 1),
            id="many values in several lines",
        ),
        pytest.param(
            b'{"eval":{},"samples":[{"id":1,"attachments":{},"messages":[{"a":' + b"[" * 900 + b"]" * 900 + b"}]}]}",
            (Reason.TOO_DEEP, 1, 1),
            id="deep with attachments",
        ),
        pytest.param(b" " * (reading.MAX_BYTES + 1), (Reason.TOO_LARGE, 0, 0), id="many bytes"),
        pytest.param(samples.lines(samples.call(1, "x", {}), {"id": 7}), (Reason.WRONG_VALUE, 2, 1), id="no message"),
        pytest.param(
            samples.lines(samples.call(1, "x", {}), {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}),
            (Reason.WRONG_VALUE, 2, 1),
            id="a call without a name",
        ),
        pytest.param(
            samples.lines({"direction": "sideways", "message": samples.call(1, "x", {})}),
            (Reason.WRONG_VALUE, 0, 1),
            id="no direction",
        ),
        pytest.param(
            samples.lines({"direction": "client", "at": "soon", "message": samples.call(1, "x", {})}),
            (Reason.WRONG_VALUE, 0, 1),
            id="no time",
        ),
        pytest.param(HEAD + b'{"propose":7}\n', (Reason.WRONG_VALUE, 2, 1), id="a proposal that is no text"),
        pytest.param(HEAD + b'{"propose":"","more":1}\n', (Reason.UNKNOWN_KEY, 2, 1), id="an unknown key of ours"),
        pytest.param(HEAD + b'{"propose":"","came_to":"well"}\n', (Reason.WRONG_VALUE, 2, 1), id="no reason"),
        pytest.param(HEAD + b'{"malformed":"odd","detail":""}\n', (Reason.WRONG_VALUE, 2, 1), id="no code"),
        pytest.param(
            HEAD + b'{"propose":"","at":"2s"}\n{"propose":"","at":"1s"}\n',
            (Reason.WRONG_VALUE, 3, 1),
            id="back in time",
        ),
        pytest.param(HEAD + b'{"receipt":[]}\n', (Reason.WRONG_VALUE, 2, 1), id="no receipt"),
        pytest.param(HEAD + b'{"receipt":{"a":NaN}}\n', (Reason.NON_FINITE_NUMBER, 2, 1), id="no number in a receipt"),
        pytest.param(HEAD + b"7\n", (Reason.WRONG_VALUE, 2, 1), id="a turn that is a number"),
        pytest.param(b'{"schema":"assisted-benchmark/session@1","x":1}', (Reason.UNKNOWN_KEY, 1, 1), id="a head"),
    ],
)
def test_what_is_no_transcript_is_told_with_its_place(data, place):
    assert place_of(data) == place


@promise("H6")
def test_more_calls_than_are_allowed_are_not_taken():
    data = samples.lines(*(samples.call(number, "x", {}) for number in range(MOST + 1)))
    assert place_of(data)[0] is Reason.TOO_LARGE
    assert len(read_transcript(b"\n".join(data.splitlines()[:-1]), "t").entries) == MOST


@promise("H6")
def test_of_an_archive_no_more_is_unpacked_than_a_transcript_may_have():
    bomb = samples.archive({"samples/a_epoch_1.json": b" " * (reading.MAX_BYTES + 1)})
    assert len(bomb) < 64 * 1024
    assert place_of(bomb)[0] is Reason.TOO_LARGE
    # One that lies of its size is held to it, or refused as broken.
    end = bomb.index(b"PK\x01\x02")
    lying = bomb[: end + 24] + struct.pack("<L", 100) + bomb[end + 28 :]
    assert place_of(lying)[0] is Reason.UNREADABLE


@promise("H6")
def test_archives_inside_an_archive_are_not_opened():
    assert place_of(samples.archive({"samples/a_epoch_1.json": ZIPPED}))[0] is Reason.MALFORMED_UNICODE


@promise("H6")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(ZIPPED[:40], Reason.UNREADABLE, id="cut off"),
        pytest.param(ZIPPED.replace(b"PK\x05\x06", b"PK\x05\x05"), Reason.UNREADABLE, id="without an end"),
        pytest.param(samples.archive({"x.json": b"{}"}), Reason.UNKNOWN_REFERENCE, id="no samples"),
        pytest.param(
            samples.archive({"samples/a_epoch_1.json": b"{}"}, zipfile.ZIP_LZMA),
            Reason.UNREADABLE,
            id="another packing",
        ),
        pytest.param(ZIPPED[:-22] + b"PK\x01\x02" * 20_001 + ZIPPED[-22:], Reason.TOO_LARGE, id="many entries"),
    ],
)
def test_a_broken_archive_is_refused(data, reason):
    assert place_of(data)[0] is reason


@promise("H6")
def test_a_sample_that_is_in_an_archive_twice_is_none():
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = two_entries()
    assert place_of(twice)[0] is Reason.DUPLICATE_ID


def two_entries():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("samples/a_epoch_1.json", b"{}")
        made.writestr("samples/a_epoch_1.json", b"[]")
    return out.getvalue()


@promise("H6")
def test_an_attachment_that_names_itself_or_nothing_ends():
    sample = samples.inspect_sample(attachments={"abc": "attachment://abc", "n": 7})
    call = read_transcript(samples.inspect_log(sample), "t").entries[1]
    assert call.arguments == b'{"taskId":"attachment://abc","targetId":"approve"}'


@promise("H6")
def test_a_path_in_an_archive_leads_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "samples/../../../escaped_epoch_1.json"
    data = samples.archive({name: json.dumps(samples.inspect_sample()).encode()})
    assert len(read_transcript(data, "t").entries) == 2
    assert list(tmp_path.iterdir()) == []


SEEDS = [samples.mcp(), samples.openai_chat(), samples.anthropic(), samples.inspect_log(), samples.inspect_archive()]


@promise("H6")
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=3)), min_size=1, max_size=4))
def test_whatever_is_changed_in_one_it_is_read_or_refused(data, changes):
    for at, put in changes:
        place = at % len(data)
        data = data[:place] + put + data[place + 1 :]
    with suppress(DocumentError):  # and nothing else
        read_transcript(data, "t")


def test_an_archive_is_told_by_its_first_bytes():
    assert inspect_log.is_archive(ZIPPED)
    assert not inspect_log.is_archive(samples.mcp())
