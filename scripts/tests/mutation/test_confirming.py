"""Confirming: the fixed order, six statuses, the one send, and what the agent hears of each end."""

import json

import pytest
from attrs import evolve
from marks import promise
from mutation_bench import (
    ACCEPT,
    AGENT,
    DECLINE,
    FABRIC,
    TTL,
    MutationBench,
    confirming,
    drifting,
)

from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.mutation.answers import Silence, Status
from assisted_benchmark.mutation.broker import ALLOW_UNCONFIRMED, allows_unconfirmed
from assisted_benchmark.mutation.changes_document import contract_of
from assisted_benchmark.mutation.compiler import compile_change
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.ports import Request
from assisted_benchmark.mutation.proposal import group_key
from assisted_benchmark.mutation.results import Confirmed, NeedsAnswer, Predicates, TokenState, told
from assisted_benchmark.mutation.states import MUTATION_TABLE, State

CONNECTION = FABRIC.change("connection")
BODY = compile_change(CONNECTION, CONNECTION.example.value).body
ALL_HOLD = Predicates(True, True, True, True)


@promise("M14", "M18")
def test_exactly_one_create_is_sent_with_the_stored_bytes_and_without_dry_run():
    bench = MutationBench()
    sealed = bench.propose("connection")
    done = bench.confirm(sealed.token)
    assert bench.endpoint.creates == [Request("POST", "/fabric/v4/connections", BODY)]
    assert isinstance(done, Confirmed)
    assert bench.told(done) == {
        "phase": "confirm",
        "executed": True,
        "outcome": "succeeded",
        "refused": None,
        "result": {"uuid": "00000000-0000-0000-0000-000000000001"},
        "endpoint_error": None,
        "request_sha256": sealed.request,
        "human_confirmation": {
            "status": "accepted",
            "detail": "the client says that a person accepted; that a person read it is not proven",
        },
        "confirm_checks": {
            "proposal_exists": True,
            "not_expired": True,
            "not_previously_used": True,
            "spec_matches_binding": True,
        },
        "token_state": "consumed",
        "cancellation": {"requested_after_send": False},
        "next_step": "The change was carried out; there is nothing more to do.",
        "receipt": bench.receipts()[-1]["id"],
    }
    assert bench.written() == [
        ("decision", "proposed", "sealed"),
        ("event", "consumed", "confirming"),
        ("decision", "admitted", "dispatching"),
        ("outcome", "succeeded", "succeeded"),
    ]


@promise("M14")
def test_the_order_is_consume_ask_claim_send_and_settle():
    bench = MutationBench()
    token = bench.token()
    bench.moments.clear()
    asked = bench.begin(token)
    assert bench.moments == [Moment.CONSUME, Moment.CONSUMED, Moment.ASK]
    assert bench.state(token) == State.CONFIRMING
    bench.resume(token, asked)
    assert bench.moments[3:] == [
        Moment.ANSWERED,
        Moment.CLAIM,
        Moment.CLAIMED,
        Moment.WRITE,
        Moment.ANSWER,
        Moment.SETTLE,
    ]


STATUSES = {
    "declined": (DECLINE, Status.DECLINED, Reason.DECLINED),
    "accepted without the flag": ({"action": "accept"}, Status.DECLINED, Reason.DECLINED),
    "accepted with nothing": ({"action": "accept", "content": {}}, Status.DECLINED, Reason.DECLINED),
    "accepted with no": ({"action": "accept", "content": {"confirm": False}}, Status.DECLINED, Reason.DECLINED),
    "accepted with a one": ({"action": "accept", "content": {"confirm": 1}}, Status.DECLINED, Reason.DECLINED),
    "accepted with a text": ({"action": "accept", "content": {"confirm": "true"}}, Status.DECLINED, Reason.DECLINED),
    "dismissed": ({"action": "cancel"}, Status.CANCELLED, Reason.CANCELLED),
    "the call cancelled": (Silence.CANCELLED, Status.CANCELLED, Reason.CANCELLED),
    "nobody there": (Silence.TIMED_OUT, Status.TIMED_OUT, Reason.TIMED_OUT),
    "the client gone": (Silence.FAILED, Status.FAILED, Reason.CONFIRMATION_FAILED),
    "null": (None, Status.FAILED, Reason.CONFIRMATION_FAILED),
    "a list": ([], Status.FAILED, Reason.CONFIRMATION_FAILED),
    "a text": ("accept", Status.FAILED, Reason.CONFIRMATION_FAILED),
    "no action": ({"content": {"confirm": True}}, Status.FAILED, Reason.CONFIRMATION_FAILED),
    "another action": ({"action": "Accept", "content": {"confirm": True}}, Status.FAILED, Reason.CONFIRMATION_FAILED),
    "an action that is none": ({"action": ["accept"]}, Status.FAILED, Reason.CONFIRMATION_FAILED),
    "content that is a list": ({"action": "accept", "content": [True]}, Status.FAILED, Reason.CONFIRMATION_FAILED),
    "content that is null": ({"action": "accept", "content": None}, Status.FAILED, Reason.CONFIRMATION_FAILED),
    "content with more": (
        {"action": "accept", "content": {"confirm": True, "and": 1}},
        Status.FAILED,
        Reason.CONFIRMATION_FAILED,
    ),
}


