"""Finding the era, agreeing on a version, and hearing of changes."""

import pytest
from marks import promise
from wire_peers import MS, discovered, failure, initialized, reply, told

from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.outcomes import Connected, Era, Limits, Odd, Oddity

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
ENVELOPE = {
    VERSION_KEY: "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "assisted-benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LISTENS = {"tools": {"listChanged": True}}


def methods(peer):
    return [message["method"] for message in peer.heard()]


@promise("W1", "W2")
def test_a_server_that_answers_the_probe_is_in_the_stateless_era(pipes):
    peer = pipes()
    info = {"name": "s", "version": "2"}
    peer.says(reply(1, discovered() | {"_meta": {"io.modelcontextprotocol/serverInfo": info}}))
    assert peer.session.connect(peer.within(50)) == Connected(Era.STATELESS, "2026-07-28", info, {})
    assert peer.heard() == [{"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": ENVELOPE}}]


@promise("W2")
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(failure(1, -32601), id="method not found"),
        pytest.param(failure(1, -32602), id="invalid params"),
        pytest.param(failure(1, -32022, {"supported": ["2025-06-18"]}), id="supports the handshake era"),
        pytest.param(failure(1, -32022, "?"), id="unsupported, without a list"),
        pytest.param(failure(1, 7), id="some error"),
        pytest.param(reply(1, {}), id="not what discovery gives"),
        pytest.param(reply(1, [1]), id="no object"),
        pytest.param(reply(1, discovered(["2025-11-25", 3])), id="offers the handshake era"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, id="no message"),
    ],
)
def test_every_unrecognised_answer_to_the_probe_falls_back_to_the_handshake(pipes, answer):
    peer = pipes(answer, reply(2, initialized("2025-06-18")))
    found = peer.session.connect(peer.within(50))
    assert found == Connected(Era.HANDSHAKE, "2025-06-18", {"name": "pipes", "version": "1"}, {})
    discover, initialize, ready = peer.heard()
    assert (discover["method"], initialize["method"], ready["method"]) == (
        "server/discover",
        "initialize",
        "notifications/initialized",
    )
    assert initialize["params"] == {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "assisted-benchmark", "version": "1"},
    }


@promise("W2")
def test_silence_falls_back_to_the_handshake_after_a_deadline_of_its_own(pipes):
    peer = pipes([], reply(2, initialized()))
    assert peer.session.connect(peer.within(200)).era is Era.HANDSHAKE
    assert methods(peer) == ["server/discover", "initialize", "notifications/initialized"]


@promise("W1")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_version_of_the_handshake_era_is_spoken(pipes, version):
    peer = pipes(era=Era.HANDSHAKE)
    peer.says(reply(1, initialized(version)))
    assert peer.session.connect(peer.within(50)).version == version
    assert methods(peer) == ["initialize", "notifications/initialized"]


@promise("W1")
@pytest.mark.parametrize("version", ["2023-01-01", "2026-07-28", None, 3])
def test_any_other_version_is_a_protocol_mismatch(pipes, version):
    peer = pipes(era=Era.HANDSHAKE)
    peer.says(reply(1, initialized(version)))
    with pytest.raises(ServerError) as caught:
        peer.session.connect(peer.within(50))
    assert caught.value.reason is Reason.PROTOCOL_MISMATCH


@promise("W2")
def test_a_server_that_speaks_only_later_versions_is_a_protocol_mismatch(pipes):
    peer = pipes()
    peer.says(failure(1, -32022, {"supported": ["2027-01-01"], "requested": "2026-07-28"}))
    with pytest.raises(ServerError) as caught:
        peer.session.connect(peer.within(50))
    assert caught.value.reason is Reason.PROTOCOL_MISMATCH
    assert methods(peer) == ["server/discover"]


@promise("W2")
def test_a_probe_that_was_answered_too_late_is_made_again(pipes):
    locked = failure(2, -32022, {"supported": ["2026-07-28"]})
    peer = pipes([], [reply(1, discovered()), locked], reply(3, discovered()))
    assert peer.session.connect(peer.within(50)).era is Era.STATELESS
    assert methods(peer) == ["server/discover", "initialize", "server/discover"]
    assert [oddity.kind for oddity in peer.session.oddities] == [Odd.SETTLED_ID]


