"""A ledger in a few lines: what it does with its rows, by the transition table that the real ones follow."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from assisted_benchmark.ledger.states import TransitionTable

# What no ledger answers a claim with; ours says so of what it does not have.
ABSENT: Final = ""

CLAIMED: Final = "claimed"
DONE: Final = "done"
TRUE, FALSE = "true", "false"
ILLEGAL: Final = "illegal_transition"
UNKNOWN: Final = "unknown_group"

# Ways in which a ledger can be wrong.
CLAIMS_WHAT_IT_READ: Final = "a claim relies on an earlier read"
CLAIMS_EACH_CANDIDATE: Final = "a claim is of a candidate, not of its group"
RECOVERS_TO_READY: Final = "recovery takes an open claim for one that was never sent"
RECOVERS_NOTHING: Final = "recovery is left out"
SETTLES_ANYTHING: Final = "an outcome is written whatever the row says by then"
MOVES_ANYTHING: Final = "a transition is written whatever the row says by then"
OPENS_ANYTHING: Final = "a name that exists is opened again"


class Row(NamedTuple):
    """A group: its state, and the candidate that was claimed."""

    state: str
    candidate: str = ""


Rows: TypeAlias = tuple[Row, ...]


class Question(NamedTuple):
    """What a broker asks of the ledger about one group, and what is answered. `by` is the broker."""

    kind: str
    by: int
    group: int = 0
    candidate: str = ""
    before: str = ""
    after: str = ""
    answer: str = ""


def claim(by: int, group: int, candidate: str) -> Question:
    """The durable marker."""
    return Question("claim", by, group, candidate)


def settle(by: int, group: int, candidate: str, after: str) -> Question:
    """The outcome of a claim."""
    return Question("settle", by, group, candidate, after=after)


def move(by: int, group: int, before: str, after: str) -> Question:
    """Any other transition."""
    return Question("move", by, group, before=before, after=after)


def opening(by: int, group: int) -> Question:
    """A group of its own, later than its run."""
    return Question("open", by, group)


def recovery(by: int) -> Question:
    """What a broker does at its start."""
    return Question("recover", by)


def note(by: int, group: int) -> Question:
    """A receipt beside a group, which changes nothing."""
    return Question("record", by, group)


class RowLedger:
    """The rules. `flaws` are the ways in which this one is wrong."""

    def __init__(self, table: TransitionTable, flaws: frozenset[str] = frozenset()) -> None:
        self._table = table
        self._flaws = flaws
        self._ready, self._claimed = str(table.ready), str(table.claimed)

    def ask(self, rows: Rows, question: Question) -> tuple[Rows, str]:
        """What the rows are after the question, and what is answered."""
        if question.kind == "recover":
            return self._recovered(rows)
        place, row = question.group, rows[question.group]
        after, answer = getattr(self, f"_{question.kind}")(row, question)
        return put(rows, place, after), answer

    def _claim(self, row: Row, question: Question) -> tuple[Row, str]:
        free = row.state == self._ready or CLAIMS_WHAT_IT_READ in self._flaws
        if CLAIMS_EACH_CANDIDATE in self._flaws:
            free = free or row.candidate not in ("", question.candidate)
        if row.state == ABSENT:
            return row, UNKNOWN
        return (Row(self._claimed, question.candidate), CLAIMED) if free else (row, row.state)

    def _settle(self, row: Row, question: Question) -> tuple[Row, str]:
        lawful = (self._claimed, question.after) in self._table.edges
        if SETTLES_ANYTHING in self._flaws or (lawful and row == (self._claimed, question.candidate)):
            return Row(question.after, question.candidate), DONE
        return row, UNKNOWN if lawful and row.state == ABSENT else ILLEGAL

    def _move(self, row: Row, question: Question) -> tuple[Row, str]:
        edge = (question.before, question.after)
        if (edge not in self._table.edges or question.after == self._claimed) and not self._flaws:
            return row, ILLEGAL
        if row.state == ABSENT:
            return row, UNKNOWN
        if row.state == question.before or MOVES_ANYTHING in self._flaws:
            return row._replace(state=question.after), TRUE
        return row, FALSE

    def _open(self, row: Row, _: Question) -> tuple[Row, str]:
        if row.state == ABSENT or OPENS_ANYTHING in self._flaws:
            return Row(str(self._table.initial)), TRUE
        return row, FALSE

    def _record(self, row: Row, _: Question) -> tuple[Row, str]:
        return row, DONE

    def _recovered(self, rows: Rows) -> tuple[Rows, str]:
        if RECOVERS_NOTHING in self._flaws:
            return rows, ""
        ends = dict(self._table.after_crash)
        if RECOVERS_TO_READY in self._flaws:
            ends = dict.fromkeys(ends, self._ready)
        lost = [place for place, row in enumerate(rows) if row.state in ends]
        after = tuple(row._replace(state=ends[row.state]) if row.state in ends else row for row in rows)
        return after, ",".join(map(str, lost))


def put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    """The same values but for one."""
    return (*values[:place], value, *values[place + 1 :])
