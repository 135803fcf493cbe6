"""`serve --registry`, as a client starts it: the operator's terminal, what stands, what is kept, where hosts are."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest
from capability_bench import STATE
from cli_bench import SCRIPTS, command
from marks import promise
from scripted_host import INSTANCE, ScriptedHost, said, welcome
from serving_bench import ask, call, initialize

from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.contract.pins import load_pins, pins_text

READ, EVALUATE = "pulp_control_state_read", "pulp_control_runtime_evaluate"
EVALUATION = {"source": "20 + 22", "timeout_ms": 100, "idempotency_key": "k-1"}
OFFER = {"lowest": 1, "highest": 1, "mandatory": ["receipts"], "optional": []}
ALL_SETS = ("--toolsets", "observe,control")
OFFLINE = ("--registry", "pulp", "--offline-host")
STANDING = (*OFFLINE, "--eligible", "observe,develop", "--standing", "observe,develop", *ALL_SETS)
ASKING = (*OFFLINE, "--eligible", "observe,dev.pulp.runtime/evaluate@1", *ALL_SETS)


@pytest.fixture
def terminal():
    ours, theirs = pty.openpty()
    yield Terminal(ours, theirs)
    for fd in (ours, theirs):
        os.close(fd)


class Terminal:
    """The operator's terminal, and the operator."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs
        self.text = b""

    def shows(self, what):
        while what not in self.text:
            self.text += os.read(self.ours, 4096)

    def types(self, text):
        os.write(self.ours, text)


def operates(server, tool, value=None, **more):
    return server.calls(tool, instance_id="instance-1", input=value or {}, **more)


# -- consent


@promise("C18", "C20")
def test_the_operator_consents_at_the_terminal_and_the_client_is_never_asked(serving, terminal):
    server = serving(*ASKING, terminal=terminal.theirs)
    server.opens(elicitation={})
    assert "broker-owned, single-use" in operates(server, EVALUATE, EVALUATION)["error"]["message"]
    asked = {"instance_id": "instance-1", "operation_id": "dev.pulp.runtime/evaluate@1"}
    server.says(call(1, "pulp_control_grant_request", **asked))
    terminal.shows(b"> ")
    for shown in (b"stdio", b"instance-1", b"dev.pulp.runtime/evaluate@1 (critical)"):
        assert shown in terminal.text
    terminal.types(b"approve\n")
    granted = server.hears()["result"]["structuredContent"]  # the next line: there was no question to the client
    assert granted["status"] == "granted"
    evaluated = operates(server, EVALUATE, EVALUATION, grant_id=granted["data"]["grant_id"])
    assert (evaluated["ok"], evaluated["result"]["result_json"]) == (True, '{"value":42}')
    assert server.ends() == (0, "", "")


@promise("C18", "C19")
def test_what_the_operator_does_not_approve_of_is_refused(serving, terminal):
    server = serving(*ASKING, terminal=terminal.theirs)
    server.opens(elicitation={})
    server.says(call(1, READ, instance_id="instance-1", input={}, timeout_ms=60_000))
    terminal.shows(b"> ")
    terminal.types(b"no\n")
    assert server.hears()["result"]["structuredContent"]["error"]["code"] == "not_authorised"
    again = operates(server, READ)["error"]  # so soon nobody is asked again
    assert again["code"] == "not_authorised"
    terminal.shows(b"denied")
    assert terminal.text.count(b"An agent asks") == 1
    assert server.ends() == (0, "", "")


@promise("C18", "C19")
def test_without_a_terminal_there_is_nobody_to_ask(serving):
    server = serving(*ASKING)
    server.opens(elicitation={"form": {}})
    assert operates(server, READ)["error"]["code"] == "not_authorised"
    assert server.ends() == (0, "", "")


@promise("C20", "C21")
def test_what_stands_is_consented_to_and_never_a_critical_operation(serving):
    critical = "dev.pulp.runtime/evaluate@1"
    server = serving(*OFFLINE, "--eligible", f"observe,{critical}", "--standing", f"observe,{critical}", *ALL_SETS)
    server.opens()
    assert operates(server, READ)["ok"] is True
    asked = server.calls("pulp_control_grant_request", instance_id="instance-1", operation_id=critical)
    assert asked["error"]["code"] == "not_authorised"
    assert server.ends() == (0, "", "")


