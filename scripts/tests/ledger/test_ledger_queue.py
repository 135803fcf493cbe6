"""The queue of a ledger's writers: who waits gets a turn, and who has given up takes none."""

import threading

import pytest
from marks import promise

from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger import files
from assisted_benchmark.ledger.files import Queue

PATIENCE = 60.0


@promise("K12")
def test_who_waits_has_its_turn_once_the_one_before_leaves_and_who_gave_up_has_none(tmp_path, monkeypatch):
    waiting = []
    leaves = [lambda: first.leave(), lambda: None]  # what happens once a waiter has begun to wait

    class Waiting(threading.Thread):
        def start(self):
            super().start()
            waiting.append(self)
            leaves.pop(0)()

    monkeypatch.setattr(files, "Thread", Waiting)
    first, second, late = (Queue(tmp_path / "queue", patience) for patience in (PATIENCE, PATIENCE, 0.0))
    first.enter()
    second.enter()
    with pytest.raises(LedgerError) as gone:
        late.enter()
    assert gone.value.reason is Reason.STORE_UNAVAILABLE
    second.leave()
    for each in waiting:
        each.join(PATIENCE)
        assert not each.is_alive()
    first.enter()  # what the late one had waited for was let go
    for each in (first, second, late):
        each.close()
