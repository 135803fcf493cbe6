"""Lint shows everything at once; pins change only when somebody says so."""

import os
import re

import pytest
from suite_world import LEAST, ROOT, a_root, add, scenario

from assisted_benchmark.contract.pins import load_pins
from assisted_benchmark.kernel.errors import DocumentError, MisuseError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.catalogue import Catalogue
from assisted_benchmark.suite.lint import lint, write_pins
from assisted_benchmark.suite.live.shelf import LiveShelf
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
    known = LiveShelf(root, None).policies
    lines = pins.read_text().splitlines()
    pinned = Catalogue(ROOT).pins.policies["ui-decision"]
    assert [(each.reason, each.line, each.detail) for each in lint(root)] == [
        (
            Reason.PIN_MISMATCH,
            lines.index("policies:") + 1,
            f"the policy `lba-witness` is not pinned; it is {known['lba-witness'].digest}",
        ),
        (
            Reason.PIN_MISMATCH,
            lines.index(f"  ui-decision: {pinned}") + 1,
            f"the policy `ui-decision` is pinned as {pinned} and is {known['ui-decision'].digest}",
        ),
    ]
    assert write_pins(root) == pins
    assert lint(root) == []
    pins.unlink()
    assert {each.reason for each in lint(root)} == {Reason.PIN_MISMATCH}


def test_pins_of_what_the_suite_does_not_read_stay_as_they_are(tmp_path):
    root = a_root(tmp_path)
    path = root / "contracts/pins.yaml"
    before = load_pins(path, root)
    assert before.registries
    write_pins(root)
    assert load_pins(path, root) == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("lost.policy.yaml", "", "schema: assisted-benchmark/policy@1\nid: lost\n"),
        ("ui-decision.policy.yaml", "target: targetId", "target: targeId"),
        ("ui-decision.policy.yaml", "run.task", "run.tsk"),
        ("ui-decision.policy.yaml", "tool: click_target", "tool: click"),
        ("lba-legacy.contract.yaml", "{python}", "{pyton}"),
    ],
)
def test_nothing_is_pinned_while_a_policy_or_contract_is_wrong(tmp_path, file, old, new):
    root = a_root(tmp_path)
    path = root / "contracts" / file
    path.write_text(path.read_text().replace(old, new) if old else new)
    pins = root / "contracts/pins.yaml"
    before = pins.read_bytes()
    with pytest.raises(DocumentError) as caught:
        write_pins(root)
    assert {each.file for each in caught.value.problems} == {f"contracts/{file}"}
    assert pins.read_bytes() == before


def test_pins_that_cannot_be_read_are_told_of_first_and_never_overwritten(tmp_path):
    root = a_root(tmp_path, least=LEAST)
    (root / "contracts/a.contract.yaml").write_text("schema: [")
    pins = root / "contracts/pins.yaml"
    pins.write_text("schema: [")
    assert [each.file for each in lint(root)] == ["contracts/pins.yaml", "contracts/a.contract.yaml"]
    (root / "contracts/a.contract.yaml").unlink()
    with pytest.raises(DocumentError) as caught:
        write_pins(root)
    assert [each.file for each in caught.value.problems] == ["contracts/pins.yaml"]
    assert pins.read_text() == "schema: ["
    pins.unlink()
    write_pins(root)
    assert lint(root) == []


def test_a_contract_that_is_not_as_pinned_is_shown_once_and_its_policies_only_where_they_differ_too(tmp_path):
    root = a_root(tmp_path)
    contract, policy = root / "contracts" / LAUNCHED, root / "contracts/ui-reading.policy.yaml"
    contract.write_text(contract.read_text().replace("maxLength: 64", "maxLength: 63"))
    contract.write_text(re.sub(r"(synthetic-ui:(?s:.*?)) +tools_digest: .*\n", r"\1", contract.read_text(), count=1))
    policy.write_text(re.sub("expires_after: .*", "expires_after: 7s", policy.read_text()))
    told = [each.detail.partition(" is pinned as ")[0] for each in lint(root)]
    assert told == ["the contract `lba-and-synthetic-ui`", "the policy `ui-reading`"]


def test_a_pin_of_what_is_not_there_is_shown_at_its_line(tmp_path):
    root = a_root(tmp_path)
    pins = root / "contracts/pins.yaml"
    pins.write_text(pins.read_text().replace("policies:\n", f"policies:\n  ui-decisio: sha256:{'0' * 64}\n"))
    line = pins.read_text().splitlines().index("policies:") + 2
    assert lint(root) == [
        Problem(
            Reason.UNKNOWN_REFERENCE,
            "no policy has the id `ui-decisio`",
            "contracts/pins.yaml",
            line,
            3,
            "did you mean `ui-decision`?",
        )
    ]


@pytest.mark.parametrize(("old", "new"), [("target: targetId", "target: statu"), ("run.task", "run.tsk")])
def test_a_policys_mistake_is_shown_at_its_own_line_and_at_no_scenario(tmp_path, old, new):
    root = a_root(tmp_path, one=LEAST, two=LEAST.replace("id: least", "id: other"))
    path = root / "contracts/ui-decision.policy.yaml"
    before = path.read_text()
    path.write_text(before.replace(old, new))
    found = lint(root)
    wrong = [number for number, line in enumerate(before.splitlines(), 1) if old in line]
    assert [(each.file, each.line) for each in found] == [("contracts/ui-decision.policy.yaml", line) for line in wrong]


