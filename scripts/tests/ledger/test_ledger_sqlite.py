"""The SQLite ledger's file: what it refuses to open, what it finds edited, and what it cannot write."""

import fcntl
import os
import shutil
import threading
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from ledger_bench import (
    APPROVE,
    HOLD,
    KEYS,
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

from assisted_benchmark.kernel.errors import HarnessError, IntegrityError, LedgerError, MisuseError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger import believed, files, store
from assisted_benchmark.ledger.protocol import Head, Lost, Row
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.ledger.store import Durability, require_safe_version
from assisted_benchmark.live_policy.states import State

A, B = a_group("a"), a_group("b")


def a_used_ledger(folder: Path) -> None:
    """Closed, with one run: A is claimed, B is sealed."""
    ledger = create(folder)
    ledger.open_run("run-1", RECORD, [A, B])
    a_claim(ledger, "run-1", A)
    ledger.close()


def edit(folder: Path, *statements: str) -> None:
    """Change a ledger's rows as someone with an SQLite shell would."""
    connection = apsw.Connection(str(folder / "ledger.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def refusal(attempt) -> tuple[type[HarnessError], Reason]:
    with pytest.raises(HarnessError) as caught:
        attempt()
    return type(caught.value), caught.value.reason


MALFORMED = (IntegrityError, Reason.LEDGER_MALFORMED)
TAMPERED = (IntegrityError, Reason.LEDGER_TAMPERED)
ROLLED_BACK = (IntegrityError, Reason.LEDGER_ROLLED_BACK)
MISSING = (LedgerError, Reason.LEDGER_MISSING)
UNAVAILABLE = (LedgerError, Reason.STORE_UNAVAILABLE)


@promise("K11")
def test_what_was_committed_is_there_when_it_is_opened_again(tmp_path):
    a_used_ledger(tmp_path)
    ledger = reopen(tmp_path)
    assert (ledger.id, ledger.runs(), ledger.run_record("run-1")) == ("ledger-1", ("run-1",), RECORD)
    assert (ledger.row(A), ledger.row(B)) == (Row("dispatching", APPROVE), Row("sealed"))
    assert ledger.claim(a_permit(A), "run-1", a_draft()) == Lost("dispatching")
    assert ledger.recover("run-1", NOW) == (A,)
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


@promise("K11")
def test_a_ledger_is_made_only_by_create(tmp_path):
    assert refusal(lambda: reopen(tmp_path)) == MISSING
    assert list(tmp_path.iterdir()) == []
    a_used_ledger(tmp_path)
    assert refusal(lambda: create(tmp_path)) == (MisuseError, Reason.MISUSE)
    (tmp_path / "ledger.db").unlink()
    assert refusal(lambda: reopen(tmp_path)) == MISSING


@promise("K11")
def test_a_ledger_without_its_anchor_is_missing(tmp_path):
    a_used_ledger(tmp_path)
    (tmp_path / "anchor").unlink()
    assert refusal(lambda: reopen(tmp_path)) == MISSING


def test_a_refused_create_leaves_nothing_behind(tmp_path):
    (tmp_path / "anchor").touch()
    assert refusal(lambda: create(tmp_path)) == (MisuseError, Reason.MISUSE)
    assert [path.name for path in tmp_path.iterdir()] == ["anchor"]


@promise("K12a")
@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO receipts", "COMMIT"])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_an_interrupt_at_any_statement_leaves_no_lock_and_no_permit(tmp_path, statement, done):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A, B])
    cursor = ledger._store._cursor
    ledger._store._cursor = _Failing(cursor, statement, KeyboardInterrupt(), done)
    with pytest.raises(KeyboardInterrupt):
        ledger.claim(a_permit(A), "run-1", a_draft())
    ledger._store._cursor = cursor
    committed = statement == "COMMIT" and done
    assert ledger.row(A) == (Row("dispatching", APPROVE) if committed else Row("sealed"))
    a_claim(ledger, "run-1", B)
    assert ledger.head("run-1").length == 1 + committed
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


def test_a_ledger_that_cannot_be_made_says_so(tmp_path):
    assert refusal(lambda: create(tmp_path / "nowhere")) == UNAVAILABLE


def test_a_path_that_leads_nowhere_is_unavailable(tmp_path):
    (tmp_path / "file").touch()
    assert refusal(lambda: reopen(tmp_path, name="file/ledger.db")) == UNAVAILABLE


def test_every_file_of_a_ledger_is_its_owners_alone(tmp_path):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    names = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert names == dict.fromkeys(["ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db-lock", "anchor"], 0o600)
    ledger.close()


@promise("K11")
@pytest.mark.parametrize("name", ["ledger.db", "anchor", "ledger.db-lock"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_open_is_refused(tmp_path, name, mode):
    a_used_ledger(tmp_path)
    (tmp_path / name).chmod(mode)
    assert refusal(lambda: reopen(tmp_path)) == MALFORMED


@promise("K11")
@pytest.mark.parametrize("name", ["ledger.db", "anchor", "ledger.db-lock"])
def test_a_link_in_place_of_a_file_is_refused(tmp_path, name):
    a_used_ledger(tmp_path)
    (tmp_path / name).rename(tmp_path / "elsewhere")
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    assert refusal(lambda: reopen(tmp_path)) == MALFORMED


def test_a_dangling_link_is_not_followed_when_a_ledger_is_made(tmp_path):
    (tmp_path / "ledger.db").symlink_to(tmp_path / "elsewhere")
    assert refusal(lambda: create(tmp_path)) == (MisuseError, Reason.MISUSE)
    assert not (tmp_path / "elsewhere").exists()


@promise("K11")
@pytest.mark.parametrize(
    "content",
    [b"garbage " * 1000, b"", b"SQLite format 3\x00" + b"\x00" * 4000],
    ids=["garbage", "empty", "header only"],
)
def test_a_file_that_is_no_ledger_is_refused(tmp_path, content):
    a_used_ledger(tmp_path)
    (tmp_path / "ledger.db").write_bytes(content)
    assert refusal(lambda: reopen(tmp_path)) == MALFORMED


@promise("K11")
@pytest.mark.parametrize("size", [4096, 5000, 3 * 4096])
def test_a_truncated_file_is_refused(tmp_path, size):
    a_used_ledger(tmp_path)
    os.truncate(tmp_path / "ledger.db", size)
    assert refusal(lambda: reopen(tmp_path)) == MALFORMED


@promise("K11")
def test_a_page_of_garbage_is_refused(tmp_path):
    a_used_ledger(tmp_path)
    with (tmp_path / "ledger.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    assert refusal(lambda: reopen(tmp_path)) == MALFORMED


@promise("K11")
@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA application_id = 7",
        "PRAGMA journal_mode = DELETE",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER undo AFTER UPDATE ON runs BEGIN UPDATE runs SET states = old.states; END",
        "DROP INDEX groups_of_run",
    ],
)
def test_a_database_of_another_shape_is_refused(tmp_path, statement):
    a_used_ledger(tmp_path)
    edit(tmp_path, statement)
    assert refusal(lambda: reopen(tmp_path)) == MALFORMED


def test_another_programs_database_is_left_as_it_is(tmp_path):
    a_used_ledger(tmp_path)
    (tmp_path / "ledger.db").unlink()
    edit(tmp_path, "CREATE TABLE mine (x)")
    (tmp_path / "ledger.db").chmod(0o600)
    before = (tmp_path / "ledger.db").read_bytes()
    assert refusal(lambda: reopen(tmp_path)) == MALFORMED
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_another_table_of_states_is_refused(tmp_path):
    a_used_ledger(tmp_path)
    other = TransitionTable(
        name="other",
        initial="sealed",
        claimed="dispatching",
        after_crash={"dispatching": "unresolved"},
        edges=frozenset({("sealed", "dispatching"), ("dispatching", "unresolved")}),
    )

    def attempt() -> SqliteLedger:
        return SqliteLedger.open(tmp_path / "ledger.db", table=other, keys=KEYS, anchor=tmp_path / "anchor")

    assert refusal(attempt) == MALFORMED


@promise("K11")
def test_another_key_is_refused(tmp_path):
    a_used_ledger(tmp_path)
    assert refusal(lambda: reopen(tmp_path, keys=KeyRing("k1", b"x" * 32))) == TAMPERED


@promise("K12")
@pytest.mark.parametrize("version", ["3.6.23", "3.7.0", "3.40.1", "3.44.5", "3.45.0", "3.50.6", "3.51.0", "3.51.2"])
def test_an_sqlite_that_loses_commits_is_refused(tmp_path, monkeypatch, version):
    a_used_ledger(tmp_path)
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    unsafe = (LedgerError, Reason.LEDGER_UNSAFE_VERSION)
    assert refusal(lambda: reopen(tmp_path)) == unsafe
    assert refusal(lambda: store.create_database(tmp_path / "new.db", ("l", "s", b"m"))) == unsafe
    assert not (tmp_path / "new.db").exists()


@promise("K12")
@pytest.mark.parametrize("version", ["3.44.6", "3.50.7", "3.51.3", "3.54.1", "4.0.0"])
def test_a_fixed_sqlite_is_accepted(version):
    require_safe_version(version)


def replacing(column: str, old: str, new: str) -> str:
    """The statement that edits a text within a column of the runs."""
    return f"UPDATE runs SET {column} = CAST(replace(CAST({column} AS TEXT), '{old}', '{new}') AS BLOB)"


# Each edit leaves the row's MAC as it was; whoever looks next must see it.
EDITS = {
    "state put back": replacing("states", f'["dispatching","{APPROVE}",0]', '["sealed","",0]'),
    "state alone": replacing("states", "dispatching", "succeeded"),
    "candidate": replacing("states", APPROVE, HOLD),
    "refusals": replacing("states", ",0]", ",7]"),
    "states of two groups exchanged": replacing("names", f'"{A.hex()}","{B.hex()}"', f'"{B.hex()}","{A.hex()}"'),
    "name of a group in its run": replacing("names", A.hex(), a_group("c").hex()),
    "sealed group removed from its run": "UPDATE runs SET names = CAST(json_array(names ->> 0) AS BLOB),"
    " states = CAST(json_array(json(states -> 0)) AS BLOB)",
    "run of a group": "UPDATE groups SET num = 2",
    "name of a group": f"UPDATE groups SET name = x'{a_group('c').hex()}' WHERE name = x'{A.hex()}'",
    "group removed": f"DELETE FROM groups WHERE name = x'{A.hex()}'",
    "sealed group removed": f"DELETE FROM groups WHERE name = x'{B.hex()}'",
    "mac": "UPDATE runs SET mac = x'00'",
    "length": "UPDATE runs SET length = 5",
    "head": "UPDATE runs SET digest = 'sha256:' || hex(zeroblob(32))",
    "record": "UPDATE runs SET record = x'7b7d'",
    "number of a run": "UPDATE runs SET num = 2; UPDATE groups SET num = 2; INSERT INTO runs"
    " SELECT 1, 'run-0', record, names, states, later, length, digest, mac FROM runs",
}


@promise("K11")
@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS)
def test_a_row_edited_by_hand_is_found(tmp_path, statement):
    a_used_ledger(tmp_path)
    shutil.copy(tmp_path / "ledger.db", tmp_path / "before.db")
    edit(tmp_path, *statement.split("; "))
    assert (tmp_path / "ledger.db").read_bytes() != (tmp_path / "before.db").read_bytes()

    def open_and_recover() -> None:
        with closing(reopen(tmp_path)) as ledger:
            ledger.recover("run-1", NOW)

    assert refusal(open_and_recover) == TAMPERED


@promise("K11")
def test_a_run_under_another_name_is_found(tmp_path):
    a_used_ledger(tmp_path)
    ledger = reopen(tmp_path)
    edit(tmp_path, "UPDATE runs SET run = 'run-2'")
    assert refusal(lambda: ledger.claim(a_permit(B), "run-2", a_draft())) == TAMPERED
    assert refusal(lambda: ledger.row(B)) == TAMPERED
    assert refusal(lambda: ledger.claim(a_permit(B), "run-1", a_draft())) == (LedgerError, Reason.UNKNOWN_GRANT)
    ledger.close()
    assert refusal(lambda: reopen(tmp_path)) == TAMPERED


@promise("K11")
def test_a_group_given_to_another_run_is_found(tmp_path):
    a_used_ledger(tmp_path)
    ledger = reopen(tmp_path)
    ledger.open_run("run-2", RECORD, [])
    edit(tmp_path, "UPDATE groups SET num = 2")
    assert refusal(lambda: ledger.row(B)) == TAMPERED
    assert refusal(lambda: ledger.claim(a_permit(B), "run-2", a_draft())) == (LedgerError, Reason.CROSS_RUN)
    edit(tmp_path, "UPDATE groups SET num = 7")
    assert refusal(lambda: ledger.row(B)) == TAMPERED
    ledger.close()


@promise("K11", "K12a")
def test_a_row_edited_under_an_open_ledger_is_found_by_the_claim(tmp_path):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A, B])
    a_claim(ledger, "run-1", A)
    edit(tmp_path, EDITS["state put back"])
    assert refusal(lambda: ledger.row(A)) == TAMPERED
    assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == TAMPERED
    assert refusal(lambda: ledger.claim(a_permit(B), "run-1", a_draft())) == TAMPERED
    assert refusal(lambda: ledger.head("run-1")) == TAMPERED
    assert refusal(lambda: ledger.run_record("run-1")) == TAMPERED
    ledger.close()


@promise("K12a")
def test_a_conditional_write_that_meets_no_row_is_no_permit(tmp_path):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    changes = ledger._store.changes
    ledger._store.changes = lambda: 0
    assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == TAMPERED
    ledger._store.changes = changes
    assert ledger.row(A) == Row("sealed")
    a_claim(ledger, "run-1", A)
    ledger.close()


@promise("K11", "K12a")
def test_a_claim_is_decided_by_the_row_and_not_by_what_was_remembered(tmp_path):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    sealed = ledger._believed._runs["run-1"]
    a_claim(ledger, "run-1", A)
    ledger._believed._runs["run-1"] = sealed
    assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == TAMPERED
    assert ledger.claim(a_permit(A), "run-1", a_draft()) == Lost("dispatching")
    ledger.close()


@promise("K11")
@pytest.mark.parametrize("run", ["run-1", "run-2", "run-3"])
def test_a_removed_run_is_found(tmp_path, run):
    ledger = create(tmp_path)
    for each in ("run-1", "run-2", "run-3"):
        ledger.open_run(each, RECORD, [])
    ledger.record("run-2", a_draft())
    ledger.close()
    edit(tmp_path, f"DELETE FROM runs WHERE run = '{run}'")
    assert refusal(lambda: reopen(tmp_path))[1] in {Reason.LEDGER_TAMPERED, Reason.LEDGER_ROLLED_BACK}


@promise("K11")
@pytest.mark.parametrize("line", [b"no JSON", b"[]", b"", b"[" * 300 + b"]" * 300])
def test_a_receipt_that_is_none_is_refused_and_not_handed_out(tmp_path, line):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    ledger.record("run-1", a_draft())
    a_claim(ledger, "run-1", A)
    edit(tmp_path, f"UPDATE receipts SET line = x'{line.hex()}' WHERE place = 1 << 32 | 1")
    assert refusal(lambda: ledger.receipts("run-1")) == TAMPERED
    ledger.close()


@promise("K11", "K12a")
def test_a_receipt_slipped_in_beyond_the_end_of_a_run_lets_nothing_more_be_written(tmp_path):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A, B])
    a_claim(ledger, "run-1", A)
    edit(tmp_path, "INSERT INTO receipts SELECT place + 1, line FROM receipts")
    assert refusal(lambda: ledger.claim(a_permit(B), "run-1", a_draft())) == TAMPERED
    assert ledger.row(B) == Row("sealed")
    assert [finding.reason for finding in verified(ledger, "run-1").findings] == [Reason.CHAIN_BROKEN]
    ledger.close()


