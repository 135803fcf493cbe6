"""The ledger in memory: the model that the others are held to, and the fastest.

It forgets with its process, so it promises nothing through a crash; everything else it promises
like the others. A group that nobody touched costs one entry of a dict: its run's name, which all
groups of the run share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

from attrs import Factory, define

from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed, Draft, Head, Lost, Row
from assisted_benchmark.ledger.receipts import crash_draft, first_prev, line_digest, write_line
from assisted_benchmark.ledger.states import TransitionTable


@define
class _Group:
    """A group that was touched, or opened later than its run."""

    run: str
    state: str
    candidate: str = ""
    refusals: int = 0
    record: bytes | None = None

    @property
    def row(self) -> Row:
        return Row(self.state, self.candidate, self.refusals)


@define
class _Chain:
    """The receipts of a run, and those of its groups that a crash must not leave as they are."""

    lines: list[bytes] = Factory(list)
    in_flight: set[bytes] = Factory(set)


class MemoryLedger:
    """A ledger that lives and dies with this process; threads may share it."""

    def __init__(self, ledger_id: str, table: TransitionTable) -> None:
        self._id = ledger_id
        self._table = table
        self._initial = str(table.initial)
        self._ready = str(table.ready)
        self._claimed = str(table.claimed)
        self._in_flight = frozenset(table.after_crash)
        self._sealed = Row(self._initial)
        self._lock = Lock()
        self._runs: dict[str, bytes] = {}
        self._groups: dict[bytes, str | _Group] = {}
        self._chains: dict[str, _Chain] = {}
        # The order of a run's groups: kept only of runs that began without any, or were asked for it.
        self._orders: dict[str, list[bytes]] = {}

    @property
    def id(self) -> str:
        return self._id

    @property
    def table(self) -> TransitionTable:
        return self._table

    def open_run(self, run: str, record: bytes, groups: Sequence[bytes]) -> bool:
        with self._lock:
            if run in self._runs:
                return False
            if len(set(groups)) != len(groups) or any(group in self._groups for group in groups):
                raise LedgerError(Reason.ILLEGAL_TRANSITION, f"a group of the run `{run}` exists already")
            self._runs[run] = record
            if not groups:
                self._orders[run] = []
            for group in groups:
                self._groups[group] = run
            if self._initial in self._in_flight:
                self._chains[run] = _Chain(in_flight=set(groups))
            return True

    def run_record(self, run: str) -> bytes | None:
        return self._runs.get(run)

    def open_group(self, run: str, group: bytes, record: bytes, receipt: Draft) -> bool:
        with self._lock:
            self._require_run(run)
            if group in self._groups:
                return False
            chain = self._append(run, receipt, group, "", self._initial)
            order = self._order(run)
            self._file(chain, group, _Group(run, self._initial, record=record))
            order.append(group)
            return True

    def group_record(self, group: bytes) -> bytes | None:
        found = self._groups.get(group)
        return found.record if isinstance(found, _Group) else None

    def groups(self, run: str) -> Iterator[tuple[bytes, Row]]:
        with self._lock:
            self._require_run(run)
            return iter([(name, self._touch(name, run).row) for name in self._order(run)])

    def row(self, group: bytes) -> Row | None:
        with self._lock:
            found = self._groups.get(group)
            if found is None:
                return None
            return self._sealed if isinstance(found, str) else found.row

    def claim(self, permit: Admitted, run: str, receipt: Draft) -> Claimed | Lost:
        with self._lock:
            group = self._touch(permit.group, run)
            if group.state != self._ready:
                return Lost(group.state)
            chain = self._append(run, receipt, permit.group, self._ready, self._claimed)
            group.state = self._claimed
            group.candidate = permit.candidate
            self._file(chain, permit.group, group)
        return Claimed(permit, run)

    def settle(self, claimed: Claimed, state: str, receipt: Draft) -> None:
        self._table.require(self._claimed, state)
        name = claimed.permit.group
        with self._lock:
            group = self._touch(name, claimed.run)
            if group.state != self._claimed or group.candidate != claimed.permit.candidate:
                raise LedgerError(
                    Reason.ILLEGAL_TRANSITION, f"the group is `{group.state}`, not claimed by this permit"
                )
            chain = self._append(claimed.run, receipt, name, self._claimed, state)
            group.state = str(state)
            self._file(chain, name, group)

    def move(self, group: bytes, run: str, before: str, after: str, receipt: Draft) -> bool:
        self._table.require_move(before, after)
        with self._lock:
            found = self._touch(group, run)
            if found.state != before:
                return False
            chain = self._append(run, receipt, group, before, after)
            found.state = str(after)
            self._file(chain, group, found)
            return True

    def record(self, run: str, receipt: Draft, refused: bytes | None = None) -> int:
        with self._lock:
            if refused is None:
                self._append(run, receipt, None, "", receipt.state)
                return 0
            group = self._touch(refused, run)
            self._append(run, receipt, refused, "", group.state)
            group.refusals += 1
            self._groups[refused] = group
            return group.refusals

    def recover(self, run: str, at: Instant) -> tuple[bytes, ...]:
        with self._lock:
            self._require_run(run)
            chain = self._chains.get(run)
            if chain is None:
                return ()
            lost = tuple(sorted(chain.in_flight))
            for name in lost:
                group = self._touch(name, run)
                draft = crash_draft(name, group.row, group.state == self._claimed, at, self._end(run, chain))
                after = self._table.after_crash[group.state]
                self._append(run, draft, name, group.state, after)
                group.state = after
                self._file(chain, name, group)
            return lost

    def receipts(self, run: str) -> Iterator[bytes]:
        with self._lock:
            chain = self._chains.get(run)
            return iter(tuple(chain.lines) if chain else ())

    def head(self, run: str) -> Head:
        with self._lock:
            self._require_run(run)
            chain = self._chains.get(run)
            if chain is None:
                chain = _Chain()
            return Head(len(chain.lines), self._end(run, chain))

    def runs(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(self._runs))

    def close(self) -> None:
        """Nothing to let go of."""

    def _require_run(self, run: str) -> None:
        if run not in self._runs:
            raise LedgerError(Reason.UNKNOWN_GRANT, f"the ledger has no run `{run}`")

    def _order(self, run: str) -> list[bytes]:
        order = self._orders.get(run)
        if order is None:
            found = self._groups.items()
            order = [name for name, group in found if (group if isinstance(group, str) else group.run) == run]
            self._orders[run] = order
        return order

    def _touch(self, group: bytes, run: str) -> _Group:
        """The group's own record; one that was never touched gets a fresh one, which the caller files."""
        found = self._groups.get(group)
        if found is None:
            raise LedgerError(Reason.UNKNOWN_GROUP, "the ledger has no such group")
        if isinstance(found, str):
            found = _Group(found, self._initial)
        if found.run != run:
            raise LedgerError(Reason.CROSS_RUN, f"the group is of the run `{found.run}`, not `{run}`")
        return found

    def _file(self, chain: _Chain, name: bytes, group: _Group) -> None:
        """Keep a group as it is after its receipt."""
        self._groups[name] = group
        if group.state in self._in_flight:
            chain.in_flight.add(name)
        else:
            chain.in_flight.discard(name)

    def _append(self, run: str, draft: Draft, group: bytes | None, before: str, state: str) -> _Chain:
        """Write the next receipt of a run. Raises before anything has changed."""
        chain = self._chains.get(run)
        if chain is None:
            self._require_run(run)
            chain = _Chain()
        name = draft.group if group is None else group.hex()
        prev = self._end(run, chain)
        chain.lines.append(write_line(draft, self._id, run, len(chain.lines) + 1, prev, name, before, state))
        self._chains[run] = chain
        return chain

    def _end(self, run: str, chain: _Chain) -> Digest:
        """What the run's next receipt names as the one before it: worked out when asked for, not before a send."""
        return line_digest(chain.lines[-1]) if chain.lines else first_prev(self._id, run)
