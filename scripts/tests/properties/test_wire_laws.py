"""Laws of the wire: chunking never matters, and no bytes at all raise."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.kernel.canonical import parse
from assisted_benchmark.kernel.strict_json import parse_strictly
from assisted_benchmark.wire.frames import Bad, Notification, Request, Response, Splitter, read_frame

BOUND = 12


def lines_of(chunks):
    splitter = Splitter(BOUND)
    return [line for chunk in chunks for line in splitter.feed(chunk)], splitter.half


@settings(max_examples=200)
@given(st.lists(st.text(alphabet="ab\n\r", max_size=20).map(str.encode)))
def test_the_lines_are_the_same_for_any_chunking(chunks):
    whole = b"".join(chunks)
    assert lines_of(chunks) == lines_of([whole])
    assert lines_of([whole[i : i + 1] for i in range(len(whole))]) == lines_of([whole])


@settings(max_examples=200)
@given(st.lists(st.text(alphabet="ab\r", max_size=20).map(str.encode)))
def test_exactly_the_lines_within_the_bound_come_out(lines):
    found, half = lines_of([b"".join(line + b"\n" for line in lines)])
    assert [line if isinstance(line, bytes) else None for line in found] == [
        line if len(line) <= BOUND else None for line in lines
    ]
    assert not half


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(["id", "method", "error", "a"]), each),
    max_leaves=6,
)
ENVELOPES = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]),
    JSONISH | st.sampled_from(["2.0", "notifications/x", "tools/call", {"code": 1, "message": ""}]),
)


@promise("W3")
@settings(max_examples=300)
@given(st.binary(max_size=60) | ENVELOPES.map(lambda value: json.dumps(value).encode()))
@example(b'{"id":' + b"9" * 5000 + b"}")
def test_any_bytes_are_a_frame_or_bad_and_both_parsers_agree(line):
    frame = read_frame(line, 1 << 20, parse)
    assert isinstance(frame, Request | Notification | Response | Bad)
    strict = read_frame(line, 1 << 20, parse_strictly)
    assert repr(strict) == repr(frame)
