"""Admission: the order of the checks as data, the seven terms, the last look; and what a broker without one lets by."""

import json

import pytest
from attrs import evolve
from capability_bench import (
    ARTIFACT_READ,
    EVALUATE,
    EVERYTHING,
    GESTURE,
    GPU,
    MS,
    OTHER,
    RELOAD,
    SESSION,
    STATE_READ,
    CapabilityBench,
    an_instance,
    without,
)
from marks import promise
from registry_bench import PULP

from assisted_benchmark.capability.admission import (
    EARLY,
    LATE,
    ORDER,
    Early,
    Failed,
    Finding,
    Term,
    first_failure,
    terms,
)
from assisted_benchmark.capability.carrying import LOOKS, Moment
from assisted_benchmark.capability.ports import Enrolled
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.clock import SECOND, Deadline, ManualClock
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason

TERMS = {check.reason: check.term for check in LATE}


@promise("C15")
def test_the_order_is_the_written_one():
    assert ORDER == (
        "envelope",
        "store_unavailable",
        "deadline_exceeded",
        "unknown_operation",
        "acl_only",
        "arguments_invalid",
        "non_canonical_number",
        "too_large",
        "wrong_principal",
        "wrong_registration",
        "wrong_peer",
        "wrong_publication",
        "not_implemented",
        "not_built",
        "host_unavailable",
        "not_activated",
        "not_eligible",
        "unknown_grant",
        "revoked",
        "expired",
        "not_granted",
        "consent_required",
        "session_ended",
        "admit",
        "revalidate",
    )


@promise("C14")
def test_the_terms_come_in_their_order_and_each_has_its_checks():
    assert list(dict.fromkeys(check.term for check in LATE if check.term)) == list(Term)
    assert [term.value for term in Term] == [
        "implemented",
        "built",
        "host_available",
        "activated",
        "policy_eligible",
        "client_granted",
        "session_live",
    ]


# Each late check: what makes it fail, and nothing before it. Given a bench; gives the arguments of the call.


def wrong_principal(bench):
    bench.world.enrolled = Enrolled("session-1", "client-2", "peer-1")


def wrong_peer(bench):
    bench.world.enrolled = Enrolled("session-1", "client-1", "peer-2")


def wrong_registration(bench):
    grant = bench.granted(STATE_READ)
    bench.world.live = (an_instance(registration="registration-2"),)
    return {"grant_id": grant}


def wrong_instance(bench):
    bench.world.live = (an_instance(), an_instance("instance-2"))
    return {"grant_id": bench.granted(STATE_READ, instance_id="instance-2")}


def wrong_publication(bench):
    grant = bench.granted(STATE_READ)
    bench.world.live = (an_instance(publication="publication-2"),)
    return {"grant_id": grant}


def changed(**flags):
    def change(bench):
        grant = bench.granted(STATE_READ)
        bench.world.live = (without(an_instance(), STATE_READ, **flags),)
        return {"grant_id": grant}

    return change


def unknown_grant(bench):
    return {"grant_id": "no-such-grant"}


def anothers_grant(bench):
    return {"grant_id": bench.granted(STATE_READ, OTHER)}


def revoked(bench):
    grant = bench.granted(STATE_READ)
    bench.manage("revoke", grant_id=grant)
    return {"grant_id": grant}


def expired(bench):
    grant = bench.granted(STATE_READ)
    bench.clock.advance(15 * 60 * SECOND)
    return {"grant_id": grant}


def not_granted(bench):
    return {"grant_id": bench.granted("inspect-readonly")}


def session_ended(bench):
    def end(step):
        if step == "negotiate":
            bench.broker._parts.sessions.ended(SESSION, Enrolled("session-1", "client-1", "peer-1"))

    bench.world.on_step = end


def left_meanwhile(bench):
    def leave(step):
        if step == "negotiate":
            bench.world.live = ()

    bench.world.on_step = leave
    return {"grant_id": bench.granted(STATE_READ)}


