"""Operation receipts: durable before anything is sent, one an identity, whatever crashes, is replayed or gets lost."""

import json

import pytest
from attrs import evolve
from capability_bench import (
    GESTURE,
    GPU,
    KEYS,
    MAKERS,
    OTHER,
    SESSION,
    STATE_READ,
    CapabilityBench,
    Crash,
    an_instance,
    at_once,
)
from marks import promise

from assisted_benchmark.capability import operations
from assisted_benchmark.capability.carrying import Moment
from assisted_benchmark.capability.lineage import Asked, Lineage
from assisted_benchmark.capability.operations import REPLAY_WINDOW_NS, RETENTION_NS
from assisted_benchmark.capability.ports import Word
from assisted_benchmark.capability.states import CAPABILITY_TABLE, State
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.clock import SECOND, Instant
from assisted_benchmark.kernel.errors import HarnessError, IntegrityError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Draft
from assisted_benchmark.ledger.sqlite import SqliteLedger

NOW = Instant(1, 1)


@pytest.fixture(params=sorted(MAKERS))
def ledger(request, tmp_path):
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


@promise("C23")
def test_the_states_are_the_written_ones():
    assert set(CAPABILITY_TABLE.states) == {
        "admitted",
        "running",
        "completed",
        "failed",
        "cancelled",
        "completed_after_revocation",
        "unknown_needs_refresh",
    }
    assert set(CAPABILITY_TABLE.states) - CAPABILITY_TABLE.terminal == {"admitted", "running"}
    assert dict(CAPABILITY_TABLE.after_crash) == {"admitted": "cancelled", "running": "unknown_needs_refresh"}


@promise("C23")
@pytest.mark.parametrize(
    ("moment", "states", "executed"),
    [
        (Moment.ADMIT, [], 0),
        (Moment.ADMITTED, ["admitted"], 0),
        (Moment.CLAIMED, ["running"], 0),
        (Moment.WRITE, ["running"], 0),
        (Moment.ANSWER, ["running"], 1),
        (Moment.SETTLE, ["running"], 1),
    ],
    ids=lambda each: each.value if isinstance(each, Moment) else None,
)
def test_a_crash_at_every_durable_step_leaves_what_a_restart_ends_and_nothing_executes_twice(
    ledger, moment, states, executed
):
    bench = CapabilityBench(ledger=ledger)

    def crash():
        raise Crash

    bench.at(moment, crash)
    grant = bench.granted(GESTURE)
    with pytest.raises(Crash):
        bench.ask(GESTURE, grant_id=grant, request_id="r-1")
    assert (bench.groups(), sum(bench.executed.values())) == (states, executed)
    bench.restart()
    ends = {"admitted": "cancelled", "running": "unknown_needs_refresh"}
    assert bench.groups() == [ends[state] for state in states]
    again = bench.ask(GESTURE, grant_id=grant, request_id="r-1")
    assert sum(bench.executed.values()) == executed
    if not states:
        assert again.reason is Reason.UNKNOWN_GRANT
    else:
        reason = Reason.CANCELLED if states == ["admitted"] else Reason.OUTCOME_UNKNOWN
        assert (again.state.value, again.reason, again.replayed) == (ends[states[0]], reason, True)
        assert again.explanation.startswith("the process ended")
        assert again.may_have_applied is (states == ["running"])
    assert bench.sound()


@promise("C23", "C24")
def test_a_caller_that_leaves_the_grant_to_the_broker_is_not_executed_twice_through_a_restart(ledger):
    bench = CapabilityBench(ledger=ledger)
    first = bench.ask(GESTURE, request_id="r-1")
    again = bench.ask(GESTURE, request_id="r-1")
    bench.restart()
    later = bench.ask(GESTURE, request_id="r-1")
    assert [again.receipt_id, later.receipt_id] == [first.receipt_id] * 2
    assert (again.content, later.content, later.reason) == (first.content, None, Reason.RESULT_NOT_KEPT)
    assert (bench.executed, bench.groups()) == ({GESTURE: 1}, ["completed"])


