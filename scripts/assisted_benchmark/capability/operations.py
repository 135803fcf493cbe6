"""The durable receipts of operations: one for each idempotency identity, written before anything is sent.

An operation is a group of the broker's run in the ledger. Its identity (lineage and key) is the group's name, so
that of all calls with one identity the ledger itself opens a group for one: that one is executed, the others
are answered with its receipt. What the group's record and the run's receipts say outlives the broker; the
result of an operation does not, as it may hold what no ledger should.

An identity is answered again for a day, and its receipt is kept at hand for a week. The ledger never forgets the
name: seen again later, it is refused and not executed.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

from attrs import evolve, frozen

from assisted_benchmark.capability.desk import Desk
from assisted_benchmark.capability.lineage import Asked, Lineage
from assisted_benchmark.capability.receipt import End, Receipt, Record, read, written
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.canonical import MIB
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.errors import HarnessError, InputError, IntegrityError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed, Draft, Row
from assisted_benchmark.ledger.receipt_desk import EVENT
from assisted_benchmark.ledger.receipts import DECISION, OUTCOME

REPLAY_WINDOW_NS: Final = 24 * 60 * 60 * SECOND
RETENTION_NS: Final = 7 * REPLAY_WINDOW_NS
ACTIVE_PER_CLIENT: Final = 64
ACTIVE_PER_INSTANCE: Final = 16
MAX_RECEIPTS: Final = 4096
MAX_CONTENT_BYTES: Final = 64 * MIB


@frozen
class Fresh:
    """The operation was admitted now: it is the caller's to execute."""

    receipt: Receipt


@frozen
class Met:
    """The same operation was admitted before: nothing is executed, and this is its receipt."""

    receipt: Receipt


