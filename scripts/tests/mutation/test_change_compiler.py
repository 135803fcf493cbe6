"""From a spec to exact bytes: what is refused and where, what is sent, and the digest that a token is bound to."""

import json

import pytest
from marks import promise
from mutation_bench import AGENT, FABRIC, ORCHARD, MutationBench, proposing, spec_of

from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.compiler import Compiled, compile_change, request_digest, unshowable
from assisted_benchmark.mutation.ports import Request
from assisted_benchmark.mutation.template import filled, references

PORT = {"uuid": "c4d9350e-77c5-7c5d-1ce0-306a5c00a600"}
TAGGED = {"type": "DOT1Q", "vlanTag": 2041}


def side(**point):
    return {"accessPoint": {"type": "COLO", "port": PORT, "linkProtocol": TAGGED, **point}}


def selectors(**point):
    return {"accessPointSelectors": [{"type": "COLO", "port": PORT, "linkProtocol": TAGGED, **point}]}


def token_for(**connection):
    return {"connection": {**spec_of("service-token")["connection"], **connection}}


GOOD = {
    "two tags": ("connection", {"aSide": side(linkProtocol={"type": "QINQ", "vlanSTag": 2, "vlanCTag": 4092})}),
    "no tag": ("connection", {"aSide": side(linkProtocol={"type": "UNTAGGED"})}),
    "a service token": ("connection", {"aSide": {"serviceToken": PORT}}),
    "a cloud router": ("connection", {"aSide": {"accessPoint": {"type": "CLOUD_ROUTER", "router": PORT}}}),
    "a network": ("connection", {"zSide": {"accessPoint": {"type": "NETWORK", "network": PORT}}}),
    "a virtual device": ("connection", {"aSide": {"accessPoint": {"type": "VD", "virtualDevice": PORT}}}),
    "a key at the provider": (
        "connection",
        {"zSide": {"accessPoint": {"type": "SP", "profile": PORT, "authenticationKey": "0123", "sellerRegion": "eu"}}},
    ),
    "no bandwidth at all": ("connection", {"bandwidth": 0}),
    "all of it": ("connection", {"bandwidth": 100000, "order": {"purchaseOrderNumber": "PO-1"}}),
    "a global network": ("network", {"type": "IPWAN", "scope": "GLOBAL"}),
    "an EPL token": ("service-token", {"type": "EPL_TOKEN", **token_for(type="EPL_VC")}),
    "a token for the other side": ("service-token", token_for() | {"description": "for you"}),
}


@promise("M5")
@pytest.mark.parametrize(("change", "more"), GOOD.values(), ids=GOOD)
def test_what_the_endpoint_allows_is_proposed(change, more):
    bench = MutationBench()
    assert bench.propose(change, **more).token.startswith("chg-1-")


BAD = {
    "an unknown field": ("connection", {"nmae": "x"}, "/nmae"),
    "an unknown field deep within": ("connection", {"aSide": side(prot=PORT)}, "/aSide/accessPoint/prot"),
    "an unknown field in a list": (
        "network",
        {"notifications": [{"type": "ALL", "emails": ["a@b.c"], "cc": []}]},
        "/notifications/0/cc",
    ),
    "a wrong word": ("connection", {"type": "EVPL"}, "/type"),
    "a wrong scope": ("network", {"scope": "WORLD"}, "/scope"),
    "an empty text": ("connection", {"name": ""}, "/name"),
    "a missing field": ("connection", {"bandwidth": None}, "/"),
    "a bandwidth below the least": ("connection", {"bandwidth": -1}, "/bandwidth"),
    "a bandwidth above the most": ("connection", {"bandwidth": 100001}, "/bandwidth"),
    "a bandwidth as text": ("connection", {"bandwidth": "50"}, "/bandwidth"),
    "a flag for a number": ("connection", {"bandwidth": True}, "/bandwidth"),
    "a vlan below the least": (
        "connection",
        {"aSide": side(linkProtocol={"type": "DOT1Q", "vlanTag": 1})},
        "/aSide/accessPoint/linkProtocol/vlanTag",
    ),
    "a vlan above the most": (
        "connection",
        {"aSide": side(linkProtocol={"type": "DOT1Q", "vlanTag": 4093})},
        "/aSide/accessPoint/linkProtocol/vlanTag",
    ),
    "a tag of the other protocol": (
        "connection",
        {"aSide": side(linkProtocol={**TAGGED, "vlanSTag": 5})},
        "/aSide/accessPoint/linkProtocol/vlanSTag",
    ),
    "one tag where two are": (
        "connection",
        {"aSide": side(linkProtocol={"type": "QINQ", "vlanSTag": 5})},
        "/aSide/accessPoint/linkProtocol",
    ),
    "a tag on what has none": (
        "connection",
        {"aSide": side(linkProtocol={"type": "UNTAGGED", "vlanTag": 5})},
        "/aSide/accessPoint/linkProtocol/vlanTag",
    ),
    "both kinds of a side": ("connection", {"aSide": {**side(), "serviceToken": PORT}}, "/aSide"),
    "neither kind of a side": ("connection", {"aSide": {}}, "/aSide"),
    "a port of a provider": ("connection", {"aSide": side(type="SP")}, "/aSide/accessPoint/port"),
    "a port without link protocol": (
        "connection",
        {"aSide": {"accessPoint": {"type": "COLO", "port": PORT}}},
        "/aSide/accessPoint",
    ),
    "a link protocol on a router": (
        "connection",
        {"aSide": {"accessPoint": {"type": "CLOUD_ROUTER", "router": PORT, "linkProtocol": TAGGED}}},
        "/aSide/accessPoint/linkProtocol",
    ),
    "a provider's key on a port": (
        "connection",
        {"aSide": side(authenticationKey="k")},
        "/aSide/accessPoint/authenticationKey",
    ),
    "no UUID": ("connection", {"aSide": side(port={"uuid": "../x"})}, "/aSide/accessPoint/port/uuid"),
    "no address": (
        "network",
        {"notifications": [{"type": "ALL", "emails": ["nobody"]}]},
        "/notifications/0/emails/0",
    ),
    "nobody to notify": ("network", {"notifications": []}, "/notifications"),
    "a token for the other kind": ("service-token", token_for(type="EPL_VC"), "/connection/type"),
    "a token for both sides": (
        "service-token",
        token_for(aSide=selectors(), zSide=selectors()),
        "/connection",
    ),
    "no instant": ("service-token", {"expirationDateTime": "tomorrow"}, "/expirationDateTime"),
    "no flag": ("service-token", token_for(allowRemoteConnection="yes"), "/connection/allowRemoteConnection"),
}


