"""What a user of the command line meets: codes, messages, files; never a traceback."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from xml.etree import ElementTree as Xml

import pytest
from cli_bench import FAILING, PASSING, ROOT, SCRIPTS, a_root, command, report_of
from marks import promise

from assisted_benchmark.cli.main import main
from assisted_benchmark.cli.parser import parser

VERBS = (
    "run",
    "list",
    "explain",
    "lint",
    "verify",
    "merge",
    "serve",
    "record",
    "replay",
    "new",
    "pin",
    "drift",
    "matrix",
    "attack",
    "doctor",
    "completion",
)


@promise("H20")
def test_a_run_that_comes_to_what_it_expects_exits_0_and_leaves_its_reports(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    code, out, _ = command(root, "run")
    assert code == 0
    assert out.splitlines()[-2:] == ["1 passed, 0 failed, 0 could not run", f"report: {root / 'runs' / '0001'}"]
    assert report_of(root)["verdicts"] == {"passed": 1, "failed": 0, "could_not_run": 0}
    assert Xml.parse(root / "runs" / "0001" / "junit.xml").find("testsuite").get("tests") == "1"


@promise("H20")
def test_a_case_that_failed_exits_1_and_says_how_to_run_it_again(tmp_path):
    root = a_root(tmp_path, bad=FAILING)
    code, out, err = command(root, "run", "--durability", "memory")
    assert code == 1
    assert "failed  live/bad/plain" in err
    assert "    again: assisted-benchmark run --seed 0 --durability memory live/bad/plain" in out.splitlines()
    assert command(root, "run", "--seed", "0", "--durability", "memory", "live/bad/plain")[0] == 1


@promise("H20")
def test_an_unreadable_input_exits_2_with_file_line_and_column(tmp_path):
    root = a_root(tmp_path, typo=PASSING + "expcet: {{}}\n")
    for verb in ("run", "list", "lint"):
        code, _, err = command(root, verb)
        assert code == 2
        assert "fixtures/live/typo.scenario.yaml:7:1" in err
        assert "did you mean `expect`?" in err
    assert not (root / "runs").exists()


@promise("H20")
def test_a_case_whose_server_cannot_be_started_could_not_run_and_exits_3(tmp_path):
    root = a_root(tmp_path, gone=PASSING + "servers: process\n")
    contract = root / "contracts" / "lba-and-synthetic-ui.contract.yaml"
    text = contract.read_text().replace('"{python}"', '"/nowhere/python"')
    contract.write_text(text.replace("      packages: {assisted-benchmark: self}\n", ""))
    assert command(root, "lint", "--write-pins")[0] == 2  # pinned, and told that it cannot start here
    code, out, err = command(root, "run")
    assert code == 3
    assert "could not run  live/gone/plain" in err
    assert "0 passed, 0 failed, 1 could not run" in out


@promise("H20", "L2")
def test_a_policy_that_is_not_as_pinned_exits_4_until_it_is_pinned_again(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    policy = root / "contracts" / "ui-decision.policy.yaml"
    policy.write_text(policy.read_text().replace("120s", "121s"))
    assert command(root, "run")[0] == 4
    code, _, err = command(root, "lint")
    assert code == 4
    assert "pin_mismatch" in err
    assert command(root, "lint", "--write-pins")[0] == 0
    assert command(root, "run")[0] == 0


@promise("H20")
def test_edited_receipts_exit_4(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    command(root, "run")
    assert command(root, "verify")[0] == 0
    receipts = root / "runs" / "0001" / "receipts.jsonl"
    lines = receipts.read_bytes().splitlines(keepends=True)
    assert b"admitted" in lines[0]
    receipts.write_bytes(b"".join([lines[0].replace(b"admitted", b"admitteb"), *lines[1:]]))
    code, _, err = command(root, "verify", "runs/0001")
    assert code == 4
    assert "chain_broken" in err
    receipts.write_bytes(b"".join(lines[:-1]))
    code, out, _ = command(root, "verify", "--json")
    assert code == 4
    assert [each["reason"] for each in json.loads(out)] == ["chain_truncated"]
    receipts.write_bytes(b"".join(lines)[:-9])
    code, _, err = command(root, "verify")
    assert "torn_tail" in err


@promise("H20")
def test_nothing_selected_exits_5(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    for words in (("run", "-k", "nosuch"), ("list", "--tag", "nosuch")):
        code, _, err = command(root, *words)
        assert code == 5
        assert "nothing_selected" in err


@promise("H20")
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("fly",),
        ("run", "--jobs", "-1"),
        ("run", "--jobs", "٣"),
        ("run", "--seed", "9" * 400),
        ("run", "--durability", "paper"),
        ("run", "nosuch"),
        ("run", "--resume", "nowhere"),
        ("run", "--expect-identical"),
        ("run", "--failed"),
        ("run", "--root", "nowhere"),
        ("run", "--shard", "3/2"),
        ("run", "--shard", "half"),
        ("merge", "nowhere"),
        ("explain", "live/goood/plain"),
        ("verify", "nowhere"),
        ("verify",),
        ("new", "Bad Id"),
        ("new", "x", "--policy", "nosuch"),
        ("new", "good", "--policy", "ui-decision"),
        ("lint", "nowhere"),
        ("completion", "dish"),
    ],
)
def test_misuse_exits_2_and_says_why(tmp_path, words):
    root = a_root(tmp_path, good=PASSING)
    code, out, err = command(root, *words)
    assert (code, out) == (2, "")
    assert err


def test_a_mistyped_case_id_gets_a_hint(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    assert "did you mean `live/good/plain`?" in command(root, "explain", "live/goood/plain")[2]
    assert "did you mean `live/good/plain`?" in command(root, "run", "live/goood/plain")[2]
    assert "; `-k live/good` selects 1 cases of it" in command(root, "run", "live/good")[2]


def test_a_failed_case_is_explained_by_the_command_that_the_report_names(tmp_path):
    root = a_root(tmp_path, bad=FAILING)
    _, out, _ = command(root, "run", "--root", root)
    (why,) = (line.split(":", 1)[1] for line in out.splitlines() if line.startswith("    why:"))
    code, out, _ = command(tmp_path, *shlex.split(why)[1:])
    assert code == 0
    assert "  ends: expected failed, came succeeded" in out.splitlines()


def test_a_command_of_the_checkout_names_itself_and_works_from_elsewhere(tmp_path):
    root = a_root(tmp_path / "root", bad=FAILING)
    named = {"ASSISTED_BENCHMARK_COMMAND": str(root / "scripts" / "ab"), "ASSISTED_BENCHMARK_ROOT": str(root)}
    assert "    again: scripts/ab run --seed 0" in command(root, "run", **named)[1]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert command(elsewhere, "list", **named)[1].split() == ["live/bad/plain"]


def test_outside_a_root_the_message_says_where_to_go(tmp_path):
    code, _, err = command(tmp_path, "list")
    assert code == 2
    assert "--root" in err


@promise("H20")
def test_an_interrupted_run_exits_130_with_its_report_and_goes_on_where_it_was(tmp_path):
    many = {f"good-{index:02}": PASSING for index in range(40)}
    root = a_root(tmp_path, **many, hangs=PASSING + "servers: process\nfaults: [{{server: synthetic-ui}}]\n")
    (root / "fixtures" / "live" / "hangs.scenario.yaml").unlink()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SCRIPTS), "HOME": str(root)}
    running = subprocess.Popen(
        [sys.executable, "-m", "assisted_benchmark", "run", "--servers", "process", "--maxfail", "0"],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = root / "runs" / "0001"
    while running.poll() is None and not any(path.stat().st_size for path in journal.glob("journal-*.jsonl")):
        with contextlib.suppress(subprocess.TimeoutExpired):  # the first case has not ended yet
            running.wait(timeout=0.01)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    report = report_of(root)
    assert report["interrupted"] is True
    done = len(report["cases"])
    assert 0 < done < report["selected"] == 40
    assert f"interrupted with {40 - done} of 40 left" in out
    assert "go on:  assisted-benchmark run --resume" in err
    code, out, _ = command(root, "run", "--servers", "process", "--resume", "runs/0001")
    assert code == 0
    assert "40 passed, 0 failed, 0 could not run" in out
    lines = [line for path in journal.glob("journal-*.jsonl") for line in path.read_bytes().splitlines()]
    assert len(lines) == 40  # nothing lost, nothing run twice


def test_a_report_that_cannot_be_written_leaves_the_one_before_it_whole(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    command(root, "run")
    before = (root / "runs" / "0001" / "report.json").read_bytes()
    (root / "runs" / "0001" / ".report.json.draft").mkdir()
    code, _, err = command(root, "run", "--resume", "runs/0001")
    assert (code, "Traceback" in err, "report.json" in err) == (3, False, True), err
    assert (root / "runs" / "0001" / "report.json").read_bytes() == before


@promise("H15")
def test_failed_runs_only_what_did_not_pass_last_time(tmp_path):
    root = a_root(tmp_path, good=PASSING, bad=FAILING)
    assert command(root, "run")[0] == 1
    _, out, _ = command(root, "list")
    assert out.split() == ["live/bad/plain", "live/good/plain"]
    command(root, "run", "--failed")
    assert [case["id"] for case in report_of(root, "0002")["cases"]] == ["live/bad/plain"]


def test_failed_with_nothing_failed_selects_nothing(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    command(root, "run")
    assert command(root, "run", "--failed")[0] == 5


@promise("H15")
def test_maxfail_stops_early_and_the_report_says_what_is_left(tmp_path):
    root = a_root(tmp_path, **{f"bad-{index}": FAILING for index in range(5)})
    code, _, _ = command(root, "run", "--maxfail", "2")
    assert code == 1
    assert len(report_of(root)["cases"]) == 2


@promise("H15", "H7a")
def test_the_same_seed_gives_the_same_report_to_the_byte_and_another_seed_other_receipts(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    for words in ((), (), ("--seed", "8")):
        assert command(root, "run", *words)[0] == 0
    one, two, other = ((root / "runs" / f"000{n}" / "report.json").read_bytes() for n in (1, 2, 3))
    assert one == two
    assert json.loads(one)["cases"][0]["receipts"] != json.loads(other)["cases"][0]["receipts"]
    assert command(root, "run", "--repeat", "3", "--expect-identical")[0] == 0


@promise("H15")
def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path):
    root = a_root(tmp_path, **{f"good-{index}": PASSING for index in range(6)})
    for jobs in ("1", "2", "0"):
        assert command(root, "run", "-j", jobs)[0] == 0
    reports = [(root / "runs" / f"000{n}" / "report.json").read_bytes() for n in (1, 2, 3)]
    assert reports[0] == reports[1] == reports[2]


@promise("H15")
def test_shards_part_the_cases_and_merge_joins_their_runs(tmp_path):
    root = a_root(tmp_path, **{f"good-{index}": PASSING for index in range(7)}, bad=FAILING)
    codes = [command(root, "run", "--shard", f"{number}/3")[0] for number in (1, 2, 3)]
    assert sorted(codes) == [0, 0, 1]
    code, out, _ = command(root, "merge", "runs/0001", "runs/0002", "runs/0003")
    assert code == 1
    assert "7 passed, 1 failed, 0 could not run" in out
    command(root, "run")
    assert report_of(root, "0004") == report_of(root, "0005")
    assert command(root, "merge", "runs/0001", "runs/0001")[0] == 2
    assert not (root / "runs" / "0006").exists()
    assert command(root, "verify", "runs/0004")[0] == 0


def test_paths_select_files_and_folders(tmp_path):
    root = a_root(tmp_path, good=PASSING, other=PASSING)
    assert command(root, "list", "fixtures/live/good.scenario.yaml")[1].split() == ["live/good/plain"]
    assert command(root, "list", "fixtures/live")[1].split() == ["live/good/plain", "live/other/plain"]


@promise("H20")
def test_json_is_there_wherever_a_script_reads(tmp_path):
    root = a_root(tmp_path, good=PASSING)
    assert json.loads(command(root, "run", "--json")[1]) == report_of(root)
    assert json.loads(command(root, "list", "--json")[1])[0]["id"] == "live/good/plain"
    assert json.loads(command(root, "explain", "live/good/plain", "--json")[1])["verdict"] == "passed"
    assert json.loads(command(root, "lint", "--json")[1]) == []
    assert json.loads(command(root, "verify", "--json")[1]) == []
    assert all(each["ok"] is not False for each in json.loads(command(root, "doctor", "--json")[1]))


def test_explain_names_the_checks_and_the_nearest_candidate(tmp_path):
    text = PASSING + "proposals:\n  other: {{change: {{targetId: reject}}, refused: wrong_target}}\n"
    root = a_root(tmp_path, good=text)
    code, out, _ = command(root, "explain", "live/good/other")
    assert code == 0
    assert "the check that failed: wrong_target" in out
    assert "nearest candidate: approve" in out


def test_explain_says_why_a_case_could_not_run(tmp_path):
    root = a_root(tmp_path, gone=PASSING + "servers: process\n")
    contract = root / "contracts" / "lba-and-synthetic-ui.contract.yaml"
    text = contract.read_text().replace('"{python}"', '"/nowhere/python"')
    contract.write_text(text.replace("      packages: {assisted-benchmark: self}\n", ""))
    command(root, "lint", "--write-pins")
    code, out, _ = command(root, "explain", "live/gone/plain")
    assert code == 0
    assert "\ncould not run\n" in out
    assert "(launch_failed)" in out


def test_new_writes_a_scenario_that_runs_and_never_overwrites_one(tmp_path):
    root = a_root(tmp_path)
    code, out, _ = command(root, "new", "late-click", "--policy", "ui-decision", "--candidate", "hold")
    assert code == 0
    path = root / "fixtures" / "live" / "late-click.scenario.yaml"
    assert out.splitlines()[0] == f"written: {path}"
    before = path.read_bytes()
    assert command(root, "run", path)[0] == 0
    assert command(root, "new", "late-click", "--policy", "ui-decision")[0] == 2
    assert path.read_bytes() == before


def test_doctor_finds_what_is_wrong(tmp_path):
    root = a_root(tmp_path, typo="nonsense\n")
    code, out, _ = command(root, "doctor")
    assert code == 3
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith("BAD")] == ["BAD   fixtures"]
    shutil.rmtree(root / "fixtures")
    assert "BAD   root" in command(root, "doctor")[1]


@promise("H21")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example(verb, capsys):
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    assert f"\n  assisted-benchmark {verb}" in capsys.readouterr().out


@promise("H21")
@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_the_verbs(shell, capsys):
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert all(verb in printed for verb in VERBS)


def test_bash_takes_the_completion_script(tmp_path, capsys):
    main(["completion", "bash"])
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0


@promise("H21")
def test_colour_is_only_for_terminals_that_want_it(tmp_path):
    root = a_root(tmp_path, bad=FAILING)
    _, out, err = command(root, "run")
    assert "\x1b" not in out + err
    on_terminal = _on_terminal(root)
    assert b"\x1b[31m" in on_terminal
    assert b"\x1b[31m" not in _on_terminal(root, NO_COLOR="1")


def _on_terminal(root, **environment):
    """What the command writes when its output is a terminal."""
    ours, theirs = os.openpty()
    environment |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(SCRIPTS), "HOME": str(root)}
    running = subprocess.Popen(
        [sys.executable, "-m", "assisted_benchmark", "run"],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 65536):
            written += chunk
    except OSError:
        pass  # the terminal's other end is gone: the command has ended
    running.wait(timeout=60)
    os.close(ours)
    return written


@promise("H21")
def test_offline_lets_loopback_through_and_fails_on_anything_else(tmp_path):
    program = (
        "import socket\n"
        "from assisted_benchmark.suite.offline import SocketGuard\n"
        "from assisted_benchmark.kernel.errors import HarnessError\n"
        "guard = SocketGuard()\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname()).close()\n"
        "def connect(host):\n"
        "    socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET).connect((host, 9))\n"
        "def look_up(host):\n"
        "    socket.getaddrinfo(host, 9)\n"
        "socket.getaddrinfo('localhost', 9)\n"
        "for reach, host in [(connect, '192.0.2.1'), (connect, '2001:db8::1'), (look_up, 'example.invalid')]:\n"
        "    try:\n"
        "        reach(host)\n"
        "    except HarnessError as error:\n"
        "        print(error.reason.value)\n"
        "print(len(guard.blocked))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={"PYTHONPATH": str(SCRIPTS), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["network_blocked"] * 3 + ["3"], done.stderr
    assert command(a_root(tmp_path, good=PASSING), "run", "--offline")[0] == 0


def test_a_reader_that_goes_away_is_no_fault(tmp_path):
    root = a_root(tmp_path, **{f"good-{index:03}": PASSING for index in range(300)})
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m assisted_benchmark list | head -n 1; exit "${{PIPESTATUS[0]}}"'],
        cwd=root,
        env={"PYTHONPATH": str(SCRIPTS), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0


def _shell(root, line):
    """A line of bash in which `ab` is the command: its exit code and standard error."""
    named = f'ab() {{ "{sys.executable}" -m assisted_benchmark "$@"; }}; {line}'
    done = subprocess.run(
        ["bash", "-c", named],
        cwd=root,
        env={"PYTHONPATH": str(SCRIPTS), "PATH": os.environ["PATH"], "HOME": str(root)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@promise("H20")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ab run >&-", 0),
        ("ab run 2>&-", 0),
        ("ab run >&- 2>&- <&-", 0),
        ("ab list >/dev/full", 3),
        ("ab run >/dev/full", 3),
        ("ab --version >/dev/full", 3),
        ("ab --version | true; exit ${PIPESTATUS[0]}", 0),
        ("ab list $(printf 'a%.0s' {1..5000})", 2),
        ("ab verify $(printf 'a%.0s' {1..5000})", 2),
        ("ab run --root $(printf 'a%.0s' {1..5000})", 2),
        ("ab run --resume $(printf 'a%.0s' {1..5000})", 2),
        ("mkdir gone; cd gone; rmdir ../gone; ab list", 2),
        ("touch runs; ab run", 2),
    ],
)
def test_what_the_system_refuses_is_told_in_a_line(tmp_path, line, code):
    found, err = _shell(a_root(tmp_path, good=PASSING), line)
    assert (found, len(err.splitlines()) <= 3) == (code, True), err


@promise("H20")
def test_sigterm_ends_a_run_as_ctrl_c_does(tmp_path):
    root = a_root(tmp_path, **{f"good-{index:02}": PASSING for index in range(40)})
    waiting = "while kill -0 $! && ! grep -q . runs/0001/journal-*.jsonl; do :; done 2>/dev/null"
    ending = "kill -TERM $!; wait $!"
    code, _ = _shell(root, f'"{sys.executable}" -m assisted_benchmark run --servers process & {waiting}; {ending}')
    assert code == 130
    assert report_of(root)["interrupted"] is True


def test_pins_are_never_written_through_a_link(tmp_path):
    root = a_root(tmp_path / "root", good=PASSING)
    outside = tmp_path / "outside.yaml"
    pins = root / "contracts" / "pins.yaml"
    outside.write_bytes(pins.read_bytes())
    pins.unlink()
    pins.symlink_to(outside)
    before = outside.read_bytes()
    policy = root / "contracts" / "ui-decision.policy.yaml"
    policy.write_text(policy.read_text().replace("120s", "121s"))
    command(root, "lint", "--write-pins")
    assert outside.read_bytes() == before


def test_nothing_is_written_through_a_link_that_leads_out_of_the_root(tmp_path):
    root = a_root(tmp_path / "root", plain=PASSING)
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "fixtures" / "recorded").symlink_to(outside)
    transcript = root / "agent.jsonl"
    called = {"name": "lba__get_benchmark_series", "arguments": {}}
    transcript.write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}))
    for words in (
        ("record", "live/plain", "-o", "fixtures/recorded/x.scenario.yaml"),
        ("new", "--from", transcript, "--contract", "lba-and-synthetic-ui", "x"),
    ):
        code, _, err = command(root, *words)
        assert (code, "(path_escape)" in err) == (2, True), err
    (root / "fixtures" / "live" / "plain.scenario.yaml").unlink()
    (root / "fixtures" / "live").rmdir()
    (root / "fixtures" / "live").symlink_to(outside)
    code, _, err = command(root, "new", "x", "--policy", "ui-decision")
    assert (code, "(path_escape)" in err) == (2, True), err
    assert list(outside.iterdir()) == []


def test_file_names_that_would_move_the_cursor_are_shown_harmless(tmp_path):
    root = a_root(
        tmp_path, **{"esc\x1b[31m": PASSING.replace("{id}", "esc").replace("the plain road", "x") + "expcet: 1\n"}
    )
    assert "\x1b" not in command(root, "lint")[2]
    keys = root / "led\x1b[2Jger" / "keys"
    keys.mkdir(parents=True)
    (keys / "run.key").touch(mode=0o600)
    serve = ["serve", "--changes", "fabric", "--offline-endpoint", "--ledger", keys.parent]
    code, _, err = command(root, *serve)
    assert (code, "\x1b" not in err, "holds no key" in err) == (2, True, True)


def test_another_platform_gets_a_clear_message(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(["doctor"]) == 2
    assert "Linux or macOS" in capsys.readouterr().err


def test_without_a_verb_the_help_is_shown_and_the_code_is_misuse(capsys):
    assert main([]) == 2
    assert "usage: assisted-benchmark" in capsys.readouterr().err


def test_the_version_needs_no_heavy_import():
    program = "import sys\nfrom assisted_benchmark.cli.main import main\nmain(['--version'])\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SCRIPTS), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    version, modules = done.stdout.splitlines()
    assert version.startswith("assisted-benchmark ")
    assert not {"attr", "orjson", "yaml", "apsw", "jsonschema_rs"} & set(modules.split())


def test_the_parser_and_this_page_know_the_same_verbs():
    (verbs,) = (action.choices for action in parser()._actions if action.dest == "verb")
    assert tuple(verbs) == VERBS
    assert (ROOT / "README.md").parent == ROOT
