"""A request's body as data: a JSON value in which `{from: a.b}` stands for the field `a.b` of a spec. Pure.

`{text_of: a.b}` is the same field written as text, for an API that takes its numbers so.

A field that a spec leaves out drops out, and so does every list and object whose references are all
left out: what was written around them was about them. Text is never interpreted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from assisted_benchmark.kernel.canonical import Json, canonical_bytes

Where: TypeAlias = tuple[str | int, ...]

_LEFT_OUT: Final = object()
_FROM: Final = "from"
_TEXT_OF: Final = "text_of"


def is_reference(part: Json) -> bool:
    """Whether this is `{from: a.b}` or `{text_of: a.b}`, and nothing else."""
    return type(part) is dict and len(part) == 1 and type(part.get(_FROM, part.get(_TEXT_OF))) is str


def _named(reference: Json) -> str:
    (path,) = reference.values()
    return str(path)


def references(template: Json, where: Where = ()) -> Iterator[tuple[Where, tuple[str, ...]]]:
    """Each reference: where it stands, and the path of the field that it names."""
    if is_reference(template):
        yield where, tuple(_named(template).split("."))
    elif type(template) is dict:
        for key, part in template.items():
            yield from references(part, (*where, key))
    elif type(template) is list:
        for index, part in enumerate(template):
            yield from references(part, (*where, index))


def filled(template: Json, spec: Json) -> Json:
    """The template with the spec's fields in their places; an empty object if nothing is left of it."""
    value, _, _ = _filled(template, spec)
    return {} if value is _LEFT_OUT else value


def _filled(part: Json, spec: Json) -> tuple[Json, int, int]:
    """The part, how many references it holds, and how many of those the spec has."""
    if type(part) is dict:
        if is_reference(part):
            value = _field(spec, _named(part))
            if value is _LEFT_OUT:
                return value, 1, 0
            as_text = _TEXT_OF in part and type(value) is not str
            return (canonical_bytes(value).decode() if as_text else value), 1, 1
        kept: Json = {}
    elif type(part) is list:
        kept = []
    else:
        return part, 0, 0
    held = found = 0
    for place, each in part.items() if type(part) is dict else enumerate(part):
        value, each_held, each_found = _filled(each, spec)
        held += each_held
        found += each_found
        if value is _LEFT_OUT:
            continue
        if type(part) is dict:
            kept[place] = value
        else:
            kept.append(value)
    return (_LEFT_OUT if held and not found else kept), held, found


def _field(spec: Json, path: str) -> Json:
    at = spec
    for step in path.split("."):
        if type(at) is not dict or step not in at:
            return _LEFT_OUT
        at = at[step]
    return at
