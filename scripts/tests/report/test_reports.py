"""Reports say the same numbers in every form, and hide nothing that could not run."""

import io
import json
from xml.etree import ElementTree as Xml

import jsonschema_rs
from marks import promise

from assisted_benchmark.contract.shape import json_schema
from assisted_benchmark.report.junit import junit
from assisted_benchmark.report.progress import Progress
from assisted_benchmark.report.record import SHAPE, record, record_bytes
from assisted_benchmark.report.summary import opening_table, refusals, verdicts
from assisted_benchmark.report.terminal import Commands, closing_line, lattice_table, table, terminal
from assisted_benchmark.suite.result import CaseResult, Counterfactual, Event, Miss, RunResult, Scores, Verdict


def a_case(name: str, verdict: Verdict = Verdict.PASSED, **more: object) -> CaseResult:
    values: dict[str, object] = {
        "id": f"live/file/{name}",
        "file": "fixtures/live/file.scenario.yaml",
        "because": "a reason",
        "agent": "plan:approve",
        "policy": "ui-decision",
        "verdict": verdict,
    }
    return CaseResult(**(values | more))  # type: ignore[arg-type]


def a_run(*cases: CaseResult, **more: object) -> RunResult:
    values: dict[str, object] = {"seed": 7, "durability": "memory", "cases": cases, "selected": len(cases)}
    return RunResult(**(values | more))  # type: ignore[arg-type]


COMMANDS = Commands("ab run --seed 7", "ab explain --seed 7")

FULL = a_run(
    a_case("a", proposed=2, admitted=1, sent=1, confirmed=1, refusals=(("expired", 1),), calls=(("ui", 1),)),
    a_case("b", Verdict.FAILED, misses=(Miss(what="calls", expected="1", actual="0\x1b[31m"),), unresolved=1),
    a_case("c", Verdict.COULD_NOT_RUN, reason="launch_failed", detail="no such file", agent="nop"),
    stamps=("isolation: none",),
)


@promise("H8a")
def test_the_opening_table_counts_each_agent_under_each_policy():
    rows = {(line.agent, line.policy): line for line in opening_table(FULL.cases)}
    assert list(rows) == [("nop", "ui-decision"), ("plan:approve", "ui-decision")]
    mine = rows["plan:approve", "ui-decision"]
    assert (mine.cases, mine.proposed, mine.admitted, mine.sent, mine.confirmed) == (2, 2, 1, 1, 1)
    assert (mine.unresolved, mine.could_not_run, mine.attacker_sent, mine.benign_refused) == (1, 0, 0, 0)
    assert rows["nop", "ui-decision"].could_not_run == 1
    lines = terminal(FULL, colour=False, commands=COMMANDS).splitlines()
    assert lines[:4] == table(FULL).splitlines()
    assert lines[0].split() == ["oracle-", "attacker", "benign", "could", "not"]
    assert lines[1].split()[:7] == ["agent", "policy", "cases", "proposed", "admitted", "sent", "confirmed"]


@promise("H8")
def test_the_three_verdicts_are_never_merged():
    assert verdicts(FULL.cases) == {Verdict.PASSED: 1, Verdict.FAILED: 1, Verdict.COULD_NOT_RUN: 1}
    assert verdicts(()) == {Verdict.PASSED: 0, Verdict.FAILED: 0, Verdict.COULD_NOT_RUN: 0}
    assert closing_line(FULL) == "1 passed, 1 failed, 1 could not run"
    suite = Xml.fromstring(junit(FULL)).find("testsuite")
    assert suite is not None
    assert [each.get("value") for each in suite.iter("property")] == ["7", "memory", "1", "isolation: none"]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [[child.tag for child in case] for case in suite.iter("testcase")] == [[], ["failure"], ["error"]]


def test_a_run_that_ended_early_or_ran_cases_again_says_so():
    assert closing_line(a_run(a_case("a"), selected=5)).endswith("stopped at --maxfail with 4 of 5 left")
    assert closing_line(a_run(a_case("a"), repeat=3)) == "1 passed, 0 failed, 0 could not run; each 3 times"
    assert closing_line(a_run(a_case("a"), selected=5, interrupted=True)).endswith("interrupted with 4 of 5 left")


def test_the_terminal_report_names_the_command_that_runs_a_case_again_and_what_is_not_guaranteed():
    text = terminal(FULL, colour=False, commands=COMMANDS)
    assert "    again: ab run --seed 7 live/file/b" in text.splitlines()
    assert "    why:   ab explain --seed 7 live/file/b" in text.splitlines()
    assert "not guaranteed: isolation: none" in text.splitlines()
    assert "reasons: expired 1" in text.splitlines()
    assert "\x1b" not in text


