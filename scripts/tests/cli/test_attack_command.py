"""`attack` as people and scripts call it: one table, exit codes, a document with a schema, files of what fails."""

import json

import jsonschema_rs
import pytest
from marks import promise
from suite_world import ROOT, a_root, scenario

from assisted_benchmark.cli.main import main
from assisted_benchmark.suite.attacks.engine import Came
from assisted_benchmark.suite.attacks.threats import threats
from assisted_benchmark.suite.matrix.judging import BROKERS, guards_of
from assisted_benchmark.suite.matrix.lacking import lacking

GUARDS = {guard.name: guard for broker in BROKERS for guard in guards_of(broker)}
SCHEMA = json.loads((ROOT / "schemas" / "attacks.schema.json").read_text())


def attack(root, capsys, *arguments):
    """The exit code, and what was printed where."""
    code = main(["attack", "--root", str(root), *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def root(tmp_path):
    return a_root(tmp_path, good=scenario("good", "agent: {plan: approve}\n"))


@promise("H10", "H11", "H20")
def test_detection_and_false_alarms_stand_in_one_table_and_nothing_of_the_catalogue_is_dropped(root, capsys):
    code, out, _ = attack(root, capsys, "--all")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == [
        *("layer", "reason", "part", "tried", "right", "reason", "other", "reason"),
        *("let", "through", "false", "alarms", "could", "not", "run"),
    ]
    assert any(line.startswith("not tried here: S20 ") for line in lines)
    assert lines[-1].endswith("0 let through, 0 false alarms, 0 refused for another reason")


def test_what_is_tried_nowhere_is_counted_where_only_some_is_asked_for(root, capsys):
    _, out, _ = attack(root, capsys, "--benign")
    (said,) = [line for line in out.splitlines() if "tried nowhere" in line]
    assert said.split()[0] == str(len([each for each in threats() if not each.applies]))


@promise("H10")
def test_the_document_fits_its_published_schema_and_says_of_each_threat_whether_it_was_tried(root, capsys):
    code, out, _ = attack(root, capsys, "--broker", "live", "--pairs", "20", "--seed", "7", "--json")
    told = json.loads(out)
    jsonschema_rs.validator_for(SCHEMA).validate(told)
    assert (code, told["seed"], told["failures"]) == (0, 7, [])
    assert told["tried"] == told["came"]["refused"] == sum(row["tried"] for row in told["table"])
    tried = {each["id"]: each["tried"] for each in told["threats"]}
    assert (len(tried), tried["C24"], tried["B05"], tried["C60"]) == (143, True, False, False)


@promise("H11")
def test_the_benign_set_can_be_tried_alone(root, capsys):
    code, out, _ = attack(root, capsys, "--benign", "--all", "--json")
    assert code == 0
    assert {row["reason"] for row in json.loads(out)["table"]} == {"not refused"}


@promise("H10")
def test_one_threat_of_one_case_can_be_tried_on_the_ledger_on_disk(root, capsys):
    code, out, _ = attack(root, capsys, "live/good/plain", "--threat", "C15", "--ledger", "sqlite", "--json")
    (row,) = json.loads(out)["table"]
    assert (code, row["reason"], row["tried"], row["refused"]) == (0, "server_substituted", 3, 3)


@promise("H10", "H20")
def test_what_is_let_through_exits_1_is_told_and_is_written_as_a_scenario(root, capsys, tmp_path):
    found = tmp_path / "found"
    with lacking(GUARDS["live_policy.checks:CHECKS/wrong_vm"]):
        code, out, err = attack(root, capsys, "--threat", "C67", "--broker", "live", "--write-failures", str(found))
        assert code == 1
        assert "LET_THROUGH: live/good/plain@2.approve:C67." in out
        files = sorted(found.iterdir())
        assert sorted(err.splitlines()) == [f"written: {each}" for each in files]
        (root / "fixtures" / "live" / files[0].name).write_bytes(files[0].read_bytes())
        name = files[0].name.removesuffix(".scenario.yaml")
        assert main(["run", "--root", str(root), "--durability", "memory", f"live/{name}/attack"]) == 1
    assert main(["run", "--root", str(root), "--durability", "memory", f"live/{name}/attack"]) == 0


@promise("H20")
def test_a_failure_without_a_scenario_is_told_and_many_are_cut(root, capsys, monkeypatch):
    monkeypatch.setattr("assisted_benchmark.suite.attacks.outside.found_in", lambda files: ([], {}))
    code, out, _ = attack(
        root, capsys, "--all", "--threat", "Y03", "--threat", "Y04", "--threat", "Y02", "--threat", "G05"
    )
    assert code == 1
    assert out.count(f"{Came.THROUGH.upper()}: documents:") == 14
    code, out, _ = attack(root, capsys, "--all", "--write-failures", str(root / "none"))
    assert code == 1
    assert list((root / "none").iterdir()) == []
    assert "more" in out.splitlines()[-2]


@promise("H20")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--threat", "C99"), 2),
        (("--threat", "S20"), 2),
        (("--broker", "capability"), 2),
        (("--all", "--broker", "live", "--threat", "B05"), 5),
    ],
)
def test_what_cannot_be_tried_is_said_and_not_taken_for_sound(root, capsys, arguments, code):
    assert attack(root, capsys, *arguments)[0] == code