@promise("C14")
def test_what_the_operator_did_not_name_is_not_eligible(serving):
    server = serving(*OFFLINE, "--eligible", "dev.pulp.state/read@1", "--standing", "observe,develop", *ALL_SETS)
    server.opens()
    assert operates(server, READ)["ok"] is True
    assert operates(server, "pulp_control_instance_read")["error"]["code"] == "not_authorised"
    assert server.ends() == (0, "", "")


@promise("C19")
def test_an_interrupt_while_the_operator_is_asked_ends_at_once_and_grants_nothing(serving, terminal):
    server = serving(*ASKING, terminal=terminal.theirs)
    server.opens()
    server.says(call(1, READ, instance_id="instance-1", input={}, timeout_ms=60_000))
    terminal.shows(b"> ")
    server.process.send_signal(signal.SIGTERM)
    code, _, err = server.ends()
    assert (code, "interrupted" in err) == (130, True)


# -- what is kept


@promise("C21", "C24")
def test_an_operation_in_a_ledger_is_not_executed_again_after_a_restart(serving, root):
    value = {"parameter_id": 7, "normalized_value": 0.25, "idempotency_key": "k-1"}
    came = []
    for _ in range(2):
        server = serving(*STANDING, "--ledger", "kept")
        server.opens()
        came.append(operates(server, "pulp_control_state_parameter_gesture", value))
        assert server.ends() == (0, "", "")
    # The grant ended with the first broker, and its content with it: what remains is the receipt.
    assert came[0]["ok"] is True
    assert came[1]["error"]["data"]["receipt_id"] == came[0]["receipt_id"]
    assert (root / "kept" / "operations.sqlite").is_file()
    assert (root / "kept").stat().st_mode & 0o077 == 0


@promise("C23")
def test_a_ledger_that_was_tampered_with_is_not_served(serving, root):
    serving(*STANDING, "--ledger", "kept").ends()
    (root / "kept" / "operations.anchor").unlink()
    assert serving(*STANDING, "--ledger", "kept").ends()[:2] == (4, "")


# -- where the host is


def test_a_host_that_is_not_there_is_unavailable(serving, root):
    server = serving("--registry", "pulp", "--host-socket", root / "none", "--eligible", "observe")
    server.opens()
    assert operates(server, READ)["error"]["code"] == "unavailable"
    assert server.ends() == (0, "", "")


def test_a_host_behind_a_socket_is_operated(serving):
    asked_for = []

    def host(line):
        welcome(line)
        while (asked := line.read()) is not None:
            answers = {"inventory": {"instances": [INSTANCE]}, "negotiate": {"offer": OFFER}}
            line.answer(asked, answers.get(asked["method"]) or said(asked, result=json.dumps(STATE)))
            asked_for.append(asked["method"])

    with ScriptedHost(host) as scripted:
        words = ("--host-socket", scripted.place.path, "--eligible", "observe", "--standing", "observe")
        server = serving("--registry", "pulp", *words)
        server.opens()
        assert operates(server, READ)["result"] == STATE
        assert server.ends() == (0, "", "")
    assert asked_for == ["inventory", "negotiate", "request"]


@promise("C21", "C24")
def test_what_was_sent_to_a_host_is_not_sent_again_under_another_spelling_of_its_place(serving):
    gesture = "dev.pulp.state/parameter-gesture@1"
    value = {"parameter_id": 7, "normalized_value": 0.25, "idempotency_key": "k-1"}
    able = [{"operation": gesture, "built": True, "available": True, "activated": True}]
    answers = {"inventory": {"instances": [{**INSTANCE, "capabilities": able}]}, "negotiate": {"offer": OFFER}}
    asked_for = []

    def host(line):
        welcome(line)
        while (asked := line.read()) is not None:
            asked_for.append(asked["method"])
            line.answer(asked, answers.get(asked["method"]) or said(asked))

    with ScriptedHost(host, host) as scripted:
        folder, name = os.path.split(scripted.place.path)
        for place in (scripted.place.path, os.path.join(folder, "..", os.path.basename(folder), name)):
            words = ("--host-socket", place, "--eligible", gesture, "--standing", gesture, "--ledger", "kept")
            server = serving("--registry", "pulp", *words, *ALL_SETS)
            server.opens()
            operates(server, "pulp_control_state_parameter_gesture", value)
            assert server.ends() == (0, "", "")
    assert asked_for.count("request") == 1


