"""Faults of the plugin host as data: how they are declared, and which of them strikes."""

import pytest
from host_requests import CAPTURE, GESTURE, READ, RENDER, SEED, Client
from marks import promise

from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.plugin_host_face import PluginHostFace, read_request
from assisted_benchmark.workloads.plugin_host_faults import AT_ONCE, HostFault, HostFaultKind, Step
from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost

K = HostFaultKind


def struck(*operations, faults=(), arming=()):
    """Which of these requests fail, with these faults; some are armed once the first request is through."""
    host = InProcessHost(PluginHostFace(SEED, faults), ManualClock())
    client = Client(host)
    words = []
    for operation in operations:
        words.append(client.ask(client.instance(), operation).word != "completed")
        host.arm(*arming)
        arming = ()
    return words


@promise("H5")
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (HostFault(K.FAIL_BEFORE), [1, 1, 1, 1]),
        (HostFault(K.FAIL_BEFORE, Step.REQUEST, READ), [1, 0, 0, 1]),
        (HostFault(K.FAIL_BEFORE, nth=3), [0, 0, 1, 0]),
        (HostFault(K.FAIL_BEFORE, operation=READ, nth=2), [0, 0, 0, 1]),
        (HostFault(K.FAIL_BEFORE, instance="instance-1", nth=1), [1, 0, 0, 0]),
        (HostFault(K.FAIL_BEFORE, instance="instance-2"), [0, 0, 0, 0]),
    ],
)
def test_a_fault_may_be_bound_to_an_operation_an_instance_and_a_number(fault, expected):
    assert struck(READ, GESTURE, CAPTURE, READ, faults=[fault]) == list(map(bool, expected))


@promise("H5")
def test_of_two_faults_the_first_strikes_and_one_that_is_armed_later_counts_from_then():
    both = [HostFault(K.FAIL_AFTER, operation=GESTURE), HostFault(K.ANSWER_TWICE)]
    assert struck(READ, GESTURE, faults=both) == [False, True]
    assert struck(READ, GESTURE, faults=reversed(both)) == [False, False]
    late = [HostFault(K.FAIL_BEFORE, nth=2)]
    assert struck(READ, READ, READ, READ, arming=late) == [False, False, True, False]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"kind": "hang_after"}, HostFault(K.HANG_AFTER)),
        (
            {"kind": "fail_before", "step": "request", "operation": READ, "instance": "instance-2", "nth": 2},
            HostFault(K.FAIL_BEFORE, Step.REQUEST, READ, "instance-2", 2),
        ),
        ({"kind": "drop_before", "step": "enrol"}, HostFault(K.DROP_BEFORE, Step.ENROL)),
        ({"kind": "offer_newer", "step": "negotiate"}, HostFault(K.OFFER_NEWER, Step.NEGOTIATE)),
        ({"kind": "unbuilt", "operation": READ}, HostFault(K.UNBUILT, operation=READ)),
        ({"kind": "tear_down", "instance": "instance-2"}, HostFault(K.TEAR_DOWN, instance="instance-2")),
    ],
)
def test_a_fault_is_read_from_its_declaration(value, fault):
    assert HostFault.parse(value) == fault
    assert {key: each for key, each in fault._asdict().items() if each is not None} == value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(["republish"], id="no object"),
        pytest.param({"step": "request"}, id="no kind"),
        pytest.param({"kind": "republish", "when": 1}, id="an unknown key"),
        pytest.param({"kind": "explode"}, id="an unknown kind"),
        pytest.param({"kind": ["republish"]}, id="a kind of another type"),
        pytest.param({"kind": "error", "step": "leave"}, id="an unknown step"),
        pytest.param({"kind": "error", "operation": 1}, id="an operation of another type"),
        pytest.param({"kind": "error", "instance": 1}, id="an instance of another type"),
        pytest.param({"kind": "error", "nth": 0}, id="a number below 1"),
        pytest.param({"kind": "error", "nth": True}, id="a number that is none"),
        pytest.param({"kind": "error", "step": "enrol", "operation": READ}, id="an operation of an enrolment"),
        pytest.param({"kind": "offer_newer", "step": "request"}, id="an offer in a request"),
        pytest.param({"kind": "offer_newer", "operation": READ}, id="an offer of an operation"),
        pytest.param({"kind": "leak", "step": "inventory"}, id="a result of an inventory"),
        pytest.param({"kind": "progress", "step": "negotiate"}, id="progress of a negotiation"),
        pytest.param({"kind": "republish", "step": "request"}, id="at once, at a step"),
        pytest.param({"kind": "republish", "nth": 1}, id="at once, for the nth time"),
        pytest.param({"kind": "republish", "operation": READ}, id="a publication of an operation"),
        pytest.param({"kind": "unbuilt"}, id="unbuilt, and what"),
    ],
)
def test_what_is_no_fault_is_refused(value):
    with pytest.raises(InputError) as caught:
        HostFault.parse(value)
    assert caught.value.reason is Reason.WRONG_VALUE


@promise("H5")
def test_a_host_can_start_with_what_happens_at_once():
    client = Client(InProcessHost(PluginHostFace(SEED, [HostFault(K.TEAR_DOWN)]), ManualClock()))
    assert [each.id for each in client.instances()] == ["instance-2"]
    twins = Client(InProcessHost(PluginHostFace(SEED, [HostFault(K.TWIN, instance="instance-2")]), ManualClock()))
    first, *two = twins.instances()
    assert (first.id, [each.id for each in two], len({each.registration for each in two})) == (
        "instance-1",
        ["instance-2", "instance-2"],
        2,
    )
    assert len(AT_ONCE) == 9


PARAMS = {
    "instance": "instance-1",
    "operation": RENDER,
    "parameters": "{}",
    "request_id": "q",
    "receipt_id": "r",
    "request_hash": "h",
    "grant": "g",
    "client": "c",
    "registration": "r",
    "publication": "p",
    "version": 1,
    "expected_state_generation": None,
}


@pytest.mark.parametrize(
    "change",
    [{"more": 1}, {"instance": 7}, {"version": True}, {"expected_state_generation": -1}]
    + [{"expected_state_generation": each} for each in (True, 1.0, 1 << 53)],
)
def test_a_request_is_read_to_the_letter_by_the_host_as_well(change):
    assert read_request(3, PARAMS) == (3, *PARAMS.values())
    assert read_request(3, PARAMS | change) is None
    face = PluginHostFace(SEED)
    played = face.take(Step.REQUEST, face.open(), PARAMS | change)
    assert played.answered.error.message == "the params are none of `request`"
    assert (face.model.received, [event.kind for event in face.model.events]) == ({"request": 1}, ["published"] * 2)


@pytest.mark.parametrize("step", [Step.ENROL, Step.INVENTORY, Step.NEGOTIATE])
@pytest.mark.parametrize("params", [{}, {"session": 7}, {"client": "c"}, {"session": "s", "more": 1}])
def test_a_step_is_read_to_the_letter(step, params):
    face = PluginHostFace(SEED)
    played = face.take(step, face.open(), params)
    assert (played.answered.result, played.answered.error.ended) == ({}, False)


def test_a_negotiation_is_with_a_publication_that_there_is():
    face = PluginHostFace(SEED)
    link = face.open()
    session = face.take(Step.ENROL, link, {"client": "c", "peer": "p"}).answered.result["session"]
    asked = {"session": session, "instance": "instance-1", "publication": "another", "offer": {}}
    assert face.take(Step.NEGOTIATE, link, asked).answered.error.message == "there is no such publication"
    face.close(link)
    assert face.take(Step.NEGOTIATE, link, asked).answered.error.ended is True