def test_a_failed_case_shows_the_reasons_it_was_given():
    refused = Event(kind="decision", text="`ui`: tool `x` at /description", at_ns=1, reason="contract_drift")
    text = terminal(a_run(a_case("x", Verdict.FAILED, timeline=(refused,))), colour=False, commands=COMMANDS)
    assert "    contract_drift: `ui`: tool `x` at /description" in text.splitlines()
    fault = Xml.fromstring(junit(a_run(a_case("x", Verdict.FAILED, timeline=(refused,))))).find(".//failure")
    assert fault is not None
    assert fault.text == "contract_drift: `ui`: tool `x` at /description"


def test_cases_that_could_not_run_for_one_cause_are_told_together():
    stuck = [a_case(name, Verdict.COULD_NOT_RUN, reason="launch_failed", detail="no such file") for name in "abc"]
    text = terminal(a_run(*stuck), colour=False, commands=COMMANDS)
    assert text.count("no such file (launch_failed)") == 1
    assert all(f"could not run  live/file/{name}" in text for name in "abc")


def test_colour_is_only_where_it_is_wanted():
    assert "\x1b[31mfailed\x1b[0m" in terminal(FULL, colour=True, commands=COMMANDS)
    passed = terminal(a_run(a_case("a")), colour=True, commands=COMMANDS)
    assert passed.splitlines()[-1] == "\x1b[32m1 passed, 0 failed, 0 could not run\x1b[0m"


def test_junit_holds_no_character_that_xml_forbids():
    wild = a_case("x", Verdict.FAILED, misses=(Miss(what="w", expected="\x00\x0b", actual="\ud800"),))
    assert Xml.fromstring(junit(a_run(wild))) is not None


def test_a_failed_case_without_a_miss_still_is_a_failure_in_junit():
    fault = Xml.fromstring(junit(a_run(a_case("x", Verdict.FAILED)))).find(".//failure")
    assert fault is not None
    assert (fault.get("type"), fault.get("message")) == ("expectation_missed", "failed")


@promise("H4")
def test_the_record_fits_its_published_shape():
    run = a_run(
        a_case("a", scores=Scores(task_completion=1.0), timeline=(Event(kind="oracle", text="approved", at_ns=5),)),
        *FULL.cases,
    )
    schema = jsonschema_rs.validator_for(json_schema(SHAPE, id="report", title="report"))
    assert [error.message for error in schema.iter_errors(record(run))] == []
    assert json.loads(record_bytes(run)) == record(run)


LATTICE = tuple(
    Counterfactual(strength=name, admitted=most - at, attacker_admitted=4 - at, benign_refused=at)
    for most, (at, name) in zip((7, 7), enumerate(("tool_name", "one_shot_in_order")), strict=True)
)


@promise("H8b")
def test_what_each_strength_buys_and_costs_is_one_table_over_all_cases():
    run = a_run(a_case("a", lattice=LATTICE), a_case("b", lattice=LATTICE), a_case("c"))
    text = terminal(run, colour=False, commands=COMMANDS).split("\n\n")[1]
    assert [line.split() for line in text.splitlines()] == [
        ["if", "sealed", "by", "admitted", "attacker", "admitted", "benign", "refused"],
        ["tool", "name", "14", "8", "0"],
        ["one", "shot", "in", "order", "12", "6", "2"],
    ]
    assert record(run)["lattice"] == [
        {"strength": "tool_name", "admitted": 14, "attacker_admitted": 8, "benign_refused": 0},
        {"strength": "one_shot_in_order", "admitted": 12, "attacker_admitted": 6, "benign_refused": 2},
    ]
    assert [len(case["lattice"]) for case in record(run)["cases"]] == [2, 2, 0]
    assert lattice_table(FULL) == ""


def test_refusals_are_summed_over_cases():
    cases = (a_case("a", refusals=(("expired", 2), ("revoked", 1))), a_case("b", refusals=(("expired", 1),)))
    assert refusals(cases) == {"expired": 3, "revoked": 1}


@promise("H15")
def test_progress_shows_rate_and_failures_on_a_terminal_and_few_lines_elsewhere():
    ticks = iter([0.0, 0.05, 0.2, 100.0, 100.0])
    live = io.StringIO()
    progress = Progress(live, 3, colour=False, live=True, now=lambda: next(ticks))
    progress.case(a_case("a"))
    progress.case(FULL.cases[1])
    progress.end()
    assert "1/3 cases, 0 not passed, 20/s" in live.getvalue()
    assert "failed  live/file/b" in live.getvalue()
    assert live.getvalue().endswith("\r\x1b[K")
    ticks = iter([0.0, 1.0, 11.0, 12.0])
    quiet = io.StringIO()
    progress = Progress(quiet, 3, colour=False, live=False, now=lambda: next(ticks))
    for _ in range(3):
        progress.case(a_case("a"))
    progress.end()
    assert quiet.getvalue().splitlines() == ["2/3 cases, 0 not passed, 0/s"]