# -- misuse


@promise("H20")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--registry", "pulp"), "--host-socket"),
        (("--registry", "pulp", "--offline-host"), "--registry needs --eligible"),
        (("--registry", "pulp", "--offline-host", "--eligible", ""), "--registry needs --eligible"),
        (("--registry", "pulp", "--offline-host", "--changes", "fabric"), "not allowed with"),
        (("--registry", "pulp", "--offline-host", "--host-socket", "x"), "not allowed with"),
        (("--registry", "pulp", "--offline-endpoint", "--eligible", "observe"), "--offline-endpoint is nothing that"),
        (("--changes", "fabric", "--offline-host"), "--offline-host is nothing that --changes has"),
        (("--changes", "fabric", "--offline-endpoint", "--standing", "x"), "--standing is nothing that --changes has"),
        (("--registry", "pulb", "--offline-host", "--eligible", "observe"), "did you mean `pulp`?"),
        ((*OFFLINE, "--eligible", "observer"), "did you mean `observe`?"),
        ((*OFFLINE, "--eligible", "zzz"), "the profiles are develop, inspect-readonly, observe"),
        ((*OFFLINE, "--eligible", "observe", "--standing", "dev.pulp.state/read"), "dev.pulp.state/read@1"),
        ((*STANDING[:-1], "contro"), "did you mean `control`?"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--print-config",)])
def test_a_wrong_call_is_told_on_standard_error_alone(root, words, said, more):
    code, out, err = command(root, "serve", *words, *more)
    assert (code, out) == (2, "")
    assert said in err


@promise("H20", "C1")
def test_a_registry_that_is_not_as_pinned_is_not_served(root):
    registry = root / "contracts" / "pulp.registry.yaml"
    registry.write_text(registry.read_text().replace("about: Read who a live instance is", "about: Read what it is"))
    code, out, err = command(root, "serve", *STANDING)
    assert (code, out) == (4, "")
    assert "pin_mismatch" in err


def test_the_offline_host_is_that_of_one_registry(root):
    other, pins = root / "contracts" / "other.registry.yaml", root / "contracts" / "pins.yaml"
    other.write_text((root / "contracts" / "pulp.registry.yaml").read_text().replace("id: pulp\n", "id: other\n", 1))
    pinned = load_pins(pins, root)
    pinned.registries["other"] = load_registry(other, root).digest
    pins.write_text(pins_text(pinned))
    code, _, err = command(root, "serve", "--registry", "other", "--offline-host", "--eligible", "observe")
    assert code == 2
    assert "give --host-socket" in err


# -- the client's configuration


@pytest.mark.parametrize(
    "words",
    [(*STANDING, "--ledger", "kept"), ("--registry", "pulp", "--host-socket", "host/socket", "--eligible", "observe")],
)
def test_the_printed_configuration_starts_the_server_from_anywhere(root, tmp_path_factory, words):
    code, out, err = command(root, "serve", *words, "--print-config")
    assert (code, err) == (0, "")
    (server,) = json.loads(out)["mcpServers"].values()
    assert set(server["env"]) <= {"PYTHONPATH"}
    done = subprocess.run(
        [server["command"], *server["args"]],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        env=server["env"] | {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")},
        input=b"".join(json.dumps(each).encode() + b"\n" for each in (initialize(), ask(1, "tools/list"))),
        capture_output=True,
        timeout=60,
    )
    _, listed = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, b"")
    names = {tool["name"] for tool in listed["result"]["tools"]}
    assert (READ in names, EVALUATE in names) == (True, "--toolsets" in words)


def test_whoever_starts_it_by_hand_is_told_what_it_is(root, terminal):
    terminal.types(b"\x04")
    done = subprocess.run(
        [sys.executable, "-m", "assisted_benchmark", "serve", *STANDING],
        cwd=root,
        env={"PYTHONPATH": str(SCRIPTS), "HOME": str(root)}
        | {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")},
        stdin=terminal.theirs,
        capture_output=True,
        timeout=60,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout, b"this speaks to an MCP client" in done.stderr) == (0, b"", True)
