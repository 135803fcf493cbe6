"""The named checks of the mutation broker, in their fixed order: in each phase the first that fails decides.

A check is data: a name, the reason it gives, and a test that says what is wrong or the empty text. A
broker made without one check is the mutant that the fixture of its reason has to catch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from attrs import evolve, frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.mutation.answers import DETAILS, Status
from assisted_benchmark.mutation.changes import ChangeContract, ChangeType
from assisted_benchmark.mutation.compiler import Compiled, misspelled, problems_in, request_digest, unshowable
from assisted_benchmark.mutation.proposal import Proposal, Session
from assisted_benchmark.mutation.states import State
from assisted_benchmark.mutation.store import Found

T = TypeVar("T")


class Problem(NamedTuple):
    """One thing wrong with a spec: a JSON pointer into the spec, and why. The value is not repeated."""

    path: str
    problem: str


@frozen
class Check(Generic[T]):
    """One check: `test` says what is wrong, or nothing."""

    name: str
    reason: Reason
    test: Callable[[T], str | tuple[Problem, ...]]


class Asked(NamedTuple):
    """A spec that was proposed, as it was spelled. `change` is None for a type that the contract does not have."""

    contract: ChangeContract
    named: str
    change: ChangeType | None
    spec: Json


class Presented(NamedTuple):
    """A token that was presented: what it was found to be, and under which session."""

    found: Found | None
    session: Session
    now: Instant
    boot: str


class Recompiled(NamedTuple):
    """A consumed proposal beside what its stored spec compiles to now; `compiled` is None if it does not."""

    proposal: Proposal
    contract: ChangeContract
    compiled: Compiled | None


class Answered(NamedTuple):
    """What came of asking. `unconfirmed` says that the operator lets clients through that cannot ask."""

    status: Status
    unconfirmed: bool


class Leaving(NamedTuple):
    """The very bytes that are about to be sent."""

    proposal: Proposal
    body: bytes
    now: Instant
    boot: str
    cancelled: bool


def _problems(found: tuple[tuple[str, str], ...]) -> tuple[Problem, ...]:
    return tuple(Problem(path or "/", why) for path, why in found)


def _unknown_change(a: Asked) -> str:
    if a.change is not None:
        return ""
    known = [each.name for each in a.contract.changes]
    hint = did_you_mean(a.named, known) or f"there are {', '.join(known)}"
    return f"no change type is called `{shown(a.named, 60)}`; {hint}"


def _misspelled(a: Asked) -> tuple[Problem, ...]:
    return () if a.change is None else _problems(misspelled(a.change.checker, a.spec))


def _invalid(a: Asked) -> tuple[Problem, ...]:
    return () if a.change is None else _problems(problems_in(a.change.checker, a.change.fields.value, a.spec))


def _exists(p: Presented) -> str:
    there = p.found is not None and p.found.state != State.EVICTED and not p.found.proposal.forgotten(p.now)
    return "" if there else "no proposal has this token here"


def _own(p: Presented) -> str:
    return "" if p.found is None or p.found.proposal.session == p.session else "the proposal is another session's"


def _unused(p: Presented) -> str:
    waits = p.found is None or p.found.state in (State.SEALED, State.EXPIRED)
    return "" if waits else "the token was used before"


def _set_back(p: Presented) -> str:
    back = p.found is not None and p.found.proposal.set_back(p.now, p.boot)
    return "a clock is behind where it was at the proposal" if back else ""


def _fresh(p: Presented) -> str:
    over = p.found is not None and (p.found.state == State.EXPIRED or p.found.proposal.expired(p.now, p.boot))
    return "the proposal's time is over" if over else ""


def _same_contract(r: Recompiled) -> str:
    return "" if r.proposal.contract == r.contract.digest else "the contract is another than at the proposal"


def _same_request(r: Recompiled) -> str:
    now: Digest | None = None if r.compiled is None else r.compiled.digest
    return "" if now == r.proposal.bound else "the stored spec compiles to another request than the bound one"


def _answered(status: Status) -> Callable[[Answered], str]:
    return lambda a: DETAILS[status] if a.status is status else ""


def _supported(a: Answered) -> str:
    return DETAILS[a.status] if a.status is Status.UNSUPPORTED_BY_CLIENT and not a.unconfirmed else ""


def _still_set_back(one: Leaving) -> str:
    return "a clock was set back" if one.proposal.set_back(one.now, one.boot) else ""


def _still_fresh(one: Leaving) -> str:
    return "the proposal's time ran out while a person was asked" if one.proposal.expired(one.now, one.boot) else ""


def _same_bytes(one: Leaving) -> str:
    same = request_digest(one.proposal.change, one.body) == one.proposal.bound
    return "" if same else "the bytes that were about to be sent are not the bound ones"


def _not_cancelled(one: Leaving) -> str:
    return "the call was cancelled before anything was sent" if one.cancelled else ""


@frozen
class Checks:
    """All checks, by the phase in which they are asked."""

    proposal: tuple[Check[Asked], ...]
    token: tuple[Check[Presented], ...]
    binding: tuple[Check[Recompiled], ...]
    answer: tuple[Check[Answered], ...]
    sending: tuple[Check[Leaving], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every check's name, in order."""
        phases: tuple[tuple[Check[Json], ...], ...] = (
            self.proposal,
            self.token,
            self.binding,
            self.answer,
            self.sending,
        )
        return tuple(each.name for phase in phases for each in phase)

    def without(self, *names: str) -> Checks:
        """The mutant that lacks these checks."""
        return evolve(
            self,
            proposal=tuple(each for each in self.proposal if each.name not in names),
            token=tuple(each for each in self.token if each.name not in names),
            binding=tuple(each for each in self.binding if each.name not in names),
            answer=tuple(each for each in self.answer if each.name not in names),
            sending=tuple(each for each in self.sending if each.name not in names),
        )


