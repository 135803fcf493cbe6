import json
import os
import select
import socket
import subprocess
import sys

import pytest
from marks import promise
from workload_process import ENV, LBA, PATIENCE, ROOT, Workload, argv

from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.control import Control
from assisted_benchmark.workloads.faults import DYING, HANGING, Delivery, Face, Fault, FaultKind
from assisted_benchmark.workloads.oracle import Oracle, score
from assisted_benchmark.workloads.process import CONTROL_ENV, DEATH
from assisted_benchmark.workloads.recorded import Recorded, load
from assisted_benchmark.workloads.synthetic_ui import TOOLS, SyntheticUi

CLICK = ("click_target", {"taskId": "t-1", "targetId": "approve"})
READ = ("read_task", {"taskId": "t-1"})
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}


def answer(number, result):
    return {"jsonrpc": "2.0", "id": number, "result": result}


@promise("L30", "L32")
def test_a_click_over_stdio_reaches_the_oracle_before_the_answer_reaches_the_caller():
    with Workload() as ui:
        assert ui.ask("tools/list")["result"]["tools"] == list(TOOLS)
        reply = ui.ask("tools/call", {"name": "click_target", "arguments": CLICK[1]})
        ui.control.poll()  # without waiting: it is there already
        model = SyntheticUi(7, "t-1")
        assert reply["result"] == model.call(*CLICK)
        assert (ui.control.events, ui.control.received) == (model.events, {"click_target": 1})
        reading = Oracle(7, "t-1").judge(ui.control.events)
        assert (reading.state, reading.disagreements) == ("approved", ())
        assert score(reading, claimed=None, dispatched="approve", authorised=("approve", "hold"))[1:] == (1.0, 1.0)
        assert (ui.end(), ui.stderr_bytes()) == (0, b"")


@promise("H5")
@pytest.mark.parametrize("kind", sorted(set(FaultKind) - HANGING))
def test_a_process_and_a_face_play_each_fault_alike(kind):
    fault = Fault(kind, "click_target")
    face = Face(SyntheticUi(7, "t-1"), [fault])
    expected = face.call(*CLICK)
    with Workload(faults=[fault]) as ui:
        number = ui.call(CLICK[0], **CLICK[1])
        if face.ended is None:
            lines = ui.lines_until_ping()
        else:
            lines = [ui.line()]
            assert ui.process.wait(PATIENCE) == DEATH
        whole = answer(number, expected.result)
        if expected.delivery is Delivery.WHOLE:
            announced = [CHANGED] if kind is FaultKind.DRIFT_TOOLS else []
            assert [json.loads(line) for line in lines] == [*announced, whole]
        elif expected.delivery is Delivery.TWICE:
            assert [json.loads(line) for line in lines] == [whole, whole]
        elif kind is FaultKind.FOREIGN_ID:
            assert [json.loads(line) for line in lines] == [whole | {"id": "nobody-asked"}]
        elif kind is FaultKind.DROP_ANSWER:
            assert lines == []
        elif kind is FaultKind.HALF_LINE:
            assert (lines[0][:20], lines[0][-1:] != b"\n") == (b'{"jsonrpc":"2.0","id', True)
        elif kind is FaultKind.GARBAGE:
            assert [line.isascii() for line in lines] == [False]
        else:
            assert (kind in DYING, lines) == (True, [b""])
        if face.ended is None:
            assert ui.ask("tools/list")["result"]["tools"] == face.tools()
            assert ui.end() == 0
        ui.control.finish(PATIENCE)
        assert (ui.control.events, ui.control.received) == (face.model.events, face.received)


@promise("H5")
@pytest.mark.parametrize("kind", sorted(HANGING))
def test_a_hung_process_says_nothing_more_but_has_told_of_its_act(kind):
    fault = Fault(kind, "click_target")
    face = Face(SyntheticUi(7, "t-1"), [fault])
    face.call(*CLICK)
    with Workload(faults=[fault]) as ui:
        ui.call(CLICK[0], **CLICK[1])
        ui.request("ping")
        assert ui.line(0.2) == b""
        ui.process.terminate()
        ui.process.wait(PATIENCE)
        ui.control.finish(PATIENCE)
        assert (ui.control.events, ui.control.received) == (face.model.events, face.received)


