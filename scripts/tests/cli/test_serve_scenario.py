"""`serve SCENARIO`, as a client starts it: it plays the case, and what came of it is reported as `run` does."""

import json
import signal

import pytest
from cli_bench import PASSING, ROOT, a_root, command, report_of
from marks import promise
from served_bench import APPROVE, CLICK, HOLD, SERIES
from serving_bench import Serving, ask, call, initialize

ME = {"name": "me", "version": "1"}
SEVERAL = PASSING + "proposals: {{other: {{change: {{taskId: t-2}}, refused: arguments_altered}}}}\n"
TOLD = PASSING + "visibility: open\ninstructions: Click what is right.\n"


@pytest.fixture
def root(tmp_path):
    """The real contracts, and scenarios to serve."""
    return a_root(tmp_path, plain=PASSING, several=SEVERAL, told=TOLD)


def results(server, *calls):
    """Send these calls at once; the results in the order of their answers."""
    server.says(*(call(number, name, **arguments) for number, (name, arguments) in enumerate(calls)))
    return [server.hears()["result"] for _ in calls]


def opens(server):
    server.says(initialize() | {"params": initialize()["params"] | {"clientInfo": ME}})
    return server.hears()["result"]


def receipts_of(root, number="0001"):
    return [json.loads(line) for line in (root / "runs" / number / "receipts.jsonl").read_bytes().splitlines()]


@promise("W15", "W17", "H19")
def test_a_case_that_a_client_played_is_scored_written_and_verified_as_run_does_it(serving, root):
    server = serving("live/plain/plain")
    opens(server)
    looked, chose, again = results(server, (SERIES, {}), (CLICK, APPROVE), (CLICK, HOLD))
    assert ("isError" in looked, chose["isError"], again["structuredContent"]["error"]) == (False, False, "spent")
    code, out, err = server.ends()
    assert (code, out) == (0, "")
    assert "1 passed, 0 failed, 0 could not run" in err.splitlines()
    report = report_of(root)
    (case,) = report["cases"]
    assert (case["id"], case["agent"], case["verdict"]) == ("live/plain/plain", "client (me 1)", "passed")
    assert (case["proposed"], case["admitted"], case["sent"], case["confirmed"]) == (3, 2, 2, 2)
    assert (case["calls"], case["refusals"]) == ({"lba": 1, "synthetic-ui": 1}, {"already_selected": 1})
    assert (root / "runs" / "0001" / "junit.xml").is_file()
    decided = [each["reason"] for each in receipts_of(root) if each["kind"] == "decision"]
    assert decided == ["admitted", "admitted", "already_selected"]
    assert again["structuredContent"]["receiptId"] in {each["id"] for each in receipts_of(root)}
    assert command(root, "verify")[0] == 0


@promise("H20")
def test_a_client_that_does_not_do_it_fails_the_case(serving, root):
    server = serving("fixtures/live/plain.scenario.yaml")
    opens(server)
    code, out, err = server.ends()
    assert (code, out) == (1, "")
    assert "again: assisted-benchmark serve live/plain/plain" in [line.strip() for line in err.splitlines()]
    assert report_of(root)["cases"][0]["verdict"] == "failed"


@promise("H20")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_session_and_the_report_is_still_written(serving, root, number):
    server = serving("live/plain/plain")
    opens(server)
    results(server, (SERIES, {}))
    server.process.send_signal(number)
    code, out, _ = server.ends()
    assert (code, out) == (130, "")
    report = report_of(root)
    assert (report["interrupted"], report["cases"][0]["sent"]) == (True, 1)
    assert command(root, "verify")[0] == 0


@promise("W3")
def test_a_line_that_is_no_message_has_its_receipt(serving, root):
    server = serving("live/plain/plain")
    opens(server)
    server.process.stdin.write(b"{nonsense\n")
    server.process.stdin.flush()
    assert server.hears()["error"]["code"] == -32700
    server.ends()
    assert [each["reason"] for each in receipts_of(root)] == ["malformed_call"]


