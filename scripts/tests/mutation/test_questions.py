"""Asking in two legs: a nonce that is good once, for one call, in time; and what may not be asked meanwhile."""

import re

import pytest
from marks import promise
from mutation_bench import ACCEPT, AGENT, DECLINE, TTL, MutationBench, confirming

from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.answers import REQUESTED_SCHEMA, Silence, Status
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.questions import Call
from assisted_benchmark.mutation.results import Predicates, TokenState
from assisted_benchmark.mutation.states import State

WAIT = 300 * SECOND
OTHER = Session("run-1", "another")


@promise("M17")
def test_one_required_flag_without_a_default_is_asked_for():
    asked = (bench := MutationBench()).begin(bench.token())
    assert asked.requested_schema == REQUESTED_SCHEMA
    assert REQUESTED_SCHEMA["required"] == ["confirm"]
    assert list(REQUESTED_SCHEMA["properties"]) == ["confirm"]
    assert REQUESTED_SCHEMA["properties"]["confirm"]["type"] == "boolean"
    assert "default" not in REQUESTED_SCHEMA["properties"]["confirm"]
    assert asked.wait_ns == WAIT


@promise("M20")
def test_the_state_is_an_opaque_nonce_that_says_nothing():
    bench = MutationBench()
    tokens = [bench.token() for _ in range(2)]
    states = [bench.begin(each).state for each in tokens]
    assert all(re.fullmatch(r"[0-9a-f]{32}", each) for each in states)
    assert states[0] != states[1]


@promise("M20")
def test_a_valid_state_resumes_and_the_same_one_again_is_replayed():
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    assert bench.resume(token, asked).executed is True
    for answer in (ACCEPT, DECLINE):
        again = bench.resume(token, asked, answer)
        assert (again.reason, again.token) == (Reason.REPLAYED, TokenState.REPLAYED)
    assert bench.creates == 1


@promise("M20")
def test_a_state_is_good_for_its_own_call_only_and_stays_good_for_it():
    bench = MutationBench()
    mine, other = bench.token(), bench.token()
    asked, beside = bench.begin(mine), bench.begin(other)
    foreign = [
        bench.broker.resume(AGENT, confirming(other), asked.state, ACCEPT),
        bench.broker.resume(OTHER, confirming(mine), asked.state, ACCEPT),
        bench.broker.resume(AGENT, confirming(mine), beside.state, ACCEPT),
        bench.broker.resume(AGENT, confirming(mine), "", ACCEPT),
        bench.broker.resume(AGENT, confirming(mine), asked.state.upper() + " ", ACCEPT),
    ]
    assert {each.reason for each in foreign} == {Reason.REPLAYED}
    assert {each.predicates for each in foreign} == {Predicates(not_previously_used=False)}
    assert bench.creates == 0
    assert bench.resume(mine, asked).executed is True
    assert bench.resume(other, beside, DECLINE).reason is Reason.DECLINED


@promise("M20")
def test_what_is_asked_at_once_ends_in_turn_each_in_its_own_time():
    bench = MutationBench()
    asked = []
    for _ in range(3):
        token = bench.token()
        asked.append((token, bench.begin(token)))
        bench.clock.advance(SECOND)
    bench.clock.advance(WAIT - 2 * SECOND)  # the first two have waited long enough
    bench.broker.propose(AGENT, b"{}")
    assert [bench.state(token) for token, _ in asked] == [State.REFUSED, State.REFUSED, State.CONFIRMING]
    assert [bench.resume(*each).reason for each in asked[:2]] == [Reason.TIMED_OUT] * 2
    assert bench.resume(*asked[2]).executed is True


@promise("M20")
def test_another_broker_over_the_same_store_knows_no_state_of_the_first():
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    refused = bench.a_broker().resume(AGENT, confirming(token), asked.state, ACCEPT)
    assert refused.reason is Reason.REPLAYED
    assert bench.creates == 0


