"""What cases of every broker are played with: a clock and chance put anew for each, a ledger that can be cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from assisted_benchmark.kernel.chance import Chance, SeededChance
from assisted_benchmark.kernel.clock import SECOND, Instant, ManualClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed, Draft, Head, Ledger, Lost, Row
from assisted_benchmark.ledger.states import TransitionTable

BOOT: Final = "boot-1"


class BrokerDiedError(BaseException):
    """The broker's process ended here. No handler for errors may catch it: the dead handle nothing."""


class CaseClock(ManualClock):
    """A manual clock that can be put back for the next case."""

    def begin(self, wall_ns: int) -> None:
        """As at the start of a case."""
        super().__init__(wall_ns, SECOND, BOOT)


class CaseChance:
    """The same bytes for the same run seed and case, whatever ran before it."""

    _chance: Chance

    def begin(self, seed: str) -> None:
        """As at the start of a case."""
        self._chance = SeededChance(seed)

    def token(self, size: int) -> bytes:
        return self._chance.token(size)


class CutOff:
    """A ledger that can become unreachable. What is behind it stays as it was."""

    def __init__(self, inner: Ledger) -> None:
        self.inner = inner
        self.down = False

    @property
    def id(self) -> str:
        return self.inner.id

    @property
    def table(self) -> TransitionTable:
        return self.inner.table

    def _reach(self) -> Ledger:
        if self.down:
            raise LedgerError(Reason.STORE_UNAVAILABLE, "the ledger cannot be reached")
        return self.inner

    def open_run(self, run: str, record: bytes, groups: Sequence[bytes]) -> bool:
        return self._reach().open_run(run, record, groups)

    def run_record(self, run: str) -> bytes | None:
        return self._reach().run_record(run)

    def open_group(self, run: str, group: bytes, record: bytes, receipt: Draft) -> bool:
        return self._reach().open_group(run, group, record, receipt)

    def group_record(self, group: bytes) -> bytes | None:
        return self._reach().group_record(group)

    def groups(self, run: str) -> Iterator[tuple[bytes, Row]]:
        return self._reach().groups(run)

    def row(self, group: bytes) -> Row | None:
        return self._reach().row(group)

    def claim(self, permit: Admitted, run: str, receipt: Draft) -> Claimed | Lost:
        return self._reach().claim(permit, run, receipt)

    def settle(self, claimed: Claimed, state: str, receipt: Draft) -> None:
        self._reach().settle(claimed, state, receipt)

    def move(self, group: bytes, run: str, before: str, after: str, receipt: Draft) -> bool:
        return self._reach().move(group, run, before, after, receipt)

    def record(self, run: str, receipt: Draft, refused: bytes | None = None) -> int:
        return self._reach().record(run, receipt, refused)

    def recover(self, run: str, at: Instant) -> tuple[bytes, ...]:
        return self._reach().recover(run, at)

    def receipts(self, run: str) -> Iterator[bytes]:
        return self._reach().receipts(run)

    def head(self, run: str) -> Head:
        return self._reach().head(run)

    def runs(self) -> tuple[str, ...]:
        return self._reach().runs()

    def close(self) -> None:
        self.inner.close()
