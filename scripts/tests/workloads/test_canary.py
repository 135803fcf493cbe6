"""No byte that an agent could see tells what only the oracle may know."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import promise
from workload_process import HELLO, PATIENCE, Workload

from assisted_benchmark.workloads.faults import Face, Fault, FaultKind
from assisted_benchmark.workloads.oracle import Oracle
from assisted_benchmark.workloads.synthetic_ui import TARGETS, SyntheticUi

STATES = ("undecided", "approved", "held")
MARKERS = ("canary", "oracle", "correct", "right", "wrong", "outcome", "seed", "fault")
ENDING = (FaultKind.HANG_AFTER, FaultKind.DIE_BEFORE, FaultKind.DIE_AFTER, FaultKind.HALF_LINE)
LASTING = tuple(kind for kind in FaultKind if kind not in (*ENDING, FaultKind.HANG_BEFORE))
TRIES = (
    ("read_task", {"taskId": "t-1"}),
    ("click_target", {"taskId": "t-1", "targetId": "delete"}),
    ("click_target", {"taskId": "t-2", "targetId": "hold"}),
    ("click_target", {"taskId": "t-1"}),
    ("read_task", {"taskId": "t-1", "debug": True}),
    ("state", {}),
)
STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def leaks(seed, seen):
    """Which of the oracle's words occur in these bytes, in any case."""
    token = Oracle(seed, "t-1").canary.removeprefix("canary-")
    return [word for word in (token, *STATES, *MARKERS) if word.encode() in seen.lower()]


def test_the_search_finds_what_it_looks_for_in_what_the_oracle_gets():
    ui = SyntheticUi(7, "t-1")
    for name, arguments in (*TRIES, ("click_target", {"taskId": "t-1", "targetId": "approve"})):
        ui.call(name, arguments)
    assert leaks(7, json.dumps(ui.events).encode()) == ["977920fc3cb7ec57", "undecided", "approved", "canary"]


@promise("L31")
@given(st.integers(0, 2**53 - 1), st.sampled_from(TARGETS), st.sampled_from([None, *FaultKind]))
def test_nothing_that_a_face_returns_tells_what_the_oracle_knows(seed, target, kind):
    face = Face(SyntheticUi(seed, "t-1"), () if kind is None else (Fault(kind),))
    seen = [face.model.server_info, face.tools()]
    for name, arguments in (*TRIES, ("click_target", {"taskId": "t-1", "targetId": target}), *TRIES):
        seen.append(face.call(name, arguments).result)
        seen.append(face.tools())
    assert leaks(seed, json.dumps(seen).encode()) == []


@promise("L31", "L32")
@given(st.integers(0, 2**53 - 1))
def test_right_and_wrong_clicks_are_answered_alike(seed):
    answers = {}
    for target in TARGETS:
        ui = SyntheticUi(seed, "t-1")
        calls = [("click_target", {"taskId": "t-1", "targetId": target}), *TRIES]
        text = json.dumps([ui.call(*call) for call in calls])
        frame = ui.events[-1].facts["frame"]
        answers[target] = (
            text.replace(frame, "FRAME").replace(f'"{target}"', '"T"').replace(f'\\"{target}\\"', '\\"T\\"')
        )
    assert answers["approve"] == answers["hold"]


def _everything_asked(ui, target, params):
    for method in ("tools/list", "resources/list", "prompts/list", "logging/setLevel", "server/discover", "ping"):
        ui.ask(method, params)
    for name, arguments in (*TRIES, ("click_target", {"taskId": "t-1", "targetId": target}), *TRIES):
        ui.ask("tools/call", {"name": name, "arguments": arguments, **params})
    for broken in (b"{", b'{"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": []}', b"\xff", b"[]"):
        ui.send(broken)
        ui.line()


@promise("L31")
@pytest.mark.parametrize("target", TARGETS)
def test_a_whole_session_of_either_era_shows_nothing_on_either_stream(target):
    for seed, hello, params in ((7, True, {}), (8, False, {"_meta": STATELESS})):
        with Workload(seed=seed, hello=hello) as ui:
            _everything_asked(ui, target, params)
            assert ui.end() == 0
            assert len(ui.out.splitlines()) > 20
            assert leaks(seed, ui.out + ui.stderr_bytes()) == []
            assert Oracle(seed, "t-1").judge(ui.control.events).actions == (target,)


@promise("L31")
def test_a_session_full_of_faults_shows_nothing_on_either_stream():
    faults = [Fault(kind, nth=number) for number, kind in enumerate(LASTING, 1)]
    with Workload(faults=faults) as ui:
        for _ in faults:
            ui.call("read_task", taskId="t-1")
        ui.lines_until_ping()
        assert ui.end() == 0
        assert ui.control.received == {"read_task": len(LASTING)}
        assert leaks(7, ui.out + ui.stderr_bytes()) == []
        assert len(ui.stderr_bytes()) > 1 << 19


@promise("L31")
@pytest.mark.parametrize("kind", ENDING)
def test_a_session_that_ends_in_a_fault_shows_nothing_on_either_stream(kind):
    with Workload(faults=[Fault(kind, "click_target")]) as ui:
        ui.call("click_target", taskId="t-1", targetId="approve")
        ui.process.stdin.close()
        ui.line(0.1)
        ui.process.terminate()
        ui.process.wait(PATIENCE)
        assert leaks(7, ui.out + ui.stderr_bytes()) == []


@promise("L31")
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**53 - 1), st.sampled_from(TARGETS))
def test_the_process_shows_nothing_on_any_seed(seed, target):
    with Workload(seed=seed) as ui:
        ui.ask("tools/call", {"name": "read_task", "arguments": {"taskId": "t-1"}})
        ui.ask("tools/call", {"name": "click_target", "arguments": {"taskId": "t-1", "targetId": target}})
        assert ui.end() == 0
        assert leaks(seed, ui.out + ui.stderr_bytes()) == []
        assert Oracle(seed, "t-1").judge(ui.control.events).disagreements == ()


@promise("L31")
def test_a_session_opened_twice_is_told_nothing_more():
    with Workload() as ui:
        ui.ask("initialize", HELLO)
        assert ui.end() == 0
        assert leaks(7, ui.out + ui.stderr_bytes()) == []
