"""Results that are passed on as they came."""

import json
from types import SimpleNamespace

import pytest

from assisted_benchmark.wire.frames import INTERNAL_ERROR
from assisted_benchmark.wire.server_side import Passed, ServerSide


@pytest.fixture
def side():
    return ServerSide(SimpleNamespace())


@pytest.mark.parametrize("request_id", [7, 'ä "quoted"\n'])
def test_a_result_is_passed_on_to_the_byte(side, request_id):
    line = side.line(request_id, Passed(b'{"content":[],"n":1.50}'))
    assert line.endswith(b',"result":{"content":[],"n":1.50}}\n')
    assert json.loads(line)["id"] == request_id
    assert line.count(b"\n") == 1


@pytest.mark.parametrize("data", [b"", b"[]", b'{"content":\n[]}'])
def test_what_would_be_no_one_line_of_an_object_is_an_error_to_the_caller(side, data):
    line = side.line(7, Passed(data))
    assert json.loads(line)["error"]["code"] == INTERNAL_ERROR
