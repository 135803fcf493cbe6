"""Over HTTP and in process one request under one fault comes to one outcome, and the endpoint did the same."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fabric_bodies import SEED, Request, a_request, a_search, claiming, json, timeless, within
from fabric_process import FabricProcess
from marks import promise

from assisted_benchmark.kernel.clock import ManualClock, SystemClock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.mutation.http_outcomes import Broken
from assisted_benchmark.workloads.fabric_api import FabricApi, bearer_of
from assisted_benchmark.workloads.fabric_api_endpoint import FabricEndpoint
from assisted_benchmark.workloads.fabric_api_face import FabricFace
from assisted_benchmark.workloads.fabric_api_faults import Act, FabricFault, FabricFaultKind
from assisted_benchmark.workloads.fabric_api_oracle import read_fabric
from assisted_benchmark.workloads.process import DEATH

F = FabricFaultKind
LATE_SECONDS = 0.8  # what is given to an answer that never comes whole; to arrive, a request needs a small part of it


def in_process(*faults):
    model = FabricApi(SEED)
    return model, FabricEndpoint(FabricFace(model, faults), ManualClock(), bearer=bearer_of(SEED))


def yes():
    return True


def create(endpoint, request, seconds, clock):
    return timeless(endpoint.create(claiming(request), request, gate=yes, deadline=within(seconds, clock)))


# What a create comes to under each fault: the kind of outcome, how many things it created.
CREATES = {
    F.FAIL_BEFORE: (500, 0),
    F.FAIL_AFTER: (500, 1),
    F.HANG_BEFORE: (Broken.LATE, 0),
    F.HANG_AFTER: (Broken.LATE, 1),
    F.DROP_BEFORE: (Broken.CLOSED, 0),
    F.DROP_AFTER: (Broken.CLOSED, 1),
    F.DIE_BEFORE: (Broken.CLOSED, 0),
    F.DIE_AFTER: (Broken.CLOSED, 1),
    F.LEAVE: (202, 1),
    F.ANSWER_TWICE: (Broken.TWICE, 1),
    F.GARBAGE_BODY: (202, 1),
    F.HALF_BODY: (Broken.CLOSED, 1),
    F.SLOW_BODY: (Broken.LATE, 1),
    F.HUGE_BODY: (Broken.TOO_LARGE, 1),
    F.WRONG_TYPE: (Broken.NO_JSON, 1),
    F.REDIRECT: (307, 0),
    F.DRIFT_ECHO: (202, 1),
    F.DRIFT_SHAPE: (400, 0),
}
SLOW = {kind for kind, (outcome, _) in CREATES.items() if outcome is Broken.LATE}
LAST = {F.DIE_BEFORE, F.DIE_AFTER, F.LEAVE}


class Pair:
    """One endpoint twice, in a process and in this one. What is armed strikes the next request of an act, in both."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.face = FabricFace(FabricApi(SEED))
        self.modelled = FabricEndpoint(self.face, ManualClock(), bearer=bearer_of(SEED))

    def arm(self, kind, act):
        received = self.face.model.received
        nth = sum(count for name, count in received.items() if name.endswith(act)) + 1
        for each in (self.face, self.fabric.control):
            each.arm(FabricFault(kind, act, nth))

    def reading(self):
        """What both say that they did, which is the same."""
        reading = self.fabric.reading()
        assert reading == read_fabric(self.face.model.received, self.face.model.events)
        assert reading.disagreements == ()
        return reading


@pytest.fixture(scope="module")
def lasting():
    with FabricProcess() as fabric:
        yield Pair(fabric)
        assert fabric.stderr_bytes() == b""


@pytest.fixture
def pair(kind, lasting):
    """For faults that end the server, a pair of their own."""
    if kind not in LAST:
        yield lasting
    else:
        with FabricProcess() as fabric:
            yield Pair(fabric)
            assert fabric.stderr_bytes() == b""


@promise("M18", "W14")
@pytest.mark.parametrize("kind", list(F))
def test_a_create_under_a_fault_comes_to_one_outcome_over_http_and_in_process(kind, pair):
    before = pair.reading()
    pair.arm(kind, Act.CREATE)
    request = a_request("networks")
    expected = create(pair.modelled, request, 10, None)
    clock = SystemClock()
    got = create(pair.fabric.endpoint(), request, LATE_SECONDS if kind in SLOW else 10, clock)
    outcome, count = CREATES[kind]
    if isinstance(outcome, Broken):
        reason = Reason.RESULT_INVALID if outcome in (Broken.TWICE, Broken.NO_JSON) else Reason.OUTCOME_UNKNOWN
        assert got == (Uncertain, reason, outcome.value)
    else:
        assert got.status == outcome
    assert got == expected
    if kind in LAST:
        assert pair.fabric.end() == (0 if kind is F.LEAVE else DEATH)
    after = pair.reading()
    assert after.real["networks"] - before.real["networks"] == 1
    assert len(after.created) - len(before.created) == count
    again = create(pair.fabric.endpoint(), request, 10, clock)  # the fault is over, or the server is gone
    assert again == create(pair.modelled, request, 10, None)
    if kind in LAST:
        assert again == (NotSent, Reason.SERVER_UNAVAILABLE, "no connection stands")
    else:
        assert again.status == 202


