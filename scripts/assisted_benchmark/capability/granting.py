"""How a grant comes to be: what could be covered, the consent of the broker's own person, and then the grant.

Nothing that a client sends is a consent, and no part of a request can claim one.
"""

from __future__ import annotations

from typing import NamedTuple

from attrs import frozen

from assisted_benchmark.capability.consent import NotApproved, Prompts
from assisted_benchmark.capability.desk import Desk
from assisted_benchmark.capability.grants import MAX_TTL_NS, Grant, Grants
from assisted_benchmark.capability.ports import Consent, Host, Instance, Session, Wanted
from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason


class Authority(NamedTuple):
    """The authority that is asked for by name: a profile, or one operation."""

    name: str
    is_profile: bool


@frozen
class NotIssued:
    """No grant. `reason` is one of the statuses that a grant request can come to."""

    reason: Reason
    detail: str


class Granting:
    """Issues the grants of one broker. Threads may share it."""

    def __init__(
        self, *, registry: Registry, grants: Grants, prompts: Prompts, consent: Consent, host: Host, desk: Desk
    ) -> None:
        self._registry = registry
        self._grants = grants
        self._prompts = prompts
        self._consent = consent
        self._host = host
        self._desk = desk

    def request(
        self, session: Session, instance: Instance, authority: Authority, *, ttl_ns: int, deadline: Deadline
    ) -> Grant | NotIssued:
        """A grant of this authority over this instance, if the broker's person consents."""
        covered = self._covered(instance, authority)
        if isinstance(covered, NotIssued):
            return covered
        if not 0 < ttl_ns <= MAX_TTL_NS:
            return NotIssued(Reason.INVALID_REQUEST, "a grant lasts for a day at most")
        if self._grants.full():
            # Before anybody is asked for nothing.
            return _exhausted()
        wanted = Wanted(
            session.client, instance.registration, instance.id, instance.publication, authority.name, covered
        )
        return self._consented(instance, wanted, ttl_ns, deadline)

    def _covered(self, instance: Instance, authority: Authority) -> tuple[str, ...] | NotIssued:
        """The operations that such a grant covers on this instance."""
        has = {each.operation for each in instance.capabilities}
        if authority.is_profile:
            if authority.name not in self._registry.profiles:
                return NotIssued(Reason.INVALID_REQUEST, "there is no such profile")
            covered = self._registry.of_profile(authority.name) & has
        else:
            operation = self._registry.operation(authority.name)
            if operation is None:
                return NotIssued(Reason.INVALID_REQUEST, "there is no such operation")
            covered = frozenset({operation.id} if operation.grantable else ()) & has
        if not covered:
            return NotIssued(Reason.CAPABILITY_UNAVAILABLE, "the instance has nothing that such a grant could cover")
        return tuple(sorted(covered))

    def _consented(self, instance: Instance, wanted: Wanted, ttl_ns: int, deadline: Deadline) -> Grant | NotIssued:
        interactive = self._in_person(wanted) or not self._consent.standing(wanted, deadline=deadline)
        decision = "a standing policy"
        if interactive:
            decided = self._prompts.decide(
                wanted, deadline=deadline, still=lambda: self._host.registered(instance.id) == instance.registered
            )
            if isinstance(decided, NotApproved):
                return NotIssued(decided.reason, decided.detail)
            if not self._prompts.spend(decided.decision):
                return NotIssued(Reason.CONSENT_REPLAY, "the decision has issued a grant before")
            decision = decided.decision
        if self._host.registered(instance.id) != instance.registered:
            return NotIssued(Reason.REGISTRATION_UNAVAILABLE, "the instance has left, or has published anew")
        grant = self._grants.issue(wanted, interactive=interactive, ttl_ns=ttl_ns)
        return _exhausted() if grant is None else self._told(grant, decision)

    def _told(self, grant: Grant, decision: str) -> Grant | NotIssued:
        """The grant, once it is in a receipt."""
        wanted = grant.wanted
        try:
            self._desk.tell("granted", f"`{wanted.authority}` on {decision}", grant=grant.id, instance=wanted.instance)
        except LedgerError as error:
            self._grants.revoke(grant.id, wanted.client)
            return NotIssued(Reason.STORE_UNAVAILABLE, error.detail)
        return grant

    def _in_person(self, wanted: Wanted) -> bool:
        """Whether a standing policy is not even asked for: of an operation that only a person decides on."""
        operations = map(self._registry.operation, wanted.operations)
        return any(operation is not None and operation.interactive_only for operation in operations)


def _exhausted() -> NotIssued:
    return NotIssued(Reason.RESOURCE_EXHAUSTED, "there are as many grants as there may be")
