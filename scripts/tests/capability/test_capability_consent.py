"""Consent and grants: the prompt machine, decisions that issue one grant each, and what a grant is good for."""

import pytest
from attrs import evolve
from capability_bench import (
    EVALUATE,
    EVERYTHING,
    GESTURE,
    GPU,
    GRANTABLE,
    MS,
    OTHER,
    RELOAD,
    SESSION,
    STATE_READ,
    CapabilityBench,
    an_instance,
    at_once,
    without,
)
from marks import promise
from registry_bench import PULP

from assisted_benchmark.capability.granting import Authority, NotIssued
from assisted_benchmark.capability.grants import MAX_GRANTS, MAX_TTL_NS, Grant
from assisted_benchmark.capability.ports import Answer, Unavailable, Verdict, Wanted
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.clock import SECOND, Deadline
from assisted_benchmark.kernel.reasons import Reason

MINUTE = 60 * SECOND


def asking(**more):
    """A bench where every grant has to be decided on by the person."""
    return CapabilityBench(policies=(), **more)


def request(bench, authority=STATE_READ, session=SESSION, instance_id="instance-1"):
    kind = "profile" if authority in PULP.profiles else "operation_id"
    return bench.manage("grant_request", session, instance_id=instance_id, **{kind: authority})


@promise("C18", "C19")
@pytest.mark.parametrize(
    ("decide", "reason"),
    [
        (lambda prompt: Answer(prompt.id, Verdict.DENIED), Reason.CONSENT_REQUIRED),
        (lambda prompt: Answer(prompt.id, Verdict.TIMED_OUT), Reason.CONSENT_REQUIRED),
        (lambda prompt: Answer(prompt.id, Verdict.UNAVAILABLE), Reason.CONSENT_REQUIRED),
        (lambda prompt: None, Reason.CONSENT_REQUIRED),
        (lambda prompt: Answer("sha256:" + "0" * 64, Verdict.APPROVED), Reason.CONSENT_REPLAY),
        (lambda prompt: Answer("", Verdict.APPROVED), Reason.CONSENT_REPLAY),
    ],
    ids=["denied", "timed out", "headless", "absent", "another decision", "no decision id"],
)
def test_only_the_approval_of_this_very_prompt_issues_a_grant(decide, reason):
    bench = asking()
    bench.person.decide = decide
    refused = request(bench)
    assert refused.reason is reason
    assert [line["reason"] for line in bench.receipts()] == [reason.value]
    assert (bench.ask(STATE_READ, OTHER).reason, bench.executed) == (Reason.CONSENT_REQUIRED, {})


@promise("C18", "C19")
def test_a_decision_that_has_issued_a_grant_issues_no_other():
    bench = asking()
    given = []

    def decide(prompt):
        given.append(Answer(prompt.id, Verdict.APPROVED))
        return given[0]

    bench.person.decide = decide
    assert request(bench).status == "granted"
    bench.clock.advance(30 * SECOND)
    assert request(bench).reason is Reason.CONSENT_REPLAY


@promise("C19")
def test_a_decision_is_spent_by_the_first_use_of_it():
    bench = asking()
    prompts = bench.broker._parts.granting._prompts
    wanted = Wanted("client-1", "r", "i", "p", STATE_READ, (STATE_READ,))
    approved = prompts.decide(wanted, deadline=Deadline.after(bench.clock, SECOND), still=lambda: True)
    assert [prompts.spend(approved.decision), prompts.spend(approved.decision)] == [True, False]


@promise("C18", "C19")
def test_a_decision_that_somebody_else_has_spent_issues_no_grant():
    bench = asking()
    prompts = bench.broker._parts.granting._prompts
    real = prompts.decide

    def decide_and_spend(*args, **kwargs):
        approved = real(*args, **kwargs)
        prompts.spend(approved.decision)
        return approved

    prompts.decide = decide_and_spend
    assert request(bench).reason is Reason.CONSENT_REPLAY


@promise("C19")
@pytest.mark.parametrize(
    ("waits", "reason"), [(30 * SECOND - 1, None), (30 * SECOND, Reason.CONSENT_REQUIRED)], ids=["in time", "late"]
)
def test_a_decision_after_thirty_seconds_is_void(waits, reason):
    bench = asking()
    bench.person.on_step = lambda step: step == "ask" and bench.clock.advance(waits)
    answer = request(bench)
    assert getattr(answer, "reason", None) is reason
    assert bench.person.steps[-1] == ("ask", 30 * SECOND)


