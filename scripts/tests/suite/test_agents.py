"""Agents: what they hear, and the two that check the harness itself."""

import pytest
from marks import promise
from suite_world import a_root, cases_in, ran, scenario

from assisted_benchmark.suite.live.agents import CaseAgent, Heard, PlanAgent, Shot
from assisted_benchmark.workloads.oracle import Claim

READ, YES, NO = Shot(raw=b"read"), Shot(raw=b"yes"), Shot(raw=b"no")
PLAN = ({"call": READ}, {"approve": YES, "hold": NO})


def told(word="admitted", **shown):
    return Heard(word, "r-1", {"structuredContent": shown} if shown else None)


@promise("H7a")
@pytest.mark.parametrize(("reading", "shot"), [(50, YES), (51, NO)])
def test_the_oracle_agent_decides_from_what_the_tools_showed_it(reading, shot):
    agent = PlanAgent(PLAN)
    assert agent.next(None) is READ
    assert agent.next(told(reading=reading, limit=50, frame="f0-1")) is shot
    assert agent.claim() == Claim(reading, 50, "f0-1")
    assert agent.next(told(frame="f1-1")) is None
    assert agent.claim() == Claim(reading, 50, "f1-1")


def test_an_agent_that_was_shown_nothing_takes_the_first_and_claims_nothing():
    agent = PlanAgent(PLAN)
    agent.next(None)
    assert agent.next(told()) is YES
    assert agent.claim() is None


def test_a_plan_ends_where_it_is_refused():
    agent = PlanAgent(PLAN, "hold")
    agent.next(None)
    assert agent.next(told("not_authorised")) is None


def test_a_script_does_not_listen_and_claims_nothing():
    agent = CaseAgent(name="script", shots=(YES, NO)).begin()
    assert [agent.next(None), agent.next(told("spent")), agent.next(None)] == [YES, NO, None]
    assert agent.claim() is None


@promise("H7a", "L32")
@pytest.mark.parametrize("seed", range(12))
def test_the_oracle_agent_scores_one_and_the_idle_one_nothing_whatever_the_scene(tmp_path, seed):
    root = a_root(
        tmp_path,
        tried=scenario(
            "tried",
            f"run: {{seed: {seed}}}\nagent: nop\ncases: {{oracle: {{agent: oracle}}, nop: {{}}}}\n",
            policy="ui-reading",
        ),
    )
    best, idle = (ran(case).result.scores for case in cases_in(root).values())
    assert (best.state_grounding, best.action_correctness, best.task_completion) == (1.0, 1.0, 1.0)
    assert (idle.state_grounding, idle.action_correctness, idle.task_completion) == (None, 0.0, 0.0)
