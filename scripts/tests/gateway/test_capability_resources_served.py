"""A registry's resources as an agent of either era meets them: exact instances and its own artifacts, read only."""

import base64
import hashlib
import json
import threading

import pytest
from agent_peers import a_tool, ask, cancel, modern
from capability_bench import an_instance
from marks import promise
from operating_bench import ERAS, WAIT, Operating

from assisted_benchmark.capability.artifacts import artifact_id
from assisted_benchmark.capability.ports import Blob, Ended, Unavailable, Word
from assisted_benchmark.capability.reading import Resource
from assisted_benchmark.capability.resources import templates
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.outcomes import Era

both = pytest.mark.parametrize("era", ERAS)
DIAGNOSTICS = "dev.pulp.diagnostics/read@1"
MIME = "application/vnd.pulp.diagnostics+json"
INSTANCE = "pulp-control://instance/instance-1"
METHODS = ("resources/list", "resources/templates/list", "resources/read")


@pytest.fixture
def operating(agent):
    return lambda **options: Operating(agent, **options)


def leaves(ours, data):
    """Let the host answer diagnostics with one artifact of these bytes."""

    def execute(claimed, envelope):
        sha256, now = hashlib.sha256(data).hexdigest(), ours.bench.clock.now()
        result = {
            "artifact_id": artifact_id(envelope.receipt_id, sha256),
            "mime_type": MIME,
            "sha256": sha256,
            "byte_count": len(data),
            "item_count": 1,
            "sampled_at_ms": 1,
        }
        return Ended(Word.COMPLETED, json.dumps(result).encode(), now, now, artifacts=(Blob(data, MIME),))

    ours.world.execute = execute


def stamped(agent):
    """What the stateless era wants to be said of a list and of what was read."""
    return {"ttlMs": 0, "cacheScope": "private"} if agent.stateless else {}


def said(agent, method, **params):
    """The result, without what every result of its era has."""
    result = agent.answer(agent.asks(method, **params))["result"]
    meta, kind = result.pop("_meta", None), result.pop("resultType", None)
    assert (meta is not None, kind) == (agent.stateless, "complete" if agent.stateless else None)
    assert {key: result.pop(key) for key in ("ttlMs", "cacheScope") if key in result} == stamped(agent)
    return result


def refused(agent, method, **params):
    return agent.answer(agent.asks(method, **params))["error"]


@promise("C29", "W1")
@both
def test_what_is_listed_can_be_read_and_names_the_exact_instance_and_this_clients_artifacts(operating, era):
    ours = operating(instances=(an_instance(), an_instance("instance-2")))
    leaves(ours, b"{}")
    agent, other = ours.agent(era), ours.agent(era, session=("run-1", "agent-2"))
    artifact = agent.operated(DIAGNOSTICS)["artifacts"][0]["artifact_id"]
    uri = f"pulp-control://artifact/instance-1/{artifact}"
    first, kept, second = said(agent, "resources/list")["resources"]
    assert first == {"uri": INSTANCE, "name": "instance-1", "mimeType": "application/json"}
    assert kept == {"uri": uri, "name": artifact, "mimeType": MIME, "size": 2}
    assert said(other, "resources/list") == {"resources": [first, second]}
    content = said(agent, "resources/read", uri=INSTANCE)["contents"][0]
    assert json.loads(content.pop("text")) == agent.manages("status", instance_id="instance-1")["data"]["instance"]
    assert content == {"uri": INSTANCE, "mimeType": "application/json"}
    blob = base64.b64encode(b"{}").decode()
    assert said(agent, "resources/read", uri=uri) == {"contents": [{"uri": uri, "mimeType": MIME, "blob": blob}]}
    assert refused(other, "resources/read", uri=uri)["code"] == -32602
    assert said(agent, "resources/templates/list") == {"resourceTemplates": templates("pulp-control")}


@promise("C28", "C29")
@both
def test_an_artifact_whose_grant_was_revoked_is_neither_listed_nor_read(operating, era):
    ours = operating()
    leaves(ours, b"{}")
    agent = ours.agent(era)
    grant = agent.manages("grant_request", instance_id="instance-1", operation_id=DIAGNOSTICS)["data"]["grant_id"]
    artifact = agent.operated(DIAGNOSTICS, grant_id=grant)["artifacts"][0]["artifact_id"]
    agent.manages("revoke", grant_id=grant)
    assert [each["name"] for each in said(agent, "resources/list")["resources"]] == ["instance-1"]
    error = refused(agent, "resources/read", uri=f"pulp-control://artifact/instance-1/{artifact}")
    assert (error["code"], ours.refusals) == (-32602, ["revoked"])


@promise("C29", "W8")
@both
@pytest.mark.parametrize(
    "uri",
    [
        "pulp-control://instance/instance-2",
        "pulp-control://artifact/instance-1/none",
        "pulp-control://instance/instance-1/",
        "pulp-control://instance/%69nstance-1",
        "PULP-CONTROL://instance/instance-1",
        "pulp-control://grant/instance-1",
        "file:///etc/passwd",
        "",
        "\u2028",
    ],
)
def test_what_is_no_readable_address_is_one_answer_with_a_receipt(operating, era, uri):
    ours = operating()
    error = refused(ours.agent(era), "resources/read", uri=uri)
    (receipt,) = ours.bench.receipts()
    assert (error["code"], error["message"]) == (-32602, "there is no such resource")
    assert error["data"]["error"]["code"] == "not_authorised"
    assert error["data"]["error"]["data"] == {"may_have_applied": False, "receipt_id": receipt["id"]}


