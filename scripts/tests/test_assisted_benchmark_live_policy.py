"""The tests that the requirement names; each asserts how many calls each client received."""

import json
from pathlib import Path

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
    ONE_SERVER,
    OTHER_VM,
    VM,
    LiveBench,
    a_bench,
    a_choice,
    a_group,
    a_policy,
    asking,
    choosing,
)
from marks import promise

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.keys import Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.counting import CountingMachine
from assisted_benchmark.live_policy.dispatch import Moment
from assisted_benchmark.live_policy.grant import SealedGrant
from assisted_benchmark.live_policy.policy_document import load_policy
from assisted_benchmark.live_policy.ports import Observation
from assisted_benchmark.live_policy.states import LIVE_TABLE, State
from assisted_benchmark.live_policy.trust import Pins
from assisted_benchmark.mcp_router.process import Launcher
from assisted_benchmark.suite.live.processes import Processes
from assisted_benchmark.workloads.oracle import Oracle

ROOT = Path(__file__).resolve().parents[2]

NOTHING = {"lba": 0, "synthetic-ui": 0}
ONE_CLICK = {"lba": 0, "synthetic-ui": 1}


@promise("L1", "L11", "L13", "L14", "L16")
def test_multiserver_grant_binds_exact_server_identity_through_dispatch():
    bench = a_bench()
    assert bench.propose(asking("synthetic-ui", "get_benchmark_series", {})).reason is Reason.SERVER_SUBSTITUTED
    assert bench.calls == NOTHING
    assert bench.propose(LOOKING).state is State.SUCCEEDED
    assert bench.calls == {"lba": 1, "synthetic-ui": 0}

    # The same tool name and arguments on another server, then an unknown one: the route is the pair.
    assert bench.propose(asking("lba", "click_target", APPROVE)).reason is Reason.SERVER_SUBSTITUTED
    assert bench.propose(asking("ui", "click_target", APPROVE)).reason is Reason.UNKNOWN_SERVER

    # The same label in front of another launch, or of other tools.
    true = bench.world.live["synthetic-ui"]
    for false in (Observation(HOST, true.tools), Observation(true.launch, HOST)):
        bench.world.live["synthetic-ui"] = false
        assert bench.propose(choosing(APPROVE)).reason is Reason.CONTRACT_DRIFT
    bench.world.live["synthetic-ui"] = true

    assert bench.propose(choosing(APPROVE), run="run-2").reason is Reason.CROSS_RUN
    assert bench.propose(choosing(APPROVE), vm=OTHER_VM).reason is Reason.WRONG_VM
    assert bench.calls == {"lba": 1, "synthetic-ui": 0}

    assert bench.propose(choosing(APPROVE)).state is State.SUCCEEDED
    assert bench.calls == {"lba": 1, "synthetic-ui": 1}
    sent = bench.world.sent[-1].permit
    assert (sent.server, sent.tool, sent.arguments) == ("synthetic-ui", "click_target", canonical_bytes(APPROVE))


@promise("L1", "L11", "L16", "L17", "L20", "L30", "L32")
def test_stdio_ui_action_flows_through_server_set_broker_router_and_oracle():
    policy = load_policy(ROOT / "contracts" / "ui-decision.policy.yaml", ROOT)
    clock = SystemClock()
    with Launcher() as launcher:
        servers = Processes(policy.contract, str(ROOT / "contracts"), clock, launcher, seed=7, task="t-1")
        broker = LiveBroker(
            policy=policy,
            pins=Pins(policy.digest, policy.contract.digest),
            launches=servers.launches(),
            ledger=MemoryLedger("stdio", LIVE_TABLE),
            dispatcher=servers,
            machine=CountingMachine(HOST),
            clock=clock,
            chance=SystemChance(),
            keys=KEYS,
        )
        session = broker.session(broker.seal(run="stdio-run", principal="agent", vm=VM, host=HOST, task="t-1"))
        looked = broker.propose(session, LOOKING)
        assert (looked.state, servers.calls) == (State.SUCCEEDED, {"lba": 1, "synthetic-ui": 0})

        assert broker.propose(session, choosing(APPROVE | {"targetId": "Approve"})).reason is Reason.WRONG_TARGET
        chosen = broker.propose(session, choosing(APPROVE))
        assert (chosen.state, servers.calls) == (State.SUCCEEDED, {"lba": 1, "synthetic-ui": 1})
        for again in (APPROVE, HOLD):
            assert broker.propose(session, choosing(again)).reason is Reason.ALREADY_SELECTED
        assert servers.calls == {"lba": 1, "synthetic-ui": 1}

        servers.close()
        oracle = Oracle(7, "t-1")
        reading = oracle.judge(*servers.starts("synthetic-ui"))
        assert (reading.state, reading.disagreements) == ("approved", ())
        # What the client heard tells nothing of what the oracle knows.
        assert b"approved" not in chosen.result
        assert reading.correct_target.encode() not in looked.result


