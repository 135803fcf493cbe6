"""What the capability broker needs of the world: a host with live instances, and the broker's own person.

The plugin host's process implements `Host` over a socket, and so does a world that counts, which the tests
use. `Consent` is the broker's trusted composition root: scripted in a scenario, the operator's own terminal
otherwise, and never anything that the agent's client can reach. Both get a deadline and keep to it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum, unique
from typing import NamedTuple, Protocol, TypeAlias

from attrs import field, frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Deadline, Instant
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.ledger.protocol import Claimed


class Session(NamedTuple):
    """Who calls, as the harness says it, and never the agent's bytes: the run, the client, and its process."""

    run: str
    client: str
    peer: str


class Enrolled(NamedTuple):
    """A client's session as the host's service knows it."""

    id: str
    client: str
    peer: str


class Capability(NamedTuple):
    """What an instance says of one operation; an operation that it does not name is not there at all."""

    operation: str
    built: bool = True
    available: bool = True
    activated: bool = True


class Registered(NamedTuple):
    """An instance's place with the broker: where it was registered, and what it has published there."""

    registration: str
    publication: str


@frozen
class Instance:
    """One live instance, exactly."""

    id: str
    registration: str
    publication: str
    state_generation: int
    capabilities: tuple[Capability, ...]

    @property
    def registered(self) -> Registered:
        """What has to stay as it is while an operation is under way."""
        return Registered(self.registration, self.publication)

    def capability(self, operation: str) -> Capability | None:
        """What it says of this operation, if anything."""
        return next((each for each in self.capabilities if each.operation == operation), None)


@frozen
class Unavailable:
    """The host could not be asked, or did not answer: nothing was done. `ended` says that the session is over."""

    reason: Reason
    detail: str
    ended: bool = False


@frozen
class Blob:
    """One artifact that an operation made, whole."""

    data: bytes = field(repr=False)
    mime_type: str


@unique
class Word(StrEnum):
    """How the host says that an operation ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@frozen
class Ended:
    """The host's own terminal word on a request. `result` is a JSON text; `code` and `explanation` are its texts."""

    word: Word
    result: bytes
    wrote: Instant
    replied: Instant
    code: str = ""
    explanation: str = ""
    artifacts: tuple[Blob, ...] = ()


HostReply: TypeAlias = Ended | NotSent | Uncertain


class Envelope(NamedTuple):
    """What goes to the host beside the parameters, which the claimed permit holds."""

    request_id: str
    receipt_id: str
    request_hash: Digest
    grant: str
    client: str
    registration: str
    publication: str
    version: int
    expected_state_generation: int | None


class Cancellation(NamedTuple):
    """The canonical cancellation of one request on one publication of one instance."""

    request_id: str
    instance: str
    publication: str
    client: str
    reason: str


class Host(Protocol):
    """The one service through which live instances are reached. Nothing here retries."""

    def connect(self, session: Session, *, deadline: Deadline) -> Enrolled | Unavailable:
        """Connect and enrol a client."""

    def inventory(self, enrolled: Enrolled, *, deadline: Deadline) -> tuple[Instance, ...] | Unavailable:
        """Every live instance, as it is now."""

    def negotiate(
        self, enrolled: Enrolled, instance: Instance, offer: Json, *, deadline: Deadline
    ) -> Json | Unavailable:
        """Put an offer of protocol versions and features to an instance; its answer."""

    def request(
        self,
        claimed: Claimed,
        envelope: Envelope,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,
        progress: Callable[[Json], None],
    ) -> HostReply:
        """Write the request, if `gate()`, asked right before the write, is true; then wait for its end."""

    def cancel(self, enrolled: Enrolled, cancellation: Cancellation, *, deadline: Deadline) -> Unavailable | None:
        """Send the cancellation; None once it is sent. What came of the request, its own reply says."""

    def registered(self, instance: str) -> Registered | None:
        """Where an instance is registered right now, None if it is gone. Known here, without asking it."""


class Wanted(NamedTuple):
    """The authority that is asked for, with its whole lineage. `authority` is a profile or an operation's id."""

    client: str
    registration: str
    instance: str
    publication: str
    authority: str
    operations: tuple[str, ...]


class Prompt(NamedTuple):
    """One question to the broker's person. `id` names the decision that is asked for; it answers no other."""

    id: Digest
    wanted: Wanted


@unique
class Verdict(StrEnum):
    """How a prompt ends."""

    APPROVED = "approved"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"


class Answer(NamedTuple):
    """A decision as the composition root gives it: which prompt it answers, and how."""

    decision: str
    verdict: Verdict


class Consent(Protocol):
    """The broker's own person. Nothing that a client sends comes here but what the broker found to be so."""

    def standing(self, wanted: Wanted, *, deadline: Deadline) -> bool:
        """Whether a standing policy of the user consents already, without being asked."""

    def ask(self, prompt: Prompt, *, deadline: Deadline) -> Answer | None:
        """Ask; None if there came no decision at all. Where there is nobody to ask: `unavailable`."""
