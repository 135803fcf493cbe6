"""One call from what was asked to its receipt: budget, exact instance, sessions, grants that are got for it."""

import pytest
from attrs import evolve
from capability_bench import (
    EVERYTHING,
    GESTURE,
    GPU,
    INPUTS,
    MS,
    OTHER,
    SESSION,
    STATE,
    STATE_READ,
    CapabilityBench,
    an_instance,
)
from marks import promise
from registry_bench import PULP

from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import Enrolled, Unavailable
from assisted_benchmark.capability.results import Content
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.reasons import Reason

MINUTE = 60 * SECOND


def test_an_operation_completes_with_its_typed_result_and_one_receipt():
    bench = CapabilityBench()
    answer = bench.ask(STATE_READ, request_id="r-1")
    assert (answer.reason, answer.state, answer.content) == (None, State.COMPLETED, Content(result=STATE))
    assert bench.executed == {STATE_READ: 1}
    structured = bench.told("pulp_control_state_read", answer)
    assert structured == {
        "ok": True,
        "schema": "assisted-benchmark/operation-result@1",
        "request_id": "r-1",
        "receipt_id": answer.receipt_id,
        "operation_id": STATE_READ,
        "operation_version": 1,
        "state": "completed",
        "explanation": "",
        "result": STATE,
        "artifacts": [],
        "progress": [],
    }
    mine = [line["reason"] for line in bench.receipts() if line["id"] == answer.receipt_id]
    assert mine == ["admitted", "running", "completed"]
    assert bench.sound()


@promise("C10")
@pytest.mark.parametrize(
    ("step_ms", "seen"), [(10, [100, 90, 80, 70, 60]), (30, [100, 70, 40, 10])], ids=["10 ms a step", "30 ms a step"]
)
def test_each_step_gets_what_remains_of_one_budget(step_ms, seen):
    bench = CapabilityBench()
    bench.world.on_step = bench.person.on_step = lambda _: bench.clock.advance(step_ms * MS)
    steps = bench.world.steps = bench.person.steps = []
    answer = bench.ask(STATE_READ, timeout_ms=100)
    names = ["connect", "inventory", "standing", "negotiate", "request"]
    assert steps == [(name, left * MS) for name, left in zip(names, seen, strict=False)]
    if len(seen) == len(names):
        assert (answer.state, bench.executed) == (State.COMPLETED, {STATE_READ: 1})
    else:
        assert (answer.reason, bench.executed) == (Reason.DEADLINE_EXCEEDED, {})
