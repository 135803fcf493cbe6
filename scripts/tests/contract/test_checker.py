"""JSON Schema: arguments and results, closed objects, integer spelling; never another document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.contract.json_schema import Checker, Fault, check_schema, closed
from assisted_benchmark.kernel.canonical import parse
from assisted_benchmark.kernel.errors import InputError

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def refusal(schema) -> str:
    with pytest.raises(InputError) as caught:
        check_schema(schema)
    return caught.value.reason.value


CLICK = {
    "type": "object",
    "properties": {"taskId": {"type": "string", "minLength": 1}, "count": {"type": "integer", "maximum": 9}},
    "required": ["taskId"],
    "additionalProperties": False,
}


@promise("W9")
def test_a_value_that_fits_has_no_faults():
    assert Checker(CLICK).faults({"taskId": "t-1", "count": 3}) == ()
    assert Checker({}).faults(None) == ()
    assert Checker(True).faults([1]) == ()


@promise("W9")
def test_every_fault_has_pointer_keyword_and_a_sentence_without_the_value():
    assert Checker(CLICK).faults({"count": "secret", "a": 1}) == (
        Fault("", "properties that are not declared are not allowed", "additionalProperties", ("a",)),
        Fault("", '"taskId" is a required property', "required"),
        Fault("/count", 'the value is not of type "integer"', "type"),
    )


def test_pointers_are_escaped():
    checker = Checker({"properties": {"a/b~c": {"items": {"type": "null"}}}})
    assert [fault.path for fault in checker.faults({"a/b~c": [None, 1]})] == ["/a~1b~0c/1"]


@promise("L13", "W9")
@pytest.mark.parametrize("value", [True, "1", 1.5, [1], {"x": 1}, None])
def test_a_retyped_argument_does_not_fit(value):
    assert len(Checker(CLICK).faults({"taskId": "t", "count": value})) == 1


@promise("W9")
def test_schemas_are_2020_12_unless_they_say_another_draft():
    tuple_of_two = {"type": "array", "prefixItems": [{"type": "null"}], "items": False}
    assert Checker(tuple_of_two).faults([1]) != ()
    assert Checker(tuple_of_two | {"$schema": "https://json-schema.org/draft/2020-12/schema"}).faults([1]) != ()
    older = {"$schema": DRAFT_7, "items": [{"type": "null"}], "additionalItems": False}
    assert Checker(older).faults([None, 1]) != ()
    assert Checker(older).faults([None]) == ()


@promise("W9")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.invalid/task.json"},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"$ref": "task.json#/x"}}},
        {"$defs": {"a": {"allOf": [{"$dynamicRef": "other"}]}}},
        {"items": [{"$ref": "other"}], "$schema": DRAFT_7},
        {"not": {"$ref": "other"}},
        {"dependentSchemas": {"a": {"$ref": "other"}}},
        {"$schema": "https://example.invalid/mine"},
        {"$ref": "#/hidden", "hidden": {"$ref": "https://example.invalid/x"}},
    ],
)
def test_a_reference_out_of_the_schema_is_refused(schema):
    assert refusal(schema) == "unresolvable_ref"


@promise("W9")
def test_data_that_only_looks_like_a_reference_is_none():
    check_schema({"const": {"$ref": "https://example.invalid"}, "examples": [{"$ref": "x"}]})
    check_schema({"properties": {"$ref": {"type": "string"}}})
    check_schema({"$ref": "#/$defs/a", "$defs": {"a": {}}})


@pytest.mark.parametrize(
    "schema",
    [
        [],
        "object",
        {"type": "nothing"},
        {"properties": []},
        {"properties": {"a": 3}},
        {"minimum": "1"},
        {"pattern": "("},
        {"$ref": "#/$defs/missing"},
    ],
)
def test_what_is_no_schema_of_a_known_draft_is_refused(schema):
    assert refusal(schema) == "wrong_value"


@promise("W9")
def test_a_schema_is_bounded():
    deep: dict = {}
    for _ in range(70):
        deep = {"items": deep}
    assert refusal(deep) == "too_deep"
    assert refusal({"enum": [0] * 100_001}) == "too_large"


@promise("W9")
def test_recursive_schemas_end():
    assert Checker({"$ref": "#"}).faults({"a": 1}) == ()
    tree = {"$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t"}
    assert Checker(tree).faults([[], [[]]]) == ()
    assert [fault.path for fault in Checker(tree).faults([[], [[1]]])] == ["/1/0/0"]


@promise("W9")
def test_a_pattern_that_explodes_is_a_no_and_not_a_hang():
    assert len(Checker({"pattern": "^(?=(a+)+$)(a+)+b$"}).faults("a" * 40)) == 1


# --- the spelling of integers


@promise("K1")
def test_an_integer_is_spelled_as_one_where_the_schema_says_integer():
    checker = Checker({"properties": {"n": {"type": "integer"}, "x": {"type": "number"}}})
    for spelled in (b"1.0", b"1e0", b"10E-1"):
        value = parse(b'{"n":' + spelled + b',"x":' + spelled + b"}")
        assert checker.faults(value) == ()
        assert checker.integer_spelling(value) == ("/n",)
    assert checker.integer_spelling(parse(b'{"n":1,"x":1}')) == ()
    assert checker.integer_spelling(parse(b'{"n":1,"x":1.0}')) == ()


@promise("K1")
def test_a_fraction_is_a_wrong_value_and_no_spelling():
    checker = Checker({"type": "integer"})
    assert checker.integer_spelling(1.5) == ()
    assert len(checker.faults(1.5)) == 1


@promise("K1")
@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, ("",)),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, ()),
        ({"type": ["integer", "null"]}, ("",)),
        ({"type": ["integer", "number"]}, ()),
        ({"allOf": [{"$ref": "#/$defs/n"}], "$defs": {"n": {"type": "integer"}}}, ("",)),
        ({"enum": [1]}, ()),
        ({"const": 1}, ()),
        ({"$schema": DRAFT_7, "type": "integer"}, ("",)),
    ],
)
def test_what_the_schema_demands_decides(schema, expected):
    assert Checker(schema).faults(1.0) == ()
    assert Checker(schema).integer_spelling(1.0) == expected
    assert Checker(schema).integer_spelling(1) == ()


@promise("K1")
def test_misspelled_integers_are_found_at_any_depth_and_beside_other_faults():
    checker = Checker({"items": {"properties": {"n": {"type": "integer"}}, "required": ["m"]}})
    assert checker.integer_spelling([{"n": 1}, {"n": 2.0}, {"n": 3.0, "m": 1}]) == ("/1/n", "/2/n")


# --- closed


def test_an_object_that_declares_its_properties_is_closed_to_others():
    schema = closed({"type": "object", "properties": {"a": {"properties": {"b": {}}}}})
    checker = Checker(schema)
    assert checker.faults({"a": {"b": 1}}) == ()
    assert [fault.path for fault in checker.faults({"a": {"b": 1, "x": 1}, "y": 1})] == ["", "/a"]


def test_the_outermost_object_is_closed_even_if_it_declares_nothing():
    assert Checker(closed({"type": "object"})).faults({}) == ()
    assert Checker(closed({"type": "object"})).faults({"a": 1}) != ()
    assert Checker(closed({})).faults({"a": 1}) != ()


def test_an_inner_object_that_declares_nothing_stays_a_free_mapping():
    schema = closed({"properties": {"labels": {"type": "object"}, "bundles": {"items": {"type": "object"}}}})
    assert Checker(schema).faults({"labels": {"x": 1}, "bundles": [{"y": 1}]}) == ()


def test_what_a_schema_says_itself_of_other_properties_holds():
    value = {"type": "object", "properties": {"a": {"properties": {"b": {}}, "unevaluatedProperties": {}}}}
    free = closed(value | {"additionalProperties": {"type": "integer"}})
    assert Checker(free).faults({"a": {"c": 1}, "z": 1}) == ()
    assert Checker(free).faults({"z": "1"}) != ()


def test_composed_objects_are_closed_around_all_that_their_branches_declare():
    schema = closed(
        {
            "allOf": [{"properties": {"a": {"properties": {"x": {}}}}}, {"$ref": "#/$defs/b"}],
            "$defs": {"b": {"properties": {"b": {}}}},
        }
    )
    checker = Checker(schema)
    assert checker.faults({"a": {"x": 1}, "b": 2}) == ()
    assert [fault.keyword for fault in checker.faults({"a": {}, "c": 2})] == ["unevaluatedProperties"]
    assert "/a" in [fault.path for fault in checker.faults({"a": {"y": 1}})]


def test_definitions_are_closed_where_they_are_referred_to():
    schema = closed(
        {
            "properties": {
                "t": {"$ref": "#/$defs/a~1t"},
                "free": {"$ref": "#/$defs/free"},
                "tree": {"$ref": "#/$defs/tree"},
                "named": {"$ref": "#named"},
                "gone": {"$anchor": "here", "if": {}, "then": {"properties": {"z": {}}}},
            },
            "$defs": {
                "a/t": {"type": "object", "patternProperties": {"^a": {}}},
                "free": {"type": "object"},
                "tree": {"properties": {"next": {"$ref": "#/$defs/tree"}}},
                "named": {"$anchor": "named", "type": "object"},
            },
        }
    )
    checker = Checker(schema)
    assert checker.faults({"t": {"ab": 1}, "free": {"x": 1}, "tree": {"next": {"next": {}}}, "gone": {"z": 1}}) == ()
    found = checker.faults({"t": {"b": 1}, "tree": {"next": {"x": 1}}, "named": {"x": 1}, "gone": {"y": 1}})
    assert [fault.path for fault in found] == ["/gone", "/named", "/t", "/tree/next"]


def test_definitions_that_lead_in_a_circle_are_closed_too():
    schema = closed(
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, True]}}}
    )
    assert "unevaluatedProperties" not in schema["properties"]["a"]
    assert schema["additionalProperties"] is False


def test_older_drafts_are_closed_in_the_definitions_themselves():
    schema = closed(
        {
            "$schema": DRAFT_7,
            "type": "object",
            "properties": {"t": {"$ref": "#/definitions/t"}, "u": {"allOf": [{"properties": {"a": {}}}]}},
            "definitions": {"t": {"properties": {"x": {}}}},
        }
    )
    checker = Checker(schema)
    assert checker.faults({"t": {"x": 1}}) == ()
    # what a branch declares is refused as well: too strict, never too open
    assert [fault.path for fault in checker.faults({"t": {"y": 1}, "u": {"a": 1}, "v": 1})] == ["", "/t", "/u"]


def test_flags_as_schemas_pass_through():
    assert closed(True) is True
    assert closed({"properties": {"a": True}, "dependentSchemas": {"a": False}})["properties"] == {"a": True}


def test_closing_leaves_the_given_schema_as_it_was():
    schema = {"properties": {"a": {"properties": {}}}, "anyOf": [{}]}
    before = repr(schema)
    closed(schema)
    assert repr(schema) == before


@given(st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3))
def test_closed_only_ever_narrows(value):
    schema = {"properties": {"a": {"type": "integer"}}, "anyOf": [{"properties": {"b": {"minimum": 0}}}, {}]}
    if Checker(closed(schema)).faults(value) == ():
        assert Checker(schema).faults(value) == ()
        assert value.keys() <= {"a", "b"}


ALTERNATIVES = {
    "oneOf": [
        {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind"]},
        {"properties": {"kind": {"enum": ["b", "c"]}, "in": {"$ref": "#/$defs/in"}}, "required": ["kind", "in"]},
    ],
    "$defs": {
        "in": {"anyOf": [{"properties": {"of": {"const": 1}}, "required": ["x"]}, {"properties": {"of": {"const": 2}}}]}
    },
}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"kind": "a", "n": 1}, []),
        ({"kind": "a", "n": "x"}, [("/n", "type")]),
        ({"kind": "c"}, [("", "required")]),
        ({"kind": "b", "in": {"of": 1}}, [("/in", "required")]),  # and so on inwards
        ({"kind": "b", "in": {"of": 3}}, [("/in", "anyOf")]),  # the constant names none
        ({"kind": "z"}, [("", "oneOf")]),
        ({}, [("", "oneOf")]),  # it could be either
        (7, [("", "oneOf")]),
    ],
)
def test_a_fault_in_an_alternative_is_that_of_the_one_which_a_constant_names(value, found):
    assert [(fault.path, fault.keyword) for fault in Checker({"type": "object", **ALTERNATIVES}).faults(value)] == (
        found if type(value) is dict else [("", "oneOf"), ("", "type")]
    )


def test_an_alternative_without_another_is_told_as_a_whole():
    faults = Checker({"anyOf": [{"properties": {"a": {"type": "integer"}}}]}).faults({"a": "x"})
    assert [(fault.path, fault.keyword) for fault in faults] == [("", "anyOf")]


def test_of_a_value_that_is_wrong_all_over_a_thousand_faults_are_told():
    checker = Checker({"items": {"type": "integer"}})
    assert len(checker.faults(["x"] * 1_001)) == 1_000
    assert len(checker.integer_spelling([1.0] * 1_001)) == 1_000
