import pytest
from fabric_bodies import SEED, a_network, json
from marks import promise

from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.fabric_api import Asked, FabricApi, bearer_of
from assisted_benchmark.workloads.fabric_api_face import HUGE, FabricFace, Played
from assisted_benchmark.workloads.fabric_api_faults import Act, FabricFault, FabricFaultKind

F = FabricFaultKind
AUTHORIZATION = f"Bearer {bearer_of(SEED)}"
CREATE = Asked("POST", "/fabric/v4/networks", json.dumps(a_network()).encode(), authorization=AUTHORIZATION)
DRY = CREATE._replace(target="/fabric/v4/networks?dryRun=true")
LIST = Asked("GET", "/fabric/v4/networks", authorization=AUTHORIZATION)


def a_face(*faults):
    return FabricFace(FabricApi(SEED), faults)


def struck(face, *asked):
    return [face.take(each).fault for each in asked]


def test_without_a_fault_the_face_is_the_model():
    face, model = a_face(), FabricApi(SEED)
    for asked in (DRY, CREATE, LIST):
        assert face.take(asked) == Played(model.answer(asked, model.arrive(asked)))
    assert (face.model.received, face.model.events, face.ended) == (model.received, model.events, False)


@promise("H5")
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (FabricFault(F.REDIRECT), [1, 1, 1, 1]),
        (FabricFault(F.REDIRECT, Act.CREATE), [0, 1, 0, 1]),
        (FabricFault(F.REDIRECT, nth=3), [0, 0, 1, 0]),
        (FabricFault(F.REDIRECT, Act.CREATE, 2), [0, 0, 0, 1]),
        (FabricFault(F.REDIRECT, Act.GET, 1), [0, 0, 0, 0]),
    ],
)
def test_a_fault_may_be_bound_to_an_act_and_to_a_request(fault, expected):
    assert struck(a_face(fault), DRY, CREATE, LIST, CREATE) == [F.REDIRECT if each else None for each in expected]


@promise("H5")
def test_of_two_faults_the_first_strikes_and_one_may_be_armed_later():
    face = a_face(FabricFault(F.HANG_AFTER, Act.CREATE), FabricFault(F.REDIRECT))
    assert struck(face, DRY, CREATE) == [F.REDIRECT, F.HANG_AFTER]
    late = a_face()
    assert struck(late, DRY) == [None]
    late.arm(FabricFault(F.DROP_AFTER))
    assert struck(late, DRY) == [F.DROP_AFTER]


@promise("H5")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 415, 429, 500, 503])
@pytest.mark.parametrize(("kind", "made"), [(F.FAIL_BEFORE, 0), (F.FAIL_AFTER, 1)])
def test_a_failure_has_its_status_and_a_public_code_whether_it_acted_or_not(kind, made, status):
    face = a_face(FabricFault(kind, status=status))
    answered = face.take(CREATE).answered
    assert answered.status == status
    assert json.loads(answered.body)[0]["errorCode"].startswith("EQ-")
    assert [event.kind for event in face.model.events] == ["created"] * made + ["rejected"]


@promise("H5")
@pytest.mark.parametrize("kind", list(F))
def test_each_fault_acts_or_does_not_and_only_some_end_the_server(kind):
    face = a_face(FabricFault(kind, Act.CREATE))
    played = face.take(CREATE)
    before = kind in (F.HANG_BEFORE, F.DROP_BEFORE, F.DIE_BEFORE)
    created = [event for event in face.model.events if event.kind == "created"]
    assert (played.fault, played.answered is None) == (kind, before)
    assert len(created) == (not before and kind not in (F.FAIL_BEFORE, F.REDIRECT, F.DRIFT_SHAPE))
    assert face.ended is (kind in (F.DIE_BEFORE, F.DIE_AFTER, F.LEAVE))
    assert face.model.received == {"networks.create": 1}


def test_what_is_wrong_in_an_answer_itself():
    good = a_face().take(CREATE).answered
    spoilt = {kind: a_face(FabricFault(kind)).take(CREATE).answered for kind in F}
    assert spoilt[F.WRONG_TYPE] == good._replace(media="text/html")
    assert spoilt[F.DRIFT_ECHO].status == good.status
    assert json.loads(spoilt[F.DRIFT_ECHO].body) == json.loads(good.body) | {"name": "another than was asked"}
    assert (json.loads(spoilt[F.HUGE_BODY].body), len(spoilt[F.HUGE_BODY].body)) == (json.loads(good.body), HUGE)
    with pytest.raises(ValueError):
        json.loads(spoilt[F.GARBAGE_BODY].body)
    for kind in (F.LEAVE, F.ANSWER_TWICE, F.HALF_BODY, F.SLOW_BODY, F.HANG_AFTER, F.DROP_AFTER, F.DIE_AFTER):
        assert spoilt[kind] == good
    assert (spoilt[F.REDIRECT].status, spoilt[F.REDIRECT].headers) == (307, (("location", CREATE.target),))
    wanted = json.loads(spoilt[F.DRIFT_SHAPE].body)[0]["additionalInfo"]
    assert wanted == [{"property": "/project", "reason": "is required"}]


def test_a_shape_that_drifted_still_takes_what_has_the_new_field_and_an_error_has_no_echo_to_drift():
    with_project = CREATE._replace(body=json.dumps(a_network(project={"projectId": "p"})).encode())
    assert a_face(FabricFault(F.DRIFT_SHAPE)).take(with_project).answered.status == 202
    empty = CREATE._replace(body=b"{}")
    assert a_face(FabricFault(F.DRIFT_ECHO)).take(empty).answered == a_face().take(empty).answered


def test_a_fault_is_read_from_its_declaration():
    assert FabricFault.parse({"kind": "hang_after"}) == FabricFault(F.HANG_AFTER)
    declared = {"kind": "fail_after", "call": "create", "nth": 2, "status": 503}
    assert FabricFault.parse(declared) == FabricFault(F.FAIL_AFTER, Act.CREATE, 2, 503)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(["redirect"], id="no object"),
        pytest.param({"call": "create"}, id="no kind"),
        pytest.param({"kind": "redirect", "after": 2}, id="an unknown key"),
        pytest.param({"kind": "explode"}, id="an unknown kind"),
        pytest.param({"kind": ["redirect"]}, id="a kind of another type"),
        pytest.param({"kind": "redirect", "call": "delete"}, id="an unknown act"),
        pytest.param({"kind": "redirect", "call": 1}, id="an act of another type"),
        pytest.param({"kind": "redirect", "nth": 0}, id="requests count from 1"),
        pytest.param({"kind": "redirect", "nth": True}, id="true is not 1"),
        pytest.param({"kind": "redirect", "status": 302}, id="a status where none belongs"),
        pytest.param({"kind": "fail_before", "status": 200}, id="a status that is no failure"),
        pytest.param({"kind": "fail_before", "status": "500"}, id="a status of another type"),
    ],
)
def test_what_declares_no_fault_is_refused(value):
    with pytest.raises(InputError) as caught:
        FabricFault.parse(value)
    assert caught.value.reason is Reason.WRONG_VALUE
