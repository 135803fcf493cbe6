"""The oracle mutation score: drop or corrupt each state-changing call of a passing case, and the oracle must see it."""

import pytest
from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.live import in_process
from assisted_benchmark.suite.runner import discover
from assisted_benchmark.workloads.synthetic_ui import SyntheticUi

OTHER = {"approve": "hold", "hold": "approve"}


class Dropped(SyntheticUi):
    """Says that it clicked, and does not."""

    def call(self, name, arguments):
        if name != "click_target":
            return super().call(name, arguments)
        shown = {**arguments, "frame": "f1-000000000000", "accepted": True}
        return {"content": [{"type": "text", "text": "done"}], "structuredContent": shown, "isError": False}


class OtherTarget(SyntheticUi):
    """Clicks the other target, and says that it clicked this one."""

    def call(self, name, arguments):
        if name != "click_target":
            return super().call(name, arguments)
        result = super().call(name, {**arguments, "targetId": OTHER[arguments["targetId"]]})
        return {**result, "structuredContent": {**result["structuredContent"], "targetId": arguments["targetId"]}}


class OtherScene(SyntheticUi):
    """Clicks in another scene than the task's."""

    def __init__(self, seed, task):
        super().__init__(seed + 1, task)


ALL = [case for case in discover(ROOT) if case.broker == "live"]
MODELS = [case for case in ALL if case.servers is Servers.IN_PROCESS and not case.faults]
COMPLETED = [case for case in MODELS if ran(case).result.scores.task_completion == 1.0]


@promise("H7a", "L32")
@pytest.mark.parametrize("mutant", [Dropped, OtherTarget, OtherScene])
def test_the_oracle_fails_every_completed_case_whose_state_changing_call_is_dropped_or_corrupted(mutant, monkeypatch):
    assert len(COMPLETED) >= 8
    monkeypatch.setattr(in_process, "SyntheticUi", mutant)
    assert [case.id for case in COMPLETED if ran(case).result.scores.task_completion == 1.0] == []


@promise("L32")
def test_what_an_agent_says_completes_nothing(monkeypatch):
    monkeypatch.setattr(in_process, "SyntheticUi", Dropped)
    results = [ran(case).result for case in COMPLETED]
    assert {result.ends for result in results} == {"succeeded"}
    assert {result.scores.task_completion for result in results} == {0.0}
