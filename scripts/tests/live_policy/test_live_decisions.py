"""What the live broker refuses, with which reason, and that nothing reached any server."""

import json
from itertools import combinations

import pytest
from attrs import evolve
from live_bench import (
    APPROVE,
    ASK,
    CLICK,
    HOLD,
    LIFETIME,
    LOOK,
    LOOKING,
    ONE_SERVER,
    OTHER_HOST,
    OTHER_VM,
    SERVERS,
    a_bench,
    a_choice,
    a_group,
    a_server,
    a_tool,
    asking,
    choosing,
)
from marks import promise

from assisted_benchmark.contract.model import SERVER_SET, Contract
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import LIVE_ORDER, Coarse, Reason
from assisted_benchmark.live_policy.checks import CHECKS
from assisted_benchmark.live_policy.dispatch import Moment, Outcome, heard
from assisted_benchmark.live_policy.ports import Observation, Unavailable
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.live_policy.trust import Pins

NOTHING = {"lba": 0, "synthetic-ui": 0}
UNKNOWN = digest_of("grant@1", b"no such grant")

AT_THE_CHOICE = {
    "too large": (choosing({**APPROVE, "targetId": "x" * (1 << 20)}), Reason.TOO_LARGE),
    "a byte order mark": (b"\xef\xbb\xbf" + choosing(APPROVE), Reason.MALFORMED_UNICODE),
    "no JSON": (b"click approve", Reason.MALFORMED_CALL),
    "no object": (b"[]", Reason.MALFORMED_CALL),
    "a key too many": (choosing(APPROVE, retry=True), Reason.MALFORMED_CALL),
    "no tool": (b'{"server":"synthetic-ui","arguments":{}}', Reason.MALFORMED_CALL),
    "a server that is no text": (asking(1, "click_target", APPROVE), Reason.MALFORMED_CALL),
    "an effect that is none": (choosing(APPROVE, effect="magic"), Reason.MALFORMED_CALL),
    "a grant that is no digest": (choosing(APPROVE, grant="mine"), Reason.MALFORMED_CALL),
    "a key twice": (b'{"server":"a","server":"a","tool":"b","arguments":{}}', Reason.DUPLICATE_KEY),
    "a large integer": (choosing({**APPROVE, "n": 2**53}), Reason.UNSAFE_INTEGER),
    "NaN": (b'{"server":"a","tool":"b","arguments":{"n":NaN}}', Reason.NON_FINITE_NUMBER),
    "deep": (b'{"server":"a","tool":"b","arguments":' + b'{"a":' * 70 + b"1" + b"}" * 71, Reason.TOO_DEEP),
    "arguments in a list": (choosing([APPROVE]), Reason.ARGUMENTS_NOT_OBJECT),
    "an empty name": (asking("", "click_target", APPROVE), Reason.MALFORMED_NAME),
    "a hidden character": (asking("synthetic-ui", "click\u200b_target", APPROVE), Reason.INVISIBLE_CHARACTER),
    "a Cyrillic letter": (asking("synthetic-ui", "\u0441lick_target", APPROVE), Reason.CONFUSABLE_NAME),
    "another grant": (choosing(APPROVE, grant=UNKNOWN), Reason.UNKNOWN_GRANT),
    "another group": (choosing(APPROVE, group="verdict"), Reason.UNKNOWN_GROUP),
    "an unknown server": (asking("synthetic-ui2", "click_target", APPROVE), Reason.UNKNOWN_SERVER),
    "the same tool elsewhere": (asking("lba", "click_target", APPROVE), Reason.SERVER_SUBSTITUTED),
    "an unknown tool": (asking("synthetic-ui", "drag_target", APPROVE), Reason.UNKNOWN_TOOL),
    "a tool with another effect": (asking("synthetic-ui", "read_task", {"taskId": "t-1"}), Reason.EFFECT_MISMATCH),
    "a claim of another effect": (choosing(APPROVE, effect="observe"), Reason.EFFECT_MISMATCH),
    "an extra argument": (choosing({**APPROVE, "force": True}), Reason.ARGUMENTS_INVALID),
    "a missing argument": (choosing({"targetId": "approve"}), Reason.ARGUMENTS_INVALID),
    "a re-typed argument": (choosing({"taskId": 1, "targetId": "approve"}), Reason.ARGUMENTS_INVALID),
    "a wrong target": (choosing({**APPROVE, "targetId": "Approve"}), Reason.WRONG_TARGET),
    "another task": (choosing({**APPROVE, "taskId": "t-2"}), Reason.ARGUMENTS_ALTERED),
    "another task and target": (choosing({"taskId": "t-2", "targetId": "x"}), Reason.ARGUMENTS_ALTERED),
    "another tool of the server": (asking("synthetic-ui", "type_text", APPROVE), Reason.NOT_A_CANDIDATE),
}


