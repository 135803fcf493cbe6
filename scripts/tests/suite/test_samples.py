"""What is drawn of a schema fits it, as far as plain keywords go, and covers it."""

import pytest
from marks import promise

from assisted_benchmark.contract.json_schema import Checker
from assisted_benchmark.suite.live.samples import Draw, sample, scalar

RICH = {
    "type": "object",
    "properties": {
        "named": {"enum": ["a", "b"]},
        "fixed": {"const": {"x": 1}},
        "shown": {"type": "string", "examples": ["like this"]},
        "whole": {"type": "integer", "minimum": 5, "maximum": 7},
        "part": {"type": "number"},
        "said": {"type": ["string", "null"]},
        "true": {"type": "boolean"},
        "many": {"type": "array", "items": {"type": "integer"}},
        "inner": {"properties": {"deep": {"anyOf": [{"type": "boolean"}, {"oneOf": [{"type": "null"}]}]}}},
        "free": True,
    },
    "required": ["named", "whole", "many"],
    "additionalProperties": False,
}


@promise("H6")
def test_what_is_drawn_of_a_schema_fits_it_and_covers_it():
    draw, checker = Draw("rich"), Checker(RICH)
    drawn = [sample(RICH, draw, 8) for _ in range(200)]
    assert [checker.faults(each) for each in drawn if checker.faults(each)] == []
    assert {name for each in drawn for name in each} == set(RICH["properties"])
    assert {each["whole"] for each in drawn} == {5, 6, 7}
    assert {len(each["many"]) for each in drawn} == {0, 1, 2}
    assert {each["said"] is None for each in drawn if "said" in each} == {True, False}


def test_a_schema_that_refers_to_itself_without_end_is_drawn_to_a_depth():
    schema = {"type": "array", "items": None}
    schema["items"] = schema
    assert "[[[[[" not in str([sample(schema, Draw(str(seed))) for seed in range(20)]).removeprefix("[")


@pytest.mark.parametrize("seed", ["", "x"])
def test_the_same_seed_draws_the_same(seed):
    assert [scalar(Draw(seed)) for _ in range(3)] == [scalar(Draw(seed))] * 3
    assert len({Draw(seed).below(1000), Draw(f"{seed}.").below(1000)}) == 2