@promise("C19")
def test_a_prompt_of_a_call_has_no_more_time_than_the_call():
    bench = asking()
    bench.ask(STATE_READ, timeout_ms=250)
    assert bench.person.steps[-1] == ("ask", 250 * MS)


@promise("C19")
@pytest.mark.parametrize(
    "live",
    [(), (an_instance(publication="publication-2"),)],
    ids=["left", "published anew"],
)
def test_a_decision_on_an_instance_that_has_changed_meanwhile_is_void(live):
    bench = asking()

    def decide(prompt):
        bench.world.live = live
        return Answer(prompt.id, Verdict.APPROVED)

    bench.person.decide = decide
    assert request(bench).reason is Reason.CONSENT_REQUIRED


@promise("C19")
def test_there_is_one_prompt_at_a_time():
    bench = asking()
    inner = []

    def decide(prompt):
        inner.append(request(bench, session=OTHER))
        return Answer(prompt.id, Verdict.APPROVED)

    bench.person.decide = decide
    assert request(bench).status == "granted"
    assert ([refused.reason for refused in inner], len(bench.person.prompts)) == ([Reason.CONSENT_REQUIRED], 1)


@promise("C19")
def test_of_requests_at_once_one_is_put_to_the_person():
    bench = asking()
    answers = at_once(*(lambda session=session: request(bench, session=session) for session in (SESSION, OTHER)))
    assert sorted(type(answer).__name__ for answer in answers) == ["Managed", "Refused"]
    assert len(bench.person.prompts) == 1


@promise("C19")
@pytest.mark.parametrize(
    ("session", "cooldown"), [(OTHER, 5 * SECOND), (SESSION, 30 * SECOND)], ids=["anybody", "same client"]
)
def test_after_a_prompt_there_is_a_cooldown(session, cooldown):
    bench = asking()
    request(bench)
    bench.clock.advance(cooldown - 1)
    assert request(bench, session=session).reason is Reason.CONSENT_REQUIRED
    assert len(bench.person.prompts) == 1
    bench.clock.advance(1)
    assert request(bench, session=session).status == "granted"


@promise("C19")
def test_a_person_who_fails_leaves_no_prompt_open_and_grants_nothing():
    bench = asking()

    def fail(prompt):
        raise RuntimeError("the terminal is gone")

    bench.person.decide = fail
    with pytest.raises(RuntimeError):
        request(bench)
    bench.person.decide = lambda prompt: Answer(prompt.id, Verdict.APPROVED)
    bench.clock.advance(5 * SECOND)
    assert request(bench, session=OTHER).status == "granted"


@promise("C19")
def test_a_decision_id_covers_the_whole_lineage_the_epoch_and_a_nonce():
    bench = asking(instances=(an_instance(), an_instance("instance-2")))
    for session, instance_id in ((SESSION, "instance-1"), (SESSION, "instance-1"), (OTHER, "instance-2")):
        request(bench, session=session, instance_id=instance_id)
        bench.clock.advance(30 * SECOND)
    bench.restart()
    request(bench)
    prompts = bench.person.prompts
    assert len({prompt.id for prompt in prompts}) == 4
    assert prompts[0].wanted == Wanted(
        "client-1", "registration-of-instance-1", "instance-1", "publication-1", STATE_READ, (STATE_READ,)
    )


@promise("C18", "C20")
@pytest.mark.parametrize("policies", [(), (EVALUATE,), (*EVERYTHING, *PULP.profiles)], ids=["none", "it", "all"])
def test_a_critical_operation_is_never_granted_automatically(policies):
    bench = CapabilityBench(policies=policies)
    refused = bench.ask(EVALUATE)
    assert (refused.reason, bench.executed, bench.person.steps) == (Reason.CONSENT_REQUIRED, {}, [])
    assert "no request was sent" in refused.detail
    message = bench.told("pulp_control_runtime_evaluate", refused)["error"]["message"]
    assert [word in message for word in ("broker-owned", "single-use", "no request was sent")] == [True] * 3


@promise("C20")
def test_a_standing_policy_is_not_even_asked_for_a_critical_operation():
    bench = CapabilityBench(policies=(EVALUATE,))
    assert request(bench, EVALUATE).status == "granted"
    assert [step for step, _ in bench.person.steps] == ["ask"]
    bench.person.decide = lambda prompt: Answer(prompt.id, Verdict.UNAVAILABLE)
    bench.clock.advance(MINUTE)
    assert request(bench, EVALUATE).reason is Reason.CONSENT_REQUIRED


