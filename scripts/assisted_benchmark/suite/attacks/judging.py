"""What a changed object has to be refused for, worked out from the schema alone and not by the brokers' own checks."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.attacks.values import Spelled, plain

_TYPES: Final = "type"


def misfit(schema: Canonical, value: Json) -> Reason | None:
    """Why an object does not fit a tool's schema, closed at its top; None if it does."""
    if misspelled(schema, value):
        return Reason.NON_CANONICAL_NUMBER
    return None if fits(schema, value) else Reason.ARGUMENTS_INVALID


def fits(schema: Canonical, value: Json) -> bool:
    """Whether an object is what a schema says, and has no member that it does not name."""
    stated = schema.value
    if type(value) is not dict or not value.keys() <= stated.get("properties", {}).keys():
        return False
    return bool(_validator(schema.data).is_valid(plain(value)))


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Any:
    return jsonschema_rs.validator_for(Canonical(schema).value)


def misspelled(schema: Canonical, value: Json) -> bool:
    """Whether an integer is written with a point or an exponent where the schema wants an integer."""
    return _misspelled(schema.value, value)


def _misspelled(schema: Json, value: Json) -> bool:
    if type(schema) is not dict:
        return False
    if type(value) is Spelled:
        return bool(schema.get(_TYPES) == "integer" and value.is_integer())
    if type(value) is dict:
        properties = schema.get("properties", {})
        return any(_misspelled(properties.get(key), each) for key, each in value.items())
    if type(value) is list:
        return any(_misspelled(schema.get("items"), each) for each in value)
    return False
