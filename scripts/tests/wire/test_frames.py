"""Lines and frames: what is admitted, what is refused and why, and what is written."""

import json

import pytest
from marks import promise

from assisted_benchmark.kernel.canonical import parse
from assisted_benchmark.kernel.errors import CanonicalError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import parse_strictly
from assisted_benchmark.wire.frames import (
    Bad,
    Notification,
    Request,
    Response,
    Splitter,
    read_frame,
    write_call,
    write_error,
    write_message,
    write_notification,
    write_request,
    write_result,
)

BOUND = 1 << 20


@pytest.fixture(params=[parse, parse_strictly], ids=["fast", "strict"])
def read(request):
    return lambda line: read_frame(line, BOUND, request.param)


def test_a_request_keeps_keys_that_nobody_knows(read):
    line = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","x-new":[1.0,null]},"x":1}'
    assert read(line) == Request(7, "tools/call", {"name": "t", "x-new": [1.0, None]})


def test_a_method_under_notifications_is_a_notification(read):
    line = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    assert read(line) == Notification("notifications/initialized", {})


def test_a_response_has_a_result_or_an_error(read):
    error = {"code": -32601, "message": "no", "data": {"x": 1}}
    assert read(b'{"jsonrpc":"2.0","id":"a","result":{"x":1}}') == Response("a", {"x": 1})
    assert read(json.dumps({"jsonrpc": "2.0", "id": 3, "error": error}).encode()) == Response(3, None, error)
    assert read(b'{"jsonrpc":"2.0","id":3,"result":null,"x":0}') == Response(3)


def test_an_error_may_come_without_an_id_because_its_sender_could_not_read_ours(read):
    error = {"code": -32700, "message": "what?"}
    assert read(json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()) == Response(None, None, error)


@promise("W4")
def test_a_string_id_and_the_number_it_spells_are_different_ids(read):
    text = read(b'{"jsonrpc":"2.0","id":"33","method":"ping"}')
    number = read(b'{"jsonrpc":"2.0","id":33,"method":"ping"}')
    assert text == Request("33", "ping", {})
    assert number == Request(33, "ping", {})
    assert text != number


@promise("W3")
def test_line_separators_inside_strings_and_crlf_line_ends_are_fine(read):
    line = '{"jsonrpc":"2.0","id":1,"method":"m","params":{"s":"a\u2028b\u2029c"}}\r'
    assert read(line.encode()) == Request(1, "m", {"s": "a\u2028b\u2029c"})


def request_line(params: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":5,"method":"m","params":' + params.encode("utf-8", "surrogatepass") + b"}"


DEEP = '{"a":' + "[" * 80 + "]" * 80 + "}"
VERY_DEEP = '{"a":' + "[" * 20000 + "]" * 20000 + "}"


