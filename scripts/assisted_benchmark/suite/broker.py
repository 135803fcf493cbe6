"""What the suite asks of a broker's part: its kinds of file, a shelf that makes cases, a stage that plays them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from attrs import frozen

from assisted_benchmark.contract.pins import Pins
from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.shape import Shape
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import Problem
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.suite.case import Case, Servers
from assisted_benchmark.suite.journal import Ended
from assisted_benchmark.suite.ledgers import Ledgers
from assisted_benchmark.suite.result import CaseResult

CaseT = TypeVar("CaseT", bound=Case)
In = TypeVar("In", bound=Case, contravariant=True)
Out = TypeVar("Out", bound=Case, covariant=True)

PASSED: Final = "passed"
FAILED: Final = "failed"
NOT_ASKED: Final = "not asked"

# How the files of scenarios end, whichever broker's they are.
SCENARIO_SUFFIX: Final = ".scenario.yaml"


@frozen(kw_only=True)
class Explained:
    """One proposal laid open. `checks` are (name, passed, failed or not asked) in order; `diff` is against `nearest`.

    `word` is what came of it, `told` what the agent heard, `meaning` the reason's sentence.
    """

    text: str
    server: str
    tool: str
    word: str
    told: str
    meaning: str
    detail: str
    checks: tuple[tuple[str, str], ...]
    nearest: str = ""
    diff: tuple[str, ...] = ()


class Stage(Protocol[In]):
    """Plays the cases of one worker, one by one. What a case comes to depends on nothing that ran before it."""

    def play(self, case: In, run: str, servers: Servers) -> Ended:
        """One case to its end, as this run.

        Raises:
            HarnessError: the harness itself failed; the case has no verdict.
        """

    def explained(self) -> tuple[Explained, ...]:
        """Each proposal of the last case, laid open. For the harness's people alone."""

    def close(self) -> None:
        """Let go of what it started."""


class Pinned(NamedTuple):
    """What must be in the pins. `fits` says of another digest that what differs is told of elsewhere."""

    kind: str
    part: str
    name: str
    digest: Digest
    fits: Callable[[Digest], bool] = lambda _: False


class Found(NamedTuple, Generic[Out]):
    """What a scenario file holds: its id, its cases, and what is wrong with references to other files."""

    id: str
    cases: tuple[Out, ...]
    flaws: list[Flaw]


class Shelf(Protocol[Out]):
    """What one broker's cases are made of, as it was found under a root.

    `problems` are of its own files; `stock` has the digest of each of them by part of the pins, kind and id.
    `policies` are what a scenario can name as its authority.
    """

    @property
    def problems(self) -> Sequence[Problem]: ...

    @property
    def stock(self) -> Mapping[tuple[str, str], Mapping[str, Digest]]: ...

    @property
    def policies(self) -> Mapping[str, object]: ...

    def found(self, document: Document, data: bytes) -> Found[Out]:
        """The cases of a scenario file.

        Raises:
            DocumentError: it is none, with every fault.
        """

    def pinned(self, *, used: bool) -> Iterator[Pinned]:
        """What must be pinned: all of it, or what the cases found so far use."""

    def lint(self) -> Iterator[Problem]:
        """What this machine contradicts in its files."""

    def scaffold(self, scenario_id: str, policy: str, candidate: str | None, play: Callable[[Out], CaseResult]) -> str:
        """The text of a scenario that passes as it stands; `play` plays a case once.

        Raises:
            MisuseError: there is no such candidate.
        """


@frozen
class Kind:
    """One kind of scenario file, named by its `schema` key; `suffix` ends its name."""

    schema: str
    suffix: str
    shape: Shape
    title: str


@frozen(kw_only=True)
class Broker(Generic[CaseT]):
    """A broker as the suite has it. `name` is in every case and in every journal; `table` is its groups' own."""

    name: str
    kinds: tuple[Kind, ...]
    table: TransitionTable
    shelf: Callable[[Path, Pins | None], Shelf[CaseT]]
    stage: Callable[[Ledgers], Stage[CaseT]]
