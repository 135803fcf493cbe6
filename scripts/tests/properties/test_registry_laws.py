"""Laws of every registry: its tools are as many as its operations, its file says it whole, callers change nothing."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.capability.call import ManagementCall, OperationCall, Unfit
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry import (
    MANAGEMENT,
    REGISTRY,
    RESULT_FIELDS,
    Authority,
    ConsentRule,
    Registry,
    ResultKind,
    Risk,
)
from assisted_benchmark.capability.registry_document import registry_from
from assisted_benchmark.contract.closed_schema import closed_schema_faults
from assisted_benchmark.contract.json_schema import Checker
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason

# A registry takes a while to make up, and a busy machine even longer.
MODEST = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])

PROFILES = ("look", "touch")
TEXT = {"type": "string", "maxLength": 9}
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
COUNTS = st.integers(0, 9)


def an_object(properties: dict, required: list[str]) -> dict:
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": required}


VALUES = st.recursive(
    st.one_of(
        st.builds(lambda most: {"type": "string", "maxLength": most}, COUNTS),
        st.builds(lambda least, more: {"type": "integer", "minimum": least, "maximum": least + more}, COUNTS, COUNTS),
        st.sampled_from([{"type": "boolean"}, {"type": ["number", "null"]}, {"const": 1}, {"enum": ["on", None, 0.5]}]),
        st.just({"$ref": "#/$defs/shared"}),
    ),
    lambda inner: st.one_of(
        st.builds(lambda item, most: {"type": "array", "items": item, "maxItems": most}, inner, COUNTS),
        st.builds(lambda named: an_object(named, sorted(named)[:1]), st.dictionaries(NAMES, inner, max_size=3)),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)


@st.composite
def schemas(draw, fields: tuple[str, ...] = ()) -> dict:
    """A closed, bounded schema of an object that has these fields, whole or in alternatives."""
    forced = dict.fromkeys(fields, TEXT)
    whole = [
        an_object({**named, **forced}, [*fields, *sorted(named.keys() - forced)[:1]])
        for named in draw(st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=1, max_size=2))
    ]
    top = whole[0] if len(whole) == 1 else {"oneOf": whole}
    return {**top, "$defs": {"shared": TEXT}}


@st.composite
def operations(draw) -> dict:
    authority = draw(st.sampled_from(Authority))
    risk = draw(st.sampled_from(Risk))
    consent = draw(st.sets(st.sampled_from(ConsentRule)))
    if risk is Risk.CRITICAL and authority is Authority.GRANT:
        authority = Authority.OPERATION_GRANT
    if risk is Risk.CRITICAL:
        consent |= {ConsentRule.INTERACTIVE_ONLY}
    kinds = [kind for kind in ResultKind if (kind is ResultKind.CHUNK) == (authority is Authority.ARTIFACT_ACL)]
    kind = draw(st.sampled_from(kinds))
    spec = {
        "about": draw(st.text("abc é", min_size=1, max_size=9)),
        "risk": risk.value,
        "result": kind.value,
        "authority": authority.value,
        "publication_bound": draw(st.booleans()),
        "input": draw(schemas(("key",))),
        "output": draw(schemas(RESULT_FIELDS[kind])),
    }
    if authority is Authority.GRANT:
        spec["profiles"] = draw(st.lists(st.sampled_from(PROFILES), min_size=1, unique=True))
    if consent and authority in (Authority.GRANT, Authority.OPERATION_GRANT):
        spec["consent"] = sorted(each.value for each in consent)
    if draw(st.booleans()):
        spec |= {"idempotency": "key", "max_bytes": {"key": draw(st.integers(1, 9))}}
    return spec


# Few letters, so that names often meet.
IDS = st.from_regex(r"org\.x\.[aA][aA./_-]{0,2}@1", fullmatch=True)


@st.composite
def documents(draw) -> dict:
    """A registry's file as a value; only the names of its tools may meet."""
    return {
        "schema": REGISTRY,
        "id": draw(NAMES),
        "namespace": "org.x.",
        "prefix": draw(st.sampled_from(["x_", "y_control_"])),
        "scheme": "x",
        "profiles": list(PROFILES),
        "bounds": {"parameters_bytes": draw(st.integers(100, 524288)), "id_length": draw(st.integers(8, 128))},
        "operations": draw(st.dictionaries(IDS, operations(), min_size=1, max_size=4)),
    }