def test_an_emptied_meta_table_is_found(tmp_path):
    a_used_ledger(tmp_path)
    edit(tmp_path, "DELETE FROM meta")
    assert refusal(lambda: reopen(tmp_path)) == TAMPERED


def test_a_receipt_table_cut_at_the_end_is_rolled_back_and_elsewhere_shows_in_the_chain(tmp_path):
    a_used_ledger(tmp_path)
    ledger = reopen(tmp_path)
    ledger.record("run-1", a_draft())
    ledger.close()
    edit(tmp_path, "DELETE FROM receipts WHERE place = 1 << 32 | 1")
    ledger = reopen(tmp_path)
    assert [finding.reason for finding in verified(ledger, "run-1").findings] == [Reason.CHAIN_BROKEN]
    ledger.close()
    edit(tmp_path, "DELETE FROM receipts")
    assert refusal(lambda: reopen(tmp_path)) == ROLLED_BACK


@pytest.mark.parametrize("content", [b"", b"garbage\n", b"assisted-benchmark/ledger-anchor@2 ledger-1\nshort"])
def test_a_damaged_anchor_is_refused(tmp_path, content):
    a_used_ledger(tmp_path)
    (tmp_path / "anchor").write_bytes(content)
    assert refusal(lambda: reopen(tmp_path)) == MALFORMED