@promise("L11", "L13", "L15")
@pytest.mark.parametrize(("raw", "reason"), AT_THE_CHOICE.values(), ids=AT_THE_CHOICE)
def test_a_proposal_that_is_not_the_sealed_call_reaches_no_server_and_leaves_the_group_open(raw, reason):
    bench = a_choice()
    refused = bench.propose(raw)
    assert refused.reason is reason
    assert bench.calls == NOTHING
    assert bench.states() == (State.SEALED,)
    receipt = bench.receipts()[-1]
    assert (receipt["reason"], receipt["id"]) == (reason.value, refused.receipt_id)
    compared = (Reason.ARGUMENTS_INVALID, Reason.WRONG_TARGET, Reason.ARGUMENTS_ALTERED)
    assert (refused.nearest in ("approve", "hold")) is (reason in compared)
    assert bool(refused.nearest) is (reason in compared)
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED


SEALED_BUT_FOR_ITS_SPELLING = {
    "a key twice with one value": (
        b'{"server":"synthetic-ui","tool":"click_target","arguments":'
        b'{"taskId":"t-1","targetId":"approve","targetId":"approve"}}',
        Reason.DUPLICATE_KEY,
    ),
    "a key twice, the last as sealed": (
        b'{"server":"synthetic-ui","tool":"click_target","arguments":'
        b'{"taskId":"t-1","targetId":"hold","targetId":"approve"}}',
        Reason.DUPLICATE_KEY,
    ),
    "a server twice, the last as sealed": (
        b'{"server":"lba","server":"synthetic-ui","tool":"click_target","arguments":'
        b'{"taskId":"t-1","targetId":"approve"}}',
        Reason.DUPLICATE_KEY,
    ),
    "padded beyond a mebibyte": (choosing(APPROVE) + b" " * (1 << 20), Reason.TOO_LARGE),
}


@promise("L11", "K1")
@pytest.mark.parametrize(("raw", "reason"), SEALED_BUT_FOR_ITS_SPELLING.values(), ids=SEALED_BUT_FOR_ITS_SPELLING)
def test_bytes_that_a_lenient_reader_would_take_for_the_sealed_call_reach_no_server(raw, reason):
    bench = a_choice()
    assert bench.propose(raw).reason is reason
    assert bench.calls == NOTHING
    assert bench.states() == (State.SEALED,)


def test_a_refusal_that_was_judged_records_which_call_was_proposed():
    bench = a_choice()
    bench.propose(choosing({**APPROVE, "targetId": "x"}))
    receipt = bench.receipts()[-1]
    told = bench.broker._desk.keyed(b'{"targetId":"x","taskId":"t-1"}')
    assert (receipt["server"], receipt["tool"], receipt["arguments"]) == ("synthetic-ui", "click_target", told)


OTHER_SESSIONS = {
    "another run": ({"run": "run-2"}, Reason.CROSS_RUN),
    "another principal": ({"principal": "mallory"}, Reason.WRONG_PRINCIPAL),
    "another VM": ({"vm": OTHER_VM}, Reason.WRONG_VM),
    "another host": ({"host": OTHER_HOST}, Reason.WRONG_HOST),
    "another boot": ({"boot": "boot-2"}, Reason.WRONG_HOST),
    "another grant": ({"grant": UNKNOWN}, Reason.UNKNOWN_GRANT),
    "the grant's digest spelled otherwise": (None, Reason.UNKNOWN_GRANT),
    "no digest at all": ({"grant": "sha256:xyz"}, Reason.UNKNOWN_GRANT),
}


@promise("L11", "L13")
@pytest.mark.parametrize(("other", "reason"), OTHER_SESSIONS.values(), ids=OTHER_SESSIONS)
def test_the_right_call_under_another_binding_reaches_no_server(other, reason):
    bench = a_choice()
    other = other or {"grant": bench.session.grant.upper().replace("SHA", "sha")}
    assert bench.propose(choosing(APPROVE), **other).reason is reason
    assert bench.calls == NOTHING
    assert bench.states() == (State.SEALED,)


@promise("L13")
def test_a_grant_of_another_run_named_by_the_agent_is_a_cross_run_call():
    bench = a_choice()
    first = bench.session.grant
    bench.seal("run-2")
    assert bench.propose(choosing(APPROVE, grant=first)).reason is Reason.CROSS_RUN
    assert bench.calls == NOTHING


