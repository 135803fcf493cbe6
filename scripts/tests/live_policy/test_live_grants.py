"""Sealing and opening: what a grant binds, and that only the trusted policy's own grant is believed."""

import json

import pytest
from attrs import evolve
from live_bench import (
    APPROVE,
    HOLD,
    HOST,
    KEYS,
    LIFETIME,
    LOOK,
    LOOKING,
    OTHER_HOST,
    OTHER_VM,
    SERVERS,
    VM,
    LiveBench,
    a_bench,
    a_choice,
    a_group,
    a_policy,
    a_server,
    a_tool,
    asking,
    choosing,
)
from marks import promise

from assisted_benchmark.contract.model import Contract
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import DocumentError, HarnessError, IntegrityError, MisuseError
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.grant import SealedGrant, grant_digest
from assisted_benchmark.live_policy.opening import OPENING
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.live_policy.trust import Pins

NOTHING = {"lba": 0, "synthetic-ui": 0}
SEAL_KEY = KEYS.key(Purpose.GRANT)


def edited(bench, change):
    """The bench's grant with its content changed, and its digest and MAC computed anew with the real key."""
    content = json.loads(bench.sealed.content)
    change(content)
    return SealedGrant.seal(canonical_bytes(content), SEAL_KEY)


@promise("L7")
def test_a_grant_seals_run_session_ledger_vm_host_boot_times_policy_contract_servers_and_plan():
    bench = a_bench()
    value = json.loads(bench.sealed.content)
    header, plan = value["header"], value["plan"]
    now = bench.clock.now()
    nonce = header.pop("nonce")
    assert len(nonce) == 32
    assert header == {
        "run": "run-1",
        "principal": "agent",
        "ledger": "ledger-1",
        "vm": VM,
        "host": HOST,
        "boot": "boot-1",
        "issued_at": str(now.wall_ns),
        "issued_mono": str(now.mono_ns),
        "expires_at": str(now.wall_ns + LIFETIME),
        "expires_mono": str(now.mono_ns + LIFETIME),
        "launches": dict(bench.world.launches),
    }
    assert plan["policy"] == bench.policy.digest
    assert plan["contract"] == SERVERS.digest
    assert plan["servers"] == {server.id: server.digest for server in SERVERS.servers}
    assert plan["task"] == "t-1"
    assert plan["steps"][1] == {
        "name": "decision",
        "choice": True,
        "server": "synthetic-ui",
        "server_digest": SERVERS.servers[1].digest,
        "tool": "click_target",
        "effect": "act",
        "target": "targetId",
        "candidates": {"approve": APPROVE, "hold": HOLD},
    }
    assert bench.sealed.verifies(SEAL_KEY)
    assert bench.sealed.digest == bench.session.grant == digest_of("grant@1", bench.sealed.content)


@promise("L7")
def test_two_runs_never_have_one_grant():
    bench = a_choice()
    first = bench.sealed
    assert bench.seal("run-2").sealed.digest != first.digest


@promise("L8")
def test_changing_what_went_in_or_came_out_changes_nothing():
    arguments, other = dict(APPROVE), dict(HOLD)
    target = a_tool("press", {"taskId": {"type": "string"}, "targetId": {"type": "string"}})
    server = a_server("synthetic-ui", target)
    contract = Contract(schema=SERVERS.schema, id="own", servers=(server,))
    bench = LiveBench(a_policy(a_group(tool="press", approve=arguments, hold=other), contract=contract))
    launches = dict(bench.world.launches)
    bench.broker = bench.a_broker(launches=launches)
    arguments["targetId"] = "evil"
    target.input_schema.clear()
    bench.seal()
    launches.clear()
    other.clear()

    def pressing(values):
        return asking("synthetic-ui", "press", values)

    permit = bench.broker.decide(bench.session, pressing(APPROVE))
    json.loads(permit.arguments)["targetId"] = "evil"
    with pytest.raises(AttributeError):
        permit.arguments = b"{}"
    assert bench.propose(pressing({**APPROVE, "targetId": "evil"})).reason is Reason.WRONG_TARGET
    assert bench.propose(pressing({**APPROVE, "force": 1})).reason is Reason.ARGUMENTS_INVALID
    assert bench.propose(pressing(APPROVE)).permit.arguments == b'{"targetId":"approve","taskId":"t-1"}'
    assert bench.world.sent[0].permit.arguments == b'{"targetId":"approve","taskId":"t-1"}'


