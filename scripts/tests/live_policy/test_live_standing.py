"""Where an open grant stands while threads race: no step is ever skipped, and none is done twice."""

import pytest
from live_bench import APPROVE, ASK, HOLD, LOOK, LOOKING, a_bench, a_choice, a_group, asking, choosing
from marks import promise

from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.checks import CHECKS, Check
from assisted_benchmark.live_policy.grant import group_key
from assisted_benchmark.live_policy.opened import Standing
from assisted_benchmark.live_policy.states import State

ASKING = asking("lba", "get_status", {"verbose": True})


def standing_ahead(position):
    """A bench of three steps whose view, by whatever fault, stands further than its ledger."""
    bench = a_bench(LOOK, ASK, a_group())
    grant = bench.broker._known(bench.session.grant)
    key = group_key(bench.session.grant, position)
    grant.standing = Standing(grant.plan.steps[position], key, State.SEALED.value)
    return bench


def after(ledger, method, act):
    """Let `act` strike once, when the ledger has done this and before its caller goes on."""
    plain = getattr(ledger._inner, method)

    def struck(*given):
        answer = plain(*given)
        setattr(ledger._inner, method, plain)
        act()
        return answer

    setattr(ledger._inner, method, struck)


@promise("L13")
def test_a_step_that_another_thread_saw_done_is_not_counted_twice():
    bench = a_bench(LOOK, ASK, a_group())
    heard = []
    after(bench.ledger, "settle", lambda: heard.append(bench.propose(LOOKING).reason))
    assert bench.propose(LOOKING).state is State.SUCCEEDED
    assert heard == [Reason.REPLAYED]
    assert bench.propose(choosing(HOLD)).reason is Reason.OUT_OF_ORDER
    assert bench.propose(ASKING).state is State.SUCCEEDED
    assert bench.calls == {"lba": 2, "synthetic-ui": 0}


@promise("L13")
def test_a_step_that_another_thread_did_meanwhile_is_not_opened_again_by_the_one_before():
    bench = a_bench(LOOK, ASK, a_group())
    after(bench.ledger, "settle", lambda: bench.propose(ASKING))
    assert bench.propose(LOOKING).state is State.SUCCEEDED
    assert bench.propose(ASKING).reason is Reason.REPLAYED
    assert bench.calls == {"lba": 2, "synthetic-ui": 0}


@promise("L13")
def test_the_ledger_itself_must_know_the_step_before_as_done():
    bench = standing_ahead(2)
    assert bench.propose(choosing(HOLD)).reason is Reason.OUT_OF_ORDER
    assert bench.calls == {"lba": 0, "synthetic-ui": 0}
    assert bench.states() == (State.SEALED, State.SEALED, State.SEALED)


@promise("L13")
def test_a_ledger_that_does_not_say_whether_the_step_before_is_done_sends_nothing():
    bench = standing_ahead(1)
    bench.ledger.broken = {"row"}
    assert bench.propose(ASKING).reason is Reason.STORE_UNAVAILABLE
    bench.ledger.broken = set()
    assert bench.states() == (State.SEALED, State.SEALED, State.SEALED)
    bench.ledger.row = lambda group: None
    assert bench.propose(ASKING).reason is Reason.OUT_OF_ORDER
    assert bench.calls == {"lba": 0, "synthetic-ui": 0}


def test_rows_that_were_read_before_a_step_was_done_do_not_take_the_grant_back():
    bench = a_bench(LOOK, ASK)
    grant = bench.broker._known(bench.session.grant)
    after(bench.ledger, "row", lambda: bench.propose(LOOKING))
    grant.refresh(bench.ledger)
    assert (grant.standing.step.index, grant.standing.status) == (1, State.SEALED)


@promise("L13")
def test_what_is_admitted_is_a_call_of_the_step_that_was_judged_though_the_grant_moves_on_meanwhile():
    struck = []

    def meanwhile(question):
        if not struck:
            struck.append(True)
            bench.propose(LOOKING)
        return ""

    bench = a_bench(LOOK, ASK, checks=(*CHECKS, Check(Reason.NOT_A_CANDIDATE, meanwhile)))
    slow = asking("lba", "get_benchmark_series", {}, group="step-1")
    assert bench.propose(slow).reason is Reason.LOST_RACE
    assert bench.states() == (State.SUCCEEDED, State.SEALED)
    assert bench.calls == {"lba": 1, "synthetic-ui": 0}


@promise("L13")
def test_a_group_of_an_open_grant_that_the_ledger_lost_is_a_fault_of_the_store_and_sends_nothing():
    bench = a_choice()
    grant = bench.broker._known(bench.session.grant)
    grant.keys = (b"\x00" * 32,)
    with pytest.raises(LedgerError) as caught:
        grant.refresh(bench.ledger)
    assert caught.value.reason is Reason.LEDGER_MALFORMED
    assert bench.propose(choosing(APPROVE, effect="act")).reason is Reason.STORE_UNAVAILABLE
    assert bench.calls == {"lba": 0, "synthetic-ui": 0}