@promise("L13", "K9")
def test_a_grant_is_refused_before_its_time_and_from_the_instant_of_its_end_on_either_clock():
    early = a_choice()
    early.clock.set_wall(early.clock.now().wall_ns - 1)
    assert early.propose(choosing(APPROVE)).reason is Reason.NOT_YET_VALID

    late = a_choice()
    late.clock.advance(LIFETIME)
    assert late.propose(choosing(APPROVE)).reason is Reason.EXPIRED

    by_wall = a_choice()
    by_wall.clock.set_wall(by_wall.clock.now().wall_ns + LIFETIME)
    assert by_wall.propose(choosing(APPROVE)).reason is Reason.EXPIRED

    by_mono = a_choice()
    sealed_at = by_mono.clock.now().wall_ns
    by_mono.clock.advance(LIFETIME)
    by_mono.clock.set_wall(sealed_at)
    assert by_mono.propose(choosing(APPROVE)).reason is Reason.EXPIRED
    assert early.calls == late.calls == by_wall.calls == by_mono.calls == NOTHING
    # Refused before the marker: no group is spent on it.
    assert {bench.states() for bench in (early, late, by_wall, by_mono)} == {(State.SEALED,)}


@promise("K9")
def test_the_last_nanosecond_of_a_grant_still_admits():
    bench = a_choice()
    bench.clock.advance(LIFETIME - 1)
    assert isinstance(bench.broker.decide(bench.session, choosing(APPROVE)), Admitted)


@promise("K9")
def test_a_clock_that_was_set_back_by_more_than_a_second_refuses_and_by_less_does_not():
    bench = a_choice()
    bench.clock.advance(10 * SECOND)
    highest = bench.clock.now().wall_ns
    bench.propose(choosing({**APPROVE, "targetId": "x"}))
    bench.clock.set_wall(highest - SECOND - 1)
    assert bench.propose(choosing(APPROVE)).reason is Reason.CLOCK_ROLLBACK
    assert bench.calls == NOTHING
    bench.clock.set_wall(highest - SECOND)
    assert isinstance(bench.broker.decide(bench.session, choosing(APPROVE, effect="act")), Admitted)
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED


@promise("K9")
def test_a_clock_that_was_set_back_behind_an_admitted_call_refuses_the_next_one():
    bench = a_bench()
    bench.clock.advance(10 * SECOND)
    admitted_at = bench.clock.now().wall_ns
    assert bench.propose(LOOKING).state is State.SUCCEEDED
    bench.clock.set_wall(admitted_at - SECOND - 1)
    assert bench.propose(choosing(APPROVE)).reason is Reason.CLOCK_ROLLBACK
    assert bench.calls == {"lba": 1, "synthetic-ui": 0}


@promise("K9")
def test_a_jump_of_the_clock_that_only_somebody_elses_proposal_saw_does_not_raise_the_mark():
    bench = a_choice()
    issued = bench.clock.now().wall_ns
    bench.clock.set_wall(issued + 50 * SECOND)
    assert bench.propose(choosing(APPROVE), principal="mallory").reason is Reason.WRONG_PRINCIPAL
    bench.clock.set_wall(issued)
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED


@promise("K9")
def test_a_jump_of_the_clock_that_only_a_malformed_proposal_saw_does_not_raise_the_mark():
    bench = a_choice()
    issued = bench.clock.now().wall_ns
    bench.clock.set_wall(issued + 50 * SECOND)
    for raw in (b"x", b"{}"):
        assert bench.propose(raw).reason is Reason.MALFORMED_CALL
    bench.clock.set_wall(issued)
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED


@pytest.mark.parametrize("kind", [bytearray, memoryview, bytes.decode], ids=["bytearray", "memoryview", "text"])
def test_what_is_no_bytes_is_no_proposal(kind):
    bench = a_choice()
    with pytest.raises(TypeError):
        bench.propose(kind(choosing(APPROVE)))
    assert bench.calls == NOTHING
    assert bench.states() == (State.SEALED,)


@promise("K9")
def test_a_monotonic_clock_behind_the_sealing_refuses_even_with_the_same_boot_name():
    bench = a_choice()
    bench.clock.reboot(bench.clock.boot_id)
    bench.clock.advance(-1)
    bench.clock.set_wall(bench.clock.now().wall_ns + 1)
    assert bench.propose(choosing(APPROVE)).reason is Reason.CLOCK_ROLLBACK
    assert bench.calls == NOTHING


