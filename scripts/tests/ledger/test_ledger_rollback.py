"""What was put back to an older state is refused: the whole file, a run of it, with its receipts or without."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from ledger_bench import APPROVE, NOW, RECORD, a_claim, a_draft, a_group, a_permit, create, reopen, verified
from marks import promise

from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.files import Anchor
from assisted_benchmark.ledger.protocol import Lost, Row
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.store import Store
from assisted_benchmark.live_policy.states import State

A, B, C = a_group("a"), a_group("b"), a_group("c")


def refused_for(attempt: Callable[[], object]) -> Reason:
    with pytest.raises(IntegrityError) as caught:
        attempt()
    return caught.value.reason


class Editor:
    """Someone who may write the ledger's file, but has neither its keys nor its anchor."""

    def __init__(self, folder: Path) -> None:
        self._file = str(folder / "ledger.db")
        self._old: list[tuple[Any, ...]] = []

    def copy(self) -> None:
        """Keep the rows of all runs as they are now, MACs and all."""
        with closing(apsw.Connection(self._file)) as connection:
            self._old = connection.execute("SELECT * FROM runs").fetchall()

    def put_back(self, receipts: bool) -> None:
        """Bring the copied runs back; with their receipts, what was written since then is cut off too."""
        with closing(apsw.Connection(self._file)) as connection:
            for row in self._old:
                connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
                if receipts:
                    connection.execute(
                        "DELETE FROM receipts WHERE place >> 32 = ? AND place & 0xffffffff > ?", (row[0], row[6])
                    )

    def do(self, *statements: str) -> None:
        with closing(apsw.Connection(self._file)) as connection:
            for statement in statements:
                connection.execute(statement)


def a_run_and_its_copy(folder: Path) -> tuple[SqliteLedger, Editor]:
    """A ledger with one run of A and B, copied before A is claimed."""
    ledger, editor = create(folder), Editor(folder)
    ledger.open_run("run-1", RECORD, [A, B])
    editor.copy()
    a_claim(ledger, "run-1", A)
    return ledger, editor


def another_run(ledger: SqliteLedger) -> None:
    ledger.open_run("run-2", RECORD, [C])
    a_claim(ledger, "run-2", C)


def nothing(_ledger: SqliteLedger) -> None:
    pass


RECEIPTS = pytest.mark.parametrize("receipts", [False, True], ids=["the row", "the row and its receipts"])
SINCE = pytest.mark.parametrize("since", [nothing, another_run], ids=["written last", "another written last"])

USES: dict[str, Callable[[SqliteLedger], object]] = {
    "claim": lambda ledger: ledger.claim(a_permit(A), "run-1", a_draft()),
    "claim of another group": lambda ledger: ledger.claim(a_permit(B), "run-1", a_draft()),
    "move": lambda ledger: ledger.move(A, "run-1", State.SEALED, State.EXPIRED, a_draft()),
    "record": lambda ledger: ledger.record("run-1", a_draft()),
    "refusal": lambda ledger: ledger.record("run-1", a_draft(), A),
    "recover": lambda ledger: ledger.recover("run-1", NOW),
    "row": lambda ledger: ledger.row(A),
    "head": lambda ledger: ledger.head("run-1"),
    "run_record": lambda ledger: ledger.run_record("run-1"),
}


@promise("K11", "K12a")
@RECEIPTS
@SINCE
def test_a_run_put_back_under_an_open_ledger_is_refused_whatever_is_asked(tmp_path, receipts, since):
    ledger, editor = a_run_and_its_copy(tmp_path)
    since(ledger)
    editor.put_back(receipts)
    assert {use: refused_for(lambda ask=ask: ask(ledger)) for use, ask in USES.items()} == dict.fromkeys(
        USES, Reason.LEDGER_ROLLED_BACK
    )
    another_run(ledger) if since is nothing else ledger.open_run("run-3", RECORD, [])
    assert refused_for(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) is Reason.LEDGER_ROLLED_BACK
    ledger.close()


@promise("K11")
@RECEIPTS
@SINCE
def test_a_run_put_back_is_refused_when_the_ledger_is_opened(tmp_path, receipts, since):
    ledger, editor = a_run_and_its_copy(tmp_path)
    since(ledger)
    ledger.close()
    editor.put_back(receipts)
    assert refused_for(lambda: reopen(tmp_path)) is Reason.LEDGER_ROLLED_BACK


@promise("K11", "K12a")
@RECEIPTS
def test_a_run_put_back_is_refused_by_a_process_that_did_not_write_it(tmp_path, receipts):
    ledger, editor = a_run_and_its_copy(tmp_path)
    other = reopen(tmp_path)
    another_run(ledger)
    editor.put_back(receipts)
    assert refused_for(lambda: other.claim(a_permit(A), "run-1", a_draft())) is Reason.LEDGER_ROLLED_BACK
    assert refused_for(lambda: other.head("run-1")) is Reason.LEDGER_ROLLED_BACK
    ledger.close()
    other.close()


