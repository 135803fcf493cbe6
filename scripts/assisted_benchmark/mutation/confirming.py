"""Confirming, in its one order: consume the token, recompile and compare, ask, look at the time again, send.

What is sent are the very bytes whose digest the token is bound to and the person was shown: they are
hashed once more right before. From the durable marker on the request may be out, and is never sent
again, whatever comes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from assisted_benchmark.kernel.canonical import Json, parse
from assisted_benchmark.kernel.errors import CanonicalError, HarnessError, InputError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.answers import DETAILS, REQUESTED_SCHEMA, Answer, Status, status_of
from assisted_benchmark.mutation.changes import ChangeContract, ChangeType
from assisted_benchmark.mutation.checks import Answered, Checks, Presented, Recompiled, first_failing
from assisted_benchmark.mutation.compiler import Compiled
from assisted_benchmark.mutation.desk import DECISION, EVENT
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.prompt import question as question_text
from assisted_benchmark.mutation.prompt import shown_digest
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.questions import Call, Question, Questions
from assisted_benchmark.mutation.results import (
    ALL_HOLD,
    Confirmed,
    NeedsAnswer,
    Predicates,
    Refusal,
    TokenState,
    recorded,
    tool_names,
)
from assisted_benchmark.mutation.sending import Going, Sender
from assisted_benchmark.mutation.states import State
from assisted_benchmark.mutation.store import Found, ProposalStore

_TOKEN: Final = "token"  # noqa: S105 - a key, no secret
# What a refused token is called, and what was found out about it until then.
_TOKENS: Final = {
    Reason.UNKNOWN_TOKEN: (TokenState.UNKNOWN, Predicates(proposal_exists=False)),
    Reason.REPLAYED: (TokenState.REPLAYED, Predicates(proposal_exists=True, not_previously_used=False)),
    Reason.EXPIRED: (TokenState.EXPIRED, Predicates(True, False, True)),
    Reason.CLOCK_ROLLBACK: (TokenState.EXPIRED, Predicates(True, False, True)),
}
# Of a state that fits no question: the token itself is not looked at.
_STATE: Final = Predicates(not_previously_used=False)
_UNBOUND: Final = Predicates(True, True, True, False)


class Confirmer:
    """The confirm half of one pair of tools."""

    def __init__(
        self,
        *,
        contract: ChangeContract,
        store: ProposalStore,
        sender: Sender,
        questions: Questions,
        checks: Checks,
        compiler: Callable[[ChangeType, Json], Compiled],
        allow_unconfirmed: bool,
        wait_ns: int,
        on_moment: Callable[[Moment], None],
    ) -> None:
        self._contract = contract
        self._tool = tool_names(contract.id)["confirm"]
        self._store = store
        self._desk = store.desk
        self._clock = store.clock
        self._sender = sender
        self._questions = questions
        self._checks = checks
        self._compile = compiler
        self._allow_unconfirmed = allow_unconfirmed
        self._wait_ns = wait_ns
        self._on_moment = on_moment

    def begin(
        self, session: Session, raw: bytes, can_ask: bool, cancelled: Callable[[], bool]
    ) -> NeedsAnswer | Confirmed | Refusal:
        """See `MutationBroker.begin`."""
        self.sweep()
        token = read_token(raw)
        if isinstance(token, Refusal):
            return self._refuse(session, token)
        found = self._presented(session, token)
        if isinstance(found, Refusal):
            return found
        if cancelled():
            detail = "the call was cancelled before the token was used"
            refusal = Refusal(
                Reason.CANCELLED, detail, token=TokenState.USABLE, predicates=Predicates(True, True, True)
            )
            return self._refuse(session, refusal, found)
        if (lost := self._consume(session, found)) is not None:
            return lost
        self._on_moment(Moment.CONSUMED)
        bound = self._recompiled(session, found)
        if isinstance(bound, Refusal):
            return bound
        change, compiled = bound
        if not can_ask:
            return self._unasked(session, found, change, compiled, cancelled)
        if cancelled():
            return self._end(session, found, Reason.CANCELLED, "the call was cancelled before anybody was asked", None)
        return self._ask(session, token, found, change, compiled)

    def resume(
        self, session: Session, raw: bytes, state: str, answer: Answer, cancelled: Callable[[], bool]
    ) -> Confirmed | Refusal:
        """See `MutationBroker.resume`."""
        token = read_token(raw)
        if isinstance(token, Refusal):
            return self._refuse(session, token)
        row = self._questions.take(state, Call(self._tool, token, session))
        self.sweep()
        if row is None:
            detail = "no question of this call waits for an answer under this state"
            return self._refuse(session, Refusal(Reason.REPLAYED, detail, token=TokenState.REPLAYED, predicates=_STATE))
        if row.over is not None:
            return row.over
        if self._questions.overdue(row):
            return self._timed_out(row)
        status = Status.CANCELLED if cancelled() else status_of(answer)
        about = _about(status, row)
        if failed := first_failing(self._checks.answer, Answered(status, self._allow_unconfirmed)):
            return self._end(session, row.found, failed[0].reason, str(failed[1]), status, about)
        return self._sender.send(Going(session, row.found, row.change, row.compiled, status, about), cancelled)

    def sweep(self) -> None:
        """End the questions whose time is over."""
        self._questions.sweep(self._timed_out)

    def close(self) -> None:
        """See `MutationBroker.close`."""
        self._questions.sweep(self._timed_out, closing=True)

    def _presented(self, session: Session, token: str) -> Found | Refusal:
        """The proposal of a token that may be consumed; it is not consumed yet."""
        try:
            found = self._store.find(token)
            asked = Presented(found, session, self._clock.now(), self._clock.boot_id)
            if failed := first_failing(self._checks.token, asked):
                reason, detail = failed[0].reason, str(failed[1])
                if reason is Reason.EXPIRED and found is not None and found.state == State.SEALED:
                    draft = self._desk.about(DECISION, reason.value, found.proposal, self._contract.id, detail=detail)
                    if self._store.leave(found, State.EXPIRED, draft):
                        return _token_refused(reason, detail, draft.id)
                return self._refuse(session, _token_refused(reason, detail))
        except LedgerError as error:
            return self._refuse(session, Refusal(Reason.STORE_UNAVAILABLE, error.detail))
        if found is None:
            raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and there is no such proposal")
        return found

    def _consume(self, session: Session, found: Found) -> Refusal | None:
        """The token is used up, for good, whatever comes; or why it is not ours to use."""
        self._on_moment(Moment.CONSUME)
        draft = self._desk.about(EVENT, "consumed", found.proposal, self._contract.id)
        try:
            if self._store.leave(found, State.CONFIRMING, draft):
                return None
        except LedgerError as error:
            return self._refuse(session, Refusal(Reason.STORE_UNAVAILABLE, error.detail, token=TokenState.CONSUMED))
        return self._refuse(session, _token_refused(Reason.REPLAYED, "another call used the token at the same moment"))

    def _recompiled(self, session: Session, found: Found) -> tuple[ChangeType, Compiled] | Refusal:
        """The request that the stored spec compiles to now, which must be the bound one."""
        proposal = found.proposal
        change = self._contract.change(proposal.change)
        compiled = None
        if change is not None:
            with suppress(InputError):  # what does not compile any more is not the bound request
                compiled = self._compile(change, proposal.spec.value)
        if failed := first_failing(self._checks.binding, Recompiled(proposal, self._contract, compiled)):
            return self._end(session, found, failed[0].reason, str(failed[1]), None, predicates=_UNBOUND)
        if change is None or compiled is None:
            raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and there is no such change type")
        return change, compiled

    def _unasked(
        self,
        session: Session,
        found: Found,
        change: ChangeType,
        compiled: Compiled,
        cancelled: Callable[[], bool],
    ) -> Confirmed | Refusal:
        """The client cannot ask a person: refused, unless the operator has said that its host does."""
        status = Status.UNSUPPORTED_BY_CLIENT
        if failed := first_failing(self._checks.answer, Answered(status, self._allow_unconfirmed)):
            return self._end(session, found, failed[0].reason, str(failed[1]), status)
        about = f"{status.value}; nobody was asked: the operator allows unconfirmed changes"
        return self._sender.send(Going(session, found, change, compiled, status, about), cancelled)

    def _ask(self, session: Session, token: str, found: Found, change: ChangeType, compiled: Compiled) -> NeedsAnswer:
        self._on_moment(Moment.ASK)
        now = self._clock.now()
        text = question_text(self._contract, change, compiled, found.proposal, now, self._wait_ns)
        shown = shown_digest(text)
        row = Question(
            call=Call(self._tool, token, session),
            found=found,
            change=change,
            compiled=compiled,
            until_mono_ns=now.mono_ns + self._wait_ns,
            shown=shown,
        )
        return NeedsAnswer(
            message=text,
            requested_schema=REQUESTED_SCHEMA,
            state=self._questions.open(row),
            wait_ns=self._wait_ns,
            shown=shown,
        )

    def _timed_out(self, row: Question) -> Refusal:
        status = Status.TIMED_OUT
        return self._end(row.call.session, row.found, Reason.TIMED_OUT, DETAILS[status], status, _about(status, row))

    def _end(
        self,
        session: Session,
        found: Found,
        reason: Reason,
        detail: str,
        status: Status | None,
        about: str = "",
        predicates: Predicates = ALL_HOLD,
    ) -> Refusal:
        return self._sender.end(session, found, reason, detail, status=status, about=about, predicates=predicates)

    def _refuse(self, session: Session, refusal: Refusal, found: Found | None = None) -> Refusal:
        """A no that changes no proposal, with its receipt."""
        reason, detail, server = refusal.reason.value, refusal.detail, self._contract.id
        if found is None:
            draft = self._desk.draft(DECISION, reason, server=server, detail=detail)
        else:
            draft = self._desk.about(DECISION, reason, found.proposal, server, detail=detail)
        return recorded(refusal, self._desk, session, draft)


def read_token(raw: bytes) -> str | Refusal:
    """The token, which is all that a confirmation takes; or why there is none, with nothing done to any token."""
    try:
        value = parse(raw)
    except CanonicalError as error:
        return Refusal(error.reason, error.detail)
    if type(value) is not dict:
        return Refusal(Reason.ARGUMENTS_NOT_OBJECT, "the arguments are no JSON object")
    if value.keys() != {_TOKEN} or type(value[_TOKEN]) is not str:
        return Refusal(Reason.ARGUMENTS_INVALID, f"expected `{_TOKEN}` and nothing else")
    return str(value[_TOKEN])


def _about(status: Status, row: Question) -> str:
    """What receipts say of a question that was asked."""
    return f"{status.value}; the text shown was {row.shown}"


def _token_refused(reason: Reason, detail: str, receipt_id: str | None = None) -> Refusal:
    token, predicates = _TOKENS[reason]
    return Refusal(reason, detail, receipt_id, token=token, predicates=predicates)