@promise("K9")
def test_another_boot_of_the_host_refuses():
    bench = a_choice()
    bench.clock.reboot("boot-2")
    assert bench.propose(choosing(APPROVE)).reason is Reason.WRONG_HOST
    # As long after the boot as the sealing was, or longer, the readings alone would tell nothing.
    bench.clock.advance(10 * SECOND)
    assert isinstance(bench.propose(choosing(APPROVE)), Refused)
    assert bench.calls == NOTHING
    assert bench.states() == (State.SEALED,)


@promise("L2", "L13")
def test_a_policy_or_a_contract_that_is_not_as_pinned_refuses():
    bench = a_choice()
    policy = bench.policy
    for pins, reason in (
        (Pins(UNKNOWN, policy.contract.digest), Reason.POLICY_DRIFT),
        (Pins(policy.digest_under(UNKNOWN), UNKNOWN), Reason.CONTRACT_DRIFT),
    ):
        drifted = bench.a_broker(pins=pins)
        drifted._grants._open.update(bench.broker._grants._open)
        drifted._grants._plans.update(bench.broker._grants._plans)
        assert drifted.propose(bench.session, choosing(APPROVE)).reason is reason
    assert bench.calls == NOTHING


@promise("L13", "L17")
def test_after_a_choice_every_other_choice_is_already_selected():
    bench = a_choice()
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED
    for again in (choosing(APPROVE), choosing(HOLD), choosing({**HOLD, "taskId": "t-2"})):
        assert bench.propose(again).reason is Reason.ALREADY_SELECTED
    assert bench.calls == {"lba": 0, "synthetic-ui": 1}


@promise("L3", "L13")
def test_a_choice_before_the_earlier_steps_is_out_of_order():
    bench = a_bench()
    assert bench.propose(choosing(APPROVE)).reason is Reason.OUT_OF_ORDER
    assert bench.propose(asking("lba", "get_benchmark_series", {}, group="decision")).reason is Reason.OUT_OF_ORDER
    assert bench.calls == NOTHING


@promise("L13")
def test_a_later_call_is_skipped_and_a_done_one_replayed():
    bench = a_bench(LOOK, ASK, a_group())
    asked = asking("lba", "get_status", {"verbose": True})
    assert bench.propose(asked).reason is Reason.SKIPPED
    assert bench.calls == NOTHING
    bench.propose(LOOKING)
    assert bench.propose(LOOKING).reason is Reason.REPLAYED
    bench.propose(asked)
    bench.propose(choosing(HOLD))
    assert bench.propose(asked).reason is Reason.REPLAYED
    assert bench.calls == {"lba": 2, "synthetic-ui": 1}


@promise("L13")
def test_a_call_of_a_done_step_is_replayed_though_it_names_its_group():
    bench = a_bench(LOOK, ASK)
    assert bench.propose(LOOKING).state is State.SUCCEEDED
    assert bench.propose(asking("lba", "get_benchmark_series", {}, group="step-1")).reason is Reason.REPLAYED
    assert bench.calls == {"lba": 1, "synthetic-ui": 0}


@promise("L13")
def test_a_call_that_occurs_twice_in_the_plan_is_admitted_twice():
    bench = a_bench(LOOK, LOOK)
    assert [bench.propose(LOOKING).state for _ in range(2)] == [State.SUCCEEDED] * 2
    assert bench.propose(LOOKING).reason is Reason.ALREADY_SELECTED
    assert bench.calls == {"lba": 2, "synthetic-ui": 0}


@promise("L4", "L18")
def test_a_single_call_that_failed_ends_the_grant():
    bench = a_bench(answer=lambda claimed: bench.world.replied(b'{"content":[],"isError":true}', failed=True))
    assert bench.propose(LOOKING).reason is Reason.FAILED
    assert bench.propose(LOOKING).reason is Reason.ALREADY_SELECTED
    assert bench.propose(choosing(APPROVE)).reason is Reason.GROUP_TERMINAL
    assert bench.calls == {"lba": 1, "synthetic-ui": 0}


def test_a_revoked_and_an_aborted_grant_say_so():
    revoked = a_choice()
    revoked.broker.revoke(revoked.session.grant)
    assert revoked.propose(choosing(APPROVE)).reason is Reason.REVOKED
    aborted = a_choice()
    aborted.broker.abort(aborted.session)
    assert aborted.propose(choosing(APPROVE)).reason is Reason.GROUP_TERMINAL
    assert revoked.calls == aborted.calls == NOTHING