def first_failing(checks: tuple[Check[T], ...], subject: T) -> tuple[Check[T], str | tuple[Problem, ...]] | None:
    """The first check that says something is wrong, and what; None if all pass."""
    for check in checks:
        if wrong := check.test(subject):
            return check, wrong
    return None


CHECKS: Final = Checks(
    proposal=(
        Check("change_known", Reason.UNKNOWN_CHANGE, _unknown_change),
        Check("values_showable", Reason.UNSHOWABLE_VALUE, lambda a: _problems(unshowable(a.spec))),
        Check("integers_spelled", Reason.NON_CANONICAL_NUMBER, _misspelled),
        Check("spec_valid", Reason.ARGUMENTS_INVALID, _invalid),
    ),
    token=(
        Check("proposal_exists", Reason.UNKNOWN_TOKEN, _exists),
        Check("own_session", Reason.UNKNOWN_TOKEN, _own),
        Check("not_previously_used", Reason.REPLAYED, _unused),
        Check("clocks_ahead", Reason.CLOCK_ROLLBACK, _set_back),
        Check("not_expired", Reason.EXPIRED, _fresh),
    ),
    binding=(
        Check("same_contract", Reason.BINDING_MISMATCH, _same_contract),
        Check("spec_matches_binding", Reason.BINDING_MISMATCH, _same_request),
    ),
    answer=(
        Check("can_ask", Reason.UNSUPPORTED_BY_CLIENT, _supported),
        Check("not_declined", Reason.DECLINED, _answered(Status.DECLINED)),
        Check("not_dismissed", Reason.CANCELLED, _answered(Status.CANCELLED)),
        Check("answered_in_time", Reason.TIMED_OUT, _answered(Status.TIMED_OUT)),
        Check("answer_understood", Reason.CONFIRMATION_FAILED, _answered(Status.FAILED)),
    ),
    sending=(
        Check("clocks_still_ahead", Reason.CLOCK_ROLLBACK, _still_set_back),
        Check("still_not_expired", Reason.EXPIRED, _still_fresh),
        Check("bytes_match_binding", Reason.BINDING_MISMATCH, _same_bytes),
        Check("not_cancelled", Reason.CANCELLED, _not_cancelled),
    ),
)
