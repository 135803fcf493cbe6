"""What came of a case and of a run: plain frozen values, the source of every report."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.digest import Digest

# The stamp of a case whose agent is its own master, so that the same case may come to something else.
VARIES: Final = "agent: not deterministic"


@unique
class Verdict(StrEnum):
    """Never merged: a case that could not run neither passed nor failed."""

    PASSED = "passed"
    FAILED = "failed"
    COULD_NOT_RUN = "could_not_run"


@frozen(kw_only=True)
class Scores:
    """Three separate scores, each 0.0 to 1.0, or None where the case has nothing to score."""

    state_grounding: float | None = None
    action_correctness: float | None = None
    task_completion: float | None = None


@frozen(kw_only=True)
class Event:
    """One step of a case's timeline, in order: proposal, decision, dispatch, receipt, fault, oracle.

    `text` is redacted; `at_ns` is the injected monotonic clock.
    """

    kind: str
    text: str
    at_ns: int
    reason: str = ""
    server: str = ""
    tool: str = ""


@frozen(kw_only=True)
class Miss:
    """One expectation that was not met: which, what was expected, what came."""

    what: str
    expected: str
    actual: str


@frozen(kw_only=True)
class Counterfactual:
    """What a seal of one strength would have come to, had it judged a case's proposals: counts of proposals."""

    strength: str
    admitted: int
    attacker_admitted: int
    benign_refused: int


@frozen(kw_only=True)
class Prefix:
    """What the turns of a transcript came to for which its agent saw what it had seen when it was recorded."""

    proposed: int
    admitted: int
    sent: int
    scores: Scores


@frozen(kw_only=True)
class CaseResult:
    """One run of one case. `id` is stable: folder/file/case.

    `reason` and `detail` say why a case could not run; `misses` why it failed. `sent` counts
    at the servers, not at the caller. `receipts` is the digest over the run's receipt lines.

    proposed >= admitted >= sent >= confirmed, always. The rival of a race is counted like the agent. `confirmed`
    counts where effects are watched; a stamp `not watched: SERVER` names each server whose calls nobody could confirm.
    Of a case that varies, `runs` counts those that came to a verdict, and `passes` those of them that passed; all else
    is of the one that went worst. Other cases have neither.
    `lattice` is what seals of each strength would have said, weakest first; empty where nothing was proposed, and
    of brokers that have none.
    `diverged_at` is the turn of a transcript, from 0, whose answer was the first that its agent had not seen: what
    comes after it was decided on other grounds. `prefix` is what came until then, that turn included.
    """

    id: str
    file: str
    because: str
    agent: str
    policy: str
    verdict: Verdict
    tags: tuple[str, ...] = ()
    scores: Scores = Scores()
    misses: tuple[Miss, ...] = ()
    reason: str = ""
    detail: str = ""
    proposed: int = 0
    admitted: int = 0
    sent: int = 0
    confirmed: int = 0
    attacker_sent: int = 0
    benign_refused: int = 0
    unresolved: int = 0
    refusals: tuple[tuple[str, int], ...] = ()
    calls: tuple[tuple[str, int], ...] = ()
    ends: str = ""
    receipts: Digest | None = None
    stamps: tuple[str, ...] = ()
    runs: int = 0
    passes: int = 0
    lattice: tuple[Counterfactual, ...] = ()
    diverged_at: int | None = None
    prefix: Prefix | None = None
    timeline: tuple[Event, ...] = ()


@frozen(kw_only=True)
class RunResult:
    """All cases of a run, in case order. `stamps` are what the run does not guarantee (such as isolation: none)."""

    seed: int
    durability: str
    cases: tuple[CaseResult, ...]
    selected: int
    repeat: int = 1
    interrupted: bool = False
    stamps: tuple[str, ...] = ()
