"""The events of a stream: what is a message of it, in bounds."""

import pytest
from marks import promise

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.frames import INVALID_REQUEST, Bad
from assisted_benchmark.wire.sse import Events

LARGE = Bad(Reason.TOO_LARGE, INVALID_REQUEST, "an event of more than 10 bytes")


def read(*chunks, most=10):
    events = Events(most)
    return [each for chunk in chunks for each in events.feed(chunk)]


@promise("W1", "W3")
@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(b"data: {}\n\n", [b"{}"], id="least"),
        pytest.param(b"data:{}\r\n\r\ndata: 1\r\n\r\n", [b"{}", b"1"], id="CRLF"),
        pytest.param(b"data: {}\rid: 7\r\n\r\n", [b"{}"], id="CR"),
        pytest.param(b"\xef\xbb\xbfdata: {}\n\n", [b"{}"], id="its mark"),
        pytest.param(b"event: message\nid: 1\nretry: 5\ndata: {}\n\n", [b"{}"], id="all fields"),
        pytest.param(b": there\n\n:\n\ndata: {}\n\n", [b"{}"], id="comments"),
        pytest.param(b"data: {\ndata:  1}\n\n", [b"{\n 1}"], id="lines"),
        pytest.param(b"id: 1\ndata:\n\ndata: {}\n\n", [b"{}"], id="a first event without data"),
        pytest.param(b"event: ping\ndata: {}\n\ndata: 1\n\n", [b"1"], id="another kind"),
        pytest.param(b"data: {}\n", [], id="no end"),
        pytest.param(b"data\ndatas: 1\n\n", [], id="other names"),
        pytest.param(b"data: 1234567890\n\n", [b"1234567890"], id="as large as may be"),
        pytest.param(b"data: 12345678901\n\ndata: 1\n\n", [LARGE, b"1"], id="too large"),
        pytest.param(b"data: 12345\ndata: 67890\ndata: 1\n\ndata: 1\n\n", [LARGE, b"1"], id="too large in lines"),
        pytest.param(
            b"data: " + b"1" * 200 + b"\n\ndata: 1\n\n",
            [Bad(Reason.TOO_LARGE, INVALID_REQUEST, "a line of more than 74 bytes"), b"1"],
            id="a line too large",
        ),
    ],
)
def test_a_message_is_the_data_of_a_whole_event(stream, expected):
    assert read(stream) == expected
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == expected
