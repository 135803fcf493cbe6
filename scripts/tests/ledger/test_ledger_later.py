"""Groups that were opened later than their run, in SQLite: what is edited, removed or put back is found."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from ledger_bench import (
    APPROVE,
    HOLD,
    NOW,
    RECORD,
    a_claim,
    a_draft,
    a_group,
    a_permit,
    an_opening,
    create,
    reopen,
    verified,
)
from marks import promise

from assisted_benchmark.kernel.errors import HarnessError, IntegrityError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.files import Anchor
from assisted_benchmark.ledger.protocol import Lost, Row
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.live_policy.states import State

A, B, C, D = a_group("a"), a_group("b"), a_group("c"), a_group("d")

TAMPERED = (IntegrityError, Reason.LEDGER_TAMPERED)
ROLLED_BACK = (IntegrityError, Reason.LEDGER_ROLLED_BACK)


def refusal(attempt: Callable[[], object]) -> tuple[type[HarnessError], Reason]:
    with pytest.raises(HarnessError) as caught:
        attempt()
    return type(caught.value), caught.value.reason


def edit(folder: Path, *statements: str) -> None:
    """Change a ledger's rows as someone with an SQLite shell would."""
    with closing(apsw.Connection(str(folder / "ledger.db"))) as connection:
        for statement in statements:
            connection.execute(statement)


def another_later_row(columns: str) -> str:
    return f"UPDATE later SET {columns} WHERE name = x'{A.hex()}'"


# The same of groups that were opened later: A was claimed, B is sealed, C is another run's.
LATER_EDITS = {
    "state put back": another_later_row("state = 'sealed', candidate = ''"),
    "state alone": another_later_row("state = 'succeeded'"),
    "candidate": another_later_row(f"candidate = '{HOLD}'"),
    "refusals": another_later_row("refusals = 7"),
    "length": another_later_row("length = 7"),
    "mac": another_later_row("mac = x'00'"),
    "number": another_later_row("num = 9"),
    "name": another_later_row(f"name = x'{a_group('d').hex()}'"),
    "names of two exchanged": f"UPDATE later SET name = x'' WHERE num = 2; UPDATE later SET name = x'{A.hex()}'"
    f" WHERE num = 3; UPDATE later SET name = x'{B.hex()}' WHERE num = 2",
    "run": another_later_row("run = 4"),
    "removed": f"DELETE FROM later WHERE name = x'{A.hex()}'",
    "sealed one removed": f"DELETE FROM later WHERE name = x'{B.hex()}'",
    "the last one removed": "DELETE FROM later WHERE num = 5",
    "removed from the count of its run": "UPDATE runs SET later = 1; DELETE FROM later WHERE num = 3",
    "digest of its record": another_later_row("kept = zeroblob(32)"),
    "record": "UPDATE records SET record = x'7b7d' WHERE num = 2",
    "record removed": "DELETE FROM records WHERE num = 2",
    "records exchanged": "UPDATE records SET num = -num; UPDATE records SET num = CASE num WHEN -2 THEN 3 ELSE 2 END"
    " WHERE num > -5",
}


def a_ledger_with_later_groups(folder: Path) -> None:
    ledger = create(folder)
    ledger.open_run("run-1", RECORD, [])
    an_opening(ledger, "run-1", A)
    an_opening(ledger, "run-1", B, b'{"another":1}')
    ledger.open_run("run-2", RECORD, [])
    an_opening(ledger, "run-2", C)
    a_claim(ledger, "run-1", A)
    ledger.close()


@promise("K11", "M11", "C23")
@pytest.mark.parametrize("statement", LATER_EDITS.values(), ids=LATER_EDITS)
def test_a_later_group_edited_by_hand_is_found(tmp_path, statement):
    a_ledger_with_later_groups(tmp_path)
    reopen(tmp_path).close()
    edit(tmp_path, *statement.split("; "))
    assert refusal(lambda: reopen(tmp_path)) in {TAMPERED, ROLLED_BACK}


LATER_USES = {
    "row": lambda ledger: ledger.row(A),
    "claim": lambda ledger: ledger.claim(a_permit(A), "run-1", a_draft()),
    "move": lambda ledger: ledger.move(A, "run-1", State.SEALED, State.EXPIRED, a_draft()),
    "refusal": lambda ledger: ledger.record("run-1", a_draft(), A),
    "groups": lambda ledger: ledger.groups("run-1"),
    "recover": lambda ledger: ledger.recover("run-1", NOW),
    "group_record": lambda ledger: ledger.group_record(A),
}


