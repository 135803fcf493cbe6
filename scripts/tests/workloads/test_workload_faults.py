import pytest
from marks import promise

from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.faults import Answer, Delivery, Face, Fault, FaultKind
from assisted_benchmark.workloads.synthetic_ui import SyntheticUi

READ = ("read_task", {"taskId": "t-1"})
CLICK = ("click_target", {"taskId": "t-1", "targetId": "approve"})


def a_face(*faults):
    return Face(SyntheticUi(7, "t-1"), faults)


def good(*calls):
    """The result of the last call where nothing goes wrong."""
    ui = SyntheticUi(7, "t-1")
    return [ui.call(*call) for call in calls][-1]


def test_without_a_fault_the_face_is_the_model():
    face = a_face()
    assert face.call(*CLICK) == Answer(good(CLICK))
    assert (face.received, face.ended, face.changes) == ({"click_target": 1}, None, 0)
    assert face.tools() == face.model.tools()


@promise("H5")
@pytest.mark.parametrize(
    ("kind", "delivery", "acted", "ends"),
    [
        (FaultKind.HANG_BEFORE, Delivery.NEVER, False, True),
        (FaultKind.HANG_AFTER, Delivery.NEVER, True, True),
        (FaultKind.DIE_BEFORE, Delivery.DIED, False, True),
        (FaultKind.DIE_AFTER, Delivery.DIED, True, True),
        (FaultKind.DROP_ANSWER, Delivery.NEVER, True, False),
        (FaultKind.GARBAGE, Delivery.GARBLED, True, False),
        (FaultKind.HALF_LINE, Delivery.DIED, True, True),
        (FaultKind.DOUBLE_ANSWER, Delivery.TWICE, True, False),
        (FaultKind.FOREIGN_ID, Delivery.NEVER, True, False),
        (FaultKind.CONTRADICT, Delivery.WHOLE, True, False),
        (FaultKind.BAD_OUTPUT, Delivery.WHOLE, True, False),
        (FaultKind.DRIFT_TOOLS, Delivery.WHOLE, True, False),
        (FaultKind.STDERR_FLOOD, Delivery.WHOLE, True, False),
    ],
    ids=list(FaultKind),
)
def test_each_fault_strikes_before_or_after_the_act_and_says_what_arrives(kind, delivery, acted, ends):
    face = a_face(Fault(kind, "click_target"))
    answer = face.call(*CLICK)
    assert (answer.fault, answer.delivery, answer.result is not None) == (kind, delivery, acted)
    assert [event.kind for event in face.model.events] == ["click"] * acted
    assert face.received == {"click_target": 1}
    assert face.ended == (kind if ends else None)


def test_a_server_that_ended_hears_nothing_more():
    face = a_face(Fault(FaultKind.DIE_BEFORE, nth=1))
    answers = [face.call(*CLICK), face.call(*CLICK), face.call(*READ)]
    assert answers == [Answer(None, FaultKind.DIE_BEFORE)] * 3
    assert (face.received, face.model.events) == ({"click_target": 1}, [])


@promise("H5")
@pytest.mark.parametrize(
    ("fault", "struck"),
    [
        (Fault(FaultKind.DROP_ANSWER), [True, True, True, True]),
        (Fault(FaultKind.DROP_ANSWER, "click_target"), [False, True, False, True]),
        (Fault(FaultKind.DROP_ANSWER, nth=3), [False, False, True, False]),
        (Fault(FaultKind.DROP_ANSWER, "click_target", 2), [False, False, False, True]),
        (Fault(FaultKind.DROP_ANSWER, "other_tool", 1), [False, False, False, False]),
    ],
)
def test_a_fault_may_be_bound_to_a_tool_and_to_a_call(fault, struck):
    face = a_face(fault)
    assert [face.call(*call).fault is not None for call in (READ, CLICK, READ, CLICK)] == struck


def test_of_two_faults_for_one_call_the_first_strikes():
    face = a_face(Fault(FaultKind.GARBAGE, "click_target"), Fault(FaultKind.DROP_ANSWER))
    assert [face.call(*READ).fault, face.call(*CLICK).fault] == [FaultKind.DROP_ANSWER, FaultKind.GARBAGE]


def test_a_contradiction_is_a_failure_with_the_body_of_a_success():
    answer = a_face(Fault(FaultKind.CONTRADICT)).call(*CLICK)
    assert answer.result == good(CLICK) | {"isError": True}


def test_bad_output_is_a_success_that_the_output_schema_forbids():
    answer = a_face(Fault(FaultKind.BAD_OUTPUT)).call(*CLICK)
    assert answer.result == good(CLICK) | {"structuredContent": {"unexpected": 1}}


@promise("H5")
def test_tools_drift_when_the_bound_call_was_answered():
    face = a_face(Fault(FaultKind.DRIFT_TOOLS, "read_task"))
    before = face.tools()
    face.call(*CLICK)
    assert (face.tools(), face.changes) == (before, 0)
    assert face.call(*READ).result == good(CLICK, READ)
    after = face.tools()
    assert (after[0]["description"] != before[0]["description"], after[1:], face.changes) == (True, before[1:], 1)
    assert face.model.tools() == before


@promise("H5")
def test_an_unbound_drift_strikes_at_once_and_a_fault_may_be_armed_later():
    face = a_face()
    before = face.tools()
    face.arm(Fault(FaultKind.DRIFT_TOOLS))
    assert (face.tools() != before, face.changes) == (True, 1)
    face.arm(Fault(FaultKind.GARBAGE))
    assert face.call(*CLICK).delivery is Delivery.GARBLED


def test_a_fault_is_read_from_its_declaration():
    assert Fault.parse({"kind": "hang_after"}) == Fault(FaultKind.HANG_AFTER)
    declared = {"kind": "garbage", "tool": "read_task", "nth": 2}
    assert Fault.parse(declared) == Fault(FaultKind.GARBAGE, "read_task", 2)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(["garbage"], id="no object"),
        pytest.param({"tool": "read_task"}, id="no kind"),
        pytest.param({"kind": "garbage", "after": 2}, id="an unknown key"),
        pytest.param({"kind": "explode"}, id="an unknown kind"),
        pytest.param({"kind": ["garbage"]}, id="a kind of another type"),
        pytest.param({"kind": "garbage", "tool": 1}, id="a tool of another type"),
        pytest.param({"kind": "garbage", "nth": 0}, id="calls count from 1"),
        pytest.param({"kind": "garbage", "nth": True}, id="true is not 1"),
    ],
)
def test_what_declares_no_fault_is_refused(value):
    with pytest.raises(InputError) as caught:
        Fault.parse(value)
    assert caught.value.reason is Reason.WRONG_VALUE


@pytest.mark.parametrize("value", [{"kind": "garbage", "how": "title"}, {"kind": "drift_tools", "how": "colour"}])
def test_only_a_list_drifts_in_a_way_and_only_in_one_that_there_is(value):
    with pytest.raises(InputError) as refused:
        Fault.parse(value)
    assert refused.value.reason is Reason.WRONG_VALUE