@promise("M16", "M17")
@pytest.mark.parametrize(("answer", "status", "reason"), STATUSES.values(), ids=STATUSES)
def test_all_but_an_acceptance_with_the_flag_sends_nothing_and_consumes_the_token(answer, status, reason):
    bench = MutationBench()
    token = bench.token()
    refused = bench.confirm(token, answer)
    assert (refused.reason, refused.status, refused.token) == (reason, status, TokenState.CONSUMED)
    assert refused.predicates == ALL_HOLD
    heard = bench.told(refused)
    assert (heard["executed"], heard["human_confirmation"]["status"]) == (False, status.value)
    assert heard["next_step"] == (
        "Nothing was sent, and the token is consumed: a person did not agree. Only if you are asked to, "
        "propose the change again with fabric_propose_change to get a new token."
        if status is Status.DECLINED
        else "Nothing was sent, and the token is consumed. "
        "Propose the change again with fabric_propose_change to get a new token."
    )
    assert bench.creates == 0
    assert bench.state(token) == State.REFUSED
    assert bench.confirm(token).reason is Reason.REPLAYED
    assert bench.receipts()[2]["id"] == heard["receipt"]


@promise("M16")
def test_a_client_that_cannot_ask_is_refused_and_the_token_consumed():
    bench = MutationBench()
    token = bench.token()
    refused = bench.begin(token, can_ask=False)
    assert (refused.reason, refused.status) == (Reason.UNSUPPORTED_BY_CLIENT, Status.UNSUPPORTED_BY_CLIENT)
    heard = bench.told(refused)
    assert heard["refused"] == "not_authorised"
    assert heard["next_step"] == (
        "Nothing was sent, and the token is consumed: this client cannot ask a person, so that a new token would end "
        "the same way. With a client that can show a form, propose the change again with fabric_propose_change to get "
        "a new token."
    )
    assert (bench.creates, bench.state(token)) == (0, State.REFUSED)


@promise("M16")
def test_where_the_operator_allows_it_the_change_is_sent_and_the_result_says_that_no_check_ran():
    bench = MutationBench(allow_unconfirmed=True)
    done = bench.begin(bench.token(), can_ask=False)
    heard = bench.told(done)
    assert heard["executed"] is True
    assert heard["human_confirmation"] == {
        "status": "unsupported_by_client",
        "detail": "the client cannot show a form, so no server-side check ran",
    }
    assert "nobody was asked" in bench.receipts()[2]["detail"]
    assert bench.creates == 1


@promise("M16")
def test_the_operators_word_changes_nothing_for_a_client_that_can_ask():
    bench = MutationBench(allow_unconfirmed=True)
    token = bench.token()
    assert isinstance(bench.begin(token), NeedsAnswer)
    assert bench.creates == 0
    for answer, status, _ in STATUSES.values():
        assert bench.confirm(bench.token(), answer).status is status
    assert bench.creates == 0


@promise("M16")
def test_exactly_the_word_true_is_the_operators_word():
    assert allows_unconfirmed({ALLOW_UNCONFIRMED: "true"})
    assert ALLOW_UNCONFIRMED == "EQUINIX_MCP_ALLOW_UNCONFIRMED_MUTATIONS"
    for word in ("True", "TRUE", "1", "yes", " true", "true ", "", "false"):
        assert not allows_unconfirmed({ALLOW_UNCONFIRMED: word})
    assert not allows_unconfirmed({})


