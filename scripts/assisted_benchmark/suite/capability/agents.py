"""Agents that call typed tools and read resources: they hear the answers to their own calls, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from attrs import frozen

from assisted_benchmark.capability.results import Managed, Outcome
from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes

FROM: Final = "from"
NOTHING: Final = Canonical(b"{}")
NOBODYS: Final = "0" * 32  # an id that nobody was given


@frozen(kw_only=True)
class Shot:
    """One call, ready: a tool and its arguments, or (without a tool) the address of a resource.

    In `arguments` each `{from: WORD}` stands for what an earlier answer gave; `raw` are bytes as they stand.
    `operation` is the id of what the tool does at a live instance, if it does. `expected` is the word that it must
    come to, or empty; `replayed` says that it must be answered with an earlier receipt. `text` is for people.
    """

    tool: str | None = None
    operation: str = ""
    arguments: Canonical = NOTHING
    raw: bytes | None = None
    client: str = ""
    run: str = ""
    person: str = ""
    wait_ns: int = 0
    expected: str = ""
    replayed: bool = False
    text: str = ""


class Aim(NamedTuple):
    """A call as it is made: its shot and its arguments."""

    shot: Shot
    raw: bytes


class Script:
    """Makes its calls whatever it hears, with the grants and results that it was given."""

    def __init__(self, shots: Sequence[Shot]) -> None:
        self._shots: Iterator[Shot] = iter(shots)
        self._grants: list[str] = []
        self._result: dict[str, Json] = {}

    def hear(self, answer: object) -> None:
        """The answer to the last call, where it gave something to go on with."""
        if isinstance(answer, Managed) and "grant_id" in answer.data and answer.status == "granted":
            self._grants.append(answer.data["grant_id"])
        elif isinstance(answer, Outcome) and answer.reason is None and answer.content is not None:
            self._result = answer.content.result

    def next(self) -> Aim | None:
        """The next call, or None."""
        shot = next(self._shots, None)
        if shot is None:
            return None
        return Aim(shot, canonical_bytes(self._filled(shot.arguments.value)) if shot.raw is None else shot.raw)

    def _filled(self, value: Json) -> Json:
        if type(value) is list:
            return [self._filled(each) for each in value]
        if type(value) is not dict:
            return value
        if value.keys() == {FROM}:
            return self._given(value[FROM])
        return {key: self._filled(each) for key, each in value.items()}

    def _given(self, word: str) -> Json:
        kind, _, name = word.partition(".")
        if kind == "result":
            return self._result.get(name, NOBODYS)
        grants = {"last": self._grants[-1:], "first": self._grants[:1]}
        return next(iter(grants[name]), NOBODYS)


@frozen(kw_only=True)
class CapabilityAgent:
    """Who calls in a case. One that `plans` gives up at its first failure."""

    name: str
    shots: tuple[Shot, ...] = ()
    plans: bool = False

    def begin(self) -> Script:
        """A fresh agent."""
        return Script(self.shots)
