"""State generations: of two changes that expect one generation of the state, one is made."""

import pytest
from capability_bench import (
    GESTURE,
    MAKERS,
    STATE_READ,
    CapabilityBench,
    an_instance,
    at_once,
)
from marks import promise

from assisted_benchmark.capability.ports import Word
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.reasons import Reason

NOW = Instant(1, 1)


@pytest.fixture(params=sorted(MAKERS))
def ledger(request, tmp_path):
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


@promise("C31")
def test_a_gesture_claims_the_expected_generation_and_the_next_expects_the_new_one(ledger):
    bench = CapabilityBench(ledger=ledger)
    done = bench.ask(GESTURE, expected_state_generation=1)
    assert (done.state, done.content.result["state_generation"]) == (State.COMPLETED, 2)
    stale = bench.ask(GESTURE, expected_state_generation=1, also={"idempotency_key": "key-2"})
    assert (stale.reason, bench.executed) == (Reason.STATE_CONFLICT, {GESTURE: 1})
    fresh = bench.ask(GESTURE, expected_state_generation=2, also={"idempotency_key": "key-3"})
    assert (fresh.state, bench.executed) == (State.COMPLETED, {GESTURE: 2})


@promise("C31")
@pytest.mark.parametrize("expected", [0, 2])
def test_a_generation_that_is_not_the_present_one_is_a_conflict(expected):
    bench = CapabilityBench()
    for operation in (GESTURE, STATE_READ):
        refused = bench.ask(operation, expected_state_generation=expected)
        assert (refused.reason, bench.executed, bench.groups()) == (Reason.STATE_CONFLICT, {}, [])


@promise("C31")
def test_a_reader_compares_the_generation_and_claims_nothing():
    bench = CapabilityBench()

    def execute(claimed, envelope):
        if claimed.permit.tool == STATE_READ:
            assert bench.ask(GESTURE, expected_state_generation=1).state is State.COMPLETED
        return bench.execute(claimed, envelope)

    bench.world.execute = execute
    assert bench.ask(STATE_READ, expected_state_generation=1).state is State.COMPLETED


@promise("C31")
def test_of_gestures_at_once_on_one_generation_one_is_made(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.ask(STATE_READ)
    gestures = [
        lambda number=number: bench.ask(GESTURE, expected_state_generation=1, also={"idempotency_key": f"key-{number}"})
        for number in range(4)
    ]
    reasons = sorted(str(answer.reason) for answer in at_once(*gestures))
    assert reasons == ["None", *["state_conflict"] * 3]
    assert bench.executed == {STATE_READ: 1, GESTURE: 1}


@promise("C31")
def test_a_gesture_that_was_not_made_gives_the_generation_back():
    bench = CapabilityBench()
    bench.world.execute = lambda claimed, envelope: bench.world.ended(b"", Word.FAILED)
    assert bench.ask(GESTURE, expected_state_generation=1).state is State.FAILED
    bench.world.execute = bench.execute
    again = bench.ask(GESTURE, expected_state_generation=1, also={"idempotency_key": "key-2"})
    assert again.state is State.COMPLETED


@promise("C31")
def test_a_generation_belongs_to_its_publication():
    bench = CapabilityBench()
    bench.ask(GESTURE, expected_state_generation=1)

    def publish_anew(claimed, envelope):
        bench.world.live = (an_instance(publication="publication-3"),)
        inner = bench.ask(GESTURE, expected_state_generation=1)
        assert inner.state is State.COMPLETED_AFTER_REVOCATION or inner.state is State.COMPLETED
        return bench.execute(claimed, envelope)

    bench.world.live = (an_instance(publication="publication-2"),)

    def once(claimed, envelope):
        bench.world.execute = bench.execute
        return publish_anew(claimed, envelope)

    bench.world.execute = once
    outer = bench.ask(GESTURE, expected_state_generation=1)
    assert outer.state is State.COMPLETED_AFTER_REVOCATION
    # What the older publication's gesture came to says nothing of the newer one's state.
    stale = bench.ask(GESTURE, expected_state_generation=1, also={"idempotency_key": "key-2"})
    assert stale.reason is Reason.STATE_CONFLICT
    assert bench.ask(GESTURE, expected_state_generation=2, also={"idempotency_key": "key-2"}).reason is None


@promise("C24", "C31")
def test_a_claim_is_given_back_where_the_same_operation_came_first():
    bench = CapabilityBench()
    bench.ledger.unheard.add("open_group")
    grant = bench.granted(GESTURE)
    bench.ask(GESTURE, grant_id=grant, expected_state_generation=1)
    bench.ledger.unheard.clear()
    met = bench.ask(GESTURE, grant_id=grant, expected_state_generation=1)
    assert met.reason is Reason.DUPLICATE_REQUEST_ID
    other = bench.ask(GESTURE, grant_id=grant, expected_state_generation=1, also={"idempotency_key": "key-2"})
    assert other.state is State.COMPLETED
