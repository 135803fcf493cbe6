"""Where the broker writes: the drafts of receipts about proposals and what becomes of them."""

from __future__ import annotations

from assisted_benchmark.ledger.protocol import Draft
from assisted_benchmark.ledger.receipt_desk import EVENT, ReceiptDesk
from assisted_benchmark.ledger.receipts import DECISION, OUTCOME
from assisted_benchmark.mutation.compiler import Compiled
from assisted_benchmark.mutation.proposal import Proposal, Session

__all__ = ["DECISION", "EVENT", "OUTCOME", "Desk"]

_RUN_RECORD = b'{"broker":"mutation"}'


class Desk(ReceiptDesk):
    """The desk of the mutation broker."""

    __slots__ = ()

    def open_run(self, run: str) -> bool:
        """Make the session's run in the ledger; False if it is there.

        Raises:
            LedgerError: the ledger cannot be used.
        """
        return self.ledger.open_run(run, _RUN_RECORD, ())

    def draft(self, kind: str, reason: str, *, server: str = "", change: str = "", detail: str = "") -> Draft:
        """A receipt that names no request."""
        return self._draft(kind, reason, "", server, change, "", detail)

    def about(self, kind: str, reason: str, proposal: Proposal, server: str, *, detail: str = "") -> Draft:
        """A receipt about a proposal: its request by digest, and its body by a keyed digest."""
        return self._draft(kind, reason, proposal.bound, server, proposal.change, proposal.arguments, detail)

    def of_request(self, kind: str, reason: str, compiled: Compiled, server: str, *, detail: str = "") -> Draft:
        """The same of a request that never became a proposal."""
        arguments = self.keyed(compiled.body)
        return self._draft(kind, reason, compiled.digest, server, compiled.change, arguments, detail)

    def _draft(
        self, kind: str, reason: str, request: str, server: str, change: str, arguments: str, detail: str
    ) -> Draft:
        now = self.clock.now()
        return Draft(kind, self.receipt_id(), now, reason, "", "", request, server, change, arguments, "", detail)

    def recorded(self, session: Session, draft: Draft) -> str:
        """Write down what changes no state, in the session's chain; the receipt's id.

        Raises:
            LedgerError: the ledger cannot be used.
        """
        self.open_run(session.run)
        self.ledger.record(session.run, draft)
        return draft.id
