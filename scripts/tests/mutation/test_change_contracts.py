"""Change contracts: the reference one as it is pinned, another product's, and everything that a loader refuses."""

import json
import re
from copy import deepcopy

import jsonschema_rs
import pytest
from marks import promise
from mutation_bench import FABRIC, ORCHARD, ORCHARD_VALUE, ROOT

from assisted_benchmark.contract.pins import load_pins
from assisted_benchmark.contract.published import schema_text
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.changes_document import contract_of, load_changes, published_schemas
from assisted_benchmark.mutation.compiler import compile_change

FABRIC_FILE = ROOT / "contracts" / "fabric.changes.yaml"


@promise("M3")
def test_the_reference_contract_has_exactly_three_creates_and_is_pinned():
    assert [(each.name, each.path) for each in FABRIC.changes] == [
        ("connection", "/fabric/v4/connections"),
        ("network", "/fabric/v4/networks"),
        ("service-token", "/fabric/v4/serviceTokens"),
    ]
    pinned = load_pins(ROOT / "contracts" / "pins.yaml", ROOT).changes
    assert pinned == {"fabric": FABRIC.digest}, "changed on purpose? write the digest into contracts/pins.yaml"


@promise("M1", "M3")
def test_its_reads_list_and_get_the_three_kinds_and_search_prices_and_none_is_in_mutate():
    assert {each.name: (each.method, each.path) for each in FABRIC.reads} == {
        "list_connections": ("GET", "/fabric/v4/connections"),
        "get_connection": ("GET", "/fabric/v4/connections/{uuid}"),
        "list_networks": ("GET", "/fabric/v4/networks"),
        "get_network": ("GET", "/fabric/v4/networks/{uuid}"),
        "list_service_tokens": ("GET", "/fabric/v4/serviceTokens"),
        "get_service_token": ("GET", "/fabric/v4/serviceTokens/{uuid}"),
        "search_prices": ("POST", "/fabric/v4/prices/search"),
    }
    assert {each.toolset for each in FABRIC.reads} == {"connectivity", "design"}


@promise("M3")
def test_the_statuses_that_mean_success_are_those_of_the_endpoint():
    said = {each.name: (each.dry_run_accepts, each.create_accepts) for each in FABRIC.changes}
    assert said["connection"] == said["service-token"] == ({200}, {201})
    assert said["network"] == (set(range(200, 300)), {201, 202})


def test_a_digest_is_over_the_values_and_not_the_style(tmp_path):
    path = tmp_path / "orchard.changes.yaml"
    path.write_text(json.dumps(ORCHARD_VALUE))
    plain = load_changes(path, tmp_path)
    path.write_text("# a comment\n" + json.dumps(ORCHARD_VALUE, indent=3, sort_keys=True))
    assert load_changes(path, tmp_path).digest == plain.digest == ORCHARD.digest
    changed = deepcopy(ORCHARD_VALUE)
    changed["changes"]["plant"]["unpriced"] = "something else"
    assert contract_of(changed).digest != ORCHARD.digest


