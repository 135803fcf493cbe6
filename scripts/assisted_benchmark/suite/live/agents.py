"""Agents that propose: they hear the answers to their own proposals, as an agent may, and no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from attrs import field, frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Clock, SystemClock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.lattice import NOWHERE, Reach
from assisted_benchmark.suite.live.transcripts.calls import Was
from assisted_benchmark.workloads.oracle import Claim

if TYPE_CHECKING:
    from assisted_benchmark.suite.live.served import ServedCase


@frozen(kw_only=True)
class Shot:
    """One proposal, ready: the bytes, and what its author says of it.

    `expected` is `admitted`, a reason, or (empty) nothing; a `hostile` one must be refused, for whatever reason.
    `step` is the plan step that it aims at, from 0, or -1. `text`, `server` and `tool` are for people: nothing
    sensitive is in them. `reach` is how far it gets under seals weaker than the real one.

    It is made not before `at_ns` after the case began, by the case's own session or by `principal`; `malformed` stands
    in place of a proposal where a line was no message. `was` is what came of it when it was recorded.
    """

    raw: bytes
    expected: str = ""
    hostile: bool = False
    step: int = -1
    text: str = ""
    server: str = ""
    tool: str = ""
    reach: Reach = NOWHERE
    at_ns: int = 0
    principal: str = ""
    malformed: tuple[Reason, str] | None = None
    was: Was | None = None


class Heard(NamedTuple):
    """What an agent is told of its proposal.

    `word` is `admitted`, else the coarse word (or, where a scenario reveals it, the reason);
    `result` is the tool's result, if there was one.
    """

    word: str
    receipt_id: str | None
    result: Json | None


class Agent(Protocol):
    """One that proposes until it is done."""

    def next(self, heard: Heard | None) -> Shot | None:
        """The next proposal, or None. `heard` is the answer to the one before."""

    def claim(self) -> Claim | None:
        """What the agent says that it saw, if it says anything."""


class ScriptedAgent:
    """Plays its shots whatever it hears."""

    def __init__(self, shots: Sequence[Shot]) -> None:
        self._shots = iter(shots)

    def next(self, heard: Heard | None) -> Shot | None:  # noqa: ARG002 - a script does not listen
        return next(self._shots, None)

    def claim(self) -> Claim | None:
        return None


class PlanAgent:
    """Plays the authorised plan to its end, or until it is refused, and says what the tools showed it.

    `plan` has one mapping a step, from candidate name to shot. Without a `choice` of its own it decides as
    the task says: approve what is not above its limit (and the first candidate where it was shown no task).
    """

    def __init__(self, plan: Sequence[Mapping[str, Shot]], choice: str = "") -> None:
        self._plan = plan
        self._choice = choice
        self._at = 0
        self._saw: dict[str, Json] = {}

    def next(self, heard: Heard | None) -> Shot | None:
        if heard is not None:
            if heard.word != ADMITTED:
                return None
            shown = heard.result.get("structuredContent") if type(heard.result) is dict else None
            if type(shown) is dict:
                self._saw.update(shown)
        if self._at == len(self._plan):
            return None
        step = self._plan[self._at]
        self._at += 1
        return step[self._decided(step)] if len(step) > 1 else next(iter(step.values()))

    def claim(self) -> Claim | None:
        match self._saw:
            case {"reading": int(reading), "limit": int(limit), "frame": str(frame)}:
                return Claim(reading, limit, frame)
        return None

    def _decided(self, step: Mapping[str, Shot]) -> str:
        if self._choice:
            return self._choice
        match self._saw:
            case {"reading": int(reading), "limit": int(limit)} if {"approve", "hold"} <= step.keys():
                return "approve" if reading <= limit else "hold"
        return next(iter(step))


@frozen(kw_only=True)
class Outside:
    """An agent whose proposals come from outside, such as an MCP client's through the gateway.

    `drive` is given the case once its grant is sealed, and returns when the agent is done. The agent's time goes
    by `clock`.
    """

    drive: Callable[[ServedCase], None]
    clock: Clock = field(factory=SystemClock)


@frozen(kw_only=True)
class CaseAgent:
    """Who proposes in a case. `shots` of a script; or `plan`, with the `choice` if it has made one beforehand.

    With one from `outside` neither is played: they only say how many proposals the scenario counts on.
    """

    name: str
    shots: tuple[Shot, ...] = ()
    plan: tuple[Mapping[str, Shot], ...] = ()
    choice: str = ""
    outside: Outside | None = None

    def begin(self) -> Agent:
        """A fresh agent."""
        return PlanAgent(self.plan, self.choice) if self.plan else ScriptedAgent(self.shots)
