"""Agents that vary are told by counts and intervals; those that do not, by their one outcome."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise
from test_reports import COMMANDS, a_case, a_run

from assisted_benchmark.report.chances import Chance, chances, effective, pass_hat, wilson
from assisted_benchmark.report.record import record
from assisted_benchmark.report.terminal import chances_table, terminal
from assisted_benchmark.suite.result import VARIES, Verdict

TASKS = st.lists(
    st.integers(1, 20).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))), min_size=1, max_size=8
)


@promise("H8")
@pytest.mark.parametrize(
    ("passes", "runs", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_an_interval_is_wilson_s(passes, runs, low, high):
    assert tuple(round(each, 4) for each in wilson(passes / runs, runs)) == (low, high)


@promise("H8")
@given(TASKS)
def test_an_interval_holds_the_share_and_is_never_narrower_for_being_clustered(tasks):
    passes, runs = (sum(column) for column in zip(*tasks, strict=True))
    count = effective(tasks)
    assert min(len(tasks), runs) <= count <= runs
    low, high = wilson(passes / runs, count)
    simple = wilson(passes / runs, runs)
    assert 0 <= low <= passes / runs + 1e-12
    assert passes / runs - 1e-12 <= high <= 1
    assert low <= simple[0] + 1e-12
    assert high >= simple[1] - 1e-12


@promise("H8")
@pytest.mark.parametrize(
    ("tasks", "count"),
    [
        ([(3, 5)], 5),  # one task: its runs are all there is
        ([(4, 4), (0, 4)], 2),  # each task always ends alike: so many runs as tasks
        ([(2, 4), (2, 4)], 8),  # tasks do not differ: every run counts
        ([(4, 4), (4, 4)], 2),  # nothing tells the runs apart
        ([(4, 4), (1, 4), (1, 4)], 4),  # 1/16 between tasks beside 1/48 of independent runs: a third of 12
    ],
)
def test_runs_of_one_task_count_for_less_the_more_tasks_differ(tasks, count):
    assert effective(tasks) == pytest.approx(count)


@promise("H8")
def test_pass_hat_is_the_mean_over_tasks_of_the_share_of_choices_that_all_passed():
    assert pass_hat([(3, 4)], 2) == 0.5  # 3 of the 6 pairs
    assert pass_hat([(3, 4), (4, 4)], 2) == 0.75
    assert pass_hat([(3, 4)], 1) == 0.75
    assert pass_hat([(1, 4)], 2) == 0


CASES = (
    a_case("a", Verdict.FAILED, id="live/mine/a", runs=4, passes=3, stamps=(VARIES,)),
    a_case("b", id="live/mine/b", runs=4, passes=4, stamps=(VARIES,)),
    a_case("c", id="live/other/c", runs=1, passes=1, stamps=(VARIES,)),
    a_case("d"),
    a_case("e", Verdict.COULD_NOT_RUN, reason="launch_failed", detail="no such file", agent="command"),
)


@promise("H8")
def test_each_scenario_whose_agent_varies_has_a_row_and_no_other_is_called_deterministic():
    first, other = chances(CASES)
    assert (first.scenario, first.tasks, first.runs, first.passes) == ("live/mine", 2, 8, 7)
    assert (first.in_a_row, first.all_pass) == (4, 0.5)
    assert other == Chance(
        scenario="live/other", tasks=1, runs=1, passes=1, low=0.2065, high=1.0, in_a_row=1, all_pass=1.0
    )
    told = record(a_run(*CASES))
    assert [row["scenario"] for row in told["varying"]] == ["live/mine", "live/other"]
    assert [case["deterministic"] for case in told["cases"]] == [False, False, False, True, False]
    text = terminal(a_run(*CASES), colour=False, commands=COMMANDS)
    assert ["live/other", "1", "1", "1", "0.2065", "1.0", "1", "1.0"] in [line.split() for line in text.splitlines()]


@promise("H8")
def test_without_an_agent_that_varies_there_is_no_such_table():
    assert chances_table(a_run(a_case("a"))) == ""
    assert record(a_run(a_case("a")))["varying"] == []
