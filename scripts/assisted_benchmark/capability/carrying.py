"""Carrying an admitted operation out: claim, gate, request, judge, settle; at most once, whatever happens.

The host's word is never taken for success by itself: a result has to fit its schema, and the authority has to
have lasted. What is not clear is `unknown_needs_refresh`, and nobody asks again by himself.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum, unique
from typing import Final, NamedTuple

from attrs import evolve, frozen

from assisted_benchmark.capability.artifacts import Artifact, Artifacts, Denied, Origin
from assisted_benchmark.capability.call import OperationCall
from assisted_benchmark.capability.flights import Flight
from assisted_benchmark.capability.grants import Grant, Grants
from assisted_benchmark.capability.lineage import Asked
from assisted_benchmark.capability.operations import Operations
from assisted_benchmark.capability.ports import Ended, Envelope, Host, HostReply, Instance, Session, Word
from assisted_benchmark.capability.progress import Event, Progress
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.receipt import End, Receipt
from assisted_benchmark.capability.registry import ResultKind
from assisted_benchmark.capability.results import Content
from assisted_benchmark.capability.sessions import Sessions
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.canonical import Json, parse
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.errors import InputError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.ledger.protocol import Claimed


@unique
class Moment(StrEnum):
    """Where an operation's way can be interrupted by an experiment: faults strike at these."""

    ADMIT = "admit"  # every check has passed, the receipt is about to be written
    ADMITTED = "admitted"  # the receipt is durable
    CLAIMED = "claimed"  # the marker is durable, nothing is written to the host
    WRITE = "write"  # the last look said yes, the request is about to be written
    ANSWER = "answer"  # the host's word, or its absence, is known
    SETTLE = "settle"  # the end is about to be recorded


class Way(NamedTuple):
    """What was admitted, and all that it was admitted under."""

    session: Session
    call: OperationCall
    asked: Asked
    instance: Instance
    grant: Grant
    receipt: Receipt
    flight: Flight
    deadline: Deadline


