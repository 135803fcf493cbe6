"""Contracts pinned from real servers, and from all that the project ships, meet what they pin."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from marks import promise
from router_bench import CLOCK, answer, soon

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import NotSent, Observation, Replied
from assisted_benchmark.mcp_router.router import Router

ROOT = Path(__file__).parents[3]
CONTRACTS = ROOT / "contracts"


def the_contract(name):
    return load_contract(CONTRACTS / f"{name}.contract.yaml", ROOT)


def a_call(server, tool, **arguments):
    data = canonical_bytes(arguments)
    return Claimed(Admitted(b"group", digest_of("candidate@1", data), server, tool, data), "run-1")


def sent(router, server, tool, **arguments):
    return router.send(a_call(server, tool, **arguments), gate=lambda: True, deadline=soon(60))


@pytest.fixture
def routed(launcher):
    """A router over a contract of the project, whose servers are as pinned."""
    routers = []

    def route(name):
        contract = the_contract(name)
        routers.append(Router(contract, CONTRACTS, CLOCK, launcher))
        launches = routers[-1].launches()
        for server in contract.servers:
            seen = routers[-1].observe(server.id, fresh=False, deadline=soon(60))
            assert seen == Observation(launches[server.id], server.tools_digest, ())
        return routers[-1]

    yield route
    for router in routers:
        assert all(ending.left == () for endings in router.close().values() for ending in endings)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    who = {"NAME": "A. Author", "EMAIL": "author@example.org", "DATE": "2030-01-01T00:00:00Z"}
    env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    env |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (
        ["init", "-q", str(folder)],
        ["-C", str(folder), "commit", "-q", "--allow-empty", "-m", "the first"],
    ):
        subprocess.run(["git", *command], env=env, check=True)
    return folder


@promise("L14", "W11", "W12")
def test_the_real_git_server_is_as_pinned_and_shares_nine_names_with_a_peer_that_gets_no_call_of_it(routed, repository):
    contract = the_contract("real-git")
    names = [{tool.name for tool in server.tools} for server in contract.servers]
    assert (len(names[0]), len(names[1]), len(names[0] & names[1])) == (12, 9, 9)
    router = routed("real-git")
    log = sent(router, "git", "git_log", repo_path=str(repository), max_count=1)
    assert isinstance(log, Replied)
    assert not log.failed
    text = json.loads(log.result)["content"][0]["text"]
    assert "the first" in text
    assert "A. Author" in text
    assert router.calls == {"git": 1, "git-mirror": 0}
    mirrored = sent(router, "git-mirror", "git_log")
    assert json.loads(mirrored.result)["content"][0]["text"] == "git_log of the mirror"
    assert router.calls == {"git": 1, "git-mirror": 1}
    only_git = sent(router, "git-mirror", "git_create_branch")
    assert isinstance(only_git, NotSent)
    assert router.calls == {"git": 1, "git-mirror": 1}


@promise("W11", "W12")
def test_the_real_time_server_is_as_pinned_whatever_time_zone_the_harness_is_in(routed, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    router = routed("real-time")
    now = sent(router, "time", "get_current_time", timezone="UTC")
    assert answer(now)["timezone"] == "UTC"
    assert router.calls == {"time": 1}
    again = router.observe("time", fresh=True, deadline=soon(60))
    assert again.drift == ()
    assert router.calls == {"time": 1}


@promise("W12")
@pytest.mark.parametrize("name", ["lba-and-synthetic-ui", "lba-legacy"])
def test_the_servers_of_the_reference_contracts_are_as_pinned(routed, name):
    routed(name)