@promise("K11")
@RECEIPTS
def test_another_history_of_the_same_length_is_refused(tmp_path, receipts):
    ledger, editor = a_run_and_its_copy(tmp_path)
    ledger.close()
    for name in ("ledger.db", "anchor"):
        shutil.copy(tmp_path / name, tmp_path / f"old-{name}")
    with closing(reopen(tmp_path)) as ledger:
        a_claim(ledger, "run-1", B)
        editor.copy()
    for name in ("ledger.db", "anchor"):
        shutil.copy(tmp_path / f"old-{name}", tmp_path / name)
    ledger = reopen(tmp_path)
    ledger.move(B, "run-1", State.SEALED, State.EXPIRED, a_draft("event", "expired"))
    editor.put_back(receipts)
    assert refused_for(lambda: ledger.row(B)) is Reason.LEDGER_ROLLED_BACK
    ledger.close()
    assert refused_for(lambda: reopen(tmp_path)) is Reason.LEDGER_ROLLED_BACK


@promise("K11")
def test_a_run_put_back_can_be_brought_forward_again(tmp_path):
    ledger, editor = a_run_and_its_copy(tmp_path)
    newest = Editor(tmp_path)
    newest.copy()
    editor.put_back(receipts=False)
    assert refused_for(lambda: ledger.row(A)) is Reason.LEDGER_ROLLED_BACK
    newest.put_back(receipts=False)
    assert ledger.claim(a_permit(A), "run-1", a_draft()) == Lost("dispatching")
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


@promise("K11", "K12a")
@pytest.mark.parametrize(("run", "reason"), [("run-1", Reason.LEDGER_TAMPERED), ("run-2", Reason.LEDGER_ROLLED_BACK)])
def test_a_run_that_was_removed_cannot_be_made_anew(tmp_path, run, reason):
    ledger, editor = a_run_and_its_copy(tmp_path)
    another_run(ledger)
    number = run[-1]
    editor.do(*(f"DELETE FROM {table} WHERE num = {number}" for table in ("runs", "groups")))
    editor.do(f"DELETE FROM receipts WHERE place >> 32 = {number}")
    for _ in range(2):
        assert refused_for(lambda: ledger.open_run(run, RECORD, [A])) is reason
        assert refused_for(ledger.runs) is reason
    ledger.close()
    assert refused_for(lambda: reopen(tmp_path)) is reason


@promise("K11")
@pytest.mark.parametrize("change", [lambda ledger: a_claim(ledger, "run-1", B), another_run], ids=["claim", "run"])
def test_an_older_copy_of_the_file_is_rolled_back(tmp_path, change):
    ledger, _ = a_run_and_its_copy(tmp_path)
    ledger.close()
    shutil.copy(tmp_path / "ledger.db", tmp_path / "old.db")
    with closing(reopen(tmp_path)) as ledger:
        change(ledger)
    shutil.copy(tmp_path / "old.db", tmp_path / "ledger.db")
    assert refused_for(lambda: reopen(tmp_path)) is Reason.LEDGER_ROLLED_BACK


@promise("K11")
def test_a_lost_write_ahead_log_is_rolled_back(tmp_path):
    ledger, _ = a_run_and_its_copy(tmp_path)
    shutil.copy(tmp_path / "ledger.db", tmp_path / "without-log.db")
    ledger.close()
    refused = refused_for(lambda: reopen(tmp_path, name="without-log.db"))
    assert refused in {Reason.LEDGER_ROLLED_BACK, Reason.LEDGER_MALFORMED}


@promise("K11")
def test_the_last_receipt_of_every_run_is_missed_when_the_ledger_is_opened(tmp_path):
    ledger, editor = a_run_and_its_copy(tmp_path)
    another_run(ledger)
    ledger.close()
    editor.do("DELETE FROM receipts WHERE place >> 32 = 1")
    assert refused_for(lambda: reopen(tmp_path)) is Reason.LEDGER_ROLLED_BACK


class Crash(BaseException):
    """The process is gone."""


def crash(monkeypatch: pytest.MonkeyPatch, before_commit: bool, change: Callable[[], object]) -> None:
    """Die in a change: before its COMMIT, or between that and the anchor."""

    def die(*_: object) -> None:
        raise Crash

    owner, method = (Store, "commit") if before_commit else (Anchor, "write")
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, die)
        with pytest.raises(Crash):
            change()


BEFORE_COMMIT = pytest.mark.parametrize("before_commit", [True, False], ids=["before COMMIT", "before the anchor"])


