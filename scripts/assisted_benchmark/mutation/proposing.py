"""Proposing: the whole spec checked, compiled, really sent as a dry run, priced, and taken into the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from assisted_benchmark.kernel.canonical import Canonical, Json, parse
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.errors import CanonicalError, HarnessError, LedgerError
from assisted_benchmark.kernel.pointers import pointer
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.redact import told_path
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.mutation.changes import ChangeContract, ChangeType
from assisted_benchmark.mutation.checks import Asked, Checks, Problem, first_failing
from assisted_benchmark.mutation.compiler import Compiled
from assisted_benchmark.mutation.desk import DECISION
from assisted_benchmark.mutation.endpoint import EndpointError, entity_of, price_of
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.ports import Endpoint, Request
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.results import PROPOSE, Proposed, Refusal, recorded
from assisted_benchmark.mutation.store import ProposalStore
from assisted_benchmark.mutation.template import filled

_ARGUMENTS: Final = ("change_type", "spec")
_CUT: Final = 20  # problems in a receipt


class Proposer:
    """The propose half of one pair of tools."""

    def __init__(
        self,
        *,
        contract: ChangeContract,
        endpoint: Endpoint,
        store: ProposalStore,
        checks: Checks,
        compiler: Callable[[ChangeType, Json], Compiled],
        reply_within_ns: int,
        on_moment: Callable[[Moment], None],
    ) -> None:
        self._contract = contract
        self._endpoint = endpoint
        self._store = store
        self._desk = store.desk
        self._checks = checks.proposal
        self._compile = compiler
        self._reply_within_ns = reply_within_ns
        self._on_moment = on_moment

    def propose(self, session: Session, raw: bytes) -> Proposed | Refusal:
        """See `MutationBroker.propose`."""
        read = read_proposal(raw)
        if isinstance(read, Unread):
            return self._refuse(session, read.reason, _words((read.problem,), None), problems=(read.problem,))
        named, spec = read
        change = self._contract.change(named)
        if failed := first_failing(self._checks, Asked(self._contract, named, change, spec)):
            check, wrong = failed
            problems = (Problem("/change_type", wrong),) if isinstance(wrong, str) else wrong
            return self._refuse(session, check.reason, _words(problems, change), change=change, problems=problems)
        if change is None:
            raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and there is no such change type")
        try:
            # A store that cannot be used is known before anything is sent.
            self._store.ready(session.run)
        except LedgerError as error:
            return self._refuse(session, Reason.STORE_UNAVAILABLE, error.detail, change=change)
        return self._dry_run(session, change, Canonical.of(spec))

    def _dry_run(self, session: Session, change: ChangeType, spec: Canonical) -> Proposed | Refusal:
        contract = self._contract
        compiled = self._compile(change, spec.value)
        self._on_moment(Moment.DRY_RUN)
        deadline = Deadline.after(self._store.clock, self._reply_within_ns)
        reply = self._endpoint.ask(compiled.dry(contract.dry_run), deadline=deadline)
        validated = entity_of(reply, change.dry_run_accepts, contract.errors)
        if isinstance(validated, EndpointError):
            draft = self._desk.of_request(
                DECISION, Reason.DRY_RUN_FAILED.value, compiled, contract.id, detail=validated.words
            )
            refusal = Refusal(Reason.DRY_RUN_FAILED, validated.words, phase=PROPOSE, error=validated)
            return recorded(refusal, self._desk, session, draft)
        self._on_moment(Moment.PRICE)
        price = self._price(change, spec, deadline)
        self._on_moment(Moment.SEAL)
        try:
            sealed = self._store.seal(session, contract, compiled, spec, Canonical.of(price))
        except LedgerError as error:
            return self._refuse(session, Reason.STORE_UNAVAILABLE, error.detail, change=change)
        return Proposed(
            change=change.name,
            validated=validated,
            price=price,
            token=sealed.token,
            expires_in_s=sealed.proposal.remaining_s(sealed.proposal.issued),
            request=compiled.digest,
            receipt_id=sealed.receipt_id,
        )

    def _price(self, change: ChangeType, spec: Canonical, deadline: Deadline) -> Json:
        rule = change.price
        if rule is None:
            return {"unpriced": change.unpriced}
        request = Request("POST", rule.path, Canonical.of(filled(rule.body.value, spec.value)).data)
        return price_of(self._endpoint.ask(request, deadline=deadline), rule, self._contract.errors)

    def _refuse(
        self,
        session: Session,
        reason: Reason,
        detail: str,
        *,
        change: ChangeType | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> Refusal:
        name = "" if change is None else change.name
        draft = self._desk.draft(DECISION, reason.value, server=self._contract.id, change=name, detail=detail)
        return recorded(Refusal(reason, detail, phase=PROPOSE, problems=problems), self._desk, session, draft)


class Unread(NamedTuple):
    """Arguments that propose nothing, and why."""

    reason: Reason
    problem: Problem


def read_proposal(raw: bytes) -> tuple[str, Json] | Unread:
    """The change type and the spec that a call proposes."""
    try:
        value = parse(raw)
    except CanonicalError as error:
        return Unread(error.reason, Problem("/", error.detail))
    if type(value) is not dict:
        return Unread(Reason.ARGUMENTS_NOT_OBJECT, Problem("/", "the arguments are no JSON object"))
    for key in value:
        if key not in _ARGUMENTS:
            near = did_you_mean(key, _ARGUMENTS)
            problem = Problem(shown(pointer("", key)), f"no argument is called so{'; ' + near if near else ''}")
            return Unread(Reason.ARGUMENTS_INVALID, problem)
    named, spec = value.get("change_type"), value.get("spec")
    if type(named) is not str:
        return Unread(Reason.ARGUMENTS_INVALID, Problem("/change_type", "expected the name of a change type"))
    if type(spec) is not dict:
        return Unread(Reason.ARGUMENTS_INVALID, Problem("/spec", "expected an object with the change's fields"))
    return named, spec


def _words(problems: tuple[Problem, ...], change: ChangeType | None) -> str:
    """What a receipt has of the problems: a path that leads into a sensitive value ends at it."""
    marks = () if change is None else change.sensitive
    return "; ".join(dict.fromkeys(f"{told_path(each.path, marks)}: {each.problem}" for each in problems[:_CUT]))