@promise("L4", "L13", "L16", "L17", "L18", "L19")
def test_call_choice_group_is_narrow_and_server_bound():
    step = compile_plan(a_policy(a_group()), "t-1").steps[0]
    assert [json.loads(each.arguments) for each in step.candidates] == [APPROVE, HOLD]
    assert {each.server for each in step.candidates} == {"synthetic-ui"}

    bench = a_choice()
    for other in ({"targetId": "cancel"}, {"taskId": "t-2"}, {"targetId": True}, {"force": True}):
        assert bench.propose(choosing({**APPROVE, **other})).reason in (
            Reason.WRONG_TARGET,
            Reason.ARGUMENTS_ALTERED,
            Reason.ARGUMENTS_INVALID,
        )
    assert bench.calls == NOTHING
    assert bench.propose(choosing(HOLD)).state is State.SUCCEEDED
    for again in (HOLD, APPROVE):
        assert bench.propose(choosing(again)).reason is Reason.ALREADY_SELECTED
    assert bench.calls == ONE_CLICK

    # A failure makes the group terminal just the same, and is never retried.
    failing = a_choice()
    failing.world._answer = lambda claimed: failing.world.replied(b'{"content":[],"isError":true}', failed=True)
    assert failing.propose(choosing(APPROVE)).state is State.FAILED
    for again in (APPROVE, HOLD):
        assert failing.propose(choosing(again)).reason is Reason.ALREADY_SELECTED
    assert failing.calls == ONE_CLICK

    # Alive when it was selected, expired when it was to be sent.
    late = a_choice()
    late.at(Moment.CLAIMED, lambda: late.clock.advance(LIFETIME))
    assert late.propose(choosing(APPROVE)).state is State.EXPIRED
    assert late.calls == NOTHING


@promise("L1", "L5")
def test_call_choice_groups_are_rejected_for_legacy_single_server_contract():
    bench = LiveBench(a_policy(LOOK, a_group(server="lba"), contract=ONE_SERVER))
    with pytest.raises(DocumentError) as caught:
        bench.seal()
    assert [problem.reason for problem in caught.value.problems] == [Reason.GROUP_LEGACY]
    assert bench.ledger.runs() == ()
    assert bench.calls == {"lba": 0}

    # Without the group the same contract still works as it did.
    plain = a_bench(LOOK, contract=ONE_SERVER)
    assert plain.propose(LOOKING).state is State.SUCCEEDED
    assert plain.calls == {"lba": 1}


@promise("L8", "L9")
def test_call_choice_candidates_remain_bound_to_trusted_policy_after_grant_rehash():
    bench = a_bench()
    content = json.loads(bench.sealed.content)
    content["plan"]["steps"][1]["candidates"]["hold"]["targetId"] = "wipe"
    widened = evolve(bench.policy, steps=(LOOK, a_group(approve=APPROVE, hold={**HOLD, "targetId": "wipe"})))
    content["plan"]["policy"] = bench.policy.digest
    assert widened.digest != bench.policy.digest

    forged = SealedGrant.seal(canonical_bytes(content), KEYS.key(Purpose.GRANT))
    assert forged.digest == digest_of("grant@1", forged.content)
    session = bench.session._replace(grant=forged.digest)
    reborn = bench.a_broker()
    assert reborn.open(forged.data, session).reason is Reason.GRANT_NOT_FROM_POLICY
    wipe = choosing({**HOLD, "targetId": "wipe"})
    assert reborn.propose(session, wipe).reason is Reason.UNKNOWN_GRANT
    assert bench.calls == NOTHING

    # The broker that sealed the true grant still decides by its own snapshot.
    bench.chosen()
    assert bench.propose(wipe).reason is Reason.WRONG_TARGET
    assert bench.propose(choosing(HOLD)).state is State.SUCCEEDED
    assert bench.calls == {"lba": 1, "synthetic-ui": 1}
