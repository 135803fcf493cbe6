"""Where the fields of a change are declared, and which of them a request takes in. Pure.

The declaration is a closed JSON Schema (`contract.closed_schema`); a field is named by the path of
its keys. A field that stands below alternatives is taken in with the whole that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from assisted_benchmark.kernel.canonical import Json

_DEFS: Final = "#/$defs/"


def declared(schema: Json, path: tuple[str, ...]) -> Json:
    """The schema of the field that `path` names, or None."""
    at = _resolved(schema, schema)
    for step in path:
        at = _resolved(schema, at.get("properties", {}).get(step)) if type(at) is dict else None
    return at


def _resolved(top: Json, schema: Json) -> Json:
    while type(schema) is dict and "$ref" in schema:  # ends, as no definition of a closed schema leads back to itself
        schema = top["$defs"][schema["$ref"].removeprefix(_DEFS)]
    return schema


def unused(schema: Json, used: frozenset[tuple[str, ...]], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Declared fields that no reference takes in: what an agent says there would silently come to nothing."""
    if any(path[: len(each)] == each for each in used):
        return
    within = not path or any(each[: len(path)] == path for each in used)
    below = declared(schema, path)
    if within and type(below) is dict and "properties" in below:
        for name in below["properties"]:
            yield from unused(schema, used, (*path, name))
    else:
        yield path