@promise("H5")
def test_a_flood_on_standard_error_holds_the_answer_back_until_it_is_drained():
    read_end, write_end = os.pipe()
    with Workload(faults=[Fault(FaultKind.STDERR_FLOOD)], stderr=os.fdopen(write_end, "wb")) as ui:
        ui.stderr.close()
        number = ui.call(CLICK[0], **CLICK[1])
        assert ui.line(0.2) == b""
        while ui.process.stdout not in (ready := select.select([ui.process.stdout, read_end], [], [])[0]):
            assert (ready, os.read(read_end, 1 << 16) != b"") == ([read_end], True)
        os.close(read_end)
        assert json.loads(ui.line())["id"] == number


@promise("H5")
def test_a_fault_armed_while_the_process_runs_is_in_force_for_the_next_call():
    with Workload() as ui:
        before = ui.ask("tools/list")["result"]["tools"]
        ui.control.arm(Fault(FaultKind.DRIFT_TOOLS))
        ui.request("tools/list")
        assert json.loads(ui.line()) == CHANGED
        assert json.loads(ui.line())["result"]["tools"] != before
        ui.control.arm(Fault(FaultKind.DIE_AFTER, "click_target", 1))
        ui.call(CLICK[0], **CLICK[1])
        assert (ui.line(), ui.process.wait(PATIENCE)) == (b"", DEATH)
        ui.control.finish(PATIENCE)
        assert [event.kind for event in ui.control.events] == ["click"]
        ui.control.arm(Fault(FaultKind.GARBAGE))  # too late, and no error: that it is dead is known


def test_a_tool_list_that_drifted_before_the_start_is_announced_to_nobody():
    with Workload(faults=[Fault(FaultKind.DRIFT_TOOLS)]) as ui:
        assert (
            ui.ask("tools/list")["result"]["tools"]
            == Face(SyntheticUi(7, "t-1"), [Fault(FaultKind.DRIFT_TOOLS)]).tools()
        )


@promise("H5a")
def test_the_recorded_server_answers_its_list_and_replies_over_stdio():
    model = Recorded(load(LBA / "cassette.json"))
    with Workload("recorded", LBA / "cassette.json", faults=[Fault(FaultKind.DOUBLE_ANSWER, "get_confidence")]) as lba:
        assert lba.hello["result"]["serverInfo"] == {"name": "labview-benchmark-actor", "version": "1.4.14"}
        assert lba.hello["result"]["protocolVersion"] == "2025-06-18"
        assert lba.ask("tools/list")["result"]["tools"] == model.tools()
        plan = lba.ask("tools/call", {"name": "spin_up_witness", "arguments": {"plane": "VBOX"}})
        assert plan["result"] == model.call("spin_up_witness", {"plane": "VBOX"})
        number = lba.call("get_confidence", bundles=[])
        twice = [answer(number, model.call("get_confidence", {"bundles": []}))] * 2
        assert [json.loads(line) for line in lba.lines_until_ping()] == twice
        assert lba.ask("tools/call", {"name": "launch_missiles"})["error"]["code"] == -32602
        assert lba.end() == 0
        assert (lba.control.events, lba.control.received) == (model.events, {"spin_up_witness": 1, "get_confidence": 1})


def _ended(module, *args, **env):
    done = subprocess.run(
        argv(module, *args), stdin=subprocess.DEVNULL, capture_output=True, env=ENV | env, check=False
    )
    return done.returncode, done.stdout, bool(done.stderr), b"Traceback" in done.stderr


def test_without_a_control_channel_a_workload_serves_all_the_same():
    assert _ended("synthetic_ui") == (0, b"", False, False)
    assert _ended("recorded", LBA / "cassette.json") == (0, b"", False, False)


@pytest.mark.parametrize("descriptor", ["word", "987"])
def test_a_control_channel_that_is_none_is_refused(descriptor):
    assert _ended("synthetic_ui", **{CONTROL_ENV: descriptor}) == (2, b"", True, False)


