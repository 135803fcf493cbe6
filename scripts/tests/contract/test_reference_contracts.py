"""The contracts that are shipped, their pins and schemas: all as the code and the fixtures have them."""

import hashlib
import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
from marks import promise

from assisted_benchmark.contract.contract_shape import CONTRACT_SHAPE
from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.drift import drift
from assisted_benchmark.contract.files import read
from assisted_benchmark.contract.json_schema import Checker, closed
from assisted_benchmark.contract.model import Effect
from assisted_benchmark.contract.pins import PINS_SHAPE, load_pins
from assisted_benchmark.contract.published import published_schemas, schema_text
from assisted_benchmark.contract.shape import check
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.workloads.synthetic_ui import TOOLS as UI_TOOLS

ROOT = Path(__file__).resolve().parents[3]
CONTRACTS = sorted((ROOT / "contracts").glob("*.contract.yaml"))
REFERENCE = load_contract(ROOT / "contracts" / "lba-and-synthetic-ui.contract.yaml", ROOT)
LEGACY = load_contract(ROOT / "contracts" / "lba-legacy.contract.yaml", ROOT)
LBA_TOOLS = json.loads((ROOT / "fixtures" / "lba" / "tools-list.json").read_bytes())


@promise("L1", "H3")
@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.name)
def test_every_shipped_contract_loads_and_is_pinned(path):
    contract = load_contract(path, ROOT)
    assert path.name == f"{contract.id}.contract.yaml"
    pinned = load_pins(ROOT / "contracts" / "pins.yaml", ROOT).contracts
    assert pinned.get(contract.id) == contract.digest, "changed on purpose? assisted-benchmark lint --write-pins"


@promise("L1")
def test_the_legacy_contract_pins_the_very_same_server():
    assert LEGACY.legacy
    assert not REFERENCE.legacy
    assert LEGACY.servers == (REFERENCE.server("lba"),)
    assert LEGACY.servers[0].digest == REFERENCE.server("lba").digest


@promise("L6")
def test_effects_are_what_the_contract_declares():
    lba = {tool.name: tool.effect for tool in REFERENCE.server("lba").tools}
    declared = {
        "spin_up_witness": Effect.PLAN_ONLY,
        "teardown": Effect.PLAN_ONLY,
        "post_coordination_note": Effect.EXTERNAL,
    }
    assert lba == {tool["name"]: declared.get(tool["name"], Effect.OBSERVE) for tool in LBA_TOOLS}
    ui = {tool.name: tool.effect for tool in REFERENCE.server("synthetic-ui").tools}
    assert ui == {"click_target": Effect.ACT, "read_task": Effect.OBSERVE}


@promise("L6")
def test_annotations_of_a_server_never_change_an_effect(tmp_path):
    text = (ROOT / "contracts" / "lba-and-synthetic-ui.contract.yaml").read_text()
    assert text.count("readOnlyHint: false, destructiveHint: false") == 1
    boasting = text.replace("readOnlyHint: false, destructiveHint: false", "readOnlyHint: true, destructiveHint: true")
    boasting = re.sub(r"\n +tools_digest: \S+", "", boasting)
    path = tmp_path / "contracts" / "x.contract.yaml"
    path.parent.mkdir()
    path.write_text(boasting)
    folder = tmp_path / "fixtures" / "lba"
    folder.mkdir(parents=True)
    (folder / "tools-list.json").write_text(json.dumps(LBA_TOOLS))
    tool = load_contract(path, tmp_path).server("synthetic-ui").tool("click_target")
    assert tool.definition.value["annotations"]["readOnlyHint"] is True
    assert tool.effect is Effect.ACT


@promise("W11", "W12")
def test_the_pinned_tools_are_those_that_the_servers_answer_with():
    assert drift(REFERENCE.server("lba"), LBA_TOOLS) == ()
    assert drift(REFERENCE.server("synthetic-ui"), list(UI_TOOLS)) == ()
    cassette = json.loads((ROOT / "fixtures" / "lba" / "cassette.json").read_bytes())
    assert drift(REFERENCE.server("lba"), cassette["tools"]) == ()


@promise("W11")
def test_identity_is_launch_and_tools_and_never_the_servers_own_word():
    lba, ui = REFERENCE.servers
    assert lba.digest != ui.digest
    for server in REFERENCE.servers:
        assert "serverInfo" not in json.dumps(server.launch.value())
        assert server.launch.argv[0] == "{python}"
    assert ui.launch.control
    assert not lba.launch.control


def test_the_pinned_files_are_those_in_the_checkout():
    for server in REFERENCE.servers:
        for name, digest in server.launch.files:
            data = read(Path(name.replace("{contract}", str(ROOT / "contracts"))), ROOT)
            assert digest == "sha256:" + hashlib.sha256(data).hexdigest()


@promise("W9")
def test_every_pinned_schema_compiles_and_holds_arguments_closed():
    for server in REFERENCE.servers:
        for tool in server.tools:
            assert Checker(closed(tool.input_schema)).faults({"unheard_of": 1}) != ()
            if tool.output_schema is not None:
                assert Checker(tool.output_schema).faults({}) != ()
    # a real tool with free mappings inside stays callable
    quorum = Checker(closed(REFERENCE.server("lba").tool("run_quorum").input_schema))
    assert quorum.faults({"bundles": [{"any": 1}], "threshold": 0.5}) == ()


@promise("H4")
@pytest.mark.parametrize("name", sorted(published_schemas()))
def test_published_schemas_are_those_of_the_code(name):
    assert (ROOT / "schemas" / name).read_text() == schema_text(published_schemas()[name])


@promise("H4")
@pytest.mark.parametrize("path", [*CONTRACTS, ROOT / "contracts" / "pins.yaml"], ids=lambda path: path.name)
def test_each_file_names_its_schema_and_fits_it(path):
    first, _, _ = path.read_text().partition("\n")
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    schema = json.loads((path.parent / found[1]).read_bytes())
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    value = load(path.read_bytes(), path.name).value
    assert list(jsonschema_rs.validator_for(schema).iter_errors(value)) == []
    document = load(path.read_bytes(), path.name)
    check(PINS_SHAPE if path.name == "pins.yaml" else CONTRACT_SHAPE, document)


def keys_of(schema) -> set[str]:
    found = set(schema.get("properties", {}))
    below = [*schema.get("properties", {}).values(), *schema.get("oneOf", []), schema.get("additionalProperties")]
    for each in (*below, schema.get("items")):
        if isinstance(each, dict):
            found |= keys_of(each)
    return found


@promise("H4")
@pytest.mark.parametrize("name", sorted(published_schemas()))
def test_the_readme_explains_every_key(name):
    text = (ROOT / "contracts" / "README.md").read_text()
    assert [key for key in sorted(keys_of(published_schemas()[name])) if f"`{key}`" not in text] == []
