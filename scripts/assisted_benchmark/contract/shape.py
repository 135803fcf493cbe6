"""What a document may look like, said once: the check and the published JSON Schema both come from here.

A shape looks at a plain JSON value and notes every fault with its path; `check` turns
these into problems with file, line and column. Shapes hold no rule that needs more than
the value itself; what spans several places is the loader's part.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Protocol

from attrs import Factory, evolve, field, frozen

from assisted_benchmark.contract.scalar import (
    DIGEST,
    DURATION,
    KINDS,
    NAME,
    AnyJson,
    Fault,
    Flag,
    Integer,
    Number,
    Text,
    Word,
    duration_ns,
    wrong,
)
from assisted_benchmark.contract.strict_yaml import MAX_PROBLEMS, Document, Path
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown

# Whoever describes a document needs shapes of both kinds, and finds them here.
__all__ = [
    "DIGEST",
    "DURATION",
    "NAME",
    "AnyJson",
    "ByKey",
    "ByKind",
    "Fault",
    "Field",
    "Flag",
    "Integer",
    "ListOf",
    "MapOf",
    "Number",
    "Record",
    "Shape",
    "Text",
    "Word",
    "check",
    "duration_ns",
    "json_schema",
    "may",
    "must",
]


class Shape(Protocol):
    """One kind of JSON value."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """The Python types of the values that fit."""

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        """Note every fault of `value`."""

    def schema(self) -> Json:
        """The same as JSON Schema, draft-07."""


def check(shape: Shape, document: Document) -> None:
    """Hold the document to its shape.

    Raises:
        DocumentError: with every fault (of the first hundred), in file order.
    """
    faults: list[Fault] = []
    shape.look(document.value, (), faults)
    if faults:
        problems = [
            document.problem(fault.reason, fault.path, fault.detail, fault.hint, at_key=fault.at_key)
            for fault in faults[:MAX_PROBLEMS]
        ]
        raise DocumentError(sorted(problems, key=lambda each: (each.line, each.column)))


def json_schema(shape: Shape, *, id: str, title: str) -> Json:  # noqa: A002 - JSON Schema's own word
    """The shape as a JSON Schema (draft-07) of that `$id`, as editors read it."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", "$id": id, "title": title, **shape.schema()}


