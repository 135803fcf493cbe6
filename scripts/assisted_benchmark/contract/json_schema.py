"""JSON Schema over arguments and results: 2020-12 unless `$schema` says another, never a network.

A schema speaks only of itself: a `$ref` beyond the document is refused when the checker
is made, as what stands behind it can change under a pin.

Two things are said beyond the standard. A schema's `integer` may insist on an integer's
spelling (`1`, not `1.0`), see `Checker.integer_spelling`. And `closed` gives the schema
that a broker enforces: properties that are not declared are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

import jsonschema_rs
from attrs import frozen

from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.errors import CanonicalError, InputError
from assisted_benchmark.kernel.pointers import pointer, steps_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

# Where a schema holds further schemas: by name, in a list, or one.
_BY_NAME: Final = ("$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies")
_IN_LIST: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE: Final = (
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
)
_REFS: Final = ("$ref", "$dynamicRef", "$recursiveRef")
# These speak of the same object as the schema that holds them.
_SAME_PLACE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
_OLD_DRAFTS: Final = ("/draft-04/", "/draft-06/", "/draft-07/")

# The library's sentences for these quote keys that the schema does not know, which may be secret.
_ABOUT_KEYS: Final = {
    "additionalProperties": "properties that are not declared are not allowed",
    "unevaluatedProperties": "properties that are not declared are not allowed",
    "propertyNames": "a property has a name that is not allowed",
}

# No more is told of one value: what is wrong at every place of a large one would take seconds to say.
_MANY: Final = 1_000
_SPELLING: Final = "assisted-benchmark/integer-spelling"
_MASK: Final = "the value"


@frozen
class Fault:
    """One thing a value does wrong: a JSON pointer to it, a sentence without the value itself, the keyword.

    `unexpected` are keys that are not declared: for whoever wrote the value, and for nobody else.
    """

    path: str
    message: str
    keyword: str
    unexpected: tuple[str, ...] = ()


class _IntegerSpelling:
    """The keyword that stands beside each `type: integer` and refuses a float's spelling."""

    def __init__(self, parent_schema: Json, value: Json, schema_path: list[str | int]) -> None:
        """Nothing to prepare."""

    def validate(self, instance: Json) -> None:
        if type(instance) is float and instance.is_integer():
            raise ValueError("an integer is spelled without point and exponent")


class Checker:
    """One schema, compiled: what is wrong with a value, and which integers are spelled as floats."""

    def __init__(self, schema: Json) -> None:
        """Compile the schema.

        Raises:
            InputError: unresolvable_ref, too_deep, or wrong_value for what is no JSON Schema.
        """
        self.schema = Canonical.of(schema)
        self._compiled = _compile(schema)
        self._strict: Any = None

    def faults(self, value: Json) -> tuple[Fault, ...]:
        """What is wrong with `value`, up to 1,000 faults; values and undeclared keys may be secret: not quoted."""
        if self._compiled.is_valid(value):
            return ()
        found = (_fault(each) for error in self._compiled.iter_errors(value) for each in _meant(error))
        return tuple(sorted(islice(found, _MANY), key=lambda fault: (fault.path, fault.keyword)))

    def integer_spelling(self, value: Json) -> tuple[str, ...]:
        """JSON pointers of values with a point or an exponent where the schema demands `integer`."""
        if not _has_float(value):
            return ()
        if self._strict is None:
            self._strict = _compile(_insisting(self.schema.value))
        return tuple(sorted(set(islice(_misspelled(self._strict.iter_errors(value)), _MANY))))


def _meant(error: Any) -> Iterator[Any]:
    """The error itself; of alternatives that a property's constant tells apart, what is wrong with the one it names."""
    branches = getattr(error.kind, "context", ())
    at = len(error.instance_path) + 1
    named = [
        branch
        for branch in branches
        if not any(each.kind.name in ("const", "enum") and len(each.instance_path) == at for each in branch)
    ]
    if len(named) == 1 and len(branches) > 1:
        for each in named[0]:
            yield from _meant(each)
    else:
        yield error


def _fault(error: Any) -> Fault:
    keyword = error.kind.name
    message = _ABOUT_KEYS.get(keyword) or shown(error.message, 300)
    return Fault(_pointer(error.instance_path), message, keyword, tuple(getattr(error.kind, "unexpected", ())))


def check_schema(schema: Json) -> None:
    """Refuse what is no JSON Schema of a known draft, or refers outside itself.

    Raises:
        InputError: unresolvable_ref, too_deep or wrong_value.
    """
    _compile(schema)


def closed(schema: Json) -> Json:
    """The schema with every object that declares its properties closed to others.

    Where a schema says `additionalProperties` or `unevaluatedProperties` itself, that holds. An
    inner object that declares no properties at all is a free mapping and stays one; the
    outermost is always closed. Drafts before 2019-09 cannot see the properties that
    `allOf` and the like declare: there such properties are refused too.
    """
    if type(schema) is not dict:
        return schema
    old = any(draft in str(schema.get("$schema", "")) for draft in _OLD_DRAFTS)
    return _Closing(schema, old=old).closed(schema, here=True)


