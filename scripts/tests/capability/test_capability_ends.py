"""How operations end: what the host says and what it is worth, and what is lost on the way."""

import json

import pytest
from capability_bench import (
    GESTURE,
    MAKERS,
    STATE,
    STATE_READ,
    CapabilityBench,
    an_instance,
)
from marks import promise

from assisted_benchmark.capability.ports import Ended, Word
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.clock import SECOND, Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain

NOW = Instant(1, 1)


@pytest.fixture(params=sorted(MAKERS))
def ledger(request, tmp_path):
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


def ends(word, **more):
    return lambda bench: bench.world.ended(json.dumps({"no": "result"}).encode(), word, **more)


@promise("C25")
@pytest.mark.parametrize(
    ("reply", "state", "reason"),
    [
        (ends(Word.FAILED), State.FAILED, Reason.FAILED),
        (ends(Word.FAILED, code="state_conflict"), State.FAILED, Reason.STATE_CONFLICT),
        (ends(Word.CANCELLED), State.CANCELLED, Reason.CANCELLED),
        (ends(Word.COMPLETED), State.UNKNOWN_NEEDS_REFRESH, Reason.RESULT_INVALID),
        (lambda bench: bench.world.ended(b"{"), State.UNKNOWN_NEEDS_REFRESH, Reason.RESULT_INVALID),
        (
            lambda bench: bench.world.ended(b'{"applied":true,"receipt_id":"other","state_generation":1}'),
            State.UNKNOWN_NEEDS_REFRESH,
            Reason.RESULT_INVALID,
        ),
        (
            lambda bench: NotSent(Reason.SERVER_UNAVAILABLE, "no connection"),
            State.CANCELLED,
            Reason.SERVER_UNAVAILABLE,
        ),
        (
            lambda bench: Uncertain(Reason.OUTCOME_UNKNOWN, "lost", NOW),
            State.UNKNOWN_NEEDS_REFRESH,
            Reason.OUTCOME_UNKNOWN,
        ),
    ],
    ids=["failed", "host's conflict", "cancelled", "schema", "bytes", "another receipt", "not sent", "lost"],
)
def test_a_success_is_never_assumed(ledger, reply, state, reason):
    bench = CapabilityBench(ledger=ledger)
    bench.world.execute = lambda claimed, envelope: reply(bench)
    answer = bench.ask(GESTURE)
    assert (answer.state, answer.reason, answer.content) == (state, reason, None)
    assert bench.groups() == [state.value]
    assert bench.told("pulp_control_state_parameter_gesture", answer)["ok"] is False


@promise("C25")
def test_an_answer_to_a_request_that_its_gate_did_not_let_out_is_no_success():
    bench = CapabilityBench()

    def request(claimed, envelope, *, gate, deadline, progress):
        return Ended(Word.COMPLETED, b"{}", NOW, NOW)

    bench.world.request = request
    answer = bench.ask(STATE_READ)
    assert (answer.state, answer.reason) == (State.UNKNOWN_NEEDS_REFRESH, Reason.OUTCOME_UNKNOWN)


@promise("C25")
def test_a_host_that_breaks_its_word_leaves_an_unknown_end():
    bench = CapabilityBench()

    def fail(claimed, envelope):
        raise RuntimeError("a bug")

    bench.world.execute = fail
    with pytest.raises(RuntimeError):
        bench.ask(STATE_READ, request_id="r-1")
    assert bench.groups() == ["unknown_needs_refresh"]
    assert bench.ask(STATE_READ, request_id="r-1").explanation == "RuntimeError while the request was under way"


@promise("C17")
def test_what_the_host_explains_is_shown_safely_and_bounded():
    bench = CapabilityBench()
    ended = bench.world.ended(b"", Word.FAILED, explanation="\u202e" * 5000)
    bench.world.execute = lambda claimed, envelope: ended
    answer = bench.ask(STATE_READ)
    assert len(answer.explanation) <= 1024
    assert "\u202e" not in answer.explanation
    assert bench.told("pulp_control_state_read", answer)["ok"] is False


def revoke(bench, grant):
    assert bench.manage("revoke", grant_id=grant).status == "revoked"


def expire(bench, grant):
    bench.clock.advance(15 * 60 * SECOND)


def publish(bench, grant):
    bench.world.live = (an_instance(publication="publication-2"),)


def teardown(bench, grant):
    bench.world.live = ()


@promise("C25")
@pytest.mark.parametrize("change", [revoke, expire, publish, teardown])
def test_success_after_the_authority_was_lost_is_told_as_such(ledger, change):
    bench = CapabilityBench(ledger=ledger)
    grant = bench.granted(STATE_READ)

    def execute(claimed, envelope):
        change(bench, grant)
        return bench.execute(claimed, envelope)

    bench.world.execute = execute
    answer = bench.ask(STATE_READ, grant_id=grant)
    assert (answer.state, answer.reason, answer.content) == (
        State.COMPLETED_AFTER_REVOCATION,
        Reason.COMPLETED_AFTER_REVOCATION,
        None,
    )
    structured = bench.told("pulp_control_state_read", answer)
    assert (structured["ok"], structured["error"]["data"]["state"]) == (False, "completed_after_revocation")
    assert bench.groups() == ["completed_after_revocation"]


@promise("C25")
def test_a_revocation_tells_the_host_once_of_what_is_under_way():
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)

    def execute(claimed, envelope):
        revoke(bench, grant)
        return bench.world.ended(b"", Word.CANCELLED)

    bench.world.execute = execute
    answer = bench.ask(STATE_READ, grant_id=grant, request_id="r-1")
    assert (answer.state, answer.reason) == (State.CANCELLED, Reason.REVOKED)
    assert [(each.request_id, each.reason) for each in bench.world.cancelled] == [("r-1", "revoked")]


@promise("C23", "K5")
@pytest.mark.parametrize("word", list(Word))
def test_the_hosts_own_words_are_told_to_the_caller_and_stand_in_no_receipt(ledger, word):
    bench = CapabilityBench(ledger=ledger)
    result = json.dumps(STATE).encode()
    bench.world.execute = lambda claimed, envelope: bench.world.ended(result, word, explanation="the value is s3cret")
    answer = bench.ask(STATE_READ, request_id="r-1")
    assert (answer.state.value, answer.explanation) == (word.value, "the value is s3cret")
    assert not any(b"s3cret" in line for line in ledger.receipts("run-1"))
    bench.restart()
    assert "s3cret" not in bench.ask(STATE_READ, request_id="r-1").explanation
