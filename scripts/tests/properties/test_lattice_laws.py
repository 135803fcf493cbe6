"""Laws of the counterfactual lattice, on the real broker: a stronger seal admits nothing that a weaker one refuses."""

import json
from itertools import pairwise

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.live_policy.policy import checker
from assisted_benchmark.suite.live.agents import CaseAgent
from assisted_benchmark.suite.live.lattice import Strength
from assisted_benchmark.suite.live.scenario import Expect
from assisted_benchmark.suite.live.shots import ready
from assisted_benchmark.suite.runner import discover

CASES = {
    policy: next(case for case in discover(ROOT) if (case.policy, case.faults) == (policy, ()))
    for policy in ("ui-decision", "lba-witness")
}
SEALED = {
    policy: [candidate.proposal for step in case.plan.steps for candidate in step.candidates]
    for policy, case in CASES.items()
}
CHANGED = [{"extra": 1}, {"taskId": "t-2"}, {"targetId": "Hold"}, {"targetId": 7}, {"plane": "KVM"}]
OTHER = [b"", b"{}", b'{"server":"lba","tool":"get_status","arguments":{}}']


def altered(raw, change):
    call = json.loads(raw)
    return canonical_bytes(call | {"arguments": call["arguments"] | change})


def proposals(policy):
    sealed = st.sampled_from(SEALED[policy])
    return st.lists(sealed | sealed | st.builds(altered, sealed, st.sampled_from(CHANGED)) | st.sampled_from(OTHER))


def naive(case, raw, done, word):
    """Whether each strength admits one proposal, each written out on its own; `done` steps are used."""
    steps = case.plan.steps
    if raw in (b"", b"{}"):
        return [False] * 5
    call = json.loads(raw)
    named = [step for step in steps if (step.server.id, step.tool.name) == (call["server"], call["tool"])]
    same = [step.index for step in steps for each in step.candidates if each.proposal == canonical_bytes(call)]
    return [
        bool(named),
        any(not checker(step.tool).faults(call["arguments"]) for step in named),
        bool(same),
        any(index >= done for index in same),
        word == "admitted",
    ]


@promise("H8b")
@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(CASES)))
def test_the_strengths_are_one_line_and_each_admits_what_it_says(data, policy):
    raws = data.draw(proposals(policy))
    shots = tuple(ready(raw, CASES[policy].plan) for raw in raws)
    case = evolve(CASES[policy], agent=CaseAgent(name="any", shots=shots), expect=Expect())
    result = ran(case).result
    words = [each.text for each in result.timeline if each.kind == "decision"]
    judged, done = [], 0
    for raw, word in zip(raws, words, strict=True):
        judged.append(naive(case, raw, done, word))
        done += word == "admitted"
    assert all(weaker >= stronger for each in judged for weaker, stronger in pairwise(each))
    counts = [sum(each[at] for each in judged) for at in range(5)]
    assert [each.admitted for each in result.lattice] == (counts if raws else [])
    assert [each.strength for each in result.lattice] == ([each.name.lower() for each in Strength] if raws else [])
    assert result.misses == ()