@promise("C24")
def test_a_retry_after_an_unknown_end_is_answered_and_not_executed_under_the_next_grant(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.world.execute = lambda claimed, envelope: Uncertain(Reason.OUTCOME_UNKNOWN, "the connection is gone", NOW)
    first = bench.ask(GESTURE)
    again = bench.ask(GESTURE)
    assert (again.receipt_id, again.state, again.replayed) == (first.receipt_id, State.UNKNOWN_NEEDS_REFRESH, True)
    assert bench.executed == {GESTURE: 1}


@promise("C25")
def test_a_lost_transport_may_have_applied_and_nothing_retries(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.world.execute = lambda claimed, envelope: Uncertain(Reason.OUTCOME_UNKNOWN, "the connection is gone", NOW)
    answer = bench.ask(GESTURE)
    data = bench.told("pulp_control_state_parameter_gesture", answer)["error"]["data"]
    assert (data["state"], data["may_have_applied"]) == ("unknown_needs_refresh", True)
    assert (bench.executed, bench.groups()) == ({GESTURE: 1}, ["unknown_needs_refresh"])


@promise("C24")
@pytest.mark.parametrize(
    "changed",
    [
        {"also": {"normalized_value": 0.25}},
        {"expected_state_generation": 1},
    ],
    ids=["parameters", "expected generation"],
)
def test_the_same_key_with_other_content_is_a_conflict(ledger, changed):
    bench = CapabilityBench(ledger=ledger)
    bench.ask(GESTURE, request_id="r-1")
    refused = bench.ask(GESTURE, request_id="r-1", **changed)
    assert (refused.reason, bench.executed) == (Reason.IDEMPOTENCY_CONFLICT, {GESTURE: 1})
    assert bench.ask(GESTURE, request_id="r-2", **changed).reason is Reason.IDEMPOTENCY_CONFLICT


@promise("C24")
def test_another_spelling_of_the_same_content_is_the_same(ledger):
    bench = CapabilityBench(ledger=ledger)
    first = bench.ask(GESTURE, also={"normalized_value": 1})
    again = bench.ask(GESTURE, also={"normalized_value": 1.0})
    assert (again.receipt_id, bench.executed) == (first.receipt_id, {GESTURE: 1})


@promise("C24")
def test_a_request_id_with_another_key_is_a_conflict(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.ask(GESTURE, request_id="r-1")
    refused = bench.ask(GESTURE, request_id="r-1", also={"idempotency_key": "key-2"})
    assert (refused.reason, bench.executed) == (Reason.REQUEST_ID_CONFLICT, {GESTURE: 1})
    assert bench.ask(STATE_READ, request_id="r-1").reason is Reason.REQUEST_ID_CONFLICT
    assert bench.ask(STATE_READ, OTHER, request_id="r-1").state is State.COMPLETED


@promise("C24")
@pytest.mark.parametrize("what", ["client", "grant", "publication", "registration", "operation", "instance"])
def test_a_key_means_nothing_outside_of_its_lineage(ledger, what):
    bench = CapabilityBench(ledger=ledger, instances=(an_instance(), an_instance("instance-2")))
    grants = [bench.granted("develop") for _ in range(2)]
    first = bench.ask(GESTURE, grant_id=grants[0], request_id="r-1")
    more = {"grant_id": grants[0], "request_id": "r-2"}
    if what == "client":
        second = bench.ask(GESTURE, OTHER, **{**more, "grant_id": bench.granted("develop", OTHER)})
    elif what == "grant":
        second = bench.ask(GESTURE, **{**more, "grant_id": grants[1]})
    elif what == "operation":
        second = bench.ask(STATE_READ, **{**more, "request_id": "key-1"})
    elif what == "instance":
        second = bench.ask(GESTURE, request_id="r-2", instance_id="instance-2")
    else:
        bench.world.live = (an_instance(**{what: "another"}),)
        second = bench.ask(GESTURE, request_id="r-2")
    assert (second.state, second.replayed, sum(bench.executed.values())) == (State.COMPLETED, False, 2)
    assert first.receipt_id != second.receipt_id


@promise("C24")
def test_a_key_is_answered_for_a_day_and_then_refused_for_good(ledger):
    bench = CapabilityBench(ledger=ledger)
    first = bench.ask(GESTURE)
    bench.clock.advance(REPLAY_WINDOW_NS - 1)
    assert bench.ask(GESTURE).receipt_id == first.receipt_id
    bench.clock.advance(1)
    assert bench.ask(GESTURE).reason is Reason.REPLAY_WINDOW_EXPIRED
    bench.restart()
    assert bench.ask(GESTURE).reason is Reason.REPLAY_WINDOW_EXPIRED
    assert bench.executed == {GESTURE: 1}


@promise("C24")
def test_a_key_that_is_no_more_at_hand_is_still_known_to_the_ledger(ledger):
    bench = CapabilityBench(ledger=ledger)
    kept = bench.broker._parts.operations
    grant = bench.granted(GESTURE)
    first = bench.ask(GESTURE, grant_id=grant)
    kept._let_go(kept._held[next(iter(kept._held))])
    again = bench.ask(GESTURE, grant_id=grant)
    assert (again.receipt_id, again.state, bench.executed) == (first.receipt_id, State.COMPLETED, {GESTURE: 1})
    other = bench.ask(GESTURE, grant_id=grant, also={"normalized_value": 0.25})
    assert other.reason is Reason.IDEMPOTENCY_CONFLICT
    bench.clock.advance(REPLAY_WINDOW_NS)
    grants = bench.broker._parts.grants
    grants._held[grant].grant = type(grants._held[grant].grant)(
        grant, grants._held[grant].grant.wanted, True, Instant(2**62, 2**62)
    )
    assert bench.ask(GESTURE, grant_id=grant).reason is Reason.REPLAY_WINDOW_EXPIRED
    assert bench.executed == {GESTURE: 1}


@promise("C24")
def test_a_receipt_is_at_hand_for_a_week(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.ask(STATE_READ, request_id="r-1")
    kept = bench.broker._parts.operations
    bench.clock.advance(RETENTION_NS - 1)
    bench.ask(STATE_READ, request_id="r-2")
    assert kept.of_request("client-1", "r-1") is not None
    bench.clock.advance(1)
    bench.ask(STATE_READ, request_id="r-3")
    assert kept.of_request("client-1", "r-1") is None
    bench.restart()
    kept = bench.broker._parts.operations
    assert [kept.of_request("client-1", f"r-{number}") is not None for number in (1, 2, 3)] == [False, True, True]


@promise("C24")
def test_a_request_id_that_is_used_anew_stays_when_the_old_receipt_goes(ledger):
    bench = CapabilityBench(ledger=ledger)
    kept = bench.broker._parts.operations
    first = bench.ask(STATE_READ, request_id="r-1")
    bench.clock.advance(REPLAY_WINDOW_NS + 1)
    old = kept.of_request("client-1", "r-1")
    kept._by_request.clear()
    kept._again.clear()
    bench.ask(GESTURE, request_id="r-1")
    kept._again[old.record.again] = kept.of_request("client-1", "r-1").identity
    kept._let_go(old)
    assert kept.of_request("client-1", "r-1").record.receipt_id != first.receipt_id
    assert old.record.again in kept._again


@promise("C24")
def test_the_results_that_are_kept_are_bounded_and_the_receipt_says_so(monkeypatch):
    bench = CapabilityBench()
    first = bench.ask(STATE_READ, request_id="r-1")
    monkeypatch.setattr(operations, "MAX_CONTENT_BYTES", len(first.content.written) + 1)
    second = bench.ask(STATE_READ, request_id="r-2")
    again = [bench.ask(STATE_READ, request_id=f"r-{number}") for number in (1, 2)]
    assert [answer.reason for answer in again] == [Reason.RESULT_NOT_KEPT, None]
    assert (again[1].content, again[0].content) == (second.content, None)
    assert bench.executed == {STATE_READ: 2}


@promise("C24", "C25")
def test_a_replay_gives_no_result_once_its_authority_has_ended():
    bench = CapabilityBench()
    grant = bench.granted(STATE_READ)
    bench.ask(STATE_READ, grant_id=grant, request_id="r-1")
    bench.manage("revoke", grant_id=grant)
    again = bench.ask(STATE_READ, grant_id=grant, request_id="r-1")
    assert (again.state, again.reason, again.content) == (State.COMPLETED, Reason.RESULT_NOT_KEPT, None)


@promise("C24")
@pytest.mark.parametrize(
    ("bound", "deep"),
    [
        (16, lambda depth: {}),
        (64, lambda depth: {"instance_id": f"instance-{depth % 8 + 1}"}),
    ],
    ids=["an instance", "a client"],
)
def test_no_more_operations_are_under_way_than_their_quota(bound, deep):
    bench = CapabilityBench(instances=tuple(an_instance(f"instance-{number}") for number in range(1, 9)))
    answers = []

    def execute(claimed, envelope):
        answers.append(bench.ask(STATE_READ, **deep(len(bench.world.requests))))
        return bench.execute(claimed, envelope)

    bench.world.execute = execute
    bench.ask(STATE_READ, **deep(0))
    assert sum(bench.executed.values()) == bound
    assert (answers[0].reason, len(answers)) == (Reason.RESOURCE_EXHAUSTED, bound)
    bench.world.execute = bench.execute
    assert bench.ask(STATE_READ).state is State.COMPLETED


@promise("C24")
def test_there_are_so_many_receipts_and_those_past_their_window_make_room(monkeypatch):
    monkeypatch.setattr(operations, "MAX_RECEIPTS", 3)
    bench = CapabilityBench()
    for number in range(3):
        bench.ask(STATE_READ, request_id=f"r-{number}")
        bench.clock.advance(SECOND)
    assert bench.ask(STATE_READ, request_id="r-3").reason is Reason.RESOURCE_EXHAUSTED
    bench.clock.advance(REPLAY_WINDOW_NS - 3 * SECOND)
    assert bench.ask(STATE_READ, request_id="r-3").state is State.COMPLETED
    assert bench.ask(STATE_READ, request_id="r-4").reason is Reason.RESOURCE_EXHAUSTED
    assert operations.ACTIVE_PER_CLIENT == 64


def test_there_may_be_4096_receipts():
    assert (operations.MAX_RECEIPTS, operations.ACTIVE_PER_CLIENT, operations.ACTIVE_PER_INSTANCE) == (4096, 64, 16)


@promise("C23")
def test_a_store_that_cannot_be_written_admits_nothing(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.ledger.broken.add("open_group")
    refused = bench.ask(GESTURE, expected_state_generation=1)
    assert (refused.reason, bench.executed, bench.groups()) == (Reason.STORE_UNAVAILABLE, {}, [])
    bench.ledger.broken.clear()
    assert bench.ask(GESTURE, expected_state_generation=1).state is State.COMPLETED


@promise("C23")
def test_an_admission_whose_writing_was_not_heard_of_is_not_executed_later(ledger):
    bench = CapabilityBench(ledger=ledger)
    grant = bench.granted(GESTURE)
    bench.ledger.unheard.add("open_group")
    assert bench.ask(GESTURE, grant_id=grant).reason is Reason.STORE_UNAVAILABLE
    bench.ledger.unheard.clear()
    again = bench.ask(GESTURE, grant_id=grant)
    assert (again.state, again.reason, bench.executed) == (State.ADMITTED, Reason.DUPLICATE_REQUEST_ID, {})
    bench.restart()
    assert (bench.groups(), bench.executed) == (["cancelled"], {})


@promise("C23")
@pytest.mark.parametrize("how", ["broken", "unheard"])
def test_a_marker_that_could_not_be_written_sends_nothing(ledger, how):
    bench = CapabilityBench(ledger=ledger)
    getattr(bench.ledger, how).add("claim")
    answer = bench.ask(GESTURE, request_id="r-1")
    assert (answer.state, answer.reason, bench.executed) == (State.CANCELLED, Reason.STORE_UNAVAILABLE, {})
    getattr(bench.ledger, how).clear()
    assert bench.ask(GESTURE, request_id="r-1").state is State.CANCELLED
    bench.restart()
    ended = "cancelled" if how == "broken" else "unknown_needs_refresh"
    assert (bench.groups(), bench.executed) == ([ended], {})


@promise("C23")
def test_an_end_that_could_not_be_written_is_unknown(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.ledger.broken.add("settle")
    answer = bench.ask(GESTURE)
    assert (answer.state, answer.reason) == (State.UNKNOWN_NEEDS_REFRESH, Reason.STORE_UNAVAILABLE)
    assert (answer.content, bench.executed, bench.groups()) == (None, {GESTURE: 1}, ["running"])
    bench.restart()
    assert bench.groups() == ["unknown_needs_refresh"]


@promise("C23")
def test_an_end_over_a_ledger_that_was_tampered_with_goes_on_to_the_caller():
    bench = CapabilityBench()

    def tampered(*_):
        raise IntegrityError(Reason.LEDGER_TAMPERED, "a row was edited")

    bench.at(Moment.SETTLE, lambda: setattr(bench.ledger, "settle", tampered))
    with pytest.raises(IntegrityError):
        bench.ask(GESTURE, request_id="r-1")
    assert bench.ask(GESTURE, request_id="r-1").reason is Reason.LEDGER_TAMPERED


@promise("C23")
def test_an_operation_that_another_broker_has_ended_is_not_sent(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.at(Moment.ADMITTED, bench.a_broker)
    answer = bench.ask(GESTURE)
    assert (answer.state, answer.reason, bench.executed) == (State.CANCELLED, Reason.CANCELLED, {})
    assert bench.groups() == ["cancelled"]


@promise("C23")
def test_a_store_that_cannot_be_read_at_the_last_look_sends_nothing(ledger):
    bench = CapabilityBench(ledger=ledger)
    bench.at(Moment.CLAIMED, lambda: bench.ledger.broken.add("row"))
    answer = bench.ask(GESTURE)
    assert (answer.state, answer.reason, bench.executed) == (State.CANCELLED, Reason.CANCELLED, {})


@promise("C23")
@pytest.mark.parametrize(
    "record",
    [
        b"{}",
        b"[]",
        b"nothing",
        canonical_bytes({"schema": "assisted-benchmark/operation@2"}),
        canonical_bytes({"schema": "assisted-benchmark/operation@1"}),
        canonical_bytes({"schema": "assisted-benchmark/operation@1", "lineage": ["a"]}),
    ],
    ids=["empty", "list", "text", "schema", "keys", "lineage"],
)
def test_a_malformed_store_refuses_to_open(ledger, record):
    bench = CapabilityBench(ledger=ledger)
    bench.ledger.open_group("run-1", b"g" * 32, record, Draft("decision", "id", NOW, "admitted"))
    with pytest.raises(IntegrityError) as raised:
        bench.restart()
    assert raised.value.reason is Reason.LEDGER_MALFORMED


@promise("C23")
def test_a_group_without_a_record_refuses_to_open(ledger):
    record = canonical_bytes({"schema": "assisted-benchmark/capability-run@1"})
    ledger.open_run("run-1", record, [b"g" * 32])
    with pytest.raises(IntegrityError) as raised:
        CapabilityBench(ledger=ledger)
    assert raised.value.reason is Reason.CONTRACT_DRIFT


@promise("C23")
def test_a_group_that_is_no_operation_refuses_to_open(ledger):
    other = CapabilityBench()
    ledger.open_run("run-1", other.ledger.run_record("run-1"), [b"g" * 32])
    with pytest.raises(IntegrityError) as raised:
        CapabilityBench(ledger=ledger)
    assert raised.value.reason is Reason.LEDGER_MALFORMED


@promise("C23")
def test_receipts_that_do_not_verify_refuse_to_open():
    ledger = MemoryLedger("ledger-1", CAPABILITY_TABLE)
    bench = CapabilityBench(ledger=ledger)
    bench.ask(STATE_READ)
    lines = ledger._chains["run-1"].lines
    lines[1] = lines[1].replace(b"admitted", b"admitteD")
    with pytest.raises(IntegrityError) as raised:
        bench.restart()
    assert raised.value.reason is Reason.CHAIN_BROKEN


@promise("C1")
def test_a_run_of_another_registry_is_not_taken_over(ledger):
    ledger.open_run("run-1", b"{}", ())
    with pytest.raises(IntegrityError) as raised:
        CapabilityBench(ledger=ledger)
    assert raised.value.reason is Reason.CONTRACT_DRIFT


@promise("C23")
def test_what_is_durable_is_there_for_the_next_process(tmp_path):
    bench = CapabilityBench(ledger=MAKERS["sqlite"](tmp_path))
    first = bench.ask(GESTURE, request_id="r-1")
    bench.ledger.close()
    reopened = SqliteLedger.open(tmp_path / "ledger.db", table=CAPABILITY_TABLE, keys=KEYS, anchor=tmp_path / "anchor")
    again = CapabilityBench(ledger=reopened).ask(GESTURE, request_id="r-1")
    assert (again.receipt_id, again.state, again.replayed) == (first.receipt_id, State.COMPLETED, True)
    reopened.close()


# Races on one identity.


@promise("C24")
def test_of_the_same_operations_at_once_one_is_executed(ledger):
    bench = CapabilityBench(ledger=ledger)
    grant = bench.granted(GESTURE)
    answers = at_once(*[lambda: bench.ask(GESTURE, grant_id=grant)] * 6)
    assert (bench.executed, len({answer.receipt_id for answer in answers})) == ({GESTURE: 1}, 1)
    assert sum(not answer.replayed for answer in answers) == 1
    assert bench.groups() == ["completed"]
    assert bench.sound()


@promise("C24")
def test_of_different_contents_at_once_under_one_key_one_is_executed(ledger):
    bench = CapabilityBench(ledger=ledger)
    grant = bench.granted(GESTURE)
    asks = [
        lambda number=number: bench.ask(GESTURE, grant_id=grant, also={"normalized_value": number / 8})
        for number in range(6)
    ]
    reasons = sorted(str(answer.reason) for answer in at_once(*asks))
    assert reasons == ["None", *["idempotency_conflict"] * 5]
    assert bench.executed == {GESTURE: 1}


@promise("C24")
def test_brokers_that_share_a_ledger_execute_an_identity_once(ledger):
    bench = CapabilityBench(ledger=ledger)
    second = bench.a_broker()
    grant = bench.granted(GESTURE)
    # The same grant, as if both knew it.
    second._parts.grants._held = bench.broker._parts.grants._held
    call = (
        "pulp_control_state_parameter_gesture",
        json.dumps(
            {
                "instance_id": "instance-1",
                "grant_id": grant,
                "input": {"parameter_id": 7, "normalized_value": 0.5, "idempotency_key": "key-1"},
            }
        ).encode(),
    )
    first, other = (broker.call(SESSION, *call) for broker in (bench.broker, second))
    assert (other.receipt_id, other.state, bench.executed) == (first.receipt_id, State.COMPLETED, {GESTURE: 1})


@promise("C16")
def test_every_part_of_a_request_is_in_its_hash_and_only_lineage_and_key_in_its_identity():
    lineage = Lineage("client", "registration", "grant", "publication", "operation")
    asked = Asked(lineage, "key", 1, 3, b"{}")
    changed = {
        **{name: evolve(asked, lineage=lineage._replace(**{name: "other"})) for name in Lineage._fields},
        "key": evolve(asked, key="other"),
        "version": evolve(asked, version=2),
        "expected": evolve(asked, expected=4),
        "none expected": evolve(asked, expected=None),
        "parameters": evolve(asked, parameters=b"[]"),
    }
    hashes = {asked.request_hash, *(each.request_hash for each in changed.values())}
    assert len(hashes) == len(changed) + 1
    same = {name for name, each in changed.items() if each.identity == asked.identity}
    assert same == {"version", "expected", "none expected", "parameters"}


@promise("C23")
def test_a_receipt_that_cannot_be_taken_over_for_want_of_a_store_goes_on_to_the_caller():
    bench = CapabilityBench()
    bench.ledger.broken.add("recover")
    with pytest.raises(LedgerError) as raised:
        bench.restart()
    assert raised.value.reason is Reason.STORE_UNAVAILABLE
    assert isinstance(raised.value, HarnessError)


@promise("C15")
def test_what_goes_to_the_host_is_what_was_hashed():
    bench = CapabilityBench()
    grant = bench.granted(GPU)
    bench.ask(GPU, grant_id=grant, request_id="r-1")
    claimed, envelope = bench.world.requests[0]
    lineage = Lineage("client-1", "registration-of-instance-1", grant, "publication-1", GPU)
    asked = Asked(lineage, "r-1", 1, None, b"{}")
    assert (claimed.permit.candidate, envelope.request_hash) == (asked.request_hash, asked.request_hash)
    assert (claimed.permit.server, claimed.permit.tool, claimed.permit.arguments) == ("instance-1", GPU, b"{}")
    assert (envelope.client, envelope.registration, envelope.grant, envelope.publication) == lineage[:4]


@promise("C24")
def test_the_same_operation_that_is_admitted_meanwhile_is_met_at_the_admission(ledger):
    bench = CapabilityBench(ledger=ledger)
    grant = bench.granted(GESTURE)
    first = []
    bench.at(Moment.ADMIT, lambda: first.append(bench.ask(GESTURE, grant_id=grant)))
    second = bench.ask(GESTURE, grant_id=grant)
    assert (second.receipt_id, second.replayed, bench.executed) == (first[0].receipt_id, True, {GESTURE: 1})


@promise("C24")
def test_another_content_that_is_admitted_meanwhile_is_a_conflict_at_the_admission(ledger):
    bench = CapabilityBench(ledger=ledger)
    grant = bench.granted(GESTURE)
    bench.at(Moment.ADMIT, lambda: bench.ask(GESTURE, grant_id=grant))
    second = bench.ask(GESTURE, grant_id=grant, also={"normalized_value": 0.25})
    assert (second.reason, bench.executed) == (Reason.IDEMPOTENCY_CONFLICT, {GESTURE: 1})


@promise("C24")
def test_what_failed_is_let_go_of_after_a_week_too():
    bench = CapabilityBench()
    bench.world.execute = lambda claimed, envelope: bench.world.ended(b"", Word.FAILED)
    bench.ask(STATE_READ, request_id="r-1")
    bench.clock.advance(RETENTION_NS)
    bench.ask(STATE_READ, request_id="r-2")
    kept = bench.broker._parts.operations
    assert [kept.of_request("client-1", name) is None for name in ("r-1", "r-2")] == [True, False]


@promise("C22", "C24", "K17")
@pytest.mark.parametrize("same_request", [False, True], ids=["two requests", "one request"])
@pytest.mark.parametrize("value", [0.5, 0.75], ids=["the same", "another"])
def test_of_two_calls_with_one_key_that_both_leave_the_grant_to_the_broker_one_is_executed(value, same_request):
    bench = CapabilityBench()
    request = {"request_id": "r-1"} if same_request else {}
    inner = []

    def overtaken(step):
        bench.person.on_step = lambda _: None
        # The first call has no grant yet, and the second one is given its own.
        inner.append(bench.ask(GESTURE, also={"normalized_value": value}, **request))

    bench.person.on_step = overtaken
    outer = bench.ask(GESTURE, **request)
    assert (inner[0].state, inner[0].replayed) == (State.COMPLETED, False)
    assert bench.executed == {GESTURE: 1}
    if value == 0.5:
        assert (outer.state, outer.replayed, outer.receipt_id) == (State.COMPLETED, True, inner[0].receipt_id)
    else:
        assert outer.reason is Reason.IDEMPOTENCY_CONFLICT


class Torn:
    """A lock whose holders leave a receipt half written, and finish it before the next one may enter."""

    def __init__(self, receipt):
        self.receipt = receipt

    def __enter__(self):
        self.receipt.state, self.receipt.reason = State.UNKNOWN_NEEDS_REFRESH, "outcome_unknown"

    def __exit__(self, *_):
        self.receipt.state, self.receipt.reason = State.UNKNOWN_NEEDS_REFRESH, ""


@promise("C22", "K17")
def test_a_receipt_that_is_being_written_is_told_whole():
    bench = CapabilityBench()
    bench.ask(GESTURE, request_id="r-1")
    held = bench.broker._parts.operations
    held._lock = Torn(held.of_request(SESSION.client, "r-1"))
    again = bench.ask(GESTURE, request_id="r-1")
    assert (again.state, again.reason, again.replayed) == (
        State.UNKNOWN_NEEDS_REFRESH,
        Reason.OUTCOME_UNKNOWN,
        True,
    )
