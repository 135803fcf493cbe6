"""Receipts are believed only as a whole: an edited, added or unreadable line reconciles nothing."""

import pytest
from live_bench import HOLD as CHOSEN
from live_bench import KEYS, VM, a_choice, choosing
from marks import promise

from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.keys import Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.ending import Finding
from assisted_benchmark.live_policy.ports import Uncertain
from assisted_benchmark.live_policy.states import State


def an_unresolved_call():
    bench = a_choice()
    bench.world._answer = lambda claimed: Uncertain(Reason.OUTCOME_UNKNOWN, "no answer came", bench.clock.now())
    bench.propose(choosing(CHOSEN))
    return bench


def telling(bench, change):
    """Let the ledger give the run's receipts as `change` makes them."""
    lines = change(list(bench.ledger.receipts("run-1")))
    bench.ledger._inner.receipts = lambda run: iter(lines)


def relabelled(line):
    return line.replace(b'"kind":"outcome"', b'"kind":"reconciliation"')


@promise("L23")
@pytest.mark.parametrize(
    "line", [relabelled, lambda line: b"!!", lambda line: b"{}"], ids=["edited", "no JSON", "bare"]
)
def test_a_line_that_does_not_verify_reconciles_nothing_and_the_teardown_is_refused_as_a_value(line):
    bench = an_unresolved_call()
    telling(bench, lambda lines: [*lines[:-1], line(lines[-1])])
    answer = bench.broker.teardown(bench.session)
    assert (answer.reason, answer.receipt_id) == (Reason.CHAIN_BROKEN, None)
    assert bench.machine.torn_down == []


@promise("L23")
def test_a_line_beyond_the_anchored_end_reconciles_nothing():
    bench = an_unresolved_call()
    telling(bench, lambda lines: [*lines, relabelled(lines[-1])])
    assert bench.broker.teardown(bench.session).reason is Reason.OUTCOME_UNKNOWN
    assert bench.machine.torn_down == []


@promise("L23")
def test_a_true_reconciliation_is_believed_and_lets_the_teardown_go_on():
    bench = an_unresolved_call()
    finding = Finding(bench.receipts()[-1]["group"], State.FAILED, b"{}")
    bench.broker.reconcile(bench.session.grant, finding, finding.signed(KEYS.key(Purpose.OPERATOR)))
    assert bench.broker.teardown(bench.session).state is State.SUCCEEDED
    assert bench.machine.torn_down == [VM]


def test_a_grant_whose_runs_receipts_do_not_verify_is_not_opened():
    bench = an_unresolved_call()
    telling(bench, lambda lines: [b"!!", *lines[1:]])
    with pytest.raises(IntegrityError) as caught:
        bench.a_broker().open(bench.sealed.data, bench.session)
    assert caught.value.reason is Reason.CHAIN_BROKEN


@promise("L24")
def test_a_teardown_over_rows_that_were_tampered_with_is_a_refusal_and_not_an_error():
    bench = a_choice()

    def tampered(group):
        raise IntegrityError(Reason.LEDGER_TAMPERED, "a row was edited")

    bench.ledger._inner.row = tampered
    answer = bench.broker.teardown(bench.session)
    assert (answer.reason, answer.receipt_id) == (Reason.LEDGER_TAMPERED, None)
    assert bench.machine.torn_down == []
