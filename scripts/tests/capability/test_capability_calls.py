"""One call from what was asked to its receipt: budget, exact instance, sessions, grants that are got for it."""

import pytest
from attrs import evolve
from capability_bench import (
    GESTURE,
    GPU,
    MS,
    OTHER,
    SESSION,
    STATE,
    STATE_READ,
    CapabilityBench,
    an_instance,
)
from marks import promise

from assisted_benchmark.capability.admission import EARLY
from assisted_benchmark.capability.negotiation import Offer
from assisted_benchmark.capability.ports import Enrolled, Unavailable, Word
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


@promise("C10")
@pytest.mark.parametrize("step", ["connect", "inventory", "standing", "negotiate"])
def test_a_step_that_takes_all_the_time_ends_the_call_with_no_request_sent(step):
    bench = CapabilityBench()
    bench.world.on_step = bench.person.on_step = lambda name: name == step and bench.clock.advance(SECOND)
    answer = bench.ask(STATE_READ, timeout_ms=1000)
    assert (answer.reason, bench.executed, bench.groups()) == (Reason.DEADLINE_EXCEEDED, {}, [])


@promise("C4", "C10")
def test_a_call_that_names_no_time_has_three_seconds():
    bench = CapabilityBench()
    bench.ask(STATE_READ)
    assert bench.world.steps[0] == ("connect", 3 * SECOND)


@promise("C11")
@pytest.mark.parametrize(
    ("live", "reason"),
    [
        ((), Reason.INSTANCE_NOT_FOUND),
        ((an_instance("instance-10"), an_instance("Instance-1")), Reason.INSTANCE_NOT_FOUND),
        ((an_instance(publication="old"), an_instance(publication="new")), Reason.AMBIGUOUS_INSTANCE),
    ],
    ids=["none", "similar ones", "two"],
)
def test_only_the_exact_instance_is_meant(live, reason):
    bench = CapabilityBench()
    bench.world.live = live
    answer = bench.ask(STATE_READ)
    assert (answer.reason, bench.executed) == (reason, {})
    assert bench.manage("status", instance_id="instance-1").reason is reason


@promise("C12")
def test_a_session_is_used_for_four_minutes_and_then_opened_anew():
    bench = CapabilityBench()
    bench.ask(STATE_READ)
    bench.clock.advance(4 * MINUTE - 1)
    bench.ask(STATE_READ)
    assert {*bench.world.sessions} == {"session-1"}
    bench.clock.advance(1)
    bench.ask(STATE_READ)
    assert {*bench.world.sessions} == {"session-1", "session-2"}


@promise("C12")
def test_a_session_that_is_over_is_opened_anew_once_and_the_call_goes_on():
    bench = CapabilityBench()
    bench.ask(STATE_READ)
    over = Unavailable(Reason.SESSION_ENDED, "superseded", ended=True)
    bench.world.fails["inventory"] = over
    bench.world.on_step = lambda name: name == "connect" and bench.world.fails.clear()
    assert bench.ask(STATE_READ).state is State.COMPLETED
    assert [name for name, _ in bench.world.steps].count("connect") == 2


@promise("C12")
def test_a_session_that_is_over_again_at_once_refuses():
    bench = CapabilityBench()
    bench.world.fails["inventory"] = Unavailable(Reason.SESSION_ENDED, "superseded", ended=True)
    assert bench.ask(STATE_READ).reason is Reason.SESSION_ENDED
    assert [name for name, _ in bench.world.steps] == ["connect", "inventory"] * 2


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("connect", Reason.CLIENT_UNAVAILABLE),
        ("inventory", Reason.SERVER_UNAVAILABLE),
        ("negotiate", Reason.SERVER_UNAVAILABLE),
    ],
)
def test_a_host_that_cannot_be_asked_is_told_apart_by_the_step(step, reason):
    bench = CapabilityBench()
    bench.world.fails[step] = Unavailable(Reason.SERVER_UNAVAILABLE, "no answer")
    answer = bench.ask(STATE_READ)
    assert (answer.reason, bench.executed, bench.groups()) == (reason, {}, [])


@promise("C13")
def test_an_instance_that_speaks_no_version_of_ours_gets_no_request():
    bench = CapabilityBench()
    bench.world.offer = Offer(lowest=2, highest=3, mandatory=("receipts",))
    answer = bench.ask(STATE_READ)
    assert (answer.reason, answer.detail.partition(":")[0]) == (Reason.PROTOCOL_MISMATCH, "no_common_version")
    assert bench.executed == {}


@promise("C12")
def test_an_automatic_grant_is_used_again_for_fourteen_minutes():
    bench = CapabilityBench(policies=())
    bench.ask(STATE_READ)
    bench.clock.advance(14 * MINUTE - 1)
    bench.ask(STATE_READ)
    assert len(bench.person.prompts) == 1
    bench.clock.advance(1)
    bench.ask(STATE_READ)
    assert len(bench.person.prompts) == 2
    assert len({line["grant"] for line in bench.receipts() if line["reason"] == "completed"}) == 2