def test_another_ledgers_anchor_is_refused(tmp_path):
    a_used_ledger(tmp_path)
    files.Anchor.create(tmp_path / "other", "ledger-2")
    assert refusal(lambda: reopen(tmp_path, anchor="other")) == MALFORMED


@promise("K12a")
def test_a_database_locked_by_another_program_refuses_and_then_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE_S", 0.02)
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    other = apsw.Connection(str(tmp_path / "ledger.db"))
    other.execute("BEGIN IMMEDIATE")
    assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == UNAVAILABLE
    other.execute("ROLLBACK")
    other.close()
    assert ledger.row(A) == Row("sealed")
    a_claim(ledger, "run-1", A)
    ledger.close()


@promise("K12")
def test_a_writer_that_never_leaves_the_queue_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE_S", 0.02)
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    with (tmp_path / "ledger.db-lock").open() as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == UNAVAILABLE
        waiting = [thread for thread in threading.enumerate() if thread.daemon]
    for thread in waiting:
        thread.join()
    assert ledger.row(A) == Row("sealed")
    ledger._store._queue._patience = 5.0
    a_claim(ledger, "run-1", A)
    ledger.close()


@promise("K12a")
@pytest.mark.parametrize("durability", list(Durability))
def test_a_full_disk_refuses_and_leaves_the_group_sealed(tmp_path, durability):
    ledger = create(tmp_path, durability)
    ledger.open_run("run-1", RECORD, [A])
    pages = ledger._store._connection.pragma("page_count")
    ledger._store._connection.pragma("max_page_count", pages)
    large = a_draft(detail="x" * 100_000)
    assert refusal(lambda: ledger.claim(a_permit(A), "run-1", large)) == UNAVAILABLE
    assert ledger.row(A) == Row("sealed")
    assert ledger.head("run-1").length == 0
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