@promise("W3", "K2")
@pytest.mark.parametrize(
    ("line", "reason", "code", "request_id"),
    [
        pytest.param(
            request_line('{"a":"\xff"}').replace(b"\xc3\xbf", b"\xff"), "malformed_unicode", -32700, 5, id="utf8"
        ),
        pytest.param(b"\xef\xbb\xbf" + request_line("{}"), "malformed_unicode", -32700, 5, id="bom"),
        pytest.param(request_line('{"a":{"b":1,"b":2}}'), "duplicate_key", -32700, 5, id="duplicate key, deep"),
        pytest.param(request_line('{"a":NaN}'), "non_finite_number", -32700, 5, id="NaN"),
        pytest.param(request_line('{"a":-Infinity}'), "non_finite_number", -32700, 5, id="Infinity"),
        pytest.param(request_line('{"a":1e400}'), "non_finite_number", -32700, 5, id="1e400"),
        pytest.param(request_line('{"a":9007199254740993}'), "unsafe_integer", -32700, 5, id="unsafe integer"),
        pytest.param(request_line('{"a":"\\ud800"}'), "malformed_unicode", -32700, 5, id="lone surrogate"),
        pytest.param(request_line('{"a":"\\u0000"}'), "malformed_unicode", -32700, 5, id="NUL"),
        pytest.param(request_line(DEEP), "too_deep", -32700, 5, id="deep"),
        pytest.param(request_line(VERY_DEEP), "too_deep", -32700, None, id="too deep to read the id"),
        pytest.param(request_line("[" + "0," * 100_000 + "0]"), "too_large", -32700, 5, id="nodes"),
        pytest.param(b'{"jsonrpc":"2.0","id":5,"id":6,"method":"m"}', "duplicate_key", -32700, None, id="two ids"),
        pytest.param(request_line("{}") + b" {}", "malformed_call", -32700, None, id="trailing bytes"),
        pytest.param(b"", "malformed_call", -32700, None, id="empty"),
        pytest.param(b"listening on port 3", "malformed_call", -32700, None, id="words"),
        pytest.param(b"[1,NaN]", "non_finite_number", -32700, None, id="no object, not even JSON"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":"\xff","method":"m"}', "malformed_unicode", -32700, None, id="id of bad bytes"
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}', "malformed_unicode", -32700, None, id="id of half a pair"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":NaN,"method":"m"}', "non_finite_number", -32700, None, id="id NaN"),
        pytest.param(b'{"jsonrpc":"2.0","id":1e400,"method":"m"}', "non_finite_number", -32700, None, id="id 1e400"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":99999999999999999999,"method":"m"}', "unsafe_integer", -32700, None, id="id unsafe"
        ),
        pytest.param(b"[" + request_line("{}") + b"]", "malformed_frame", -32600, None, id="batch"),
        pytest.param(b'"text"', "malformed_frame", -32600, None, id="no object"),
        pytest.param(b'{"jsonrpc":"1.0","id":5,"method":"m"}', "malformed_frame", -32600, 5, id="version"),
        pytest.param(b'{"id":5,"method":"m"}', "malformed_frame", -32600, 5, id="no version"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"m"}', "malformed_frame", -32600, None, id="id null"),
        pytest.param(b'{"jsonrpc":"2.0","id":true,"method":"m"}', "malformed_frame", -32600, None, id="id true"),
        pytest.param(b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', "malformed_frame", -32600, None, id="id 1.0"),
        pytest.param(b'{"jsonrpc":"2.0","id":[1],"method":"m"}', "malformed_frame", -32600, None, id="id list"),
        pytest.param(b'{"jsonrpc":"2.0","method":"tools/call"}', "malformed_frame", -32600, None, id="no id"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":5,"method":"notifications/x"}', "malformed_frame", -32600, 5, id="told, with id"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":5,"method":3}', "malformed_frame", -32600, 5, id="method"),
        pytest.param(request_line("[]"), "malformed_frame", -32600, 5, id="params list"),
        pytest.param(request_line("null"), "malformed_frame", -32600, 5, id="params null"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":5,"method":"m","result":{}}', "malformed_frame", -32600, 5, id="call and answer"
        ),
        pytest.param(b'{"jsonrpc":"2.0"}', "malformed_frame", -32600, None, id="nothing"),
    ],
)
def test_a_bad_line_is_refused_with_its_reason_and_its_id_where_it_can_be_read(read, line, reason, code, request_id):
    bad = read(line)
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.code, bad.id, bad.reply) == (Reason(reason), code, request_id, False)


@pytest.mark.parametrize(
    ("line", "reason", "request_id"),
    [
        pytest.param(
            b'{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":""}}', "malformed_frame", 5, id="both"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":5,"error":"no"}', "malformed_frame", 5, id="error text"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":5,"error":{"code":1.5,"message":""}}', "malformed_frame", 5, id="error code"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":5,"error":{"code":1}}', "malformed_frame", 5, id="error without message"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"result":{}}', "malformed_frame", None, id="result without id"),
        pytest.param(b'{"jsonrpc":"2.0","result":{}}', "malformed_frame", None, id="no id"),
        pytest.param(b'{"jsonrpc":"2.0","id":5,"result":{"a":1,"a":2}}', "duplicate_key", 5, id="duplicate key"),
    ],
)
def test_a_bad_response_is_told_apart_because_it_is_never_answered(read, line, reason, request_id):
    bad = read(line)
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.id, bad.reply) == (Reason(reason), request_id, True)


