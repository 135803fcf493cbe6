"""Runs of many cases: selected, in parallel, cut short, taken up again."""

import multiprocessing
import signal
from pathlib import Path

import orjson
import pytest
from attrs import evolve
from marks import promise
from suite_world import LEAST, ROOT, a_root, scenario

from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.errors import HarnessError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.report.record import record_bytes
from assisted_benchmark.suite import bench, engine
from assisted_benchmark.suite.instruments import CaseChance
from assisted_benchmark.suite.lint import write_pins
from assisted_benchmark.suite.live import stage
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import (
    RunPlan,
    discover,
    failed_in,
    latest_run,
    merge,
    new_run_directory,
    plan_for,
    run,
    select,
    shard,
    verify_run,
)
from assisted_benchmark.suite.speed import cases_a_second, repeat_cases

FAILING = "agent: {plan: approve}\nexpect: {oracle: held}\ncases: {a: {}, b: {}, c: {}}\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return a_root(
        tmp_path_factory.mktemp("root"),
        least=LEAST,
        decided=scenario(
            "decided",
            "tags: [quick, ui]\nagent: {plan: approve}\nproposals: {x: {tool: none-such, refused: unknown_tool}}\n",
        ),
        failing=scenario("failing", FAILING),
    )


@pytest.fixture
def cases(root):
    return discover(root)


def ids(cases):
    return [case.id.removeprefix("live/") for case in cases]


ALL = ["decided/plain", "decided/x", "failing/a", "failing/b", "failing/c", "least/plain"]


@promise("H15")
def test_cases_are_selected_by_words_tags_and_ids(cases):
    assert ids(cases) == ALL
    assert ids(select(cases, k="LIVE plain")) == ["decided/plain", "least/plain"]
    assert ids(select(cases, k="quick")) == ["decided/plain", "decided/x"]
    assert ids(select(cases, tags=["ui", "quick"])) == ["decided/plain", "decided/x"]
    assert ids(select(cases, tags=["ui"], ids={"live/decided/x", "live/least/plain"})) == ["decided/x"]
    assert ids(select(cases, k="nothing")) == []


def test_only_the_files_and_folders_asked_for_are_read(root):
    fixtures = root / "fixtures/live"
    assert ids(discover(root, [fixtures / "least.scenario.yaml"])) == ["least/plain"]
    assert ids(discover(root, [fixtures, fixtures / "least.scenario.yaml"])) == ALL


@promise("H8")
def test_results_come_in_case_order_and_verdicts_are_not_merged(cases):
    told = []
    result = run(cases, RunPlan(durability="memory"), told.append)
    assert ids(result.cases) == ALL == ids(told)
    assert [case.verdict for case in result.cases] == ["passed", "passed", "failed", "failed", "failed", "passed"]
    assert (result.selected, result.interrupted, result.stamps) == (6, False, ("isolation: none",))


