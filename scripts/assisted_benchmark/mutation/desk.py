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
        return Draft(kind, self.receipt_id(), self.clock.now(), reason, server=server, tool=change, detail=detail)

    def about(self, kind: str, reason: str, proposal: Proposal, server: str, *, detail: str = "") -> Draft:
        """A receipt about a proposal: its request by digest."""
        return self.draft(kind, reason, server=server, change=proposal.change, detail=detail)._replace(
            candidate=proposal.bound
        )

    def of_request(self, kind: str, reason: str, compiled: Compiled, server: str, *, detail: str = "") -> Draft:
        """A receipt about a request: its digest, and its body by a keyed digest."""
        return self.draft(kind, reason, server=server, change=compiled.change, detail=detail)._replace(
            candidate=compiled.digest, arguments=self.keyed(compiled.body)
        )

    def recorded(self, session: Session, draft: Draft) -> str:
        """Write down what changes no state, in the session's chain; the receipt's id.

        Raises:
            LedgerError: the ledger cannot be used.
        """
        self.open_run(session.run)
        self.ledger.record(session.run, draft)
        return draft.id
