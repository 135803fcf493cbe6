"""Proposing: one real dry run, its answer or its error as the endpoint gave it, a price or why there is none."""

import json

import pytest
from marks import promise
from mutation_bench import (
    AGENT,
    FABRIC,
    ORCHARD,
    PRICED,
    TTL,
    MutationBench,
    errors,
    proposing,
    spec_of,
)

from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.mutation.compiler import compile_change
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.results import Proposed

CONNECTION = FABRIC.change("connection")
UNPRICED = {
    "network": "a network has no charge of its own; each connection to it has one",
    "service-token": "a service token costs nothing; the connection that is made with it has a price",
}
PRICE = {
    "monthly": 350.5,
    "non_recurring": 0,
    "currency": "USD",
    "source": "POST /fabric/v4/prices/search",
    "basis": "not a quote",
}


def answering(dry=None, price=None, contract=FABRIC):
    """A bench whose endpoint answers a dry run and a price search with these (status, body) or replies."""
    bench = MutationBench(contract)

    def asked(request):
        given = price if request.target.endswith("/search") else dry
        if given is None:
            given = (200, json.dumps(PRICED).encode() if given is price else request.body)
        return bench.endpoint.replied(*given) if isinstance(given, tuple) else given

    bench.endpoint.asked = asked
    return bench


@promise("M6")
@pytest.mark.parametrize("change", ["connection", "network", "service-token"])
def test_exactly_one_dry_run_is_sent_with_the_exact_body_and_nothing_is_created(change):
    bench = MutationBench()
    sealed = bench.propose(change)
    compiled = compile_change(FABRIC.change(change), FABRIC.change(change).example.value)
    dry = [each for each in bench.endpoint.asks if "dryRun" in each.target]
    assert dry == [("POST", f"{FABRIC.change(change).path}?dryRun=true", compiled.body)]
    assert bench.creates == 0
    assert bench.written() == [("decision", "proposed", "sealed")]
    assert sealed.request == compiled.digest


@promise("M7")
def test_the_result_says_all_that_the_agent_needs():
    bench = MutationBench()
    sealed = bench.propose("connection")
    body = compile_change(CONNECTION, CONNECTION.example.value).body
    assert bench.told(sealed) == {
        "phase": "propose",
        "change_type": "connection",
        "validated": json.loads(body),
        "price": PRICE,
        "token": sealed.token,
        "expires_in_seconds": 600,
        "request_sha256": sealed.request,
        "token_scope": (
            "This token is a lookup key for this one proposal, in this session of this server only. It works once, "
            "within its lifetime. Give it to fabric_confirm_change and never enter it anywhere else."
        ),
        "next_step": "Nothing was provisioned. Call fabric_confirm_change with the token; a person will be asked.",
        "receipt": bench.receipts()[0]["id"],
    }


@promise("M7")
def test_the_validated_entity_is_what_the_endpoint_made_of_it():
    bench = answering(dry=(200, b'{"name":"LAB-TO-CLOUD","bandwidth":50}'))
    assert bench.propose("connection").validated == {"name": "LAB-TO-CLOUD", "bandwidth": 50}


@promise("M6")
@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_networks_dry_run_passes_with_any_success(status):
    assert isinstance(answering(dry=(status, b"{}")).propose("network"), Proposed)


OWN_ERROR = errors("EQ-3142102", correlationId="c-1", additionalInfo=[{"property": "/aSide", "reason": "taken"}])
FAILURES = {
    "a refusal": ((400, OWN_ERROR), 400, ["EQ-3142102"], "HTTP 400: EQ-3142102"),
    "several errors": ((422, errors("EQ-1", "EQ-2")), 422, ["EQ-1", "EQ-2"], "HTTP 422: EQ-1, EQ-2"),
    "no rights": ((403, errors("EQ-3045003")), 403, ["EQ-3045003"], "HTTP 403: EQ-3045003"),
    "no dry run there": ((405, errors("EQ-3142411")), 405, ["EQ-3142411"], "HTTP 405: EQ-3142411"),
    "a gateway's page": ((502, b"<html>"), 502, [], "HTTP 502"),
    "an empty list": ((500, b"[]"), 500, [], "HTTP 500"),
    "a list of something else": ((500, b"[1]"), 500, [], "HTTP 500"),
    "errors without codes": ((500, b'[{"errorMessage":"x"}]'), 500, [], "HTTP 500"),
    "another success": ((202, b"{}"), 202, [], "HTTP 202"),
    "a redirect": ((307, b""), 307, [], "HTTP 307"),
    "a body that is no object": ((200, b"[]"), 200, [], "HTTP 200"),
    "a body that is no JSON": ((200, b"ok"), 200, [], "HTTP 200"),
    "nothing sent": (NotSent(Reason.SERVER_UNAVAILABLE), None, [], "nothing was sent: server_unavailable"),
}


