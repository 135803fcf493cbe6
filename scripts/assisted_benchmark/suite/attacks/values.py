"""Mutations of a JSON object, whatever it means: of its bytes, its members, its texts and its numbers. Pure."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.attacks.moves import Shrink
from assisted_benchmark.suite.attacks.spelling import Edits, leaves, members, objects, spelled, text_of
from assisted_benchmark.suite.live.samples import Draw


class Change(NamedTuple):
    """One mutation of an object. `reason` is what its bytes alone are refused for; else `value` is what they say."""

    threat: str
    name: str
    edits: Edits
    reason: Reason | None = None
    value: Json = None
    shrink: Shrink | None = None


# What a text can be made of by whoever hopes that something expands, decodes, normalises or renders it.
_TEXTS: Final = (
    ("C40", "decomposed", "e\u0301"),
    ("C45", "format", "{0.__globals__}"),
    ("C45", "dunder", "__class__"),
    ("C50", "trailing-slash", "/"),
    ("C50", "dots", "/../"),
    ("C50", "backslash", "\\"),
    ("C52", "variable", "$HOME"),
    ("C52", "glob", "*"),
    ("C54", "command", "; rm -rf /"),
    ("C54", "substitution", "$(id)"),
    ("C54", "backticks", "`id`"),
    ("C55", "colour", "\x1b[31m"),
    ("C55", "link", "\x1b]8;;http://x\x1b\\"),
    ("C05", "joiner", "\u200d"),
    ("C06", "override", "\u202eabc\u202c"),
    ("C07", "tags", "\U000e0068\U000e0069"),
)
# What a number can be written as so that some parser takes it for the sealed one, or for anything.
_BYTES: Final = (
    ("C34", "beyond-2-53", "9007199254740993", Reason.UNSAFE_INTEGER),
    ("C35", "beyond-2-64", "18446744073709551617", Reason.UNSAFE_INTEGER),
    ("C35", "digits", "1" * 4000, Reason.TOO_LARGE),
    ("C36", "nan", "NaN", Reason.NON_FINITE_NUMBER),
    ("C36", "infinity", "-Infinity", Reason.NON_FINITE_NUMBER),
    ("C36", "overflow", "1e400", Reason.NON_FINITE_NUMBER),
    ("C42", "half", '"\\ud800"', Reason.MALFORMED_UNICODE),
    ("C42", "nul", '"\\u0000"', Reason.MALFORMED_UNICODE),
    ("C32", "hexadecimal", "0x64", Reason.MALFORMED_CALL),
)
_FORBIDDEN: Final = ("__proto__", "constructor", "prototype")
_COLLIDING: Final = ("caf\u00e9", "cafe\u0301")


def document_changes() -> Iterator[Change]:
    """Mutations of the whole document's bytes."""
    yield Change("C46", "value", Edits(after=" {}"), Reason.MALFORMED_CALL)
    yield Change("C46", "brace", Edits(after="}"), Reason.MALFORMED_CALL)
    yield Change("C47", "bom", Edits(before="\ufeff"), Reason.MALFORMED_UNICODE)
    yield Change("C47", "nul", Edits(after="\\u0000"), Reason.MALFORMED_CALL)


def respelled(value: dict[str, Json]) -> Iterator[tuple[str, Edits]]:
    """The same document in other bytes, each by its name."""
    yield "keys", Edits(texts={"": text_of(_backwards(value))})
    blanks = json.dumps(value, ensure_ascii=False, separators=("\n, ", "\t: "))
    yield "blanks", Edits(texts={"": blanks})
    yield "around", Edits(before="\r\n ", after=" \t\n")
    for at, held in leaves(value):
        if type(held) is str and held:
            yield f"escapes{at}", Edits(texts={at: _escaped(held)})


def _backwards(value: Json) -> Json:
    """The same value with the members of each object the other way round."""
    if type(value) is dict:
        return {key: _backwards(each) for key, each in reversed(value.items())}
    return [_backwards(each) for each in value] if type(value) is list else value


def _escaped(text: str) -> str:
    return '"' + "".join(f"\\u{ord(each):04x}" if ord(each) < 0x10000 else each for each in text) + '"'


def too_large(bound: int) -> Change:
    """A document of one byte more than it may have."""
    return Change("C49", "padded", Edits(after=" " * (bound + 1)), Reason.TOO_LARGE)


