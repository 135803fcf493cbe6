"""`record` and `replay`, as a user calls them: a live session becomes a file, and the file comes to the same."""

import json
import shutil
import signal

import pytest
from cli_bench import PASSING, ROOT, a_root, command, report_of
from marks import promise
from served_bench import APPROVE, CLICK, HOLD, SERIES
from serving_bench import Serving, call

from assisted_benchmark.cli.main import main

OUT = "fixtures/recorded/mine.scenario.yaml"
PLAIN = str(ROOT / "fixtures" / "agents" / "plain.py")
PLAYS = ["--", "{python}", PLAIN, SERIES, "{}", CLICK, json.dumps(APPROVE), CLICK, json.dumps(HOLD)]


@pytest.fixture
def root(tmp_path):
    return a_root(tmp_path, plain=PASSING)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A root with the session of a program, recorded; nobody changes it."""
    root = a_root(tmp_path_factory.mktemp("first"), plain=PASSING)
    code, out, err = command(root, "record", "live/plain", "-o", OUT, *PLAYS)
    assert (code, err) == (0, ""), out
    return root


@pytest.fixture
def recorded(first, tmp_path):
    """One of a test's own."""
    return shutil.copytree(first, tmp_path / "root")


def said_of(root, monkeypatch, capfd, *words):
    """What the command says, called within this process."""
    monkeypatch.chdir(root)
    try:
        code = main([*words])
    except SystemExit as ended:  # of the parser
        code = ended.code
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.default_int_handler if each is signal.SIGINT else signal.SIG_DFL)
    out, err = capfd.readouterr()
    return code, out, err


def edit(root, old, new, name="mine.session.jsonl"):
    file = root / "fixtures" / "recorded" / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@promise("H7", "H6")
def test_a_clients_session_is_recorded_run_and_replayed(recorded):
    assert report_of(recorded)["cases"][0]["agent"] == "client (plain 1)"
    code, out, err = command(recorded, "replay", OUT)
    receipts = report_of(recorded)["cases"][0]["receipts"]
    assert (code, out, err) == (0, f"identical: recorded/mine/plain, 5 receipts, {receipts}\n", "")
    code, out, err = command(recorded, "run", "-k", "recorded", "--repeat", "2", "--expect-identical")
    assert (code, err) == (0, "")
    (case,) = report_of(recorded, "0002")["cases"]
    assert (case["receipts"], case["deterministic"], case["diverged_at"]) == (receipts, True, None)
    assert (case["proposed"], case["admitted"], case["refusals"]) == (3, 2, {"already_selected": 1})
    assert command(recorded, "lint")[0] == 0


@promise("H7")
def test_a_client_at_standard_input_is_recorded_too(root):
    with Serving(root, "live/plain", "-o", OUT, verb="record") as server:
        server.opens()
        for name, arguments in ((SERIES, {}), (CLICK, APPROVE)):
            server.says(call(1, name, **arguments))
            server.hears()
        code, out, err = server.ends()
    assert (code, out) == (0, "")  # standard output was the wire
    assert err.splitlines()[-1].startswith("identical: recorded/mine/plain, 4 receipts, sha256:")
    assert command(root, "replay", OUT)[0] == 0


@promise("H7", "H20")
def test_what_an_interrupt_ends_is_recorded_as_far_as_it_came(root):
    with Serving(root, "live/plain", "-o", OUT, verb="record") as server:
        server.opens()
        server.says(call(1, SERIES))
        server.hears()
        server.process.send_signal(signal.SIGTERM)
        assert server.ends()[0] == 130
    code, out, _ = command(root, "replay", OUT)
    assert (code, out.split(",")[1]) == (0, " 2 receipts")


@promise("H7", "H20")
def test_of_a_session_without_a_proposal_nothing_is_written(root):
    code, out, err = command(root, "record", "live/plain", "-o", OUT, "--", "{python}", "-c", "pass")
    assert (code, err) == (3, "assisted-benchmark: nothing was recorded: no proposal came to its end\n")
    assert "it never connected" in out
    assert not (root / "fixtures" / "recorded").exists()


