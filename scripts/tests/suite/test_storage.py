"""Key files are their owner's alone, and never say what they hold."""

import pytest
from marks import promise

from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.errors import InputError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.storage import RunDirectory, create_keys, new_run_directory, read_keys, run_directories


@promise("K5")
def test_a_key_file_is_written_for_its_owner_alone_and_read_back(tmp_path):
    path = tmp_path / "keys" / "run.key"
    ring = create_keys(path, SeededChance("x"))
    assert read_keys(path) == ring
    assert len(ring.master) == 32
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@promise("K5")
def test_a_key_file_that_others_may_read_is_not_used(tmp_path):
    path = tmp_path / "run.key"
    create_keys(path, SeededChance("x"))
    path.chmod(0o640)
    with pytest.raises(InputError) as caught:
        read_keys(path)
    assert caught.value.reason is Reason.UNREADABLE


def test_an_existing_file_is_not_replaced_and_a_link_is_not_followed(tmp_path):
    path = tmp_path / "run.key"
    create_keys(path, SeededChance("x"))
    with pytest.raises(MisuseError):
        create_keys(path, SeededChance("y"))
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(InputError):
        read_keys(tmp_path / "link")
    with pytest.raises(InputError):
        read_keys(tmp_path / "missing")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"id": 1, "master": "%s"}' % ("0" * 64),
        '{"id": "a", "master": "secret"}',
        '{"id": "a", "master": 5}',
    ],
)
def test_a_file_that_holds_no_key_is_refused_without_its_content(tmp_path, text):
    path = tmp_path / "run.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InputError) as caught:
        read_keys(path)
    assert "secret" not in str(caught.value)


def test_run_directories_are_counted_by_number_and_others_are_let_be(tmp_path):
    (tmp_path / "runs" / "notes").mkdir(parents=True)
    (tmp_path / "runs" / "0009").mkdir()
    (tmp_path / "runs" / "10000").mkdir()
    assert new_run_directory(tmp_path).name == "10001"
    assert [path.name for path in run_directories(tmp_path)] == ["0009", "10000", "10001"]


def test_a_directory_that_another_run_took_meanwhile_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "runs" / "0001").mkdir(parents=True)
    seen = iter([[], run_directories(tmp_path)])
    monkeypatch.setattr("assisted_benchmark.suite.storage.run_directories", lambda root: next(seen))
    assert new_run_directory(tmp_path).name == "0002"


def test_a_new_worker_takes_no_dead_workers_number(tmp_path):
    directory = RunDirectory(tmp_path)
    assert directory.next_part() == 0
    directory.journal(1).touch()
    directory.ledgers.mkdir()
    (directory.ledgers / "4-0.sqlite").touch()
    assert directory.next_part() == 5
