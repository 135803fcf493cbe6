"""What comes of a create that was sent: done, refused by the endpoint, or not known; never sent again."""

import pytest
from marks import promise
from mutation_bench import MutationBench, errors

from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.mutation.answers import Status
from assisted_benchmark.mutation.results import TokenState
from assisted_benchmark.mutation.states import State


def ending(created):
    """The end of a confirmed change whose create is answered so."""
    bench = MutationBench()
    token = bench.token()
    bench.endpoint.created = created(bench) if callable(created) else lambda request: bench.endpoint.replied(*created)
    answer = bench.confirm(token)
    assert bench.creates == 1
    assert bench.confirm(token).reason is Reason.REPLAYED
    assert bench.creates == 1
    assert bench.state(token) == answer.state
    return bench, answer


NOES = {
    "a refusal": ((400, errors("EQ-3142501")), ["EQ-3142501"]),
    "a refusal in no known words": ((404, b"<html>"), []),
    "too many": ((429, b""), []),
}


@promise("M18")
@pytest.mark.parametrize(("created", "codes"), NOES.values(), ids=NOES)
def test_an_error_after_the_send_is_failed_and_the_token_stays_consumed(created, codes):
    bench, answer = ending(created)
    assert (answer.state, answer.reason, answer.executed) == (State.FAILED, Reason.FAILED, False)
    heard = bench.told(answer)
    assert [each["code"] for each in heard["endpoint_error"]["errors"]] == codes
    assert (heard["token_state"], heard["refused"], heard["result"]) == ("consumed", "unavailable", None)
    assert heard["next_step"].startswith("The endpoint refused the change")


UNCLEAR = {
    # Who failed may have acted before.
    "the endpoint's own failure": ((500, errors("EQ-3000001")), Reason.OUTCOME_UNKNOWN),
    "an object too deep to be passed on": ((201, b'{"a":' * 60 + b"1" + b"}" * 60), Reason.RESULT_INVALID),
    "an object too large to be passed on": ((201, b'{"a":[' + b"1," * 99_500 + b"1]}"), Reason.RESULT_INVALID),
    "a gateway that gave up": ((504, b"<html>"), Reason.OUTCOME_UNKNOWN),
    "a redirect": ((302, b""), Reason.RESULT_INVALID),
    "a success of another kind": ((200, b"{}"), Reason.RESULT_INVALID),
    "a success without a body": ((201, b""), Reason.RESULT_INVALID),
    "a success that is a list": ((201, b"[]"), Reason.RESULT_INVALID),
    "a lost answer": (
        lambda bench: lambda request: Uncertain(Reason.OUTCOME_UNKNOWN, "gone", bench.clock.now()),
        Reason.OUTCOME_UNKNOWN,
    ),
    "two answers": (
        lambda bench: lambda request: Uncertain(Reason.RESULT_INVALID, "twice", bench.clock.now()),
        Reason.RESULT_INVALID,
    ),
}


@promise("M18")
@pytest.mark.parametrize(("created", "reason"), UNCLEAR.values(), ids=UNCLEAR)
def test_an_uncertain_answer_is_unresolved_with_executed_null_and_never_retried(created, reason):
    bench, answer = ending(created)
    assert (answer.state, answer.reason, answer.executed, answer.result) == (State.UNRESOLVED, reason, None, None)
    heard = bench.told(answer)
    assert heard["executed"] is None
    assert "Do not propose it again before somebody has looked" in heard["next_step"]


@promise("M18")
@pytest.mark.parametrize("status", [201, 202])
def test_a_network_is_created_or_taken_on(status):
    bench = MutationBench()
    bench.endpoint.created = lambda request: bench.endpoint.replied(status, b'{"uuid":"x"}')
    assert bench.confirm(bench.token("network")).executed is True


@promise("M18")
def test_an_endpoint_that_cannot_be_reached_gets_nothing_and_the_token_is_consumed():
    bench = MutationBench()
    token = bench.token()
    bench.endpoint.create = lambda claimed, request, *, gate, deadline: NotSent(Reason.SERVER_UNAVAILABLE)
    refused = bench.confirm(token)
    assert (refused.reason, refused.token, refused.status) == (
        Reason.SERVER_UNAVAILABLE,
        TokenState.CONSUMED,
        Status.ACCEPTED,
    )
    assert bench.told(refused)["executed"] is False
    assert bench.written()[-1] == ("outcome", "server_unavailable", "refused")


@promise("M18")
def test_an_answer_without_a_write_is_no_success():
    bench = MutationBench()
    bench.endpoint.create = lambda claimed, request, *, gate, deadline: bench.endpoint.replied(201, b"{}")
    answer = bench.confirm(bench.token())
    assert (answer.state, answer.reason, answer.executed) == (State.UNRESOLVED, Reason.OUTCOME_UNKNOWN, None)


@promise("M18")
def test_an_error_of_the_harness_in_flight_is_unresolved_and_goes_on():
    bench = MutationBench()
    token = bench.token()

    def broken(request):
        raise ZeroDivisionError

    bench.endpoint.created = broken
    with pytest.raises(ZeroDivisionError):
        bench.confirm(token)
    assert bench.state(token) == State.UNRESOLVED
    said = tuple(bench.receipts()[-1][key] for key in ("kind", "reason", "state", "detail"))
    assert said == ("outcome", "outcome_unknown", "unresolved", "ZeroDivisionError while the request was in flight")


@promise("M18")
def test_what_was_sent_is_told_as_not_known_when_the_ledger_does_not_verify_any_more():
    bench = MutationBench()
    token = bench.token()

    def edited(claimed, state, receipt):
        raise IntegrityError(Reason.LEDGER_TAMPERED, "a row was edited")

    bench.ledger.settle = edited
    answer = bench.confirm(token)
    assert (answer.state, answer.reason, answer.executed) == (State.UNRESOLVED, Reason.LEDGER_TAMPERED, None)
    assert (answer.receipt_id, answer.result, bench.creates) == (None, None, 1)
    assert "Do not propose it again before somebody has looked" in bench.told(answer)["next_step"]


@promise("M18")
def test_another_body_than_the_permits_is_not_written():
    bench = MutationBench()
    bench.confirm(bench.token())
    (first,) = bench.endpoint.creates
    claimed = type("Claimed", (), {"permit": type("Permit", (), {"arguments": b"{}"})})
    reply = bench.endpoint.create(claimed, first, gate=lambda: True, deadline=None)
    assert reply == NotSent(Reason.BINDING_MISMATCH)
    assert bench.creates == 1