@promise("M20")
def test_a_nonce_is_of_one_tools_call():
    questions = (bench := MutationBench()).broker._questions
    token = bench.token()
    asked = bench.begin(token)
    assert questions.take(asked.state, Call("orchard_confirm_change", token, AGENT)) is None
    assert questions.take(asked.state, Call("fabric_confirm_change", token, AGENT)) is not None


@promise("M20")
def test_the_same_call_without_a_state_is_replayed_while_the_question_is_open():
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    assert bench.begin(token).reason is Reason.REPLAYED
    assert bench.resume(token, asked).executed is True


@promise("M17", "M20")
@pytest.mark.parametrize("late", [0, 1, TTL])
def test_an_answer_that_comes_too_late_is_timed_out_and_then_replayed(late):
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    bench.clock.advance(WAIT + late)
    refused = bench.resume(token, asked)
    assert (refused.reason, refused.status, refused.token) == (
        Reason.TIMED_OUT,
        Status.TIMED_OUT,
        TokenState.CONSUMED,
    )
    assert bench.resume(token, asked).reason is Reason.REPLAYED
    assert (bench.creates, bench.state(token)) == (0, State.REFUSED)


@promise("M17")
def test_an_answer_right_before_the_end_counts():
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    bench.clock.advance(WAIT - 1)
    assert bench.resume(token, asked).executed is True


CALLS = {"a confirmation": lambda bench: bench.begin("chg-1-" + "0" * 24), "a proposal": lambda bench: bench.propose()}


@promise("M20")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_silence_is_recorded_at_the_next_call_and_told_to_whoever_comes_back(call):
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    bench.clock.advance(WAIT)
    call(bench)
    assert bench.state(token) == State.REFUSED
    (ended,) = [each for each in bench.receipts() if each["reason"] == "timed_out"]
    refused = bench.resume(token, asked)
    assert (refused.reason, refused.receipt_id) == (Reason.TIMED_OUT, ended["id"])
    assert bench.resume(token, asked).reason is Reason.REPLAYED


@promise("M20")
def test_a_call_that_resumes_ends_what_else_is_overdue():
    bench = MutationBench()
    late, token = bench.token(), bench.token()
    bench.begin(late)
    bench.clock.advance(WAIT)
    asked = bench.begin(token)
    assert bench.state(late) == State.REFUSED
    other = bench.token()
    bench.begin(other)
    bench.clock.advance(WAIT - 1)
    bench.clock.advance(1)
    assert bench.resume(token, asked).reason is Reason.TIMED_OUT
    assert bench.state(other) == State.REFUSED


@promise("M20")
def test_what_nobody_came_back_for_is_forgotten_after_one_lifetime():
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    bench.clock.advance(WAIT)
    bench.begin("")
    bench.clock.advance(TTL)
    bench.begin("")
    assert bench.broker._questions._rows == {}
    assert bench.resume(token, asked).reason is Reason.REPLAYED


@promise("M20")
def test_closing_ends_every_open_question_as_timed_out_and_twice_is_once():
    bench = MutationBench()
    tokens = [bench.token(), bench.token()]
    asked = [bench.begin(each) for each in tokens]
    bench.broker.close()
    bench.broker.close()
    assert {bench.state(each) for each in tokens} == {State.REFUSED}
    assert [each["reason"] for each in bench.receipts()].count("timed_out") == 2
    assert bench.resume(tokens[0], asked[0]).reason is Reason.TIMED_OUT
    assert bench.creates == 0


@promise("M15", "M17")
@pytest.mark.parametrize(
    ("answer", "word"),
    [(ACCEPT, "accepted"), (DECLINE, "declined"), (Silence.TIMED_OUT, "timed_out"), (None, "failed")],
)
def test_the_receipt_of_the_end_has_the_digest_of_the_text_that_was_shown(answer, word):
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    assert asked.shown == digest_of("confirm-question@1", asked.message.encode())
    bench.resume(token, asked, answer)
    assert f"{word}; the text shown was {asked.shown}" in bench.receipts()[2]["detail"]