@promise("K12")
def test_a_log_that_is_synced_at_each_commit_is_laid_out_and_then_written_over(tmp_path, monkeypatch):
    monkeypatch.setitem(store._LOG_PAGES, "power", 20)
    monkeypatch.setattr(store, "_LOG_BYTES", laid_out := 32 + 30 * (24 + 4096))
    ledger = create(tmp_path, Durability.POWER)
    groups = [a_group(str(number)) for number in range(24)]
    ledger.open_run("run-1", RECORD, groups)
    other = SqliteLedger.open(
        tmp_path / "ledger.db",
        table=ledger.table,
        keys=KEYS,
        anchor=tmp_path / "anchor",
        durability=Durability.POWER,
    )
    for group in groups:
        a_claim(other, "run-1", group)
    assert (tmp_path / "ledger.db-wal").stat().st_size == laid_out
    assert ledger.recover("run-1", NOW) == tuple(sorted(groups))
    assert verified(ledger, "run-1").findings == ()
    ledger.close()
    other.close()


@promise("K12a")
def test_a_read_only_file_refuses_the_claim(tmp_path):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    ledger._store._connection.pragma("query_only", True)
    assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == UNAVAILABLE
    assert ledger.row(A) == Row("sealed")
    ledger.close()


class _Failing:
    """A cursor that fails at one statement, before or after it was done."""

    def __init__(self, cursor: apsw.Cursor, statement: str, error: BaseException, done: bool) -> None:
        self._cursor, self._statement, self._error, self._done = cursor, statement, error, done

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> apsw.Cursor:
        if sql.startswith(self._statement):
            if self._done:
                self._cursor.execute(sql, values)
            raise self._error
        return self._cursor.execute(sql, values)