@promise("K11", "K12a", "M11")
def test_a_later_group_edited_under_an_open_ledger_is_found_by_every_use(tmp_path):
    a_ledger_with_later_groups(tmp_path)
    ledger = reopen(tmp_path)
    edit(tmp_path, LATER_EDITS["state put back"])
    for use in LATER_USES.values():
        assert refusal(lambda use=use: use(ledger)) == TAMPERED
    assert ledger.row(B) == Row("sealed")
    ledger.close()


@promise("K11", "M11")
@pytest.mark.parametrize("statement", ["UPDATE records SET record = x'7b7d'", "DELETE FROM records"])
def test_a_record_edited_or_removed_under_an_open_ledger_is_not_handed_out(tmp_path, statement):
    a_ledger_with_later_groups(tmp_path)
    ledger = reopen(tmp_path)
    edit(tmp_path, statement)
    assert refusal(lambda: ledger.group_record(A)) == TAMPERED
    assert ledger.row(A) == Row("dispatching", APPROVE)
    ledger.close()


@promise("K11", "K12a", "M11")
@pytest.mark.parametrize("num", [2, 5], ids=["in the middle", "the last"])
def test_a_later_group_that_was_removed_cannot_be_opened_anew(tmp_path, num):
    a_ledger_with_later_groups(tmp_path)
    ledger = reopen(tmp_path)
    edit(tmp_path, f"DELETE FROM later WHERE num = {num}")
    name = A if num == 2 else C
    for _ in range(2):
        refused = refusal(lambda: ledger.open_group("run-1", name, RECORD, a_draft()))
        assert refused == (TAMPERED if num == 2 else ROLLED_BACK)
        with pytest.raises(HarnessError):
            ledger.open_run("run-3", RECORD, [name])
    assert refusal(lambda: list(ledger.groups("run-1" if num == 2 else "run-2"))) == TAMPERED
    ledger.close()


@promise("K12a", "M11")
def test_a_conditional_write_of_a_later_group_that_meets_no_row_is_no_permit(tmp_path):
    a_ledger_with_later_groups(tmp_path)
    ledger = reopen(tmp_path)
    changes, answers = ledger._store.changes, iter([1, 0])
    ledger._store.changes = lambda: next(answers)
    assert refusal(lambda: ledger.claim(a_permit(B), "run-1", a_draft())) == TAMPERED
    ledger._store.changes = changes
    assert ledger.row(B) == Row("sealed")
    a_claim(ledger, "run-1", B)
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


@promise("K11", "M11")
def test_later_groups_are_there_when_the_ledger_is_opened_again(tmp_path):
    a_ledger_with_later_groups(tmp_path)
    ledger = reopen(tmp_path)
    assert list(ledger.groups("run-1")) == [(A, Row("dispatching", APPROVE)), (B, Row("sealed"))]
    assert (ledger.group_record(A), ledger.group_record(B)) == (RECORD, b'{"another":1}')
    assert ledger.open_group("run-2", B, RECORD, a_draft()) is False
    assert ledger.recover("run-1", NOW) == (A,)
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


def test_a_later_group_is_one_of_its_own_run_only(tmp_path):
    a_ledger_with_later_groups(tmp_path)
    ledger = reopen(tmp_path)
    cross_run = (LedgerError, Reason.CROSS_RUN)
    assert refusal(lambda: ledger.claim(a_permit(C), "run-1", a_draft())) == cross_run
    assert ledger.row(C) == Row("sealed")
    ledger.close()