@promise("C20", "C21")
def test_a_grant_of_a_critical_operation_is_used_again_like_any_other():
    bench = asking()
    grant = bench.granted(EVALUATE)
    first = bench.ask(EVALUATE, grant_id=grant)
    second = bench.ask(EVALUATE, grant_id=grant, also={"idempotency_key": "key-2"})
    assert (first.state, second.state, bench.executed) == (State.COMPLETED, State.COMPLETED, {EVALUATE: 2})
    assert len(bench.person.prompts) == 1


@promise("C21")
def test_an_interactive_approval_of_gpu_health_admits_one_identity_and_then_its_replay():
    bench = asking()
    grant = bench.granted(GPU)
    first = bench.ask(GPU, grant_id=grant, request_id="r-1")
    assert first.state is State.COMPLETED
    again = bench.ask(GPU, grant_id=grant, request_id="r-1")
    assert (again.receipt_id, again.content, again.replayed) == (first.receipt_id, first.content, True)
    other = bench.ask(GPU, grant_id=grant, request_id="r-2")
    assert other.reason is Reason.CONSENT_REQUIRED
    assert (bench.executed, bench.groups()) == ({GPU: 1}, ["completed"])


@promise("C21")
def test_the_replay_of_gpu_health_lasts_through_a_reconnect():
    bench = asking()
    grant = bench.granted(GPU)
    first = bench.ask(GPU, grant_id=grant, request_id="r-1")
    bench.clock.advance(5 * MINUTE)
    again = bench.ask(GPU, grant_id=grant, request_id="r-1")
    assert {*bench.world.sessions} == {"session-1", "session-2"}
    assert (again.receipt_id, again.content) == (first.receipt_id, first.content)
    assert (bench.executed, bench.groups()) == ({GPU: 1}, ["completed"])


@promise("C21", "C23")
def test_after_a_restart_the_receipt_of_gpu_health_is_there_and_nothing_is_executed():
    bench = asking()
    grant = bench.granted(GPU)
    first = bench.ask(GPU, grant_id=grant, request_id="r-1")
    bench.restart()
    again = bench.ask(GPU, grant_id=grant, request_id="r-1")
    assert (again.receipt_id, again.state, again.reason) == (
        first.receipt_id,
        State.COMPLETED,
        Reason.RESULT_NOT_KEPT,
    )
    assert (bench.executed, bench.groups()) == ({GPU: 1}, ["completed"])


@promise("C21")
def test_another_gpu_health_read_of_a_profile_asks_anew():
    bench = asking()
    assert bench.ask(GPU, profile="observe").state is State.COMPLETED
    bench.clock.advance(30 * SECOND)
    assert bench.ask(GPU, profile="observe").state is State.COMPLETED
    assert len(bench.person.prompts) == 2
    # What else the first grant covers is not used up by it.
    assert bench.ask(STATE_READ, profile="observe").state is State.COMPLETED
    assert len(bench.person.prompts) == 2


@promise("C21")
def test_a_standing_policy_allows_gpu_health_to_be_read_again():
    bench = CapabilityBench(policies=(GPU,))
    grant = bench.granted(GPU)
    for number in range(3):
        assert bench.ask(GPU, grant_id=grant, request_id=f"r-{number}").state is State.COMPLETED
    assert (bench.executed, bench.person.prompts) == ({GPU: 3}, [])


@promise("C21")
def test_of_gpu_health_reads_at_once_under_one_approval_one_is_executed():
    bench = asking()
    grant = bench.granted(GPU)
    asks = [lambda number=number: bench.ask(GPU, grant_id=grant, request_id=f"r-{number}") for number in range(4)]
    reasons = sorted(str(answer.reason) for answer in at_once(*asks))
    assert reasons == ["None", *["consent_required"] * 3]
    assert bench.executed == {GPU: 1}


@promise("C21", "C24")
def test_a_one_shot_that_is_spent_between_the_checks_and_the_admission_admits_nothing():
    bench = asking()
    grant = bench.granted(GPU)
    grants = bench.broker._parts.grants
    bench.at("admit", lambda: grants.spend(grants.find(grant, "client-1"), GPU, b"another"))
    refused = bench.ask(GPU, grant_id=grant)
    assert (refused.reason, bench.executed, bench.groups()) == (Reason.CONSENT_REQUIRED, {}, [])


@promise("C32")
def test_gpu_health_keeps_its_nulls_and_its_event_loss():
    bench = CapabilityBench()
    startup = bench.ask(GPU).content.result["startup"]
    assert startup["correlation"] == {"gpu_evidence_id": None, "trace_evidence_id": None}
    assert (startup["status"], startup["capture"]["dropped_event_count"]) == ("incomplete", 3)


