"""Brokers that lack one check each: what the check refuses, they let through."""

import json

import pytest
from marks import promise
from mutation_bench import DECLINE, FABRIC, TTL, MutationBench, drifting

from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.answers import Silence
from assisted_benchmark.mutation.changes_document import contract_of
from assisted_benchmark.mutation.checks import CHECKS
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.results import NeedsAnswer, Refusal


@promise("K8")
def test_each_check_has_a_name_of_its_own_and_a_mutant_lacks_just_that_one():
    assert len(set(CHECKS.names)) == len(CHECKS.names)
    for name in CHECKS.names:
        assert CHECKS.without(name).names == tuple(each for each in CHECKS.names if each != name)


def _set_back(bench):
    token = bench.token()
    bench.clock.set_wall(bench.clock.now().wall_ns - 2 * SECOND)
    return bench.begin(token)


def _late(bench):
    token = bench.token()
    bench.clock.advance(TTL)
    return bench.begin(token)


def _moved(bench):
    token = bench.token()
    value = json.loads(FABRIC.source.data)
    value["endpoint"] = "elsewhere"
    bench.broker = bench.a_broker(contract=contract_of(value))
    return bench.begin(token)


def _set_back_later(bench):
    token = bench.token()
    asked = bench.begin(token)
    bench.clock.set_wall(bench.clock.now().wall_ns - 2 * SECOND)
    return bench.resume(token, asked)


def _late_later(bench):
    token = bench.token()
    bench.clock.advance(TTL - 1)
    asked = bench.begin(token)
    bench.clock.advance(1)
    return bench.resume(token, asked)


def _other_bytes(bench):
    token = bench.token("connection")
    asked = bench.begin(token)
    (row,) = bench.broker._questions._rows.values()
    row.compiled = row.compiled._replace(body=b"{}")
    return bench.resume(token, asked)


def _cancelled_later(bench):
    token = bench.token()
    asked = bench.begin(token)
    cancelled = []
    bench.at(Moment.ANSWERED, lambda: cancelled.append(True))
    return bench.resume(token, asked, cancelled=lambda: bool(cancelled))


def _drifted(bench):
    token = bench.token("connection")
    bench.broker = bench.a_broker(compiler=drifting)
    return bench.begin(token)


MUTANTS = {
    "values_showable": lambda bench: bench.propose("connection", name="a\u202eb"),
    "integers_spelled": lambda bench: bench.propose("connection", bandwidth=50.0),
    "spec_valid": lambda bench: bench.propose("connection", bandwidth=-1),
    "own_session": lambda bench: bench.confirm(bench.token(), session=Session("run-1", "another")),
    "clocks_ahead": _set_back,
    "not_expired": _late,
    "same_contract": _moved,
    "can_ask": lambda bench: bench.begin(bench.token(), can_ask=False),
    "not_declined": lambda bench: bench.confirm(bench.token(), DECLINE),
    "not_dismissed": lambda bench: bench.confirm(bench.token(), {"action": "cancel"}),
    "answered_in_time": lambda bench: bench.confirm(bench.token(), Silence.TIMED_OUT),
    "answer_understood": lambda bench: bench.confirm(bench.token(), None),
    "clocks_still_ahead": _set_back_later,
    "still_not_expired": _late_later,
    "bytes_match_binding": _other_bytes,
    "not_cancelled": _cancelled_later,
    "spec_matches_binding": _drifted,
}


@promise("K8")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broker_that_lacks_a_check_lets_through_what_the_check_refuses(name):
    whole = MutationBench()
    assert isinstance(MUTANTS[name](whole), Refusal)
    mutant = MutationBench(checks=CHECKS.without(name))
    if name == "bytes_match_binding":
        # The endpoint's own look at the permit is not asked here: the mutant claims the other bytes.
        assert MUTANTS[name](mutant).executed is True
        assert mutant.endpoint.creates[0].body == b"{}"
    elif name == "spec_matches_binding":
        # The bytes are looked at once more, so both checks have to be missing.
        assert isinstance(MUTANTS[name](mutant), NeedsAnswer)
    else:
        assert not isinstance(MUTANTS[name](mutant), Refusal)


@promise("K8")
def test_without_the_check_of_a_first_use_a_used_token_is_told_as_expired_and_still_sends_nothing():
    bench = MutationBench(checks=CHECKS.without("not_previously_used"))
    token = bench.token()
    bench.confirm(token)
    assert bench.confirm(token).reason is Reason.REPLAYED
    bench.clock.advance(TTL)
    assert bench.confirm(token).reason is Reason.EXPIRED
    assert bench.creates == 1


@promise("K8")
@pytest.mark.parametrize("name", ["proposal_exists", "change_known"])
def test_a_broker_that_lacks_the_check_of_what_is_there_cannot_go_on(name):
    bench = MutationBench(checks=CHECKS.without(name))
    with pytest.raises(HarnessError):
        bench.begin("chg-1-" + "0" * 24) if name == "proposal_exists" else bench.propose("delete", {})


@promise("K8")
def test_a_broker_that_does_not_look_for_the_change_type_cannot_compile_it():
    bench = MutationBench()
    token = bench.token("connection")
    value = json.loads(FABRIC.source.data)
    del value["changes"]["connection"]
    checks = CHECKS.without("same_contract", "spec_matches_binding")
    bench.broker = bench.a_broker(contract=contract_of(value), checks=checks)
    with pytest.raises(HarnessError):
        bench.begin(token)
