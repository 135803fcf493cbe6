"""Closed, bounded JSON Schemas, as a contract writes them for its own operations.

JSON Schema lets pass whatever a schema does not speak of: a keyword that is misspelled, an undeclared
property, a text without end. Here nothing goes unsaid. Every place says its type (or its exact values),
every object names its keys, every text, list and free mapping has a bound, keywords are those of a
closed list, and a reference stays in the schema's own `$defs` and never leads back to itself.
"""

from __future__ import annotations

import re
from typing import Final

from assisted_benchmark.contract.json_schema import check_schema
from assisted_benchmark.contract.scalar import Fault
from assisted_benchmark.contract.strict_yaml import Path
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown

_DEFS: Final = "#/$defs/"
_DEFINITION: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
# Where a schema may hold further schemas: by name; alternatives, of which one describes the place; and conditions,
# which only narrow what the schema that holds them has described.
_BY_NAME: Final = ("properties", "patternProperties")
_BRANCHES: Final = ("oneOf", "anyOf")
_CONDITIONS: Final = ("if", "then", "else", "not")
_DESCRIBING: Final = frozenset({"type", "const", "enum", "$ref"})
_ABOUT: Final = ("title", "description", "default", "$defs")
_WITHIN: Final = ("additionalProperties", "propertyNames", "items", "prefixItems", "allOf")
_OF_TEXTS: Final = ("minLength", "maxLength", "pattern")
_OF_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OF_LISTS: Final = ("minItems", "maxItems", "uniqueItems")
_OF_OBJECTS: Final = ("required", "dependentRequired", "minProperties", "maxProperties")
_KEYWORDS: Final = _DESCRIBING.union(
    _ABOUT, _WITHIN, _BY_NAME, _BRANCHES, _CONDITIONS, _OF_TEXTS, _OF_NUMBERS, _OF_LISTS, _OF_OBJECTS
)


def closed_schema_faults(schema: Json) -> list[Fault]:
    """Everything that keeps `schema` from being a closed, bounded schema of an object; paths lead into the schema."""
    if type(schema) is not dict:
        return [Fault(Reason.WRONG_VALUE, (), "expected a schema of an object", "say `type: object`")]
    try:
        check_schema(schema)
    except InputError as error:
        hint = "write what it refers to under $defs" if error.reason is Reason.UNRESOLVABLE_REF else ""
        return [Fault(error.reason, (), error.detail, hint)]
    look = _Look(schema.get("$defs", {}))
    look.definitions()
    look.place(schema, ())
    if not look.faults and not _of_objects(schema, look.defs):
        look.wrong((), "expected a schema of an object", "say `type: object`, here or in each branch")
    return look.faults


def always_has(schema: Json, name: str, defs: Json) -> bool:
    """Whether whatever fits a closed schema of an object has the property `name`; `defs` are the schema's `$defs`."""
    if name in schema.get("required", ()):
        return True
    if "$ref" in schema:
        return always_has(defs[schema["$ref"].removeprefix(_DEFS)], name, defs)
    return any(all(always_has(each, name, defs) for each in schema[key]) for key in _BRANCHES if key in schema)


def texts_of(schema: Json, defs: Json) -> set[str]:
    """The properties of a closed schema of an object that are texts, in any of its branches."""
    if "$ref" in schema:
        return texts_of(defs[schema["$ref"].removeprefix(_DEFS)], defs)
    found = {name for name, each in schema.get("properties", {}).items() if _type(each, defs) == "string"}
    return found.union(*(texts_of(each, defs) for key in _BRANCHES for each in schema.get(key, ())))


def _type(schema: Json, defs: Json) -> Json:
    while type(schema) is dict and "$ref" in schema:
        schema = defs[schema["$ref"].removeprefix(_DEFS)]
    return schema.get("type")


def _of_objects(schema: Json, defs: Json) -> bool:
    """Whether only objects fit, as far as types say so."""
    if "$ref" in schema:
        return _of_objects(defs[schema["$ref"].removeprefix(_DEFS)], defs)
    if "type" in schema:
        return bool(schema["type"] == "object")
    return any(all(_of_objects(each, defs) for each in schema[key]) for key in _BRANCHES if key in schema)


