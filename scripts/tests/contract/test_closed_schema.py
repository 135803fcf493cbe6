"""Closed, bounded schemas: what goes unsaid is found, at the place where it goes unsaid."""

from __future__ import annotations

import pytest

from assisted_benchmark.contract.closed_schema import always_has, closed_schema_faults, texts_of

TEXT = {"type": "string", "maxLength": 9}
EMPTY = {"type": "object", "additionalProperties": False}


def an_object(**properties):
    return {**EMPTY, "properties": properties}


def reasons(schema):
    return [(fault.reason.value, fault.path) for fault in closed_schema_faults(schema)]


CLOSED = [
    EMPTY,
    an_object(a=TEXT, b={"type": "integer"}, c={"const": {"any": []}}, d={"enum": [1, "a", None]}),
    an_object(a={"type": ["string", "null"], "maxLength": 1}, b={"type": ["object", "null"], **EMPTY}),
    an_object(a={"type": "array", "items": TEXT, "maxItems": 3}),
    an_object(a={"type": "array", "prefixItems": [TEXT, {"const": 1}], "items": False}),
    an_object(a={"type": "array", "prefixItems": [TEXT], "items": TEXT, "maxItems": 3}),
    an_object(a={"oneOf": [{"type": "number"}, {"enum": ["NaN"]}]}, b={"anyOf": [TEXT, EMPTY]}),
    {
        "type": "object",
        "additionalProperties": TEXT,
        "propertyNames": {"maxLength": 9, "pattern": "^a"},
        "maxProperties": 3,
    },
    {
        **EMPTY,
        "patternProperties": {"^a": TEXT},
        "propertyNames": {"maxLength": 9},
        "maxProperties": 3,
    },
    {"oneOf": [an_object(a={"const": 1}), an_object(a={"const": 2}, b=TEXT)]},
    {"$ref": "#/$defs/whole", "$defs": {"whole": an_object(a={"$ref": "#/$defs/text"}), "text": TEXT}},
    {**an_object(a=TEXT, b=TEXT), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {
        **an_object(a=TEXT, b={"type": "array", "items": TEXT, "maxItems": 9}),
        "if": {"properties": {"a": {"pattern": "x", "$ref": "#/$defs/short"}}},
        "then": {"required": ["b"], "properties": {"b": {"items": {"minLength": 1}, "prefixItems": [True]}}},
        "else": {"not": {"required": ["b"]}, "additionalProperties": {"minLength": 0}},
        "allOf": [{"minProperties": 1}, True],
        "dependentRequired": {"a": ["b"]},
        "title": "t",
        "description": "d",
        "default": {"a": "x", "not-looked-at": 1},
        "$defs": {"short": TEXT},
    },
]


@pytest.mark.parametrize("schema", CLOSED, ids=lambda schema: str(schema)[:60])
def test_a_schema_that_says_everything_is_taken(schema):
    assert reasons(schema) == []


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (True, [("wrong_value", ())]),
        (["object"], [("wrong_value", ())]),
        ({"type": 3}, [("wrong_value", ())]),
        (an_object(a={"$ref": "https://example.org/x"}), [("unresolvable_ref", ())]),
        # not an object
        (TEXT, [("wrong_value", ())]),
        ({"type": ["object", "null"], "additionalProperties": False}, [("wrong_value", ())]),
        ({"oneOf": [EMPTY, {"type": "integer"}]}, [("wrong_value", ())]),
        ({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, [("wrong_value", ())]),
        ({"const": {}}, [("wrong_value", ())]),
        # open
        ({"type": "object"}, [("wrong_value", ())]),
        ({"type": "object", "additionalProperties": True}, [("wrong_value", ())]),
        ({**EMPTY, "patternProperties": {"^a": TEXT}}, [("wrong_value", ())]),
        ({"type": "object", "additionalProperties": TEXT, "maxProperties": 3}, [("wrong_value", ())]),
        ({"type": "object", "additionalProperties": TEXT, "propertyNames": TEXT}, [("wrong_value", ())]),
        (an_object(a=True), [("wrong_value", ("properties", "a"))]),
        (an_object(a={}), [("wrong_value", ("properties", "a"))]),
        (an_object(a={"description": "whatever"}), [("wrong_value", ("properties", "a"))]),
        (an_object(a={"allOf": [TEXT]}), [("wrong_value", ("properties", "a"))]),
        (an_object(a={"type": "object"}), [("wrong_value", ("properties", "a"))]),
        (an_object(a={"oneOf": [TEXT, True]}), [("wrong_value", ("properties", "a", "oneOf", 1))]),
        (an_object(a={"anyOf": [{"type": "object"}]}), [("wrong_value", ("properties", "a", "anyOf", 0))]),
        (
            {**EMPTY, "patternProperties": {"^a": {}}, "propertyNames": TEXT, "maxProperties": 1},
            [("wrong_value", ("patternProperties", "^a"))],
        ),
        (
            {"type": "object", "additionalProperties": {}, "propertyNames": TEXT, "maxProperties": 1},
            [("wrong_value", ("additionalProperties",))],
        ),
        # unbounded
        (an_object(a={"type": "string"}), [("wrong_value", ("properties", "a"))]),
        (an_object(a={"type": "array", "maxItems": 3}), [("wrong_value", ("properties", "a"))]),
        (an_object(a={"type": "array", "items": TEXT}), [("wrong_value", ("properties", "a"))]),
        (
            an_object(a={"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            [("wrong_value", ("properties", "a", "items"))],
        ),
        (
            an_object(a={"type": "array", "items": False, "prefixItems": [{}]}),
            [("wrong_value", ("properties", "a", "prefixItems", 0))],
        ),
        ({**EMPTY, "$defs": {"a": {"type": "string"}}}, [("wrong_value", ("$defs", "a"))]),
        # keywords
        (an_object(a={**TEXT, "maxlength": 3}), [("unknown_key", ("properties", "a", "maxlength"))]),
        ({**EMPTY, "$schema": "https://json-schema.org/draft/2020-12/schema"}, [("unknown_key", ("$schema",))]),
        ({**EMPTY, "$id": "urn:x"}, [("unknown_key", ("$id",))]),
        ({**EMPTY, "unevaluatedProperties": False}, [("unknown_key", ("unevaluatedProperties",))]),
        (an_object(a={**TEXT, "format": "uuid"}), [("unknown_key", ("properties", "a", "format"))]),
        (an_object(a={**EMPTY, "$defs": {}}), [("unknown_key", ("properties", "a", "$defs"))]),
        ({**EMPTY, "if": {"requird": []}}, [("unknown_key", ("if", "requird"))]),
        ({**EMPTY, "allOf": [{"not": {"x-own": 1}}]}, [("unknown_key", ("allOf", 0, "not", "x-own"))]),
        (
            {**EMPTY, "then": {"properties": {"a": {"minlength": 1}}}},
            [("unknown_key", ("then", "properties", "a", "minlength"))],
        ),
        ({**EMPTY, "anyOf": [{"items": {"typ": 1}}]}, [("unknown_key", ("anyOf", 0, "items", "typ"))]),
        ({**EMPTY, "else": {"prefixItems": [{"a": 1}]}}, [("unknown_key", ("else", "prefixItems", 0, "a"))]),
        ({**EMPTY, "propertyNames": {"maxlength": 1}}, [("unknown_key", ("propertyNames", "maxlength"))]),
        # references
        (an_object(a={"$ref": "#"}), [("unresolvable_ref", ("properties", "a", "$ref"))]),
        (an_object(a={"$ref": "#/properties/a"}), [("unresolvable_ref", ("properties", "a", "$ref"))]),
        (
            {**EMPTY, "not": {"$ref": "#/properties/a"}, "properties": {"a": TEXT}},
            [("unresolvable_ref", ("not", "$ref"))],
        ),
        ({**EMPTY, "$defs": {"broker.id": TEXT}}, [("malformed_name", ("$defs", "broker.id"))]),
        ({**EMPTY, "$defs": {"Id": TEXT}}, [("malformed_name", ("$defs", "Id"))]),
        (
            {**EMPTY, "$defs": {"a": {"$ref": "#/$defs/a"}}},
            [("wrong_value", ("$defs", "a"))],
        ),
        (
            {
                **EMPTY,
                "$defs": {
                    "a": an_object(b={"$ref": "#/$defs/b"}),
                    "b": {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/c"}, {"$ref": "#/$defs/c"}]},
                    "c": TEXT,
                },
            },
            [("wrong_value", ("$defs", "a")), ("wrong_value", ("$defs", "b"))],
        ),
    ],
    ids=lambda given: str(given)[:60],
)
def test_what_goes_unsaid_is_refused_at_its_place(schema, found):
    assert reasons(schema) == found


def test_several_things_are_told_at_once():
    schema = an_object(a={"type": "string"}, b={"type": "array"}, c={**TEXT, "x": 1})
    assert [path for _, path in reasons(schema)] == [("properties", "a"), ("properties", "b"), ("properties", "c", "x")]


def test_a_field_is_always_there_if_every_alternative_requires_it():
    a, both = {"required": ["a"]}, {"required": ["a", "b"]}
    defs = {"x": both, "y": {"anyOf": [a, both]}}
    assert always_has(both, "b", {})
    assert not always_has({}, "a", {})
    assert always_has({"oneOf": [a, both]}, "a", {})
    assert not always_has({"oneOf": [a, both]}, "b", {})
    assert always_has({"$ref": "#/$defs/x"}, "b", defs)
    assert always_has({"oneOf": [{"$ref": "#/$defs/y"}, a]}, "a", defs)
    assert not always_has({"$ref": "#/$defs/y"}, "b", defs)


def test_the_texts_of_a_schema_are_those_of_all_its_alternatives():
    defs = {"name": TEXT, "alias": {"$ref": "#/$defs/name"}, "whole": an_object(d=TEXT)}
    schema = {
        "oneOf": [an_object(a=TEXT, n={"type": "integer"}), an_object(b={"$ref": "#/$defs/alias"})],
        "anyOf": [{"$ref": "#/$defs/whole"}],
    }
    assert texts_of(schema, defs) == {"a", "b", "d"}
    assert texts_of(an_object(c={"enum": ["x"]}), {}) == set()
