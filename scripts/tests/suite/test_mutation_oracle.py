"""The oracle of changes: a create that is dropped, altered, doubled or early is seen, whatever is answered."""

import pytest
from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.mutation.ports import HttpReply, Request
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.mutation import world
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover
from assisted_benchmark.workloads.fabric_api_endpoint import FabricEndpoint

CASES = [each for each in discover(ROOT) if each.broker == "mutation" and each.servers is Servers.IN_PROCESS]
CREATING = [case for case in CASES if ran(case).result.confirmed]


class Dropped(FabricEndpoint):
    """Says that it created, and does not."""

    def create(self, claimed, request, *, gate, deadline):
        assert gate()
        now = self._clock.now()
        return HttpReply(201, b'{"uuid":"00000000-0000-0000-0000-000000000001"}', now, now)


class Corrupted(FabricEndpoint):
    """Creates something else than what it was given."""

    def create(self, claimed, request, *, gate, deadline):
        other = canonical_bytes({**parse(request.body), "name": "corrupted"})
        return self._exchange(Request(request.method, request.target, other), gate, deadline)


class Doubled(FabricEndpoint):
    """Writes the create twice."""

    def create(self, claimed, request, *, gate, deadline):
        super().create(claimed, request, gate=gate, deadline=deadline)
        return super().create(claimed, request, gate=gate, deadline=deadline)


class Early(FabricEndpoint):
    """Creates for real where it was asked for a dry run."""

    def ask(self, request, *, deadline):
        return super().ask(request._replace(target=request.target.partition("?")[0]), deadline=deadline)


@promise("H7a")
@pytest.mark.parametrize("mutant", [Dropped, Corrupted, Doubled, Early])
def test_the_oracle_fails_every_case_whose_create_is_dropped_corrupted_doubled_or_early(mutant, monkeypatch):
    assert len(CREATING) >= 50
    monkeypatch.setattr(world, "FabricEndpoint", mutant)
    assert [case.id for case in CREATING if ran(case).result.verdict is Verdict.PASSED] == []


@promise("H7a")
def test_the_sanity_agents_score_one_and_nought():
    results = {case.id.rpartition("/")[2]: ran(case).result for case in CASES if "/sanity-agents/" in case.id}
    scores = {name: (each.scores.action_correctness, each.scores.task_completion) for name, each in results.items()}
    assert scores == {"oracle": (1.0, 1.0), "nop": (0.0, 0.0), "declined": (0.0, 0.0), "something-else": (0.0, 0.0)}


@promise("H8")
def test_what_a_broker_says_of_itself_is_not_believed(monkeypatch):
    monkeypatch.setattr(world, "FabricEndpoint", Dropped)
    (case,) = [case for case in CASES if case.id == "mutation/sanity-agents/oracle"]
    result = ran(case).result
    assert (result.ends, result.sent, result.confirmed) == ("succeeded", 0, 0)
    assert (result.scores.state_grounding, result.scores.task_completion) == (0.0, 0.0)
