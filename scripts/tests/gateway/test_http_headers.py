"""What headers have to say about the body that they come with."""

import pytest
from agent_peers import STATELESS, ask, modern
from marks import promise

from assisted_benchmark.gateway.http_headers import decoded, mismatch, unmirrored, version_of
from assisted_benchmark.wire.frames import Request


def a_request(message):
    return Request(message["id"], message["method"], message["params"])


@promise("W16")
@pytest.mark.parametrize(
    ("method", "params", "name", "wrong"),
    [
        ("tools/call", {"name": "act"}, "act", ""),
        ("tools/call", {"name": "act"}, "Act", "Mcp-Name"),
        ("tools/call", {"name": "act"}, None, "Mcp-Name"),
        ("tools/call", {"name": 3}, "3", "Mcp-Name"),
        ("tools/call", {}, "act", ""),  # which the call's own check refuses
        ("prompts/get", {"name": "one"}, "two", "Mcp-Name"),
        ("resources/read", {"uri": "a://b"}, "a://b", ""),
        ("resources/read", {"uri": "a://b"}, "a://c", "Mcp-Name"),
        ("tools/list", {"name": "act"}, None, ""),
        ("tools/list", {"": "act"}, None, ""),
    ],
)
def test_the_name_in_the_header_is_that_in_the_body(method, params, name, wrong):
    request = a_request(ask(1, method, **params, _meta=modern(1)["params"]["_meta"]))
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": method} | ({} if name is None else {"mcp-name": name})
    assert mismatch(headers, request) == wrong
    assert mismatch(headers | {"mcp-method": "other"}, request) == "Mcp-Method"
    assert mismatch(headers | {"mcp-protocol-version": "2025-11-25"}, request) == "MCP-Protocol-Version"


@pytest.mark.parametrize("meta", [None, [], "2026-07-28", {}, {"other": 1}])
def test_a_request_that_says_nothing_of_its_version_says_nothing(meta):
    assert version_of(a_request(ask(1, "tools/list", _meta=meta))) is None


@promise("W16")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", ""),
        ("plain", "plain"),
        ("=?base64?SGVsbG8=?=", "Hello"),
        ("=?base64?4pi6?=", "\u263a"),
        ("=?base64??=", ""),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("=?base64?SGVsbG8?=", None),
        ("=?base64?SGVs!bG8=?=", None),
        ("=?base64?SGVsbG9=?=", None),
        ("=?base64?/w==?=", None),
    ],
)
def test_a_value_in_base64_is_the_text_that_it_encodes_and_in_one_way_only(value, text):
    assert decoded(value) == text


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"type": "object", "properties": {"sure": {"type": "boolean", "x-mcp-header": "Sure"}}},
        "free": {"type": "string"},
    },
}


@promise("W16")
@pytest.mark.parametrize(
    ("headers", "arguments", "wrong"),
    [
        pytest.param([], {}, "", id="nothing"),
        pytest.param([], {"free": "x"}, "", id="an argument that is not mirrored"),
        pytest.param([("mcp-param-region", "eu")], {"region": "eu"}, "", id="a text"),
        pytest.param([("mcp-param-region", "=?base64?w7w=?=")], {"region": "\u00fc"}, "", id="a text in Base64"),
        pytest.param([("mcp-param-region", "us")], {"region": "eu"}, "Mcp-Param-Region", id="another text"),
        pytest.param([], {"region": "eu"}, "Mcp-Param-Region", id="a text that is missing"),
        pytest.param([("mcp-param-region", "eu")], {}, "Mcp-Param-Region", id="one too many"),
        pytest.param([("mcp-param-region", "eu")], {"region": None}, "Mcp-Param-Region", id="null is not there"),
        pytest.param([("mcp-param-region", "eu")] * 2, {"region": "eu"}, "Mcp-Param-Region", id="twice"),
        pytest.param([("mcp-param-region", "[]")], {"region": []}, "Mcp-Param-Region", id="no text"),
        pytest.param([("mcp-param-count", "42")], {"count": 42}, "", id="a number"),
        pytest.param([("mcp-param-count", "42.0")], {"count": 42}, "", id="a number, spelled another way"),
        pytest.param([("mcp-param-count", "42")], {"count": 42.0}, "", id="a number, given another way"),
        pytest.param([("mcp-param-count", "-7")], {"count": -7}, "", id="a negative number"),
        pytest.param([("mcp-param-count", "4e1")], {"count": 40}, "Mcp-Param-Count", id="an exponent"),
        pytest.param([("mcp-param-count", "43")], {"count": 42}, "Mcp-Param-Count", id="another number"),
        pytest.param([("mcp-param-count", "x")], {"count": "x"}, "", id="a text where a number should be"),
        pytest.param([("mcp-param-sure", "true")], {"deep": {"sure": True}}, "", id="yes"),
        pytest.param([("mcp-param-sure", "True")], {"deep": {"sure": True}}, "Mcp-Param-Sure", id="Yes"),
        pytest.param([("mcp-param-sure", "false")], {"deep": {"sure": False}}, "", id="no"),
        pytest.param([("mcp-param-sure", "1")], {"deep": {"sure": True}}, "Mcp-Param-Sure", id="1"),
        pytest.param([], {"deep": 3}, "", id="nothing is so deep"),
        pytest.param([("mcp-param-other", "x")], {}, "", id="what nobody mirrors"),
    ],
)
def test_what_a_tool_wants_mirrored_is_the_same_in_both_places(headers, arguments, wrong):
    assert unmirrored(headers, arguments, SCHEMA) == wrong


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param({"a": {"type": "string", "x-mcp-header": "no token"}}, id="no token"),
        pytest.param({"a": {"type": "string", "x-mcp-header": ""}}, id="empty"),
        pytest.param({"a": {"type": "string", "x-mcp-header": 3}}, id="no text"),
        pytest.param({"a": {"type": "number", "x-mcp-header": "A"}}, id="a number"),
        pytest.param({n: {"type": "string", "x-mcp-header": n} for n in ("a", "A")}, id="twice"),
        pytest.param({"a": True}, id="a schema that is a boolean"),
        pytest.param("nothing", id="no properties"),
    ],
)
def test_a_tool_that_asks_for_no_header_that_there_could_be_gets_none(properties):
    assert unmirrored([], {"a": "x", "A": "y"}, {"properties": properties}) == ""
