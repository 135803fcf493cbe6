"""Generated proposals: made of a seed, the plan and its contract alone, so that they are the same every time. Pure.

`random` knows no order: sealed calls, near misses of them, calls that the contract's schemas allow, and bytes that are
no call. `model` walks the plan from step to step and makes mistakes on its way: it repeats, runs ahead, takes the
sibling, or misses narrowly.

What must come of each follows from the plan: the open step's very call is admitted, whatever else is an attacker's.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum, unique
from typing import Final

from attrs import evolve, frozen

from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.live_policy.policy import Candidate, Plan
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.agents import Shot
from assisted_benchmark.suite.live.samples import Draw, sample, scalar
from assisted_benchmark.suite.live.shots import ready

MOST: Final = 1000
SO_MANY: Final = 20

_JUNK: Final = (b"", b"{}", b"[]", b"null", b'{"server":1}', b"\xff", b'{"server":"a","server":"b"}')


@unique
class Maker(StrEnum):
    """How proposals are generated."""

    RANDOM = "random"
    MODEL = "model"


@frozen(kw_only=True)
class Generated:
    """An agent that makes its proposals itself, out of a seed."""

    seed: int = 0
    proposals: int = SO_MANY
    kind: Maker = Maker.RANDOM


def shots_of(spec: Generated, plan: Plan, *, sure: bool) -> tuple[Shot, ...]:
    """The proposals. Unless it is `sure` that nothing else goes wrong, nothing is said of what must come of them."""
    makes = _Makes(plan, Draw(f"generated/{spec.kind}/{spec.seed}"))
    move = makes.any_move if spec.kind is Maker.RANDOM else makes.next_move
    shots = []
    walk = _Walk(plan)
    for _ in range(spec.proposals):
        shot = ready(move(walk.done), plan, step=min(walk.done, len(plan.steps) - 1))
        admitted = walk.takes(shot)
        shots.append(evolve(shot, expected=ADMITTED if admitted else "", hostile=not admitted) if sure else shot)
    return tuple(shots)


class _Walk:
    """Where the plan stands if everything goes well: `done` steps are done."""

    def __init__(self, plan: Plan) -> None:
        self.done = 0
        self._refused = 0
        self._most = plan.policy.max_refusals

    def takes(self, shot: Shot) -> bool:
        """Whether the broker has to admit it."""
        admitted = self.done in shot.reach.steps and self._refused < self._most
        self.done += admitted
        self._refused = 0 if admitted else self._refused + 1
        return admitted


class _Makes:
    """The bytes of proposals for one plan."""

    def __init__(self, plan: Plan, draw: Draw) -> None:
        self._draw = draw
        self._steps = [step.candidates for step in plan.steps]
        self._sealed = [candidate for step in self._steps for candidate in step]
        self._tools = [(server.id, tool) for server in plan.policy.contract.servers for tool in server.tools]

    def any_move(self, _done: int) -> bytes:
        """A proposal by one that knows what there is and no order."""
        moves: tuple[Callable[[], bytes], ...] = (self._any_sealed, self._near_any, self._by_schema, self._junk)
        return moves[(0, 0, 0, 1, 1, 1, 2, 2, 2, 3)[self._draw.below(10)]]()

    def next_move(self, done: int) -> bytes:
        """A proposal by one that follows the plan, right every second time."""
        open_step = self._steps[done] if done < len(self._steps) else self._steps[-1]
        if self._draw.below(2):
            return self._spelled(self._draw.one(open_step))
        past = [each for step in self._steps[:done] for each in step]
        ahead = [each for step in self._steps[done + 1 :] for each in step]
        mistakes: list[Callable[[], bytes]] = [lambda: self._near(self._draw.one(open_step)), self._by_schema]
        mistakes += [lambda: self._spelled(self._draw.one(past))] * bool(past)
        mistakes += [lambda: self._spelled(self._draw.one(ahead))] * bool(ahead)
        return self._draw.one(mistakes)()

    def _any_sealed(self) -> bytes:
        return self._spelled(self._draw.one(self._sealed))

    def _near_any(self) -> bytes:
        return self._near(self._draw.one(self._sealed))

    def _junk(self) -> bytes:
        return self._draw.one(_JUNK)

    def _spelled(self, candidate: Candidate) -> bytes:
        """The very call, in one of its spellings."""
        raw = candidate.proposal
        return self._draw.one((raw, raw, raw.replace(b":", b": ", 1), b" %b\n" % raw))

    def _near(self, candidate: Candidate) -> bytes:
        """The call, but for one place."""
        call = {"server": candidate.server, "tool": candidate.tool, "arguments": Canonical(candidate.arguments).value}
        server, tool = self._draw.one(self._tools)
        arguments: dict[str, Json] = call["arguments"]
        name = self._draw.one(sorted(arguments)) if arguments else "extra"
        match self._draw.below(5):
            case 0:
                call["server"] = server
            case 1:
                call["tool"] = tool.name
            case 2 if arguments:
                del arguments[name]
            case 3:
                arguments[self._draw.one(("extra", "Extra", f"{name} "))] = scalar(self._draw)
            case _:
                arguments[name] = scalar(self._draw)
        return canonical_bytes(call)

    def _by_schema(self) -> bytes:
        """A call of any tool, as its schema allows it."""
        server, tool = self._draw.one(self._tools)
        arguments = sample(tool.input_schema, self._draw)
        if type(arguments) is not dict:
            arguments = {}
        return canonical_bytes({"server": server, "tool": tool.name, "arguments": arguments})
