"""Where the broker writes: the receipts of refusals and events, and the drafts of what the ledger moves."""

from __future__ import annotations

from assisted_benchmark.capability.lineage import Asked
from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Draft, Ledger
from assisted_benchmark.ledger.receipt_desk import EVENT, ReceiptDesk
from assisted_benchmark.ledger.receipts import DECISION


class Desk(ReceiptDesk):
    """The desk of one capability broker: all that it writes belongs to its one run."""

    __slots__ = ("run",)

    def __init__(self, ledger: Ledger, run: str, clock: Clock, chance: Chance, keys: KeyRing) -> None:
        super().__init__(ledger, clock, chance, keys)
        self.run = run

    def draft(
        self, kind: str, reason: str, asked: Asked, instance: str, *, receipt_id: str, arguments: str, detail: str = ""
    ) -> Draft:
        """A receipt about an operation that was admitted; the ledger names the group that it moves, and its states.

        All receipts of one operation have one id, which the caller hears; `arguments` is their keyed digest.
        """
        lineage, now = asked.lineage, self.clock.now()
        return Draft(
            kind,
            receipt_id,
            now,
            reason,
            lineage.grant,
            "",
            asked.request_hash,
            instance,
            lineage.operation,
            arguments,
            detail=detail,
        )

    def refuse(
        self, reason: Reason, detail: str, *, checked: tuple[str, ...] = (), instance: str = "", operation: str = ""
    ) -> Refused:
        """Write down a refusal and give it back; without a store there is no receipt, and the refusal stands."""
        receipt_id = self.receipt_id()
        draft = Draft(
            DECISION, receipt_id, self.clock.now(), reason.value, server=instance, tool=operation, detail=detail
        )
        try:
            self.ledger.record(self.run, draft)
        except LedgerError as error:
            return Refused(reason, f"{detail}; no receipt could be written: {error.detail}", None, checked)
        return Refused(reason, detail, receipt_id, checked)

    def tell(self, what: str, detail: str, *, grant: str = "", instance: str = "", operation: str = "") -> str:
        """Write down what moves no operation: a grant, a revocation, a cancellation, a read. The receipt's id.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        receipt_id = self.receipt_id()
        draft = Draft(EVENT, receipt_id, self.clock.now(), what, grant, server=instance, tool=operation, detail=detail)
        self.ledger.record(self.run, draft)
        return receipt_id
