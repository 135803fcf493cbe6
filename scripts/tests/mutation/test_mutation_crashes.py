"""A process that dies anywhere between the token and the answer: one create at most, and an honest record."""

import os
from multiprocessing import get_context

import pytest
from marks import promise
from mutation_bench import DEATHS, Crash, MutationBench, a_sqlite_ledger, crash

from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.results import NeedsAnswer
from assisted_benchmark.mutation.states import MUTATION_TABLE, State


def restarted(bench, kind, folder):
    """Another process after the first one died: its ledger holds what the dead one wrote."""
    ledger = bench.ledger._inner if kind == "memory" else a_sqlite_ledger(folder, opened=True)
    again = MutationBench(ledger=ledger, clock=bench.clock, endpoint=bench.endpoint, seed="again")
    again.broker.recover()
    return again


@promise("K13", "K11", "M11")
@pytest.mark.parametrize("kind", ["memory", "durable"])
@pytest.mark.parametrize(("moment", "state", "sent"), [(each, *end) for each, end in DEATHS.items()], ids=str)
def test_a_death_at_any_point_leaves_one_create_at_most_and_an_honest_state(tmp_path, kind, moment, state, sent):
    ledger = MemoryLedger("ledger-1", MUTATION_TABLE) if kind == "memory" else a_sqlite_ledger(tmp_path)
    bench = MutationBench(ledger=ledger)
    token = bench.token()
    bench.at(moment, crash)
    with pytest.raises(Crash):
        bench.confirm(token)
    if kind == "durable":
        ledger.close()
    again = restarted(bench, kind, tmp_path)
    assert (again.state(token), again.creates) == (state, sent)
    answer = again.confirm(token)
    if state is State.SEALED:
        assert (answer.executed, again.creates) == (True, 1)
    else:
        assert (answer.reason, again.creates) == (Reason.REPLAYED, sent)
    again.receipts()


@promise("K13")
@pytest.mark.parametrize("kind", ["memory", "durable"])
def test_a_death_in_the_middle_of_the_write_is_unresolved(tmp_path, kind):
    ledger = MemoryLedger("ledger-1", MUTATION_TABLE) if kind == "memory" else a_sqlite_ledger(tmp_path)
    bench = MutationBench(ledger=ledger)
    token = bench.token()
    bench.endpoint.created = lambda request: crash()
    with pytest.raises(Crash):
        bench.confirm(token)
    if kind == "durable":
        ledger.close()
    again = restarted(bench, kind, tmp_path)
    assert (again.state(token), again.creates) == (State.UNRESOLVED, 1)
    assert again.confirm(token).reason is Reason.REPLAYED
    assert again.creates == 1


@promise("M11", "M12")
def test_in_memory_a_death_forgets_everything_and_sends_nothing_more():
    bench = MutationBench()
    token = bench.token()
    bench.at(Moment.ANSWER, crash)
    with pytest.raises(Crash):
        bench.confirm(token)
    again = MutationBench(clock=bench.clock, endpoint=bench.endpoint)
    assert again.confirm(token).reason is Reason.UNKNOWN_TOKEN
    assert again.creates == 1


@promise("M6")
@pytest.mark.parametrize("moment", [Moment.DRY_RUN, Moment.PRICE, Moment.SEAL])
def test_a_death_while_proposing_gives_out_no_token(tmp_path, moment):
    ledger = a_sqlite_ledger(tmp_path)
    bench = MutationBench(ledger=ledger)
    bench.at(moment, crash)
    with pytest.raises(Crash):
        bench.propose()
    ledger.close()
    again = restarted(bench, "durable", tmp_path)
    assert list(again.ledger.groups("run-1")) == []
    assert again.token().startswith("chg-1-")


class LostAcknowledgement:
    """A ledger that does one kind of thing and says that it could not."""

    def __init__(self, inner, method):
        self._inner = inner
        self._method = method

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if name != self._method:
            return found

        def lost(*given, **more):
            found(*given, **more)
            raise LedgerError(Reason.STORE_UNAVAILABLE, "the answer of the commit is lost")

        return lost


LOST = {"move": (State.REFUSED, 0), "claim": (State.UNRESOLVED, 0), "settle": (State.SUCCEEDED, 1)}


@promise("K12a", "K13")
@pytest.mark.parametrize(("method", "state", "sent"), [(each, *end) for each, end in LOST.items()], ids=str)
def test_a_commit_whose_answer_is_lost_sends_nothing_more(method, state, sent):
    inner = MemoryLedger("ledger-1", MUTATION_TABLE)
    bench = MutationBench(ledger=inner)
    token = bench.token()
    bench.ledger._inner = LostAcknowledgement(inner, method)
    answer = bench.confirm(token)
    assert answer.reason is Reason.STORE_UNAVAILABLE
    bench.ledger._inner = inner
    bench.broker.recover()
    assert (bench.state(token), bench.creates) == (state, sent)
    assert bench.confirm(token).reason is Reason.REPLAYED
    assert bench.creates == sent


def posting(folder):
    """An endpoint's own account of its creates, which outlives every process."""
    descriptor = os.open(folder / "creates", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, b"x")
    os.close(descriptor)


def counted(bench, folder):
    def created(request):
        posting(folder)
        return bench.endpoint.replied(201, b'{"uuid":"x"}')

    bench.endpoint.created = created
    return bench


def confirm_and_die(folder, token, moment):
    bench = counted(MutationBench(ledger=a_sqlite_ledger(folder, opened=True), seed=f"child-{moment}"), folder)
    bench.at(moment, lambda: os._exit(9))
    bench.confirm(token)


@promise("K13")
@pytest.mark.parametrize("moment", [Moment.CONSUMED, Moment.CLAIMED, Moment.ANSWER], ids=str)
def test_a_process_that_is_gone_for_real_leaves_the_same(tmp_path, moment):
    ledger = a_sqlite_ledger(tmp_path)
    token = MutationBench(ledger=ledger).token()
    ledger.close()
    child = get_context("spawn").Process(target=confirm_and_die, args=(tmp_path, token, moment))
    child.start()
    child.join()
    assert child.exitcode == 9
    again = counted(MutationBench(ledger=a_sqlite_ledger(tmp_path, opened=True), seed="again"), tmp_path)
    again.broker.recover()
    state, sent = DEATHS[moment]
    assert again.state(token) == state
    assert not isinstance(again.begin(token), NeedsAnswer)
    written = (tmp_path / "creates").read_bytes() if (tmp_path / "creates").exists() else b""
    assert len(written) == sent
