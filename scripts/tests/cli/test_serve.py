"""`serve`, as a client starts it: the wire on standard output and nothing else, messages and codes beside it."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from cli_bench import SCRIPTS, command
from marks import promise
from serving_bench import ask, call, initialize

from assisted_benchmark.contract.pins import load_pins, pins_text
from assisted_benchmark.mutation.changes_document import load_changes

OFFLINE = ("--changes", "fabric", "--offline-endpoint")
PROPOSE, CONFIRM = "fabric_propose_change", "fabric_confirm_change"


@promise("M1")
@pytest.mark.parametrize(
    ("sets", "prefixes"),
    [
        ((), {"get", "list", "search"}),
        (("--toolsets", ""), {"get", "list", "search"}),
        (("--toolsets", "design,mutate"), {"search", "propose", "confirm"}),
    ],
)
def test_what_reads_is_served_and_what_changes_only_if_it_is_named(serving, sets, prefixes):
    server = serving(*OFFLINE, *sets)
    said = server.opens()["instructions"]
    assert ("no other way to a change" in said, "no change can be made" in said) == (
        "propose" in prefixes,
        "propose" not in prefixes,
    )
    server.says(ask(1, "tools/list"))
    assert {tool["name"].split("_")[1] for tool in server.hears()["result"]["tools"]} == prefixes
    assert server.ends() == (0, "", "")


@promise("M1", "M16")
def test_a_change_goes_its_whole_way_and_the_wire_is_all_that_is_printed(serving):
    server = serving(*OFFLINE, "--toolsets", "mutate")
    server.opens(elicitation={})
    server.says(call(2, CONFIRM, token=server.proposes()["token"]))
    asked = server.hears()
    assert asked["method"] == "elicitation/create"
    target = "Target: POST /fabric/v4/connections at Equinix Fabric v4 (an endpoint for trying out: nothing real)"
    assert target in asked["params"]["message"].splitlines()
    server.says({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"confirm": True}}})
    assert server.hears()["result"]["structuredContent"]["executed"] is True
    assert server.ends() == (0, "", "")


@promise("M16")
@pytest.mark.parametrize(
    ("word", "executed"),
    [("true", True), ("TRUE", False), ("1", False), (" true", False)],
)
def test_unconfirmed_changes_are_allowed_by_exactly_one_word(serving, word, executed):
    server = serving(*OFFLINE, "--toolsets", "mutate", EQUINIX_MCP_ALLOW_UNCONFIRMED_MUTATIONS=word)
    server.opens()
    confirmed = server.calls(CONFIRM, token=server.proposes()["token"])
    told = (confirmed["executed"], confirmed["human_confirmation"]["status"])
    assert told == (executed, "unsupported_by_client")
    code, _, err = server.ends()
    assert (code, "is not exactly `true`" in err) == (0, not executed)


def test_what_is_odd_about_the_client_is_said_at_the_end(serving):
    server = serving(*OFFLINE)
    server.opens()
    server.says({"jsonrpc": "2.0", "id": "ask-1", "result": {}}, ask(1, "ping"))
    server.hears()
    code, out, err = server.ends()
    assert (code, out, err.count("\n")) == (0, "", 1)
    assert "(unknown_id)" in err


# -- what is kept


@promise("M11")
def test_a_proposal_in_a_ledger_outlives_the_process_and_is_good_once(serving, root):
    words = (*OFFLINE, "--toolsets", "mutate", "--ledger", "kept")
    environment = {"EQUINIX_MCP_ALLOW_UNCONFIRMED_MUTATIONS": "true"}
    first = serving(*words, **environment)
    first.opens()
    token = first.proposes()["token"]
    assert first.ends()[0] == 0

    second = serving(*words, **environment)
    second.opens()
    assert second.calls(CONFIRM, token=token)["executed"] is True
    assert second.ends()[0] == 0

    third = serving(*words, **environment)
    third.opens()
    assert third.calls(CONFIRM, token=token)["token_state"] == "replayed"
    assert third.ends()[0] == 0
    assert (root / "kept").stat().st_mode & 0o077 == 0


def test_a_proposal_is_good_only_at_the_endpoint_whose_dry_run_took_it(serving):
    kept = ("--toolsets", "mutate", "--ledger", "kept")
    environment = {"EQUINIX_MCP_ALLOW_UNCONFIRMED_MUTATIONS": "true"}
    first = serving(*OFFLINE, *kept, **environment)
    first.opens()
    token = first.proposes()["token"]
    first.ends()

    elsewhere = serving("--changes", "fabric", "--origin", "http://127.0.0.1:9", *kept, **environment)
    elsewhere.opens()
    assert elsewhere.calls(CONFIRM, token=token)["token_state"] == "unknown"
    elsewhere.ends()

    again = serving(*OFFLINE, *kept, **environment)
    again.opens()
    assert again.calls(CONFIRM, token=token)["executed"] is True


@promise("M11")
def test_without_a_ledger_a_restart_forgets_every_token(serving):
    words = (*OFFLINE, "--toolsets", "mutate")
    first = serving(*words)
    first.opens()
    token = first.proposes()["token"]
    first.ends()
    second = serving(*words)
    second.opens()
    assert second.calls(CONFIRM, token=token)["token_state"] == "unknown"


def test_a_question_that_a_crash_left_open_is_closed_at_the_next_start_and_never_sent(serving):
    words = (*OFFLINE, "--toolsets", "mutate", "--ledger", "kept")
    first = serving(*words)
    first.opens(elicitation={})
    token = first.proposes()["token"]
    first.says(call(2, CONFIRM, token=token))
    assert first.hears()["method"] == "elicitation/create"
    first.process.kill()
    first.process.wait()
    second = serving(*words)
    second.opens(elicitation={})
    assert second.calls(CONFIRM, token=token)["token_state"] == "replayed"
    code, _, err = second.ends()
    assert (code, "a crash" in err) == (0, True)


@promise("H20")
def test_a_ledger_belongs_to_one_process_at_a_time(serving):
    words = (*OFFLINE, "--ledger", "kept")
    first = serving(*words)
    first.opens()
    code, out, err = serving(*words).ends()
    assert (code, out) == (2, "")
    assert "another process" in err


@promise("H20")
def test_a_ledger_that_was_tampered_with_is_not_served(serving, root):
    serving(*OFFLINE, "--ledger", "kept").ends()
    (root / "kept" / "changes.anchor").unlink()
    code, out, _ = serving(*OFFLINE, "--ledger", "kept").ends()
    assert (code, out) == (4, "")


# -- misuse


@promise("H20")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--changes"),
        (("--changes", "fabric"), "--origin"),
        ((*OFFLINE, "--origin", "https://x"), "not allowed with"),
        (("--changes", "fabrik", "--offline-endpoint"), "did you mean `fabric`?"),
        ((*OFFLINE, "--toolsets", "mutat"), "did you mean `mutate`?"),
        (("--changes", "fabric", "--origin", "ftp://x"), "is no origin"),
        (("--changes", "fabric", "--origin", "http://example.com"), "only `https` goes there"),
        ((*OFFLINE, "--root", "nowhere"), "`nowhere`"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--print-config",)])
def test_a_wrong_call_is_told_on_standard_error_alone(root, words, said, more):
    code, out, err = command(root, "serve", *words, *more)
    assert (code, out) == (2, "")
    assert said in err


@promise("H20")
def test_a_contract_that_is_not_as_pinned_is_not_served(root):
    contract = root / "contracts" / "fabric.changes.yaml"
    contract.write_text(contract.read_text().replace("Equinix Fabric v4", "Equinix Fabric v5"))
    code, out, err = command(root, "serve", *OFFLINE)
    assert (code, out) == (4, "")
    assert "pin_mismatch" in err


def test_a_contract_that_cannot_be_read_is_told_with_its_place(root):
    (root / "contracts" / "other.changes.yaml").write_text("schema: assisted-benchmark/changes@1\nid: [\n")
    code, out, err = command(root, "serve", *OFFLINE)
    assert (code, out) == (2, "")
    assert "contracts/other.changes.yaml:" in err


def test_the_offline_endpoint_is_that_of_one_contract(root):
    other, pins = root / "contracts" / "other.changes.yaml", root / "contracts" / "pins.yaml"
    other.write_text((root / "contracts" / "fabric.changes.yaml").read_text().replace("id: fabric", "id: other"))
    pinned = load_pins(pins, root)
    pinned.changes["other"] = load_changes(other, root).digest
    pins.write_text(pins_text(pinned))
    code, _, err = command(root, "serve", "--changes", "other", "--offline-endpoint")
    assert code == 2
    assert "give --origin" in err


# -- interruptions


@promise("H20")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_the_middle_of_a_question_sends_nothing_and_exits_130(serving, number):
    server = serving(*OFFLINE, "--toolsets", "mutate", "--ledger", "kept")
    server.opens(elicitation={})
    token = server.proposes()["token"]
    server.says(call(2, CONFIRM, token=token))
    assert server.hears()["method"] == "elicitation/create"
    server.process.send_signal(number)
    code, _, err = server.ends()
    assert (code, "interrupted" in err) == (130, True)
    again = serving(*OFFLINE, "--toolsets", "mutate", "--ledger", "kept")
    again.opens()
    assert again.calls(CONFIRM, token=token)["token_state"] == "replayed"
    assert again.ends() == (0, "", "")  # the interrupted one left nothing open


# -- the client's configuration


def test_the_printed_configuration_starts_the_server_from_anywhere(root, tmp_path_factory):
    code, out, err = command(root, "serve", *OFFLINE, "--toolsets", "mutate", "--ledger", "kept", "--print-config")
    assert (code, err) == (0, "")
    (server,) = json.loads(out)["mcpServers"].values()
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
    assert [tool["name"] for tool in listed["result"]["tools"]] == [PROPOSE, CONFIRM]
    assert (root / "kept" / "changes.sqlite").is_file()


def test_the_configuration_for_an_origin_asks_for_the_bearer_by_its_name_and_knows_no_secret(root):
    words = ("--changes", "fabric", "--origin", "https://api.example.com", "--print-config")
    code, out, _ = command(root, "serve", *words, ASSISTED_BENCHMARK_BEARER="a-secret")
    (server,) = json.loads(out)["mcpServers"].values()
    assert (code, "a-secret" in out) == (0, False)
    assert server["args"][-4:] == ["--changes", "fabric", "--origin", "https://api.example.com"]
    assert "ASSISTED_BENCHMARK_BEARER" in server["env"]


# -- an origin


def test_an_origin_that_does_not_answer_fails_the_dry_run(serving):
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # bound and never listening: nobody else takes the port, and nobody answers
        port = unheard.getsockname()[1]
        server = serving("--changes", "fabric", "--origin", f"http://127.0.0.1:{port}", "--toolsets", "mutate")
        server.opens()
        proposed = server.proposes()
        assert (proposed["refused"], proposed["endpoint_error"]["status"]) == ("unavailable", None)
        assert server.ends() == (0, "", "")


def test_a_client_that_opens_no_standard_input_ends_the_server_at_once(root):
    served = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "assisted_benchmark", "serve", *OFFLINE],
        cwd=root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SCRIPTS), "HOME": str(root)},
        capture_output=True,
        timeout=60,
    )
    assert (served.returncode, served.stdout, served.stderr) == (0, b"", b"")
