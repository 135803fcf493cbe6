"""A run's directory: held by one run, believed only where it was signed, read with bounds, written whole."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
from attrs import evolve
from marks import promise
from suite_world import LEAST, ROOT, a_root, scenario

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import (
    DocumentError,
    HarnessError,
    InputError,
    IntegrityError,
    LedgerError,
    MisuseError,
)
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import MAX_NODES
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.suite.asked import newly_asked
from assisted_benchmark.suite.export import write_export
from assisted_benchmark.suite.journal import Journal, read_journals
from assisted_benchmark.suite.live import stage
from assisted_benchmark.suite.plan import run_keys
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import (
    RunPlan,
    discover,
    failed_in,
    merge,
    new_run_directory,
    run,
    verify_run,
)
from assisted_benchmark.suite.storage import RunDirectory, write_whole

TWO = "agent: {plan: approve}\ncases: {a: {}, b: {agent: {plan: hold}}}\n"


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return discover(a_root(tmp_path_factory.mktemp("root"), least=LEAST, two=scenario("two", TWO)))


@pytest.fixture
def plan(tmp_path):
    return RunPlan(seed=1, durability="memory", directory=tmp_path / "run")


@pytest.fixture
def left(cases, plan):
    run(cases, plan)
    return plan.directory


def reason_of(kind, call, *given):
    with pytest.raises(kind) as caught:
        call(*given)
    assert type(caught.value) is kind
    return caught.value.reason


# --- one run at a time


@promise("H15")
def test_a_directory_that_is_being_run_is_refused_and_free_again_afterwards(cases, plan):
    told = []

    def second(result):
        if not told:
            with pytest.raises(MisuseError) as caught:
                run(cases, plan)
            told.append(caught.value)

    first = run(cases, plan, second)
    assert told[0].reason is Reason.MISUSE
    assert "is being run by another process" in told[0].detail
    assert run(cases, plan) == first


@promise("H15")
def test_a_worker_that_still_lives_keeps_others_out(cases, plan, left):
    with (left / "journal-0.jsonl").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert reason_of(MisuseError, run, cases, plan) is Reason.MISUSE
    assert len(run(cases, plan).cases) == 3


ENDLESS = """
import sys
from pathlib import Path
from attrs import evolve
from assisted_benchmark.suite import engine
from assisted_benchmark.suite.runner import RunPlan, discover, run

if __name__ == "__main__":
    engine._FEW = 0
    (case,) = discover(Path(sys.argv[1]))
    cases = [evolve(case, id=f"{case.id}-{number}") for number in range(5_000)]
    run(cases, RunPlan(jobs=2, durability="memory", directory=Path(sys.argv[2])))
"""


def children_of(pid):
    told = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in told.splitlines() if int(line.split()[1]) == pid]


def lives(pid):
    """Whether a process is there and no mere remainder that nobody waited for."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return told.strip() != "" and "Z" not in told


@promise("H15")
def test_the_workers_of_a_killed_run_end_with_it(tmp_path):
    root = a_root(tmp_path / "root", least=LEAST)
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    folder = tmp_path / "run"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    running = subprocess.Popen([sys.executable, script, root, folder], env=environment)
    end = time.monotonic() + 60
    try:
        while not all((folder / f"journal-{part}.jsonl").is_file() for part in (0, 1)):
            assert running.poll() is None
            assert time.monotonic() < end
        workers = children_of(running.pid)
        assert len(workers) >= 2
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    while any(lives(worker) for worker in workers):
        assert time.monotonic() < end


# --- journals


@promise("H19")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"verdict":"passed"', b'"verdict":"failed"'),
        (b"admitted", b"admittee"),
        (b'"head":[4', b'"head":[3'),
        (b'"mac":"', b'"mac":"0'),
    ],
)
def test_an_edited_line_of_a_journal_is_not_believed(cases, plan, left, old, new):
    journal = left / "journal-0.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert old in lines[1]
    journal.write_bytes(b"".join([lines[0], lines[1].replace(old, new), *lines[2:]]))
    for call, given in ((run, (cases, plan)), (failed_in, (left,))):
        with pytest.raises(IntegrityError) as caught:
            call(*given)
        assert caught.value.reason is Reason.CHAIN_BROKEN
        assert f"{journal}:2;" in caught.value.detail


@promise("H19")
@pytest.mark.parametrize("line", [b"{}", b"", b"nonsense", b"[" * 100_000, b"\xff"])
def test_a_line_that_is_no_case_is_not_believed(cases, plan, left, line):
    with (left / "journal-0.jsonl").open("ab") as journal:
        journal.write(line + b"\n")
    assert reason_of(IntegrityError, run, cases, plan) is Reason.CHAIN_BROKEN


@promise("H19")
def test_a_line_of_another_runs_key_is_not_believed(cases, plan, left, tmp_path):
    run(cases, RunPlan(seed=2, durability="memory", directory=tmp_path / "other"))
    (left / "journal-0.jsonl").write_bytes((tmp_path / "other/journal-0.jsonl").read_bytes())
    assert reason_of(IntegrityError, run, cases, plan) is Reason.CHAIN_BROKEN


