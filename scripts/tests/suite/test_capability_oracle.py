"""The oracle of operations: one that is dropped, altered, doubled or at another instance is seen, whatever is told."""

from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.suite.capability import world
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, select
from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost

CASES = [each for each in discover(ROOT) if each.broker == "capability" and each.servers is Servers.IN_PROCESS]
EXECUTING = [case for case in CASES if ran(case).result.confirmed]
COMPLETED = [case for case in EXECUTING if ran(case).result.scores.task_completion == 1.0]


class Dropped(InProcessHost):
    """Answers as if it had executed, and by its own account it has not."""

    def reading(self):
        return super().reading()._replace(executions=(), made=())


class Corrupted(InProcessHost):
    """Executes with other parameters than it was given."""

    def request(self, claimed, envelope, **more):
        other = claimed.permit.arguments.replace(b"{", b"{ ", 1)
        return super().request(claimed._replace(permit=claimed.permit._replace(arguments=other)), envelope, **more)


class Doubled(InProcessHost):
    """Writes the request twice, the second time under a receipt that nobody wrote."""

    def request(self, claimed, envelope, **more):
        reply = super().request(claimed, envelope, **more)
        super().request(claimed, envelope._replace(receipt_id="made-up"), **{**more, "gate": lambda: True})
        return reply


@promise("H7a")
def test_the_oracle_fails_every_case_whose_operation_is_dropped(monkeypatch):
    assert len(EXECUTING) >= 100
    monkeypatch.setattr(world, "InProcessHost", Dropped)
    assert [case.id for case in EXECUTING if ran(case).result.verdict is Verdict.PASSED] == []


@promise("H7a", "C23")
def test_the_oracle_fails_every_case_whose_operation_is_executed_twice(monkeypatch):
    once = {case.id: ran(case).result.confirmed for case in EXECUTING}
    monkeypatch.setattr(world, "InProcessHost", Doubled)
    results = [ran(case).result for case in EXECUTING]
    # A host that is gone, or has published anew, by the second time has executed one.
    twice = [result for result in results if sum(count for _, count in result.calls) > once[result.id]]
    assert len(twice) >= 100
    assert [result.id for result in twice if result.verdict is Verdict.PASSED] == []


@promise("H7a")
def test_the_oracle_gives_no_point_for_an_operation_with_other_parameters(monkeypatch):
    assert len(COMPLETED) >= 20
    monkeypatch.setattr(world, "InProcessHost", Corrupted)
    assert [case.id for case in COMPLETED if ran(case).result.scores.task_completion == 1.0] == []


@promise("H7a")
def test_what_an_agent_is_told_completes_nothing(monkeypatch):
    monkeypatch.setattr(world, "InProcessHost", Dropped)
    results = [ran(case).result for case in COMPLETED]
    assert {result.ends for result in results} == {"completed"}
    assert {(result.scores.state_grounding, result.scores.task_completion) for result in results} == {(0.0, 0.0)}


@promise("H7a")
def test_the_sanity_agents_of_operations_score_one_and_nought():
    oracle, nop = select(CASES, ids={"capability/sanity-agents/oracle", "capability/sanity-agents/nop"})
    one, nought = ran(oracle).result.scores, ran(nop).result.scores
    assert (one.state_grounding, one.action_correctness, one.task_completion) == (1.0, 1.0, 1.0)
    assert (nought.state_grounding, nought.action_correctness, nought.task_completion) == (None, 0.0, 0.0)