@promise("W3")
def test_a_line_above_the_bound_is_too_large():
    line = request_line("{}")
    assert read_frame(line, len(line)) == Request(5, "m", {})
    bad = read_frame(line, len(line) - 1)
    assert isinstance(bad, Bad)
    assert bad.reason is Reason.TOO_LARGE


# -- writing


def test_arguments_are_sent_to_the_byte():
    arguments = b'{"b":1.50,"a":"\xe2\x80\xa8"}'  # neither sorted nor canonical, to prove that nothing rewrites them
    line = write_call(9, 'say "hi"', arguments, b'{"progressToken":9}')
    assert line == (
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"say \\"hi\\"","arguments":'
        + arguments
        + b',"_meta":{"progressToken":9}}}\n'
    )
    assert b"_meta" not in write_call(9, "t", b"{}")


@pytest.mark.parametrize("arguments", [b"[]", b"", b'{"a":\n1}'])
def test_arguments_that_would_not_stay_one_object_on_one_line_are_a_misuse(arguments):
    with pytest.raises(MisuseError) as caught:
        write_call(1, "t", arguments)
    assert caught.value.reason is Reason.MISUSE


def test_what_is_written_reads_back(read):
    params = {"s": 'ü"\n\u2028', "n": [1, 1.5, None, True]}
    error = {"code": -32602, "message": "no", "data": {"x": 1}}
    assert read(write_request("a", "m", params)) == Request("a", "m", params)
    assert read(write_notification("notifications/x", params)) == Notification("notifications/x", params)
    assert read(write_result(3, params)) == Response(3, params)
    assert read(write_error(3, -32602, "no", {"x": 1})) == Response(3, None, error)
    assert read(write_error(None, -32602, "no")) == Response(None, None, {"code": -32602, "message": "no"})
    assert write_request("a", "m", params).count(b"\n") == 1


@pytest.mark.parametrize("value", [2**53, float("nan"), "\ud800", {1: 2}, b"x"], ids=repr)
def test_what_would_be_refused_is_not_written(value):
    with pytest.raises(CanonicalError):
        write_message({"value": value})


# -- lines


def test_a_line_longer_than_the_bound_is_told_once_and_skipped_to_its_end():
    splitter = Splitter(8)
    assert splitter.feed(b"12345678\n") == [b"12345678"]
    (bad,) = splitter.feed(b"123456789")
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.code) == (Reason.TOO_LARGE, -32600)
    assert splitter.half
    assert splitter.feed(b"still the same line") == []
    assert splitter.feed(b"its end\nnext\n123456789\n") == [b"next", bad]
    assert not splitter.half


def test_a_line_that_was_begun_waits_for_its_end():
    splitter = Splitter(100)
    assert splitter.feed(b"a\n\nb") == [b"a", b""]
    assert splitter.half
    assert splitter.feed(b"") == []
    assert splitter.feed(b"c\n") == [b"bc"]
    assert not splitter.half


class Counted(bytes):
    """Bytes that count how many of them are looked at."""

    looked_at = 0

    def find(self, *args):
        Counted.looked_at += len(self)
        return super().find(*args)

    def split(self, *args):
        Counted.looked_at += len(self)
        return [Counted(part) for part in super().split(*args)]


@pytest.mark.parametrize("megabytes", [4, 16])
def test_a_long_line_costs_each_of_its_bytes_once(megabytes):
    splitter = Splitter(32 << 20)
    chunk = Counted(b"x" * 65536)
    Counted.looked_at = 0
    for _ in range(megabytes * 16):
        assert splitter.feed(chunk) == []
    assert {len(piece) for piece in splitter._pieces} == {len(chunk)}  # nothing was joined on the way
    (line,) = splitter.feed(Counted(b"\n"))
    assert line == b"x" * (megabytes << 20)
    assert Counted.looked_at <= 2 * len(line) + 10
