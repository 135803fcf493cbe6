"""Agents that propose and confirm changes: they hear the answers to their own calls, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from attrs import frozen

from assisted_benchmark.kernel.canonical import canonical_bytes


@frozen(kw_only=True)
class Shot:
    """One call, ready: which tool it is for, its arguments' bytes, and what its author says of it.

    A confirmation without `raw` is of the token that `token` names among those given out (`last`, `first`,
    `again`), or else of `token` itself. `expected` is `admitted`, a reason, or (empty) nothing. `text` is for people:
    nothing sensitive is in it.
    """

    confirms: bool
    raw: bytes | None = None
    token: str = ""
    human: str = ""
    recall: str = ""
    session: str = ""
    expected: str = ""
    text: str = ""


class Aim(NamedTuple):
    """A call as it is made: its shot, its arguments, and the token in them (empty for a proposal)."""

    shot: Shot
    raw: bytes
    token: str


class Script:
    """Makes its calls whatever it hears, with the tokens that it was given."""

    def __init__(self, shots: Sequence[Shot]) -> None:
        self._shots: Iterator[Shot] = iter(shots)
        self._tokens: list[str] = []
        self._before = ""

    def given(self, token: str) -> None:
        """A proposal was answered with this token."""
        self._tokens.append(token)

    def next(self) -> Aim | None:
        """The next call, or None."""
        shot = next(self._shots, None)
        if shot is None or shot.raw is not None:
            return None if shot is None else Aim(shot, shot.raw or b"", "")
        token = self._named(shot.token)
        self._before = token
        return Aim(shot, canonical_bytes({"token": token}), token)

    def _named(self, word: str) -> str:
        none = "chg-0-" + "0" * 24  # nobody was given one
        known = {"last": self._tokens[-1:], "first": self._tokens[:1], "again": [self._before]}
        if word not in known:
            return word
        return next(iter(known[word]), "") or none


@frozen(kw_only=True)
class ChangeAgent:
    """Who calls in a case. One that `plans` gives up at its first refusal."""

    name: str
    shots: tuple[Shot, ...] = ()
    plans: bool = False

    def begin(self) -> Script:
        """A fresh agent."""
        return Script(self.shots)