@promise("M6")
@pytest.mark.parametrize("kind", sorted(set(F) - LAST))
def test_a_dry_run_under_a_fault_comes_to_one_outcome_and_creates_nothing(kind, pair):
    before = pair.reading()
    pair.arm(kind, Act.DRY_RUN)
    request = a_request("serviceTokens", dry=True)
    got = pair.fabric.endpoint().ask(request, deadline=within(LATE_SECONDS if kind in SLOW else 10, SystemClock()))
    assert timeless(got) == timeless(pair.modelled.ask(request, deadline=within()))
    after = pair.reading()
    assert (after.created, after.real) == (before.created, before.real)
    assert after.dry["serviceTokens"] - before.dry["serviceTokens"] == 1


@promise("M6", "M18")
def test_without_faults_a_whole_session_is_the_same_over_http_and_in_process():
    model, modelled = in_process()
    search = Request("POST", "/fabric/v4/prices/search", json.dumps(a_search()).encode())
    with FabricProcess() as fabric:
        endpoint = fabric.endpoint()
        clock = SystemClock()
        for kind in ("connections", "networks", "serviceTokens"):
            asked = [a_request(kind, dry=True), search, Request("GET", f"/fabric/v4/{kind}?limit=1")]
            for request in asked:
                expected = timeless(modelled.ask(request, deadline=within()))
                assert (expected.status, timeless(endpoint.ask(request, deadline=within(10, clock)))) == (200, expected)
            request = a_request(kind)
            made = create(endpoint, request, 10, clock)
            assert made == create(modelled, request, 10, None)
            one = Request("GET", json.loads(made.body)["href"])
            assert timeless(endpoint.ask(one, deadline=within(10, clock))).body == made.body
            modelled.ask(one, deadline=within())
        reading = fabric.reading()
        assert reading == read_fabric(model.received, model.events)
        assert reading.dry == reading.real == {"connections": 1, "networks": 1, "serviceTokens": 1}
        assert [each.kind for each in reading.created] == ["connections", "networks", "serviceTokens"]


@promise("M18")
def test_a_gate_that_says_no_and_a_deadline_that_passed_reach_no_server_in_either():
    model, modelled = in_process()
    request = a_request()
    with FabricProcess() as fabric:
        for endpoint, clock in ((fabric.endpoint(), SystemClock()), (modelled, ManualClock())):
            closed = endpoint.create(claiming(request), request, gate=lambda: False, deadline=within(10, clock))
            assert closed == NotSent(Reason.EXPIRED, "the gate closed before the request was written")
            late = endpoint.create(claiming(request), request, gate=yes, deadline=within(0, clock))
            assert late == NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
            other = endpoint.create(claiming(a_request("networks")), request, gate=yes, deadline=within(10, clock))
            assert other == NotSent(Reason.BINDING_MISMATCH, "the body is not the claimed one")
        assert fabric.reading() == read_fabric({}, []) == read_fabric(model.received, model.events)


@promise("M18")
def test_without_its_bearer_a_client_is_answered_401_and_nothing_is_done():
    request = a_request()
    with FabricProcess() as fabric:
        for endpoint in (fabric.endpoint(bearer=""), fabric.endpoint(bearer="another")):
            got = create(endpoint, request, 10, SystemClock())
            assert (got.status, json.loads(got.body)[0]["errorCode"]) == (401, "EQ-3000039")
        assert (fabric.reading().real["connections"], fabric.reading().created) == (2, ())


@promise("M18")
def test_many_creates_at_once_are_each_done_once_over_http_and_in_process():
    model, modelled = in_process()
    request = a_request("networks")
    with FabricProcess() as fabric:
        for endpoint, clock in ((fabric.endpoint(), SystemClock()), (modelled, ManualClock())):
            with ThreadPoolExecutor(8) as pool:
                replies = list(pool.map(lambda _: create(endpoint, request, 10, clock), range(24)))  # noqa: B023 - ends here
            assert {reply.status for reply in replies} == {202}
            assert len({json.loads(reply.body)["uuid"] for reply in replies}) == 24
        reading = fabric.reading()
        assert reading == read_fabric(model.received, model.events)
        assert (reading.real["networks"], len(reading.created), reading.disagreements) == (24, 24, ())