@promise("C12")
@pytest.mark.parametrize(
    "other",
    [{"session": OTHER}, {"instance_id": "instance-2"}, {"profile": "observe"}],
    ids=["client", "instance", "authority"],
)
def test_an_automatic_grant_is_used_for_the_same_client_instance_and_authority_only(other):
    bench = CapabilityBench(instances=(an_instance(), an_instance("instance-2")))
    bench.ask(STATE_READ)
    bench.ask(STATE_READ)
    assert len(bench.person.steps) == 1
    assert bench.ask(STATE_READ, **other).state is State.COMPLETED
    assert len(bench.person.steps) == 2


@promise("C12")
def test_an_automatic_grant_is_not_used_for_another_publication():
    bench = CapabilityBench()
    bench.ask(STATE_READ)
    bench.world.live = (an_instance(publication="publication-2"),)
    assert bench.ask(STATE_READ).state is State.COMPLETED
    assert len(bench.person.steps) == 2


@promise("C12")
def test_an_automatic_grant_is_forgotten_when_something_under_it_does_not_complete():
    bench = CapabilityBench()
    bench.world.execute = lambda claimed, envelope: bench.world.ended(b"[]")
    assert bench.ask(STATE_READ).state is State.UNKNOWN_NEEDS_REFRESH
    bench.world.execute = bench.execute
    bench.ask(STATE_READ)
    assert len(bench.person.steps) == 2


@promise("C12")
def test_an_automatic_grant_is_forgotten_when_it_is_revoked():
    bench = CapabilityBench()
    bench.ask(STATE_READ)
    grant = next(line["grant"] for line in bench.receipts() if line["reason"] == "granted")
    assert bench.manage("revoke", grant_id=grant).status == "revoked"
    bench.ask(STATE_READ)
    assert len(bench.person.steps) == 2


def test_a_session_of_another_run_is_another_brokers():
    bench = CapabilityBench()
    answer = bench.ask(STATE_READ, SESSION._replace(run="run-2"))
    assert (answer.reason, bench.world.steps) == (Reason.BROKER_MISMATCH, [])


@promise("C7")
@pytest.mark.parametrize("reveal", [False, True])
def test_a_refusal_is_told_in_the_shape_of_every_failure(reveal):
    bench = CapabilityBench()
    refused = bench.ask(STATE_READ, instance_id="instance-2")
    structured = bench.told("pulp_control_state_read", refused, reveal=reveal)
    error = structured["error"]
    assert (structured["ok"], error["code"]) == (False, "instance_not_found" if reveal else "not_authorised")
    assert error["data"] == {"may_have_applied": False, "receipt_id": refused.receipt_id}


@promise("C7")
@pytest.mark.parametrize(("reveal", "code"), [(False, "unavailable"), (True, "failed")])
def test_an_operation_that_failed_is_told_by_its_receipt(reveal, code):
    bench = CapabilityBench()
    ended = bench.world.ended(b"", Word.FAILED, "busy", "the host is busy")
    bench.world.execute = lambda claimed, envelope: ended
    answer = bench.ask(STATE_READ, request_id="r-1")
    assert bench.told("pulp_control_state_read", answer, reveal=reveal) == {
        "ok": False,
        "error": {
            "code": code,
            "message": "the operation is failed",
            "data": {
                "request_id": "r-1",
                "receipt_id": answer.receipt_id,
                "operation_id": STATE_READ,
                "state": "failed",
                "explanation": "the host is busy",
                "may_have_applied": False,
            },
        },
    }


@promise("C7")
def test_management_calls_are_told_as_their_schemas_say():
    bench = CapabilityBench()
    about = {
        "instance_id": "instance-1",
        "registration_id": "registration-of-instance-1",
        "publication_id": "publication-1",
        "state_generation": 1,
        "capabilities": [each.operation for each in an_instance().capabilities],
    }
    listed = bench.told("pulp_control_instances", bench.manage("instances"))
    assert listed == {"ok": True, "status": "completed", "data": {"instances": [about]}}
    status = bench.told("pulp_control_status", bench.manage("status", instance_id="instance-1"))
    assert status == {"ok": True, "status": "completed", "data": {"instance": about}}
    granted = bench.told(
        "pulp_control_grant_request",
        bench.manage("grant_request", instance_id="instance-1", operation_id=STATE_READ),
    )
    assert granted["data"] == {
        "grant_id": granted["data"]["grant_id"],
        "expires_at_ms": (bench.clock.now().wall_ns + 15 * MINUTE) // MS,
        "operations": [STATE_READ],
    }
    revoked = bench.told("pulp_control_revoke", bench.manage("revoke", grant_id=granted["data"]["grant_id"]))
    assert revoked == {"ok": True, "status": "revoked", "data": {"grant_id": granted["data"]["grant_id"]}}


