import hashlib
import json
import sys

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.synthetic_ui import TARGETS, TOOLS, SyntheticUi, own_sha256

SEEDS = st.integers(0, 2**53 - 1)
TASKS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
CALLS = st.lists(
    st.sampled_from(
        [
            ("read_task", {"taskId": "t-1"}),
            ("read_task", {"taskId": "t-2"}),
            ("click_target", {"taskId": "t-1", "targetId": "approve"}),
            ("click_target", {"taskId": "t-1", "targetId": "hold"}),
            ("click_target", {"taskId": "t-1", "targetId": "Approve"}),
            ("click_target", {"taskId": "t-1"}),
        ]
    ),
    max_size=6,
)


def read(ui, task="t-1"):
    return ui.call("read_task", {"taskId": task})


def click(ui, target, task="t-1"):
    return ui.call("click_target", {"taskId": task, "targetId": target})


@promise("L30")
def test_seed_seven_shows_what_it_has_always_shown():
    ui = SyntheticUi(7, "t-1")
    before, acted, after = read(ui), click(ui, "approve"), read(ui)
    seen = {"taskId": "t-1", "frame": "f0-e491b6127f40", "reading": 51, "limit": 87, "targets": ["approve", "hold"]}
    assert before == {
        "content": [{"type": "text", "text": json.dumps(seen, separators=(",", ":"))}],
        "structuredContent": seen,
        "isError": False,
    }
    clicked = {"taskId": "t-1", "targetId": "approve", "frame": "f1-14cce17bf830", "accepted": True}
    assert acted == {
        "content": [{"type": "text", "text": json.dumps(clicked, separators=(",", ":"))}],
        "structuredContent": clicked,
        "isError": False,
    }
    assert after["structuredContent"] == seen | {"frame": "f1-14cce17bf830", "targets": []}
    assert [(event.seq, event.id, event.kind, event.facts["state"]) for event in ui.events] == [
        (1, "e1-59e9575d6119", "read", "undecided"),
        (2, "e2-12307c63cf1f", "click", "approved"),
        (3, "e3-e16fbf8afd74", "read", "approved"),
    ]


@promise("L30")
@given(SEEDS, CALLS)
def test_the_same_seed_and_calls_give_the_same_results_states_and_identities(seed, calls):
    one, other = SyntheticUi(seed, "t-1"), SyntheticUi(seed, "t-1")
    assert [one.call(*each) for each in calls] == [other.call(*each) for each in calls]
    assert one.events == other.events
    assert [event.seq for event in one.events] == list(range(1, len(calls) + 1))


@given(SEEDS, TASKS, st.sampled_from(TARGETS))
def test_every_result_fits_the_declared_output_schema(seed, task, target):
    ui = SyntheticUi(seed, task)
    read_schema, click_schema = (jsonschema_rs.Draft202012Validator(tool["outputSchema"]) for tool in TOOLS)
    results = [read(ui, task), click(ui, target, task), read(ui, task)]
    for schema, result in zip([read_schema, click_schema, read_schema], results, strict=True):
        assert schema.is_valid(result["structuredContent"])
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_both_sides_of_the_limit_occur():
    scenes = [read(SyntheticUi(seed, "t-1"))["structuredContent"] for seed in range(200)]
    right = sum(scene["reading"] <= scene["limit"] for scene in scenes)
    assert 60 < right < 140


@pytest.mark.parametrize("target", TARGETS)
def test_a_task_takes_one_click_and_then_shows_no_target(target):
    ui = SyntheticUi(7, "t-1")
    assert click(ui, target)["isError"] is False
    assert [click(ui, each)["isError"] for each in TARGETS] == [True, True]
    assert read(ui)["structuredContent"]["targets"] == []
    assert ui.events[-1].facts["state"] == {"approve": "approved", "hold": "held"}[target]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("read_task", {"taskId": "t-2"}, id="another task"),
        pytest.param("click_target", {"taskId": "t-2", "targetId": "hold"}, id="a click in another task"),
        pytest.param("click_target", {"taskId": "t-1", "targetId": "Approve"}, id="another spelling"),
        pytest.param("click_target", {"taskId": "t-1", "targetId": ["approve"]}, id="a target of another type"),
        pytest.param("click_target", {"taskId": "t-1", "targetId": "hold", "force": True}, id="an extra argument"),
        pytest.param("read_task", {}, id="a missing argument"),
        pytest.param("read_tasks", {"taskId": "t-1"}, id="an unknown tool"),
    ],
)
def test_what_cannot_be_done_is_an_error_result_that_changes_nothing(name, arguments):
    ui = SyntheticUi(7, "t-1")
    before = read(ui)
    result = ui.call(name, arguments)
    assert (result["isError"], "structuredContent" in result) == (True, False)
    assert ui.events[-1].kind == "rejected"
    assert read(ui) == before


@pytest.mark.parametrize(
    ("seed", "task"), [(-1, "t-1"), (2**53, "t-1"), (True, "t-1"), ("7", "t-1"), (7, ""), (7, "a\nb"), (7, None)]
)
def test_a_seed_or_task_that_cannot_be_one_is_refused(seed, task):
    with pytest.raises(InputError) as caught:
        SyntheticUi(seed, task)
    assert caught.value.reason is Reason.WRONG_VALUE


def test_the_tools_refuse_what_they_do_not_name_and_take_any_word_as_target():
    schemas = {tool["name"]: jsonschema_rs.Draft202012Validator(tool["inputSchema"]) for tool in TOOLS}
    assert schemas["click_target"].is_valid({"taskId": "t-1", "targetId": "Approve"})
    assert not schemas["click_target"].is_valid({"taskId": "t-1", "targetId": "approve", "force": True})
    assert not schemas["click_target"].is_valid({"taskId": 1, "targetId": "approve"})
    assert not schemas["read_task"].is_valid({})
    assert SyntheticUi(7, "t-1").tools() == list(TOOLS)


def test_scenes_are_the_same_where_the_interpreter_has_no_sha_256_of_its_own(monkeypatch):
    assert own_sha256()(b"abc").hexdigest() == hashlib.sha256(b"abc").hexdigest()
    for module in ("_sha2", "_sha256"):
        monkeypatch.setitem(sys.modules, module, None)
    assert own_sha256() is hashlib.sha256
