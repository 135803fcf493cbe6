"""The mutation broker: propose, a dry run decides, a person confirms. The only way to a change.

The way of one change:

    propose   the whole spec is checked and compiled to the exact request; the endpoint really runs it dry; its
              price is asked; a token is given out that is bound to the request's digest
    consume   the first confirmation uses the token up, whatever its end
    compare   the stored spec is compiled again: only the bound request goes on
    ask       a person sees every field of that request
    look      the time and the bytes, once more
    claim     the durable marker; from here on it may be out, and is never sent again
    gate      time, bytes and cancellation, right before the write
    send      those very bytes, once
    judge     the endpoint's answer; what is unclear is unresolved
    settle    the outcome and its receipt

Asking is resumable, so that both protocol eras are faces of it: `begin` gives `NeedsAnswer`, and `resume` goes on
with its `state` and the client's raw answer (or why there is none). Where the client cannot ask, `begin` refuses, or
sends at once where the operator allowed that.

An acceptance proves that the client said so; that a person read it is not proven. `recover` belongs to a start, when no
other process carries changes over this ledger: what was being confirmed is refused, what may be out is unresolved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.answers import Answer
from assisted_benchmark.mutation.changes import ChangeContract, ChangeType
from assisted_benchmark.mutation.checks import CHECKS, Checks
from assisted_benchmark.mutation.compiler import Compiled, compile_change
from assisted_benchmark.mutation.confirming import Confirmer
from assisted_benchmark.mutation.desk import DECISION
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.ports import Endpoint
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.proposing import Proposer
from assisted_benchmark.mutation.questions import Questions
from assisted_benchmark.mutation.results import Confirmed, NeedsAnswer, Proposed, Refusal, recorded
from assisted_benchmark.mutation.sending import Sender
from assisted_benchmark.mutation.store import ProposalStore

ALLOW_UNCONFIRMED: Final = "EQUINIX_MCP_ALLOW_UNCONFIRMED_MUTATIONS"
WAIT_NS: Final = 300 * SECOND
REPLY_WITHIN_NS: Final = 30 * SECOND


def _no_experiment(_: Moment) -> None:
    """Nothing strikes."""


def allows_unconfirmed(environment: Mapping[str, str]) -> bool:
    """Whether the operator lets changes through whose client cannot ask a person: exactly the word `true` does."""
    return environment.get(ALLOW_UNCONFIRMED) == "true"


def _never() -> bool:
    return False


class MutationBroker:
    """One pair of tools over one contract, one endpoint and one store. Threads may share it; the ledger orders them.

    Another pair's token is unknown here, unless the two were given the same store or ledger. `allow_unconfirmed` is the
    operator's word that the host asks a person itself (see `allows_unconfirmed`; the edge reads the environment).
    `checks`, `compiler` and `on_moment` are for experiments: a broker that lacks a check, a mapping
    that drifts, and faults that strike at a named moment.
    """

    def __init__(
        self,
        *,
        contract: ChangeContract,
        endpoint: Endpoint,
        store: ProposalStore,
        allow_unconfirmed: bool = False,
        wait_ns: int = WAIT_NS,
        reply_within_ns: int = REPLY_WITHIN_NS,
        checks: Checks = CHECKS,
        compiler: Callable[[ChangeType, Json], Compiled] = compile_change,
        on_moment: Callable[[Moment], None] = _no_experiment,
    ) -> None:
        self._contract_id = contract.id
        self._store = store
        self._questions = Questions(store.clock, store.chance)
        self._proposer = Proposer(
            contract=contract,
            endpoint=endpoint,
            store=store,
            checks=checks,
            compiler=compiler,
            reply_within_ns=reply_within_ns,
            on_moment=on_moment,
        )
        sender = Sender(
            contract=contract,
            endpoint=endpoint,
            store=store,
            checks=checks.sending,
            reply_within_ns=reply_within_ns,
            on_moment=on_moment,
        )
        self._confirmer = Confirmer(
            contract=contract,
            store=store,
            sender=sender,
            questions=self._questions,
            checks=checks,
            compiler=compiler,
            allow_unconfirmed=allow_unconfirmed,
            wait_ns=wait_ns,
            on_moment=on_moment,
        )

    def propose(self, session: Session, raw: bytes) -> Proposed | Refusal:
        """The arguments `{"change_type": …, "spec": {…}}` of a propose call, carried out; nothing is provisioned.

        Exactly one dry run is sent for a spec without faults, and none else.

        Raises:
            IntegrityError: the ledger's rows do not verify.
        """
        self._confirmer.sweep()
        return self._proposer.propose(session, raw)

    def begin(
        self, session: Session, raw: bytes, can_ask: bool, cancelled: Callable[[], bool] = _never
    ) -> NeedsAnswer | Confirmed | Refusal:
        """The arguments `{"token": …}` of a confirm call. `can_ask` says that the client can show a person a form.

        `cancelled` is asked at each point where a cancellation still stops something, and once after the send.

        Raises:
            IntegrityError: the ledger's rows do not verify.
        """
        return self._confirmer.begin(session, raw, can_ask, cancelled)

    def resume(
        self, session: Session, raw: bytes, state: str, answer: Answer, cancelled: Callable[[], bool] = _never
    ) -> Confirmed | Refusal:
        """Go on where `begin` asked: the same arguments, its `state`, and the client's raw answer or a `Silence`.

        Raises:
            IntegrityError: the ledger's rows do not verify.
        """
        return self._confirmer.resume(session, raw, state, answer, cancelled)

    def refuse_malformed(self, session: Session, reason: Reason, detail: str) -> Refusal:
        """Record that the agent's bytes did not even become a call. The receipt has no detail: it may quote them."""
        draft = self._store.desk.draft(DECISION, reason.value, server=self._contract_id)
        return recorded(Refusal(reason, detail), self._store.desk, session, draft)

    def recover(self) -> tuple[bytes, ...]:
        """On start-up: what a crash left confirming is refused, and what it left dispatching is unresolved."""
        ledger, clock = self._store.ledger, self._store.clock
        return tuple(key for run in ledger.runs() for key in ledger.recover(run, clock.now()))

    def close(self) -> None:
        """Every question that is still open has timed out. The store and its ledger are the caller's, and stay open."""
        self._confirmer.close()