MALFORMED = {
    "no JSON": (b"", Reason.MALFORMED_CALL),
    "no object": (b'"chg-1"', Reason.ARGUMENTS_NOT_OBJECT),
    "no token": (b"{}", Reason.ARGUMENTS_INVALID),
    "a token that is no text": (b'{"token":1}', Reason.ARGUMENTS_INVALID),
    "a key twice": (b'{"token":"a","token":"a"}', Reason.DUPLICATE_KEY),
}


@promise("M10")
@pytest.mark.parametrize(("raw", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_arguments_without_a_token_do_nothing(raw, reason):
    bench = MutationBench()
    token = bench.token()
    for answer in (
        bench.broker.begin(AGENT, raw, can_ask=True),
        bench.broker.resume(AGENT, raw, "0" * 32, ACCEPT),
    ):
        assert (answer.reason, answer.token, answer.predicates) == (reason, None, Predicates())
        assert bench.told(answer)["next_step"].startswith("Nothing was sent. Call fabric_confirm_change with the token")
    assert bench.confirm(token).executed is True


@promise("M10")
def test_confirm_takes_only_the_token_and_a_spec_beside_it_is_refused():
    bench = MutationBench()
    token = bench.token()
    for more in ({"spec": {"bandwidth": 100000}}, {"change_type": "network"}, {"confirm": True}):
        refused = bench.broker.begin(AGENT, confirming(token, **more), can_ask=True)
        assert refused.reason is Reason.ARGUMENTS_INVALID
    assert bench.state(token) == State.SEALED


def relabelling(change, spec):
    """A mapping that compiles the same bytes for another type: only the digest tells."""
    return compile_change(evolve(change, name="network"), spec)


def failing(change, spec):
    """A mapping that has come to make what is no JSON value."""
    return compile_change(change, {**spec, "name": float("nan")})


@promise("M10", "M13")
@pytest.mark.parametrize("compiler", [drifting, relabelling, failing])
def test_a_mapping_that_drifted_stops_with_nothing_sent_and_nobody_asked(compiler):
    bench = MutationBench()
    token = bench.token()
    bench.broker = bench.a_broker(compiler=compiler)
    bench.moments.clear()
    refused = bench.begin(token)
    assert (refused.reason, refused.token) == (Reason.BINDING_MISMATCH, TokenState.CONSUMED)
    assert refused.predicates == Predicates(True, True, True, False)
    assert bench.told(refused)["human_confirmation"] == {"status": None, "detail": "nobody was asked"}
    assert Moment.ASK not in bench.moments
    assert (bench.creates, bench.state(token)) == (0, State.REFUSED)


@promise("M10")
def test_a_time_relative_field_stops_it():
    bench = MutationBench()

    def with_time(change, spec):
        return compile_change(change, {**spec, "name": f"at {bench.clock.now().wall_ns}"})

    bench.broker = bench.a_broker(compiler=with_time)
    token = bench.token()
    bench.clock.advance(1)
    assert bench.begin(token).reason is Reason.BINDING_MISMATCH
    assert bench.creates == 0


@promise("M10")
def test_a_spec_that_was_exchanged_in_the_store_stops_it():
    inner = MemoryLedger("ledger-1", MUTATION_TABLE)
    bench = MutationBench(ledger=inner)
    token = bench.token("connection")
    proposal = bench.store.find(token).proposal
    other = evolve(proposal, spec=Canonical.of({**proposal.spec.value, "bandwidth": 100000}))
    inner._groups[group_key(token)].record = other.record
    again = MutationBench(ledger=inner, clock=bench.clock, endpoint=bench.endpoint)
    assert again.begin(token).reason is Reason.BINDING_MISMATCH
    assert bench.creates == 0


@promise("M10")
def test_another_contract_than_at_the_proposal_stops_it_though_the_body_is_the_same():
    bench = MutationBench()
    token = bench.token("connection")
    moved = json.loads(FABRIC.source.data)
    moved["changes"]["connection"]["path"] = "/fabric/v5/connections"
    bench.broker = bench.a_broker(contract=contract_of(moved))
    assert bench.begin(token).reason is Reason.BINDING_MISMATCH
    without = json.loads(FABRIC.source.data)
    del without["changes"]["connection"]
    token = MutationBench.token(MutationBench(), "connection")
    bench.broker = bench.a_broker()
    token = bench.token("connection")
    bench.broker = bench.a_broker(contract=contract_of(without))
    assert bench.begin(token).reason is Reason.BINDING_MISMATCH
    assert bench.creates == 0


@promise("M14")
def test_bytes_that_are_not_the_bound_ones_right_before_the_send_stop_it():
    bench = MutationBench()
    token = bench.token("connection")
    asked = bench.begin(token)
    (row,) = bench.broker._questions._rows.values()
    row.compiled = row.compiled._replace(body=BODY.replace(b'"bandwidth":50', b'"bandwidth":51'))
    refused = bench.resume(token, asked)
    assert (refused.reason, refused.status) == (Reason.BINDING_MISMATCH, Status.ACCEPTED)
    assert refused.predicates.spec_matches_binding is False
    assert (bench.creates, bench.state(token)) == (0, State.REFUSED)


@promise("M14", "M17")
@pytest.mark.parametrize("when", [None, Moment.ANSWERED, Moment.CLAIM, Moment.CLAIMED])
def test_a_time_that_runs_out_while_a_person_is_asked_refuses_though_accepted(when):
    bench = MutationBench(wait_ns=2 * TTL)
    token = bench.token()
    asked = bench.begin(token)
    if when is None:
        bench.clock.advance(TTL)
    else:
        bench.at(when, lambda: bench.clock.advance(TTL))
    refused = bench.resume(token, asked)
    assert (refused.reason, refused.status) == (Reason.EXPIRED, Status.ACCEPTED)
    assert refused.predicates == Predicates(True, False, True, True)
    assert bench.told(refused)["executed"] is False
    assert (bench.creates, bench.state(token)) == (0, State.REFUSED)
    marked = ("decision", "admitted", "dispatching") in bench.written()
    assert marked is (when in (Moment.CLAIM, Moment.CLAIMED))


@promise("M14", "K9")
def test_a_clock_that_is_set_back_while_a_person_is_asked_refuses():
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    bench.clock.set_wall(bench.clock.now().wall_ns - 2 * SECOND)
    assert bench.resume(token, asked).reason is Reason.CLOCK_ROLLBACK
    assert bench.creates == 0


@promise("M13")
def test_the_four_predicates_are_null_where_nothing_was_looked_at():
    bench = MutationBench()
    used, late, fine = bench.token(), bench.token(), bench.token()
    bench.confirm(used)
    answers = [bench.begin("chg-7-" + "0" * 24), bench.begin(used), bench.begin(fine, cancelled=lambda: True)]
    bench.clock.advance(TTL)
    answers.append(bench.begin(late))
    assert [each.predicates for each in answers] == [
        Predicates(False, None, None, None),
        Predicates(True, None, False, None),
        Predicates(True, True, True, None),
        Predicates(True, False, True, None),
    ]


@promise("K12a", "K8")
def test_a_store_that_fails_before_the_token_is_consumed_sends_nothing():
    bench = MutationBench()
    token = bench.token()
    bench.ledger.down = True
    refused = bench.begin(token)
    assert (refused.reason, refused.receipt_id, refused.token) == (Reason.STORE_UNAVAILABLE, None, None)
    assert bench.told(refused)["refused"] == "unavailable"
    bench.ledger.down = False
    bench.ledger.broken.add("move")
    refused = bench.begin(token)
    assert (refused.reason, refused.token) == (Reason.STORE_UNAVAILABLE, TokenState.CONSUMED)
    assert refused.receipt_id is not None
    assert bench.creates == 0


@promise("K12a", "K8")
@pytest.mark.parametrize("broken", [{"claim"}, {"claim", "move"}, {"claim", "move", "record"}])
def test_a_store_that_fails_at_the_claim_sends_nothing(broken):
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    bench.ledger.broken = broken
    refused = bench.resume(token, asked)
    assert (refused.reason, refused.token) == (Reason.STORE_UNAVAILABLE, TokenState.CONSUMED)
    assert (refused.receipt_id is None) is ("record" in broken)
    assert bench.creates == 0
    bench.ledger.broken = set()
    assert bench.confirm(token).reason is Reason.REPLAYED


@promise("M14")
def test_a_proposal_whose_time_is_over_when_the_person_has_answered_says_what_was_shown_and_is_not_sent():
    bench = MutationBench()
    sealed = bench.propose("connection")
    bench.clock.advance(TTL - SECOND)
    asked = bench.begin(sealed.token)
    bench.clock.advance(SECOND)
    refused = bench.resume(sealed.token, asked)
    assert (refused.reason, refused.token, refused.request) == (Reason.EXPIRED, TokenState.CONSUMED, sealed.request)
    assert refused.predicates == Predicates(True, False, True, True)
    assert refused.detail.endswith(f"; accepted; the text shown was {asked.shown}")
    assert (bench.state(sealed.token), bench.creates) == (State.REFUSED, 0)


@promise("M14")
def test_what_the_gate_keeps_in_is_refused_with_the_receipt_and_the_request_that_it_was():
    bench = MutationBench()
    sealed = bench.propose("connection")
    asked = bench.begin(sealed.token)
    bench.at(Moment.CLAIMED, lambda: bench.clock.set_wall(bench.clock.now().wall_ns - 5 * SECOND))
    bench.at(Moment.WRITE, lambda: pytest.fail("nothing is about to be written"))
    refused = bench.resume(sealed.token, asked)
    assert (refused.reason, refused.token, refused.request) == (
        Reason.CLOCK_ROLLBACK,
        TokenState.CONSUMED,
        sealed.request,
    )
    assert refused.predicates == Predicates(True, False, True, True)
    assert refused.receipt_id == json.loads(list(bench.ledger.receipts(AGENT.run))[-1])["id"]
    assert (bench.state(sealed.token), bench.creates) == (State.REFUSED, 0)


@promise("M18", "K8")
def test_a_store_that_fails_after_the_send_leaves_it_unresolved():
    bench = MutationBench()
    token = bench.token()
    asked = bench.begin(token)
    bench.ledger.broken = {"settle"}
    answer = bench.resume(token, asked)
    assert (answer.state, answer.reason, answer.executed, answer.receipt_id) == (
        State.UNRESOLVED,
        Reason.STORE_UNAVAILABLE,
        None,
        None,
    )
    assert bench.state(token) == State.DISPATCHING
    assert bench.broker.recover() == (group_key(token),)
    assert bench.state(token) == State.UNRESOLVED
    assert bench.creates == 1


@promise("K12a")
def test_a_proposal_that_was_given_up_elsewhere_is_not_claimed():
    bench = MutationBench()
    sealed = bench.propose("connection")
    token = sealed.token
    asked = bench.begin(token)
    bench.broker.recover()
    refused = bench.resume(token, asked)
    assert (refused.reason, refused.token) == (Reason.LOST_RACE, TokenState.CONSUMED)
    assert refused.detail == f"the proposal became `refused`; accepted; the text shown was {asked.shown}"
    assert refused.request == sealed.request
    assert bench.told(refused)["refused"] == "spent"
    assert bench.creates == 0


@promise("M16", "K6")
def test_an_agent_that_may_learn_the_reason_hears_it():
    bench = MutationBench()
    token = bench.token()
    refused = bench.confirm(token, DECLINE)
    assert told(refused, "fabric", reveal=True)["refused"] == "declined"
    bench.endpoint.created = lambda request: bench.endpoint.replied(400, b"")
    assert told(bench.confirm(bench.token()), "fabric", reveal=True)["refused"] == "failed"
    assert told(bench.propose("connection", name=""), "fabric", reveal=True)["refused"] == "arguments_invalid"


@promise("K8")
def test_bytes_that_did_not_even_become_a_call_have_a_receipt_that_does_not_quote_them():
    bench = MutationBench()
    refused = bench.broker.refuse_malformed(AGENT, Reason.MALFORMED_CALL, "not JSON: 4711")
    (receipt,) = bench.receipts()
    assert (receipt["reason"], receipt["detail"], receipt["id"]) == ("malformed_call", "", refused.receipt_id)
    assert (refused.reason, refused.coarse.value) == (Reason.MALFORMED_CALL, "malformed")