@promise("K12a")
@pytest.mark.parametrize("done", [False, True], ids=["nothing was written", "it was written all the same"])
def test_an_error_at_the_commit_of_a_claim_is_no_permit(tmp_path, done):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    cursor = ledger._store._cursor
    ledger._store._cursor = _Failing(cursor, "COMMIT", apsw.IOError("disk I/O error"), done)
    assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == UNAVAILABLE
    ledger._store._cursor = cursor
    assert ledger.row(A) == (Row("dispatching", APPROVE) if done else Row("sealed"))
    assert ledger.recover("run-1", NOW) == ((A,) if done else ())
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


@promise("K12a")
def test_an_anchor_that_cannot_be_written_is_no_permit(tmp_path, monkeypatch):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])

    def fail(_self: object, _mark: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.Anchor, "write", fail)
        assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == UNAVAILABLE
    assert ledger.recover("run-1", NOW) == (A,)
    ledger.close()


def test_a_connection_that_can_no_longer_roll_back_is_given_up(tmp_path):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    cursor = ledger._store._cursor
    ledger._store._cursor = _Failing(cursor, "ROLLBACK", apsw.IOError("disk I/O error"), done=False)
    assert refusal(lambda: ledger.claim(a_permit(a_group("none")), "run-1", a_draft())) == UNAVAILABLE
    ledger._store._cursor = cursor
    assert refusal(lambda: ledger.row(A)) == UNAVAILABLE
    ledger.close()


