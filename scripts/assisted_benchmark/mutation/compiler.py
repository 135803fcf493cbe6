"""From a spec to the exact request: what is wrong with the spec, then its bytes and their digest. Pure.

The body is RFC 8785, and the same bytes are hashed, shown, sent dry and sent for real. The digest
covers the change type and the body, so a token that is bound to it is bound to both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from assisted_benchmark.contract.json_schema import Checker
from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.pointers import pointer, steps_of
from assisted_benchmark.kernel.text import did_you_mean, invisible, shown
from assisted_benchmark.mutation.changes import ChangeType
from assisted_benchmark.mutation.fields import declared
from assisted_benchmark.mutation.ports import Request
from assisted_benchmark.mutation.template import filled

MAX_SHOWN: Final = 2_000
# What fills a line, so that the rest of a value seems to stand on one of its own: every character of category Zs.
_GAP: Final = re.compile("[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]{5}")
_MARKS: Final = 4  # on one character, as UTS #39 has it: a tower of them covers the lines above and below
_MANY: Final = 100  # of what is wrong, no more is told
_DOMAIN: Final = "change-request@1"
_NOT_HERE: Final = "not allowed beside the others"


class Compiled(NamedTuple):
    """A spec as the request that it becomes: the type, the path, the exact body, and the digest of type and body."""

    change: str
    path: str
    body: bytes
    digest: Digest

    def dry(self, query: str) -> Request:
        """The dry run."""
        return Request("POST", f"{self.path}?{query}", self.body)

    def real(self) -> Request:
        """The create."""
        return Request("POST", self.path, self.body)


def compile_change(change: ChangeType, spec: Json) -> Compiled:
    """The request of a spec that has no faults; the same spec always gives the same bytes."""
    body = canonical_bytes(filled(change.template, spec))
    return Compiled(change.name, change.path, body, request_digest(change.name, body))


def request_digest(change: str, body: bytes) -> Digest:
    """What a token is bound to, and what a person is shown: SHA-256 over the change type and the body's bytes."""
    return digest_of(_DOMAIN, change.encode(), body)


def unshowable(value: Json) -> tuple[tuple[str, str], ...]:
    """(JSON pointer, why) of each text, keys included, that a person cannot be shown safely and whole."""
    return tuple(islice(_unshowable(value, ""), _MANY))


def _unshowable(value: Json, path: str) -> Iterator[tuple[str, str]]:
    if type(value) is str:
        if fault := _text_fault(value):
            yield path, fault
    elif type(value) is dict:
        for key, each in value.items():
            if fault := _text_fault(key):
                yield shown(pointer(path, key)), f"its name {fault}"
            else:
                yield from _unshowable(each, pointer(path, key))
    elif type(value) is list:
        for index, each in enumerate(value):
            yield from _unshowable(each, pointer(path, index))


def _text_fault(text: str) -> str:
    if len(text) > MAX_SHOWN:
        return f"has {len(text)} characters where {MAX_SHOWN} can be shown"
    if _GAP.search(text):
        return "has five blanks in a row, after which it seems to begin anew"
    if text.isascii() and text.isprintable():
        return ""
    hidden = next((char for char in text if invisible(char)), None)
    if hidden is not None:
        return f"has the character {shown(hidden)}, which hides or changes what is seen"
    return _mark_fault(text)


def _mark_fault(text: str) -> str:
    """What is wrong with the marks that are drawn onto the character before them."""
    kinds = [unicodedata.category(char) for char in text]
    if kinds[0].startswith("M"):
        return "begins with a mark, which is drawn onto what stands before it"
    marks = 0
    for kind in kinds:
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if marks > _MARKS:
            return f"has more than {_MARKS} marks on one character, which cover what stands around it"
    return ""


def misspelled(checker: Checker, spec: Json) -> tuple[tuple[str, str], ...]:
    """(JSON pointer, why) of integers that are written with a point or an exponent."""
    return tuple((path, "write an integer without point and exponent") for path in checker.integer_spelling(spec))


def problems_in(checker: Checker, schema: Json, value: Json) -> tuple[tuple[str, str], ...]:
    """(JSON pointer, why) of all that is wrong with a value under its schema, at any level; no value is repeated."""
    return tuple(islice(_problems(checker, schema, value), _MANY))


def _problems(checker: Checker, schema: Json, spec: Json) -> Iterator[tuple[str, str]]:
    for fault in checker.faults(spec):
        if fault.unexpected:
            known = declared(schema, steps_of(fault.path))
            names = known.get("properties", {}) if type(known) is dict else {}
            for key in fault.unexpected:
                near = did_you_mean(key, names)
                yield shown(pointer(fault.path, key)), f"no field is called so{'; ' + near if near else ''}"
        elif fault.keyword == "falseSchema":
            yield fault.path, _NOT_HERE
        elif fault.keyword in ("oneOf", "anyOf"):
            known = declared(schema, steps_of(fault.path))
            yield fault.path, (type(known) is dict and known.get("description")) or fault.message
        else:
            yield fault.path, fault.message
