"""Real server processes that die, hang, flood, or answer at length."""

import json

import pytest
from marks import promise
from wire_peers import initialized

from assisted_benchmark.kernel.canonical import MIB
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.wire.outcomes import Era, Limits, Odd, Result

HANDSHAKE = [
    ["read"],
    ["say", '{"jsonrpc":"2.0","id":{id},"result":' + json.dumps(initialized()) + "}"],
    ["read"],
]
LINE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'


@pytest.fixture
def raw(process):
    """A connected session with a process that goes on with these steps."""

    def make(*steps, **options):
        peer = process("raw.py", json.dumps(HANDSHAKE + list(steps)), era=Era.HANDSHAKE, **options)
        peer.session.connect(peer.within(20_000))
        return peer

    return make


def ends(end):
    return type(end), getattr(end, "reason", None)


UNKNOWN = (Uncertain, Reason.OUTCOME_UNKNOWN)


@pytest.mark.parametrize("acts", [0, 1])
def test_a_server_that_dies_before_or_after_it_acted_leaves_the_call_uncertain(raw, tmp_path, acts):
    record = tmp_path / "acts"
    peer = raw(["read"], *[["act", str(record)]] * acts, ["die"])
    assert ends(peer.call()) == UNKNOWN
    assert ends(peer.call()) == (NotSent, Reason.SERVER_UNAVAILABLE)
    assert record.exists() == bool(acts)
    if acts:
        assert record.read_text() == "acted\n"


@promise("W7")
def test_a_server_that_hangs_costs_no_more_than_the_deadline(raw):
    peer = raw(["read"], ["deaf"])
    assert ends(peer.call(ms=30)) == UNKNOWN


@promise("W7")
def test_a_server_that_never_reads_costs_no_more_than_the_deadline(raw):
    peer = raw(["deaf"])
    assert ends(peer.call(arguments=b'{"a":"' + b"x" * MIB + b'"}', ms=30)) == UNKNOWN
    assert peer.session.closed


@promise("W7")
def test_a_server_that_talks_without_end_costs_no_more_than_the_deadline(raw):
    peer = raw(["read"], ["for ever", LINE])
    assert ends(peer.call(ms=50)) == UNKNOWN


@promise("W10a")
def test_a_server_that_fills_its_standard_error_is_not_held_up(raw):
    peer = raw(["grumble", MIB], ["read"], ["grumble", MIB], ["answer", 1], limits=Limits(stderr_tail=9))
    assert isinstance(peer.call(), Result)
    assert peer.session.finish(peer.within(20_000))
    assert peer.session.stderr_tail == b" the end\n"


def test_a_storm_of_changes_is_one_change(raw):
    peer = raw(["read"], ["storm", 20_000, CHANGED], ["answer", 1])
    assert isinstance(peer.call(), Result)
    assert peer.session.tools_changed
    assert peer.session.oddities == ()


def test_an_answer_of_sixteen_mebibytes_comes_whole(raw):
    peer = raw(["read"], ["answer", 16 * MIB])
    end = peer.call(ms=60_000)
    assert isinstance(end, Result)
    assert len(end.value["pad"]) == 16 * MIB


@promise("W3")
def test_an_answer_above_the_bound_is_skipped_and_the_session_goes_on(raw):
    peer = raw(["read"], ["answer", 2 * MIB], ["read"], ["read"], ["answer", 1], limits=Limits(line=MIB))
    assert ends(peer.call(ms=100)) == UNKNOWN
    assert isinstance(peer.call(), Result)
    assert [(oddity.kind, oddity.reason) for oddity in peer.session.oddities] == [(Odd.BAD_LINE, Reason.TOO_LARGE)]


def test_cursors_without_end_are_an_incomplete_listing(raw):
    page = '{"jsonrpc":"2.0","id":{id},"result":{"tools":[],"nextCursor":"{id}"}}'
    peer = raw(*[["read"], ["say", page]] * 70)
    with pytest.raises(ServerError) as caught:
        peer.session.list_tools(peer.within(20_000))
    assert caught.value.reason is Reason.INCOMPLETE_LISTING
