"""The plugin host as a process: what it tells, how it ends, and what it says to bytes that no client sends."""

import json
import os
import socket
import stat
import subprocess
import sys
from contextlib import suppress

import pytest
from capability_bench import at_once
from host_process import HostProcess, Raw
from host_requests import GESTURE, READ, SESSION, Client, a_request, result_of, within
from marks import promise
from workload_process import ENV, PATIENCE, argv

from assisted_benchmark.capability.ports import Registered, Unavailable
from assisted_benchmark.capability.socket_host_messages import requested
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.workloads.plugin_host_faults import HostFault, HostFaultKind, Step
from assisted_benchmark.workloads.plugin_host_place import LISTENER_ENV, Place
from assisted_benchmark.workloads.process import CONTROL_ENV, DEATH

K = HostFaultKind
ORPHANED = 74
CLOCK = SystemClock()
ENROL = {"jsonrpc": "2.0", "id": 1, "method": "enrol", "params": {"client": "c", "peer": "p"}}


def joined(process, session=SESSION):
    return Client(process.host(), session, CLOCK)


@promise("L30", "C23")
def test_what_it_did_is_told_before_it_answers_and_also_by_one_that_dies():
    with HostProcess(HostFault(K.DIE_AFTER, operation=GESTURE)) as process:
        client = joined(process)
        instance = client.instance()
        result_of(client.ask(instance, READ))
        assert process.reading().executed == {(READ, "instance-1"): 1}  # without waiting: it is there already
        assert client.ask(instance, GESTURE).reason is Reason.OUTCOME_UNKNOWN
        assert process.end() == DEATH
        assert process.reading().executed == {(READ, "instance-1"): 1, (GESTURE, "instance-1"): 1}
        unconnected = Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands")
        assert client.host.connect(SESSION, deadline=within(10, CLOCK)) == unconnected


@promise("W10a")
def test_it_ends_when_its_harness_is_gone_even_with_a_request_that_hangs():
    with HostProcess(HostFault(K.HANG_AFTER)) as process:
        client = joined(process)
        instance = client.instance()

        def leave():
            process.heard(lambda reading: READ in reading.received)
            process.control.close()

        reply, _ = at_once(lambda: client.ask(instance), leave)
        assert (type(reply), reply.reason) == (Uncertain, Reason.OUTCOME_UNKNOWN)
        assert process.process.wait(PATIENCE) == ORPHANED
        assert client.ask(instance, number=2) == NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")


@promise("W10a")
def test_nothing_is_left_of_its_place_and_nobody_else_can_reach_it():
    with HostProcess() as process:
        folder = process.place.path.parent
        status = folder.stat()
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o700, os.geteuid())
        assert len(os.fsencode(process.place.path)) < 104
        joined(process)
    assert not folder.exists()


def test_a_place_that_cannot_be_made_leaves_nothing(monkeypatch):
    made = []

    def refuse(self, address):
        made.append(address)
        raise OSError

    class Refusing(socket.socket):
        bind = refuse

    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(OSError):
        Place()
    assert not os.path.exists(os.path.dirname(made[0]))


@promise("C25")
def test_a_publication_that_changes_is_known_to_every_client_before_the_harness_hears_of_it():
    with HostProcess() as process:
        clients = [joined(process) for _ in range(3)]
        before = clients[0].instance().registered
        process.control.arm(HostFault(K.REPUBLISH))
        process.told("published", 3)
        found = {client.host.registered("instance-1") for client in clients}
        (after,) = found
        assert (type(after), after.registration, after.publication != before.publication) == (
            Registered,
            before.registration,
            True,
        )
        # The old publication is nobody's any more.
        instance = clients[0].instance()
        reply = clients[0].ask(instance, READ, publication=before.publication)
        assert (reply.word, reply.code) == ("failed", Reason.WRONG_PUBLICATION)


@promise("W15a")
def test_a_session_is_its_connections_alone():
    with HostProcess() as process:
        one, other = joined(process), joined(process, SESSION._replace(client="client-2"))
        stolen = one.enrolled
        over = Unavailable(Reason.SESSION_ENDED, "the host answered with an error", ended=True)
        assert other.host.inventory(stolen, deadline=within(10, CLOCK)) == over
        instance = one.instance()
        other.session = SESSION
        reply = other.ask(instance, READ)
        assert (reply.word, reply.code) == ("failed", Reason.SESSION_ENDED)


