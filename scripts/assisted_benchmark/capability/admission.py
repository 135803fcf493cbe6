"""The named checks of the capability broker, in their one order: the first that fails decides the reason.

`EARLY` looks at what was sent, before anything else is touched; `LATE` at who asks whom under what, once session,
instance, grant and negotiated version are known. The last of them are the seven terms: an operation is allowed
if all seven hold, and each is false or not evaluated unless it was found true. A broker made without one check is
the mutant that a test of its reason has to catch.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum, unique
from typing import Any, Final, Generic, NamedTuple, TypeVar

from attrs import frozen

from assisted_benchmark.capability.call import Unfit
from assisted_benchmark.capability.grants import Grant
from assisted_benchmark.capability.ports import Capability, Enrolled, Instance, Session
from assisted_benchmark.capability.registry import Authority, Operation
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason

T = TypeVar("T")


@unique
class Term(StrEnum):
    """What has to hold of an operation for it to be allowed, in the order of evaluation."""

    IMPLEMENTED = "implemented"
    BUILT = "built"
    HOST_AVAILABLE = "host_available"
    ACTIVATED = "activated"
    POLICY_ELIGIBLE = "policy_eligible"
    CLIENT_GRANTED = "client_granted"
    SESSION_LIVE = "session_live"


@frozen
class Check(Generic[T]):
    """One check: `test` says what is wrong, or nothing. `term` is the term that it belongs to, if any."""

    reason: Reason
    test: Callable[[T], str]
    term: Term | None = None


class Early(NamedTuple):
    """A call whose envelope holds, and what is known before anybody is asked. `unfit` says what its input lacks."""

    operation: Operation | None
    store_fault: str
    deadline: Deadline
    unfit: Unfit | None = None
    by_acl: bool = False


class Late(NamedTuple):
    """The call with its session, its exact instance and its grant.

    `found` is what the instance says of the operation; `ended` and `spent` are the grant's.
    """

    session: Session
    enrolled: Enrolled
    session_live: bool
    operation: Operation
    instance: Instance
    found: Capability | None
    still_registered: bool
    eligible: frozenset[str]
    grant: Grant | None
    ended: Reason | None
    spent: bool

    @property
    def capability(self) -> Capability:
        """What the instance says of the operation; of one that it does not name, that there is nothing."""
        return self.found or Capability(self.operation.id, built=False, available=False, activated=False)


@frozen
class Failed:
    """The first check that failed, what it says, and the reasons of those that passed before it."""

    reason: Reason
    detail: str
    checked: tuple[str, ...]
    term: Term | None = None


class Finding(NamedTuple):
    """A term, as it was found: true, false, or None if it was not evaluated; and why."""

    term: Term
    holds: bool | None
    explanation: str


NOT_EVALUATED: Final = "not_evaluated"


def first_failure(checks: tuple[Check[T], ...], question: T, before: tuple[Check[Any], ...] = ()) -> Failed | None:
    """Ask in order. `before` are the checks that have passed already."""
    for place, check in enumerate(checks):
        if detail := check.test(question):
            passed = tuple(each.reason.value for each in (*before, *checks[:place]))
            return Failed(check.reason, detail, passed, check.term)
    return None


def terms(failed: Failed | None) -> tuple[Finding, ...]:
    """The seven terms, explained, as the late checks left them."""
    if failed is None:
        return tuple(Finding(term, True, "it holds") for term in Term)
    if failed.term is None:
        return tuple(Finding(term, None, NOT_EVALUATED) for term in Term)
    order = list(Term)
    at = order.index(failed.term)
    held = [Finding(term, True, "it holds") for term in order[:at]]
    left = [Finding(term, None, NOT_EVALUATED) for term in order[at + 1 :]]
    return (*held, Finding(failed.term, False, failed.detail), *left)


def told_terms(findings: tuple[Finding, ...]) -> str:
    """The terms in a line, for a receipt."""
    words = {True: "true", False: "false", None: NOT_EVALUATED}
    return ", ".join(f"{finding.term}={words[finding.holds]}" for finding in findings)


def _there(operation: Operation | None) -> Operation:
    if operation is None:
        raise HarnessError(Reason.COULD_NOT_RUN, "nothing can be judged without an operation")
    return operation


def _known(q: Early) -> str:
    return "" if q.operation is not None and q.operation.advertised else "there is no such operation to be asked for"


def _not_by_acl(q: Early) -> str:
    reads = _there(q.operation).authority is Authority.ARTIFACT_ACL
    return "an artifact is read by way of its access list, not as an operation" if reads and not q.by_acl else ""


def _input(reason: Reason) -> Check[Early]:
    return Check(reason, lambda q: q.unfit.detail if q.unfit is not None and q.unfit.reason is reason else "")


def _wrong_registration(q: Late) -> str:
    if q.grant is None:
        return ""
    wanted = q.grant.wanted
    same = (wanted.instance, wanted.registration) == (q.instance.id, q.instance.registration)
    return "" if same else "the grant is for another instance, or for another registration of it"


def _wrong_publication(q: Late) -> str:
    same = q.grant is None or q.grant.wanted.publication == q.instance.publication
    return "" if same else "the grant is for another publication of the instance"


def _host_unavailable(q: Late) -> str:
    if not q.still_registered:
        return "the instance has left, or has published anew"
    return "" if q.capability.available else "the instance's host cannot do it now"


def _not_granted(q: Late) -> str:
    covered = q.grant is not None and q.operation.id in q.grant.operations
    return "" if covered else "the grant does not cover the operation"


def _unless(holds: bool, fault: str) -> str:
    return "" if holds else fault


EARLY: Final[tuple[Check[Early], ...]] = (
    Check(Reason.STORE_UNAVAILABLE, lambda q: q.store_fault),
    Check(Reason.DEADLINE_EXCEEDED, lambda q: _unless(not q.deadline.passed, "there is no time")),
    Check(Reason.UNKNOWN_OPERATION, _known),
    Check(Reason.ACL_ONLY, _not_by_acl),
    *map(_input, (Reason.ARGUMENTS_INVALID, Reason.NON_CANONICAL_NUMBER, Reason.TOO_LARGE)),
)

LATE: Final[tuple[Check[Late], ...]] = (
    Check(
        Reason.WRONG_PRINCIPAL,
        lambda q: _unless(q.enrolled.client == q.session.client, "it is another client's session"),
    ),
    Check(Reason.WRONG_REGISTRATION, _wrong_registration),
    Check(Reason.WRONG_PEER, lambda q: _unless(q.enrolled.peer == q.session.peer, "it is another process's session")),
    Check(Reason.WRONG_PUBLICATION, _wrong_publication),
    Check(
        Reason.NOT_IMPLEMENTED,
        lambda q: _unless(q.found is not None, "the instance does not have it"),
        Term.IMPLEMENTED,
    ),
    Check(Reason.NOT_BUILT, lambda q: _unless(q.capability.built, "it is not in the instance's build"), Term.BUILT),
    Check(Reason.HOST_UNAVAILABLE, _host_unavailable, Term.HOST_AVAILABLE),
    Check(Reason.NOT_ACTIVATED, lambda q: _unless(q.capability.activated, "it is not activated there"), Term.ACTIVATED),
    Check(
        Reason.NOT_ELIGIBLE,
        lambda q: _unless(q.operation.id in q.eligible, "the operator's policy does not have it"),
        Term.POLICY_ELIGIBLE,
    ),
    Check(
        Reason.UNKNOWN_GRANT,
        lambda q: _unless(q.grant is not None, "there is no such grant of this client's"),
        Term.CLIENT_GRANTED,
    ),
    Check(
        Reason.REVOKED, lambda q: _unless(q.ended is not Reason.REVOKED, "the grant was revoked"), Term.CLIENT_GRANTED
    ),
    Check(
        Reason.EXPIRED, lambda q: _unless(q.ended is not Reason.EXPIRED, "the grant has expired"), Term.CLIENT_GRANTED
    ),
    Check(Reason.NOT_GRANTED, _not_granted, Term.CLIENT_GRANTED),
    Check(
        Reason.CONSENT_REQUIRED,
        lambda q: _unless(not q.spent, "the grant has admitted its one operation of this kind"),
        Term.CLIENT_GRANTED,
    ),
    Check(Reason.SESSION_ENDED, lambda q: _unless(q.session_live, "the client's session is over"), Term.SESSION_LIVE),
)

# The whole order, with what lies between: bytes first, and after the checks the durable admission and the last look.
ORDER: Final = (
    "envelope",
    *(check.reason.value for check in EARLY),
    *(check.reason.value for check in LATE),
    "admit",
    "revalidate",
)