def test_the_recorded_server_needs_one_cassette_that_can_be_read():
    assert _ended("recorded") == (2, b"", True, False)
    assert _ended("recorded", LBA / "none.json") == (2, b"", True, False)


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"configure": {"seed": 7, "task": "t-1", "faults": [], "speed": 2}}',
        b'{"configure": {"seed": "7", "task": "t-1", "faults": []}}',
        b'{"configure": {"seed": 7, "task": "t-1", "faults": [{"kind": "explode"}]}}',
        b'{"configure": {"seed": -7, "task": "t-1", "faults": []}}',
        b"no JSON",
    ],
)
def test_a_first_line_that_configures_nothing_ends_the_workload(line):
    own, theirs = socket.socketpair()
    with own, theirs:
        own.sendall(line + b"\n")
        done = subprocess.run(
            argv("synthetic_ui"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=ENV | {CONTROL_ENV: str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
            check=False,
        )
    assert (done.returncode, done.stdout, b"Traceback" in done.stderr) == (2, b"", False)


@pytest.mark.parametrize("gone", [Control.close, lambda control: control._own.shutdown(socket.SHUT_RD)])
def test_a_workload_whose_harness_is_gone_does_nothing_more(gone):
    with Workload() as ui:
        gone(ui.control)
        ui.call(CLICK[0], **CLICK[1])
        assert (ui.line(), ui.process.wait(PATIENCE)) == (b"", 74)


def test_a_workload_that_nobody_configures_does_not_serve():
    own, theirs = socket.socketpair()
    own.close()
    with theirs:
        env = ENV | {CONTROL_ENV: str(theirs.fileno())}
        done = subprocess.run(
            argv("synthetic_ui"), capture_output=True, env=env, pass_fds=[theirs.fileno()], check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (74, b"", b"")


def talking(*lines):
    """A control channel whose workload has said these lines, and then died."""
    control = Control()
    with socket.socket(fileno=os.dup(control.child_fd)) as theirs:
        theirs.sendall(b"".join(line + b"\n" for line in lines))
    control.started()
    return control


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON",
        b"[]",
        b'{"received": {"tool": "look", "count": "1"}}',
        b'{"received": {"tool": "look", "count": 1, "more": 1}}',
        b'{"event": {"seq": 1, "id": "e1", "kind": "read", "tool": "look"}}',
        b'{"event": {"seq": 1, "id": "e1", "kind": "read", "tool": "look"}, "state": {}, "more": 1}',
    ],
)
def test_a_line_that_no_workload_says_is_the_servers_fault(line):
    control = talking(line)
    with pytest.raises(ServerError) as caught:
        control.poll()
    control.close()
    assert caught.value.reason is Reason.MALFORMED_FRAME


def test_what_a_dead_workload_said_is_heard_to_its_end():
    control = talking(b'{"received": {"tool": "look", "count": 1}}', b'{"received": {"tool": "look", "count": 2}}')
    control.finish(PATIENCE)
    control.poll()
    control.close()
    assert (control.ended, control.received, control.events) == (True, {"look": 2}, [])


def test_a_workload_that_died_before_it_read_its_setup_has_ended():
    control = Control()
    control.configure()
    control.started()
    control.finish(PATIENCE)
    control.close()
    assert (control.ended, control.events) == (True, [])


def test_a_workload_that_does_not_end_is_not_waited_for_without_bound():
    control = Control()
    with pytest.raises(ServerError) as caught:
        control.finish(0.01)
    control.close()
    assert caught.value.reason is Reason.DEADLINE_EXCEEDED


@pytest.mark.parametrize("module", ["synthetic_ui", "recorded"])
def test_a_workload_process_imports_nothing_above_the_wire_and_nothing_slow(module):
    code = (
        f"import sys, assisted_benchmark.workloads.process, assisted_benchmark.workloads.{module}; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, env={"PYTHONPATH": str(ROOT)}, check=True, text=True
    )
    loaded = set(done.stdout.split())
    rooms = {name.split(".")[1] for name in loaded if name.startswith("assisted_benchmark.")}
    assert rooms == {"kernel", "wire", "workloads"}
    slow = {"attr", "orjson", "rfc8785", "jsonschema_rs", "yaml", "apsw", "socket", "asyncio", "difflib"}
    assert loaded & (slow | {"math", "struct", "assisted_benchmark.kernel.reasons"}) == set()
    assert f"assisted_benchmark.workloads.{module}" in loaded
    assert not any(name.endswith((".oracle", ".control")) for name in loaded if name.startswith("assisted_benchmark."))
