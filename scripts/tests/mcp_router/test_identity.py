"""What stands on this machine: files by what they hold, the host by its id."""

import os
import sys

import pytest
from marks import promise

from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import InputError, ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router import identity
from assisted_benchmark.mcp_router.identity import Artifacts, host_identity, sha256_of, startup_files, unchanged


@pytest.fixture
def hashed(monkeypatch):
    """Which files were read to be hashed."""
    count = []
    real = identity._hash
    monkeypatch.setattr(identity, "_hash", lambda fd: count.append(os.fstat(fd).st_ino) or real(fd))
    return count


def test_a_file_is_named_by_the_plain_digest_of_its_bytes(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert Artifacts().file(str(path)).digest == expected == sha256_of(b"abc")


def test_a_settled_file_is_read_once(tmp_path, hashed, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    later = path.stat().st_ctime_ns + 2_000_000_000
    monkeypatch.setattr(identity.time, "time_ns", lambda: later)
    artifacts = Artifacts()
    assert artifacts.file(str(path)) == artifacts.file(str(path))
    assert len(hashed) == 1
    path.write_bytes(b"abd")
    assert artifacts.file(str(path)).digest == sha256_of(b"abd")


def test_a_file_that_changed_a_moment_ago_is_read_again(tmp_path, hashed):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    artifacts = Artifacts()
    assert artifacts.file(str(path)) == artifacts.file(str(path))
    assert len(hashed) == 2


def test_a_file_that_changes_while_it_is_read_is_drift(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    real = identity._hash

    def hash_and_change(fd):
        path.write_bytes(b"abcd")
        return real(fd)

    monkeypatch.setattr(identity, "_hash", hash_and_change)
    with pytest.raises(ServerError) as caught:
        Artifacts().file(str(path))
    assert caught.value.reason is Reason.ARTIFACT_DRIFT


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(ServerError) as caught:
        Artifacts().open(str(tmp_path / "missing"))
    assert caught.value.reason is Reason.LAUNCH_FAILED


def test_a_file_that_is_gone_or_replaced_by_its_twin_is_no_longer_unchanged(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    artifact = Artifacts().file(str(path))
    assert unchanged(artifact)
    twin = tmp_path / "twin"
    twin.write_bytes(b"abc")
    os.utime(twin, ns=(artifact.key.mtime_ns, artifact.key.mtime_ns))
    twin.replace(path)
    assert not unchanged(artifact)
    path.unlink()
    assert not unchanged(artifact)


@promise("L25")
def test_a_host_is_named_by_a_digest_of_its_machine_id_under_its_own_domain(tmp_path, monkeypatch):
    path = tmp_path / "machine-id"
    path.write_text("0123456789abcdef\n")
    monkeypatch.setattr(identity, "_MACHINE_IDS", (str(tmp_path / "missing"), str(path)))
    assert host_identity() == digest_of("projectbuddy/host-identity@1", b"0123456789abcdef")


def test_the_interpreters_own_startup_files_are_found():
    found = startup_files()
    assert os.path.join(sys.prefix, "pyvenv.cfg") in found
    assert all(os.path.isfile(path) for path in found)


def test_only_a_mac_is_named_by_its_hardware():
    assert bool(identity._hardware_id()) is (sys.platform == "darwin")


@promise("L25")
def test_a_host_without_a_machine_id_is_named_by_its_boot_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / "boot").write_text("boot\n")
    monkeypatch.setattr(identity, "_MACHINE_IDS", ())
    monkeypatch.setattr(identity, "_hardware_id", lambda: b"")
    monkeypatch.setattr(identity, "_BOOT_ID", str(tmp_path / "boot"))
    assert host_identity() == digest_of("projectbuddy/host-identity@1", b"boot", b"boot")
    monkeypatch.setattr(identity, "_BOOT_ID", str(tmp_path / "missing"))
    with pytest.raises(InputError) as caught:
        host_identity()
    assert caught.value.reason is Reason.UNREADABLE
