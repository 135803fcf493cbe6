"""The tools as they are listed: the pair, its hints and its words, and the reads beside it."""

import json

import jsonschema_rs
import pytest
from attrs import evolve
from marks import promise
from mutation_bench import (
    DECLINE,
    FABRIC,
    ORCHARD,
    ROOT,
    TTL,
    MutationBench,
    errors,
    proposing,
)

from assisted_benchmark.contract.json_schema import Checker
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent
from assisted_benchmark.mutation.answers import DETAILS, Status
from assisted_benchmark.mutation.definitions import (
    confirm_definition,
    propose_definition,
    read_definition,
    read_name,
)
from assisted_benchmark.mutation.ports import Request
from assisted_benchmark.mutation.reading import look

PAIR = [propose_definition(FABRIC), confirm_definition(FABRIC)]


@promise("M1", "M2", "M3")
def test_the_pair_bears_the_contracts_name_and_says_that_it_changes_and_destroys_nothing():
    assert [each["name"] for each in PAIR] == ["fabric_propose_change", "fabric_confirm_change"]
    for each in PAIR:
        hints = {name: value for name, value in each["annotations"].items() if name.endswith("Hint")}
        assert hints == {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
        }
        assert each["inputSchema"]["type"] == each["outputSchema"]["type"] == "object"
    assert PAIR[0]["inputSchema"]["properties"]["change_type"] == {"enum": ["connection", "network", "service-token"]}
    assert [each["name"] for each in (propose_definition(ORCHARD), confirm_definition(ORCHARD))] == [
        "orchard_propose_change",
        "orchard_confirm_change",
    ]


@promise("M2")
def test_the_tools_words_never_call_the_token_an_activation_key_and_say_to_type_it_nowhere_else():
    text = json.dumps(PAIR).lower()
    assert "activation" not in text
    assert "never enter it elsewhere" in PAIR[0]["description"]
    for name in ("delete", "update"):
        assert name not in text


@promise("M19")
def test_what_an_acceptance_does_not_prove_is_said_in_the_result_and_in_the_documentation():
    assert DETAILS[Status.ACCEPTED] == "the client says that a person accepted; that a person read it is not proven"
    (page,) = (ROOT / "docs" / "adr").glob("0011-*.md")
    assert "An acceptance proves that the client said so. That a person read the question" in page.read_text()


@promise("M10")
def test_confirm_takes_the_token_alone():
    schema = PAIR[1]["inputSchema"]
    assert (list(schema["properties"]), schema["required"]) == (["token"], ["token"])
    assert schema["additionalProperties"] is False


@promise("M2", "M5")
@pytest.mark.parametrize("change", [each.name for each in FABRIC.changes])
def test_the_listed_input_schema_takes_what_the_broker_takes(change):
    checker = Checker(PAIR[0]["inputSchema"])
    good = json.loads(proposing(change))
    assert checker.faults(good) == ()
    assert checker.faults({**good, "more": 1}) != ()
    assert checker.faults({**good, "spec": {**good["spec"], "name": ""}}) != ()


def answers():
    """One of each answer, as (definition, what is told)."""
    bench = MutationBench()
    told = [(PAIR[0], bench.propose("connection")), (PAIR[0], bench.propose("connection", name=""))]
    tokens = [bench.token() for _ in range(6)]
    told += [(PAIR[1], bench.confirm(tokens[0])), (PAIR[1], bench.confirm(tokens[0]))]
    told += [(PAIR[1], bench.confirm(tokens[1], DECLINE)), (PAIR[1], bench.begin(tokens[2], cancelled=lambda: True))]
    bench.endpoint.created = lambda request: bench.endpoint.replied(400, errors("EQ-1"))
    told.append((PAIR[1], bench.confirm(tokens[3])))
    bench.endpoint.created = lambda request: bench.endpoint.replied(504, b"")
    told.append((PAIR[1], bench.confirm(tokens[4])))
    bench.endpoint.asked = lambda request: bench.endpoint.replied(400, errors("EQ-1"))
    told.append((PAIR[0], bench.propose("network")))
    bench.clock.advance(TTL)
    told.append((PAIR[1], bench.confirm(tokens[5])))
    bench.ledger.down = True
    told += [(PAIR[1], bench.confirm(tokens[5])), (PAIR[0], bench.propose("network"))]
    return [(definition, bench.told(each)) for definition, each in told]


