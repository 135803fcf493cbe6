"""One file of vectors: its form, its reading, and how bytes stand in it. What it means is in `vectors/README.md`."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import field, frozen

from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.shape import (
    AnyJson,
    Field,
    ListOf,
    MapOf,
    Record,
    Text,
    Word,
    check,
    json_schema,
    may,
    must,
)
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.canonical import MIB, Json, parse

SCHEMA: Final = "assisted-benchmark/vectors@1"
FOLDER: Final = "vectors"
KINDS: Final = ("canonical", "digest", "admission", "receipts", "live", "mutation", "capability")

# A file of vectors may hold contracts with all their tools.
_MAX_BYTES: Final = 8 * MIB

_FIELDS: Final[dict[str, Field]] = {
    "schema": must(Word((SCHEMA,)), "The kind and version of this file."),
    "kind": must(Word(KINDS), "What is asked of an implementation in this file; each kind has a section in README.md."),
    "about": must(Text(limit=1000), "What this file is about."),
    "flags": must(MapOf(Text(limit=400)), "Every flag of this file, explained once."),
    "shared": may(Record({}, "shared values", open=True), "Values that vectors name instead of repeating them."),
    "vectors": must(
        ListOf(
            Record(
                {
                    "id": must(Text(limit=200), "Stable; no two vectors of a file have one."),
                    "comment": must(Text(limit=600), "Why this is a vector."),
                    "flags": must(ListOf(Text(limit=60)), "Words that the file explains."),
                    "given": must(Record({}, "what is given", open=True), "All that the answer depends on."),
                    "expected": must(AnyJson(), "The whole answer."),
                },
                "a vector",
            ),
            least=1,
        ),
        "The vectors.",
    ),
}
SHAPE: Final = Record(_FIELDS)


@frozen(kw_only=True)
class Vector:
    """One vector. `shared` is its file's; `expected` is the whole answer."""

    kind: str
    id: str
    comment: str
    flags: tuple[str, ...]
    given: Json = field(repr=False)
    expected: Json
    shared: Mapping[str, Json] = field(repr=False)


def published_schema() -> Json:
    """The JSON Schema (draft-07) of a file of vectors."""
    return json_schema(SHAPE, id=f"urn:{SCHEMA}", title="public vectors: decisions as plain JSON")


def files_of(root: Path) -> tuple[Path, ...]:
    """Every file of vectors below a root, in the order of names."""
    return tuple(each for each in sorted((root / FOLDER).glob("*.json")) if not each.name.endswith(".schema.json"))


def vectors_of(root: Path) -> tuple[Vector, ...]:
    """Every vector below a root.

    Raises:
        DocumentError: a file is none.
        CanonicalError: a file is no JSON.
    """
    return tuple(vector for path in files_of(root) for vector in _read(path, root))


def _read(path: Path, root: Path) -> tuple[Vector, ...]:
    data = read(path, root, _MAX_BYTES)
    value = parse(data, _MAX_BYTES)
    check(SHAPE, Document(value, name_below(path, root), data))
    shared = value.get("shared", {})
    return tuple(
        Vector(
            kind=value["kind"],
            id=each["id"],
            comment=each["comment"],
            flags=tuple(each["flags"]),
            given=each["given"],
            expected=each["expected"],
            shared=shared,
        )
        for each in value["vectors"]
    )


def bytes_value(data: bytes) -> Json:
    """Bytes as a file has them: text where they are UTF-8 without surprises, else base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}
    return {"base64": b64encode(data).decode()} if "\x00" in text or text.startswith("\ufeff") else {"text": text}


def bytes_of(value: Json) -> bytes:
    """The bytes that a file means; `pieces` are repeated and joined."""
    if "pieces" in value:
        return b"".join(bytes_of(each) * each.get("times", 1) for each in value["pieces"])
    if "text" in value:
        return str(value["text"]).encode()
    return b64decode(value["base64"], validate=True)
