"""One case whose proposals come from outside, such as an MCP client's, and not from an agent of the suite's own.

It stands on the same case as every other, and is scored and reported as that is. Turns come from any thread and are
taken one at a time, in the order in which they came. When a turn begins, the case's clock is put to the scenario's
start and the real time since then, in whole milliseconds, and stands still until it has ended: a grant really
expires, and what was recorded can be played again exactly.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, NamedTuple

from attrs import evolve

from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import LedgerError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import MIB
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.live_policy.grant import group_key
from assisted_benchmark.live_policy.policy import PlannedStep
from assisted_benchmark.live_policy.ports import NO_RELAY, Relay
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.suite.live.agents import Outside, Shot
from assisted_benchmark.suite.live.case import CaseRun
from assisted_benchmark.suite.live.scenario import LiveCase
from assisted_benchmark.suite.live.seat import Seat
from assisted_benchmark.suite.live.shots import ready
from assisted_benchmark.suite.result import Miss

CLIENT: Final = "client"

MOST_TURNS: Final = 10_000
MOST_BYTES: Final = 8 * MIB  # of all proposals: what is kept of them, a recording can hold

_MILLISECOND: Final = 1_000_000
_LABEL: Final = 100


class ServedTurn(NamedTuple):
    """One turn: when it began after the session did, what was proposed, and what came of it.

    `word` is `admitted` or a reason; `result` is the server's raw answer, where there was a usable one. `principal`
    is named where it was not the case's own. `malformed` stands in place of a proposal where there was none.
    """

    at_ns: int
    raw: bytes
    word: str
    result: bytes = b""
    principal: str = ""
    malformed: tuple[Reason, str] | None = None


class ServedCase:
    """The case as an agent from outside has it. `case` is what is played; the plan in it is not for the agent."""

    def __init__(self, case: LiveCase, played: CaseRun, seat: Seat, clock: Clock) -> None:
        self.case = case
        self._played = played
        self._seat = seat
        self._grant = seat.session.grant
        self._clock = clock
        self._began = clock.now().mono_ns
        self._at_ns = 0
        self._line = _Line()
        self._done = 0
        self._turns: list[ServedTurn] = []
        self._shots: dict[bytes, Shot] = {}
        self._broke: Exception | None = None
        self._over = False
        self._noted = 0
        self._bytes = 0
        self._full = False

    @property
    def run(self) -> str:
        """The run that the grant is of."""
        return self._seat.run

    @property
    def turns(self) -> tuple[ServedTurn, ...]:
        """What was proposed so far and has ended, in order."""
        return tuple(self._turns)

    def propose(self, raw: bytes, *, principal: str = "", relay: Relay = NO_RELAY) -> Outcome | Refused:
        """One proposal to its end, when its turn has come. It is the case's own agent's, unless `principal` says else.

        `relay` leads to whoever waits for it while the call is in flight.

        Raises:
            HarnessError: the harness itself failed: the case will have no verdict. Or the session is over, or full.
        """
        self._line.enter()
        try:
            with self._kept(len(raw)):
                return self._turn(raw, principal, relay)
        finally:
            self._line.leave()

    def refuse_malformed(self, reason: Reason, detail: str) -> None:
        """A line that was no message leaves its receipt, after the turns that came before it. This does not wait."""
        self._noted += 1
        if self._noted > MOST_TURNS:  # not one of them may wait: nobody holds up who sends them
            self._full = True
            return
        self._line.soon(partial(self._malformed, reason, detail))

    def is_called(self, label: str) -> None:
        """What the client says of itself, for reports; whoever it is, it may say anything."""
        if label:
            self._played.agent = f"{self.case.agent.name} ({shown(label, _LABEL)})"

    def ended_as(self, detail: str, misses: Sequence[Miss]) -> None:
        """How the client itself ended, for reports, and what was expected of it beside its proposals."""
        self._played.detail = detail
        self._played.misses = tuple(misses)

    def open_step(self) -> PlannedStep | None:
        """The step that the grant is open at, as the ledger has it; None if none is, or that cannot be known."""
        try:
            for step in self.case.plan.steps:
                row = self._seat.ledger.row(group_key(self._grant, step.index))
                if row is None or row.state != State.SUCCEEDED:
                    return step if row is not None and row.state == State.SEALED else None
        except LedgerError:
            pass
        return None

    def close(self) -> None:
        """No turn comes any more.

        Raises:
            Exception: what a turn broke over.
        """
        self._line.enter()
        self._over = True
        self._line.leave()
        if self._full:
            bound = f"at most {MOST_TURNS} turns, of {MOST_BYTES} bytes"
            self._played.misses += (Miss(what="agent", expected=bound, actual="more, which were not judged"),)
        if self._broke is not None:
            raise self._broke

    def _turn(self, raw: bytes, principal: str, relay: Relay) -> Outcome | Refused:
        at_ns = self._arrives()
        took = self._played.propose(self._shot(raw), principal, relay)
        answer = took.answer
        if isinstance(answer, Reason):
            answer = Refused(answer, "the broker died over it")
        result = answer.result if isinstance(answer, Outcome) else b""
        self._done += isinstance(answer, Outcome) and answer.state is State.SUCCEEDED
        other = "" if principal == self.case.run.session else principal
        self._turns.append(ServedTurn(at_ns, raw, took.word, result, other))
        return answer

    def _shot(self, raw: bytes) -> Shot:
        """The proposal as reports have it: it aims at the step where the client is."""
        shot = self._shots.get(raw)
        if shot is None:
            shot = self._shots[raw] = ready(raw, self.case.plan)
        return evolve(shot, step=min(self._done, len(self.case.plan.steps) - 1))

    def _malformed(self, reason: Reason, detail: str) -> None:
        with suppress(Exception), self._kept():  # it is kept, and the case has no verdict for it
            at_ns = self._arrives()
            took = self._played.malformed(reason, detail)
            self._turns.append(ServedTurn(at_ns, b"", took.word, malformed=(reason, detail)))

    def _arrives(self) -> int:
        """Put the case's clock to where the agent's is."""
        at_ns = (self._clock.now().mono_ns - self._began) // _MILLISECOND * _MILLISECOND
        self._seat.clock.advance(at_ns - self._at_ns)
        self._at_ns = at_ns
        return at_ns

    @contextmanager
    def _kept(self, size: int = 0) -> Iterator[None]:
        """What breaks in a turn is told at the session's end, too. All turns are kept, so that they have a bound."""
        if self._over:
            raise MisuseError(Reason.MISUSE, "the session is over: no turn comes any more")
        self._full = self._full or len(self._turns) >= MOST_TURNS or self._bytes + size > MOST_BYTES
        if self._full:
            raise MisuseError(Reason.TOO_LARGE, "the session has had as many turns as are kept")
        self._bytes += size
        try:
            yield
        except Exception as broken:
            self._broke = self._broke or broken
            raise