@frozen
class ListOf:
    """A list whose items are all of one shape."""

    item: Shape
    least: int = 0
    most: int = 10_000
    kinds: tuple[type, ...] = field(default=(list,), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not list:
            faults.append(wrong(value, path, "a list"))
            return
        _look_at_count(value, path, faults, self.least, self.most)
        for index, item in enumerate(value):
            self.item.look(item, (*path, index), faults)

    def schema(self) -> Json:
        return {"type": "array", "items": self.item.schema(), "minItems": self.least, "maxItems": self.most}


@frozen
class MapOf:
    """A mapping from free keys to values of one shape."""

    item: Shape
    key: Text = NAME
    least: int = 0
    most: int = 10_000
    kinds: tuple[type, ...] = field(default=(dict,), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not dict:
            faults.append(wrong(value, path, "a mapping"))
            return
        _look_at_count(value, path, faults, self.least, self.most)
        for key, item in value.items():
            under = (*path, key)
            of_key: list[Fault] = []
            self.key.look(key, under, of_key)
            faults.extend(Fault(each.reason, under, each.detail, each.hint, at_key=True) for each in of_key)
            self.item.look(item, under, faults)

    def schema(self) -> Json:
        return {
            "type": "object",
            "propertyNames": self.key.schema(),
            "additionalProperties": self.item.schema(),
            "minProperties": self.least,
            "maxProperties": self.most,
        }


@frozen
class Field:
    """One key of a record: the shape of its value, and what it is for."""

    shape: Shape
    doc: str
    required: bool


def must(shape: Shape, doc: str) -> Field:
    """A key that has to be there."""
    return Field(shape, doc, required=True)


def may(shape: Shape, doc: str) -> Field:
    """A key that may be left out."""
    return Field(shape, doc, required=False)


@frozen
class Record:
    """A mapping with known keys and, unless it is `open`, no others; `what` names it in messages."""

    fields: Mapping[str, Field]
    what: str = "a mapping"
    open: bool = False
    kinds: tuple[type, ...] = field(default=(dict,), init=False)
    _required: tuple[str, ...] = field(
        default=Factory(lambda self: tuple(k for k, f in self.fields.items() if f.required), takes_self=True),
        init=False,
        repr=False,
    )

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not dict:
            faults.append(wrong(value, path, self.what))
            return
        fields = self.fields
        for key, item in value.items():
            known = fields.get(key)
            if known is not None:
                known.shape.look(item, (*path, key), faults)
            elif not self.open:
                near = did_you_mean(key, fields) if len(faults) < MAX_PROBLEMS else ""
                hint = near or f"known keys: {', '.join(fields)}"
                detail = f"the key `{shown(key, 60)}` is not known in {self.what}"
                faults.append(Fault(Reason.UNKNOWN_KEY, (*path, key), detail, hint, at_key=True))
        for key in self._required:
            if key not in value:
                detail = f"the key `{key}` is missing in {self.what}"
                faults.append(Fault(Reason.MISSING_KEY, path, detail, fields[key].doc))

    def schema(self) -> Json:
        schema: dict[str, Json] = {
            "type": "object",
            "additionalProperties": self.open,
            "properties": {key: {"description": each.doc, **each.shape.schema()} for key, each in self.fields.items()},
        }
        if self._required:
            schema["required"] = list(self._required)
        return schema


@frozen
class ByKey:
    """One of several records, told apart by the one key that each has and the others have not."""

    records: Mapping[str, Record]
    kinds: tuple[type, ...] = field(default=(dict,), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not dict:
            faults.append(wrong(value, path, f"a mapping with {self._keys()}"))
            return
        present = [key for key in self.records if key in value]
        if len(present) == 1:
            self.records[present[0]].look(value, path, faults)
        elif present:
            detail = f"the keys {' and '.join(f'`{key}`' for key in present)} exclude each other"
            faults.append(Fault(Reason.WRONG_VALUE, path, detail, f"keep one of {self._keys()}"))
        else:
            near = next(filter(None, (did_you_mean(key, self.records) for key in islice(value, MAX_PROBLEMS))), "")
            faults.append(Fault(Reason.MISSING_KEY, path, f"expected a mapping with {self._keys()}", near))

    def _keys(self) -> str:
        return " or ".join(f"`{key}`" for key in self.records)

    def schema(self) -> Json:
        return {"oneOf": [record.schema() for record in self.records.values()]}


@frozen
class ByKind:
    """One of several shapes, told apart by their JSON type: a word or a mapping, for example."""

    shapes: tuple[Shape, ...]
    kinds: tuple[type, ...] = field(
        default=Factory(lambda self: tuple(k for s in self.shapes for k in s.kinds), takes_self=True), init=False
    )

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        kind = type(value)
        for shape in self.shapes:
            if kind in shape.kinds:
                before = len(faults)
                shape.look(value, path, faults)
                others = " or ".join(KINDS[each] for each in self.kinds if each not in shape.kinds)
                for at, fault in enumerate(faults[before:], before):
                    if (fault.path, fault.reason, fault.hint) == (path, Reason.WRONG_VALUE, ""):
                        faults[at] = evolve(fault, hint=f"it may also be {others}")
                return
        faults.append(wrong(value, path, " or ".join(KINDS[kind] for kind in self.kinds)))

    def schema(self) -> Json:
        return {"anyOf": [shape.schema() for shape in self.shapes]}


def _look_at_count(value: Json, path: Path, faults: list[Fault], least: int, most: int) -> None:
    if not least <= len(value) <= most:
        detail = f"expected {least} to {most} entries, got {len(value)}"
        faults.append(Fault(Reason.WRONG_VALUE, path, detail))