def test_a_closed_ledger_and_one_from_before_a_fork_refuse(tmp_path, monkeypatch):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, [A])
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -5)
        assert refusal(lambda: ledger.row(A)) == UNAVAILABLE
        assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == UNAVAILABLE
    a_claim(ledger, "run-1", A)
    ledger.close()
    assert refusal(lambda: ledger.row(A)) == UNAVAILABLE
    assert refusal(lambda: ledger.claim(a_permit(A), "run-1", a_draft())) == UNAVAILABLE


def test_what_is_remembered_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(believed, "_REMEMBERED", 2)
    ledger = create(tmp_path)
    groups = [a_group(str(number)) for number in range(5)]
    for number, group in enumerate(groups):
        ledger.open_run(f"run-{number}", RECORD, [group])
    for number, group in enumerate(groups):
        a_claim(ledger, f"run-{number}", group)
        assert ledger.head(f"run-{number}").length == 1
        an_opening(ledger, "run-0", a_group(f"later {number}"))
    assert len(ledger._believed._runs) <= 2
    assert len(ledger._believed._later) <= 2
    ledger.close()


@promise("K12a")
def test_what_another_process_wrote_is_heard_however_the_next_turns_end(tmp_path):
    one = create(tmp_path)
    one.open_run("run-1", RECORD, [A, B])
    a_claim(one, "run-1", A)
    two = reopen(tmp_path)
    two.move(B, "run-1", State.SEALED, State.EXPIRED, a_draft("event", "expired"))
    assert one.open_run("run-1", RECORD, []) is False
    assert one.row(B) == Row("expired")
    assert one.claim(a_permit(B), "run-1", a_draft()) == Lost("expired")
    one.close()
    two.close()


@promise("K12a")
@pytest.mark.parametrize("later", [False, True], ids=["of its run", "opened later"])
def test_a_row_is_answered_from_memory_only_while_nobody_else_has_written(tmp_path, later):
    one = create(tmp_path)
    one.open_run("run-1", RECORD, [] if later else [A])
    if later:
        an_opening(one, "run-1", A)
    claimed = a_claim(one, "run-1", A)
    asked: list[str] = []
    select = one._store.select
    one._store.select = lambda sql, values=(): asked.append(sql) or select(sql, values)
    assert (one.row(A), asked) == (Row("dispatching", APPROVE), [])
    two = reopen(tmp_path)
    two.settle(claimed, State.UNRESOLVED, a_draft("outcome", "cancelled"))
    assert one.row(A) == Row("unresolved", APPROVE)
    assert asked
    one.close()
    two.close()


def test_two_openings_of_one_ledger_see_each_other(tmp_path):
    one = create(tmp_path)
    one.open_run("run-1", RECORD, [A, B])
    two = reopen(tmp_path)
    claimed = a_claim(one, "run-1", A)
    assert two.claim(a_permit(A), "run-1", a_draft()) == Lost("dispatching")
    a_claim(two, "run-1", B)
    one.settle(claimed, State.SUCCEEDED, a_draft("outcome", "succeeded"))
    assert two.open_run("run-2", RECORD, [a_group("c")]) is True
    assert one.open_run("run-2", RECORD, []) is False
    assert one.open_run("run-3", RECORD, []) is True
    assert one.head("run-1") == Head(3, two.head("run-1").digest)
    assert verified(two, "run-1").findings == ()
    one.close()
    two.close()