class Operations:
    """All operations of the run that are kept at hand. Threads may share it; the ledger orders brokers."""

    def __init__(self, desk: Desk) -> None:
        """Take over what the ledger has: what was admitted or running when the last broker ended, ends now.

        Raises:
            LedgerError: the ledger cannot be used.
            IntegrityError: what it has does not verify, or is no operation of ours.
        """
        self._desk = desk
        self._ledger = desk.ledger
        self._run = desk.run
        self._lock = Lock()
        self._held: OrderedDict[bytes, Receipt] = OrderedDict()
        self._by_request: dict[tuple[str, str], bytes] = {}
        self._by_receipt: dict[str, Receipt] = {}
        self._again: dict[tuple[str, ...], bytes] = {}
        self._active: Counter[tuple[str, str]] = Counter()
        self._contents: OrderedDict[bytes, Receipt] = OrderedDict()
        self._content_bytes = 0
        self._take_over()

    def of_request(self, client: str, request_id: str) -> Receipt | None:
        """The client's operation of this request id, if it is at hand."""
        with self._lock:
            identity = self._by_request.get((client, request_id))
            return None if identity is None else self._held[identity]

    def as_it_stands(self, receipt: Receipt) -> Receipt:
        """The receipt as it is at one instant: another thread may be writing its end into it."""
        with self._lock:
            return evolve(receipt)

    def completed(self, receipt_id: str) -> bool:
        """Whether the operation of this receipt is at hand and completed."""
        receipt = self._by_receipt.get(receipt_id)
        return receipt is not None and receipt.state is State.COMPLETED

    def grant_before(self, lineage: Lineage, key: str) -> str | None:
        """The grant under which this very operation was admitted before, where both left it to the broker."""
        with self._lock:
            found = self._before(lineage, key)
            return None if found is None else found.record.lineage.grant

    def meet(self, asked: Asked, request_id: str) -> Met | Reason | None:
        """The operation that was admitted before under this identity or request id, or why that forbids this one."""
        with self._lock:
            return self._meet(asked, request_id)

    def admit(
        self, asked: Asked, request_id: str, instance: str, *, automatic: bool, take: Callable[[], Reason | None]
    ) -> Fresh | Met | Reason:
        """Admit the operation, durably, unless it was admitted before or a bound is reached.

        `take` takes what only one operation may have, right before the receipt is written.

        Raises:
            LedgerError: the ledger cannot be written; the operation may not be executed.
        """
        with self._lock:
            met = (self._met_under_another_grant(asked) if automatic else None) or self._meet(asked, request_id)
            if met is not None:
                return met
            if self._exhausted(asked.lineage.client, instance):
                return Reason.RESOURCE_EXHAUSTED
            fault = take()
            if fault is not None:
                return fault
            now = self._desk.clock.now()
            record = Record(
                self._desk.receipt_id(),
                request_id,
                asked.key,
                asked.request_hash,
                asked.lineage,
                instance,
                asked.version,
                automatic,
                now.wall_ns,
            )
            arguments = self._desk.keyed(asked.parameters)
            draft = self._desk.draft(
                DECISION, State.ADMITTED, asked, instance, receipt_id=record.receipt_id, arguments=arguments
            )
            # INVARIANT: the receipt is durable before anything is sent; of one identity the ledger opens one.
            if not self._ledger.open_group(self._run, asked.identity, written(record), draft):
                return self._known_to_the_ledger(asked)
            return Fresh(self._hold(Receipt(asked.identity, record, State.ADMITTED, arguments)))

    def claim(self, receipt: Receipt, asked: Asked) -> Claimed | None:
        """Write the marker: the request may be out from here on. None if somebody ended it before.

        Raises:
            LedgerError: the ledger cannot be written; nothing may be sent.
        """
        lineage, instance = asked.lineage, receipt.record.instance
        permit = Admitted(receipt.identity, receipt.record.request_hash, instance, lineage.operation, asked.parameters)
        draft = self._draft(EVENT, State.RUNNING, receipt, asked)
        try:
            claimed = self._ledger.claim(permit, self._run, draft)
        except HarnessError as error:
            # The marker may be there or not. Nothing is sent either way.
            self._ended(receipt, End(State.CANCELLED, error.reason, error.detail))
            raise
        if not isinstance(claimed, Claimed):
            self._ended(receipt, End(State(claimed.state), Reason.CANCELLED, "another broker ended it"))
            return None
        receipt.state = State.RUNNING
        return claimed

    def running(self, receipt: Receipt) -> bool:
        """Whether the ledger still has it running: another broker may have ended it. When in doubt, no."""
        try:
            row = self._ledger.row(receipt.identity)
        except HarnessError:
            return False
        return row is not None and row.state == State.RUNNING

    def settle(self, receipt: Receipt, claimed: Claimed, asked: Asked, end: End) -> bool:
        """The end of an operation, once. What the ledger cannot take, or another broker has ended, is unknown.

        Whether the end is the one that was given.
        """
        draft = self._draft(OUTCOME, end.word, receipt, asked, end.explanation)
        try:
            self._ledger.settle(claimed, end.state, draft)
        except HarnessError as error:
            unrecorded = f"the end could not be recorded: {error.detail}"
            self._ended(receipt, End(State.UNKNOWN_NEEDS_REFRESH, error.reason, unrecorded))
            if not isinstance(error, LedgerError):
                raise
            return False
        self._ended(receipt, end)
        return True

    def _draft(self, kind: str, reason: str, receipt: Receipt, asked: Asked, detail: str = "") -> Draft:
        record = receipt.record
        return self._desk.draft(
            kind,
            reason,
            asked,
            record.instance,
            receipt_id=record.receipt_id,
            arguments=receipt.arguments,
            detail=detail,
        )

    def _ended(self, receipt: Receipt, end: End) -> None:
        with self._lock:
            receipt.state, receipt.reason, receipt.explanation = end.state, end.word, end.heard or end.explanation
            self._count(receipt, -1)
            if end.content is not None:
                self._keep(receipt, end.content)

    def _keep(self, receipt: Receipt, content: bytes) -> None:
        """Keep what an operation gave, and let go of the oldest where all of it is too much."""
        receipt.content = content
        self._contents[receipt.identity] = receipt
        self._content_bytes += len(content)
        while self._content_bytes > MAX_CONTENT_BYTES:
            self._drop(next(iter(self._contents.values())))

    def _drop(self, receipt: Receipt) -> None:
        if receipt.content is not None:
            del self._contents[receipt.identity]
            self._content_bytes -= len(receipt.content)
            receipt.content = None

    def _meet(self, asked: Asked, request_id: str) -> Met | Reason | None:
        found = self._held.get(asked.identity)
        if found is not None:
            return self._same(found, asked)
        other = self._by_request.get((asked.lineage.client, request_id))
        return None if other is None else Reason.REQUEST_ID_CONFLICT

    def _before(self, lineage: Lineage, key: str) -> Receipt | None:
        """This very operation, whatever grant it was admitted under, where that was left to the broker."""
        client, registration, _, publication, operation = lineage
        identity = self._again.get((client, registration, publication, operation, key))
        return None if identity is None else self._held[identity]

    def _met_under_another_grant(self, asked: Asked) -> Met | Reason | None:
        """Of calls that came at once and left the grant to the broker, each may have been given its own."""
        found = self._before(asked.lineage, asked.key)
        if found is None:
            return None
        return self._same(found, evolve(asked, lineage=asked.lineage._replace(grant=found.record.lineage.grant)))

    def _same(self, found: Receipt, asked: Asked) -> Met | Reason:
        if self._age(found.record) >= REPLAY_WINDOW_NS:
            return Reason.REPLAY_WINDOW_EXPIRED
        return Met(found) if found.record.request_hash == asked.request_hash else Reason.IDEMPOTENCY_CONFLICT

    def _known_to_the_ledger(self, asked: Asked) -> Met | Reason:
        """The group is there and not at hand: it was let go of, another broker's, or its writing seemed to fail."""
        row = self._ledger.row(asked.identity)
        receipt = self._read(asked.identity, row)
        return self._same(receipt, asked)

    def _exhausted(self, client: str, instance: str) -> bool:
        while self._held:
            oldest = next(iter(self._held.values()))
            kept_for = REPLAY_WINDOW_NS if len(self._held) >= MAX_RECEIPTS else RETENTION_NS
            if oldest.active or self._age(oldest.record) < kept_for:
                break
            self._let_go(oldest)
        return (
            len(self._held) >= MAX_RECEIPTS
            or self._active["client", client] >= ACTIVE_PER_CLIENT
            or self._active["instance", instance] >= ACTIVE_PER_INSTANCE
        )

    def _age(self, record: Record) -> int:
        return self._desk.clock.now().wall_ns - record.admitted_ns

    def _hold(self, receipt: Receipt) -> Receipt:
        record = receipt.record
        self._held[receipt.identity] = receipt
        self._by_request[record.lineage.client, record.request_id] = receipt.identity
        self._by_receipt[record.receipt_id] = receipt
        if record.automatic:
            self._again[record.again] = receipt.identity
        if receipt.active:
            self._count(receipt, 1)
        return receipt

    def _let_go(self, receipt: Receipt) -> None:
        record = receipt.record
        del self._held[receipt.identity]
        del self._by_receipt[record.receipt_id]
        self._drop(receipt)
        # The same names may be another's by now.
        request = (record.lineage.client, record.request_id)
        if self._by_request.get(request) == receipt.identity:
            del self._by_request[request]
        if self._again.get(record.again) == receipt.identity:
            del self._again[record.again]

    def _count(self, receipt: Receipt, by: int) -> None:
        for name in (("client", receipt.record.lineage.client), ("instance", receipt.record.instance)):
            self._active[name] += by
            if not self._active[name]:
                del self._active[name]

    def _take_over(self) -> None:
        clock = self._desk.clock
        self._ledger.recover(self._run, clock.now())
        told = self._told()
        for identity, row in self._ledger.groups(self._run):
            receipt = self._read(identity, row)
            receipt.reason, receipt.explanation = told.get(identity.hex(), ("", ""))
            if self._age(receipt.record) < RETENTION_NS:
                self._hold(receipt)

    def _told(self) -> dict[str, tuple[str, str]]:
        """Why each operation ended, by its group, from the run's receipts: believed as a whole or not at all."""
        ends = (line for line in self._desk.history(self._run) if line["kind"] == OUTCOME)
        return {end["group"]: (end["reason"], end["detail"]) for end in ends}

    def _read(self, identity: bytes, row: Row | None) -> Receipt:
        raw = self._ledger.group_record(identity)
        try:
            if row is None or raw is None:
                raise InputError(Reason.LEDGER_MALFORMED, "an operation without a record")
            return Receipt(identity, read(raw), State(row.state))
        except (InputError, ValueError, TypeError, KeyError) as error:
            raise IntegrityError(Reason.LEDGER_MALFORMED, f"an operation's record is none: {error}") from error