def test_no_call_of_a_closed_group_is_admitted_even_before_the_ledger_is_asked_to_mark_it():
    revoked, aborted, spent, late = a_choice(), a_choice(), a_choice(max_refusals=1), a_choice()
    revoked.broker.revoke(revoked.session.grant)
    aborted.broker.abort(aborted.session)
    spent.propose(b"nonsense")
    end = late.clock.now().wall_ns + LIFETIME
    late.at(Moment.CLAIMED, lambda: late.clock.set_wall(end))
    assert late.propose(choosing(APPROVE)).state is State.EXPIRED
    late.clock.set_wall(end - 1)
    decisions = [bench.broker.decide(bench.session, choosing(APPROVE)) for bench in (revoked, aborted, spent, late)]
    assert [type(each) for each in decisions] == [Refused] * 4
    assert [each.reason for each in decisions] == [
        Reason.REVOKED,
        Reason.GROUP_TERMINAL,
        Reason.EXHAUSTED,
        Reason.GROUP_TERMINAL,
    ]
    assert revoked.calls == aborted.calls == spent.calls == late.calls == NOTHING


@promise("L15")
def test_refusals_of_the_own_session_exhaust_the_group_at_the_bound():
    bench = a_choice(max_refusals=3)
    wrong = choosing({**APPROVE, "targetId": "x"})
    assert [bench.propose(wrong).reason for _ in range(3)] == [Reason.WRONG_TARGET] * 3
    assert bench.states() == (State.EXHAUSTED,)
    assert bench.propose(choosing(APPROVE)).reason is Reason.EXHAUSTED
    assert bench.calls == NOTHING
    assert [each["reason"] for each in bench.receipts()] == ["wrong_target"] * 3 + ["exhausted", "exhausted"]


@promise("L15")
def test_the_bound_is_sixteen_unless_the_policy_says_otherwise():
    bench = a_choice()
    for _ in range(15):
        bench.propose(b"nonsense")
    assert bench.states() == (State.SEALED,)
    bench.propose(b"nonsense")
    assert bench.states() == (State.EXHAUSTED,)


@promise("L15")
def test_nobody_elses_refusals_count():
    bench = a_choice(max_refusals=2)
    for _ in range(5):
        bench.propose(choosing({**APPROVE, "targetId": "x"}), principal="mallory")
        bench.propose(choosing({**APPROVE, "targetId": "x"}), run="run-9")
        bench.propose(b"nonsense", vm=OTHER_VM)
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED


@promise("L15")
def test_refusals_at_one_step_do_not_count_against_the_next():
    bench = a_bench(max_refusals=2)
    bench.propose(b"nonsense")
    bench.chosen()
    bench.propose(b"nonsense")
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED


@promise("L15")
def test_a_malformed_frame_counts_and_is_recorded_like_any_refusal():
    bench = a_choice(max_refusals=1)
    refused = bench.broker.refuse_malformed(bench.session, Reason.MALFORMED_CALL, "not one JSON-RPC message")
    assert refused.receipt_id == bench.receipts()[0]["id"]
    assert bench.states() == (State.EXHAUSTED,)


@promise("L14")
def test_the_same_tool_name_on_two_servers_is_two_calls():
    bench = a_bench(
        LOOK,
        a_group(
            server="lba", target="", left={"taskId": "t-1", "targetId": "a"}, right={"taskId": "t-1", "targetId": "b"}
        ),
    ).chosen()
    call = {"taskId": "t-1", "targetId": "a"}
    assert bench.propose(asking("synthetic-ui", "click_target", call)).reason is Reason.SERVER_SUBSTITUTED
    assert bench.calls == {"lba": 1, "synthetic-ui": 0}
    assert bench.propose(asking("lba", "click_target", call)).state is State.SUCCEEDED
    assert bench.calls == {"lba": 2, "synthetic-ui": 0}


@promise("L13", "K1")
def test_one_is_not_true_and_text_is_not_a_number():
    number = a_server("synthetic-ui", a_tool("set", {"n": {}}))
    contract = Contract(schema=SERVER_SET, id="any", servers=(number,))
    bench = a_bench(a_group(tool="set", target="", one={"n": 1}, two={"n": 2}), contract=contract)
    for other in (True, "1", [1], None, 1.5):
        assert bench.propose(asking("synthetic-ui", "set", {"n": other})).reason is Reason.ARGUMENTS_ALTERED
    assert bench.calls == {"synthetic-ui": 0}
    assert bench.propose(b'{"server":"synthetic-ui","tool":"set","arguments":{"n":1.0}}').state is State.SUCCEEDED