@pytest.mark.parametrize(
    ("era", "answer", "reason"),
    [
        (Era.STATELESS, reply(1, {}), Reason.PROTOCOL_MISMATCH),
        (Era.STATELESS, failure(1, -32601), Reason.PROTOCOL_MISMATCH),
        (Era.HANDSHAKE, failure(1, -32022, {"supported": ["2026-07-28"]}), Reason.PROTOCOL_MISMATCH),
        (Era.HANDSHAKE, failure(1, -32603), Reason.FAILED),
        (Era.HANDSHAKE, reply(1, []), Reason.MALFORMED_FRAME),
        (Era.HANDSHAKE, {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, Reason.MALFORMED_FRAME),
        (None, b"", Reason.DEADLINE_EXCEEDED),
        (Era.STATELESS, b"", Reason.DEADLINE_EXCEEDED),
        (Era.HANDSHAKE, b"", Reason.DEADLINE_EXCEEDED),
    ],
)
def test_a_known_era_is_not_probed_for_and_failing_to_connect_has_a_reason(pipes, era, answer, reason):
    peer = pipes(era=era, limits=Limits(probe_ns=MS))
    peer.says(answer)
    with pytest.raises(ServerError) as caught:
        peer.session.connect(peer.within(3))
    assert caught.value.reason is reason


def test_a_server_that_ends_while_it_is_probed_is_unavailable(pipes):
    peer = pipes()
    peer.dies()
    with pytest.raises(ServerError) as caught:
        peer.session.connect(peer.within(50))
    assert caught.value.reason is Reason.SERVER_UNAVAILABLE
    assert peer.session.closed


def test_declared_capabilities_are_told_in_both_eras(pipes):
    for era, answer in ((Era.HANDSHAKE, initialized()), (Era.STATELESS, discovered())):
        peer = pipes(era=era, capabilities={"elicitation": {}})
        peer.says(reply(1, answer))
        peer.session.connect(peer.within(50))
        params = peer.heard()[0]["params"]
        told_of = params.get("capabilities") or params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        assert told_of == {"elicitation": {}}


def acknowledged(listen_id, **honoured):
    meta = {"io.modelcontextprotocol/subscriptionId": listen_id}
    return told("notifications/subscriptions/acknowledged", notifications=honoured, _meta=meta)


@promise("W1")
def test_in_the_stateless_era_changes_are_subscribed_to_and_heard(pipes):
    acknowledgement = acknowledged(2, toolsListChanged=True)
    peer = pipes(reply(1, discovered(capabilities=LISTENS)), acknowledgement, reply(3, {"tools": []}))
    assert peer.session.connect(peer.within(50)).list_changed
    listen = peer.heard()[1]
    assert listen == {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE},
    }
    assert not peer.session.tools_changed
    assert not peer.session.watch_lost
    peer.says(told("notifications/tools/list_changed", _meta={"io.modelcontextprotocol/subscriptionId": 2}))
    peer.session.drain()
    assert peer.session.tools_changed
    assert peer.session.list_tools(peer.within(50)) == []
    assert not peer.session.tools_changed


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([], id="silence"),
        pytest.param([acknowledged(2)], id="not honoured"),
        pytest.param([acknowledged(True, toolsListChanged=True)], id="another subscription"),
        pytest.param([told("notifications/subscriptions/acknowledged")], id="no subscription"),
        pytest.param([failure(2, -32601)], id="refused"),
        pytest.param([acknowledged(2, toolsListChanged=True), reply(2, {})], id="ended"),
    ],
)
def test_a_server_that_promised_to_tell_and_does_not_counts_as_changed_for_good(pipes, answers):
    peer = pipes(reply(1, discovered(capabilities=LISTENS)), answers, reply(3, {"tools": []}))
    peer.session.connect(peer.within(50))
    peer.session.drain()
    assert peer.session.tools_changed
    assert peer.session.watch_lost
    assert [oddity.kind for oddity in peer.session.oddities] == [Odd.WATCH_LOST]
    peer.session.list_tools(peer.within(50))
    assert peer.session.tools_changed


@promise("W1")
def test_in_the_handshake_era_changes_come_unasked(pipes):
    peer = pipes().connected(capabilities=LISTENS)
    assert peer.heard() == []
    assert not peer.session.tools_changed
    peer.says(told("notifications/tools/list_changed"))
    peer.session.drain()
    assert peer.session.tools_changed
    assert peer.session.oddities == ()


def test_a_list_that_changes_while_it_is_listed_counts_as_changed(pipes):
    peer = pipes().connected()
    peer.says(told("notifications/tools/list_changed"), reply(2, {"tools": []}))
    peer.session.list_tools(peer.within(50))
    assert peer.session.tools_changed


@pytest.mark.parametrize("capabilities", [{}, {"tools": {}}, {"tools": True}, {"tools": {"listChanged": 1}}])
def test_only_a_clear_promise_counts_as_one(capabilities):
    assert not Connected(Era.STATELESS, "2026-07-28", None, capabilities).list_changed


def test_oddities_are_bounded(pipes):
    peer = pipes(limits=Limits(oddities=2)).connected()
    peer.says(b"words\n" * 5)
    peer.session.drain()
    assert [oddity.reason for oddity in peer.session.oddities] == [Reason.MALFORMED_CALL] * 2
    assert isinstance(peer.session.oddities[0], Oddity)
    assert peer.session.oddities_dropped == 3