class Carrier:
    """Takes what was admitted to its host, by way of the ledger."""

    def __init__(
        self,
        *,
        host: Host,
        operations: Operations,
        grants: Grants,
        sessions: Sessions,
        projection: Projection,
        artifacts: Artifacts,
        looks: tuple[Look, ...],
        on_moment: Callable[[Moment], None],
    ) -> None:
        self._host = host
        self._operations = operations
        self._grants = grants
        self._sessions = sessions
        self._projection = projection
        self._artifacts = artifacts
        self._looks = looks
        self._on_moment = on_moment
        self._explained = projection.registry.bounds.explanation_length

    def carry(self, way: Way, listener: Callable[[Event], None]) -> Content | None:
        """From the admitted operation to its recorded end, which its receipt then has; what it gave, if anything."""
        self._on_moment(Moment.ADMITTED)
        try:
            # INVARIANT: the marker is durable before the request. An error here means that nothing is sent.
            claimed = self._operations.claim(way.receipt, way.asked)
        except LedgerError:
            return None
        if claimed is None:
            return None
        self._on_moment(Moment.CLAIMED)
        try:
            end, content = self._requested(way, claimed, listener)
        except Exception as error:
            # Fail closed: whatever went wrong, the request may be out. The error itself goes on to the caller.
            explanation = f"{type(error).__name__} while the request was under way"
            unknown = End(State.UNKNOWN_NEEDS_REFRESH, Reason.OUTCOME_UNKNOWN, explanation)
            self._operations.settle(way.receipt, claimed, way.asked, unknown)
            raise
        self._on_moment(Moment.SETTLE)
        return content if self._operations.settle(way.receipt, claimed, way.asked, end) else None

    def _requested(self, way: Way, claimed: Claimed, listener: Callable[[Event], None]) -> tuple[End, Content | None]:
        call, asked = way.call, way.asked
        record, lineage = way.receipt.record, asked.lineage
        envelope = Envelope(
            record.request_id,
            record.receipt_id,
            record.request_hash,
            lineage.grant,
            lineage.client,
            lineage.registration,
            lineage.publication,
            asked.version,
            call.expected_state_generation,
        )

        def gate() -> bool:
            if not way.flight.pass_gate(self._look(way)):
                return False
            self._on_moment(Moment.WRITE)
            return True

        progress = Progress(self._projection.registry.bounds)

        listening = True

        def observe(raw: Json) -> None:
            nonlocal listening
            event = progress.take(raw)
            if event is None or not listening:
                return
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - who listens decides nothing: the telling ends, the operation goes on
                listening = False

        reply = self._host.request(claimed, envelope, gate=gate, deadline=way.deadline, progress=observe)
        self._on_moment(Moment.ANSWER)
        end, content = self._judge(way, reply)
        if progress.events and end.state is not State.COMPLETED_AFTER_REVOCATION:
            content = evolve(content or Content(), progress=progress.events)
        return end._replace(content=None if content is None else content.written), content

    def _look(self, way: Way) -> Reason | None:
        """Why nothing may be written now: everything that could have changed since the checks."""
        for look in self._looks:
            if (reason := look.test(self, way)) is not None:
                return reason
        return None

    def out_of_time(self, way: Way) -> Reason | None:
        """Whether the call's time is up."""
        return Reason.DEADLINE_EXCEEDED if way.deadline.passed else None

    def ended(self, way: Way) -> Reason | None:
        """Why the grant is good for nothing any more."""
        return self._grants.ended(way.grant)

    def elsewhere(self, way: Way) -> Reason | None:
        """Whether the instance has left, or has published anew."""
        same = self._host.registered(way.instance.id) == way.instance.registered
        return None if same else Reason.WRONG_PUBLICATION

    def over(self, way: Way) -> Reason | None:
        """Whether the client's session is another one by now."""
        return None if self._sessions.live(way.session, way.flight.enrolled) else Reason.SESSION_ENDED

    def given_up(self, way: Way) -> Reason | None:
        """Whether another broker has ended the operation in the ledger."""
        return None if self._operations.running(way.receipt) else Reason.CANCELLED

    def _judge(self, way: Way, reply: HostReply) -> tuple[End, Content | None]:
        """How it ended; and what it gave, if it is to be believed that it completed."""
        flight, content = way.flight, None
        if isinstance(reply, NotSent):
            end = End(State.CANCELLED, flight.stopped or reply.reason, self._told(reply.detail))
        elif isinstance(reply, Uncertain):
            end = End(State.UNKNOWN_NEEDS_REFRESH, reply.reason, self._told(reply.detail))
        elif not flight.writing:
            explanation = "an answer to a request that its gate did not let out"
            end = End(State.UNKNOWN_NEEDS_REFRESH, Reason.OUTCOME_UNKNOWN, explanation)
        elif reply.word == Word.CANCELLED:
            end = End(State.CANCELLED, flight.stopped or Reason.CANCELLED, "the host answered that it stopped")
        elif reply.word == Word.FAILED:
            conflict = reply.code == Reason.STATE_CONFLICT
            reason = Reason.STATE_CONFLICT if conflict else Reason.FAILED
            end = End(State.FAILED, reason, "the host answered that it failed")
        elif (lost := self.elsewhere(way) or self.ended(way)) is not None:
            explanation = f"it was done, and its authority had ended: {lost}"
            end = End(State.COMPLETED_AFTER_REVOCATION, Reason.COMPLETED_AFTER_REVOCATION, explanation)
        else:
            try:
                content = self._completed(way, reply)
                end = End(State.COMPLETED, None)
            except InputError as error:
                end = End(State.UNKNOWN_NEEDS_REFRESH, Reason.RESULT_INVALID, error.detail)
        if isinstance(reply, Ended) and end.state in (State.COMPLETED, State.FAILED, State.CANCELLED):
            end = end._replace(heard=self._told(reply.explanation))
        return end, content

    def _completed(self, way: Way, reply: Ended) -> Content:
        """What a completed operation gave, held to its schema, its receipt and its artifacts.

        Raises:
            InputError: the host's word is not to be relied on.
        """
        operation, receipt_id = way.call.operation, way.receipt.record.receipt_id
        result = parse(reply.result)
        unfit = self._projection.result_faults(operation, result)
        if unfit is not None:
            raise InputError(unfit.reason, f"the result does not fit its schema: {unfit.detail}")
        if operation.result is ResultKind.RECEIPT and result["receipt_id"] != receipt_id:
            raise InputError(Reason.RESULT_INVALID, "the result names another receipt")
        published = self._published(way, reply)
        if operation.result is ResultKind.ARTIFACT and not any(_names(result, each) for each in published):
            raise InputError(Reason.RESULT_INVALID, "the result names an artifact that was not published")
        return Content(result=result, artifacts=tuple(each.value() for each in published))

    def _published(self, way: Way, reply: Ended) -> tuple[Artifact, ...]:
        """What the operation made, kept. Nobody can read it before the receipt says completed."""
        origin = Origin(way.asked.lineage, way.instance.id, way.receipt.record.receipt_id)
        published = []
        for blob in reply.artifacts:
            kept = self._artifacts.publish(origin, blob.data, blob.mime_type)
            if isinstance(kept, Denied):
                raise InputError(kept.reason, f"an artifact was not kept: {kept.detail}")
            published.append(kept)
        return tuple(published)

    def _told(self, text: str) -> str:
        """A text of the host's, with nothing hidden in it and not too long for a receipt."""
        return shown(text, self._explained // 2)[: self._explained]


@frozen
class Look:
    """One thing that is looked at once more right before the side effect."""

    name: str
    test: Callable[[Carrier, Way], Reason | None]


LOOKS: Final = (
    Look("deadline", Carrier.out_of_time),
    Look("publication", Carrier.elsewhere),
    Look("grant", Carrier.ended),
    Look("session", Carrier.over),
    Look("receipt", Carrier.given_up),
)


def _names(result: Json, artifact: Artifact) -> bool:
    """Whether a result tells of exactly this artifact."""
    told = (result["artifact_id"], result["mime_type"], result["sha256"], result["byte_count"])
    return told == (artifact.id, artifact.mime_type, artifact.sha256, artifact.size)
