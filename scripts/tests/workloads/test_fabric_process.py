import os
import socket
import subprocess
from contextlib import suppress

import pytest
from fabric_bodies import a_network, a_request, claiming, json, within
from fabric_process import FabricProcess
from marks import promise
from workload_process import ENV, PATIENCE, argv

from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.control import Control
from assisted_benchmark.workloads.fabric_api import MAX_BODY
from assisted_benchmark.workloads.fabric_api_faults import Act, FabricFault, FabricFaultKind
from assisted_benchmark.workloads.process import CONTROL_ENV, DEATH

ORPHANED = 74


def asking(fabric, request, seconds=PATIENCE):
    return fabric.endpoint().ask(request, deadline=within(seconds, SystemClock()))


def raw(fabric, data, *, end=True):
    """Everything that the server says to these bytes, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", fabric.port), PATIENCE) as connection:
        connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
        said = b""
        while piece := connection.recv(1 << 16):
            said += piece
        return said


@promise("L30")
def test_what_it_did_is_told_before_it_answers_and_also_by_one_that_dies():
    with FabricProcess(FabricFault(FabricFaultKind.DIE_AFTER, Act.CREATE)) as fabric:
        assert asking(fabric, a_request("networks", dry=True)).status == 200
        assert fabric.reading().dry["networks"] == 1  # without waiting: it is there already
        request = a_request("networks")
        fabric.endpoint().create(
            claiming(request), request, gate=lambda: True, deadline=within(PATIENCE, SystemClock())
        )
        assert fabric.end() == DEATH
        assert [each.made["name"] for each in fabric.reading().created] == ["lan"]


@promise("H5")
def test_a_fault_armed_while_it_runs_is_in_force_for_the_next_request():
    with FabricProcess() as fabric:
        for nth, status in enumerate((503, 409), 1):
            fabric.control.arm(FabricFault(FabricFaultKind.FAIL_BEFORE, Act.DRY_RUN, nth, status))
            assert asking(fabric, a_request("networks", dry=True)).status == status
        assert asking(fabric, a_request("networks", dry=True)).status == 200


@promise("W10a")
def test_it_ends_when_its_harness_is_gone_even_with_a_request_that_hangs():
    with FabricProcess(FabricFault(FabricFaultKind.HANG_AFTER)) as fabric:
        with socket.create_connection(("127.0.0.1", fabric.port), PATIENCE) as connection:
            connection.sendall(b"GET /fabric/v4/networks HTTP/1.1\r\nHost: x\r\n\r\n")
            assert fabric.heard("networks.list") == 1
            fabric.control.close()
            assert connection.recv(1) == b""
        assert fabric.process.wait(PATIENCE) == ORPHANED


def test_it_listens_on_loopback_alone():
    with FabricProcess() as fabric:
        listed = [line.split() for name in ("tcp", "tcp6") for line in _table(name)]
        ours = {local for _, local, *_ in listed if local.endswith(f":{fabric.port:04X}")}
        assert ours <= {f"0100007F:{fabric.port:04X}"}


def _table(name):
    """The kernel's sockets, where it shows them."""
    try:
        with open(f"/proc/net/{name}", encoding="ascii") as table:
            return table.readlines()[1:]
    except OSError:
        return []


def test_half_a_request_is_none_and_a_large_one_is_refused_unread():
    with FabricProcess() as fabric:
        head = f"POST /fabric/v4/networks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {fabric.bearer}\r\n"
        head += "Content-Type: application/json\r\nConnection: close\r\nContent-Length: "
        body = json.dumps(a_network()).encode()
        assert raw(fabric, f"{head}{len(body) + 1}\r\n\r\n".encode() + body) == b""
        assert fabric.reading().real["networks"] == 0
        large = f"{head}{10 * MAX_BODY}\r\n\r\n".encode() + b" " * (MAX_BODY + 1)
        assert raw(fabric, large, end=False).startswith(b"HTTP/1.1 413 ")
        assert (fabric.reading().real["networks"], fabric.reading().created) == (1, ())
        assert fabric.stderr_bytes() == b""


@pytest.mark.parametrize("kind", [FabricFaultKind.DROP_AFTER, FabricFaultKind.HANG_AFTER])
def test_a_request_beyond_the_bound_can_be_dropped_or_left_hanging_as_any_other(kind):
    with FabricProcess(FabricFault(kind)) as fabric:
        head = f"POST /fabric/v4/networks HTTP/1.1\r\nHost: x\r\nContent-Length: {3 * MAX_BODY}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", fabric.port), PATIENCE) as connection:
            connection.sendall(head + b" " * (MAX_BODY + 1))
            assert fabric.heard("networks.create") == 1
            with suppress(ConnectionResetError, BrokenPipeError):  # a drop is heard at a write
                connection.sendall(b" " * 1000)
        assert asking(fabric, a_request("networks", dry=True), 0.8).reason is Reason.OUTCOME_UNKNOWN
        assert fabric.stderr_bytes() == b""


def test_a_name_that_a_proxy_would_tell_of_the_peer_changes_nothing():
    with FabricProcess(FabricFault(FabricFaultKind.DROP_BEFORE)) as fabric:
        head = b"GET /fabric/v4/networks HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.9.8.7\r\n\r\n"
        assert raw(fabric, head, end=False) == b""
        assert fabric.reading().disagreements == ()


def _ended(**env):
    done = subprocess.run(argv("fabric_api"), stdin=subprocess.DEVNULL, capture_output=True, env=ENV | env, check=False)
    return done.returncode, done.stdout, bool(done.stderr), b"Traceback" in done.stderr


def test_without_a_harness_it_does_not_serve():
    assert _ended() == (2, b"", True, False)
    assert _ended(**{CONTROL_ENV: "987"}) == (2, b"", True, False)


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON",
        b"{}",
        b'{"configure": {"seed": -7, "task": "t-1", "faults": []}}',
        b'{"configure": {"seed": 7, "task": "t-1", "faults": [{"kind": "explode"}]}}',
    ],
)
def test_a_first_line_that_configures_nothing_ends_it(line):
    own, theirs = socket.socketpair()
    with own, theirs:
        own.sendall(line + b"\n")
        done = subprocess.run(
            argv("fabric_api"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=ENV | {CONTROL_ENV: str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
            check=False,
        )
    assert (done.returncode, done.stdout, b"Traceback" in done.stderr) == (2, b"", False)


def test_a_server_that_ends_or_stays_silent_before_it_listens_is_told_apart():
    control = Control()
    with pytest.raises(ServerError) as caught:
        control.wait_port(0.01)
    assert caught.value.reason is Reason.DEADLINE_EXCEEDED
    with socket.socket(fileno=os.dup(control.child_fd)) as theirs:
        theirs.sendall(b'{"received": {"tool": "other", "count": 1}}\n')
    control.started()
    with pytest.raises(ServerError) as caught:
        control.wait_port(PATIENCE)
    control.close()
    assert (caught.value.reason, control.received) == (Reason.LAUNCH_FAILED, {"other": 1})
