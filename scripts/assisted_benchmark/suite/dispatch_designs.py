"""Ways to dispatch a group once: the ledger's, and three that look right and are not.

Each design is driven step by step with a hook that is called by name at every durable step, so that
a crash (or another dispatcher) can be put exactly there. The bad ones are the controls of the kill
harness: a proof by killing counts only if it catches them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import apsw

from assisted_benchmark.kernel.clock import Clock, SystemClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.protocol import Claimed, Draft
from assisted_benchmark.ledger.receipts import DECISION, OUTCOME, verify
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.live_policy.states import LIVE_TABLE, State

Send: TypeAlias = Callable[[bytes], None]
Step: TypeAlias = Callable[[str], None]

BEFORE_CLAIM: Final = "before_claim"
AFTER_CLAIM: Final = "after_claim"
AFTER_SEND: Final = "after_send"
AFTER_SETTLE: Final = "after_settle"
STEPS: Final = (BEFORE_CLAIM, AFTER_CLAIM, AFTER_SEND, AFTER_SETTLE)

_CANDIDATE: Final = digest_of("candidate@1", b"the only one")
_KEYS: Final = KeyRing("kills", b"a key that guards nothing at all")


class Design(Protocol):
    """A store of groups and a way to dispatch them."""

    def open_run(self, run: str, groups: Sequence[bytes]) -> None:
        """Make the run and its groups, if it does not exist."""

    def recover(self, run: str) -> None:
        """After a crash, before anything is dispatched."""

    def dispatch(self, run: str, group: bytes, send: Send, step: Step) -> None:
        """Send the group's call, unless it was sent before."""

    def unresolved(self, groups: Sequence[bytes]) -> int:
        """How many of the groups ended without a known outcome."""

    def unsound(self) -> int:
        """How many runs have receipts that do not verify."""

    def close(self) -> None:
        """Let go of the store."""


class Ledgered:
    """What we do: the durable marker, then the send, then the outcome."""

    def __init__(self, folder: Path, clock: Clock | None = None, durability: Durability = Durability.PROCESS) -> None:
        self._clock = clock or SystemClock()
        path, anchor = folder / "ledger.db", folder / "anchor"
        if path.exists():
            self.ledger = SqliteLedger.open(path, table=LIVE_TABLE, keys=_KEYS, anchor=anchor, durability=durability)
        else:
            self.ledger = SqliteLedger.create(
                path, ledger_id="kills", table=LIVE_TABLE, keys=_KEYS, anchor=anchor, durability=durability
            )

    def open_run(self, run: str, groups: Sequence[bytes]) -> None:
        # Every other group comes later than its run, so that both kinds are killed.
        self.ledger.open_run(run, b"{}", groups[::2])
        for group in groups[1::2]:
            self.ledger.open_group(run, group, b"{}", self._draft(DECISION, "opened"))

    def recover(self, run: str) -> None:
        self.ledger.recover(run, self._clock.now())

    def dispatch(self, run: str, group: bytes, send: Send, step: Step) -> None:
        step(BEFORE_CLAIM)
        permit = Admitted(group, _CANDIDATE, "server", "tool", b"{}")
        claimed = self.ledger.claim(permit, run, self._draft(DECISION, "admitted"))
        if not isinstance(claimed, Claimed):
            return
        step(AFTER_CLAIM)
        send(group)
        step(AFTER_SEND)
        self.ledger.settle(claimed, State.SUCCEEDED, self._draft(OUTCOME, "succeeded"))
        step(AFTER_SETTLE)

    def unresolved(self, groups: Sequence[bytes]) -> int:
        rows = [self.ledger.row(group) for group in groups]
        return sum(row is not None and row.state == State.UNRESOLVED for row in rows)

    def unsound(self) -> int:
        return sum(not self._verified(run) for run in self.ledger.runs())

    def close(self) -> None:
        self.ledger.close()

    def _verified(self, run: str) -> bool:
        ledger = self.ledger
        head = ledger.head(run)
        return verify(ledger.receipts(run), run=run, ledger_id=ledger.id, head=head, table=LIVE_TABLE).sound

    def _draft(self, kind: str, reason: str) -> Draft:
        return Draft(kind, "receipt", self._clock.now(), reason, candidate=_CANDIDATE, server="server", tool="tool")


class _Naive:
    """A table of states without a ledger around it."""

    def __init__(self, folder: Path) -> None:
        self._database = apsw.Connection(str(folder / "naive.db"))
        self._database.set_busy_timeout(10_000)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS groups (name BLOB PRIMARY KEY, run TEXT, state TEXT)")

    def open_run(self, run: str, groups: Sequence[bytes]) -> None:
        with self._database:
            rows = [(group, run) for group in groups]
            self._database.executemany("INSERT OR IGNORE INTO groups VALUES (?, ?, 'sealed')", rows)

    def recover(self, run: str) -> None:
        self._database.execute("UPDATE groups SET state = 'unresolved' WHERE run = ? AND state = 'dispatching'", (run,))

    def unresolved(self, groups: Sequence[bytes]) -> int:
        return sum(self._state(group) == "unresolved" for group in groups)

    def unsound(self) -> int:
        return 0  # it keeps no receipts

    def close(self) -> None:
        self._database.close()

    def _state(self, group: bytes) -> str:
        return str(self._database.execute("SELECT state FROM groups WHERE name = ?", (group,)).get)

    def _set(self, run: str, group: bytes, state: str) -> None:
        self._database.execute("UPDATE groups SET state = ? WHERE name = ? AND run = ?", (state, group, run))

    def _claim(self, group: bytes) -> bool:
        self._database.execute("UPDATE groups SET state = 'dispatching' WHERE name = ? AND state = 'sealed'", (group,))
        return self._database.changes() == 1


class SendFirst(_Naive):
    """Sends, then writes down that it did: a crash in between forgets the send."""

    def dispatch(self, run: str, group: bytes, send: Send, step: Step) -> None:
        if self._state(group) != "sealed":
            return
        step(BEFORE_CLAIM)
        send(group)
        step(AFTER_SEND)
        self._set(run, group, "succeeded")
        step(AFTER_SETTLE)


class RecoverToSealed(_Naive):
    """Claims rightly, but after a crash takes an open claim for one that was never sent."""

    def recover(self, run: str) -> None:
        self._database.execute("UPDATE groups SET state = 'sealed' WHERE run = ? AND state = 'dispatching'", (run,))

    def dispatch(self, run: str, group: bytes, send: Send, step: Step) -> None:
        step(BEFORE_CLAIM)
        if not self._claim(group):
            return
        step(AFTER_CLAIM)
        send(group)
        step(AFTER_SEND)
        self._set(run, group, "succeeded")
        step(AFTER_SETTLE)


class ReadThenUpdate(_Naive):
    """Lets a read authorise: two dispatchers read `sealed`, and both send."""

    def dispatch(self, run: str, group: bytes, send: Send, step: Step) -> None:
        if self._state(group) != "sealed":
            return
        step(BEFORE_CLAIM)
        self._set(run, group, "dispatching")
        step(AFTER_CLAIM)
        send(group)
        step(AFTER_SEND)
        self._set(run, group, "succeeded")
        step(AFTER_SETTLE)


CONTROLS: Final[dict[str, Callable[[Path], Design]]] = {
    "send_first": SendFirst,
    "recover_to_sealed": RecoverToSealed,
    "read_then_update": ReadThenUpdate,
}