@promise("M6")
@pytest.mark.parametrize(("dry", "status", "codes", "words"), FAILURES.values(), ids=FAILURES)
def test_a_failed_dry_run_gives_out_no_token_and_shows_the_endpoints_own_error(dry, status, codes, words):
    bench = answering(dry=dry)
    refused = bench.propose("connection")
    heard = bench.told(refused)
    assert refused.reason is Reason.DRY_RUN_FAILED
    assert (heard["refused"], heard["endpoint_error"]["status"]) == ("unavailable", status)
    assert [each["code"] for each in heard["endpoint_error"]["errors"]] == codes
    assert "token" not in heard
    assert len(bench.endpoint.asks) == 1
    (receipt,) = bench.receipts()
    assert (receipt["reason"], receipt["detail"], receipt["id"]) == ("dry_run_failed", words, heard["receipt"])
    assert list(bench.ledger.groups("run-1")) == []


@promise("M6")
def test_a_lost_answer_to_a_dry_run_is_a_failed_one():
    bench = MutationBench()
    lost = Uncertain(Reason.OUTCOME_UNKNOWN, "gone", bench.clock.now())
    bench.endpoint.asked = lambda request: lost
    refused = bench.propose("connection")
    assert refused.reason is Reason.DRY_RUN_FAILED
    assert refused.detail == "no usable answer: outcome_unknown"
    assert len(bench.endpoint.asks) == 1


@promise("M6")
def test_what_the_endpoint_says_is_cut_and_cleaned_and_no_word_of_it_goes_into_a_receipt():
    said = "4711 " + "\u202e\x1b[31m" + "x" * 1000
    body = json.dumps(
        [
            {
                "errorCode": "EQ\u202e" + "9" * 100,
                "errorMessage": said,
                "correlationId": said,
                "additionalInfo": [{"property": "/pin", "reason": said}, said] + [1] * 50,
            }
        ]
        * 50
    ).encode()
    bench = answering(dry=(400, body))
    heard = bench.told(bench.propose("connection"))["endpoint_error"]
    assert len(heard["errors"]) == 5
    text = json.dumps(heard, ensure_ascii=False)
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "\\\\u202e" in text
    (error, *_) = heard["errors"]
    assert {name: len(value) for name, value in error.items()}["places"] == 5
    assert len(error["message"]) < 400
    assert len(error["code"]) < 80
    assert error["places"][0].startswith("/pin: 4711")
    assert "4711" not in json.dumps(bench.receipts())
    assert bench.receipts()[0]["detail"] == "HTTP 400"


def test_errors_of_another_shape_are_read_by_its_contract():
    body = b'[{"kind":"frost","text":"too cold"}]'
    refused = answering(dry=(409, body), contract=ORCHARD).propose("plant")
    assert refused.error.value == {
        "status": 409,
        "errors": [{"code": "frost", "message": "too cold", "id": "", "places": []}],
        "detail": "the endpoint did not accept it",
    }


@promise("M8")
def test_a_price_is_asked_for_the_very_spec_and_told_as_no_quote():
    bench = MutationBench()
    sealed = bench.propose("connection")
    assert sealed.price == PRICE
    search = bench.endpoint.asks[1]
    assert (search.method, search.target) == ("POST", "/fabric/v4/prices/search")
    assert json.loads(search.body)["filter"]["and"] == [
        {"property": "/type", "operator": "=", "values": ["VIRTUAL_CONNECTION_PRODUCT"]},
        {"property": "/connection/type", "operator": "=", "values": ["EVPL_VC"]},
        {"property": "/connection/bandwidth", "operator": "=", "values": ["50"]},
        {"property": "/connection/aSide/accessPoint/type", "operator": "=", "values": ["COLO"]},
        {"property": "/connection/zSide/accessPoint/type", "operator": "=", "values": ["SP"]},
    ]


@promise("M8")
def test_what_the_spec_does_not_say_is_not_asked_for():
    bench = MutationBench()
    bench.propose("connection", zSide={"serviceToken": {"uuid": "22d4e853-ef33-4ff0-b5b2-a2b1d5dfa50c"}})
    asked = [each["property"] for each in json.loads(bench.endpoint.asks[1].body)["filter"]["and"]]
    assert asked == ["/type", "/connection/type", "/connection/bandwidth", "/connection/aSide/accessPoint/type"]


@promise("M8")
@pytest.mark.parametrize("change", UNPRICED)
def test_where_no_price_can_be_said_the_reason_is(change):
    bench = MutationBench()
    assert bench.propose(change).price == {"unpriced": UNPRICED[change]}
    assert len(bench.endpoint.asks) == 1


def rows(*charges, currency="USD"):
    return {"data": [{"currency": currency, "charges": [{"type": kind, "price": price} for kind, price in charges]}]}


