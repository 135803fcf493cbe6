"""Whatever fault strikes at whatever moment, the case has a verdict: what can be written can be played."""

import json

import pytest
from marks import promise
from suite_world import a_root

from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.capability import faults as capability
from assisted_benchmark.suite.capability import scenario_shape as capability_shape
from assisted_benchmark.suite.live import faults as live
from assisted_benchmark.suite.live import scenario_shape as live_shape
from assisted_benchmark.suite.mutation import faults as mutation
from assisted_benchmark.suite.mutation import scenario_shape as mutation_shape
from assisted_benchmark.suite.plan import RunPlan
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover

# A value for each kind of fault whose value is not one of a few words.
LIVE = {
    live.Kind.ADVANCE: ["1s"],
    live.Kind.SET_BACK: ["5s"],
    live.Kind.REBOOT: ["boot-2"],
    live.Kind.SERVER: [{"id": "synthetic-ui", "does": "hang_before"}],
    live.Kind.KILL: ["synthetic-ui"],
    live.Kind.SUBSTITUTE: ["synthetic-ui"],
    live.Kind.RACE: ["hold"],
    live.Kind.SETTING: [{"run": "run-2"}],
}
MUTATION = {
    mutation.Kind.ADVANCE: ["1s"],
    mutation.Kind.SET_BACK: ["5s"],
    mutation.Kind.REBOOT: ["boot-2"],
    mutation.Kind.ENDPOINT: [{"does": "fail_before"}],
}
CAPABILITY = {
    capability.Kind.ADVANCE: ["1s"],
    capability.Kind.SET_BACK: ["5s"],
    capability.Kind.HOST: [{"does": "hang_before"}],
}
BROKERS = {
    "live": ("scenario", "policy: ui-decision", "{plan: approve}", live, live_shape.FAULTS, LIVE),
    "mutation": ("mutation-scenario", "changes: fabric", "{plan: network}", mutation, mutation_shape.FAULTS, MUTATION),
    "capability": (
        "capability-scenario",
        "registry: pulp",
        "{script: [{request_grant: state/read}, {call: state/read, grant: last, request: r-1}]}",
        capability,
        capability_shape.FAULTS,
        CAPABILITY,
    ),
}


@promise("H5")
@pytest.mark.parametrize("broker", BROKERS)
def test_every_fault_can_strike_at_every_moment_and_the_case_has_a_verdict(tmp_path, broker):
    schema, contract, agent, faults, written, values = BROKERS[broker]
    turn = agent.count("{") - 1 or 1
    cases = {
        f"{kind}-{number}-at-{at}".replace("_", "-"): {"faults": [{kind.value: value, "at": at.value, "turn": turn}]}
        for kind, (shape, _) in written.kinds.items()
        for number, value in enumerate(values.get(kind) or shape.words)
        for at in tuple(faults.At)[kind in written.needs_grant :]
    }
    root = a_root(tmp_path)
    folder = root / "fixtures" / broker
    folder.mkdir(exist_ok=True)
    head = f"schema: assisted-benchmark/{schema}@1\nid: any\n{contract}\nagent: {agent}\n"
    (folder / "any.scenario.yaml").write_text(f"{head}cases: {json.dumps(cases)}\n")
    bench = Bench(RunPlan(durability="memory"))
    try:
        came = {case.id: bench.run(case).result for case in discover(root)}
    finally:
        bench.close()
    assert len(came) == len(cases)
    failed = {name: result.detail for name, result in came.items() if result.verdict is Verdict.COULD_NOT_RUN}
    assert failed == {}


def test_a_tool_of_no_name_is_a_tool_that_is_not_there(tmp_path):
    root = a_root(tmp_path)
    folder = root / "fixtures" / "capability"
    folder.mkdir(exist_ok=True)
    agent = 'agent: {script: [{tool: "", arguments: {}, comes_to: unknown_operation}]}\nexpect: {executed: {}}'
    (folder / "none.scenario.yaml").write_text(
        f"schema: assisted-benchmark/capability-scenario@1\nid: none\nregistry: pulp\n{agent}\n"
    )
    bench = Bench(RunPlan(durability="memory"))
    try:
        (case,) = discover(root)
        result = bench.run(case).result
    finally:
        bench.close()
    assert result.verdict is Verdict.PASSED, result.misses