@promise("H4")
def test_the_published_schema_is_that_of_the_code_and_the_file_names_it_and_fits():
    (schema,) = published_schemas().values()
    text = (ROOT / "schemas" / "changes.schema.json").read_text()
    assert text == schema_text(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    first, _, _ = FABRIC_FILE.read_text().partition("\n")
    assert first == "# yaml-language-server: $schema=../schemas/changes.schema.json"
    value = load(FABRIC_FILE.read_bytes(), "x").value
    assert list(jsonschema_rs.validator_for(json.loads(text)).iter_errors(value)) == []
    assert list(jsonschema_rs.validator_for(json.loads(text)).iter_errors(ORCHARD_VALUE)) == []


def keys_of(schema):
    found = set(schema.get("properties", {}))
    below = [*schema.get("properties", {}).values(), *schema.get("oneOf", []), schema.get("additionalProperties")]
    for each in below:
        if isinstance(each, dict):
            found |= keys_of(each)
    return found


@promise("H4")
def test_the_readme_explains_every_key():
    text = (ROOT / "contracts" / "README.md").read_text()
    (schema,) = published_schemas().values()
    assert [key for key in sorted(keys_of(schema)) if f"`{key}`" not in text] == []


def loading(tmp_path, value):
    path = tmp_path / "orchard.changes.yaml"
    path.write_text(json.dumps(value, indent=1))
    return load_changes(path, tmp_path)


def problems(tmp_path, edit):
    value = deepcopy(ORCHARD_VALUE)
    edit(value)
    with pytest.raises(DocumentError) as error:
        loading(tmp_path, value)
    lines = json.dumps(value, indent=1).split("\n")
    return [(each.reason, lines[each.line - 1].strip().rstrip(",")) for each in error.value.problems]


def plant(value):
    return value["changes"]["plant"]


MEANINGLESS = {
    "an object of the fields is open": (
        lambda value: plant(value)["fields"].pop("additionalProperties"),
        Reason.WRONG_VALUE,
        '"fields": {',
    ),
    "a field refers outside": (
        lambda value: plant(value)["fields"]["properties"].update(count={"$ref": "https://example.com/x"}),
        Reason.UNRESOLVABLE_REF,
        '"fields": {',
    ),
    "a field comes to nothing": (
        lambda value: plant(value)["fields"]["properties"].update(colour={"type": "boolean"}),
        Reason.UNKNOWN_REFERENCE,
        '"colour": {',
    ),
    "a field within comes to nothing": (
        lambda value: (
            plant(value)["body"].update(gate={"pin": {"from": "gate.pin"}})
            or plant(value)["fields"]["properties"]["gate"]["properties"].update(open={"type": "boolean"})
        ),
        Reason.UNKNOWN_REFERENCE,
        '"open": {',
    ),
    "the body refers to nothing": (
        lambda value: plant(value)["body"].update(count={"text_of": "cuont"}),
        Reason.UNKNOWN_REFERENCE,
        '"count": {',
    ),
    "the body is a reference": (
        lambda value: plant(value).update(body={"from": "gate"}),
        Reason.WRONG_VALUE,
        '"body": {',
    ),
    "the prompt leaves a key out": (
        lambda value: plant(value).update(prompt=["what", "count"]),
        Reason.WRONG_VALUE,
        '"prompt": [',
    ),
    "the prompt names a key twice": (
        lambda value: plant(value)["prompt"].append("what"),
        Reason.WRONG_VALUE,
        '"prompt": [',
    ),
    "a sensitive pointer leads nowhere": (
        lambda value: plant(value).update(sensitive=["/gate/pni"]),
        Reason.UNKNOWN_REFERENCE,
        '"/gate/pni"',
    ),
    "the example does not fit": (
        lambda value: plant(value)["example"].update(count=0),
        Reason.WRONG_VALUE,
        '"example": {',
    ),
    "the example cannot be shown": (
        lambda value: plant(value)["example"].update(species="pe\u202ear"),
        Reason.WRONG_VALUE,
        '"example": {',
    ),
}


@pytest.mark.parametrize(("edit", "reason", "line"), MEANINGLESS.values(), ids=MEANINGLESS)
def test_a_contract_without_meaning_is_refused_at_its_line(tmp_path, edit, reason, line):
    assert (reason, line) in problems(tmp_path, edit)


READ = {
    "title": "Read one tree",
    "toolset": "trees",
    "get": "/trees/{id}",
    "fields": {
        "type": "object",
        "additionalProperties": False,
        "required": ["id"],
        "properties": {"id": {"type": "string", "maxLength": 9, "pattern": "^[a-z]+$"}},
    },
    "example": {"id": "pear"},
}
MISREAD = {
    "a read in the toolset of changes": ({"toolset": "mutate"}, Reason.WRONG_VALUE),
    "a place in the path that is no field": ({"get": "/trees/{name}"}, Reason.UNKNOWN_REFERENCE),
    "an open read": ({"fields": {"type": "object"}}, Reason.WRONG_VALUE),
    "a read whose example does not fit": ({"example": {}}, Reason.WRONG_VALUE),
    "a place that any text may take": (
        {"fields": {**READ["fields"], "properties": {"id": {"type": "string", "maxLength": 9}}}},
        Reason.UNKNOWN_REFERENCE,
    ),
    "a place that may be left out": (
        {"fields": {**READ["fields"], "required": []}},
        Reason.UNKNOWN_REFERENCE,
    ),
}


@promise("M1")
@pytest.mark.parametrize(("more", "reason"), MISREAD.values(), ids=MISREAD)
def test_a_read_that_is_none_is_refused(tmp_path, more, reason):
    assert loading(tmp_path, {**ORCHARD_VALUE, "reads": {"one": READ}}).read("one").path == "/trees/{id}"
    found = problems(tmp_path, lambda value: value.update(reads={"one": {**READ, **more}}))
    assert reason in {each for each, _ in found}


def test_several_faults_are_told_at_once_in_file_order(tmp_path):
    def edit(value):
        plant(value).update(sensitive=["/nothing"], prompt=["what"])
        plant(value)["body"].update(extra={"from": "nothing"})

    found = problems(tmp_path, edit)
    assert [line for _, line in found] == ['"extra": {', '"prompt": [', '"/nothing"']


def test_the_shape_is_looked_at_first(tmp_path):
    def edit(value):
        plant(value).update(titel=plant(value).pop("title"))
        value["dry_run"] = "validate"

    assert {reason for reason, _ in problems(tmp_path, edit)} == {
        Reason.UNKNOWN_KEY,
        Reason.MISSING_KEY,
        Reason.WRONG_VALUE,
    }


def test_a_change_has_a_price_or_says_why_not(tmp_path):
    assert problems(tmp_path, lambda value: plant(value).pop("unpriced"))[0][0] is Reason.MISSING_KEY
    rule = json.loads(FABRIC.source.data)["changes"]["connection"]["price"]

    def both(value):
        plant(value)["price"] = rule

    def bad(value):
        del plant(value)["unpriced"]
        plant(value)["price"] = {**rule, "body": {"of": {"from": "nothing"}}}

    assert problems(tmp_path, both)[0][0] is Reason.WRONG_VALUE
    assert problems(tmp_path, bad) == [(Reason.UNKNOWN_REFERENCE, '"of": {')]


@promise("M3")
def test_another_product_is_another_file_and_no_code_knows_the_first():
    room = ROOT / "scripts" / "assisted_benchmark" / "mutation"
    named = [path.name for path in room.glob("*.py") if re.search(r"fabric|vlan|serviceToken", path.read_text())]
    assert [name for name in named if not name.startswith("http_")] == []
    body = compile_change(ORCHARD.change("plant"), {"species": "pear", "count": 2, "labels": {"row": "1"}}).body
    assert body == b'{"count":"2","labels":{"row":"1"},"what":{"kind":"tree","species":"pear"}}'
