"""What a document may look like, said once: the check and the published JSON Schema both come from here.

A shape looks at a plain JSON value and notes every fault with its path; `check` turns
these into problems with file, line and column. Shapes hold no rule that needs more than
the value itself; what spans several places is the loader's part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Final, Protocol

from attrs import Factory, evolve, field, frozen

from assisted_benchmark.contract.strict_yaml import MAX_PROBLEMS, Document, Path
from assisted_benchmark.kernel.canonical import SAFE_INTEGER, Json
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown

_DURATION: Final = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h)")
_UNITS_NS: Final = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
# A closed list of more words than these is shown by its first few.
_MANY: Final = 16
_FEW: Final = 3
_KINDS: Final = {
    bool: "a flag",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
    type(None): "null",
}


@frozen
class Fault:
    """One thing that does not fit: at the value that `path` names, or at its key."""

    reason: Reason
    path: Path
    detail: str
    hint: str = ""
    at_key: bool = False


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


def duration_ns(text: str) -> int:
    """The nanoseconds of a text that `Duration` admits, such as `120s`, `5m` or `250ms`."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return int(found[1]) * _UNITS_NS[found[2]]


def _wrong(value: Json, path: Path, expected: str, hint: str = "") -> Fault:
    if type(value) in (list, dict):
        got = _KINDS[type(value)]
    else:
        got = "null" if value is None else f"`{shown(str(value).lower() if type(value) is bool else str(value), 60)}`"
    return Fault(Reason.WRONG_VALUE, path, f"expected {expected}, got {got}", hint)


@frozen
class Text:
    """Text of at most `limit` characters that `pattern` matches in full, else `reason`; `what` names it in messages.

    `before` and `after` are what people leave out; a hint says so where the text would fit with it.
    """

    pattern: str | None = None
    what: str = "text"
    limit: int = 10_000
    reason: Reason = Reason.WRONG_VALUE
    before: str = ""
    after: str = ""
    kinds: tuple[type, ...] = field(default=(str,), init=False)
    _match: re.Pattern[str] = field(
        # ASCII, so that \d and \w mean what they mean in JSON Schema's regular expressions.
        default=Factory(lambda self: re.compile(self.pattern or "(?s:.*)", re.ASCII), takes_self=True),
        init=False,
        repr=False,
    )

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not str:
            hint = ""
            if type(value) in (int, float):
                text = str(value)
                hint = f'quote it: "{text}"' if self._fits(text) else self._completed(text)
            faults.append(_wrong(value, path, self.what, hint))
        elif len(value) > self.limit:
            detail = f"expected {self.what} of at most {self.limit} characters, got {len(value)}"
            faults.append(Fault(Reason.WRONG_VALUE, path, detail))
        elif self._match.fullmatch(value) is None:
            fault = _wrong(value, path, self.what, self._completed(value) or f"it must match {self.pattern}")
            faults.append(evolve(fault, reason=self.reason))

    def _fits(self, text: str) -> bool:
        return len(text) <= self.limit and self._match.fullmatch(text) is not None

    def _completed(self, text: str) -> str:
        """The hint for a text that only lacks what people leave out; empty for any other."""
        if self.before and self._fits(self.before + text):
            return f"write `{self.before}` before it"
        if self.after and self._fits(text + self.after):
            return f"write {text}{self.after}"
        return ""

    def schema(self) -> Json:
        schema: dict[str, Json] = {"type": "string", "maxLength": self.limit}
        if self.pattern is not None:
            schema["pattern"] = f"^(?:{self.pattern})$"
        return schema


@frozen
class Word:
    """One of a closed list of words; with one word, a constant. `listed` says where a long list stands whole."""

    words: tuple[str, ...]
    listed: str = "the file's JSON Schema"
    kinds: tuple[type, ...] = field(default=(str,), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not str or value not in self.words:
            near = did_you_mean(value, self.words) if type(value) is str else ""
            if len(self.words) <= _MANY:
                faults.append(_wrong(value, path, " or ".join(f"`{word}`" for word in self.words), near))
                return
            few = ", ".join(f"`{word}`" for word in self.words[:_FEW])
            some = f"words are {few} …; {self.listed} has them all"
            hint = f"{near} {some}" if near else some
            faults.append(_wrong(value, path, f"one of {len(self.words)} words", hint))

    def schema(self) -> Json:
        return {"const": self.words[0]} if len(self.words) == 1 else {"enum": list(self.words)}


@frozen
class Integer:
    """An integer within bounds."""

    least: int = -SAFE_INTEGER
    most: int = SAFE_INTEGER
    kinds: tuple[type, ...] = field(default=(int,), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not int or not self.least <= value <= self.most:
            bounded = "" if self == Integer() else f" from {self.least} to {self.most}"
            faults.append(_wrong(value, path, f"an integer{bounded}"))

    def schema(self) -> Json:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@frozen
class Number:
    """A number within bounds."""

    least: float
    most: float
    kinds: tuple[type, ...] = field(default=(int, float), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) not in self.kinds or not self.least <= value <= self.most:
            faults.append(_wrong(value, path, f"a number from {self.least} to {self.most}"))

    def schema(self) -> Json:
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@frozen
class Flag:
    """true or false."""

    kinds: tuple[type, ...] = field(default=(bool,), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not bool:
            faults.append(_wrong(value, path, "true or false"))

    def schema(self) -> Json:
        return {"type": "boolean"}


@frozen
class AnyJson:
    """Any JSON value, taken as it is: a tool's arguments, for example."""

    kinds: tuple[type, ...] = field(default=tuple(_KINDS), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        pass

    def schema(self) -> Json:
        return {}


@frozen
class ListOf:
    """A list whose items are all of one shape."""

    item: Shape
    least: int = 0
    most: int = 10_000
    kinds: tuple[type, ...] = field(default=(list,), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not list:
            faults.append(_wrong(value, path, "a list"))
            return
        _look_at_count(value, path, faults, self.least, self.most)
        for index, item in enumerate(value):
            self.item.look(item, (*path, index), faults)

    def schema(self) -> Json:
        return {"type": "array", "items": self.item.schema(), "minItems": self.least, "maxItems": self.most}


NAME: Final = Text(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,127}", "a name of ASCII letters, digits and `_ - . /`", 128)
DIGEST: Final = Text(
    r"sha256:[0-9a-f]{64}",
    "a digest, sha256: and 64 lower-case hex digits",
    71,
    Reason.MALFORMED_DIGEST,
    before="sha256:",
)
DURATION: Final = Text(_DURATION.pattern, "a duration such as `120s`, `5m` or `250ms`", 16, after="s")


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
            faults.append(_wrong(value, path, "a mapping"))
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
            faults.append(_wrong(value, path, self.what))
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
            faults.append(_wrong(value, path, f"a mapping with {self._keys()}"))
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
                shape.look(value, path, faults)
                return
        faults.append(_wrong(value, path, " or ".join(_KINDS[kind] for kind in self.kinds)))

    def schema(self) -> Json:
        return {"anyOf": [shape.schema() for shape in self.shapes]}


def _look_at_count(value: Json, path: Path, faults: list[Fault], least: int, most: int) -> None:
    if not least <= len(value) <= most:
        detail = f"expected {least} to {most} entries, got {len(value)}"
        faults.append(Fault(Reason.WRONG_VALUE, path, detail))