@promise("H7", "H20")
def test_where_receipts_differ_the_first_difference_is_shown(recorded):
    edit(recorded, '"came_to": "admitted"', '"came_to": "expired"')  # what is expected is no part of any receipt
    code, out, err = command(recorded, "replay", OUT)
    assert (code, out.split(":")[0]) == (1, "identical")
    assert "proposal 1: expected expired, came admitted" in err or "decisions: expected" in err
    edit(recorded, '"came_to": "expired"', '"came_to": "admitted"')
    edit(recorded, "hold", "wait")
    code, out, err = command(recorded, "replay", OUT)
    first, _, third, *lines = err.splitlines()
    assert (code, out) == (4, "")
    assert first == "assisted-benchmark: the receipts of `recorded/mine/plain` are not those that were recorded"
    assert third == "  receipt 5 of 5 is another:"
    assert lines[0].startswith("    arguments: ")
    assert "  look at what changed since (policy, contract, servers), or record it anew" in lines
    code, out, err = command(recorded, "replay", OUT, "--json")
    told = json.loads(out)
    assert (code, err, told["identical"], told["difference"][0]) == (4, "", False, "receipt 5 of 5 is another:")
    # A run of the suite says so as well.
    assert command(recorded, "run", "-k", "recorded")[0] == 1


@promise("H7", "H20")
def test_a_case_of_a_run_is_replayed_under_what_it_was_run_with(recorded):
    command(recorded, "run", "--seed", "5", "live/plain/plain")
    assert command(recorded, "replay", "runs/0002", "live/plain/plain")[0] == 0
    scenario = recorded / "fixtures" / "live" / "plain.scenario.yaml"
    scenario.write_text(scenario.read_text().replace("approve", "hold"))
    code, out, err = command(recorded, "replay", "runs/0002", "live/plain/plain", "--json")
    assert (code, json.loads(out)["difference"][0], err) == (4, "receipt 3 of 4 is another:", "")
    code, _, err = command(recorded, "replay", "runs/0001", "recorded/mine/plain")
    assert (code, "`record` keeps it" in err) == (2, True)


@promise("H20")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("replay", "runs/0001"), "say which case"),
        (("replay", "runs/0001", "live/other"), "there is no case `live/other`"),
        (("replay", "runs", "live/plain/plain"), "holds no run"),
        (("replay", "fixtures/live/plain.scenario.yaml"), "says no receipts"),
        (("replay", "fixtures/lost.yaml"), "unreadable"),
        (("replay", OUT, "live/plain/plain"), "there is no case"),
        (("replay", "runs/0001", "nowhere"), "`; `list` shows the cases"),
        (("record", "live/plain", "-o", OUT), "is there already"),
        (("record", "live/plain", "-o", "fixtures/live/plain.yaml"), "is no scenario's file"),
        (("record", "live/plain", "-o", "../out.scenario.yaml"), "is not below"),
        (("record", "live/nothing", "-o", "fixtures/recorded/other.scenario.yaml"), "neither a file nor a case"),
        (("record", "live/plain", "-o", "fixtures/recorded/o.scenario.yaml", "--", "no-such-program"), "no program"),
        (("record", "live/plain", "-o", "fixtures/recorded/o.scenario.yaml", "--within", "soon"), "no duration"),
        (("record", "live/plain", "-o", "fixtures/recorded/o.scenario.yaml", "--within", "5s"), "behind `--`"),
        (("record", "live/plain"), "-o"),
    ],
)
def test_what_cannot_be_recorded_or_replayed_is_said_in_a_line(first, monkeypatch, capfd, words, said):
    code, out, err = said_of(first, monkeypatch, capfd, *words)
    assert (code, out) == (2, "")
    assert said in err