@promise("L9")
@pytest.mark.parametrize("recomputed", [False, True], ids=["old MAC", "all digests and the MAC recomputed"])
def test_an_edited_grant_is_not_believed(recomputed):
    def another_candidate(content):
        content["plan"]["steps"][1]["candidates"]["evil"] = {"taskId": "t-1", "targetId": "evil"}

    def another_server(content):
        content["plan"]["steps"][1]["server"] = "lba"

    def another_step(content):
        content["plan"]["steps"].append(content["plan"]["steps"][0])

    def more_time(content):
        content["header"]["expires_at"] = str(int(content["header"]["expires_at"]) + SECOND)

    def another_nonce(content):
        content["header"]["nonce"] = "00" * 16

    def another_ledger(content):
        content["header"]["ledger"] = "ledger-2"

    def another_argument(content):
        content["plan"]["steps"][1]["candidates"]["approve"]["targetId"] = "hold"

    for change in (
        another_candidate,
        another_server,
        another_step,
        more_time,
        another_nonce,
        another_ledger,
        another_argument,
    ):
        bench = a_bench()
        forged = edited(bench, change)
        if recomputed:
            for session in (bench.session, bench.session._replace(grant=forged.digest)):
                assert bench.a_broker().open(forged.data, session).reason is Reason.GRANT_NOT_FROM_POLICY
        else:
            forged = evolve(forged, mac=bench.sealed.mac)
            assert bench.a_broker().open(forged.data, bench.session).reason is Reason.SEAL_INVALID
        reborn = bench.a_broker()
        reborn.open(forged.data, bench.session)
        assert reborn.propose(bench.session, LOOKING).reason is Reason.UNKNOWN_GRANT
        assert bench.calls == NOTHING


@promise("L9")
def test_the_binding_is_the_ledgers_and_the_runners_never_the_grants_own():
    bench = a_bench()

    def other_principal(content):
        content["header"]["principal"] = "mallory"

    forged = edited(bench, other_principal)
    assert bench.a_broker().open(forged.data, bench.session).reason is Reason.WRONG_PRINCIPAL
    stolen = bench.session._replace(principal="mallory", grant=forged.digest)
    assert bench.a_broker().open(forged.data, stolen).reason is Reason.GRANT_NOT_FROM_POLICY


PRESENTED = {
    "a run the ledger does not know": ({"run": "run-9"}, Reason.UNKNOWN_GRANT),
    "another principal": ({"principal": "mallory"}, Reason.WRONG_PRINCIPAL),
    "another VM": ({"vm": OTHER_VM}, Reason.WRONG_VM),
    "another host": ({"host": OTHER_HOST}, Reason.WRONG_HOST),
    "another boot": ({"boot": "boot-2"}, Reason.WRONG_HOST),
    "another digest": ({"grant": HOST}, Reason.GRANT_NOT_FROM_POLICY),
}


@promise("L9", "L13")
@pytest.mark.parametrize(("other", "reason"), PRESENTED.values(), ids=PRESENTED)
def test_a_true_grant_is_not_opened_under_another_binding(other, reason):
    bench = a_bench()
    refused = bench.a_broker().open(bench.sealed.data, bench.session._replace(**other))
    assert refused.reason is reason
    order = [check.reason.value for check in OPENING]
    assert refused.checked == tuple(order[: order.index(reason.value)])
    assert refused.receipt_id is not None


@promise("L13")
def test_a_grant_of_another_run_is_not_opened():
    bench = a_bench()
    first, session = bench.sealed, bench.session
    bench.seal("run-2")
    assert bench.a_broker().open(first.data, bench.session).reason is Reason.CROSS_RUN
    assert bench.a_broker().open(first.data, session) == session


def test_a_grant_is_not_opened_in_another_boot():
    bench = a_bench()
    bench.clock.reboot("boot-2")
    assert bench.a_broker().open(bench.sealed.data, bench.session).reason is Reason.WRONG_HOST