CASES = [
    pytest.param(Reason.WRONG_PRINCIPAL, wrong_principal, id="another client's session"),
    pytest.param(Reason.WRONG_PEER, wrong_peer, id="another process's session"),
    pytest.param(Reason.WRONG_REGISTRATION, wrong_registration, id="another registration"),
    pytest.param(Reason.WRONG_REGISTRATION, wrong_instance, id="another instance"),
    pytest.param(Reason.WRONG_PUBLICATION, wrong_publication, id="another publication"),
    pytest.param(Reason.NOT_IMPLEMENTED, changed(), id="not implemented"),
    pytest.param(Reason.NOT_BUILT, changed(built=False), id="not built"),
    pytest.param(Reason.HOST_UNAVAILABLE, changed(available=False), id="host not available"),
    pytest.param(Reason.HOST_UNAVAILABLE, left_meanwhile, id="instance left meanwhile"),
    pytest.param(Reason.NOT_ACTIVATED, changed(activated=False), id="not activated"),
    pytest.param(Reason.UNKNOWN_GRANT, unknown_grant, id="no grant"),
    pytest.param(Reason.UNKNOWN_GRANT, anothers_grant, id="another client's grant"),
    pytest.param(Reason.REVOKED, revoked, id="revoked"),
    pytest.param(Reason.EXPIRED, expired, id="expired"),
    pytest.param(Reason.NOT_GRANTED, not_granted, id="not covered"),
    pytest.param(Reason.SESSION_ENDED, session_ended, id="session over"),
]


@promise("C15", "K8")
@pytest.mark.parametrize(("reason", "arrange"), CASES)
def test_each_check_refuses_with_its_own_reason_and_tells_those_that_passed(reason, arrange):
    bench = CapabilityBench()
    more = arrange(bench) or {}
    answer = bench.ask(STATE_READ, **more)
    assert isinstance(answer, Refused)
    assert answer.reason is reason
    before = ORDER[1 : ORDER.index(reason.value)]
    assert answer.checked == before or answer.checked == before[len(EARLY) :]  # where consent was to be asked for
    assert bench.executed == {}
    assert bench.groups() == []
    assert [line["reason"] for line in bench.receipts() if line["id"] == answer.receipt_id] == [reason.value]


@promise("C14", "C15")
def test_what_the_operators_policy_lacks_is_not_eligible():
    bench = CapabilityBench(eligible=EVERYTHING - {STATE_READ})
    answer = bench.ask(STATE_READ)
    assert (answer.reason, bench.executed) == (Reason.NOT_ELIGIBLE, {})


@promise("C14")
def test_nothing_is_eligible_unless_the_policy_says_so():
    bench = CapabilityBench(eligible=frozenset())
    assert bench.ask(STATE_READ).reason is Reason.NOT_ELIGIBLE


@promise("C14")
@pytest.mark.parametrize(("reason", "arrange"), CASES)
def test_a_term_is_not_evaluated_unless_it_was(reason, arrange):
    bench = CapabilityBench()
    more = arrange(bench) or {}
    detail = bench.ask(STATE_READ, **more).detail
    order = list(Term)
    at = order.index(TERMS[reason]) if TERMS[reason] else -1
    words = {
        term: "not_evaluated" if at < 0 or place > at else "true" if place < at else "false"
        for place, term in enumerate(order)
    }
    assert detail.endswith(f"({', '.join(f'{term}={word}' for term, word in words.items())})")


@promise("C14")
def test_the_terms_are_explained():
    failed = Failed(Reason.NOT_ACTIVATED, "it is not activated there", (), Term.ACTIVATED)
    assert terms(failed) == (
        Finding(Term.IMPLEMENTED, True, "it holds"),
        Finding(Term.BUILT, True, "it holds"),
        Finding(Term.HOST_AVAILABLE, True, "it holds"),
        Finding(Term.ACTIVATED, False, "it is not activated there"),
        Finding(Term.POLICY_ELIGIBLE, None, "not_evaluated"),
        Finding(Term.CLIENT_GRANTED, None, "not_evaluated"),
        Finding(Term.SESSION_LIVE, None, "not_evaluated"),
    )
    assert {finding.holds for finding in terms(None)} == {True}
    assert {finding.holds for finding in terms(Failed(Reason.WRONG_PEER, "", ()))} == {None}


