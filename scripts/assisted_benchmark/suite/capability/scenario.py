"""A capability scenario as frozen values: who calls what, who consents, what goes wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import field, frozen

from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.capability.agents import NOTHING, CapabilityAgent
from assisted_benchmark.suite.capability.faults import At, Dies, Fault, Kind
from assisted_benchmark.suite.case import Servers

BROKER: Final = "capability"
FIRST_INSTANCE: Final = "instance-1"

# What a call comes to that is not refused; any other word is a reason.
COMPLETED: Final = "completed"
GRANTED: Final = "granted"
READ: Final = "read"
GOOD: Final = (COMPLETED, GRANTED, READ)


@unique
class Person(StrEnum):
    """What the broker's own person does with a question."""

    APPROVE = "approve"
    DENY = "deny"
    SILENT = "silent"  # decides nothing until the time is up
    LATE = "late"  # approves after the time is up
    UNAVAILABLE = "unavailable"  # there is nobody to ask
    NOTHING = "nothing"  # there comes no decision at all
    REPLAY = "replay"  # gives the decision of another question


@unique
class Goal(StrEnum):
    """Agents that play what is authorised, or nothing."""

    ORACLE = "oracle"
    NOP = "nop"


@frozen(kw_only=True)
class Run:
    """The session that the harness gives, as far as a scenario chooses it. `run` empty: made from the case id."""

    seed: int = 0
    run: str = ""
    client: str = "agent"
    start_ns: int = 1_900_000_000 * SECOND


@frozen(kw_only=True)
class Operate:
    """A call of an operation's tool. `grant` is `last`, `first`, or an id as it stands."""

    operation: str
    input: Canonical = NOTHING
    also: Mapping[str, Json] = field(factory=dict)  # the adapter's own fields, as the tool has them


@frozen(kw_only=True)
class Manage:
    """A call of a management tool; `authority` is a profile, or an operation as scenarios name it."""

    name: str
    arguments: Canonical = NOTHING
    authority: str = ""


@frozen(kw_only=True)
class Send:
    """A call of a tool as it stands, in raw text or in values."""

    tool: str
    arguments: Canonical = NOTHING
    raw: bytes | None = None


@frozen(kw_only=True)
class ReadResource:
    """A read of a resource: an address as it stands, or `instance` or `artifact` of the one that is meant."""

    what: str
    instance: str = FIRST_INSTANCE


@frozen(kw_only=True)
class Turn:
    """One call of an agent, and what its author says must come of it. `client` is another client's, if any."""

    move: Operate | Manage | Send | ReadResource
    client: str = ""
    run: str = ""
    person: Person | None = None
    wait_ns: int = 0
    expected: str = ""
    replayed: bool = False


@frozen(kw_only=True)
class Wanted:
    """An operation that is to be executed, once."""

    operation: str
    input: Canonical = NOTHING


@frozen(kw_only=True)
class Playing:
    """An agent that asks for a grant of one operation, where there is such a thing, and calls it."""

    wanted: Wanted


@frozen(kw_only=True)
class Scripted:
    """An agent that makes these calls whatever it hears."""

    turns: tuple[Turn, ...]


AgentSpec: TypeAlias = Playing | Scripted | Goal


@frozen(kw_only=True)
class Expect:
    """What a case must come to. None: not said; then what follows from the decisions is derived.

    `states` are the ends of the admitted operations in their order; `executed` counts executions at the host. `result`,
    `progress`, `artifacts` and `may_have_applied` are of the last answer of an operation.
    """

    decisions: tuple[str, ...] | None = None
    refused: Reason | None = None
    states: tuple[str, ...] | None = None
    executed: tuple[tuple[str, int], ...] | None = None
    result: tuple[tuple[str, Json], ...] = ()
    progress: int | None = None
    artifacts: int | None = None
    may_have_applied: bool | None = None
    asked: int | None = None
    generation: int | None = None
    steps: tuple[tuple[str, int], ...] = ()
    scores: tuple[tuple[str, float], ...] = ()


@frozen(kw_only=True)
class Override:
    """One row of a table or one value of a matrix axis: what it sets in place of the scenario's own.

    `run` and `expect` hold the fields that differ.
    """

    because: str = ""
    run: Mapping[str, Any] = field(factory=dict)
    eligible: tuple[str, ...] | None = None
    standing: tuple[str, ...] | None = None
    agent: AgentSpec | None = None
    person: Person | None = None
    faults: tuple[Fault, ...] | None = None
    expect: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Scenario:
    """One capability scenario file. `goal` is what is to be executed, once; `eligible` None is all operations."""

    id: str
    file: str
    because: str
    registry: str
    agent: AgentSpec
    goal: Wanted | None = None
    run: Run = Run()
    eligible: tuple[str, ...] | None = None
    standing: tuple[str, ...] = ()
    person: Person = Person.APPROVE
    servers: Servers = Servers.IN_PROCESS
    tags: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    expect: Expect = Expect()
    cases: tuple[tuple[str, Override], ...] = ()
    matrix: tuple[tuple[tuple[str, Override], ...], ...] = ()


class GoalOf(NamedTuple):
    """What is to be executed: an operation's id, and the SHA-256 of its parameters."""

    operation: str
    parameters: str


@frozen(kw_only=True)
class CapabilityCase:
    """One case, ready to run. `id` is folder/file/case and stable.

    `eligible` are the operations of the operator's policy, `standing` the authorities that its user consents to without
    being asked; `source` is a digest of the files that the case was made from.
    """

    id: str
    file: str
    because: str
    tags: tuple[str, ...]
    registry: Registry
    source: Digest
    agent: CapabilityAgent
    goals: tuple[GoalOf, ...]
    run: Run
    eligible: frozenset[str]
    standing: frozenset[str]
    person: Person
    servers: Servers
    faults: tuple[Fault, ...]
    expect: Expect

    @property
    def broker(self) -> str:
        """Always the capability broker."""
        return BROKER

    @property
    def policy(self) -> str:
        """The registry's id: what may be asked at all."""
        return self.registry.id

    @property
    def run_id(self) -> str:
        """The run's own name, or one made from the case's."""
        return self.run.run or self.id

    @property
    def only_models(self) -> bool:
        """Whether the host dies in mid-write: of a process nobody can say how much of that it has read."""
        return any(each.at is At.WRITE and each.kind is Kind.CRASH and each.value == Dies.HOST for each in self.faults)