def test_a_contracts_mistake_is_shown_once_however_many_policies_load_it(tmp_path):
    root = a_root(tmp_path, least=LEAST)
    path = root / "contracts/lba-and-synthetic-ui.contract.yaml"
    path.write_text(path.read_text().replace("control: true", "control: yes"))
    assert [(each.file, each.reason) for each in lint(root)] == [
        ("contracts/lba-and-synthetic-ui.contract.yaml", Reason.IMPLICIT_TYPE)
    ]


def test_a_policy_over_a_contract_that_is_in_no_contract_file_is_shown(tmp_path):
    root = a_root(tmp_path)
    text = (root / "contracts/lba-legacy.contract.yaml").read_text().replace("id: lba-legacy", "id: mine")
    (root / "contracts/mine.yaml").write_text(text)
    policy = (root / "contracts/lba-bus.policy.yaml").read_text()
    mine = re.sub("id: .*", "id: mine", re.sub("contract: .*", "contract: mine.yaml", policy), count=1)
    add(root, "mine", LEAST.replace("ui-decision", "mine"))
    (root / "contracts/mine.policy.yaml").write_text(mine)
    assert [(each.file, each.reason) for each in lint(root)] == [
        ("contracts/mine.policy.yaml", Reason.UNKNOWN_REFERENCE)
    ]


LAUNCHED = "lba-and-synthetic-ui.contract.yaml"


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        (LAUNCHED, "sha256:9f7db910", "sha256:00000000", Reason.ARTIFACT_DRIFT),
        (LAUNCHED, '"{contract}/../fixtures/lba/cassette.json": s', '"../fixtures/lost.json": s', Reason.LAUNCH_FAILED),
        ("lba-legacy.contract.yaml", "sha256:9f7db910", "sha256:00000000", Reason.ARTIFACT_DRIFT),
    ],
)
def test_a_pinned_file_that_is_another_or_missing_is_shown_at_its_key(tmp_path, file, old, new, reason):
    root = a_root(tmp_path)
    path = root / "contracts" / file
    path.write_text(path.read_text().replace(old, new))
    write_pins(root)
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if new in text)
    column = path.read_text().splitlines()[line - 1].index('"') + 1
    assert [(each.reason, each.file, each.line, each.column) for each in lint(root)] == [
        (reason, f"contracts/{file}", line, column)
    ]


@pytest.mark.parametrize("program", ["/lost/program", "{contract}/program"])
def test_a_program_that_does_not_stand_here_is_shown_at_its_place(tmp_path, program):
    root = a_root(tmp_path)
    path = root / "contracts" / LAUNCHED
    own = f'      argv: ["{program}", -S, -m, assisted_benchmark.workloads.synthetic_ui]\n'
    text = re.sub(r" +argv: .*synthetic_ui\]\n", own, path.read_text())
    head, _, tail = text.partition(own)
    path.write_text(head + own + tail.replace("      packages: {assisted-benchmark: self}\n", "", 1))
    write_pins(root)
    assert [(each.reason, each.file, each.line, each.column) for each in lint(root)] == [
        (Reason.LAUNCH_FAILED, f"contracts/{LAUNCHED}", head.count("\n") + 1, 14)
    ]


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
    text = scaffold(root, "mine", **given).text
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
    (root / "contracts/fabric.changes.yaml").unlink()
    (root / "contracts/pulp.registry.yaml").unlink()
    for path in (root / "contracts").glob("*.policy.yaml"):
        if path.name != "lba-witness.policy.yaml":
            path.unlink()
    assert "policy: lba-witness" in scaffold(root, "mine").text


SAME = "agent: {plan: approve}\nrun: {run: same}\n"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"one": SAME, "two": SAME}, [("two", 5, "live/one/plain")]),
        (
            {"one": SAME + "proposals: {x: {tool: none-such, refused: unknown_tool}}\n"},
            [("one", 5, "live/one/plain")],
        ),
        (
            {"one": "agent: {plan: approve}\ncases: {a: {run: {run: b}}, b: {run: {run: b}}}\n"},
            [("one", 5, "live/one/a")],
        ),
        (
            {"one": "agent: {plan: approve}\nrun: {run: live/two/plain}\n", "two": "agent: oracle\n"},
            [("two", 2, "live/one/plain")],
        ),
    ],
)
def test_cases_that_share_a_run_are_shown_with_both_places(tmp_path, files, told):
    found = lint(a_root(tmp_path, **{name: scenario(name, body) for name, body in files.items()}))
    assert [(each.reason, each.file, each.line) for each in found] == [
        (Reason.DUPLICATE_ID, f"fixtures/live/{name}.scenario.yaml", line) for name, line, _ in told
    ]
    for each, (_, _, first) in zip(found, told, strict=True):
        file = first.split("/")[1]
        assert each.hint.startswith(f"see `{first}` in fixtures/live/{file}.scenario.yaml")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path.write_text("{}"), Reason.MISSING_KEY),
        (lambda path: None, Reason.UNREADABLE),
        (os.mkfifo, Reason.UNREADABLE),
        (lambda path: path.mkdir(), Reason.UNREADABLE),
        (lambda path: path.symlink_to("/dev/zero"), Reason.UNREADABLE),
    ],
)
def test_a_cassette_that_is_none_is_shown_once_and_never_waited_for(tmp_path, change, reason):
    root = a_root(tmp_path, least=LEAST)
    cassette = root / "fixtures/lba/cassette.json"
    cassette.unlink()
    change(cassette)
    found = {(each.reason, each.file) for each in lint(root) if "cassette" in each.file}
    assert found == {(reason, "fixtures/lba/cassette.json")}
