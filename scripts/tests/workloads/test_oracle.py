import ast
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.workloads import oracle as oracle_module
from assisted_benchmark.workloads import synthetic_ui
from assisted_benchmark.workloads.oracle import Claim, Oracle, OracleReading, Score, score
from assisted_benchmark.workloads.synthetic_ui import Scene, SyntheticUi

AUTHORISED = ("approve", "hold")
SEEDS = st.integers(0, 2**53 - 1)


def played(*targets, seed=7):
    """A UI in which the task was read, each target clicked, and the task read again."""
    ui = SyntheticUi(seed, "t-1")
    ui.call("read_task", {"taskId": "t-1"})
    for target in targets:
        ui.call("click_target", {"taskId": "t-1", "targetId": target})
    ui.call("read_task", {"taskId": "t-1"})
    return ui


def judged(*targets, seed=7):
    return Oracle(seed, "t-1").judge(played(*targets, seed=seed).events)


def test_the_oracle_reads_the_true_state_and_the_right_target():
    assert judged("approve") == OracleReading(
        state="approved",
        frames=("f0-e491b6127f40", "f1-14cce17bf830"),
        reading=51,
        limit=87,
        correct_target="approve",
        actions=("approve",),
    )


@given(SEEDS, st.sampled_from([(), ("approve",), ("hold",), ("hold", "approve"), ("Approve", "approve")]))
def test_oracle_and_generator_agree_on_every_seed(seed, targets):
    ui = played(*targets, seed=seed)
    shown = ui.call("read_task", {"taskId": "t-1"})["structuredContent"]
    reading = Oracle(seed, "t-1").judge(ui.events)
    assert reading.disagreements == ()
    assert (reading.reading, reading.limit, reading.frame) == (shown["reading"], shown["limit"], shown["frame"])
    assert reading.correct_target == ("approve" if shown["reading"] <= shown["limit"] else "hold")


def test_a_reading_at_the_limit_is_to_be_approved():
    at_limit = next(seed for seed in range(10_000) if (r := judged(seed=seed)).reading == r.limit)
    assert judged(seed=at_limit).correct_target == "approve"


def _swapped(seed, task):
    root, reading, limit = synthetic_ui.SOUND(seed, task)
    return Scene(root, limit, reading)


def _off_by_one(seed, task):
    root, reading, limit = synthetic_ui.SOUND(seed, task)
    return Scene(root, reading % 100 + 1, limit)


def _other_seed(seed, task):
    return synthetic_ui.SOUND(seed + 1, task)


def _little_endian(seed, task):
    root = synthetic_ui.SOUND(seed, task).root
    return Scene(root, *(number % 100 + 1 for number in struct.unpack_from("<II", root)))


@promise("L33")
@pytest.mark.parametrize("bug", [_swapped, _off_by_one, _other_seed, _little_endian])
def test_a_bug_in_the_scene_generator_is_flagged(monkeypatch, bug):
    monkeypatch.setattr(synthetic_ui, "SOUND", synthetic_ui.scene, raising=False)
    monkeypatch.setattr(synthetic_ui, "scene", bug)
    reading = judged("approve")
    assert reading.disagreements != ()
    assert score(reading, claimed=None, dispatched="approve", authorised=AUTHORISED).task_completion == 0.0


@promise("L33")
def test_a_bug_in_the_end_states_is_flagged(monkeypatch):
    monkeypatch.setattr(synthetic_ui, "_ENDS", {"approve": "held", "hold": "approved"})
    assert "event 2: state is 'held', the rule gives 'approved'" in judged("approve").disagreements


@promise("L33")
def test_a_second_click_that_the_workload_lets_through_is_flagged():
    ui = SyntheticUi(7, "t-1")
    for target in ("approve", "hold"):
        ui._state = "undecided"
        ui.call("click_target", {"taskId": "t-1", "targetId": target})
    reading = Oracle(7, "t-1").judge(ui.events)
    assert (reading.actions, reading.disagreements) == (
        ("approve", "hold"),
        ("event 2: the click on `hold` was not possible",),
    )


