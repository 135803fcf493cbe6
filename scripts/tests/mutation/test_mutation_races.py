"""Two at the same moment: one token, two threads or two processes, one create."""

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from threading import Barrier

import pytest
from marks import promise
from mutation_bench import AGENT, TTL, MutationBench, a_sqlite_ledger, confirming
from test_mutation_crashes import counted

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.results import Confirmed
from assisted_benchmark.mutation.states import MUTATION_TABLE

MAKERS = {"memory": lambda _: MemoryLedger("ledger-1", MUTATION_TABLE), "durable": a_sqlite_ledger}
ROUNDS = 8


@promise("M12", "M18")
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("brokers", [1, 2])
def test_of_two_threads_that_confirm_one_token_one_executes_and_one_is_replayed(tmp_path, maker, brokers):
    bench = MutationBench(ledger=maker(tmp_path))
    meeting = Barrier(2)

    def meet(moment):
        if moment is Moment.CONSUME:
            meeting.wait()  # both have found the token unused

    pairs = [bench.a_broker(allow_unconfirmed=True, on_moment=meet) for _ in range(brokers)]
    with ThreadPoolExecutor(2) as pool:
        for round_ in range(1, ROUNDS + 1):
            token = bench.token()
            ends = list(pool.map(lambda at, token=token: confirmed(pairs[at % brokers], token), range(2)))
            (done,) = [each for each in ends if isinstance(each, Confirmed)]
            (lost,) = [each for each in ends if each is not done]
            assert (done.executed, lost.reason) == (True, Reason.REPLAYED)
            assert bench.creates == round_
    bench.receipts()


def confirmed(broker, token):
    return broker.begin(AGENT, confirming(token), can_ask=False)


@promise("M20")
def test_of_two_threads_that_bring_one_state_one_resumes():
    bench = MutationBench()
    with ThreadPoolExecutor(2) as pool:
        for round_ in range(1, ROUNDS + 1):
            token = bench.token()
            asked = bench.begin(token)
            ends = list(pool.map(lambda _, token=token, asked=asked: bench.resume(token, asked), range(2)))
            assert sorted(type(each).__name__ for each in ends) == ["Confirmed", "Refusal"]
            assert bench.creates == round_


@promise("M11")
def test_threads_that_propose_at_once_get_tokens_of_their_own_and_no_more_wait_than_have_room():
    bench = MutationBench(capacity=5)
    with ThreadPoolExecutor(4) as pool:
        tokens = list(pool.map(lambda _: bench.token("network"), range(40)))
    assert len(set(tokens)) == 40
    waiting = [row for _, row in bench.ledger.groups("run-1") if row.state == "sealed"]
    assert len(waiting) == 5
    bench.receipts()


def confirm_in_a_process(folder, token, meeting, ends):
    bench = counted(MutationBench(ledger=a_sqlite_ledger(folder, opened=True), allow_unconfirmed=True), folder)
    bench.at(Moment.CONSUME, meeting.wait)
    answer = bench.begin(token, can_ask=False)
    ends.put("executed" if isinstance(answer, Confirmed) else answer.reason.value)


@promise("M12", "K11")
def test_of_two_processes_that_confirm_one_token_one_executes(tmp_path):
    ledger = a_sqlite_ledger(tmp_path)
    token = MutationBench(ledger=ledger).token()
    ledger.close()
    spawn = get_context("spawn")
    meeting, ends = spawn.Barrier(2), spawn.Queue()
    both = [spawn.Process(target=confirm_in_a_process, args=(tmp_path, token, meeting, ends)) for _ in range(2)]
    for each in both:
        each.start()
    found = sorted(ends.get() for _ in both)
    for each in both:
        each.join()
    assert found == ["executed", "replayed"]
    assert (tmp_path / "creates").read_bytes() == b"x"


@promise("M12")
def test_a_token_that_another_used_at_the_instant_of_its_expiry_is_told_as_expired():
    bench = MutationBench()
    token = bench.token()
    bench.clock.advance(TTL)
    inner = bench.ledger._inner

    class Slow:
        """Between the look and the mark somebody else was faster."""

        def __getattr__(self, name):
            return getattr(inner, name)

        def move(self, *given):
            return False

    bench.ledger._inner = Slow()
    refused = bench.begin(token)
    assert (refused.reason, refused.receipt_id) == (Reason.EXPIRED, bench.receipts()[-1]["id"])
