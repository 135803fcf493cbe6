"""A JSON document with some of its places written otherwise than a writer would: the one form of every edit. Pure.

An edit says nothing of the value as a whole, so that two edits of different places can be made at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import field, frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.pointers import pointer


@frozen(kw_only=True)
class Edits:
    """What is written otherwise, by JSON pointer: a value's text, members added at an object's end, members left out.

    `before` and `after` stand around the whole document.
    """

    texts: Mapping[str, str] = field(factory=dict)
    more: Mapping[str, tuple[tuple[str, str], ...]] = field(factory=dict)
    drops: frozenset[str] = frozenset()
    before: str = ""
    after: str = ""

    def __bool__(self) -> bool:
        """Whether anything is written otherwise."""
        return bool(self.texts or self.more or self.drops or self.before or self.after)

    def joined(self, other: Edits) -> Edits:
        """Both at once; they are of different places."""
        more = {at: (*self.more.get(at, ()), *other.more.get(at, ())) for at in {**self.more, **other.more}}
        return Edits(
            texts={**self.texts, **other.texts},
            more=more,
            drops=self.drops | other.drops,
            before=self.before + other.before,
            after=self.after + other.after,
        )

    def under(self, at: str) -> Edits:
        """The same edits of a document that stands at `at` in another."""
        return Edits(
            texts={at + place: text for place, text in self.texts.items()},
            more={at + place: members for place, members in self.more.items()},
            drops=frozenset(at + place for place in self.drops),
            before=self.before,
            after=self.after,
        )


NO_EDITS: Final = Edits()


def text_of(value: Json) -> str:
    """One value, as it is usually written."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spelled(value: Json, edits: Edits = NO_EDITS) -> str:
    """The document as it is written with these edits."""
    return f"{edits.before}{_spelled(value, edits, '')}{edits.after}"


def _spelled(value: Json, edits: Edits, at: str) -> str:
    if at in edits.texts:
        return edits.texts[at]
    if type(value) is dict:
        places = {key: pointer(at, key) for key in value}
        members = [
            f"{text_of(key)}:{_spelled(each, edits, places[key])}"
            for key, each in value.items()
            if places[key] not in edits.drops
        ]
        members += [f"{key}:{text}" for key, text in edits.more.get(at, ())]
        return "{" + ",".join(members) + "}"
    if type(value) is list:
        inner = (_spelled(each, edits, pointer(at, str(index))) for index, each in enumerate(value))
        return "[" + ",".join(inner) + "]"
    return text_of(value)


def leaves(value: Json, at: str = "") -> Iterator[tuple[str, Json]]:
    """Every place below that holds no other, with what it holds."""
    if type(value) is dict:
        for key, each in value.items():
            yield from leaves(each, pointer(at, key))
    elif type(value) is list:
        for index, each in enumerate(value):
            yield from leaves(each, pointer(at, str(index)))
    else:
        yield at, value


def members(value: Json, at: str = "") -> Iterator[str]:
    """Every member of every object below, the outer before the inner."""
    if type(value) is dict:
        for key, each in value.items():
            yield pointer(at, key)
            yield from members(each, pointer(at, key))
    elif type(value) is list:
        for index, each in enumerate(value):
            yield from members(each, pointer(at, str(index)))


def objects(value: Json, at: str = "") -> Iterator[tuple[str, dict[str, Json]]]:
    """Every object below, the outer before the inner."""
    if type(value) is dict:
        yield at, value
        for key, each in value.items():
            yield from objects(each, pointer(at, key))
    elif type(value) is list:
        for index, each in enumerate(value):
            yield from objects(each, pointer(at, str(index)))