@promise("M5", "M6")
@pytest.mark.parametrize(("change", "more", "path"), BAD.values(), ids=BAD)
def test_a_spec_with_a_fault_is_refused_at_its_field_and_nothing_is_sent(change, more, path):
    bench = MutationBench()
    refused = bench.propose(change, **more)
    assert refused.reason is Reason.ARGUMENTS_INVALID
    assert path in [each.path for each in refused.problems]
    assert bench.told(refused)["problems"] == [each._asdict() for each in refused.problems]
    assert (bench.endpoint.asks, bench.endpoint.creates) == ([], [])
    assert bench.written() == [("decision", "arguments_invalid", "")]


@promise("M5")
def test_of_many_faults_a_hundred_are_told():
    bench = MutationBench()
    many = [{"type": "ALL", "emails": [""]}] * 500
    refused = bench.propose("network", notifications=many)
    assert (refused.reason, len(refused.problems)) == (Reason.ARGUMENTS_INVALID, 100)


UNREADABLE = {
    "no JSON": (b"{", Reason.MALFORMED_CALL, "/"),
    "no UTF-8": (b'{"change_type":"\xff"}', Reason.MALFORMED_UNICODE, "/"),
    "a key twice": (b'{"change_type":"network","change_type":"network","spec":{}}', Reason.DUPLICATE_KEY, "/"),
    "no object": (b"[]", Reason.ARGUMENTS_NOT_OBJECT, "/"),
    "an unknown argument": (b'{"change_type":"network","specs":{}}', Reason.ARGUMENTS_INVALID, "/specs"),
    "no type": (b'{"spec":{}}', Reason.ARGUMENTS_INVALID, "/change_type"),
    "no spec": (b'{"change_type":"network"}', Reason.ARGUMENTS_INVALID, "/spec"),
    "a spec that is a list": (b'{"change_type":"network","spec":[]}', Reason.ARGUMENTS_INVALID, "/spec"),
    "another change": (b'{"change_type":"netwrok","spec":{}}', Reason.UNKNOWN_CHANGE, "/change_type"),
    "a delete": (b'{"change_type":"delete-connection","spec":{}}', Reason.UNKNOWN_CHANGE, "/change_type"),
    "a number's other spelling": (
        proposing("connection", spec_of(bandwidth=50.0)),
        Reason.NON_CANONICAL_NUMBER,
        "/bandwidth",
    ),
}


@promise("M5", "M3", "K1")
@pytest.mark.parametrize(("raw", "reason", "path"), UNREADABLE.values(), ids=UNREADABLE)
def test_arguments_that_propose_nothing_are_refused_before_anything_is_sent(raw, reason, path):
    bench = MutationBench()
    refused = bench.broker.propose(AGENT, raw)
    assert (refused.reason, [each.path for each in refused.problems]) == (reason, [path])
    assert refused.receipt_id == bench.receipts()[0]["id"]
    assert (bench.endpoint.asks, bench.endpoint.creates) == ([], [])


