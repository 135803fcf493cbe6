"""A mutation scenario as frozen values: who proposes and confirms what, who is asked, what goes wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.changes import ChangeContract
from assisted_benchmark.mutation.store import CAPACITY, TTL_NS
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.mutation.agents import ChangeAgent
from assisted_benchmark.suite.mutation.faults import Fault

BROKER: Final = "mutation"
NOTHING: Final = Canonical(b"{}")
# What came of a confirmation whose question nobody came back with.
ASKED: Final = "asked"
# The one word that lets clients through that cannot ask.
ALLOWED: Final = "true"


@unique
class Human(StrEnum):
    """What comes back when a person is asked."""

    ACCEPT = "accept"  # accepted, with `confirm: true`
    ACCEPT_UNCONFIRMED = "accept_unconfirmed"  # accepted, with `confirm: false`
    ACCEPT_EMPTY = "accept_empty"  # accepted, with nothing filled in
    DECLINE = "decline"
    CANCEL = "cancel"  # the question was dismissed
    SILENT = "silent"  # nobody answers
    GARBAGE = "garbage"  # an answer of no known shape
    NOTHING = "nothing"  # null
    EXCEPTION = "exception"  # the client fails, or is gone


@unique
class Asks(StrEnum):
    """How the client can ask a person."""

    FORM = "form"
    NONE = "none"
    URL_ONLY = "url_only"


@unique
class Era(StrEnum):
    """How the question travels: inside the one call, or as a result that the client comes back with."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


@unique
class Recall(StrEnum):
    """How the agent comes back with the answer, in the stateless era."""

    HONEST = "honest"
    FORGED = "forged"  # with a state that nobody gave out
    WITHOUT_STATE = "without_state"
    STALE = "stale"  # with the last state that was given out, and without asking anew
    OTHER_TOKEN = "other_token"  # noqa: S105 - a word, no secret: the state of this call, the token of none
    OTHER_SESSION = "other_session"
    NEVER = "never"


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
    session: str = "agent"
    start_ns: int = 1_900_000_000 * SECOND


@frozen(kw_only=True)
class Store:
    """Where proposals wait. `durable` outlives a restart of the broker."""

    durable: bool = True
    capacity: int = CAPACITY
    ttl_ns: int = TTL_NS


@frozen(kw_only=True)
class Client:
    """What the agent's client can do."""

    asks: Asks = Asks.FORM
    era: Era = Era.HANDSHAKE


@frozen(kw_only=True)
class Propose:
    """A proposal. `raw` holds its very arguments; else the contract's example of a change type is altered.

    `change` sets fields, by name or by JSON pointer, and `leave_out` leaves some out.
    """

    named: str = ""
    change: Canonical = NOTHING
    leave_out: tuple[str, ...] = ()
    spec: Canonical | None = None
    raw: bytes | None = None


@frozen(kw_only=True)
class Confirm:
    """A confirmation: of the `last` or `first` token given out, `again` of the one before, or of a literal one."""

    token: str = ""
    raw: bytes | None = None
    human: Human | None = None
    recall: Recall = Recall.HONEST


@frozen(kw_only=True)
class Turn:
    """One call of an agent, and what its author says must come of it. `session` is another principal's, if any."""

    move: Propose | Confirm
    session: str = ""
    expected: str = ""


@frozen(kw_only=True)
class Playing:
    """An agent that proposes the contract's example of this type and confirms it."""

    change: str


@frozen(kw_only=True)
class Scripted:
    """An agent that makes these calls whatever it hears."""

    turns: tuple[Turn, ...]


AgentSpec: TypeAlias = Playing | Scripted | Goal


@frozen(kw_only=True)
class Expect:
    """What a case must come to. None: not said; then what follows from the decisions is derived.

    `status`, `executed`, `token`, `checks` and `late_cancel` are of the last confirmation.
    """

    decisions: tuple[str, ...] | None = None
    refused: Reason | None = None
    status: str | None = None
    executed: bool | str | None = None
    token: str | None = None
    checks: tuple[tuple[str, str], ...] = ()
    price: str | None = None
    late_cancel: bool | None = None
    dry: int | None = None
    real: int | None = None
    created: tuple[tuple[str, int], ...] | None = None
    ends: str | None = None
    scores: tuple[tuple[str, float], ...] = ()


@frozen(kw_only=True)
class Override:
    """One row of a table or one value of a matrix axis: what it sets in place of the scenario's own.

    `run`, `client`, `store` and `expect` hold the fields that differ.
    """

    because: str = ""
    run: Mapping[str, Any] = field(factory=dict)
    client: Mapping[str, Any] = field(factory=dict)
    store: Mapping[str, Any] = field(factory=dict)
    allow_unconfirmed: str | None = None
    agent: AgentSpec | None = None
    human: Human | None = None
    faults: tuple[Fault, ...] | None = None
    expect: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Scenario:
    """One mutation scenario file. `goal` is the change type whose example is to be there in the end, once."""

    id: str
    file: str
    because: str
    changes: str
    agent: AgentSpec
    goal: str = ""
    run: Run = Run()
    client: Client = Client()
    store: Store = Store()
    allow_unconfirmed: str | None = None
    human: Human = Human.ACCEPT
    servers: Servers = Servers.IN_PROCESS
    tags: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    expect: Expect = Expect()
    cases: tuple[tuple[str, Override], ...] = ()
    matrix: tuple[tuple[tuple[str, Override], ...], ...] = ()


@frozen(kw_only=True)
class MutationCase:
    """One case, ready to run. `id` is folder/file/case and stable.

    `goals` are the bodies, by SHA-256, that are to be created, each once; `source` is a digest of the files that the
    case was made from.
    """

    id: str
    file: str
    because: str
    tags: tuple[str, ...]
    contract: ChangeContract
    source: Digest
    agent: ChangeAgent
    goals: tuple[str, ...]
    run: Run
    client: Client
    store: Store
    allow_unconfirmed: str | None
    human: Human
    servers: Servers
    faults: tuple[Fault, ...]
    expect: Expect

    @property
    def broker(self) -> str:
        """Always the mutation broker."""
        return BROKER

    @property
    def policy(self) -> str:
        """The change contract's id: what may be changed at all."""
        return self.contract.id

    @property
    def run_id(self) -> str:
        """The run's own name, or one made from the case's."""
        return self.run.run or self.id

    @property
    def only_models(self) -> bool:
        """Never: whatever the endpoint's model does, its process does."""
        return False
