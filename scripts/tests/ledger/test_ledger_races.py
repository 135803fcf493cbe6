"""Many claim one group at once, as threads and as processes: one wins."""

import os
import threading
from collections import Counter

import pytest
from ledger_bench import MAKERS, RECORD, a_draft, a_group, a_permit, create, reopen, verified
from marks import promise

from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.suite.kills import _fork, _outcome

GROUPS = [a_group(str(number)) for number in range(20)]
RACERS = 4


def race(ledger, won: list[bytes]) -> None:
    for group in GROUPS:
        claimed = ledger.claim(a_permit(group), "run-1", a_draft())
        if isinstance(claimed, Claimed):
            won.append(group)
            ledger.settle(claimed, State.SUCCEEDED, a_draft("outcome", "succeeded"))


@promise("K11")
@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_of_racing_threads_one_wins_each_group(tmp_path, kind):
    ledger = MAKERS[kind](tmp_path)
    ledger.open_run("run-1", RECORD, GROUPS)
    won: list[bytes] = []
    start = threading.Barrier(RACERS)

    def run() -> None:
        start.wait()
        race(ledger, won)

    threads = [threading.Thread(target=run) for _ in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(won) == dict.fromkeys(GROUPS, 1)
    assert ledger.head("run-1").length == 2 * len(GROUPS)
    assert verified(ledger, "run-1").findings == ()
    ledger.close()


@promise("K11", "K12")
def test_of_racing_processes_one_wins_each_group(tmp_path):
    ledger = create(tmp_path)
    ledger.open_run("run-1", RECORD, GROUPS)
    ledger.close()
    gate, opened = os.pipe()

    def run(number: int) -> None:
        os.close(opened)
        won: list[bytes] = []
        mine = reopen(tmp_path)
        os.read(gate, 1)  # returns when the parent lets go of its end: all start together
        race(mine, won)
        (tmp_path / f"won-{number}").write_text("\n".join(group.hex() for group in won))

    children = [_fork(lambda number=number: run(number)) for number in range(RACERS)]
    os.close(gate)
    os.close(opened)
    assert [_outcome(child) for child in children] == [0] * RACERS
    won = [line for number in range(RACERS) for line in (tmp_path / f"won-{number}").read_text().split()]
    assert Counter(won) == {group.hex(): 1 for group in GROUPS}
    ledger = reopen(tmp_path)
    assert {ledger.row(group).state for group in GROUPS} == {"succeeded"}
    assert ledger.head("run-1").length == 2 * len(GROUPS)
    assert verified(ledger, "run-1").findings == ()
    ledger.close()