@promise("M2", "M7", "M18")
def test_every_answer_fits_the_listed_output_schema_and_a_confirmations_keys_are_always_the_same():
    found = answers()
    for definition, told in found:
        assert list(jsonschema_rs.validator_for(definition["outputSchema"]).iter_errors(told)) == [], told
    confirmations = {tuple(told) for definition, told in found if definition is PAIR[1]}
    assert confirmations == {tuple(PAIR[1]["outputSchema"]["properties"])}


@promise("M1")
def test_the_reads_say_that_they_only_read_and_stand_in_toolsets_of_their_own():
    for read in FABRIC.reads:
        definition = read_definition(FABRIC, read)
        assert definition["name"] == read_name(FABRIC, read) == f"fabric_{read.name}"
        assert definition["annotations"]["readOnlyHint"] is True
        assert definition["annotations"]["destructiveHint"] is False
        assert Checker(definition["inputSchema"]).faults(read.example.value) == ()


def seeing(name, arguments, answer=None):
    bench = MutationBench()
    if answer is not None:
        bench.endpoint.asked = lambda request: answer
    raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    return bench, look(FABRIC, FABRIC.read(name), raw, bench.endpoint, bench.clock, 10**9)


UUID = "c4d9350e-77c5-7c5d-1ce0-306a5c00a600"


@promise("M1")
def test_a_read_asks_the_endpoint_once_and_creates_nothing():
    bench, seen = seeing("get_connection", {"uuid": UUID})
    assert bench.endpoint.asks == [Request("GET", f"/fabric/v4/connections/{UUID}")]
    assert seen.told == {"refused": None, "detail": "", "result": {}, "endpoint_error": None}
    bench, _ = seeing("list_networks", {})
    assert bench.endpoint.asks == [Request("GET", "/fabric/v4/networks")]
    bench, seen = seeing("search_prices", {"type": "EVPL_VC", "bandwidth": 50})
    (asked,) = bench.endpoint.asks
    assert (asked.method, asked.target) == ("POST", "/fabric/v4/prices/search")
    assert json.loads(asked.body)["filter"]["and"][2]["values"] == ["50"]
    assert bench.creates == 0
    assert seen.result["data"]
    assert FABRIC.read("nothing") is None


@promise("M1")
def test_what_stands_in_a_path_cannot_lead_out_of_its_place():
    bench = MutationBench()
    fields = {**FABRIC.read("get_network").fields.value}
    fields["properties"] = {"uuid": {"type": "string", "maxLength": 9, "pattern": "."}}
    read = evolve(FABRIC.read("get_network"), fields=Canonical.of(fields))
    look(FABRIC, read, b'{"uuid":"a/b?c"}', bench.endpoint, bench.clock, 10**9)
    assert bench.endpoint.asks == [Request("GET", "/fabric/v4/networks/a%2Fb%3Fc")]


WRONG = {
    "no JSON": (b"{", Reason.MALFORMED_CALL),
    "a path instead of a UUID": ({"uuid": "../../networks"}, Reason.ARGUMENTS_INVALID),
    "more than asked": ({"uuid": UUID, "x": 1}, Reason.ARGUMENTS_INVALID),
    "nothing": ({}, Reason.ARGUMENTS_INVALID),
    "a list": ([], Reason.ARGUMENTS_INVALID),
}


@promise("M1")
@pytest.mark.parametrize(("arguments", "reason"), WRONG.values(), ids=WRONG)
def test_a_read_with_wrong_arguments_sends_nothing(arguments, reason):
    bench, seen = seeing("get_connection", arguments)
    assert (seen.reason, seen.result) == (reason, None)
    assert seen.told["refused"] in ("malformed", "not_authorised")
    assert seen.told["detail"]
    assert bench.endpoint.asks == []
    assert seeing("search_prices", b'{"type":"EVPL_VC","bandwidth":5e1}')[1].reason is Reason.ARGUMENTS_INVALID


@promise("M1")
def test_a_read_that_fails_shows_the_endpoints_own_error():
    bench = MutationBench()
    _, seen = seeing("get_network", {"uuid": UUID}, bench.endpoint.replied(404, errors("EQ-3000404")))
    assert seen.reason is Reason.FAILED
    assert [each["code"] for each in seen.told["endpoint_error"]["errors"]] == ["EQ-3000404"]
    _, seen = seeing("get_network", {"uuid": UUID}, NotSent(Reason.SERVER_UNAVAILABLE))
    assert (seen.reason, seen.detail) == (Reason.FAILED, "nothing was sent: server_unavailable")