@promise("C32")
def test_gpu_health_of_an_instance_without_a_provider_is_not_read_from_another():
    bench = CapabilityBench(instances=(without(an_instance(), GPU, available=False), an_instance("instance-2")))
    assert (bench.ask(GPU).reason, bench.executed) == (Reason.HOST_UNAVAILABLE, {})


def issue(bench, authority, *, ttl_ns=MINUTE, instance=None):
    granting = bench.broker._parts.granting
    return granting.request(
        SESSION, instance or an_instance(), authority, ttl_ns=ttl_ns, deadline=Deadline.after(bench.clock, SECOND)
    )


@promise("C22")
@pytest.mark.parametrize(
    ("authority", "ttl_ns", "reason"),
    [
        (Authority("nobody", True), MINUTE, Reason.INVALID_REQUEST),
        (Authority("dev.pulp.no/such@1", False), MINUTE, Reason.INVALID_REQUEST),
        (Authority("observe", False), MINUTE, Reason.INVALID_REQUEST),
        (Authority(STATE_READ, False), 0, Reason.INVALID_REQUEST),
        (Authority(STATE_READ, False), MAX_TTL_NS + 1, Reason.INVALID_REQUEST),
        (Authority(RELOAD, False), MINUTE, Reason.CAPABILITY_UNAVAILABLE),
        (Authority("dev.pulp.artifact/read@1", False), MINUTE, Reason.CAPABILITY_UNAVAILABLE),
    ],
    ids=["profile", "operation", "kind", "no time", "too long", "no authority", "artifacts"],
)
def test_a_request_that_nothing_could_answer_asks_nobody(authority, ttl_ns, reason):
    bench = CapabilityBench()
    refused = issue(bench, authority, ttl_ns=ttl_ns)
    assert (type(refused), refused.reason, bench.person.steps) == (NotIssued, reason, [])


@promise("C22")
@pytest.mark.parametrize("ttl_ns", [1, MAX_TTL_NS])
def test_a_grant_lasts_until_its_instant_on_both_clocks(ttl_ns):
    bench = CapabilityBench()
    grants = bench.broker._parts.grants
    by_wall, by_mono = (issue(bench, Authority(STATE_READ, False), ttl_ns=ttl_ns) for _ in range(2))
    now = bench.clock.now()
    assert grants.ended(by_wall) is None
    bench.clock.set_wall(now.wall_ns + ttl_ns)
    assert grants.ended(by_wall) is Reason.EXPIRED
    bench.clock.advance(ttl_ns)
    bench.clock.set_wall(now.wall_ns)
    assert grants.ended(by_mono) is Reason.EXPIRED


@promise("C22")
def test_a_grant_lasts_fifteen_minutes_unless_something_else_is_said():
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)
    bench.clock.advance(15 * MINUTE - 1)
    assert bench.ask(STATE_READ, grant_id=grant).state is State.COMPLETED
    bench.clock.advance(1)
    assert bench.ask(STATE_READ, grant_id=grant).reason is Reason.EXPIRED


@promise("C22")
@pytest.mark.parametrize("profile", PULP.profiles)
def test_a_profile_grant_is_what_the_profile_has_and_the_instance_can(profile):
    bench = CapabilityBench(instances=(without(an_instance(), STATE_READ),))
    granted = bench.manage("grant_request", instance_id="instance-1", profile=profile)
    assert granted.data["operations"] == sorted((PULP.of_profile(profile) & {*GRANTABLE}) - {STATE_READ})


@promise("C22")
def test_a_profile_of_which_the_instance_has_nothing_is_not_granted():
    bench = CapabilityBench(instances=(without(an_instance(), GPU),))
    refused = bench.manage("grant_request", instance_id="instance-1", profile="inspect-readonly")
    assert (refused.reason, bench.person.steps) == (Reason.CAPABILITY_UNAVAILABLE, [])


@promise("C22")
@pytest.mark.parametrize("asked", [{}, {"profile": "observe", "operation_id": STATE_READ}], ids=["neither", "both"])
def test_a_request_names_exactly_one_of_profile_and_operation(asked):
    bench = CapabilityBench()
    refused = bench.manage("grant_request", instance_id="instance-1", **asked)
    assert (refused.reason, bench.person.steps) == (Reason.ARGUMENTS_INVALID, [])


