"""The read-only tools of a change contract, over the offline endpoint and over endpoints that fail."""

import json

import jsonschema
import pytest
from gateway_bench import ROOT, ACall, Answers, a_contract, an_endpoint
from marks import promise

from assisted_benchmark.gateway.mutation_tools import read_tools
from assisted_benchmark.kernel.clock import Instant, SystemClock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.mutation.ports import HttpReply, Request

NOW = Instant(1, 1)
UUID = "c4d9350e-77c5-7c5d-1ce0-306a5c00a600"


def read(name, arguments, endpoint):
    (tool,) = [each for each in read_tools(a_contract(), endpoint, SystemClock()) if each.name == f"fabric_{name}"]
    result = tool.handle(ACall(arguments))
    jsonschema.Draft202012Validator(tool.definition["outputSchema"]).validate(result["structuredContent"])
    return result


@promise("M1")
def test_the_catalogue_lists_and_gets_the_three_kinds_and_searches_prices_and_only_reads():
    tools = read_tools(a_contract(), an_endpoint(), SystemClock())
    assert [tool.name for tool in tools] == [
        "fabric_get_connection",
        "fabric_get_network",
        "fabric_get_service_token",
        "fabric_list_connections",
        "fabric_list_networks",
        "fabric_list_service_tokens",
        "fabric_search_prices",
    ]
    assert all(tool.read_only for tool in tools)
    assert {tool.toolset for tool in tools} == {"connectivity", "design"}


def test_every_read_sends_one_request_that_creates_nothing():
    contract = a_contract()
    for each in contract.reads:
        answers = Answers(HttpReply(200, b"{}", NOW, NOW))
        assert not read(each.name, each.example.value, answers)["isError"]
        ((method, target, _),) = answers.asked
        assert (method, target) in {("GET", target), ("POST", "/fabric/v4/prices/search")}


def test_a_read_puts_its_argument_into_the_path_and_gives_the_answer_as_it_is():
    answers = Answers(HttpReply(200, b'{"uuid":"x","n":1.5}', NOW, NOW))
    result = read("get_network", {"uuid": UUID}, answers)
    assert answers.asked == [Request("GET", f"/fabric/v4/networks/{UUID}")]
    assert (result["isError"], result["structuredContent"]) == (
        False,
        {"refused": None, "detail": "", "result": {"uuid": "x", "n": 1.5}, "endpoint_error": None},
    )
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_prices_are_searched_at_the_offline_endpoint():
    result = read("search_prices", {"type": "EVPL_VC", "bandwidth": 50}, an_endpoint())
    assert not result["isError"]
    assert result["structuredContent"]["result"]["data"]


@promise("W8")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"uuid": "../../x"},
        {"uuid": UUID, "more": 1},
        {"uuid": f"{UUID}\n"},
        {"uuid": 1},
    ],
)
def test_arguments_that_do_not_fit_ask_nothing(arguments):
    answers = Answers()
    result = read("get_network", arguments, answers)
    assert (result["isError"], result["structuredContent"]["refused"]) == (True, "not_authorised")
    assert answers.asked == []


def test_an_integer_that_is_spelled_with_a_point_asks_nothing():
    answers = Answers()
    assert read("search_prices", b'{"type":"EVPL_VC","bandwidth":50.0}', answers)["isError"]
    assert answers.asked == []


@promise("W8")
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(HttpReply(404, b'[{"errorCode":"EQ-3045811"}]', NOW, NOW), id="an error"),
        pytest.param(HttpReply(200, b"{NaN}", NOW, NOW), id="garbage"),
        pytest.param(HttpReply(302, b"", NOW, NOW), id="a redirect"),
        pytest.param(NotSent(Reason.SERVER_UNAVAILABLE), id="not sent"),
        pytest.param(Uncertain(Reason.OUTCOME_UNKNOWN, "late", NOW), id="no answer"),
    ],
)
def test_an_endpoint_that_does_not_give_it_is_an_error_of_the_call(reply):
    result = read("list_networks", {}, Answers(reply))
    assert (result["isError"], result["structuredContent"]["refused"]) == (True, "unavailable")


def test_no_read_of_the_contract_is_in_the_toolset_that_changes():
    assert (ROOT / "contracts" / "fabric.changes.yaml").is_file()
    assert all(each.toolset != "mutate" for each in a_contract().reads)