class Editor:
    """Someone who may write the ledger's file, but has neither its keys nor its anchor."""

    def __init__(self, folder: Path) -> None:
        self._file = str(folder / "ledger.db")
        self._runs: list[tuple[Any, ...]] = []
        self._later: list[tuple[Any, ...]] = []

    def copy(self) -> None:
        """Keep all rows as they are now, MACs and all."""
        with closing(apsw.Connection(self._file)) as connection:
            self._runs = connection.execute("SELECT * FROM runs").fetchall()
            self._later = connection.execute("SELECT * FROM later").fetchall()

    def put_back(self, runs: bool = False, receipts: bool = False) -> None:
        """Bring back the groups' rows, on demand their runs' too, and cut off the receipts that came since."""
        with closing(apsw.Connection(self._file)) as connection:
            for row in self._later:
                connection.execute(f"INSERT OR REPLACE INTO later VALUES ({', '.join('?' * len(row))})", row)
            for row in self._runs if runs else ():
                connection.execute(f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' * len(row))})", row)
                if receipts:
                    connection.execute(
                        "DELETE FROM receipts WHERE place >> 32 = ? AND place & 0xffffffff > ?", (row[0], row[6])
                    )


def a_claimed_group_and_its_copy(folder: Path) -> tuple[SqliteLedger, Editor]:
    """A run with two later groups, copied before A is claimed."""
    ledger, editor = create(folder), Editor(folder)
    ledger.open_run("run-1", RECORD, [])
    an_opening(ledger, "run-1", A)
    an_opening(ledger, "run-1", B)
    editor.copy()
    a_claim(ledger, "run-1", A)
    return ledger, editor


PUT_BACK = pytest.mark.parametrize(
    "what",
    [{}, {"runs": True}, {"runs": True, "receipts": True}],
    ids=["the group", "the group and its run", "the group, its run and the receipts"],
)


@promise("K11", "K12a", "M11", "C23")
@PUT_BACK
@pytest.mark.parametrize("since", [False, True], ids=["written last", "another written last"])
def test_a_later_group_put_back_under_an_open_ledger_is_refused_whatever_is_asked(tmp_path, what, since):
    ledger, editor = a_claimed_group_and_its_copy(tmp_path)
    if since:
        ledger.open_run("run-2", RECORD, [])
        an_opening(ledger, "run-2", C)
    editor.put_back(**what)
    for use, ask in LATER_USES.items():
        assert (use, refusal(lambda ask=ask: ask(ledger))) == (use, ROLLED_BACK)
    ledger.close()
    assert refusal(lambda: reopen(tmp_path)) == ROLLED_BACK


@promise("K11", "K12a", "M11")
@PUT_BACK
def test_a_later_group_put_back_is_refused_by_a_process_that_did_not_write_it(tmp_path, what):
    ledger, editor = a_claimed_group_and_its_copy(tmp_path)
    other = reopen(tmp_path)
    assert other.row(A) == Row("dispatching", APPROVE)
    editor.put_back(**what)
    assert refusal(lambda: other.claim(a_permit(A), "run-1", a_draft())) == ROLLED_BACK
    assert refusal(lambda: other.row(A)) == ROLLED_BACK
    ledger.close()
    other.close()


@promise("K11", "M11")
def test_a_later_group_put_back_to_before_it_was_opened_is_refused(tmp_path):
    ledger, editor = create(tmp_path), Editor(tmp_path)
    ledger.open_run("run-1", RECORD, [])
    editor.copy()
    an_opening(ledger, "run-1", A)
    editor.put_back(runs=True, receipts=True)
    edit(tmp_path, "DELETE FROM later", "DELETE FROM records")
    for _ in range(2):
        assert refusal(lambda: ledger.open_group("run-1", A, RECORD, a_draft())) == ROLLED_BACK
        assert refusal(lambda: list(ledger.groups("run-1"))) == ROLLED_BACK
    ledger.close()
    assert refusal(lambda: reopen(tmp_path)) == ROLLED_BACK


@promise("K11", "K12a")
def test_a_later_group_put_back_can_be_brought_forward_again(tmp_path):
    ledger, editor = a_claimed_group_and_its_copy(tmp_path)
    newest = Editor(tmp_path)
    newest.copy()
    editor.put_back()
    assert refusal(lambda: ledger.row(A)) == ROLLED_BACK
    newest.put_back()
    assert ledger.claim(a_permit(A), "run-1", a_draft()) == Lost("dispatching")
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


class Crash(BaseException):
    """The process is gone."""


def crash(monkeypatch: pytest.MonkeyPatch, marks: int, change: Callable[[], object]) -> None:
    """Die in a change, after its COMMIT and that many marks of the anchor."""
    write, left = Anchor.write, iter(range(marks))

    def die(anchor: Anchor, mark: object) -> None:
        if next(left, None) is None:
            raise Crash
        write(anchor, mark)

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "write", die)
        with pytest.raises(Crash):
            change()


MARKS = pytest.mark.parametrize("marks", [0, 1], ids=["before the anchor", "between its two marks"])


