"""Strict YAML: what YAML 1.1, YAML 1.2 and a careful reader all take for the same JSON value.

Read from libyaml's events, so nothing is repaired on the way. Plain (unquoted) scalars
stay only where nobody can read them as something else: `true`, `false`, `null`, numbers
in their one JSON spelling, and words. `no`, `012`, `12:30`, `1.10`, dates and the like
must be quoted. Keys are strings, once each. Anchors, aliases, merges, tags, directives,
further documents and hidden line breaks are refused.

Two readers, one meaning. The fast one builds the value and keeps no positions; at the
first doubt the careful one reads again, decides, and reports every fault with its place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import Any, Final, TypeAlias

import yaml
from attrs import frozen
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from assisted_benchmark.contract.plain_scalar import DoubtError, known_value, plain_value, why_doubtful
from assisted_benchmark.kernel.canonical import MAX_DEPTH, MAX_NODES, MIB, Json
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

Path: TypeAlias = tuple[str | int, ...]
Place: TypeAlias = tuple[int, int]

MAX_PROBLEMS: Final = 100

# Characters that are allowed in a file at all: YAML's printable ones without BOM and the breaks beyond CR and LF.
_FORBIDDEN: Final = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_BREAKS: Final = frozenset("\x85\u2028\u2029")
_PRINTABLE_ASCII: Final = bytes([9, 10, 13, *range(0x20, 0x7F)])
_NUL_ESCAPE: Final = re.compile(rb"\\(?:0|x00|u0000|U00000000)")
_BREAK: Final = re.compile(r"\r\n|\r|\n")


@frozen(slots=False)
class Document:
    """One strict YAML file: its plain JSON value, and on demand where each part of it stands."""

    value: Json
    file: str
    data: bytes

    def where(self, path: Path) -> Place:
        """Line and column (1-based) of the value at `path`, or of its nearest part that exists."""
        return _nearest(self._careful.values, path)

    def key_where(self, path: Path) -> Place:
        """Line and column (1-based) of the key that the last step of `path` names."""
        return self._careful.keys.get(path) or self.where(path)

    def problem(self, reason: Reason, path: Path, detail: str, hint: str = "", *, at_key: bool = False) -> Problem:
        """A fault of this file at the value (or the key) that `path` names."""
        line, column = self.key_where(path) if at_key else self.where(path)
        return Problem(reason, detail, self.file, line, column, hint)

    @cached_property
    def _careful(self) -> _CarefulReader:
        reader = _CarefulReader(self.data, self.file)
        reader.read()
        return reader


def load(data: bytes, file: str, max_bytes: int = MIB) -> Document:
    """The document in `data`; `file` is its name in messages.

    Raises:
        DocumentError: with every fault that was found, in file order.
    """
    if len(data) > max_bytes:
        detail = f"the file has {len(data)} bytes where {max_bytes} are allowed"
        raise DocumentError([Problem(Reason.TOO_LARGE, detail, file, hint="split it into several files")])
    try:
        value = _read_fast(data)
    except (DoubtError, yaml.YAMLError, UnicodeDecodeError):
        reader = _CarefulReader(data, file)
        value = reader.read()
        if reader.problems:
            raise DocumentError(sorted(reader.problems, key=lambda each: (each.line, each.column))) from None
    if len(data) > 2 * MAX_NODES and _nodes(value) > MAX_NODES:  # each value but the first takes two bytes
        raise DocumentError([Problem(Reason.TOO_LARGE, f"more than {MAX_NODES} values", file)])
    return Document(value, file, data)


def _read_fast(data: bytes) -> Json:
    unclean = data.translate(None, _PRINTABLE_ASCII) if data.isascii() else _FORBIDDEN.search(data.decode())
    if unclean or (b"\\" in data and _NUL_ESCAPE.search(data)):
        raise DoubtError
    next_event: Callable[[], Any] = CParser(data).get_event

    def node(event: Any, depth: int) -> Json:
        kind = type(event)
        if kind is AliasEvent or event.tag is not None or event.anchor is not None:
            raise DoubtError
        if kind is ScalarEvent:
            return event.value if event.style else known_value(event.value)
        if depth > MAX_DEPTH:
            raise DoubtError
        if kind is MappingStartEvent:
            mapping: dict[str, Json] = {}
            while type(event := next_event()) is ScalarEvent:
                key = event.value if event.style else known_value(event.value)
                if event.tag is not None or event.anchor is not None or type(key) is not str or key in mapping:
                    raise DoubtError
                mapping[key] = node(next_event(), depth + 1)
            if type(event) is not MappingEndEvent:
                raise DoubtError
            return mapping
        sequence: list[Json] = []
        while type(event := next_event()) is not SequenceEndEvent:
            sequence.append(node(event, depth + 1))
        return sequence

    next_event()
    start = next_event()
    if type(start) is not DocumentStartEvent or start.version is not None or start.tags:
        raise DoubtError
    value = node(next_event(), 1)
    next_event()
    if type(next_event()) is not StreamEndEvent:
        raise DoubtError
    return value


class _StopError(Exception):
    """Reading cannot go on; what was found is in `problems`."""


class _CarefulReader:
    """Reads the same events slowly: every fault with its place, and the place of every value and key."""

    def __init__(self, data: bytes, file: str) -> None:
        self.problems: list[Problem] = []
        self.values: dict[Path, Place] = {}
        self.keys: dict[Path, Place] = {}
        self._data = data
        self._file = file
        self._next: Callable[[], Any] = CParser(data).get_event

    def read(self) -> Json:
        """The value; it is worth something only if `problems` stays empty."""
        if not self._clean_text():
            return None
        value = None
        try:
            self._next()
            self._document_start(self._next())
            value = self._node(self._next(), (), 1)
            self._next()
            further = self._next()
            if type(further) is not StreamEndEvent:
                self._found(Reason.UNSUPPORTED_YAML, further, "a second document", "one file holds one document")
        except _StopError:
            pass
        except yaml.MarkedYAMLError as error:
            context = f"{error.context}, " if error.context else ""
            mark: Any = error.problem_mark  # libyaml always gives one
            hint = "indent with spaces, never tabs; quote a value that starts with a special character"
            self._add(Reason.MALFORMED_YAML, mark, f"not well-formed YAML: {context}{error.problem}", hint)
        return value

    def _clean_text(self) -> bool:
        try:
            text = self._data.decode()
        except UnicodeDecodeError as error:
            before = self._data[: error.start].decode()
            line, column = _place(_line_starts(before), len(before))
            detail = f"byte {error.start} is not UTF-8"
            self.problems.append(
                Problem(Reason.MALFORMED_UNICODE, detail, self._file, line, column, "save the file as UTF-8")
            )
            return False
        starts = _line_starts(text)
        for found in islice(_FORBIDDEN.finditer(text), MAX_PROBLEMS):
            line, column = _place(starts, found.start())
            char = found[0]
            if char in _BREAKS:
                detail, hint = "a line break that only some YAML versions know", "escape it in double quotes"
            elif char == "\ufeff":
                detail, hint = "a byte order mark", "save the file without it"
            else:
                detail, hint = "a character that YAML forbids", "remove it, or escape it in double quotes"
            reason = Reason.UNSUPPORTED_YAML if char in _BREAKS or char == "\ufeff" else Reason.MALFORMED_UNICODE
            self.problems.append(Problem(reason, f"{detail}: {shown(char)}", self._file, line, column, hint))
        return not self.problems

    def _document_start(self, event: Any) -> None:
        if type(event) is StreamEndEvent:
            self._found(Reason.MALFORMED_YAML, event, "the file holds no document", "write one mapping")
            raise _StopError
        if event.version is not None or event.tags:
            self._found(Reason.UNSUPPORTED_YAML, event, "a YAML directive", "remove the lines that start with `%`")

    def _node(self, event: Any, path: Path, depth: int) -> Json:
        if len(self.problems) >= MAX_PROBLEMS:
            raise _StopError
        self.values[path] = (event.start_mark.line + 1, event.start_mark.column + 1)
        self._decorations(event)
        if type(event) is AliasEvent:
            return None
        if type(event) is ScalarEvent:
            return self._scalar(event)
        if depth > MAX_DEPTH:
            self._found(Reason.TOO_DEEP, event, f"nested more than {MAX_DEPTH} levels deep", "flatten the value")
            raise _StopError
        if type(event) is SequenceStartEvent:
            sequence: list[Json] = []
            while type(item := self._next()) is not SequenceEndEvent:
                sequence.append(self._node(item, (*path, len(sequence)), depth + 1))
            return sequence
        mapping: dict[str, Json] = {}
        while type(at := self._next()) is not MappingEndEvent:
            key = self._key(at, path, depth)
            under: Path = (*path, key)
            if under in self.keys:
                detail = f"the key `{shown(key, 60)}` stands twice"
                self._found(Reason.DUPLICATE_KEY, at, detail, f"it is on line {self.keys[under][0]} already; keep one")
                # Its own parts are not those of the first one: they get a path that nothing else has.
                under = (*path, at.start_mark.index)
            self.keys[under] = (at.start_mark.line + 1, at.start_mark.column + 1)
            mapping[key] = self._node(self._next(), under, depth + 1)
        return mapping

    def _key(self, event: Any, path: Path, depth: int) -> str:
        if type(event) is ScalarEvent and not event.style and event.value == "<<":
            self._found(Reason.MERGE_FORBIDDEN, event, "a merge key", "write the merged keys out")
            return "<<"
        if type(event) is not ScalarEvent:
            if type(event) is AliasEvent:
                self._decorations(event)
            else:
                self._found(Reason.NON_STRING_KEY, event, "a key that is a list or mapping", "use a word as key")
                self._node(event, (*path, "?"), depth + 1)
            return f"?{event.start_mark.index}"
        self._decorations(event)
        key = self._scalar(event, is_key=True)
        if type(key) is not str:
            self._found(
                Reason.NON_STRING_KEY,
                event,
                f"the key `{event.value}` is not a string",
                f'quote it: "{event.value}"',
            )
            return str(event.value)
        return key

    def _decorations(self, event: Any) -> None:
        """Anchors, aliases and tags: never allowed."""
        if event.anchor is not None:
            what = "an alias" if type(event) is AliasEvent else "an anchor"
            detail = f"{what}, `{shown(event.anchor, 60)}`"
            self._found(Reason.MERGE_FORBIDDEN, event, detail, "write the value out in each place")
        if getattr(event, "tag", None) is not None:
            detail = f"a tag, `{shown(event.tag, 60)}`"
            self._found(Reason.UNSUPPORTED_YAML, event, detail, "remove it; quote the value if it is text")

    def _scalar(self, event: Any, *, is_key: bool = False) -> Json:
        text: str = event.value
        if event.style:
            if "\x00" in text:
                self._found(Reason.MALFORMED_UNICODE, event, "a NUL character in a string", "remove the escape")
            return text
        try:
            return plain_value(text)
        except DoubtError:
            reason, detail, hint = why_doubtful(text)
            self._found(reason, event, detail, f'quote the key: "{shown(text, 60)}"' if is_key else hint)
            return text

    def _found(self, reason: Reason, event: Any, detail: str, hint: str) -> None:
        self._add(reason, event.start_mark, detail, hint)

    def _add(self, reason: Reason, mark: Any, detail: str, hint: str) -> None:
        self.problems.append(Problem(reason, detail, self._file, mark.line + 1, mark.column + 1, hint))


def _nodes(top: Json) -> int:
    count = 0
    waiting = [top]
    while waiting:
        value = waiting.pop()
        count += 1
        if type(value) is dict:
            waiting.extend(value.values())
        elif type(value) is list:
            waiting.extend(value)
    return count


def _nearest(places: dict[Path, Place], path: Path) -> Place:
    while path not in places:
        path = path[:-1]
    return places[path]


def _place(starts: list[int], offset: int) -> Place:
    """Line and column (1-based) of a character, given where the lines start."""
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in _BREAK.finditer(text))]
