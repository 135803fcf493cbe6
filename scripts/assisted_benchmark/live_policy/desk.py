"""Where the broker writes: receipts of refusals and events, and the drafts of what the ledger moves."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import LIVE_ORDER, Reason
from assisted_benchmark.ledger.protocol import Draft, Ledger
from assisted_benchmark.ledger.receipt_desk import EVENT, ReceiptDesk
from assisted_benchmark.ledger.receipts import DECISION
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.opened import OpenGrant
from assisted_benchmark.live_policy.states import State

RECONCILIATION: Final = "reconciliation"

# The chain of what was refused under a run that the ledger does not know.
STRAY_RUN: Final = "-"

_BEFORE_STORE: Final = frozenset(LIVE_ORDER[: LIVE_ORDER.index(Reason.STORE_UNAVAILABLE)])


class Desk(ReceiptDesk):
    """The desk of the live broker: it knows what a grant's calls are, and counts refusals against its groups."""

    __slots__ = ("_known",)

    def __init__(self, ledger: Ledger, clock: Clock, chance: Chance, keys: KeyRing) -> None:
        super().__init__(ledger, clock, chance, keys)
        self._known: dict[Digest, str] = {}

    def keyed_once(self, permit: Admitted) -> str:
        """The same of a sealed candidate's arguments, computed once a candidate."""
        known = self._known.get(permit.candidate)
        if known is None:
            known = self._known[permit.candidate] = self.keyed(permit.arguments)
        return known

    def draft(
        self,
        kind: str,
        reason: str,
        session: Session,
        permit: Admitted | None = None,
        *,
        detail: str = "",
    ) -> Draft:
        """A receipt about a call that was admitted, or about the grant as a whole."""
        now = self.clock.now()
        if permit is None:
            return Draft(kind, self.receipt_id(), now, reason, session.grant, detail=detail)
        return Draft(
            kind,
            self.receipt_id(),
            now,
            reason,
            session.grant,
            permit.group.hex(),
            permit.candidate,
            permit.server,
            permit.tool,
            self.keyed_once(permit),
            detail=detail,
        )

    def refuse(
        self,
        session: Session,
        grant: OpenGrant | None,
        reason: Reason,
        detail: str,
        *,
        checked: tuple[str, ...] = (),
        call: tuple[str, str, bytes] | None = None,
        nearest: str = "",
    ) -> Refused:
        """Write down a refusal and give it back. `call` is (server, tool, arguments), where there is one.

        Refusals by the grant's own session count against its open group, which is exhausted when
        the policy's bound is reached. Nobody else's count.
        """
        own = grant is not None and session == grant.session and grant.standing.status == State.SEALED
        draft = self._refusal(session, reason, detail, call)
        try:
            if grant is None or not own:
                self.ledger.record(self._chain(session.run), draft)
            else:
                self._count(grant, draft)
        except LedgerError as error:
            # Without a store there is no receipt; an earlier check's reason stands all the same.
            kept = reason if reason in _BEFORE_STORE else Reason.STORE_UNAVAILABLE
            return Refused(kept, f"{detail}; no receipt could be written: {error.detail}", None, checked, nearest)
        return Refused(reason, detail, draft.id, checked, nearest)

    def _count(self, grant: OpenGrant, draft: Draft) -> None:
        key, run = grant.standing.key, grant.session.run
        count = self.ledger.record(run, draft, refused=key)
        if count >= grant.plan.policy.max_refusals:
            spent = self.draft(EVENT, Reason.EXHAUSTED.value, grant.session, detail=f"{count} refusals")
            self.ledger.move(key, run, State.SEALED, State.EXHAUSTED, spent)
            grant.refresh(self.ledger)

    def _refusal(self, session: Session, reason: Reason, detail: str, call: tuple[str, str, bytes] | None) -> Draft:
        server, tool, arguments = ("", "", "") if call is None else (call[0], call[1], self.keyed(call[2]))
        return Draft(
            DECISION,
            self.receipt_id(),
            self.clock.now(),
            reason.value,
            session.grant,
            server=server,
            tool=tool,
            arguments=arguments,
            detail=detail,
        )

    def _chain(self, run: str) -> str:
        """The run whose chain holds a refusal: the session's, if the ledger knows it."""
        if self.ledger.run_record(run) is not None:
            return run
        self.ledger.open_run(STRAY_RUN, b"{}", ())
        return STRAY_RUN