@promise("K11", "K12a", "M11")
@MARKS
@pytest.mark.parametrize("again", ["the same ledger", "another process", "opened again"])
def test_a_crash_while_a_claim_of_a_later_group_is_anchored_is_no_rollback(tmp_path, monkeypatch, marks, again):
    ledger, editor = a_claimed_group_and_its_copy(tmp_path)
    other = reopen(tmp_path)
    editor.copy()
    crash(monkeypatch, marks, lambda: ledger.claim(a_permit(B), "run-1", a_draft()))
    if again == "opened again":
        ledger.close()
        ledger = reopen(tmp_path)
    asked = other if again == "another process" else ledger
    assert asked.claim(a_permit(B), "run-1", a_draft()) == Lost("dispatching")
    # What a turn has read is anchored from then on, though its writer did not come to it.
    editor.put_back(runs=True, receipts=True)
    assert refusal(lambda: asked.claim(a_permit(B), "run-1", a_draft())) == ROLLED_BACK
    ledger.close()
    other.close()
    assert refusal(lambda: reopen(tmp_path)) == ROLLED_BACK


@promise("K11", "M11")
@MARKS
def test_a_crash_while_a_later_group_is_opened_is_no_rollback(tmp_path, monkeypatch, marks):
    ledger, _ = a_claimed_group_and_its_copy(tmp_path)
    other = reopen(tmp_path)
    crash(monkeypatch, marks, lambda: ledger.open_group("run-1", C, RECORD, a_draft()))
    assert other.open_group("run-1", C, RECORD, a_draft()) is False
    an_opening(other, "run-1", D)
    a_claim(ledger, "run-1", C)
    assert [name for name, _ in ledger.groups("run-1")] == [A, B, C, D]
    assert ledger.recover("run-1", NOW) == tuple(sorted([A, C]))
    assert verified(ledger, "run-1").findings == ()
    ledger.close()
    other.close()
    reopen(tmp_path).close()


@promise("K11", "M11")
def test_a_later_group_that_was_never_anchored_is_missed_by_its_run(tmp_path, monkeypatch):
    ledger, _ = a_claimed_group_and_its_copy(tmp_path)
    crash(monkeypatch, 0, lambda: ledger.open_group("run-1", C, RECORD, a_draft()))
    ledger.close()
    edit(tmp_path, f"DELETE FROM later WHERE name = x'{C.hex()}'")
    assert refusal(lambda: reopen(tmp_path)) == TAMPERED


def test_a_read_of_a_later_group_that_another_process_overtakes_is_no_rollback(tmp_path):
    other, _ = a_claimed_group_and_its_copy(tmp_path)
    ledger = reopen(tmp_path)
    anchored = ledger._store.anchored

    def overtaken(num: int) -> object:
        if other.row(B) == Row("sealed"):
            a_claim(other, "run-1", B)
        return anchored(num)

    ledger._store.anchored = overtaken
    assert ledger.row(B) == Row("dispatching", APPROVE)
    ledger.close()
    other.close()


def test_two_openings_of_one_ledger_see_each_others_later_groups(tmp_path):
    one, _ = a_claimed_group_and_its_copy(tmp_path)
    two = reopen(tmp_path)
    an_opening(two, "run-1", C)
    an_opening(one, "run-1", D)
    a_claim(two, "run-1", D)
    assert one.claim(a_permit(D), "run-1", a_draft()) == Lost("dispatching")
    assert list(one.groups("run-1")) == list(two.groups("run-1"))
    assert verified(one, "run-1").findings == ()
    one.close()
    two.close()


@promise("M11", "C24")
def test_a_change_of_a_later_group_writes_as_much_beside_many_as_beside_few(tmp_path):
    ledger = create(tmp_path)
    log = tmp_path / "ledger.db-wal"

    def written(run: str, group: bytes) -> int:
        """How many bytes of log a group's whole life takes."""
        ledger._store._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        an_opening(ledger, run, group)
        ledger.settle(a_claim(ledger, run, group), State.SUCCEEDED, a_draft("outcome", "succeeded"))
        return log.stat().st_size

    ledger.open_run("few", RECORD, [])
    ledger.open_run("many", RECORD, [])
    few = written("few", A)
    for number in range(500):
        an_opening(ledger, "many", a_group(str(number)))
    # A page or two more where a tree is a level deeper, not one for each group.
    assert written("many", B) <= few + 8 * 4096
    ledger.close()