@promise("H15")
def test_cases_that_could_not_run_are_tried_again_and_their_last_line_counts(cases, tmp_path, monkeypatch):
    plan = RunPlan(seed=1, durability="memory", shard=(1, 1), directory=tmp_path / "run")

    def full(*args):
        raise HarnessError(Reason.STORE_UNAVAILABLE, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(stage, "world_of", full)
        first = run(cases, plan)
    assert {case.verdict for case in first.cases} == {Verdict.COULD_NOT_RUN}
    for part in range(1, 11):  # ten dead workers' later, the names of journals no longer sort by letter
        (plan.directory / f"journal-{part}.jsonl").touch()
    again = run(cases, plan)
    assert [case.verdict for case in again.cases] == [Verdict.PASSED] * 3
    assert verify_run(plan.directory) == ()
    assert failed_in(plan.directory) == frozenset()
    assert merge([plan.directory], tmp_path / "merged").cases == again.cases


@promise("H8")
@pytest.mark.parametrize("durability", ["memory", "process"])
def test_a_store_that_fails_of_itself_gives_no_verdict_and_its_cases_are_tried_again(
    cases, tmp_path, monkeypatch, durability
):
    plan = RunPlan(seed=1, durability=durability, directory=tmp_path / "run")

    def full(*args):
        raise LedgerError(Reason.STORE_UNAVAILABLE, "database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryLedger if durability == "memory" else SqliteLedger, "claim", full)
        first = run(cases, plan)
    assert {(case.verdict, case.reason) for case in first.cases} == {(Verdict.COULD_NOT_RUN, "store_unavailable")}
    assert {case.verdict for case in run(cases, plan).cases} == {Verdict.PASSED}
    assert verify_run(plan.directory) == ()


class Full:
    """A journal's file on a disk that takes half a line."""

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        if self._file.tell():
            self._file.write(data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(data)


@promise("H15")
def test_a_full_disk_ends_the_run_with_whole_lines_and_it_goes_on_later(cases, plan, tmp_path, monkeypatch):
    opened = Journal.__init__

    def on_a_full_disk(self, path, keys):
        opened(self, path, keys)
        self._file = Full(self._file)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "__init__", on_a_full_disk)
        assert reason_of(HarnessError, run, cases, plan) is Reason.STORE_UNAVAILABLE
    files = RunDirectory(plan.directory)
    assert [each.result.id for each in read_journals(files, run_keys(1))] == [cases[0].id]
    assert files.journal(0).read_bytes().endswith(b"}\n")
    assert run(cases, plan) == run(cases, RunPlan(seed=1, durability="memory", directory=tmp_path / "whole"))
    assert verify_run(plan.directory) == ()


def test_a_journal_that_cannot_be_made_ends_the_run(cases, plan):
    plan.directory.mkdir()
    with pytest.raises(HarnessError) as caught:
        Journal(plan.directory / "no-folder" / "journal-0.jsonl", run_keys(1))
    assert caught.value.reason is Reason.STORE_UNAVAILABLE


# --- files are there whole or not at all


def contents(folder):
    return {path.name: data for path in folder.iterdir() if path.is_file() and (data := path.read_bytes())}


@promise("H19")
def test_an_interrupted_export_leaves_what_was_there_before(cases, plan, left, monkeypatch):
    before = contents(left)

    def interrupted(self, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(cases, plan)
    assert contents(left) == before
    run(cases, plan)
    assert verify_run(left) == ()


def test_what_cannot_be_written_is_told_as_the_harnesss_failure(tmp_path):
    assert reason_of(HarnessError, write_whole, tmp_path / "none" / "x", b"") is Reason.STORE_UNAVAILABLE


def test_ledgers_that_have_no_place_end_the_run(cases, tmp_path):
    (tmp_path / "ledgers").touch()
    assert reason_of(HarnessError, run, cases, RunPlan(directory=tmp_path)) is Reason.STORE_UNAVAILABLE


def test_a_run_may_have_more_cases_than_one_json_value_may_have_parts(cases, plan, left):
    many = [evolve(cases[0], id=f"{cases[0].id}-{number}") for number in range(MAX_NODES)]
    assert len(newly_asked(many, many, plan)["cases"]) == MAX_NODES
    files = RunDirectory(left)
    (ended, *_) = read_journals(files, run_keys(1))
    empty = ended._replace(receipts=(), head=Head(0, Digest("")))
    write_export(files, (empty._replace(run=str(number)) for number in range(MAX_NODES // 4)), "x", run_keys(1))
    # The anchor holds; each of these chains is then found to be none.
    assert [problem.file for problem in verify_run(left)] == [str(files.receipts)] * (MAX_NODES // 4)


# --- what stands there may be anything

ODD = {
    "a fifo": os.mkfifo,
    "a folder": Path.mkdir,
    "no end": lambda path: path.symlink_to("/dev/zero"),
    "nowhere": lambda path: path.symlink_to("nowhere"),
}


def put(path, odd):
    path.unlink()
    ODD[odd](path)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("heads.json", Reason.CHAIN_MISSING),
        ("receipts.jsonl", Reason.CHAIN_MISSING),
        ("keys/run.key", Reason.UNREADABLE),
    ],
)
def test_what_is_to_be_verified_is_a_regular_file_or_told_of(left, odd, name, reason):
    put(left / name, odd)
    assert [problem.reason for problem in verify_run(left)] == [reason]


@pytest.mark.parametrize("odd", ODD)
def test_a_run_is_read_from_regular_files_only(cases, plan, left, odd):
    put(left / "journal-0.jsonl", odd)
    with pytest.raises(InputError):
        run(cases, plan)
    put(left / "run.json", odd)
    for call, given in ((failed_in, (left,)), (verify_run, (left,)), (merge, ([left], left.parent / "into"))):
        assert reason_of(MisuseError, call, *given) is Reason.UNREADABLE


@pytest.mark.parametrize(
    "edit",
    [
        lambda value: b"",
        lambda value: b"[",
        lambda value: b"[]",
        lambda value: b"{}",
        *(
            lambda value, key=key: orjson.dumps({name: each for name, each in value.items() if name != key})
            for key in ("schema", "seed", "durability", "servers", "repeat", "shard", "sources", "cases")
        ),
        *(
            lambda value, more=more: orjson.dumps(value | more)
            for more in (
                {"schema": "older"},
                {"schema": 1},
                {"seed": "1"},
                {"seed": -1},
                {"seed": True},
                {"durability": "none"},
                {"servers": []},
                {"repeat": 0},
                {"sources": None},
                {"cases": {}},
                {"cases": [1]},
                {"shard": []},
                {"shard": {"number": 1}},
                {"shard": {"number": 1, "of": 1, "cases": 3, "sources": "", "places": [0]}},
                {"shard": {"number": 1, "of": 1, "cases": 3, "sources": "", "places": ["0", 1, 2]}},
            )
        ),
    ],
)
def test_a_plan_that_is_none_is_refused(cases, plan, left, edit):
    asked = left / "run.json"
    asked.write_bytes(edit(orjson.loads(asked.read_bytes())))
    for call, given in ((run, (cases, plan)), (failed_in, (left,)), (verify_run, (left,))):
        assert reason_of(MisuseError, call, *given) is Reason.UNREADABLE


@promise("H19")
def test_verifying_says_what_is_missing(left, tmp_path):
    assert reason_of(MisuseError, verify_run, tmp_path) is Reason.UNREADABLE
    (left / "keys/run.key").unlink()
    (problem,) = verify_run(left)
    assert (problem.reason, problem.file) == (Reason.UNREADABLE, str(left / "keys/run.key"))
    assert problem.hint == "put the run's own key file back there"
    (left / "heads.json").unlink()
    (left / "receipts.jsonl").unlink()
    (problem,) = verify_run(left)
    assert (problem.reason, problem.hint) == (
        Reason.CHAIN_MISSING,
        "a run that was killed is finished by `run --resume`",
    )


@pytest.mark.parametrize("odd", ["a file", "a dangling link", "a read-only folder"])
def test_runs_that_have_no_place_are_refused(tmp_path, monkeypatch, odd):
    runs = tmp_path / "runs"
    if odd == "a file":
        runs.touch()
    elif odd == "a dangling link":
        runs.symlink_to("nowhere")
    else:

        def denied(self, *given, **more):
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(Path, "mkdir", denied)
    assert reason_of(MisuseError, new_run_directory, tmp_path) is Reason.UNREADABLE


def test_a_directory_that_cannot_be_made_is_refused(cases, tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert reason_of(MisuseError, run, cases, RunPlan(directory=path)) is Reason.UNREADABLE


# --- names that are not UTF-8


@pytest.fixture
def raw_names(tmp_path):
    """Some file systems refuse such names themselves, and then nothing can be there."""
    try:
        (tmp_path / os.fsdecode(b"\xff")).touch()
    except OSError:
        return False
    return True


def test_a_run_directory_whose_name_cannot_be_written_down_is_refused(cases, tmp_path):
    folder = tmp_path / os.fsdecode(b"run-\xff")
    assert reason_of(MisuseError, run, cases, RunPlan(directory=folder)) is Reason.UNREADABLE
    assert not folder.exists()


def test_a_fixture_whose_name_is_not_utf8_is_refused_before_anything_runs(tmp_path, raw_names):
    root = a_root(tmp_path / "root", least=LEAST)
    name = root / "fixtures/live" / os.fsdecode(b"od\xffd.scenario.yaml")
    if raw_names:
        (root / "fixtures/live/least.scenario.yaml").rename(name)
    with pytest.raises(DocumentError) as caught:
        discover(root, [name])
    (problem,) = caught.value.problems
    assert (problem.reason, problem.file) == (Reason.UNREADABLE, "fixtures/live/od\\udcffd.scenario.yaml")


def test_a_root_whose_name_is_not_utf8_is_refused(tmp_path):
    with pytest.raises(DocumentError) as caught:
        discover(tmp_path / os.fsdecode(b"ro\xffot"))
    (problem,) = caught.value.problems
    assert (problem.reason, problem.file) == (Reason.UNREADABLE, str(tmp_path / "ro\\udcffot"))