@promise("K1")
def test_where_the_schema_says_integer_only_an_integers_spelling_is_admitted():
    number = a_server("synthetic-ui", a_tool("set", {"n": {"type": "integer"}}))
    contract = Contract(schema=SERVER_SET, id="integers", servers=(number,))
    bench = a_bench(a_group(tool="set", target="n", one={"n": 1}, two={"n": 2}), contract=contract)
    for spelling in (b"1.0", b"1e0"):
        raw = b'{"server":"synthetic-ui","tool":"set","arguments":{"n":%b}}' % spelling
        assert bench.propose(raw).reason is Reason.NON_CANONICAL_NUMBER
    assert bench.calls == {"synthetic-ui": 0}
    assert bench.propose(asking("synthetic-ui", "set", {"n": 1})).state is State.SUCCEEDED


@promise("L16")
def test_the_bytes_sent_are_the_sealed_ones_whatever_the_spelling():
    bench = a_choice()
    raw = (
        b' { "tool":"click_target" , "server":"synthetic-ui", "arguments":{"taskId":"t\\u002d1","targetId":"approve"}}'
    )
    bench.propose(raw)
    assert [claimed.permit.arguments for claimed in bench.world.sent] == [b'{"targetId":"approve","taskId":"t-1"}']


def test_naming_the_own_grant_group_and_effect_is_admitted():
    bench = a_choice()
    raw = choosing(APPROVE, grant=bench.session.grant, group="decision", effect="act")
    assert bench.propose(raw).state is State.SUCCEEDED


@promise("L13", "L20")
def test_a_server_that_is_not_as_pinned_right_before_the_dispatch_gets_no_call():
    bench = a_choice()
    seen = bench.world.live["synthetic-ui"]
    other = digest_of("other@1")
    for live in (
        Observation(seen.launch, other),
        Observation(other, seen.tools),
        Observation(seen.launch, other, ("the tool `click_target` is gone",)),
    ):
        bench.world.live["synthetic-ui"] = live
        assert bench.propose(choosing(APPROVE)).reason is Reason.CONTRACT_DRIFT
    receipt = bench.receipts()[-1]
    assert receipt["detail"] == "`synthetic-ui`: the tool `click_target` is gone"
    assert (receipt["server"], receipt["tool"]) == ("synthetic-ui", "click_target")
    bench.world.live["synthetic-ui"] = Unavailable(Reason.SERVER_UNAVAILABLE, "it is gone")
    assert bench.propose(choosing(APPROVE)).reason is Reason.SERVER_UNAVAILABLE
    assert bench.calls == NOTHING
    bench.world.live["synthetic-ui"] = seen
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED


@promise("L2", "K8")
def test_with_the_store_down_nothing_is_admitted_and_the_refusal_says_that_it_has_no_receipt():
    bench = a_choice()
    bench.ledger.down = True
    assert bench.propose(choosing(APPROVE)) == Refused(
        Reason.STORE_UNAVAILABLE,
        "the ledger cannot be reached; no receipt could be written: the ledger cannot be reached",
        None,
    )
    wrong = bench.propose(choosing({**APPROVE, "targetId": "x"}))
    assert (wrong.reason, wrong.receipt_id) == (Reason.STORE_UNAVAILABLE, None)
    malformed = bench.propose(b"nonsense")
    assert (malformed.reason, malformed.receipt_id) == (Reason.MALFORMED_CALL, None)
    assert bench.calls == NOTHING
    bench.ledger.down = False
    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED


@promise("K8")
def test_a_refusal_names_the_checks_that_passed_before():
    bench = a_choice()
    refused = bench.propose(asking("synthetic-ui2", "click_target", APPROVE))
    order = [check.reason for check in CHECKS]
    passed = order[: order.index(Reason.UNKNOWN_SERVER)]
    assert refused.checked == tuple(reason.value for reason in passed)


@promise("L15a")
def test_what_an_agent_hears_has_one_shape_and_a_coarse_word():
    bench = a_choice()
    wrong = bench.propose(choosing({**APPROVE, "targetId": "x"}))
    assert wrong.nearest == "approve"
    assert heard(wrong) == {"refused": "not_authorised", "receipt": wrong.receipt_id}
    assert heard(wrong, reveal=True) == {"refused": "wrong_target", "receipt": wrong.receipt_id}
    words = {heard(bench.propose(raw))["refused"] for raw, _ in list(AT_THE_CHOICE.values())[:8]}
    assert words == {Coarse.MALFORMED.value}
    done = bench.propose(choosing(APPROVE))
    assert heard(done) == {"refused": None, "receipt": done.receipt_id}
    assert heard(bench.propose(choosing(APPROVE)))["refused"] == "spent"
    bench.clock.advance(LIFETIME)
    assert heard(bench.propose(choosing(HOLD)))["refused"] == "expired"
    bench.ledger.down = True
    assert heard(bench.propose(choosing(HOLD))) == {"refused": "unavailable", "receipt": None}