@promise("C22")
@pytest.mark.parametrize(
    "live", [(), (an_instance(registration="registration-2"),)], ids=["left", "registered elsewhere"]
)
def test_an_instance_that_has_left_when_the_grant_is_to_be_issued_is_unavailable(live):
    bench = CapabilityBench()

    def leave(step):
        bench.world.live = live

    bench.person.on_step = leave
    assert request(bench).reason is Reason.REGISTRATION_UNAVAILABLE


@promise("C22")
def test_a_client_that_cannot_be_enrolled_is_unavailable():
    bench = CapabilityBench()
    bench.world.fails["connect"] = Unavailable(Reason.SERVER_UNAVAILABLE, "no answer")
    assert request(bench).reason is Reason.CLIENT_UNAVAILABLE


@promise("C22")
def test_there_are_256_grants_at_most_and_those_that_ended_make_room():
    bench = CapabilityBench()
    grants = [bench.granted(STATE_READ) for _ in range(MAX_GRANTS)]
    before = len(bench.person.steps)
    assert request(bench).reason is Reason.RESOURCE_EXHAUSTED
    assert len(bench.person.steps) == before
    bench.manage("revoke", grant_id=grants[7])
    assert request(bench).status == "granted"
    assert request(bench).reason is Reason.RESOURCE_EXHAUSTED
    bench.clock.advance(15 * MINUTE)
    assert request(bench).status == "granted"


@promise("C22")
def test_a_place_that_is_taken_while_the_person_decides_is_taken():
    bench = asking()
    grants = bench.broker._parts.grants
    wanted = Wanted("client-3", "r", "i", "p", STATE_READ, (STATE_READ,))

    def decide(prompt):
        while grants.issue(wanted, interactive=False, ttl_ns=MINUTE):
            pass
        return Answer(prompt.id, Verdict.APPROVED)

    bench.person.decide = decide
    assert request(bench).reason is Reason.RESOURCE_EXHAUSTED


@promise("C22")
def test_only_the_owner_revokes_and_others_hear_of_no_grant():
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)
    assert bench.manage("revoke", OTHER, grant_id=grant).reason is Reason.NOT_FOUND
    assert bench.manage("revoke", grant_id="no-such-grant").reason is Reason.NOT_FOUND
    assert bench.ask(STATE_READ, grant_id=grant).state is State.COMPLETED
    assert bench.manage("revoke", grant_id=grant).status == "revoked"
    assert bench.manage("revoke", grant_id=grant).reason is Reason.REVOKED
    assert bench.ask(STATE_READ, grant_id=grant).reason is Reason.REVOKED


@promise("C22")
def test_a_grant_that_has_expired_is_not_revoked():
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)
    bench.clock.advance(15 * MINUTE)
    assert bench.manage("revoke", grant_id=grant).reason is Reason.EXPIRED


@promise("C22")
def test_a_grant_that_cannot_be_written_down_is_none():
    bench = CapabilityBench()
    bench.ledger.broken.add("record")
    refused = request(bench)
    assert (refused.reason, refused.receipt_id) == (Reason.STORE_UNAVAILABLE, None)
    held = bench.broker._parts.grants._held.values()
    assert [each.revoked for each in held] == [True]


def test_a_revocation_that_cannot_be_written_down_holds_all_the_same():
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)
    bench.ledger.broken.add("record")
    assert bench.manage("revoke", grant_id=grant).reason is Reason.STORE_UNAVAILABLE
    bench.ledger.broken.clear()
    assert bench.ask(STATE_READ, grant_id=grant).reason is Reason.REVOKED


@promise("C22")
def test_a_grant_that_was_forgotten_is_no_more():
    bench = CapabilityBench()
    grants = bench.broker._parts.grants
    grant = issue(bench, Authority(STATE_READ, False))
    assert grants.find(grant.id, "client-1") == grant
    forgotten = evolve(grant, id="forgotten")
    assert (grants.ended(forgotten), grants.spend(forgotten, GPU, b""), grants.spent(forgotten, GPU)) == (
        Reason.REVOKED,
        False,
        False,
    )
    assert isinstance(grant, Grant)


@promise("C18", "C23")
def test_no_grant_outlives_its_broker():
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)
    bench.restart()
    assert (bench.ask(STATE_READ, grant_id=grant).reason, bench.executed) == (Reason.UNKNOWN_GRANT, {})


@promise("C18")
def test_an_operation_that_changes_is_under_a_grant_like_any_other():
    bench = asking()
    bench.person.decide = lambda prompt: Answer(prompt.id, Verdict.DENIED)
    assert (bench.ask(GESTURE).reason, bench.executed) == (Reason.CONSENT_REQUIRED, {})