@promise("W8")
@both
@pytest.mark.parametrize("params", [{}, {"uri": None}, {"uri": 1}, {"uri": [INSTANCE]}])
def test_a_read_without_an_address_is_no_call(operating, era, params):
    ours = operating()
    assert refused(ours.agent(era), "resources/read", **params)["code"] == -32602
    assert (ours.world.steps, ours.bench.receipts()) == ([], [])


@promise("C29", "W8")
@both
@pytest.mark.parametrize(("method", "params"), [("resources/list", {}), ("resources/read", {"uri": INSTANCE})])
def test_a_host_that_cannot_be_reached_is_another_answer(operating, era, method, params):
    ours = operating()
    ours.world.fails["inventory"] = Unavailable(Reason.SERVER_UNAVAILABLE, "no answer")
    error = refused(ours.agent(era), method, **params)
    assert (error["code"], error["data"]["error"]["code"]) == (-32603, "unavailable")


@promise("C29")
@both
@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe", "subscriptions/listen"])
def test_there_is_nothing_to_subscribe_to(operating, era, method):
    params = {"uri": INSTANCE, "notifications": {"resourceSubscriptions": [INSTANCE]}}
    assert refused(operating().agent(era), method, **params)["code"] == -32601


@promise("C29", "W1")
@both
@pytest.mark.parametrize("there", [True, False])
def test_resources_are_advertised_where_there_are_some(operating, era, there):
    pipes = operating().pipes([a_tool("act")], **({} if there else {"resources": None}))
    opening = ask(1, "initialize", protocolVersion="2025-11-25", capabilities={})
    pipes.says(opening if era is Era.HANDSHAKE else modern(1) | {"method": "server/discover"})
    advertised = {"resources": {"listChanged": False, "subscribe": False}} if there else {}
    assert pipes.hears()["result"]["capabilities"] == {"tools": {"listChanged": False}} | advertised


@promise("C29")
@both
@pytest.mark.parametrize("method", METHODS)
def test_without_resources_their_methods_are_none(agent, era, method):
    pipes = agent(a_tool("act"))
    if era is Era.STATELESS:
        pipes.says(modern(1) | {"method": method})
    else:
        pipes.opened().says(ask(1, method))
    assert pipes.hears()["error"]["code"] == -32601


@pytest.mark.parametrize("method", METHODS)
def test_before_the_handshake_nothing_is_read(operating, method):
    pipes = operating().pipes()
    pipes.says(ask(1, method, uri=INSTANCE))
    assert pipes.hears()["error"]["code"] == -32600


@both
def test_a_long_list_comes_in_pages(operating, era):
    ours = operating(instances=tuple(an_instance(f"instance-{number}") for number in range(300)))
    agent = ours.agent(era)
    first = said(agent, "resources/list")
    second = said(agent, "resources/list", cursor=first["nextCursor"])
    names = [each["name"] for each in first["resources"] + second["resources"]]
    assert (len(first["resources"]), names) == (256, [f"instance-{number}" for number in range(300)])
    assert "nextCursor" not in second
    for cursor in ("301", "x", 1, None):
        assert refused(agent, "resources/list", cursor=cursor)["code"] == -32602
    assert refused(agent, "resources/templates/list", cursor="9")["code"] == -32602


@pytest.mark.parametrize(
    ("mime_type", "data", "text"),
    [
        ("text/plain", "a\u2028\u00e4".encode(), "a\u2028\u00e4"),
        ("text/plain", b"\xff", None),
        ("image/png", b"png", None),
        ("application/json", b"{}", "{}"),
    ],
)
def test_bytes_come_as_text_only_where_they_are_one(operating, mime_type, data, text):
    ours = operating()
    ours.broker.read_resource = lambda session, uri: Resource(mime_type, data)
    whole = {"text": text} if text is not None else {"blob": base64.b64encode(data).decode()}
    (content,) = said(ours.agent(), "resources/read", uri=INSTANCE)["contents"]
    assert content == {"uri": INSTANCE, "mimeType": mime_type, **whole}


@promise("W5")
@both
@pytest.mark.parametrize("method", ["resources/list", "resources/read"])
def test_a_read_that_is_cancelled_gets_no_answer(operating, era, method):
    ours = operating()
    agent = ours.agent(era)
    asked, go_on = threading.Event(), threading.Event()
    ours.world.on_step = lambda step: (asked.set(), go_on.wait(WAIT))
    request_id = agent.asks(method, uri=INSTANCE)
    assert asked.wait(WAIT)
    agent.pipes.says(cancel(request_id))
    agent.answer(agent.asks("tools/list"))
    go_on.set()
    assert agent.pipes.rest() == []
