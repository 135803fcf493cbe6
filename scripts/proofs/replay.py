"""The same questions to the real ledgers: each must answer as the model's rows say, and its rows must be theirs."""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Claimed, Draft, Ledger
from assisted_benchmark.ledger.receipts import DECISION, verify
from assisted_benchmark.ledger.states import TransitionTable
from proofs.rows import ABSENT, DONE, Question, Row, RowLedger, Rows, claim, move, note, opening, recovery, settle
from proofs.rows import CLAIMED as IS_CLAIMED
from proofs.stores import real

_NOW: Final = Instant(1_900_000_000_000_000_000, 1)
_RUNS_A_FILE: Final = 64
_NAMES: Final = {digest_of("candidate@1", word.encode()): word for word in ("a", "b")}
_DIGESTS: Final = {word: digest for digest, word in _NAMES.items()}


class Replayed(NamedTuple):
    """How many questions were asked of a real ledger, and where it was not as the model has it."""

    questions: int
    differing: tuple[str, ...]


def whole_table(table: TransitionTable, born: str) -> frozenset[tuple[Rows, Question]]:
    """Every question that there is, at every state of one group: those that no broker asks too."""
    ledger = RowLedger(table)
    states = sorted(map(str, table.states))
    every = [
        opening(0, 0),
        recovery(0),
        note(0, 0),
        *[claim(0, 0, each) for each in _DIGESTS],
        *[settle(0, 0, each, after) for each in _DIGESTS for after in states],
        *[move(0, 0, before, after) for before in states for after in states],
    ]
    found: set[tuple[Rows, Question]] = set()
    seen: set[Rows] = set()
    waiting: list[Rows] = [(Row(born),)]
    while waiting:
        rows = waiting.pop()
        if rows in seen:
            continue
        seen.add(rows)
        for question in every:
            after, answer = ledger.ask(rows, question)
            found.add((rows, question._replace(answer=answer)))
            waiting.append(after)
    return frozenset(found)


def replay(
    table: TransitionTable, start: Rows, asked: Iterable[tuple[Rows, Question]], kind: str, *, later: bool
) -> Replayed:
    """Ask every question of a real ledger, in a run that was brought to its rows by the shortest way there.

    With `later` the groups are opened after their run; those that the model opens itself always are.
    """
    ledger = RowLedger(table)
    at: defaultdict[Rows, list[Question]] = defaultdict(list)
    for rows, question in sorted(asked):
        at[rows].append(question)
    brokers = 1 + max(question.by for questions in at.values() for question in questions)
    ways: dict[Rows, tuple[Question, ...]] = {start: ()}
    waiting = deque([start])
    differing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="models-") as folder:
        places = _Places(table, kind, Path(folder), brokers)
        while waiting:
            rows = waiting.popleft()
            unchanged = []
            for question in at[rows]:
                after, _ = ledger.ask(rows, question)
                if after == rows:
                    unchanged.append(question)
                    continue
                if after not in ways:
                    ways[after] = (*ways[rows], question)
                    waiting.append(after)
                differing += places.next(start, later=later).differs((*ways[rows], question), after)
            # What changes nothing can be asked one after the other.
            differing += places.next(start, later=later).differs((*ways[rows], *unchanged), rows)
        places.close()
    unreached = len([rows for rows in at if rows not in ways])
    questions = sum(map(len, at.values()))
    return Replayed(questions, (*differing, *["rows that no question leads to"] * unreached))


class _Places:
    """Runs to ask in, a few to each ledger, so that it is opened fast."""

    def __init__(self, table: TransitionTable, kind: str, folder: Path, brokers: int) -> None:
        self._table = table
        self._kind = kind
        self._folder = self._file = folder
        self._brokers = brokers
        self._runs = 0
        self.ledgers: list[Ledger] = []

    def next(self, start: Rows, *, later: bool) -> _Run:
        """A run of its own, with its groups as the model begins."""
        if self._runs % _RUNS_A_FILE == 0:
            self.close()
            self._file = self._folder / str(self._runs)
            self._file.mkdir()
            first = self._open()
            self.ledgers = [
                first,
                *(first if self._kind == "memory" else self._open() for _ in range(1, self._brokers)),
            ]
        self._runs += 1
        return _Run(self, f"run-{self._runs}", start, self._table, later=later)

    def restart(self, by: int) -> None:
        """One broker opens its ledger anew, as after a crash."""
        if self._kind != "memory":
            self.ledgers[by].close()
            self.ledgers[by] = self._open()

    def close(self) -> None:
        for each in self.ledgers:
            each.close()

    def _open(self) -> Ledger:
        return MemoryLedger("models", self._table) if self._kind == "memory" else real(self._file, self._table)


class _Run:
    """One run of a real ledger, and its groups by their places in the model."""

    def __init__(self, places: _Places, run: str, start: Rows, table: TransitionTable, *, later: bool) -> None:
        self._places = places
        self._run = run
        self._table = table
        self._groups = [
            bytes.fromhex(digest_of("models@1", run.encode(), b"%d" % place)[7:]) for place in range(len(start))
        ]
        there = [name for name, row in zip(self._groups, start, strict=True) if row.state != ABSENT]
        ledger = places.ledgers[0]
        ledger.open_run(run, b"{}", () if later else there)
        for name in there if later else ():
            ledger.open_group(run, name, b"{}", _draft("opened"))

    def differs(self, questions: tuple[Question, ...], rows: Rows) -> Iterator[str]:
        """What is not as the model says, after these questions in turn."""
        for question in questions:
            answer = self._ask(question)
            if answer != question.answer:
                yield f"{question}: answered `{answer}`"
        for by, ledger in enumerate(self._places.ledgers):
            found = tuple(self._row(ledger, name) for name in self._groups)
            if found != rows:
                yield f"after {questions}: broker {by} reads {found}, not {rows}"
        ledger = self._places.ledgers[0]
        sound = verify(
            ledger.receipts(self._run),
            run=self._run,
            ledger_id=ledger.id,
            head=ledger.head(self._run),
            table=self._table,
        ).sound
        if not sound:
            yield f"after {questions}: the receipts do not verify"

    def _ask(self, question: Question) -> str:
        kind, by, place, candidate, before, after, _ = question
        name, run = self._groups[place], self._run
        if kind == "recover":
            self._places.restart(by)
        ledger = self._places.ledgers[by]
        try:
            if kind == "claim":
                claimed = ledger.claim(_permit(name, candidate), run, _draft("admitted"))
                return IS_CLAIMED if isinstance(claimed, Claimed) else claimed.state
            if kind == "settle":
                ledger.settle(Claimed(_permit(name, candidate), run), after, _draft(after))
                return DONE
            if kind == "move":
                return str(ledger.move(name, run, before, after, _draft(after))).lower()
            if kind == "open":
                return str(ledger.open_group(run, name, b"{}", _draft("opened"))).lower()
            if kind == "record":
                ledger.record(run, _draft("noted"))
                return DONE
            lost = ledger.recover(run, _NOW)
        except LedgerError as error:
            return error.reason.value
        return ",".join(str(place) for place, name in enumerate(self._groups) if name in lost)

    def _row(self, ledger: Ledger, name: bytes) -> Row:
        row = ledger.row(name)
        if row is None:
            return Row(ABSENT)
        return Row(row.state, _NAMES.get(Digest(row.candidate), "") if row.candidate else "")


def _permit(name: bytes, candidate: str) -> Admitted:
    return Admitted(name, _DIGESTS[candidate], "server", "tool", b"{}")


def _draft(reason: str) -> Draft:
    return Draft(DECISION, "receipt", _NOW, reason)