@promise("L33")
def test_each_start_is_judged_by_itself_and_what_was_done_before_it_still_counts():
    reading = Oracle(7, "t-1").judge(played("approve").events, played().events, played("approve").events)
    alone = Oracle(7, "t-1").judge(played("approve").events)
    assert (reading.state, reading.actions, reading.disagreements) == ("approved", ("approve", "approve"), ())
    assert reading.frames == alone.frames + alone.frames[:1] + alone.frames
    forgot = Oracle(7, "t-1").judge(played("approve").events, ())
    assert (forgot.state, forgot.actions) == ("undecided", ("approve",))
    joined = Oracle(7, "t-1").judge([*played("approve").events, *played("approve").events])
    assert joined.disagreements != ()
    later = Oracle(7, "t-1").judge((), [played("approve").events[0]._replace(kind="look")])
    assert later.disagreements[0] == "start 2, event 1: there is no `look` with the target ``"


@promise("L33")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda events: events[1:], id="the first event is missing"),
        pytest.param(lambda events: [events[0], events[2]], id="one is missing between"),
        pytest.param(lambda events: [events[1], events[0], events[2]], id="two are out of order"),
        pytest.param(lambda events: [events[0], *events], id="one comes twice"),
        pytest.param(lambda events: [events[0]._replace(kind="look"), *events[1:]], id="an unknown kind"),
        pytest.param(lambda events: [events[0]._replace(facts={}), *events[1:]], id="facts are missing"),
        pytest.param(lambda events: played("approve", seed=8).events, id="events of another seed"),
    ],
)
def test_an_altered_event_sequence_is_flagged(change):
    assert Oracle(7, "t-1").judge(change(played("approve").events)).disagreements != ()


@promise("L33")
def test_the_oracle_shares_no_code_with_the_generator():
    tree = ast.parse(Path(oracle_module.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any("synthetic_ui" in str(name) for name in imported)
    assert not any(
        "synthetic_ui" in alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names
    )


def scored(reading, *, claimed=None, dispatched="approve", authorised=AUTHORISED):
    return score(reading, claimed=claimed, dispatched=dispatched, authorised=authorised)


RIGHT_CLAIM = Claim(51, 87, "f0-e491b6127f40")


@promise("L32")
def test_the_right_authorised_action_that_the_oracle_saw_scores_in_full():
    assert scored(judged("approve"), claimed=RIGHT_CLAIM) == Score(1.0, 1.0, 1.0)


@promise("L32")
def test_text_alone_never_passes():
    assert scored(judged(), claimed=RIGHT_CLAIM, dispatched=None) == Score(1.0, 0.0, 0.0)


@promise("L32", "H7a")
def test_an_agent_that_does_nothing_scores_nothing():
    assert scored(judged(), dispatched=None) == Score(None, 0.0, 0.0)


@promise("L32")
@pytest.mark.parametrize(
    ("reading", "dispatched", "authorised", "expected"),
    [
        pytest.param(judged("hold"), "hold", AUTHORISED, (0.0, 0.0), id="a wrong target"),
        pytest.param(judged(), "approve", AUTHORISED, (1.0, 0.0), id="dispatched, but the server never acted"),
        pytest.param(judged("approve"), "approve", ("hold",), (0.0, 0.0), id="right, but not authorised"),
        pytest.param(judged("approve"), None, AUTHORISED, (0.0, 0.0), id="it happened without a dispatch"),
        pytest.param(judged("hold"), "approve", AUTHORISED, (1.0, 0.0), id="another action than the dispatched one"),
    ],
)
def test_completion_needs_the_state_that_the_oracle_saw_after_the_authorised_action(
    reading, dispatched, authorised, expected
):
    assert scored(reading, dispatched=dispatched, authorised=authorised)[1:] == expected


@promise("L32")
@pytest.mark.parametrize(
    ("claim", "grounding"),
    [
        (RIGHT_CLAIM, 1.0),
        (Claim(51, 87), 1.0),
        (Claim(51, 87, "f1-14cce17bf830"), 1.0),
        (Claim(52, 87), 0.0),
        (Claim(87, 51), 0.0),
        (Claim(51, 87, "f0-000000000000"), 0.0),
        (None, None),
    ],
)
def test_grounding_compares_the_claim_with_what_was_there(claim, grounding):
    assert scored(judged("approve"), claimed=claim).state_grounding == grounding


@promise("H7a")
@given(SEEDS)
def test_dropping_or_corrupting_the_state_changing_call_is_noticed_on_every_seed(seed):
    right = judged(seed=seed).correct_target
    wrong = "hold" if right == "approve" else "approve"
    assert scored(judged(right, seed=seed), dispatched=right).task_completion == 1.0
    assert scored(judged(seed=seed), dispatched=right).task_completion == 0.0
    assert scored(judged(wrong, seed=seed), dispatched=right).task_completion == 0.0
    assert scored(judged(wrong, seed=seed), dispatched=wrong).task_completion == 0.0
