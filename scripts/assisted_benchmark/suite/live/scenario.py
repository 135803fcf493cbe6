"""A scenario as frozen values: who proposes what, under which binding, with which faults, to come to what.

Pure: `scenario_document` reads the YAML, `expand` makes the cases, `case` runs one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique
from functools import cached_property
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.policy import Plan
from assisted_benchmark.live_policy.trust import Pins
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.live.agents import CaseAgent
from assisted_benchmark.suite.live.faults import Fault, Kind
from assisted_benchmark.suite.live.generated import Generated

BROKER: Final = "live"
# What comes of a reconciliation that is not refused.
RECORDED: Final = "recorded"
# The seed of ids and nonces that sessions are recorded under.
RECORDING_SEED: Final = 0
# No argument at all.
NOTHING: Final = Canonical(b"{}")


@unique
class Reveal(StrEnum):
    """What a refused agent hears: the coarse word, or (to study agents that learn from it) the exact reason."""

    COARSE = "coarse"
    REASON = "reason"


@unique
class Visibility(StrEnum):
    """Which tools an agent from outside is shown: all of the contract, or only what the step that is open allows."""

    ALL = "all"
    OPEN = "open"


@unique
class Sanity(StrEnum):
    """Agents that ship to check the harness: one must score 1, the other 0."""

    ORACLE = "oracle"
    NOP = "nop"


@frozen(kw_only=True)
class RunSpec:
    """The run that a grant is bound to, as far as a scenario chooses it. `run` empty: made from the case id."""

    task: str = "t-1"
    seed: int = 0
    run: str = ""
    vm: str = "2f8f9e0c-6c1d-4b1e-9a51-000000000124"
    session: str = "agent"
    host: str = "bench-host"
    start_ns: int = 1_900_000_000 * SECOND


@frozen
class Raw:
    """Exactly these bytes."""

    data: bytes


@frozen(kw_only=True)
class Planned:
    """A call of the plan, perhaps changed.

    `step` counts from 1; 0 is the place where the agent is. `candidate` empty takes the agent's own
    choice. `change` sets arguments and `leave_out` leaves some out; None keeps the planned server or tool.
    """

    step: int = 0
    candidate: str = ""
    change: Canonical = NOTHING
    leave_out: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()


Move: TypeAlias = Raw | Planned


@frozen(kw_only=True)
class Turn:
    """One proposal of an agent and what its author says must come of it: `admitted`, a reason, or (empty) nothing.

    It is made not before `at_ns` after the case began.
    """

    move: Move
    expected: str = ""
    at_ns: int = 0


@frozen(kw_only=True)
class Playing:
    """An agent that plays the authorised plan, choosing `choose` at the choice (empty: there is none)."""

    choose: str = ""


@frozen(kw_only=True)
class Scripted:
    """An agent that plays these turns whatever it hears."""

    turns: tuple[Turn, ...]


@frozen(kw_only=True)
class Transcribed:
    """An agent that makes the calls of a transcript: of the file beside the scenario, or of one `sample` in it."""

    file: str
    sample: str = ""


@frozen(kw_only=True)
class Command:
    """An agent that is a program: `program` says how it is started, and `environment` what it gets of the harness's."""

    argv: tuple[str, ...]
    environment: tuple[str, ...] = ()
    within_ns: int = 60 * SECOND


AgentSpec: TypeAlias = Playing | Scripted | Transcribed | Generated | Command | Sanity


@frozen(kw_only=True)
class Expect:
    """What a case must come to. None: not said; then what follows from the agent and the refusals is derived.

    `operator` is what came of each teardown and reconciliation, in order. `receipts` is held where the case is run as
    it was recorded: under seed 0, with the servers that its scenario says.
    """

    decisions: tuple[str, ...] | None = None
    refused: Reason | None = None
    calls: tuple[tuple[str, int], ...] | None = None
    ends: str | None = None
    oracle: str | None = None
    operator: tuple[str, ...] | None = None
    receipts: Digest | None = None
    scores: tuple[tuple[str, float], ...] = ()


@frozen(kw_only=True)
class Override:
    """One row of a table or one value of a matrix axis: what it sets in place of the scenario's own.

    `run` and `expect` hold the fields of RunSpec and Expect that differ.
    """

    run: Mapping[str, Any] = field(factory=dict)
    agent: AgentSpec | None = None
    faults: tuple[Fault, ...] | None = None
    expect: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Proposal:
    """One proposal tried in place of the agent's own, at the choice or (`at`, from 1) at another step.

    `after` names a candidate that is dispatched first.
    """

    id: str
    turn: Turn
    because: str = ""
    at: int = 0
    after: str = ""
    faults: tuple[Fault, ...] | None = None


@frozen(kw_only=True)
class Scenario:
    """One scenario file. Without `servers` they are models, if every server of the contract has one, else processes.

    `visibility` and `instructions` are for agents from outside.
    """

    id: str
    file: str
    because: str
    policy: str
    agent: AgentSpec
    run: RunSpec = RunSpec()
    servers: Servers | None = None
    reveal: Reveal = Reveal.COARSE
    visibility: Visibility = Visibility.ALL
    instructions: str = ""
    tags: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    expect: Expect = Expect()
    proposals: tuple[Proposal, ...] = ()
    cases: tuple[tuple[str, Override], ...] = ()
    matrix: tuple[tuple[tuple[str, Override], ...], ...] = ()


@frozen(kw_only=True)
class Candidates:
    """One candidates file: a task that fills a policy's choice group."""

    id: str
    file: str
    policy: str
    task: str
    candidates: tuple[tuple[str, Canonical], ...]
    seed: int = 0
    because: str = ""
    tags: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()


@frozen(kw_only=True, slots=False)
class LiveCase:
    """One case, ready to run. `id` is folder/file/case and stable.

    `pins` are the digests that the runner has pinned; `folder` is the contract file's, from which
    real servers are started; `source` is a digest of the files that the case was made from.
    """

    id: str
    file: str
    because: str
    tags: tuple[str, ...]
    plan: Plan
    pins: Pins
    folder: str
    source: Digest
    agent: CaseAgent
    run: RunSpec
    servers: Servers
    reveal: Reveal
    faults: tuple[Fault, ...]
    expect: Expect
    visibility: Visibility = Visibility.ALL
    instructions: str = ""

    @property
    def broker(self) -> str:
        """Always the live one."""
        return BROKER

    @property
    def policy(self) -> str:
        """The policy's id."""
        return self.plan.policy.id

    @property
    def run_id(self) -> str:
        """The run's own name, or one made from the case's."""
        return self.run.run or self.id

    @property
    def only_models(self) -> bool:
        """Whether it kills a server between calls, which no process can be."""
        return any(each.kind is Kind.KILL for each in self.faults)

    @cached_property
    def names(self) -> dict[tuple[str, str, bytes], str]:
        """Which candidate a call (server, tool, arguments) is; of two steps that have the same call, the first's."""
        return {call: each.name for step in reversed(self.plan.steps) for call, each in step.by_call.items()}

    @cached_property
    def targets(self) -> dict[str, str]:
        """What each candidate of the plan's last step has as its target; empty if the step names none."""
        step = self.plan.steps[-1]
        if not step.target:
            return {}
        return {each.name: str(Canonical(each.arguments).value[step.target]) for each in step.candidates}