def test_bytes_that_are_no_call_leave_a_receipt():
    bench = CapabilityBench()
    refused = bench.broker.refuse_malformed(Reason.MALFORMED_FRAME, "no frame")
    assert [(line["reason"], line["id"]) for line in bench.receipts()] == [("malformed_frame", refused.receipt_id)]


@promise("C12")
def test_a_reopened_session_is_not_ended_by_news_of_the_old_one():
    bench = CapabilityBench()
    sessions = bench.broker._parts.sessions
    bench.ask(STATE_READ)
    sessions.ended(SESSION, Enrolled("session-0", "client-1", "peer-1"))
    bench.ask(STATE_READ)
    assert {*bench.world.sessions} == {"session-1"}


@promise("C4")
def test_the_request_id_is_the_idempotency_identity_where_the_input_has_none():
    bench = CapabilityBench()
    first = bench.ask(STATE_READ, request_id="r-1")
    again = bench.ask(STATE_READ, request_id="r-1")
    assert (again.receipt_id, again.replayed, bench.executed) == (first.receipt_id, True, {STATE_READ: 1})
    other = bench.ask(STATE_READ)
    assert (other.replayed, bench.executed) == (False, {STATE_READ: 2})


@promise("C18")
@pytest.mark.parametrize(
    "claim",
    [{"approved": True}, {"consent": "approved"}, {"decision_id": "x"}, {"_meta": {"approved": True}}],
    ids=lambda claim: next(iter(claim)),
)
def test_no_argument_can_claim_approval(claim):
    bench = CapabilityBench()
    answer = bench.ask(STATE_READ, **claim)
    assert (answer.reason, bench.executed) == (Reason.ARGUMENTS_INVALID, {})
    answer = bench.manage("grant_request", instance_id="instance-1", operation_id=STATE_READ, **claim)
    assert (answer.reason, bench.person.steps) == (Reason.ARGUMENTS_INVALID, [])


def test_a_profile_that_lacks_the_operation_asks_nobody():
    bench = CapabilityBench(policies=())
    answer = bench.ask(GESTURE, profile="observe")
    assert (answer.reason, bench.person.steps, bench.executed) == (Reason.NOT_GRANTED, [], {})


def test_nobody_is_asked_to_consent_to_what_would_be_refused_all_the_same():
    instance = evolve(an_instance(), capabilities=())
    bench = CapabilityBench(policies=(), instances=(instance,))
    answer = bench.ask(STATE_READ)
    assert (answer.reason, bench.person.steps) == (Reason.NOT_IMPLEMENTED, [])


def test_the_call_of_a_profile_gets_a_grant_of_the_profile():
    bench = CapabilityBench()
    assert bench.ask(GPU, profile="inspect-readonly").state is State.COMPLETED
    assert [line["detail"] for line in bench.receipts() if line["reason"] == "granted"] == [
        "`inspect-readonly` on a standing policy"
    ]


@promise("K8")
def test_a_refusal_without_a_store_has_no_receipt_and_is_told_so():
    bench = CapabilityBench()
    bench.ledger.broken |= {"run_record", "record"}
    refused = bench.ask(STATE_READ)
    assert (refused.reason, refused.receipt_id, refused.checked) == (Reason.STORE_UNAVAILABLE, None, ())
    assert (bench.person.steps, bench.executed) == ([], {})  # nobody was asked to consent either
    error = bench.told("pulp_control_state_read", refused)["error"]
    assert (error["code"], error["data"]) == ("unavailable", {"may_have_applied": False})


@promise("C15", "K7")
@pytest.mark.parametrize("what", [{"instance_id": "instance-2"}, {"grant_id": "none"}], ids=["instance", "grant"])
def test_without_a_store_that_is_the_reason_whatever_else_is_wrong(what):
    bench = CapabilityBench()
    bench.ledger.broken |= {"run_record", "record"}
    refused = bench.ask(STATE_READ, **what)
    assert (refused.reason, refused.checked, bench.executed) == (Reason.STORE_UNAVAILABLE, (), {})


@promise("K8")
def test_a_broker_without_the_check_of_the_store_tells_of_what_came_next():
    early = tuple(check for check in EARLY if check.reason is not Reason.STORE_UNAVAILABLE)
    bench = CapabilityBench(early=early)
    bench.ledger.broken |= {"run_record", "record"}
    assert bench.ask(STATE_READ, instance_id="instance-2").reason is Reason.INSTANCE_NOT_FOUND


@promise("C12")
def test_a_session_that_is_over_at_a_later_step_is_opened_anew_by_the_next_call():
    bench = CapabilityBench()
    bench.world.fails["negotiate"] = Unavailable(Reason.SESSION_ENDED, "superseded", ended=True)
    assert (bench.ask(STATE_READ).reason, bench.executed) == (Reason.SESSION_ENDED, {})
    bench.world.fails.clear()
    assert bench.ask(STATE_READ).state is State.COMPLETED
    assert {*bench.world.sessions} == {"session-1", "session-2"}