class _Look:
    """One walk through one schema."""

    def __init__(self, defs: Json) -> None:
        self.defs = defs
        self.faults: list[Fault] = []

    def wrong(self, path: Path, detail: str, hint: str = "") -> None:
        self.faults.append(Fault(Reason.WRONG_VALUE, path, detail, hint))

    def definitions(self) -> None:
        """Each of `$defs` is a place of its own, and none leads back to itself: what recurs has no bound."""
        leads = {name: set(_references(each)) for name, each in self.defs.items()}
        for name, each in self.defs.items():
            if _DEFINITION.fullmatch(name) is None:
                hint = "use lower-case letters, digits and `_`"
                detail = f"`{shown(name, 60)}` is no name of a definition"
                self.faults.append(Fault(Reason.MALFORMED_NAME, ("$defs", name), detail, hint, at_key=True))
            self.place(each, ("$defs", name))
            reached: set[str] = set()
            waiting = list(leads[name])
            while waiting:
                if (target := waiting.pop()) not in reached:
                    reached.add(target)
                    waiting.extend(leads.get(target, ()))
            if name in reached:
                self.wrong(("$defs", name), "the definition leads back to itself", "write the levels out")

    def place(self, schema: Json, path: Path) -> None:
        """A schema that alone describes its place, so everything has to be said in it."""
        if type(schema) is not dict:
            self.wrong(path, "expected a schema that says what may stand here")
            return
        self._keywords(schema, path, described=not _DESCRIBING.isdisjoint(schema))
        if "const" in schema or "enum" in schema:
            return
        if "$ref" in schema:
            self._reference(schema["$ref"], (*path, "$ref"))
        elif "type" in schema:
            kinds = schema["type"] if type(schema["type"]) is list else [schema["type"]]
            if "object" in kinds:
                self._object(schema, path)
            if "array" in kinds:
                self._array(schema, path)
            if "string" in kinds and "maxLength" not in schema:
                self.wrong(path, "a text without a bound", "say `maxLength`")
        else:
            branches = [keyword for keyword in _BRANCHES if keyword in schema]
            if not branches:
                self.wrong(path, "the type is not said", "say `type`, `const`, `enum`, `oneOf` or `$ref`")
            for keyword in branches:
                for index, each in enumerate(schema[keyword]):
                    self.place(each, (*path, keyword, index))

    def _object(self, schema: Json, path: Path) -> None:
        for keyword in _BY_NAME:
            for name, each in schema.get(keyword, {}).items():
                self.place(each, (*path, keyword, name))
        others = schema.get("additionalProperties", True)
        if others is True:
            self.wrong(path, "an object that is open to any key", "say `additionalProperties: false`")
            return
        if others is not False:
            self.place(others, (*path, "additionalProperties"))
        if (others or "patternProperties" in schema) and not {"maxProperties", "propertyNames"} <= schema.keys():
            self.wrong(path, "a mapping with free keys has no bound", "say `maxProperties` and `propertyNames`")

    def _array(self, schema: Json, path: Path) -> None:
        for index, each in enumerate(schema.get("prefixItems", ())):
            self.place(each, (*path, "prefixItems", index))
        items = schema.get("items", True)
        if items is True:
            self.wrong(path, "a list that is open to any item", "say `items`")
        elif items is not False:
            self.place(items, (*path, "items"))
            if "maxItems" not in schema:
                self.wrong(path, "a list without a bound", "say `maxItems`")

    def _reference(self, target: str, path: Path) -> None:
        name = target.removeprefix(_DEFS)
        if name == target or name not in self.defs:
            hint = did_you_mean(name, self.defs) or "refer to a name under $defs"
            detail = f"`{shown(target, 100)}` is none of the schema's definitions"
            self.faults.append(Fault(Reason.UNRESOLVABLE_REF, path, detail, hint))

    def _keywords(self, schema: Json, path: Path, *, described: bool) -> None:
        """Only known keywords, here and in all that narrows what is `described` already."""
        for keyword in schema:
            if keyword not in _KEYWORDS or (keyword == "$defs" and path):
                hint = did_you_mean(keyword, _KEYWORDS) if keyword != "$defs" else "definitions stand at the top"
                detail = f"the keyword `{shown(keyword, 60)}` is not known here"
                self.faults.append(Fault(Reason.UNKNOWN_KEY, (*path, keyword), detail, hint, at_key=True))
        for keyword in (*_CONDITIONS, "propertyNames"):
            if keyword in schema:
                self._narrowing(schema[keyword], (*path, keyword))
        for keyword in ("allOf", *(_BRANCHES if described else ())):
            for index, each in enumerate(schema.get(keyword, ())):
                self._narrowing(each, (*path, keyword, index))

    def _narrowing(self, schema: Json, path: Path) -> None:
        """A schema that narrows a place which is described already: it may leave things open."""
        if type(schema) is not dict:
            return
        self._keywords(schema, path, described=True)
        if "$ref" in schema:
            self._reference(schema["$ref"], (*path, "$ref"))
        for keyword in _BY_NAME:
            for name, each in schema.get(keyword, {}).items():
                self._narrowing(each, (*path, keyword, name))
        for index, each in enumerate(schema.get("prefixItems", ())):
            self._narrowing(each, (*path, "prefixItems", index))
        for keyword in ("items", "additionalProperties"):
            self._narrowing(schema.get(keyword), (*path, keyword))


def _references(schema: Json) -> list[str]:
    """The names of the definitions that a schema refers to, anywhere in it."""
    found = []
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            if type(value.get("$ref")) is str:
                found.append(value["$ref"].removeprefix(_DEFS))
            waiting.extend(value.values())
        elif type(value) is list:
            waiting.extend(value)
    return found