def test_many_clients_at_once_are_each_executed_once():
    count = 12
    with HostProcess() as process:
        client = joined(process)
        instance = client.instance()
        asks = [lambda number=number: client.ask(instance, GESTURE, number=number) for number in range(1, count + 1)]
        replies = at_once(*asks)
        generations = sorted(result_of(each)["state_generation"] for each in replies)
        assert generations == list(range(2, count + 2))
        assert process.reading().executed == {(GESTURE, "instance-1"): count}
        assert process.reading().disagreements == ()
        assert client.host.odd == ()


@promise("C31")
def test_of_many_gestures_that_expect_one_generation_the_host_takes_one():
    with HostProcess() as process:
        client = joined(process)
        instance = client.instance()
        replies = at_once(
            *[
                lambda number=number: client.ask(instance, GESTURE, number=number, expected_state_generation=1)
                for number in range(1, 9)
            ]
        )
        assert sorted(each.code for each in replies) == ["", *[Reason.STATE_CONFLICT] * 7]
        assert process.reading().executed == {(GESTURE, "instance-1"): 1}


HOSTILE = {
    "no JSON": (b"{\n", -32700),
    "bad UTF-8": (b"\xff\xfe\n", -32700),
    "a key twice": (b'{"jsonrpc":"2.0","id":9,"method":"enrol","params":{},"params":{}}\n', -32700),
    "a batch": (b"[]\n", -32600),
    "too deep": (b"[" * 80 + b"]" * 80 + b"\n", -32700),
    "a large line": (b"x" * ((2 << 20) + 1) + b"\n", -32600),
    "no id": (b'{"jsonrpc":"2.0","method":"enrol","params":{}}\n', -32600),
    "no such method": (b'{"jsonrpc":"2.0","id":9,"method":"execute","params":{}}\n', -32601),
    "no params": (b'{"jsonrpc":"2.0","id":9,"method":"enrol"}\n', -32000),
}


@promise("W3")
@pytest.mark.parametrize(("line", "code"), HOSTILE.values(), ids=HOSTILE)
def test_a_line_that_is_no_message_is_answered_so_and_the_next_is_heard(line, code):
    with HostProcess() as process, Raw(process.place.path) as raw:
        raw.send(line)
        assert raw.answer()["error"]["code"] == code
        raw.send(ENROL)
        assert raw.answer()["result"].keys() == {"session"}
        assert process.reading().executions == ()
        assert process.stderr_bytes() == b""


@promise("W3")
def test_answers_and_notifications_that_nobody_asked_for_are_ignored():
    with HostProcess() as process, Raw(process.place.path) as raw:
        raw.send(b'{"jsonrpc":"2.0","id":9,"result":{}}\n{"jsonrpc":"2.0","id":9,"result":{},"result":{}}\n')
        raw.send(b'{"jsonrpc":"2.0","method":"notifications/sung","params":{}}\n')
        raw.send(b'{"jsonrpc":"2.0","method":"notifications/cancel","params":{"session":7}}\n')
        raw.send(ENROL)
        assert [raw.line().get("method"), raw.line().get("id")] == ["notifications/registered", 1]


def test_an_id_of_a_request_in_flight_is_not_taken_twice():
    with HostProcess(HostFault(K.HANG_BEFORE, operation=READ)) as process, Raw(process.place.path) as raw:
        raw.send(ENROL)
        raw.answer()
        client = joined(process)
        claimed, envelope = a_request(client.instance(), READ, client="c")
        asked = {"jsonrpc": "2.0", "id": 2, "method": "request", "params": requested(claimed, envelope)}
        raw.send(asked)
        raw.send(asked)
        assert raw.answer()["error"]["message"] == "it is in flight"
        raw.send({**asked, "id": "2"})
        process.heard(lambda reading: reading.received.get(READ) == 2)


def test_half_a_request_is_none_and_what_a_client_leaves_behind_is_forgotten():
    with HostProcess(HostFault(K.HANG_BEFORE, operation=READ, nth=1)) as process:
        with Raw(process.place.path) as raw:
            raw.send(json.dumps(ENROL).encode())
        client = joined(process)
        instance = client.instance()
        assert client.ask(instance, seconds=0.3).reason is Reason.OUTCOME_UNKNOWN
        client.host.close()
        again = joined(process)
        assert result_of(again.ask(instance, READ, number=2))
        assert process.reading().received["enrol"] == 2


