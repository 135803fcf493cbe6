"""Pinned digests and decisions: a change of framing, of an order or of a reason shows here."""

import pytest
from live_bench import (
    ASK,
    LOOK,
    LOOKING,
    ONE_SERVER,
    SERVERS,
    a_bench,
    a_group,
    asking,
)
from marks import promise

from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.grant import group_key

ASKED = asking("lba", "get_status", {"verbose": True})
TRIED = (
    b"nonsense",
    asking("elsewhere", "get_status", {}),
    asking("lba", "get_nothing", {}),
    ASKED,
    asking("lba", "get_benchmark_series", {"force": True}),
    LOOKING,
    LOOKING,
    asking("lba", "get_status", {"verbose": 1}),
    asking("lba", "get_status", {"verbose": False}),
    ASKED,
    ASKED,
    LOOKING,
)
DECIDED = [
    "malformed_call",
    "unknown_server",
    "unknown_tool",
    "skipped",
    "arguments_invalid",
    "succeeded",
    "replayed",
    "arguments_invalid",
    "arguments_altered",
    "succeeded",
    "already_selected",
    "replayed",
]


def told(answer):
    return answer.state.value if answer.reason is None else answer.reason.value


@promise("L1")
def test_single_calls_over_a_server_set_and_over_a_legacy_contract_are_decided_as_ever():
    for contract in (SERVERS, ONE_SERVER):
        bench = a_bench(LOOK, ASK, contract=contract)
        assert [told(bench.propose(raw)) for raw in TRIED] == DECIDED
        assert bench.calls == {server.id: 2 if server.id == "lba" else 0 for server in contract.servers}


PINNED = {
    "server set": (
        SERVERS,
        (LOOK, ASK),
        "sha256:dae93236bca5a9a4f3351ef0ca9884bcde8edd758f126ec287552e8a5dee785e",
        "sha256:815bb6d45493f3669a2865315a659f351aa9450bd6184d86dbf96a9683ce74f7",
        "sha256:4b2588b7e59b3db22c9a14a14ed48acd35994e15e77903c966f8e1b305beef80",
        "4b2588b7e59b3db22c9a14a14ed48acd35994e15e77903c966f8e1b305beef81",
    ),
    "legacy": (
        ONE_SERVER,
        (LOOK, ASK),
        "sha256:908e24622af36a5dd0e774707ce1a00f6b526010b992b912855d1c54184a309c",
        "sha256:815bb6d45493f3669a2865315a659f351aa9450bd6184d86dbf96a9683ce74f7",
        "sha256:706b026bcc3d48f75148170671532bcf382198e9e276478566c8eb21dce861cd",
        "706b026bcc3d48f75148170671532bcf382198e9e276478566c8eb21dce861cc",
    ),
    "choice group": (
        SERVERS,
        (LOOK, a_group()),
        "sha256:c2b345e6e0d25d7fd1c0efbda7b2eaf38de21a33f59a5bd5a5f1b93a83265f46",
        "sha256:e8a33d67f7c31a7a33ea27f49951028effee122f94d0e51ea51d5c4697455d53",
        "sha256:a723dbe17709f0f7c4bc9ba2eb8090ffc1c93a71093b879a3da01070a6746326",
        "a723dbe17709f0f7c4bc9ba2eb8090ffc1c93a71093b879a3da01070a6746327",
    ),
}


@promise("K4", "L1")
@pytest.mark.parametrize(("contract", "steps", "policy", "candidate", "grant", "group"), PINNED.values(), ids=PINNED)
def test_digests_of_policies_candidates_grants_and_groups_are_as_ever(contract, steps, policy, candidate, grant, group):
    bench = a_bench(*steps, contract=contract)
    step = compile_plan(bench.policy, "t-1").steps[1]
    assert bench.policy.digest == policy
    assert step.candidates[0].digest == candidate
    assert bench.session.grant == grant
    assert group_key(bench.session.grant, 1).hex() == group


@promise("K5")
def test_the_mac_of_the_reference_grant_is_as_ever():
    assert a_bench().sealed.mac.hex() == "5f0592d2f3081de9ba48e60b9783713ea065176610febeb9b15f1f8d6b7db051"
