"""What every broker needs to write receipts: the ledger, clock and chance, and the key of argument digests."""

from __future__ import annotations

from itertools import islice
from typing import Final

from assisted_benchmark.kernel.canonical import Json, parse
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.ledger.receipts import verify

EVENT: Final = "event"

_RECEIPT_ID_BYTES: Final = 16


class ReceiptDesk:
    """A broker's desk: its own kinds of receipts are written by what extends this."""

    __slots__ = ("_arguments_key", "_token", "clock", "ledger")

    def __init__(self, ledger: Ledger, clock: Clock, chance: Chance, keys: KeyRing) -> None:
        self.ledger = ledger
        self.clock = clock
        self._token = chance.token
        self._arguments_key = keys.key(Purpose.RECEIPT_ARGUMENTS)

    def keyed(self, arguments: bytes) -> str:
        """The digest of arguments that a receipt may hold: without the key, not even `hold` can be guessed."""
        return self._arguments_key.mac(arguments).hex()

    def receipt_id(self) -> str:
        """A random name that an agent may hear."""
        return self._token(_RECEIPT_ID_BYTES).hex()

    def history(self, run: str) -> tuple[dict[str, Json], ...]:
        """The run's receipts, believed only as a whole: none unless the chain verifies to its anchored end.

        Raises:
            LedgerError: the ledger cannot answer.
            IntegrityError: chain_broken and the like; something was edited, moved or cut off.
        """
        ledger = self.ledger
        # The end first: receipts that are added meanwhile lie beyond it.
        head = ledger.head(run)
        lines = list(islice(ledger.receipts(run), head.length))
        found = verify(lines, run=run, ledger_id=ledger.id, head=head, table=ledger.table).findings
        if found:
            raise IntegrityError(found[0].reason, f"the receipts of the run do not verify: {found[0].detail}")
        return tuple(parse(line) for line in lines)