def object_changes(value: Json, draw: Draw) -> Iterator[Change]:
    """Mutations of an object: each kind at each place of it that it fits, or at some that `draw` takes of many."""
    for at, held in _some(list(objects(value)), draw):
        yield from _of_object(value, at, held)
    for at in _some(list(members(value)), draw):
        yield _with("C26", f"without{at}", value, Edits(drops=frozenset((at,))))
        yield _with("C27", f"null{at}", value, Edits(texts={at: "null"}))
    for at, held in _some(list(leaves(value)), draw):
        if type(held) is str:
            yield from _of_text(value, at, held, draw)
        elif type(held) is int or type(held) is float:
            yield from _of_number(value, at, held)
    places = [at for at, _ in leaves(value)]
    if places:
        at = draw.one(places)
        for threat, name, text, reason in _BYTES:
            yield Change(threat, f"{name}{at}", Edits(texts={at: text}), reason)


def _some(of: list[Json], draw: Draw, most: int = 4) -> list[Json]:
    """A few of many."""
    left = list(of)
    while len(left) > most:
        left.pop(draw.below(len(left)))
    return left


def _of_object(value: Json, at: str, held: dict[str, Json]) -> Iterator[Change]:
    def added(threat: str, name: str, *more: tuple[str, str]) -> Change:
        return _with(threat, f"{name}{at}", value, Edits(more={at: more}))

    yield added("C25", "extra", ('"callback_url"', '"http://x"'))
    yield added("C41", "colliding", *((text_of(key), "1") for key in _COLLIDING))
    for key in _FORBIDDEN:
        yield added("C44", key, (text_of(key), '{"admin":true}'))
    if held:
        key, inner = next(iter(held.items()))
        escaped = f'"\\u{ord(key[0]):04x}{key[1:]}"' if key else '""'
        twice = Edits(more={at: ((escaped, text_of(inner)),)})
        yield Change("C39", f"escaped{at}", twice, Reason.DUPLICATE_KEY)


def _of_text(value: Json, at: str, held: str, draw: Draw) -> Iterator[Change]:
    def written(threat: str, name: str, text: str) -> Change:
        return _with(threat, f"{name}{at}", value, Edits(texts={at: text_of(text)}), Shrink(at, held, text))

    place = draw.below(len(held)) if held else 0
    other = "x" if held[place : place + 1] != "x" else "y"
    yield written("C24", "character", held[:place] + other + held[place + 1 :])
    if held.swapcase() != held:
        yield written("C24", "case", held.swapcase())
    for threat, name, text in _TEXTS:
        yield written(threat, name, held + text)
    yield written("C50", "parent", f"../{held}")
    yield written("C51", "encoded", f"%{ord(held[0]):02x}{held[1:]}" if held and held.isascii() else f"{held}%20")
    yield written("C51", "twice-encoded", f"%25{ord(held[0]):02x}{held[1:]}" if held and held.isascii() else "%2520")
    yield written("C52", "home", f"~/{held}")
    if (nfd := unicodedata.normalize("NFD", held)) != held:
        yield written("C40", "nfd", nfd)
    yield _with("C29", f"number{at}", value, Edits(texts={at: "1"}))
    yield _with("C29", f"list{at}", value, Edits(texts={at: f"[{text_of(held)}]"}))


def _of_number(value: Json, at: str, held: float) -> Iterator[Change]:
    def written(threat: str, name: str, text: str) -> Change:
        return _with(threat, f"{name}{at}", value, Edits(texts={at: text}))

    yield written("C29", "text", f'"{held}"')
    yield written("C30", "true", "true")
    yield written("C24", "one-more", str(held + 1))
    if type(held) is int:
        yield written("C31", "point", f"{held}.0")
        yield written("C32", "exponent", f"{held}e0")
    yield written("C37", "rounds", f"{held}{'' if '.' in str(held) else '.'}{'0' * 20}1")


def _with(threat: str, name: str, value: Json, edits: Edits, shrink: Shrink | None = None) -> Change:
    """A mutation that is a JSON value still; what it says is read back from how it is written."""
    return Change(threat, name, edits, None, _read(spelled(value, edits)), shrink)


def _read(text: str) -> Json:
    """What a plain reader makes of it, with each number as it is spelled where that matters (see `Spelled`)."""
    return json.loads(text, parse_float=Spelled)


class Spelled(float):
    """A number that is written with a point or an exponent."""

    text: str

    def __new__(cls, text: str) -> Spelled:
        made = super().__new__(cls, text)
        made.text = text
        return made


def plain(value: Json) -> Json:
    """The same value with its numbers as they are, however they are spelled."""
    if type(value) is dict:
        return {key: plain(each) for key, each in value.items()}
    if type(value) is list:
        return [plain(each) for each in value]
    return float(value) if type(value) is Spelled else value
