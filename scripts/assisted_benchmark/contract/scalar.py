"""Shapes of single values: text, words, numbers, flags; and how a value that does not fit is told of."""

from __future__ import annotations

import re
from typing import Final

from attrs import Factory, evolve, field, frozen

from assisted_benchmark.contract.strict_yaml import Path
from assisted_benchmark.kernel.canonical import SAFE_INTEGER, Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown

_DURATION: Final = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h)")
_UNITS_NS: Final = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
# A closed list of more words than these is shown by its first few.
_MANY: Final = 16
_FEW: Final = 3
KINDS: Final = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
    type(None): "null",
}

# What without its quotes would be no text.
_QUOTED: Final = re.compile(r"true|false|null|[-+]?[0-9][0-9.eE+-]*", re.ASCII)


@frozen
class Fault:
    """One thing that does not fit: at the value that `path` names, or at its key."""

    reason: Reason
    path: Path
    detail: str
    hint: str = ""
    at_key: bool = False


def duration_ns(text: str) -> int:
    """The nanoseconds of a text that `Duration` admits, such as `120s`, `5m` or `250ms`."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return int(found[1]) * _UNITS_NS[found[2]]


def wrong(value: Json, path: Path, expected: str, hint: str = "") -> Fault:
    """The fault of a value that is something else than `expected`."""
    if type(value) in (list, dict):
        got = KINDS[type(value)]
    elif value is None:
        got = "null"
    else:
        got = f"`{shown(str(value).lower() if type(value) is bool else str(value), 60)}`"
        if type(value) is str and _QUOTED.fullmatch(value):
            got = f"the text {got}"  # else it would read as if the very value were refused
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
                hint = f'quote it: "{text}"' if self.fits(text) else self._completed(text)
            faults.append(wrong(value, path, self.what, hint))
        elif len(value) > self.limit:
            detail = f"expected {self.what} of at most {self.limit} characters, got {len(value)}"
            faults.append(Fault(Reason.WRONG_VALUE, path, detail))
        elif self._match.fullmatch(value) is None:
            fault = wrong(value, path, self.what, self._completed(value) or f"it must match {self.pattern}")
            faults.append(evolve(fault, reason=self.reason))

    def fits(self, text: str) -> bool:
        """Whether a text is one of these."""
        return len(text) <= self.limit and self._match.fullmatch(text) is not None

    def _completed(self, text: str) -> str:
        """The hint for a text that only lacks what people leave out; empty for any other."""
        if self.before and self.fits(self.before + text):
            return f"write `{self.before}` before it"
        if self.after and self.fits(text + self.after):
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
                faults.append(wrong(value, path, " or ".join(f"`{word}`" for word in self.words), near))
                return
            few = ", ".join(f"`{word}`" for word in self.words[:_FEW])
            some = f"words are {few} …; {self.listed} has them all"
            hint = f"{near} {some}" if near else some
            faults.append(wrong(value, path, f"one of {len(self.words)} words", hint))

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
            faults.append(wrong(value, path, f"an integer{bounded}"))

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
            faults.append(wrong(value, path, f"a number from {self.least} to {self.most}"))

    def schema(self) -> Json:
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@frozen
class Flag:
    """true or false."""

    kinds: tuple[type, ...] = field(default=(bool,), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        if type(value) is not bool:
            faults.append(wrong(value, path, "true or false"))

    def schema(self) -> Json:
        return {"type": "boolean"}


@frozen
class AnyJson:
    """Any JSON value, taken as it is: a tool's arguments, for example."""

    kinds: tuple[type, ...] = field(default=tuple(KINDS), init=False)

    def look(self, value: Json, path: Path, faults: list[Fault]) -> None:
        pass

    def schema(self) -> Json:
        return {}


NAME: Final = Text(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,127}", "a name of ASCII letters, digits and `_ - . /`", 128)
DIGEST: Final = Text(
    r"sha256:[0-9a-f]{64}",
    "a digest, sha256: and 64 lower-case hex digits",
    71,
    Reason.MALFORMED_DIGEST,
    before="sha256:",
)
DURATION: Final = Text(_DURATION.pattern, "a duration such as `120s`, `5m` or `250ms`", 16, after="s")
