"""What every ledger keeps: what was used, for good, and a receipt of everything that was decided.

A ledger's rows are groups. A group is born in the table's initial state, with its run by `open_run` or later
by `open_group`, and from there follows the `TransitionTable` only. Every change and its receipt are one
transaction. The claim (ready -> claimed) is the durable marker: it is on disk before `claim` returns, and only
its `Claimed` can be sent. An error in a claim means: do not send.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from attrs import frozen

from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.ledger.states import TransitionTable


class Draft(NamedTuple):
    """What a receipt says, before the ledger gives it its place in its run's chain.

    `kind` is decision, outcome, reconciliation or event. `reason` is a Reason's value, or
    `admitted` / `succeeded` and the like where nothing was refused. `arguments` is a keyed
    digest, `detail` is already redacted; neither holds a value that the agent or a server
    could have made secret. `id` is the random receipt id that the agent may hear. Where the
    ledger itself knows the group and its states (every call that names a group), it writes
    those into the receipt, the group as its key in hex, and not the draft's words.
    """

    kind: str
    id: str
    at: Instant
    reason: str
    grant: str = ""
    group: str = ""
    candidate: str = ""
    server: str = ""
    tool: str = ""
    arguments: str = ""
    state: str = ""
    detail: str = ""


class Row(NamedTuple):
    """A group as the ledger has it. `candidate` is empty until one was claimed."""

    state: str
    candidate: str = ""
    refusals: int = 0


class Head(NamedTuple):
    """The end of a run's receipt chain: how many receipts there are, and the last one's digest."""

    length: int
    digest: Digest


class Claimed(NamedTuple):
    """A permit whose marker is durable: the only thing a router sends. Only ledgers make one."""

    permit: Admitted
    run: str


@frozen
class Lost:
    """The claim found the group in another state than the table's `ready`: nothing may be sent."""

    state: str


class Ledger(Protocol):
    """One protocol for memory, SQLite and (later) PostgreSQL; one contract suite over all.

    Every method raises LedgerError where the store cannot answer, IntegrityError where it
    answers with something that does not verify.
    """

    @property
    def id(self) -> str:
        """This ledger's id, which grants seal."""

    @property
    def table(self) -> TransitionTable:
        """The transitions this ledger allows."""

    def open_run(self, run: str, record: bytes, groups: Sequence[bytes]) -> bool:
        """Make a run and its groups in the initial state. False, and nothing is changed, if the run exists.

        `record` (canonical bytes) is the runner's binding of the run, kept for L9.
        """

    def run_record(self, run: str) -> bytes | None:
        """The record given to `open_run`, or None."""

    def open_group(self, run: str, group: bytes, record: bytes, receipt: Draft) -> bool:
        """Add a group to a run, in the initial state, with its receipt. False, and nothing is changed, if it exists.

        `record` (canonical bytes) is kept beside the group and never changes. What this costs, and each later
        change of the group, does not grow with the number of groups of the run.
        """

    def group_record(self, group: bytes) -> bytes | None:
        """The record given to `open_group`; None for a group without one."""

    def groups(self, run: str) -> Iterator[tuple[bytes, Row]]:
        """The run's groups as they stand, in the order in which they were opened."""

    def row(self, group: bytes) -> Row | None:
        """The group's row, or None. A read: it never authorises."""

    def claim(self, permit: Admitted, run: str, receipt: Draft) -> Claimed | Lost:
        """Write the durable marker, if the group is `ready`; the receipt only then."""

    def settle(self, claimed: Claimed, state: str, receipt: Draft) -> None:
        """The claimed group comes to `state`."""

    def move(self, group: bytes, run: str, before: str, after: str, receipt: Draft) -> bool:
        """Any other transition of the table. False, without a receipt, if the group is not in `before`."""

    def record(self, run: str, receipt: Draft, refused: bytes | None = None) -> int:
        """Append a receipt that changes no state; if `refused` names a group, count one refusal against it.

        Returns the group's refusals so far (0 without a group).
        """

    def recover(self, run: str, at: Instant) -> tuple[bytes, ...]:
        """After a crash: every group of the run that is in flight ends as `after_crash` says, with a receipt.

        Returns those groups, sorted.
        """

    def receipts(self, run: str) -> Iterator[bytes]:
        """The run's receipts, one canonical JSON line each (without line end), in order."""

    def head(self, run: str) -> Head:
        """The anchored end of the run's chain."""

    def runs(self) -> tuple[str, ...]:
        """The ids of all runs, sorted."""

    def close(self) -> None:
        """Let go of files. Idempotent."""
