"""Lint shows everything at once; pins change only when somebody says so."""

import pytest
from suite_world import LEAST, ROOT, a_root, add, scenario

from assisted_benchmark.kernel.errors import DocumentError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.lint import lint, write_pins
from assisted_benchmark.suite.runner import discover, scaffold


def test_the_shipped_files_are_clean():
    assert lint(ROOT) == []


def test_every_file_that_is_wrong_is_shown(tmp_path):
    root = a_root(tmp_path, good=LEAST, bad=scenario("bad", "agent: nop\nfautls: []\n"))
    add(root, "worse", "id: worse\n")
    (root / "contracts/torn.contract.yaml").write_text("schema: [")
    (root / "contracts/lost.policy.yaml").write_text("schema: assisted-benchmark/policy@1\nid: lost\n")
    found = {(each.file, each.reason) for each in lint(root)}
    assert found >= {
        ("contracts/torn.contract.yaml", Reason.MALFORMED_YAML),
        ("contracts/lost.policy.yaml", Reason.MISSING_KEY),
        ("fixtures/live/bad.scenario.yaml", Reason.UNKNOWN_KEY),
        ("fixtures/live/worse.scenario.yaml", Reason.MISSING_KEY),
    }


def test_a_scenario_is_not_blamed_for_its_policys_file(tmp_path):
    root = a_root(tmp_path, least=LEAST)
    (root / "contracts/ui-decision.policy.yaml").write_text("id: [")
    assert {each.file for each in lint(root)} == {"contracts/ui-decision.policy.yaml"}


def test_pins_that_are_missing_or_differ_are_shown_until_they_are_written(tmp_path):
    root = a_root(tmp_path, least=LEAST)
    policy = root / "contracts/ui-decision.policy.yaml"
    policy.write_text(policy.read_text().replace("120s", "90s"))
    pins = root / "contracts/pins.yaml"
    pins.write_text("\n".join(line for line in pins.read_text().splitlines() if "lba-witness" not in line) + "\n")
    assert [(each.reason, each.detail) for each in lint(root)] == [
        (Reason.PIN_MISMATCH, "the policy `lba-witness` is not pinned"),
        (Reason.PIN_MISMATCH, "the policy `ui-decision` is not the pinned one"),
    ]
    assert write_pins(root) == pins
    assert lint(root) == []
    pins.unlink()
    assert {each.reason for each in lint(root)} == {Reason.PIN_MISMATCH}


def test_nothing_is_pinned_while_a_file_is_wrong(tmp_path):
    root = a_root(tmp_path)
    (root / "contracts/lost.policy.yaml").write_text("schema: assisted-benchmark/policy@1\nid: lost\n")
    with pytest.raises(DocumentError):
        write_pins(root)


def test_broken_pins_may_be_written_anew(tmp_path):
    root = a_root(tmp_path)
    (root / "contracts/pins.yaml").write_text("schema: [")
    assert {each.file for each in lint(root)} == {"contracts/pins.yaml"}
    write_pins(root)
    assert lint(root) == []


@pytest.mark.parametrize(
    ("given", "agent"),
    [
        ({"policy": "ui-decision"}, "agent: {plan: approve}"),
        ({"policy": "ui-decision", "candidate": "hold"}, "agent: {plan: hold}"),
        ({"policy": "lba-witness"}, "agent: plan"),
    ],
)
def test_a_new_scenario_runs_as_it_stands(tmp_path, given, agent):
    root = a_root(tmp_path)
    text = scaffold(root, "mine", **given)
    assert agent in text.splitlines()
    add(root, "mine", text)
    assert [case.id for case in discover(root)] == ["live/mine/plain", "live/mine/extra-argument"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"policy": "ui-decison"},
        {"policy": "ui-decision", "candidate": "reject"},
        {"policy": "lba-witness", "candidate": "x"},
    ],
)
def test_a_new_scenario_of_nothing_known_is_refused(tmp_path, given):
    with pytest.raises(MisuseError) as caught:
        scaffold(a_root(tmp_path), "mine", **given)
    assert caught.value.reason is Reason.UNKNOWN_REFERENCE


def test_the_only_policy_need_not_be_named(tmp_path):
    root = a_root(tmp_path)
    for path in (root / "contracts").glob("*.policy.yaml"):
        if path.name != "lba-witness.policy.yaml":
            path.unlink()
    assert "policy: lba-witness" in scaffold(root, "mine")
