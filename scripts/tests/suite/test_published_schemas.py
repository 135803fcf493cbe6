"""The published schemas are what editors read: every shipped file names its own, and fits it."""

import json

import jsonschema_rs
import pytest
from marks import promise
from suite_world import ROOT

from assisted_benchmark.contract.strict_yaml import load

FILES = sorted(path for folder in ("contracts", "fixtures") for path in (ROOT / folder).rglob("*.yaml"))


@promise("H4")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_shipped_file_names_its_schema_and_fits_it(path):
    data = path.read_bytes()
    value = load(data, path.name).value
    line = data.splitlines()[0].decode()
    named = (path.parent / line.removeprefix("# yaml-language-server: $schema=")).resolve()
    maker, _, kind = value["schema"].partition("@")[0].partition("/")
    kind = kind if maker == "assisted-benchmark" else "contract"  # which go by the names of a product
    assert named == ROOT / "schemas" / f"{kind}.schema.json"
    schema = json.loads(named.read_text())
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    errors = [error.message for error in jsonschema_rs.Draft7Validator(schema).iter_errors(value)]
    assert errors == []


@promise("H4")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("scenario", {"schema": "assisted-benchmark/scenario@1", "id": "a", "policy": "p"}),
        ("scenario", {"schema": "assisted-benchmark/scenario@1", "id": "a", "policy": "p", "agent": "somebody"}),
        ("scenario", {"schema": "assisted-benchmark/scenario@1", "id": "a", "policy": "p", "agent": "nop", "x": 1}),
        ("mutation-scenario", {"schema": "assisted-benchmark/mutation-scenario@1", "id": "a", "changes": "c"}),
        ("candidates", {"schema": "assisted-benchmark/candidates@1", "policy": "p", "task": "t", "candidates": {}}),
    ],
)
def test_a_file_that_the_loader_refuses_is_underlined_in_an_editor(kind, value):
    schema = json.loads((ROOT / "schemas" / f"{kind}.schema.json").read_text())
    assert not jsonschema_rs.Draft7Validator(schema).is_valid(value)