MONTHLY, ONCE = ("MONTHLY_RECURRING", 10), ("NON_RECURRING", 5)
UNREADABLE = "the price search's answer could not be read"
PRICELESS = {
    "an error": ((500, errors("EQ-9")), "the price could not be asked: HTTP 500: EQ-9"),
    "no JSON": ((200, b"x"), "the price could not be asked: HTTP 200"),
    "nothing sent": (
        NotSent(Reason.DEADLINE_EXCEEDED),
        "the price could not be asked: nothing was sent: deadline_exceeded",
    ),
    "no rows": ((200, b'{"data":[]}'), "the price search found 0 prices where one is an estimate"),
    "no list": ((200, b'{"data":{}}'), "the price search found 0 prices where one is an estimate"),
    "two rows": ((200, b'{"data":[{},{}]}'), "the price search found 2 prices where one is an estimate"),
    "a row that is no object": ((200, b'{"data":[1]}'), UNREADABLE),
    "no currency": ((200, json.dumps(rows(MONTHLY, currency=None)).encode()), UNREADABLE),
    "a currency that is a text": ((200, json.dumps(rows(MONTHLY, currency="USD\nfree")).encode()), UNREADABLE),
    "no charge that counts": ((200, json.dumps(rows(("YEARLY", 1))).encode()), UNREADABLE),
    "two of one kind": ((200, json.dumps(rows(MONTHLY, MONTHLY)).encode()), UNREADABLE),
    "an amount that is a flag": ((200, json.dumps(rows(("MONTHLY_RECURRING", True))).encode()), UNREADABLE),
    "an amount below nothing": ((200, json.dumps(rows(("MONTHLY_RECURRING", -1))).encode()), UNREADABLE),
    "an amount as text": ((200, json.dumps(rows(("MONTHLY_RECURRING", "1"))).encode()), UNREADABLE),
    "charges that are no list": ((200, b'{"data":[{"currency":"USD","charges":1}]}'), UNREADABLE),
}


@promise("M8")
@pytest.mark.parametrize(("price", "why"), PRICELESS.values(), ids=PRICELESS)
def test_a_price_failure_never_fails_the_proposal_and_says_why(price, why):
    sealed = answering(price=price).propose("connection")
    assert isinstance(sealed, Proposed)
    assert sealed.price == {"unpriced": why}


@promise("M8")
def test_one_kind_of_charge_alone_is_told():
    for charge, name in ((MONTHLY, "monthly"), (ONCE, "non_recurring")):
        price = answering(price=(200, json.dumps(rows(charge)).encode())).propose("connection").price
        assert {key: price[key] for key in ("monthly", "non_recurring")} == {
            "monthly": None,
            "non_recurring": None,
            name: charge[1],
        }


@promise("M6")
def test_a_slow_dry_run_leaves_no_time_to_ask_for_a_price():
    bench = MutationBench()
    bench.at(Moment.PRICE, lambda: bench.clock.advance(30 * SECOND))
    sealed = bench.propose("connection")
    assert "deadline_exceeded" in sealed.price["unpriced"]
    assert len(bench.endpoint.asks) == 1


@promise("M7", "M11")
def test_the_lifetime_begins_when_the_token_is_given_out():
    bench = MutationBench()
    bench.at(Moment.DRY_RUN, lambda: bench.clock.advance(20 * SECOND))
    token = bench.token()
    bench.clock.advance(TTL - 1)
    assert bench.confirm(token).executed is True


@promise("K8")
def test_without_a_store_nothing_is_sent_and_the_refusal_says_so():
    bench = MutationBench()
    bench.ledger.down = True
    refused = bench.propose("connection")
    assert (refused.reason, refused.receipt_id) == (Reason.STORE_UNAVAILABLE, None)
    assert bench.endpoint.asks == []
    invalid = bench.propose("connection", name="")
    assert (invalid.reason, invalid.receipt_id) == (Reason.ARGUMENTS_INVALID, None)


@promise("K8")
def test_a_store_that_fails_after_the_dry_run_gives_out_no_token():
    bench = MutationBench()
    bench.ledger.broken.add("open_group")
    refused = bench.propose("connection")
    assert refused.reason is Reason.STORE_UNAVAILABLE
    assert bench.creates == 0
    assert bench.written() == [("decision", "store_unavailable", "")]


@promise("M5", "K5")
def test_a_path_into_what_is_sensitive_ends_at_it_in_receipts():
    bench = MutationBench(ORCHARD)
    spec = {"species": "pear", "count": 1, "gate": {"pin": {"4711": 1}}}
    refused = bench.broker.propose(AGENT, proposing("plant", spec))
    assert refused.reason is Reason.ARGUMENTS_INVALID
    hidden = bench.broker.propose(AGENT, proposing("plant", {**spec, "gate": {"pin": {"47\u202e11": 1}}}))
    assert hidden.reason is Reason.UNSHOWABLE_VALUE
    written = json.dumps(bench.receipts())
    assert "4711" not in written
    assert "47\\\\u202e11" not in written
    assert [each["detail"].partition(":")[0] for each in bench.receipts()] == ["/gate/pin", "/gate/pin"]


@promise("M6")
def test_the_moments_of_a_proposal_come_in_their_order():
    bench = MutationBench()
    bench.propose("connection", spec_of("connection"))
    assert bench.moments == [Moment.DRY_RUN, Moment.PRICE, Moment.SEAL]