@promise("W15")
def test_a_scenario_says_what_its_client_is_told_and_shown(serving, root):
    server = serving("live/told")
    assert opens(server)["instructions"] == "Click what is right."
    server.says(ask(1, "tools/list"))
    assert [tool["name"] for tool in server.hears()["result"]["tools"]] == [SERIES]
    server.ends()
    everything = serving("live/told", "--visibility", "all")
    opens(everything)
    everything.says(ask(1, "tools/list"))
    assert len(everything.hears()["result"]["tools"]) == 15
    everything.ends()


@promise("L31")
def test_without_instructions_a_client_hears_the_task_and_the_form_of_a_refusal_and_no_plan(serving):
    server = serving("live/plain")
    told = opens(server)["instructions"]
    assert all(
        word in told for word in ("`t-1`", "receiptId", "malformed, not_authorised, spent, expired, unavailable")
    )
    assert not [word for word in ("approve", "hold", "decision", "seed", "series") if word in told.lower()]


@promise("H8")
@pytest.mark.parametrize("durability", ["memory", "process", "power"])
def test_what_one_seed_gives_is_the_same_every_time_wherever_it_is_kept(root, durability):
    digests = set()
    for number in ("0001", "0002"):
        with Serving(root, "live/plain", "--seed", "7", "--durability", durability) as server:
            opens(server)
            server.ends()
        report = report_of(root, number)
        assert (report["seed"], report["durability"]) == (7, durability)
        digests.add(report["cases"][0]["receipts"])
    assert len(digests) == 1


@promise("H20")
@pytest.mark.parametrize("what", ["live/plain/plain", "fixtures/live/plain.scenario.yaml"])
def test_the_configuration_starts_the_same_from_anywhere(root, tmp_path_factory, what):
    code, out, err = command(root, "serve", what, "--visibility", "open", "--seed", "3", "--print-config")
    assert (code, err) == (0, "")
    ((name, server),) = json.loads(out)["mcpServers"].items()
    assert name == "assisted-benchmark-plain"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with Serving(elsewhere, *server["args"][3:]) as client:
        assert opens(client)["capabilities"]["tools"]["listChanged"] is True
        assert client.ends()[0] == 1
    assert report_of(root)["seed"] == 3
    assert not (root / "runs" / "0002").exists()


@promise("H20")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("live/plian/plain",), "did you mean `live/plain/plain`?"),
        (("nothing",), "`list` shows the cases"),
        (("live/several",), "`live/several/plain`, `live/several/other`"),
        (("fixtures/live/several.scenario.yaml",), "has 2 cases"),
        (("live/plain", "--toolsets", "design"), "--toolsets is nothing that a scenario has"),
        (("live/plain", "--offline-endpoint"), "--offline-endpoint is nothing that a scenario has"),
        (
            ("--changes", "fabric", "--offline-endpoint", "--visibility", "all"),
            "--visibility is nothing that --changes",
        ),
        (("--registry", "pulp", "--eligible", "observe"), "--registry needs --host-socket or --offline-host"),
        ((), "one of the arguments SCENARIO|CASE --changes --registry is required"),
    ],
)
def test_what_cannot_be_served_is_told_on_standard_error_alone(root, words, said):
    code, out, err = command(root, "serve", *words)
    assert (code, out) == (2, "")
    assert said in err


@promise("M17")
def test_in_a_session_that_confirms_changes_there_is_no_server_that_could_pose_as_the_broker(root):
    code, out, err = command(root, "serve", "live/plain", "--changes", "fabric")
    assert (code, out, "not allowed with" in err) == (2, "", True)


@promise("H20")
def test_a_case_of_another_broker_is_not_a_clients_to_play(root):
    code, out, err = command(ROOT, "serve", "mutation/accepted/connection-handshake")
    assert (code, out) == (2, "")
    assert "`serve --changes`" in err


@promise("H20")
def test_a_scenario_whose_policy_is_not_as_pinned_is_not_served(root):
    policy = root / "contracts" / "ui-decision.policy.yaml"
    policy.write_text(policy.read_text().replace("120s", "121s"))
    code, out, err = command(root, "serve", "live/plain")
    assert (code, out) == (4, "")
    assert "pin_mismatch" in err
