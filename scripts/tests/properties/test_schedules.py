"""Real brokers over real ledgers, in every order of their steps: nothing is sent twice, and no record lies."""

import json
import threading

import pytest
from marks import promise

from assisted_benchmark.capability.operations import Operations
from assisted_benchmark.live_policy.carrying import Carrier
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.live_policy.states import State
from proofs import scheduler, schedules
from proofs.capability_world import CapabilityWorld
from proofs.live_world import LiveWorld
from proofs.scheduler import Act, Tried, explore, step
from proofs.schedules import Plan, holds, plans, tried

pytestmark = pytest.mark.no_cover  # long loops over little code, which other tests cover

QUICK = plans(quick=True)


@promise("K17", "K11", "K13")
@pytest.mark.parametrize("plan", [each for each in QUICK if not each.wrong], ids=str)
def test_in_no_order_of_their_steps_do_brokers_send_twice_or_record_what_is_not_so(plan):
    found = tried(plan)
    assert (found.wrong, found.first) == (0, None)
    assert found.schedules >= 8


@promise("K17", "K13")
@pytest.mark.parametrize("plan", [each for each in QUICK if each.wrong], ids=str)
def test_brokers_over_a_wrong_ledger_send_twice_in_some_order(plan):
    found = tried(plan)
    assert found.wrong == 1
    assert "2 times" in found.first[1]


@promise("K17", "C22")
def test_the_schedules_find_two_executions_where_a_key_is_not_looked_up_under_other_grants(monkeypatch):
    plan = Plan(CapabilityWorld, ("call", "call again"), preemptions=2)
    assert tried(plan).wrong == 0
    monkeypatch.setattr(Operations, "_met_under_another_grant", lambda *_: None)
    assert tried(plan).first[1] == "executed 2 times"


@promise("K17", "L17")
def test_the_schedules_find_a_success_that_is_told_of_a_call_that_was_given_up(monkeypatch):
    plan = Plan(LiveWorld, ("approve", "revoke elsewhere"), preemptions=2)
    assert tried(plan).wrong == 0
    monkeypatch.setattr(Carrier, "_given_up", lambda self, way, flight, draft: self._told_anyway(way, draft))
    monkeypatch.setattr(
        Carrier,
        "_told_anyway",
        lambda self, way, draft: Outcome(State.SUCCEEDED, None, draft.id, way.permit),
        raising=False,
    )
    assert tried(plan).first[1] == "told that it succeeded, and recorded as unresolved"


class Counting:
    """Two acts of two steps each, which write down who did what; `worlds` keeps every world."""

    worlds = []

    def __init__(self, *, fails="", blocks=False):
        self.done = []
        self.lock = threading.Lock()
        self.acts = [
            Act(name, place, lambda name=name: self.do(name, fails, blocks)) for place, name in enumerate("ab")
        ]
        self.worlds.append(self)

    def do(self, name, fails, blocks):
        if blocks:
            with self.lock:
                step("inside")
        for number in (1, 2):
            self.done.append(f"{name}{number}")
            step(f"after {number}")
        if name == fails:
            raise ValueError(name)
        self.done.append(f"{name}3")

    def ends(self):
        return ""


@pytest.fixture
def worlds():
    Counting.worlds = []
    return Counting.worlds


@promise("K17")
def test_every_order_of_two_threads_with_three_acts_each_is_tried_once(worlds):
    found = explore(Counting)
    orders = ["".join(each.done) for each in worlds]
    assert found == Tried(20, 0, None)  # 6 over 3
    assert len(set(orders)) == 20
    assert all(sorted(each.done) == ["a1", "a2", "a3", "b1", "b2", "b3"] for each in worlds)


@promise("K17")
def test_a_process_dies_at_every_step_of_every_order(worlds):
    explore(Counting, preemptions=0, deaths=1)
    ends = {"".join(each.done) for each in worlds}
    # One after the other, whole, or one of them as far as it came.
    assert {
        "a1a2a3b1b2b3",
        "b1b2b3a1a2a3",
        "b1b2b3",
        "a1b1b2b3",
        "a1a2b1b2b3",
        "a1a2a3",
        "a1a2a3b1",
        "a1a2a3b1b2",
    } <= ends
    assert not any("3" in end.replace("a3", "").replace("b3", "") for end in ends)


@promise("K17")
def test_without_preemptions_threads_run_one_after_the_other(worlds):
    assert explore(Counting, preemptions=0).schedules == 2
    assert ["".join(each.done) for each in worlds] == ["a1a2a3b1b2b3", "b1b2b3a1a2a3"]


def test_what_an_act_raises_is_what_is_wrong(worlds):
    found = explore(lambda: Counting(fails="b"), preemptions=0)
    assert (found.schedules, found.wrong) == (2, 2)
    assert found.first[1] == "b: ValueError: b"
    assert explore(lambda: Counting(fails="b"), preemptions=0, until_wrong=True).schedules == 1


def test_a_thread_that_waits_for_another_between_two_steps_is_told(worlds, monkeypatch):
    monkeypatch.setattr(scheduler, "_PATIENCE_S", 0.01)
    with pytest.raises(AssertionError) as caught:
        explore(lambda: Counting(blocks=True))
    assert str(caught.value) == "`b` waits for another thread, between two steps, at start"


def test_outside_of_a_schedule_a_step_is_nothing():
    assert step("anywhere") is None


def test_the_command_says_what_it_tried(monkeypatch, capsys):
    some = [QUICK[17], QUICK[-8]]
    monkeypatch.setattr(schedules, "plans", lambda quick: some)
    assert schedules.main(["--jobs", "1", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["wrong"], first["must_go_wrong"], second["wrong"], second["must_go_wrong"]) == (0, False, 1, True)
    assert second["way"]
    assert schedules.main(["--jobs", "1"]) == 0
    assert "1 of 1 wrong ledgers caught" in capsys.readouterr().out


def test_a_wrong_ledger_that_is_not_caught_fails_and_so_does_a_right_one_that_is():
    clean, doubled = Tried(5, 0, None), Tried(5, 1, (("a step",), "sent 2 times"))
    right, wrong = QUICK[0], QUICK[-1]
    assert [holds(right, clean), holds(right, doubled), holds(wrong, clean), holds(wrong, doubled)] == [
        True,
        False,
        False,
        True,
    ]
    assert len(plans()) > len(QUICK)
