"""The official conformance suite against the gateway over HTTP, in both eras; what it finds lacking is written down."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from marks import promise

PEERS = Path(__file__).parent / "peers"
SUITE = "@modelcontextprotocol/conformance"
FOUND = ("FAILURE", "WARNING")

# How many scenarios a revision has; if another release of the suite has others, look at what they say.
SCENARIOS = {"2025-11-25": 33, "2026-07-28": 50}


def expected_of(revision):
    return yaml.safe_load((PEERS / f"conformance-{revision}.yaml").read_text())["server"]


def judged(expected, outcomes):
    """What failed and is not expected to, and what is expected to and did not; an entry is a scenario, or one check."""
    failed = {(scenario, check) for scenario, checks in outcomes.items() for check, bad in checks.items() if bad}
    excused = {each for each in failed if each[0] in expected or ":".join(each) in expected}
    used = {entry for scenario, check in excused for entry in (scenario, f"{scenario}:{check}")}
    return sorted(failed - excused), sorted(set(expected) - used)


def ran(peers, revision, folder):
    """Each scenario's checks, and whether one of that name failed."""
    launch = [sys.executable, str(PEERS / "conformance_server.py")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(launch, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        words = [peers.node, peers.program(SUITE), "server", "--url", server.stdout.readline().strip()]
        done = subprocess.run(
            [*words, "--requirements", revision, "--output-dir", folder],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        server.stdin.close()
    assert server.returncode == 0
    outcomes = {}
    for each in folder.glob("server-*/checks.json"):
        scenario = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[0-9Z-]+", each.parent.name)[1]
        checks = outcomes.setdefault(scenario, Counter())
        for check in json.loads(each.read_text()):
            checks[check["id"]] += check["status"] in FOUND
    assert len(outcomes) == SCENARIOS[revision], done.stdout + done.stderr
    return outcomes


@pytest.mark.npm
@promise("W1", "W16")
@pytest.mark.parametrize("revision", SCENARIOS)
def test_the_conformance_suite_finds_lacking_what_is_written_down_and_nothing_else(peers, tmp_path, revision):
    assert judged(expected_of(revision), ran(peers, revision, tmp_path)) == ([], [])


def test_what_fails_unexpectedly_and_what_is_expected_to_and_passes_are_both_found():
    outcomes = {"one": {"a": 1, "b": 0}, "two": {"c": 2}, "three": {"d": 0}}
    assert judged(["one:a", "two"], outcomes) == ([], [])
    assert judged(["two"], outcomes) == ([("one", "a")], [])
    assert judged(["one:a", "one:b", "two", "three", "four"], outcomes) == ([], ["four", "one:b", "three"])


@pytest.mark.parametrize("revision", SCENARIOS)
def test_every_expected_failure_stands_under_its_reason(revision):
    lines = [line.strip() for line in (PEERS / f"conformance-{revision}.yaml").read_text().splitlines()]
    assert lines[lines.index("server:") + 1].startswith("# ")