@promise("C15", "K8")
@pytest.mark.parametrize(("reason", "arrange"), CASES)
def test_a_broker_without_the_check_gives_another_answer(reason, arrange):
    late = tuple(check for check in LATE if check.reason is not reason)
    bench = CapabilityBench(late=late, looks=())  # the last look would find some of it too
    more = arrange(bench) or {}
    try:
        answer = bench.ask(STATE_READ, **more)
    except HarnessError as error:
        answer = error
    assert answer.reason is not reason


def a_question(**changed):
    clock = ManualClock()
    given = {
        "operation": PULP.operation(STATE_READ),
        "store_fault": "",
        "deadline": Deadline.after(clock, MS),
        **changed,
    }
    return Early(**given)


@promise("C3", "C15", "K8")
@pytest.mark.parametrize(
    ("reason", "changed"),
    [
        (Reason.STORE_UNAVAILABLE, {"store_fault": "down"}),
        (Reason.DEADLINE_EXCEEDED, {"deadline": Deadline.after(ManualClock(), 0)}),
        (Reason.UNKNOWN_OPERATION, {"operation": None}),
        (Reason.UNKNOWN_OPERATION, {"operation": PULP.operation(RELOAD)}),
        (Reason.ACL_ONLY, {"operation": PULP.operation(ARTIFACT_READ)}),
    ],
    ids=["store", "deadline", "unknown", "not advertised", "artifact"],
)
def test_each_early_check_refuses_and_a_broker_without_it_does_not(reason, changed):
    failed = first_failure(EARLY, a_question(**changed))
    assert (failed.reason, failed.checked) == (reason, ORDER[1 : ORDER.index(reason.value)])
    without_it = tuple(check for check in EARLY if check.reason is not reason)
    if changed.get("operation", PULP) is None:
        with pytest.raises(HarnessError) as raised:
            first_failure(without_it, a_question(**changed))
        assert raised.value.reason is Reason.COULD_NOT_RUN
    else:
        assert first_failure(without_it, a_question(**changed)) is None


def sent(bench, tool, raw):
    return bench.broker.call(SESSION, tool, raw)


GOOD = b'{"instance_id":"instance-1","input":{}}'
LONG = json.dumps(
    {"instance_id": "i", "input": {"source": "\u00e9" * 40_000, "timeout_ms": 1, "idempotency_key": "k"}}
).encode()


@promise("C15", "C17")
@pytest.mark.parametrize(
    ("tool", "raw", "reason", "checked"),
    [
        ("state_read", b"{", Reason.MALFORMED_CALL, 0),
        ("state_read", b'{"instance_id":"instance-1"}', Reason.ARGUMENTS_INVALID, 0),
        ("state_read", b"[]", Reason.ARGUMENTS_NOT_OBJECT, 0),
        ("state_read", b'{"instance_id":"a\\u0000b","input":{}}', Reason.MALFORMED_UNICODE, 0),
        ("no_such_tool", GOOD, Reason.UNKNOWN_OPERATION, 2),
        ("runtime_reload", GOOD, Reason.UNKNOWN_OPERATION, 2),
        ("state_read", b'{"instance_id":"instance-1","input":{"more":1}}', Reason.ARGUMENTS_INVALID, 4),
        (
            "trace_session_control",
            b'{"instance_id":"instance-1","input":{"action":"start","ring_mb":8.0}}',
            Reason.NON_CANONICAL_NUMBER,
            5,
        ),
        ("runtime_evaluate", LONG, Reason.TOO_LARGE, 6),
    ],
    ids=["bytes", "envelope", "no object", "NUL", "unknown", "not advertised", "input", "spelling", "size"],
)
def test_the_envelope_comes_before_the_store_and_the_input_after_it(tool, raw, reason, checked):
    bench = CapabilityBench()
    answer = sent(bench, f"pulp_control_{tool}", raw)
    assert (answer.reason, answer.checked) == (reason, ORDER[1 : 1 + checked])
    assert bench.world.steps == []
    bench.ledger.broken |= {"run_record", "record"}
    down = sent(bench, f"pulp_control_{tool}", raw)
    assert (down.reason, down.receipt_id) == (reason if checked == 0 else Reason.STORE_UNAVAILABLE, None)