@promise("L15a")
def test_the_receipt_tells_how_the_call_differs_and_neither_secrets_nor_the_right_answer():
    secret = a_tool("sign", {"pin": {"type": "string"}, "targetId": {"type": "string"}}, sensitive=["/pin"])
    contract = Contract(schema=SERVER_SET, id="signing", servers=(a_server("synthetic-ui", secret),))
    yes, no = {"pin": "1234", "targetId": "yes"}, {"pin": "1234", "targetId": "no"}
    bench = a_bench(a_group(tool="sign", yes=yes, no=no), contract=contract)
    bench.propose(asking("synthetic-ui", "sign", {"pin": "9876", "targetId": "maybe"}))
    receipt = bench.receipts()[-1]
    assert (
        receipt["detail"]
        == 'nearest is `yes`: /pin differs: [redacted] was proposed; /targetId differs: "maybe" was proposed'
    )
    assert "1234" not in json.dumps(bench.receipts())


@promise("L15a")
def test_what_a_schema_says_of_a_sensitive_argument_tells_nothing_within_it():
    numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
    secret = a_tool("sign", {"pin": numbers, "targetId": {"type": "string"}}, sensitive=["/pin"])
    contract = Contract(schema=SERVER_SET, id="signing", servers=(a_server("synthetic-ui", secret),))
    yes, no = {"pin": {"k": 1}, "targetId": "yes"}, {"pin": {"k": 1}, "targetId": "no"}
    bench = a_bench(a_group(tool="sign", yes=yes, no=no), contract=contract)
    told = []
    for number, reason in ((b'"x"', Reason.ARGUMENTS_INVALID), (b"1.0", Reason.NON_CANONICAL_NUMBER)):
        raw = b'{"server":"synthetic-ui","tool":"sign","arguments":{"pin":{"hunter2":%b},"targetId":"yes"}}' % number
        assert bench.propose(raw).reason is reason
        told.append(bench.receipts()[-1]["detail"])
    assert "hunter2" not in "".join(told)
    assert [detail.startswith("/pin: ") for detail in told] == [True, True]


def _always(reason, order=CHECKS):
    return tuple(check for check in order if check.reason is not reason)


@promise("K8")
def test_a_broker_without_a_check_admits_what_only_that_check_refuses():
    for reason, other in (
        (Reason.WRONG_VM, {"vm": OTHER_VM}),
        (Reason.WRONG_PRINCIPAL, {"principal": "mallory"}),
        (Reason.CROSS_RUN, {"run": "run-2"}),
    ):
        mutant = a_choice(checks=_always(reason))
        assert isinstance(mutant.propose(choosing(APPROVE), **other), Outcome)
        assert mutant.calls == {"lba": 0, "synthetic-ui": 1}


def test_a_broker_that_lacks_the_last_checks_fails_rather_than_guess():
    lacking = {Reason.WRONG_TARGET, Reason.ARGUMENTS_ALTERED, Reason.NOT_A_CANDIDATE}
    mutant = a_choice(checks=tuple(check for check in CHECKS if check.reason not in lacking))
    with pytest.raises(HarnessError) as caught:
        mutant.propose(choosing({**APPROVE, "targetId": "x"}))
    assert caught.value.reason is Reason.COULD_NOT_RUN
    without_grant = a_choice(checks=_always(Reason.UNKNOWN_GRANT))
    with pytest.raises(HarnessError):
        without_grant.propose(choosing(APPROVE), grant=UNKNOWN)
    assert mutant.calls == without_grant.calls == NOTHING


@promise("L12", "K7")
def test_the_checks_stand_in_the_documented_order():
    ranks = [LIVE_ORDER.index(check.reason) for check in CHECKS]
    assert ranks == sorted(ranks)