class _Closing:
    """One run of `closed` over one schema."""

    def __init__(self, top: dict[str, Json], *, old: bool) -> None:
        self._top = top
        self._old = old

    def closed(self, schema: Json, *, here: bool) -> Json:
        """`here` says whether this schema alone describes its place, so that closing it is right."""
        if type(schema) is not dict:
            return schema
        out = dict(schema)
        for keyword, under in schema.items():
            # A definition is closed where it is referred to; a branch by the schema that holds it. Old
            # drafts ignore what stands beside `$ref`, so there the definition itself is closed.
            inner = keyword not in _SAME_PLACE and (self._old or keyword not in ("$defs", "definitions"))
            if keyword in _BY_NAME and type(under) is dict:
                out[keyword] = {name: self.closed(each, here=inner) for name, each in under.items()}
            elif keyword in _IN_LIST and type(under) is list:
                out[keyword] = [self.closed(each, here=inner) for each in under]
            elif keyword in _SINGLE:
                out[keyword] = self.closed(under, here=inner)
        if here and "additionalProperties" not in schema and "unevaluatedProperties" not in schema:
            composed = not self._old and any(keyword in _SAME_PLACE or keyword in _REFS for keyword in schema)
            if schema is self._top or self._declares(schema, set()):
                out["unevaluatedProperties" if composed else "additionalProperties"] = False
        return out

    def _declares(self, schema: Json, seen: set[int]) -> bool:
        """Whether the schema, or one that it applies to the same place, declares properties."""
        if type(schema) is not dict or id(schema) in seen:
            return False
        seen.add(id(schema))
        if "properties" in schema or "patternProperties" in schema:
            return True
        if any(keyword in schema and self._target(schema[keyword], seen) for keyword in _REFS):
            return True
        branches: list[Json] = []
        for keyword in _SAME_PLACE & schema.keys():
            under = schema[keyword]
            branches += under if type(under) is list else under.values() if keyword in _BY_NAME else [under]
        return any(self._declares(branch, seen) for branch in branches)

    def _target(self, reference: Json, seen: set[int]) -> bool:
        """`_declares` of what a reference names; a target that a plain walk does not find counts as yes."""
        fragment = unquote(str(reference)).removeprefix("#")
        if fragment and not fragment.startswith("/"):
            return True
        at: Json = self._top
        for step in steps_of(fragment):
            at = at.get(step) if type(at) is dict else None
        return at is None or self._declares(at, seen)


def _compile(schema: Json) -> Any:
    try:
        Canonical.of(schema)
    except CanonicalError as error:
        raise InputError(error.reason, f"the schema is no JSON value: {error.detail}") from error
    _refuse_outside_refs(schema)
    asked: list[str] = []

    def retrieve_nothing(uri: str) -> Json:
        asked.append(uri)
        raise ValueError(uri)

    try:
        return jsonschema_rs.validator_for(
            schema, retriever=retrieve_nothing, mask=_MASK, keywords={_SPELLING: _IntegerSpelling}
        )
    except (jsonschema_rs.ReferencingError, ValueError) as error:  # ValidationError is a ValueError
        if asked:  # from a place that no keyword of the standard leads to
            raise _outside(asked[0]) from error
        first_line = shown(str(error).partition("\n")[0], 200)
        raise InputError(Reason.WRONG_VALUE, f"not a valid JSON Schema: {first_line}") from error


def _outside(target: str) -> InputError:
    return InputError(Reason.UNRESOLVABLE_REF, f"`{shown(target, 100)}` is a document outside the schema")


def _refuse_outside_refs(schema: Json) -> None:
    for each in _subschemas(schema):
        for keyword in _REFS:
            target = each.get(keyword)
            if type(target) is str and not target.startswith("#"):
                raise _outside(target)


def _subschemas(top: Json) -> Iterator[dict[str, Json]]:
    """Every schema object within, itself first; instance data such as `const` and `examples` is passed over."""
    waiting = [top]
    while waiting:
        schema = waiting.pop()
        if type(schema) is not dict:
            continue
        yield schema
        for keyword in _BY_NAME:
            if type(under := schema.get(keyword)) is dict:
                waiting.extend(under.values())
        for keyword in _IN_LIST:
            if type(under := schema.get(keyword)) is list:
                waiting.extend(under)
        waiting.extend(schema[keyword] for keyword in _SINGLE if keyword in schema)


def _insisting(schema: Json) -> Json:
    """The schema (a fresh value, changed in place) with the spelling keyword beside each `integer`."""
    for each in _subschemas(schema):
        types = each.get("type")
        if types == "integer" or (type(types) is list and "integer" in types and "number" not in types):
            each[_SPELLING] = True
    return schema


def _misspelled(errors: Iterable[Any]) -> Iterator[str]:
    for error in errors:
        if error.kind.name == _SPELLING:
            yield _pointer(error.instance_path)
        for branch in getattr(error.kind, "context", ()):
            yield from _misspelled(branch)


def _has_float(top: Json) -> bool:
    waiting = [top]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is float:
            return True
        if kind is dict:
            waiting.extend(value.values())
        elif kind is list:
            waiting.extend(value)
    return False


def _pointer(path: Iterable[str | int]) -> str:
    return reduce(pointer, path, "")