@promise("H15")
def test_several_processes_give_the_same_results_and_receipts_as_one(cases, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_FEW", 0)
    alone = run(cases, RunPlan(seed=3, directory=tmp_path / "one"))
    together = run(cases, RunPlan(seed=3, jobs=2, directory=tmp_path / "two"))
    assert together.cases == alone.cases
    names = ("receipts.jsonl", "heads.json", "run.json")
    assert [(tmp_path / "two" / name).read_bytes() for name in names] == [
        (tmp_path / "one" / name).read_bytes() for name in names
    ]
    assert verify_run(tmp_path / "two") == ()
    assert len(list((tmp_path / "two").glob("journal-*.jsonl"))) == 2


@promise("H7a")
@pytest.mark.parametrize("durability", ["memory", "process", "power"])
def test_the_same_seed_gives_byte_identical_receipts_on_every_ledger(cases, tmp_path, durability):
    run(cases, RunPlan(seed=5, durability="memory", directory=tmp_path / "a"))
    run(cases[::-1], RunPlan(seed=5, durability=durability, directory=tmp_path / "b"))
    one, other = ((tmp_path / name / "receipts.jsonl").read_bytes().split(b"\n") for name in "ab")
    assert sorted(one) == sorted(other)
    run(cases, RunPlan(seed=6, durability=durability, directory=tmp_path / "c"))
    assert set((tmp_path / "c/receipts.jsonl").read_bytes().split(b"\n")) & set(one) == {b""}


@promise("H15")
def test_a_run_stops_when_enough_has_failed(cases):
    result = run(cases, RunPlan(durability="memory", maxfail=2))
    assert ids(result.cases) == ALL[:4]
    assert result.selected == 6


class Killed(BaseException):
    """The process was killed here."""


@promise("H15")
def test_a_killed_run_is_taken_up_with_nothing_lost_and_nothing_run_twice(cases, tmp_path, monkeypatch):
    plan = RunPlan(seed=1, directory=tmp_path / "run")
    played = []
    real = bench.Bench.run

    def dying(self, case, run=""):
        if len(played) == 3:
            raise Killed
        played.append(case.id)
        return real(self, case, run)

    monkeypatch.setattr(bench.Bench, "run", dying)
    with pytest.raises(Killed):
        run(cases, plan)
    journal = tmp_path / "run/journal-0.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"result": {"id": "li')  # and the tail was torn
    monkeypatch.setattr(bench.Bench, "run", lambda self, case, run="": played.append(case.id) or real(self, case, run))
    told = []
    resumed = run(cases, plan, told.append)
    assert ids(told) == ALL
    assert played == [case.id for case in cases]
    assert resumed == run(cases, RunPlan(seed=1, directory=tmp_path / "whole"))
    assert verify_run(tmp_path / "run") == ()
    assert (tmp_path / "run/receipts.jsonl").read_bytes() == (tmp_path / "whole/receipts.jsonl").read_bytes()


@promise("H15")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_was_done(cases, tmp_path, monkeypatch, jobs):
    monkeypatch.setattr(engine, "_FEW", 0)

    def interrupt(result):
        raise KeyboardInterrupt

    plan = RunPlan(seed=1, jobs=jobs, directory=tmp_path / "run")
    result = run(cases, plan, interrupt)
    assert result.interrupted
    assert 1 <= len(result.cases) <= 6
    assert verify_run(tmp_path / "run") == ()
    assert ids(run(cases, plan).cases) == ALL


def test_another_runs_directory_is_refused(cases, tmp_path):
    run(cases, RunPlan(seed=1, durability="memory", directory=tmp_path))
    with pytest.raises(MisuseError) as caught:
        run(cases, RunPlan(seed=2, durability="memory", directory=tmp_path))
    assert caught.value.reason is Reason.MISUSE


@promise("H15")
def test_a_selection_need_not_be_said_again_to_take_a_run_up(cases, tmp_path):
    plan = RunPlan(seed=1, durability="memory", directory=tmp_path / "run")
    chosen = run(select(cases, k="decided"), plan)
    assert run(cases, plan) == chosen
    with pytest.raises(MisuseError):
        run(cases[1:], plan)


def test_a_run_is_not_taken_up_with_an_edited_fixture(tmp_path):
    root = a_root(tmp_path, least=LEAST)
    plan = RunPlan(durability="memory", directory=tmp_path / "run")
    run(discover(root), plan)
    (root / "fixtures/live/least.scenario.yaml").write_text(LEAST + "because: edited\n")
    with pytest.raises(MisuseError):
        run(discover(root), plan)


@promise("H15")
def test_failed_cases_of_the_last_run_are_known_and_directories_are_counted(cases, tmp_path):
    assert latest_run(tmp_path) is None
    first, second = new_run_directory(tmp_path), new_run_directory(tmp_path)
    assert [path.name for path in (first, second)] == ["0001", "0002"]
    assert latest_run(tmp_path) == second
    run(cases, RunPlan(durability="memory", directory=second, maxfail=1))
    assert sorted(failed_in(second)) == ["live/failing/a", "live/failing/b", "live/failing/c", "live/least/plain"]
    with pytest.raises(MisuseError):
        failed_in(first)


@promise("H8")
def test_a_harness_that_fails_gives_no_verdict_and_the_next_case_runs(cases, monkeypatch):
    def broken(*args):
        raise HarnessError(Reason.LAUNCH_FAILED, "no model")

    monkeypatch.setattr(stage, "world_of", broken)
    result = run(cases[:2], RunPlan(durability="memory"))
    assert [(case.verdict, case.reason, case.detail) for case in result.cases] == [
        (Verdict.COULD_NOT_RUN, "launch_failed", "no model")
    ] * 2


def test_a_bug_in_the_harness_gives_no_verdict_either(cases, monkeypatch):
    monkeypatch.setattr(stage, "world_of", lambda *args: {}["nothing"])
    (case,) = run(cases[:1], RunPlan(durability="memory")).cases
    assert (case.verdict, case.reason, case.detail) == (Verdict.COULD_NOT_RUN, "could_not_run", "KeyError: 'nothing'")


@promise("H8")
def test_cases_of_a_worker_that_died_could_not_run(cases, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_FEW", 0)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/ledgers").write_text("no folder, so every worker dies at its start")
    result = run(cases, RunPlan(jobs=2, directory=tmp_path / "run"))
    assert {case.verdict for case in result.cases} == {Verdict.COULD_NOT_RUN}


@promise("H7a")
def test_repetitions_that_differ_fail_and_those_that_do_not_pass(cases, tmp_path, monkeypatch):
    plan = RunPlan(seed=2, repeat=3, expect_identical=True)
    assert [case.verdict for case in run(cases[:2], plan).cases] == ["passed", "passed"]
    monkeypatch.setattr(CaseChance, "begin", lambda self, seed: setattr(self, "_chance", SystemChance()))
    differing = run(cases[:2], plan).cases
    assert [[miss.what for miss in case.misses] for case in differing] == [["identical", "identical"]] * 2


def test_a_run_directory_tells_what_is_run_and_how_long_it_took(cases, tmp_path):
    run(cases, RunPlan(durability="memory", directory=tmp_path / "run"))
    asked = orjson.loads((tmp_path / "run/run.json").read_bytes())
    assert asked["cases"] == [case.id for case in cases]
    timing = [orjson.loads(line) for line in (tmp_path / "run/timing.jsonl").read_bytes().splitlines()]
    assert [set(each) for each in timing] == [{"case", "prepare", "play", "judge"}] * len(cases)


def test_the_shipped_fixtures_are_found():
    assert len(discover(ROOT)) > 200


def test_a_worker_takes_a_number_of_its_own_and_stops_when_it_is_told_to(cases, tmp_path):
    context = multiprocessing.get_context("spawn")
    part, stop = context.Value("i", 4), context.Event()
    handler = signal.getsignal(signal.SIGINT)
    try:
        engine._start(cases, RunPlan(durability="memory", directory=tmp_path), part, stop)
        assert [(index, orjson.loads(packed)["id"]) for index, packed in engine._run_chunk([1, 0])] == [
            (1, cases[1].id),
            (0, cases[0].id),
        ]
        stop.set()
        assert engine._run_chunk([2]) == []
    finally:
        engine._here.pop("worker").close()
        signal.signal(signal.SIGINT, handler)
    assert part.value == 5
    assert (tmp_path / "journal-4.jsonl").read_bytes().count(b"\n") == 2


def test_a_repetition_that_could_not_run_is_told_as_such(cases, monkeypatch):
    monkeypatch.setattr(stage, "world_of", lambda *args: {}["nothing"])
    (case,) = run(cases[:1], RunPlan(repeat=2, expect_identical=True)).cases
    assert (case.verdict, case.misses) == (Verdict.COULD_NOT_RUN, ())


def test_a_ledger_in_memory_is_put_anew_and_nobody_can_tell(cases, monkeypatch):
    monkeypatch.setattr(stage, "_MEMORY_CASES", 2)
    assert run(cases, RunPlan(durability="memory")).cases == run(cases, RunPlan(durability="process")).cases


def test_speed_is_measured_on_cases_that_pass(cases, root):
    assert repeat_cases(cases[0], 3, "memory") > 0
    with pytest.raises(AssertionError):
        repeat_cases(cases[2], 1, "memory")
    assert cases_a_second(root, "process", k="least", count=3, jobs=1) > 0


@promise("H15")
def test_shards_hold_every_case_once_whatever_else_there_is_and_join_to_the_whole_run(cases, tmp_path):
    parts = [shard(cases, number, 3) for number in (1, 2, 3)]
    assert sorted(ids(case for part in parts for case in part)) == ALL
    assert [shard(cases[2:], number, 3) for number in (1, 2, 3)] == [
        tuple(case for case in part if case in cases[2:]) for part in parts
    ]
    selected = cases[::-1]  # an order of its own, which no id tells
    for number in (1, 2, 3):
        run(selected, RunPlan(seed=4, shard=(number, 3), directory=tmp_path / str(number)))
    whole = run(selected, RunPlan(seed=4, directory=tmp_path / "whole"))
    merged = merge([tmp_path / str(number) for number in (3, 1, 2)], tmp_path / "merged")
    assert record_bytes(merged) == record_bytes(whole)
    assert verify_run(tmp_path / "merged") == ()
    names = ("receipts.jsonl", "heads.json", "run.json")
    assert [(tmp_path / "merged" / name).read_bytes() for name in names] == [
        (tmp_path / "whole" / name).read_bytes() for name in names
    ]
    assert failed_in(tmp_path / "merged") == failed_in(tmp_path / "whole")


@pytest.mark.parametrize(("number", "of"), [(0, 3), (4, 3), (1, 0)])
def test_there_is_no_other_part(cases, number, of):
    with pytest.raises(MisuseError):
        shard(cases, number, of)


def problem_of(call, *given, **more):
    with pytest.raises(MisuseError) as caught:
        call(*given, **more)
    assert caught.value.reason is Reason.MISUSE
    return caught.value.detail


@promise("H15")
def test_only_all_the_shards_of_one_run_are_joined(cases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory = {"seed": 1, "durability": "memory"}
    run(cases, RunPlan(**memory, directory=Path("whole")))
    for name, part in (("one", (1, 3)), ("two", (2, 3)), ("again", (2, 3)), ("half", (1, 2))):
        run(cases, RunPlan(**memory, shard=part, directory=Path(name)))
    run(cases[1:], RunPlan(**memory, shard=(3, 3), directory=Path("less")))
    run(cases, RunPlan(**(memory | {"seed": 2}), shard=(3, 3), directory=Path("seed")))
    run(cases, RunPlan(**memory, servers="in_process", shard=(3, 3), directory=Path("servers")))
    told = {
        (): "there is nothing to join; name the directories of all shards",
        ("whole",): "`whole` is no shard; `run --shard N/M` makes one",
        ("one", "two"): "not all parts are there: 3/3; run `--shard 3/3` too, and join all of them",
        ("two",): "not all parts are there: 1/3, 3/3; run `--shard 1/3` too, and join all of them",
        ("one", "two", "again"): "`two` and `again` are the same part, 2/3; give each part once",
        ("two", "two"): "`two` and `two` are the same part, 2/3; give each part once",
        ("two", "half"): "`two` and `half` are not shards of one run: another number of parts",
        ("two", "less"): "`two` and `less` are not shards of one run: another selection, or other files",
        ("two", "seed"): "`two` and `seed` are not shards of one run: seed 1 and 2",
        (
            "two",
            "servers",
        ): "`two` and `servers` are not shards of one run: servers as each scenario says and in_process",
    }
    assert {wrong: problem_of(merge, [Path(each) for each in wrong], Path("into")) for wrong in told} == told
    assert not Path("into").exists()
    with pytest.raises(MisuseError):
        merge([Path("one"), Path("missing")], Path("into"))
    Path("two/run.json").write_text('{"schema": "older"}')
    with pytest.raises(MisuseError):
        failed_in(Path("two"))


def test_a_part_that_no_case_is_in_need_not_be_run(cases, tmp_path):
    few = select(cases, ids={"live/least/plain"})
    number = next(number for number in (1, 2) if shard(few, number, 2))
    run(few, RunPlan(durability="memory", shard=(number, 2), directory=tmp_path / "part"))
    assert ids(merge([tmp_path / "part"], tmp_path / "into").cases) == ["least/plain"]


@promise("H15")
def test_a_run_is_gone_on_with_as_it_began_and_what_differs_is_told_with_both_values(cases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = Path("run")
    begun = plan_for(there, seed=3, durability="memory", servers=None, repeat=2, shard=(1, 2), jobs=2)
    assert begun == RunPlan(seed=3, durability="memory", repeat=2, shard=(1, 2), jobs=2, directory=there)
    first = run(cases, begun)
    again = plan_for(there, seed=None, durability=None, servers=None, repeat=None, shard=None, maxfail=9)
    assert again == RunPlan(seed=3, durability="memory", repeat=2, shard=(1, 2), maxfail=9, directory=there)
    assert run(cases[::-1], again) == first
    begun_with = "`run` was begun with"
    hint = "leave that out to go on with it, or take a new directory"
    for given, told in (
        ({"seed": 4}, "seed 3, not 4"),
        ({"durability": "power", "repeat": 1}, "durability memory, not power; repeat 2, not 1"),
        ({"servers": "process"}, "servers as each scenario says, not process"),
        ({"shard": (2, 2)}, "shard 1/2, not 2/2"),
    ):
        assert problem_of(run, cases, plan_for(there, **given)) == f"{begun_with} {told}; {hint}"
    whole = plan_for(Path("whole"), durability="memory")
    run(cases, whole)
    assert problem_of(run, cases, evolve(whole, shard=(1, 2))) == f"`whole` was begun with shard none, not 1/2; {hint}"


@pytest.mark.parametrize(("servers", "more"), [("", ()), ("servers: process\n", ("not watched: lba",))])
def test_what_a_case_does_not_guarantee_its_run_repeats(tmp_path, servers, more):
    root = a_root(tmp_path, open=LEAST + f"{servers}reveal: reason\n")
    contract = root / "contracts/lba-and-synthetic-ui.contract.yaml"
    contract.write_text(
        contract.read_text().replace("      control: true\n", "      control: true\n      artifacts: unpinned\n")
    )
    write_pins(root)
    result = run(discover(root), RunPlan(durability="memory", directory=tmp_path / "run", shard=(1, 1)))
    assert result.stamps == ("isolation: none", "artifacts: unpinned", *more, "reveal: reason")
    assert merge([tmp_path / "run"], tmp_path / "merged").stamps == result.stamps