# One way to fail each check: in the proposal's parts, the session or the bench. Two together fail two checks.
SPOILERS = {
    Reason.MALFORMED_NAME: lambda b, p, s: p.update(tool="click target"),
    Reason.UNKNOWN_GRANT: lambda b, p, s: s.update(grant=UNKNOWN),
    Reason.UNKNOWN_GROUP: lambda b, p, s: p.update(group="verdict"),
    Reason.STORE_UNAVAILABLE: lambda b, p, s: b.ledger.broken.add("row"),
    Reason.CROSS_RUN: lambda b, p, s: s.update(run="run-2"),
    Reason.WRONG_PRINCIPAL: lambda b, p, s: s.update(principal="mallory"),
    Reason.WRONG_VM: lambda b, p, s: s.update(vm=OTHER_VM),
    Reason.WRONG_HOST: lambda b, p, s: s.update(host=OTHER_HOST),
    Reason.EXPIRED: lambda b, p, s: b.clock.advance(LIFETIME),
    Reason.REVOKED: lambda b, p, s: b.broker.revoke(b.session.grant),
    Reason.UNKNOWN_SERVER: lambda b, p, s: p.update(server="nowhere"),
    Reason.SERVER_SUBSTITUTED: lambda b, p, s: p.update(server="lba"),
    Reason.UNKNOWN_TOOL: lambda b, p, s: p.update(tool="drag_target"),
    Reason.EFFECT_MISMATCH: lambda b, p, s: p.update(effect="observe"),
    Reason.ARGUMENTS_INVALID: lambda b, p, s: p.update(arguments={**APPROVE, "force": 1}),
    Reason.WRONG_TARGET: lambda b, p, s: p.update(arguments={**APPROVE, "targetId": "x"}),
}
EXCLUSIVE = [
    {Reason.MALFORMED_NAME, Reason.UNKNOWN_TOOL},
    {Reason.UNKNOWN_SERVER, Reason.SERVER_SUBSTITUTED},
    {Reason.ARGUMENTS_INVALID, Reason.WRONG_TARGET},
    {Reason.STORE_UNAVAILABLE, Reason.REVOKED},
]


@promise("L12", "K7")
@pytest.mark.parametrize(
    ("first", "second"),
    [pair for pair in combinations(SPOILERS, 2) if set(pair) not in EXCLUSIVE],
    ids=lambda reason: reason.value,
)
def test_of_two_failing_checks_the_earlier_one_decides(first, second):
    bench = a_choice()
    parts = {"server": "synthetic-ui", "tool": "click_target", "arguments": APPROVE}
    session = {}
    SPOILERS[second](bench, parts, session)
    SPOILERS[first](bench, parts, session)
    assert bench.propose(json.dumps(parts).encode(), **session).reason is first
    assert bench.calls == NOTHING


@promise("L12", "K7")
def test_a_finished_group_outranks_everything_about_the_call():
    bench = a_choice()
    bench.propose(choosing(APPROVE))
    for raw, reason in AT_THE_CHOICE.values():
        after = LIVE_ORDER.index(reason) > LIVE_ORDER.index(Reason.ALREADY_SELECTED)
        assert bench.propose(raw).reason is (Reason.ALREADY_SELECTED if after else reason)
    assert bench.calls == {"lba": 0, "synthetic-ui": 1}


@promise("L1")
def test_without_a_choice_group_a_server_set_and_a_legacy_contract_decide_the_same():
    asked = asking("lba", "get_status", {"verbose": True})
    tried = [asked, LOOKING, LOOKING, asking("lba", "get_status", {"verbose": 1}), asked, asked, b"nonsense"]
    decisions = []
    for contract in (SERVERS, ONE_SERVER):
        bench = a_bench(LOOK, ASK, contract=contract)
        decisions.append([getattr(answer.reason, "value", None) for answer in map(bench.propose, tried)])
        assert bench.calls["lba"] == 2
    assert decisions[0] == decisions[1]
    assert decisions[0] == [
        "skipped",
        None,
        "replayed",
        "arguments_invalid",
        None,
        "already_selected",
        "malformed_call",
    ]


@promise("L6")
def test_a_servers_own_annotations_never_change_an_effect():
    definition = {**CLICK.definition.value, "annotations": {"readOnlyHint": True}}
    hinting = evolve(CLICK, definition=Canonical.of(definition))
    contract = Contract(schema=SERVER_SET, id="hinting", servers=(a_server("synthetic-ui", hinting),))
    bench = a_bench(a_group(), contract=contract)
    assert bench.propose(choosing(APPROVE, effect="observe")).reason is Reason.EFFECT_MISMATCH
    assert bench.calls == {"synthetic-ui": 0}
    assert bench.propose(choosing(APPROVE, effect="act")).state is State.SUCCEEDED