def test_a_broker_without_the_check_of_the_input_still_makes_no_call():
    early = tuple(check for check in EARLY if check.reason is not Reason.ARGUMENTS_INVALID)
    bench = CapabilityBench(early=early)
    with pytest.raises(HarnessError) as raised:
        sent(bench, "pulp_control_state_read", b'{"instance_id":"instance-1","input":{"more":1}}')
    assert (raised.value.reason, bench.world.steps) == (Reason.COULD_NOT_RUN, [])


@promise("C15")
def test_a_broker_without_any_check_of_the_grant_still_admits_nothing():
    late = tuple(check for check in LATE if check.term is not Term.CLIENT_GRANTED)
    bench = CapabilityBench(late=late)
    with pytest.raises(HarnessError) as raised:
        bench.ask(STATE_READ, grant_id="no-such-grant")
    assert (raised.value.reason, bench.executed) == (Reason.COULD_NOT_RUN, {})


# What can change between the checks and the side effect.


def time_passes(bench, grant):
    bench.clock.advance(3 * SECOND)


def the_grant_is_revoked(bench, grant):
    assert bench.manage("revoke", grant_id=grant).status == "revoked"


def the_instance_publishes_anew(bench, grant):
    bench.world.live = (an_instance(publication="publication-2"),)


def the_instance_leaves(bench, grant):
    bench.world.live = ()


def the_session_ends(bench, grant):
    bench.broker._parts.sessions.ended(SESSION, Enrolled("session-1", "client-1", "peer-1"))


def another_broker_takes_over(bench, grant):
    bench.a_broker()


CHANGES = [
    pytest.param("deadline", time_passes, Reason.DEADLINE_EXCEEDED, id="time"),
    pytest.param("grant", the_grant_is_revoked, Reason.REVOKED, id="grant"),
    pytest.param("publication", the_instance_publishes_anew, Reason.WRONG_PUBLICATION, id="publication"),
    pytest.param("publication", the_instance_leaves, Reason.WRONG_PUBLICATION, id="teardown"),
    pytest.param("session", the_session_ends, Reason.SESSION_ENDED, id="session"),
    pytest.param("receipt", another_broker_takes_over, Reason.CANCELLED, id="another broker"),
]


@promise("C15", "C25")
@pytest.mark.parametrize(("look", "change", "reason"), CHANGES)
def test_everything_is_looked_at_once_more_right_before_the_side_effect(look, change, reason):
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)
    bench.at(Moment.CLAIMED, lambda: change(bench, grant))
    answer = bench.ask(STATE_READ, grant_id=grant)
    assert bench.executed == {}
    if look == "receipt":  # the other broker has recorded an end already, which stands
        assert (answer.state, bench.groups()) == (State.UNKNOWN_NEEDS_REFRESH, ["unknown_needs_refresh"])
    else:
        assert (answer.state, answer.reason, bench.groups()) == (State.CANCELLED, reason, ["cancelled"])
    assert answer.may_have_applied is (look == "receipt")
    assert bench.sound()


@promise("C15", "K8")
@pytest.mark.parametrize(("look", "change", "reason"), CHANGES)
def test_a_broker_without_the_look_sends(look, change, reason):
    bench = CapabilityBench(looks=tuple(each for each in LOOKS if each.name != look))
    grant = bench.granted(STATE_READ)
    if change is the_grant_is_revoked:
        # A revocation also stops what is under way, so the bare grant is ended here.
        change = lambda bench, grant: bench.broker._parts.grants.revoke(grant, "client-1")  # noqa: E731
    bench.at(Moment.CLAIMED, lambda: change(bench, grant))
    bench.ask(STATE_READ, grant_id=grant)
    assert bench.executed == {STATE_READ: 1}


@promise("C18", "C20")
@pytest.mark.parametrize("operation", [GESTURE, EVALUATE, GPU, STATE_READ])
def test_a_made_up_grant_is_no_grant(operation):
    bench = CapabilityBench()
    answer = bench.ask(operation, grant_id="0" * 32)
    assert (answer.reason, bench.person.steps, bench.executed) == (Reason.UNKNOWN_GRANT, [], {})


def test_an_instance_says_of_each_operation_what_it_can():
    instance = evolve(an_instance(), capabilities=())
    assert instance.capability(STATE_READ) is None