@promise("K5")
def test_a_seal_under_another_key_or_key_id_does_not_verify():
    bench = a_bench()
    for ring in (KeyRing("k-1", b"x" * 32), KeyRing("k-2", b"m" * 32)):
        forged = SealedGrant.seal(bench.sealed.content, ring.key(Purpose.GRANT))
        assert bench.a_broker().open(forged.data, bench.session).reason is Reason.SEAL_INVALID
    other_purpose = SealedGrant.seal(bench.sealed.content, KEYS.key(Purpose.LEDGER))
    assert bench.a_broker().open(other_purpose.data, bench.session).reason is Reason.SEAL_INVALID


def test_bytes_that_are_no_sealed_grant_are_refused():
    bench = a_bench()
    sealed = bench.sealed
    for raw in (
        b"",
        b"[]",
        b'{"grant":{},"key":"k-1"}',
        b'{"grant":{},"key":"k-1","mac":"zz"}',
        b'{"grant":{},"key":"k-1","mac":1}',
        b" " + sealed.data,
        sealed.data.replace(sealed.mac.hex().encode(), sealed.mac.hex().upper().encode()),
    ):
        assert bench.a_broker().open(raw, bench.session).reason is Reason.SEAL_INVALID


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"header":[],"plan":1}', b'{"header":{"run":1},"plan":{}}'])
def test_a_sealed_grant_without_the_parts_of_one_is_of_no_run(content):
    bench = a_bench()
    odd = SealedGrant.seal(content, SEAL_KEY)
    assert bench.a_broker().open(odd.data, bench.session).reason is Reason.CROSS_RUN


@promise("L2")
def test_a_policy_that_changed_after_its_pin_opens_nothing_and_seals_nothing():
    bench = a_bench()
    changed = evolve(bench.policy, expires_after_ns=LIFETIME * 2)
    for policy, pins in ((changed, bench.pins), (changed, Pins(changed.digest, SERVERS.digest))):
        reborn = bench.a_broker(policy=policy, pins=pins)
        assert reborn.open(bench.sealed.data, bench.session).reason is Reason.POLICY_DRIFT
    with pytest.raises(IntegrityError) as caught:
        bench.a_broker(policy=changed).seal(run="run-2", principal="agent", vm=VM, host=HOST, task="t-1")
    assert caught.value.reason is Reason.POLICY_DRIFT


@promise("L1", "L2")
def test_a_contract_that_changed_after_its_pin_is_contract_drift_not_policy_drift():
    bench = a_bench()
    other = Contract(schema=SERVERS.schema, id=SERVERS.id, servers=(*SERVERS.servers, a_server("new")))
    changed = evolve(bench.policy, contract=other)
    assert bench.a_broker(policy=changed).open(bench.sealed.data, bench.session).reason is Reason.CONTRACT_DRIFT
    repinned = bench.a_broker(policy=changed, pins=Pins(changed.digest, other.digest))
    assert repinned.open(bench.sealed.data, bench.session).reason is Reason.CONTRACT_DRIFT
    with pytest.raises(IntegrityError) as caught:
        bench.a_broker(policy=changed).seal(run="run-2", principal="agent", vm=VM, host=HOST, task="t-1")
    assert caught.value.reason is Reason.CONTRACT_DRIFT


def test_a_launch_that_resolves_to_something_else_than_at_sealing_is_contract_drift():
    bench = a_bench()
    launches = {**bench.world.launches, "lba": HOST}
    assert bench.a_broker(launches=launches).open(bench.sealed.data, bench.session).reason is Reason.CONTRACT_DRIFT


def test_a_policy_that_does_not_compile_for_the_ledgers_task_gives_no_grant():
    literal = a_group(approve={"taskId": "t-1", "targetId": "a"}, hold={"taskId": "t-1", "targetId": "b"})
    bench = LiveBench(a_policy(literal)).seal()
    record = json.loads(bench.ledger.run_record("run-1"))
    record[6] = "t-2"
    bench.ledger._inner._runs["run-1"] = canonical_bytes(record)
    assert bench.a_broker().open(bench.sealed.data, bench.session).reason is Reason.GRANT_NOT_FROM_POLICY


def test_an_opened_grant_stands_where_the_ledger_says():
    bench = a_bench().chosen()
    reborn = bench.a_broker()
    session = reborn.open(bench.sealed.data, bench.session)
    assert reborn.propose(session, LOOKING).reason is Reason.REPLAYED
    assert reborn.propose(session, choosing(APPROVE)).state is State.SUCCEEDED
    again = bench.a_broker()
    again.open(bench.sealed.data, bench.session)
    assert again.propose(session, choosing(HOLD)).reason is Reason.ALREADY_SELECTED


