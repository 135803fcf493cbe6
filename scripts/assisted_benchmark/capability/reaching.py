"""Reaching an instance: the client's session with the host, its inventory, and in it exactly the one that is meant."""

from __future__ import annotations

from attrs import frozen

from assisted_benchmark.capability.instances import exactly
from assisted_benchmark.capability.ports import Enrolled, Host, Instance, Session, Unavailable
from assisted_benchmark.capability.sessions import Sessions
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.reasons import Reason


class Refusal(Exception):  # noqa: N818 - a step's no, on its way to where the steps are joined; never seen outside
    """A step said no."""

    def __init__(self, reason: Reason, detail: str, checked: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.checked = checked


def in_time(deadline: Deadline) -> None:
    """Refusal(deadline_exceeded) if the step that has just been made took all the time there was."""
    if deadline.passed:
        raise Refusal(Reason.DEADLINE_EXCEEDED, "the time ran out before the request; no request was sent")


@frozen
class Reach:
    """The way to the host that calls and management share."""

    host: Host
    sessions: Sessions

    def inventory(self, session: Session, deadline: Deadline) -> tuple[Enrolled, tuple[Instance, ...]]:
        """The client's session and what it shows. One that turns out to be over is opened anew, once.

        Raises:
            Refusal: client_unavailable, deadline_exceeded, or why there is no inventory.
        """
        enrolled, found = self._look(session, deadline)
        if isinstance(found, Unavailable) and found.ended:
            self.sessions.ended(session, enrolled)
            enrolled, found = self._look(session, deadline)
        if isinstance(found, Unavailable):
            raise Refusal(found.reason, found.detail)
        return enrolled, found

    def instance(self, session: Session, instance_id: str, deadline: Deadline) -> tuple[Enrolled, Instance]:
        """The client's session, and exactly the instance that is meant.

        Raises:
            Refusal: as `inventory`, or instance_not_found or ambiguous_instance.
        """
        enrolled, found = self.inventory(session, deadline)
        chosen = exactly(found, instance_id)
        if isinstance(chosen, Reason):
            raise Refusal(chosen, "exactly one live instance must have the id; no request was sent")
        return enrolled, chosen

    def own_instance(self, session: Session, instance_id: str, deadline: Deadline) -> tuple[Enrolled, Instance]:
        """As `instance`, and the session is this client's and this process's own.

        Raises:
            Refusal: as `instance`, or wrong_principal or wrong_peer.
        """
        enrolled, chosen = self.instance(session, instance_id, deadline)
        if enrolled.client != session.client:
            raise Refusal(Reason.WRONG_PRINCIPAL, "it is another client's session")
        if enrolled.peer != session.peer:
            raise Refusal(Reason.WRONG_PEER, "it is another process's session")
        return enrolled, chosen

    def _look(self, session: Session, deadline: Deadline) -> tuple[Enrolled, tuple[Instance, ...] | Unavailable]:
        enrolled = self.sessions.obtain(session, deadline=deadline)
        in_time(deadline)
        if isinstance(enrolled, Unavailable):
            raise Refusal(Reason.CLIENT_UNAVAILABLE, enrolled.detail)
        found = self.host.inventory(enrolled, deadline=deadline)
        in_time(deadline)
        return enrolled, found
