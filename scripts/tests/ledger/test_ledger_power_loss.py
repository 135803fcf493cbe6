"""What a power loss leaves: a file layer under SQLite that forgets every write that was not synced."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from ledger_bench import APPROVE, NOW, RECORD, a_claim, a_draft, a_group, an_opening, create, reopen, verified
from marks import promise

from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Row
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.live_policy.states import State

GROUPS = [a_group(str(number)) for number in range(12)]


class Disk:
    """What each file holds on the platters, apart from what the system only remembers."""

    def __init__(self) -> None:
        self.durable: dict[str, bytes] = {}
        self.lost: dict[str, bytes] = {}

    def lose_power(self) -> None:
        """From now on each file that exists is what it was when it was last synced."""
        self.lost = {path: data for path, data in self.durable.items() if Path(path).exists()}

    def come_back(self, folder: Path) -> None:
        """Leave only what the next boot finds."""
        for path in (folder / "ledger.db", folder / "ledger.db-wal"):
            path.write_bytes(self.lost.get(str(path), b""))
            path.chmod(0o600)


class LosingFile(apsw.VFSFile):
    """A file that tells the disk what it holds, when it is synced."""

    def __init__(self, base: str, name, flags, disk: Disk) -> None:
        super().__init__(base, name, flags)
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk = disk

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        super().xSync(flags)
        size = self.xFileSize()
        self._disk.durable[self._path] = self.xRead(size, 0) if size else b""


class LosingFiles(apsw.VFS):
    """The default file layer, with files that lose what was not synced."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._base = apsw.vfs_names()[0]
        super().__init__("losing", self._base, makedefault=True)

    def xOpen(self, name, flags: list[int]) -> LosingFile:  # noqa: N802 - SQLite's name
        return LosingFile(self._base, name, flags, self._disk)


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk()
    files = LosingFiles(made)

    # A file layer in Python has no shared memory, so the write-ahead log needs this mode.
    def exclusive(connection: apsw.Connection) -> None:
        connection.pragma("locking_mode", "exclusive")

    apsw.connection_hooks.append(exclusive)
    yield made
    apsw.connection_hooks.remove(exclusive)
    files.unregister()


def claims_then_power_loss(folder: Path, disk: Disk, durability: Durability, claims: int) -> bytes:
    """Claim some groups and lose power right after; the anchor as it was before the claims."""
    ledger = create(folder, durability)
    ledger.open_run("run-1", RECORD, GROUPS)
    ledger._store._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    anchor = (folder / "anchor").read_bytes()
    for group in GROUPS[:claims]:
        a_claim(ledger, "run-1", group)
    disk.lose_power()
    ledger.close()
    disk.come_back(folder)
    return anchor


@promise("K11", "K13")
@pytest.mark.parametrize("claims", [1, 5, len(GROUPS)])
def test_power_durability_never_loses_a_claim_that_returned(tmp_path, disk, claims):
    claims_then_power_loss(tmp_path, disk, Durability.POWER, claims)
    ledger = reopen(tmp_path)
    assert [ledger.row(group) for group in GROUPS[:claims]] == [Row("dispatching", APPROVE)] * claims
    assert ledger.recover("run-1", NOW) == tuple(sorted(GROUPS[:claims]))
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


@promise("K13")
def test_process_durability_loses_claims_to_a_power_loss_and_the_anchor_tells(tmp_path, disk):
    before = claims_then_power_loss(tmp_path, disk, Durability.PROCESS, 5)
    with pytest.raises(IntegrityError) as caught:
        reopen(tmp_path)
    assert caught.value.reason is Reason.LEDGER_ROLLED_BACK
    # Had the anchor been lost with the rest, the claims would never have been.
    (tmp_path / "anchor").write_bytes(before)
    ledger = reopen(tmp_path)
    assert {ledger.row(group) for group in GROUPS} == {Row("sealed")}
    ledger.close()


@promise("K13", "M11")
def test_power_durability_keeps_a_later_group_and_its_claim(tmp_path, disk):
    ledger = create(tmp_path, Durability.POWER)
    ledger.open_run("run-1", RECORD, [])
    for group in GROUPS[:3]:
        an_opening(ledger, "run-1", group)
    a_claim(ledger, "run-1", GROUPS[1])
    disk.lose_power()
    ledger.close()
    disk.come_back(tmp_path)
    ledger = reopen(tmp_path)
    assert [row for _, row in ledger.groups("run-1")] == [Row("sealed"), Row("dispatching", APPROVE), Row("sealed")]
    assert ledger.group_record(GROUPS[2]) == RECORD
    assert ledger.recover("run-1", NOW) == (GROUPS[1],)
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


@promise("K13")
def test_power_durability_keeps_an_outcome_too(tmp_path, disk):
    ledger = create(tmp_path, Durability.POWER)
    ledger.open_run("run-1", RECORD, GROUPS)
    claimed = a_claim(ledger, "run-1", GROUPS[0])
    ledger.settle(claimed, State.SUCCEEDED, a_draft("outcome", "succeeded"))
    disk.lose_power()
    ledger.close()
    disk.come_back(tmp_path)
    ledger = reopen(tmp_path)
    assert ledger.row(GROUPS[0]) == Row("succeeded", APPROVE)
    assert ledger.head("run-1").length == 2
    ledger.close()