@promise("K9")
def test_the_high_water_mark_outlives_a_restart():
    bench = a_choice()
    bench.clock.advance(10 * SECOND)
    bench.propose(b"nonsense")
    reborn = bench.a_broker()
    session = reborn.open(bench.sealed.data, bench.session)
    bench.clock.set_wall(bench.clock.now().wall_ns - 2 * SECOND)
    assert reborn.propose(session, choosing(APPROVE)).reason is Reason.CLOCK_ROLLBACK


def test_refusals_counted_before_a_restart_count_after_it():
    bench = a_choice(max_refusals=2)
    bench.propose(b"nonsense")
    reborn = bench.a_broker()
    session = reborn.open(bench.sealed.data, bench.session)
    reborn.propose(session, b"nonsense")
    assert reborn.propose(session, choosing(APPROVE)).reason is Reason.EXHAUSTED


def test_with_the_store_down_nothing_is_opened():
    bench = a_bench()
    reborn = bench.a_broker()
    bench.ledger.down = True
    assert reborn.open(bench.sealed.data, bench.session).reason is Reason.STORE_UNAVAILABLE
    bench.ledger.down = False
    bench.ledger.broken = {"row"}
    assert reborn.open(bench.sealed.data, bench.session).reason is Reason.STORE_UNAVAILABLE


def test_a_ledger_that_lost_a_group_is_a_store_that_cannot_be_used():
    bench = a_bench()
    bench.ledger._inner._groups.pop(bytes.fromhex(bench.session.grant[7:]))
    assert bench.a_broker().open(bench.sealed.data, bench.session).reason is Reason.STORE_UNAVAILABLE


def test_an_opening_that_lacks_its_first_check_fails_rather_than_guess():
    bench = a_bench()
    reborn = bench.a_broker(opening=())
    with pytest.raises(HarnessError) as caught:
        reborn.open(bench.sealed.data, bench.session._replace(run="run-9"))
    assert caught.value.reason is Reason.COULD_NOT_RUN


MALFORMED = {
    "an upper-case VM": ({"vm": VM.upper()}, Reason.WRONG_VALUE),
    "a VM that is no UUID": ({"vm": "vm-1"}, Reason.WRONG_VALUE),
    "no run": ({"run": ""}, Reason.WRONG_VALUE),
    "no principal": ({"principal": ""}, Reason.WRONG_VALUE),
    "a run that exists": ({}, Reason.DUPLICATE_ID),
}


@pytest.mark.parametrize(("other", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_or_used_binding_seals_nothing(other, reason):
    bench = a_choice()
    with pytest.raises(MisuseError) as caught:
        bench.seal(**other)
    assert caught.value.reason is reason


def test_without_a_launch_digest_of_each_server_in_the_plan_nothing_is_sealed():
    bench = a_choice()
    with pytest.raises(MisuseError) as caught:
        bench.a_broker(launches={}).seal(run="run-2", principal="agent", vm=VM, host=HOST, task="t-1")
    assert caught.value.reason is Reason.MISSING_KEY


def test_a_policy_that_does_not_compile_seals_nothing():
    bench = LiveBench(a_policy(a_group(), LOOK))
    with pytest.raises(DocumentError) as caught:
        bench.seal()
    assert caught.value.reason is Reason.GROUP_NOT_LAST
    assert bench.ledger.runs() == ()


def test_a_sealed_grant_reads_back_as_itself():
    sealed = a_bench().sealed
    assert SealedGrant.read(sealed.data) == sealed
    assert sealed.digest == grant_digest(sealed.content)


def test_a_refusal_under_an_unknown_run_has_a_receipt_in_the_stray_chain():
    bench = a_choice()
    refused = bench.propose(choosing(APPROVE), run="run-9")
    assert isinstance(refused, Refused)
    assert [each["id"] for each in bench.receipts("-")] == [refused.receipt_id]
    assert bench.receipts() == []


def test_threads_that_use_a_grant_for_the_first_time_at_once_share_one_view():
    bench = LiveBench()
    sealed = bench.broker.seal(run="run-1", principal="agent", vm=VM, host=HOST, task="t-1")
    grants, digest = bench.broker._grants, sealed.digest
    assert grants._first_use(digest) is grants._first_use(digest) is grants.find(digest)