def read(value: dict) -> Registry:
    return registry_from(load(json.dumps(value).encode(), "x.registry.yaml"))


def shuffled(value, draw):
    """The same value with the keys of every mapping in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw(st.permutations(sorted(value)))}
    return [shuffled(each, draw) for each in value] if isinstance(value, list) else value


@promise("C2")
@MODEST
@given(documents())
def test_of_every_registry_that_loads_no_two_operations_have_one_tool(value):
    names = [re.sub(r"[^a-z0-9]", "_", each[6:-2].lower()) for each in value["operations"]]
    if len(set(names)) != len(names):
        with pytest.raises(DocumentError) as caught:
            read(value)
        assert {each.reason for each in caught.value.problems} == {Reason.DUPLICATE_TOOL}
        assert len(caught.value.problems) == len(names) - len(set(names))
        return
    registry = read(value)
    tools = [registry.tool_name(each.id) for each in registry.operations]
    assert sorted(tools) == sorted(registry.prefix + name for name in names)
    assert len({*tools, *map(registry.management_tool, MANAGEMENT)}) == len(tools) + len(MANAGEMENT)
    projection = Projection(registry)
    for operation, name in zip(registry.operations, tools, strict=True):
        tool = projection.tool(name)
        assert (tool.operation if tool else None) is (operation if operation.advertised else None)


def distinct(value: dict) -> dict:
    """The file with its operations under ids that never meet."""
    named = {f"org.x.op{index}@1": each for index, each in enumerate(value["operations"].values())}
    return {**value, "operations": named}


@promise("C1", "H3")
@MODEST
@given(documents(), st.data())
def test_a_registrys_file_says_it_whole_however_it_is_written(value, data):
    value = distinct(value)
    registry = read(value)
    again = {
        "schema": REGISTRY,
        "id": registry.id,
        "namespace": registry.namespace,
        "prefix": registry.prefix,
        "scheme": registry.scheme,
        "profiles": list(registry.profiles),
        "bounds": value["bounds"],
        "operations": {},
    }
    for each in registry.operations:
        said = {key: part for key, part in each.value().items() if part not in (None, [], {})}
        again["operations"][each.id] = said
    for text in (json.dumps(again), json.dumps(shuffled(again, data.draw), indent=2, ensure_ascii=False)):
        other = registry_from(load(text.encode(), "x.registry.yaml"))
        assert (other, other.digest) == (registry, registry.digest)


@promise("C4", "C7")
@MODEST
@given(documents())
def test_what_is_projected_of_a_closed_registry_is_closed(value):
    for tool in Projection(read(distinct(value))).tools:
        assert closed_schema_faults(tool.definition["inputSchema"]) == []
        assert Checker(tool.definition["outputSchema"]).faults({"ok": True, "more": 1}) != ()


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=3)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "key", "ok"]), inner, max_size=2),
    max_leaves=4,
)
FIELDS = st.sampled_from(
    ["instance_id", "input", "request_id", "grant_id", "profile", "operation_id", "authority", "approved", "consent"]
)


@promise("C3", "C18")
@MODEST
@given(documents(), st.data())
def test_nothing_that_a_caller_sends_changes_what_is_advertised(value, data):
    registry = read(distinct(value))
    projection = Projection(registry)
    advertised = tuple(tool.name for tool in projection.tools)
    payload = bytes(projection.payload)
    every = [*advertised, *(registry.tool_name(each.id) for each in registry.operations), "x_control_any"]
    for _ in range(4):
        name = data.draw(st.sampled_from(every))
        sent = data.draw(st.dictionaries(FIELDS, JSON, max_size=5))
        if data.draw(st.booleans()):
            sent |= {
                "instance_id": "one",
                "input": data.draw(st.just({}) | st.fixed_dictionaries({"key": st.text("a")})),
            }
        call = projection.read(name, json.dumps(sent).encode())
        if isinstance(call, OperationCall):
            assert call.operation.advertised
            assert call.operation is registry.operation(call.operation.id)
        else:
            assert isinstance(call, Unfit | ManagementCall)
        assert isinstance(call, Unfit) or name in advertised
        assert tuple(tool.name for tool in projection.tools) == advertised
        assert (projection.payload, Projection(registry).payload) == (payload, payload)