def test_what_comes_after_a_drop_on_one_connection_is_not_heard():
    for kind in (K.DROP_BEFORE, K.HALF_LINE):
        with HostProcess(HostFault(kind, Step.ENROL, nth=2)) as process, Raw(process.place.path) as raw:
            raw.send(b"".join(json.dumps(ENROL | {"id": number}).encode() + b"\n" for number in (1, 2, 3)))
            said = []
            with suppress(ConnectionResetError):
                while (line := raw.file.readline()).endswith(b"\n"):
                    said.append(json.loads(line))
            assert [each["id"] for each in said if "id" in each] == [1]
            joined(process)
            assert process.reading().received == {"enrol": 3}


@promise("W7")
def test_a_client_that_does_not_read_holds_nobody_up():
    with HostProcess(HostFault(K.HUGE_ARTIFACT, operation=READ)) as process, Raw(process.place.path) as raw:
        raw.send(ENROL)
        raw.answer()
        client = joined(process)
        instance = client.instance()
        for number in range(2):
            claimed, envelope = a_request(instance, READ, number=100 + number, client="c")
            raw.send({"jsonrpc": "2.0", "id": number + 2, "method": "request", "params": requested(claimed, envelope)})
        for _ in range(2):
            assert result_of(client.ask(instance, GESTURE))
        answers = [raw.answer()["id"] for _ in range(2)]
        assert answers == list(range(2, 4))


def test_a_client_that_leaves_while_it_is_written_to_ends_nothing():
    with HostProcess(HostFault(K.HUGE_ARTIFACT)) as process:
        client = joined(process)
        instance = client.instance()
        with Raw(process.place.path) as raw:
            raw.send(ENROL)
            raw.answer()
            claimed, envelope = a_request(instance, READ, number=100, client="c")
            raw.send({"jsonrpc": "2.0", "id": 2, "method": "request", "params": requested(claimed, envelope)})
            process.heard(lambda reading: READ in reading.received)
        process.control.arm(HostFault(K.REPUBLISH))
        process.told("published", 3)
        assert client.instance().registered == client.host.registered("instance-1")
        assert process.stderr_bytes() == b""


def test_clients_that_leave_without_having_read_end_nothing():
    with HostProcess(HostFault(K.HUGE_ARTIFACT, operation=READ)) as process:
        client = joined(process)
        instance = client.instance()
        claimed, envelope = a_request(instance, READ, number=100, client="c")
        read = {"jsonrpc": "2.0", "id": 2, "method": "request", "params": requested(claimed, envelope)}
        for count in (0, 1):
            with Raw(process.place.path) as raw:
                raw.send(ENROL)
                raw.send(b"".join(json.dumps(read | {"id": number}).encode() + b"\n" for number in range(2, count + 2)))
                process.heard(lambda reading, n=count: reading.received.get(READ, 0) == n)
                assert result_of(client.ask(instance, GESTURE))
            assert result_of(client.ask(instance, GESTURE))
        assert process.stderr_bytes() == b""


def _ended(*fds, **env):
    done = subprocess.run(
        argv("plugin_host"), stdin=subprocess.DEVNULL, capture_output=True, env=ENV | env, pass_fds=fds, check=False
    )
    return done.returncode, done.stdout, bool(done.stderr), b"Traceback" in done.stderr


def test_without_a_harness_it_does_not_serve():
    assert _ended() == (2, b"", True, False)
    assert _ended(**{CONTROL_ENV: "987"}) == (2, b"", True, False)
    own, theirs = socket.socketpair()
    with own, theirs:
        assert _ended(theirs.fileno(), **{CONTROL_ENV: str(theirs.fileno())}) == (2, b"", True, False)
        for listener in ("987", "x"):
            fds = {CONTROL_ENV: str(theirs.fileno()), LISTENER_ENV: listener}
            assert _ended(theirs.fileno(), **fds) == (2, b"", True, False)


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
    place = Place()
    try:
        with own, theirs:
            own.sendall(line + b"\n")
            env = {CONTROL_ENV: str(theirs.fileno()), LISTENER_ENV: str(place.child_fd)}
            assert _ended(theirs.fileno(), place.child_fd, **env)[:2] == (2, b"")
    finally:
        place.close()


def test_a_server_under_test_loads_nothing_of_the_broker_but_its_streams():
    program = "import sys, assisted_benchmark.workloads.plugin_host_server; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", program], env=ENV, capture_output=True, text=True, check=True)
    package = "assisted_benchmark."
    loaded = {name.removeprefix(package) for name in done.stdout.split() if name.startswith(package)}
    above = {name for name in loaded if name.partition(".")[0] not in ("kernel", "wire", "workloads")}
    assert above == {"capability", "capability.telemetry"}