class _Line:
    """Who came first is served first, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._waiting: deque[threading.Event | Callable[[], None]] = deque()

    def enter(self) -> None:
        """Wait for the others that came before; `leave` lets the next one in."""
        with self._lock:
            first, self._busy = not self._busy, True
            if first:
                return
            mine = threading.Event()
            self._waiting.append(mine)
        mine.wait()

    def leave(self) -> None:
        while (following := self._next()) is not None:
            if isinstance(following, threading.Event):
                following.set()
                return
            following()

    def soon(self, act: Callable[[], None]) -> None:
        """Have it done in its turn: now if nobody is before it, else by the one before it."""
        with self._lock:
            if self._busy:
                self._waiting.append(act)
                return
            self._busy = True
        try:
            act()
        finally:
            self.leave()

    def _next(self) -> threading.Event | Callable[[], None] | None:
        with self._lock:
            self._busy = bool(self._waiting)
            return self._waiting.popleft() if self._waiting else None


def for_client(case: LiveCase, drive: Outside) -> LiveCase:
    """The case with a client in place of its own agent.

    What its author expects of that agent's proposals, one by one, is nothing that a client has to do; what must come
    of it all is.
    """
    return evolve(
        case,
        agent=evolve(case.agent, name=CLIENT, outside=drive),
        expect=evolve(case.expect, decisions=None, refused=None),
    )
