"""Registries for tests: the reference one, and a lamp's, which has nothing in common with it but the format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.capability.registry_document import load_registry, registry_from
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import DocumentError

ROOT = Path(__file__).resolve().parents[3]
PULP = load_registry(ROOT / "contracts" / "pulp.registry.yaml", ROOT)

LAMP_TEXT = """\
schema: assisted-benchmark/registry@1
id: lamp
namespace: org.lamp.
prefix: lamp_
scheme: lamp
profiles: [look, touch]
bounds: {parameters_bytes: 200, envelope_bytes: 2000, id_length: 8, timeout_ms: 500, default_timeout_ms: 50}
retired: {lamp_toggle: lamp_light_set}
outside: [lamp_paint]
operations:
  org.lamp.light/read@1:
    about: Read how bright it is.
    risk: observe
    result: response
    authority: grant
    profiles: [touch, look]
    input: {type: object, additionalProperties: false, properties: {}}
    output: {type: object, additionalProperties: false, required: [level], properties: {level: {type: integer}}}
  org.lamp.light/set@1:
    about: Set how bright it is.
    risk: control
    result: receipt
    authority: grant
    profiles: [touch]
    publication_bound: true
    idempotency: once
    max_bytes: {note: 4}
    input:
      type: object
      additionalProperties: false
      required: [level]
      properties:
        level: {type: integer, minimum: 0, maximum: 100}
        note: {type: string, maxLength: 20}
        once: {type: string, maxLength: 8}
    output:
      type: object
      additionalProperties: false
      required: [receipt_id]
      properties: {receipt_id: {type: string, maxLength: 8}}
  org.lamp.bulb/Blow-Up@1:
    about: Break it.
    risk: critical
    result: receipt
    authority: operation-grant
    consent: [one-shot, interactive-only]
    input: {type: object, additionalProperties: false, properties: {}}
    output:
      type: object
      additionalProperties: false
      required: [receipt_id]
      properties: {receipt_id: {type: string, maxLength: 8}}
  org.lamp.bulb/melt@1:
    about: Not to be had.
    risk: high-risk
    result: response
    authority: none
    input: {type: object, additionalProperties: false, properties: {}}
    output: {type: object, additionalProperties: false, properties: {}}
"""


def registry_of(text: str) -> Registry:
    return registry_from(load(text.encode(), "contracts/lamp.registry.yaml"))


LAMP = registry_of(LAMP_TEXT)


def changed(before: str, after: str) -> str:
    """The lamp's file with one change, which is really made."""
    assert LAMP_TEXT.count(before) == 1, before
    return LAMP_TEXT.replace(before, after)


def faults_of(text: str) -> list[tuple[str, int, int]]:
    """The reasons and places of what is wrong with a registry's text."""
    with pytest.raises(DocumentError) as caught:
        registry_of(text)
    assert all(each.detail and each.file == "contracts/lamp.registry.yaml" for each in caught.value.problems)
    return [(each.reason.value, each.line, each.column) for each in caught.value.problems]


def place_of(text: str, mark: str, nth: int = 0) -> tuple[int, int]:
    """Line and column (1-based) of the nth time that a mark stands in a text."""
    offset = -1
    for _ in range(nth + 1):
        offset = text.index(mark, offset + 1)
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def arguments(**fields: object) -> bytes:
    """The bytes of a call's arguments, for an instance."""
    return json.dumps({"instance_id": "one", "input": {}, **fields}).encode()


PULP_TOOLS = Projection(PULP)
LAMP_TOOLS = Projection(LAMP)
