"""The broker over a live host, in process and over its socket: what it records is what the host did."""

import base64
import json

import pytest
from capability_bench import GESTURE, SESSION, STATE_READ, CapabilityBench, at_once
from host_process import HostProcess
from host_requests import CAPTURE, INPUTS, RENDER, SEED
from marks import promise

from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.plugin_host_face import PluginHostFace
from assisted_benchmark.workloads.plugin_host_faults import HostFault, HostFaultKind
from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost
from assisted_benchmark.workloads.plugin_host_instance import canary_of

K = HostFaultKind


class Brokered(CapabilityBench):
    """A broker whose world is a live host."""

    def __init__(self, host, reading, arm):
        super().__init__(clock=ManualClock())
        self.restart(host=host)
        self.reading = reading
        self.arm = arm

    def structured(self, operation, **more):
        """What the agent gets of a call with the operation's first input."""
        answer = self.ask(operation, also=INPUTS[operation][0], **more)
        return self.told(self.broker._projection.registry.tool_name(operation), answer)

    def last(self):
        """State and reason of the last operation's receipt."""
        receipt = [each for each in self.receipts() if each["kind"] == "outcome"][-1]
        return receipt["state"], receipt["reason"]


@pytest.fixture(params=["in process", "socket"])
def brokered(request):
    if request.param == "in process":
        host = InProcessHost(PluginHostFace(SEED), ManualClock())
        yield Brokered(host, host.reading, host.arm)
    else:
        with HostProcess() as process:
            yield Brokered(process.host(), process.reading, process.control.arm)


LOST = "unknown_needs_refresh"
# What the broker records of a request under a fault, and how often the host executed it.
RECORDED = {
    K.ANSWER_TWICE: (GESTURE, "completed", "completed", 1),
    K.GARBAGE: (GESTURE, "completed", "completed", 1),
    K.REPUBLISH_BEFORE: (GESTURE, "failed", Reason.FAILED, 0),
    K.REPUBLISH_AFTER: (GESTURE, "completed_after_revocation", Reason.COMPLETED_AFTER_REVOCATION, 1),
    K.TEAR_DOWN_BEFORE: (GESTURE, "failed", Reason.FAILED, 0),
    K.TEAR_DOWN_AFTER: (GESTURE, "completed_after_revocation", Reason.COMPLETED_AFTER_REVOCATION, 1),
    K.MOVE_STATE_BEFORE: (GESTURE, "failed", Reason.STATE_CONFLICT, 0),
    K.DROP_BEFORE: (GESTURE, LOST, Reason.OUTCOME_UNKNOWN, 0),
    K.DROP_AFTER: (GESTURE, LOST, Reason.OUTCOME_UNKNOWN, 1),
    K.DIE_AFTER: (GESTURE, LOST, Reason.OUTCOME_UNKNOWN, 1),
    K.BAD_ANSWER: (GESTURE, LOST, Reason.RESULT_INVALID, 1),
    K.FAIL_AFTER: (GESTURE, "failed", Reason.FAILED, 1),
    K.CANCELLED_AFTER: (GESTURE, "cancelled", Reason.CANCELLED, 1),
    K.FALSE_SCHEMA: (GESTURE, LOST, Reason.RESULT_INVALID, 1),
    K.NO_JSON: (GESTURE, LOST, Reason.RESULT_INVALID, 1),
    K.OTHER_RECEIPT: (GESTURE, LOST, Reason.RESULT_INVALID, 1),
    K.CROSSED: (STATE_READ, LOST, Reason.RESULT_INVALID, 1),
    K.OTHER_BYTES: (CAPTURE, LOST, Reason.RESULT_INVALID, 1),
    K.OTHER_ARTIFACT: (CAPTURE, LOST, Reason.RESULT_INVALID, 1),
    K.NO_ARTIFACT: (CAPTURE, LOST, Reason.RESULT_INVALID, 1),
    K.PROGRESS_BACK: (GESTURE, "completed", "completed", 1),
    K.PROGRESS_FLOOD: (GESTURE, "completed", "completed", 1),
}


@promise("C23", "C25")
@pytest.mark.parametrize("kind", RECORDED)
def test_the_broker_records_what_is_known_and_asks_no_second_time(kind, brokered):
    operation, state, reason, count = RECORDED[kind]
    brokered.arm(HostFault(kind, operation=operation))
    expected = {"expected_state_generation": 1} if operation == GESTURE else {}
    structured = brokered.structured(operation, request_id="request-1", **expected)
    assert brokered.last() == (state, reason)
    assert structured["ok"] is (state == "completed")
    if state == LOST:
        assert structured["error"]["data"]["may_have_applied"] is True
    reading = brokered.reading()
    assert (len(reading.executions), reading.received[operation], reading.disagreements) == (count, 1, ())
    assert brokered.sound()


@promise("C24")
def test_the_same_identity_again_is_answered_from_its_receipt_and_executed_once(brokered):
    first = brokered.structured(GESTURE, request_id="request-1")
    again = brokered.structured(GESTURE, request_id="request-1")
    assert (first["result"], first["receipt_id"]) == (again["result"], again["receipt_id"])
    assert brokered.reading().executed == {(GESTURE, "instance-1"): 1}


@promise("C27", "C28")
def test_an_artifact_of_a_live_host_is_read_through_its_access_list_and_its_progress_is_in_the_result(brokered):
    structured = brokered.structured(RENDER)
    assert [each["sequence"] for each in structured["progress"]] == [1, 2, 3, 4]
    (made,) = brokered.reading().made
    (artifact,) = structured["artifacts"]
    assert (artifact["artifact_id"], artifact["sha256"]) == (made.artifact_id, made.sha256)
    read = {"artifact_id": made.artifact_id, "offset": 0, "max_bytes": 1000}
    arguments = json.dumps({"instance_id": "instance-1", "input": read}).encode()
    answer = brokered.broker.call(SESSION, "pulp_control_artifact_read", arguments)
    chunk = brokered.told("pulp_control_artifact_read", answer)["result"]
    assert base64.b64decode(chunk["chunk_base64"])[:4] == b"RIFF"


@promise("C31")
def test_of_two_gestures_that_expect_one_generation_one_is_executed(brokered):
    def gesture(key):
        value = {"parameter_id": 7, "normalized_value": 0.5, "idempotency_key": key}
        return brokered.ask(GESTURE, also=value, expected_state_generation=1)

    at_once(*[lambda key=key: gesture(key) for key in ("one", "two", "three")])
    reading = brokered.reading()
    assert reading.executed == {(GESTURE, "instance-1"): 1}
    assert reading.generations["instance-1"] == 2


@promise("C30")
def test_what_a_host_lets_slip_is_in_no_receipt(brokered):
    brokered.arm(HostFault(K.LEAK, operation=STATE_READ))
    brokered.structured(STATE_READ)
    assert canary_of(SEED) not in json.dumps(brokered.receipts())
    assert len(brokered.reading().executions) == 1


@promise("C11")
def test_what_the_inventory_shows_twice_is_no_exact_instance(brokered):
    brokered.arm(HostFault(K.TWIN))
    refused = brokered.ask(STATE_READ)
    assert refused.reason is Reason.AMBIGUOUS_INSTANCE
    assert brokered.reading().executions == ()
