"""What the headers of a request have to say about its body (stateless era): who reads one only is not misled."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Final

from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.frames import META_VERSION, Request

HEADER_MISMATCH: Final = -32020
VERSION: Final = "mcp-protocol-version"

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_MIRRORED: Final = "x-mcp-header"
_PREFIX: Final = "mcp-param-"
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", re.ASCII)
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=", re.ASCII)
_WHOLE: Final = re.compile(r"(-?[0-9]{1,17})(?:\.0+)?", re.ASCII)
_TYPES: Final = ("string", "integer", "boolean")


def version_of(request: Request) -> Json:
    """The version that a request says it is of, by itself; None if it says nothing."""
    meta = request.params.get("_meta")
    return meta.get(META_VERSION) if type(meta) is dict else None


def mismatch(headers: Mapping[str, str], request: Request) -> str:
    """Which standard header says another thing than the body, or nothing. Names are in lower case."""
    if headers.get(VERSION) != version_of(request):
        return "MCP-Protocol-Version"
    if headers.get("mcp-method") != request.method:
        return "Mcp-Method"
    key = _NAMED.get(request.method)
    named = None if key is None else request.params.get(key)
    if named is not None and decoded(headers.get("mcp-name")) != named:
        return "Mcp-Name"
    return ""


def unmirrored(headers: list[tuple[str, str]], arguments: Json, schema: Json) -> str:
    """Which argument that the tool wants to be in a header as well is not, or is another; or nothing."""
    mirrored = list(_mirrored(schema, ()))
    names = [name.lower() for _, name, _ in mirrored]
    if not all(map(_TOKEN.fullmatch, names)) or len(set(names)) < len(names):
        return ""  # a client has to leave such a tool out, and mirrors nothing
    for (path, name, kind), key in zip(mirrored, names, strict=True):
        given = [value for header, value in headers if header == _PREFIX + key]
        value = _at(arguments, path)
        if (len(given) != 1 or not _same(value, decoded(given[0]), kind)) if value is not None else given:
            return f"Mcp-Param-{name}"
    return ""


def decoded(value: str | None) -> str | None:
    """A header's value, from Base64 where it is marked so; None where that is not sound."""
    marked = None if value is None else _ENCODED.fullmatch(value)
    if marked is None:
        return value
    try:
        data = base64.b64decode(marked[1], validate=True)
        return data.decode() if base64.b64encode(data).decode() == marked[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _mirrored(schema: Json, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    properties = schema.get("properties") if type(schema) is dict else None
    for key, each in properties.items() if type(properties) is dict else ():
        if type(each) is dict and _MIRRORED in each:
            name, kind = each[_MIRRORED], each.get("type")
            sound = type(name) is str and kind in _TYPES
            yield (*path, key), name if sound else "", str(kind)
        yield from _mirrored(each, (*path, key))


def _at(arguments: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        arguments = arguments.get(key) if type(arguments) is dict else None
    return arguments


def _same(value: Json, said: str | None, kind: str) -> bool:
    if type(value) is bool:
        return said == ("true" if value else "false")
    if kind == "integer" and said is not None and type(value) in (int, float):
        whole = _WHOLE.fullmatch(said)
        return whole is not None and int(whole[1]) == value
    return type(value) is str and said == value