@promise("K11", "K12a")
@BEFORE_COMMIT
def test_a_crash_around_the_commit_is_no_rollback(tmp_path, monkeypatch, before_commit):
    ledger, _ = a_run_and_its_copy(tmp_path)
    crash(monkeypatch, before_commit, lambda: ledger.claim(a_permit(B), "run-1", a_draft()))
    ledger.close()
    with closing(reopen(tmp_path)) as ledger:
        assert ledger.row(B) == (Row("sealed") if before_commit else Row("dispatching", APPROVE))
        assert ledger.recover("run-1", NOW) == tuple(sorted([A] if before_commit else [A, B]))
        assert verified(ledger, "run-1").findings == ()


@promise("K11", "K12a")
@BEFORE_COMMIT
def test_a_crash_in_opening_a_run_is_no_rollback(tmp_path, monkeypatch, before_commit):
    ledger, _ = a_run_and_its_copy(tmp_path)
    crash(monkeypatch, before_commit, lambda: ledger.open_run("run-2", RECORD, [C]))
    other = reopen(tmp_path)
    assert other.open_run("run-2", RECORD, [C]) is before_commit
    another_run(ledger) if before_commit else a_claim(ledger, "run-2", C)
    assert other.claim(a_permit(C), "run-2", a_draft()) == Lost("dispatching")
    ledger.close()
    other.close()
    reopen(tmp_path).close()


@promise("K11", "K12a")
@pytest.mark.parametrize("run", ["run-1", "run-2"], ids=["in the same run", "in another run"])
def test_a_process_goes_on_after_another_died_before_its_anchor(tmp_path, monkeypatch, run):
    ledger, editor = a_run_and_its_copy(tmp_path)
    ledger.open_run("run-2", RECORD, [C])
    other = reopen(tmp_path)
    editor.copy()
    crash(monkeypatch, False, lambda: ledger.claim(a_permit(B), "run-1", a_draft()))
    ledger.close()
    other.record(run, a_draft())
    assert other.claim(a_permit(B), "run-1", a_draft()) == Lost("dispatching")
    # What a turn has read is anchored from then on, though its writer did not come to it.
    editor.put_back(receipts=True)
    assert refused_for(lambda: other.claim(a_permit(B), "run-1", a_draft())) is Reason.LEDGER_ROLLED_BACK
    other.close()
    assert refused_for(lambda: reopen(tmp_path)) is Reason.LEDGER_ROLLED_BACK


@promise("K11")
def test_opening_anchors_what_a_crash_left_unanchored(tmp_path, monkeypatch):
    ledger, editor = a_run_and_its_copy(tmp_path)
    editor.copy()
    crash(monkeypatch, False, lambda: ledger.claim(a_permit(B), "run-1", a_draft()))
    ledger.close()
    reopen(tmp_path).close()
    editor.put_back(receipts=True)
    assert refused_for(lambda: reopen(tmp_path)) is Reason.LEDGER_ROLLED_BACK


@promise("K11")
def test_an_anchor_that_stayed_far_behind_is_no_rollback(tmp_path):
    ledger, _ = a_run_and_its_copy(tmp_path)
    behind = (tmp_path / "anchor").read_bytes()
    for _ in range(3):
        ledger.record("run-1", a_draft())
    another_run(ledger)
    ledger.close()
    newest = (tmp_path / "anchor").read_bytes()
    (tmp_path / "anchor").write_bytes(behind)
    reopen(tmp_path).close()
    assert (tmp_path / "anchor").read_bytes() == newest


@promise("K11", "K12a")
def test_a_run_that_nobody_anchored_leaves_a_gap_that_is_no_mark(tmp_path, monkeypatch):
    ledger = create(tmp_path)
    crash(monkeypatch, False, lambda: ledger.open_run("run-1", RECORD, [A]))
    ledger.open_run("run-2", RECORD, [C])
    assert ledger.row(A) == Row("sealed")
    a_claim(ledger, "run-1", A)
    ledger.close()
    reopen(tmp_path).close()


def test_a_read_that_another_process_overtakes_is_no_rollback(tmp_path):
    ledger, _ = a_run_and_its_copy(tmp_path)
    other = reopen(tmp_path)
    anchored = ledger._store.anchored

    def overtaken(num: int) -> object:
        a_claim(other, "run-1", B)
        return anchored(num)

    ledger._store.anchored = overtaken
    assert ledger.row(B) == Row("dispatching", APPROVE)
    ledger.close()
    other.close()


def test_marks_lie_within_pages_and_beside_one_another(tmp_path):
    ledger = create(tmp_path)
    empty = os.stat(tmp_path / "anchor").st_size
    for number in range(3):
        ledger.open_run(f"run-{number}", RECORD, [])
    ledger.record("run-0", a_draft())
    assert (empty % 64, os.stat(tmp_path / "anchor").st_size) == (0, empty + 3 * 64)
    ledger.close()