UNSHOWABLE = {
    "an escape sequence": "a\x1b[31mb",
    "a line break": "a\nb",
    "a tab": "a\tb",
    "a direction mark": "a\u202eb",
    "an isolate": "a\u2066b",
    "a zero-width joiner": "a\u200db",
    "a tag character": "a\U000e0041b",
    "a soft hyphen": "a\u00adb",
    "a filler that draws nothing": "a\u3164b",
    "a line separator": "a\u2028b",
    "a private character": "a\ue000b",
    "a tower of marks": "a" + "\u0301" * 5,
    "a mark on the quote before it": "\u20ddpear",
    "blanks that fill a line": "pear" + " " * 5 + "Price: 0 USD",
    "wide blanks that do": "pear" + "\u3000\u00a0" * 3 + "Price: 0 USD",
    "one character too many": "a" * 2001,
}


@promise("M15")
@pytest.mark.parametrize("text", UNSHOWABLE.values(), ids=UNSHOWABLE)
def test_what_a_person_cannot_be_shown_is_refused_when_it_is_proposed(text):
    bench = MutationBench(ORCHARD)
    for spec, path in (
        ({"species": text, "count": 1}, "/species"),
        ({"species": "pear", "count": 1, "labels": {"row": text}}, "/labels/row"),
    ):
        refused = bench.propose("plant", spec)
        assert refused.reason is Reason.UNSHOWABLE_VALUE
        assert [each.path for each in refused.problems] == [path]
        assert text not in json.dumps(bench.receipts(), ensure_ascii=False)
    named = bench.propose("plant", {"species": "pear", "count": 1, "labels": {text: "x"}})
    assert named.reason is Reason.UNSHOWABLE_VALUE
    assert bench.endpoint.asks == []


@promise("M15")
def test_a_text_of_as_many_characters_as_can_be_shown_and_letters_of_all_scripts_are_taken():
    bench = MutationBench(ORCHARD)
    assert bench.propose("plant", {"species": "ä" * 2000, "count": 1}).token
    assert bench.propose("plant", {"species": "梨の木 - شجرة", "count": 1}).token
    assert bench.propose("plant", {"species": "a" + "\u0301" * 4 + "b    c", "count": 1}).token
    assert unshowable({"a": [1, None, True, "x"]}) == ()


@promise("M9", "K4")
def test_the_digest_covers_the_type_and_the_canonical_body_and_is_the_first_releases():
    made = {each.name: compile_change(each, each.example.value) for each in FABRIC.changes}
    for each in made.values():
        assert each.digest == digest_of("change-request@1", each.change.encode(), each.body)
        assert each.body == json.dumps(json.loads(each.body), sort_keys=True, separators=(",", ":")).encode()
    assert {name: each.digest for name, each in made.items()} == {
        "connection": "sha256:270125d99ace6e10202cecade9bf6e1347c82b7e31378380d017ea3400bbc9a4",
        "network": "sha256:de5d1407bec4d23fba1ffc97e8cd19d65b78ff14476a079c4599149bc551c464",
        "service-token": "sha256:e40130ceb91943882b60a4c6cc89657d0df2d935e6af82b52ca48e2f842098f5",
    }
    assert (
        request_digest("network", b"{}") != request_digest("connection", b"{}") != request_digest("connection", b"[]")
    )


@promise("M9")
def test_a_body_is_written_as_rfc_8785_says_whatever_the_spelling():
    bench = MutationBench(ORCHARD)
    raw = b'{"spec":{"weight":1.50e0,"count":2,"species":"\\u0070ear"},"change_type":"plant"}'
    sealed = bench.broker.propose(AGENT, raw)
    (dry,) = bench.endpoint.asks
    assert dry.body == b'{"count":"2","weight":1.5,"what":{"kind":"tree","species":"pear"}}'
    assert sealed.request == request_digest("plant", dry.body)


def test_a_compiled_change_is_the_same_request_dry_and_real():
    compiled = Compiled("plant", "/trees", b"{}", request_digest("plant", b"{}"))
    assert compiled.dry("validate=only") == Request("POST", "/trees?validate=only", b"{}")
    assert compiled.real() == Request("POST", "/trees", b"{}")


def test_what_is_left_out_drops_out_with_all_that_was_about_it():
    template = {
        "kept": 1,
        "a": {"from": "a"},
        "about_b": {"label": "b is", "values": [{"from": "b"}]},
        "c": [{"from": "a"}, {"from": "b"}, "c"],
        "text": {"text_of": "n"},
        "deep": {"from": "o.p"},
    }
    assert filled(template, {"a": None, "n": 1.5, "o": {"p": False}}) == {
        "kept": 1,
        "a": None,
        "c": [None, "c"],
        "text": "1.5",
        "deep": False,
    }
    assert filled(template, {"b": "x", "n": "t", "o": 3}) == {
        "kept": 1,
        "about_b": {"label": "b is", "values": ["x"]},
        "c": ["x", "c"],
        "text": "t",
    }
    assert filled({"a": {"from": "a"}}, {}) == {}
    # what only looks like a reference is data
    assert filled({"x": {"from": 1}, "y": {"from": "a", "to": "b"}}, {}) == {
        "x": {"from": 1},
        "y": {"from": "a", "to": "b"},
    }
    assert [path for _, path in references(template)] == [("a",), ("b",), ("a",), ("b",), ("n",), ("o", "p")]
