"""The threads that calls run on."""

import threading

from assisted_benchmark.gateway.workers import Workers


def test_one_thread_does_what_is_submitted_in_order_and_outlives_an_error():
    workers, done = Workers(1, "call"), []

    def breaks():
        done.append("broken")
        raise KeyboardInterrupt

    for act in (lambda: done.append("first"), breaks, lambda: done.append("last")):
        workers.submit(act)
    workers.shutdown()
    assert done == ["first", "broken", "last"]


def test_as_many_run_at_a_time_as_are_allowed_and_no_more():
    workers, names = Workers(2, "call"), set()
    both = threading.Barrier(2, timeout=30)

    def meets():
        names.add(threading.get_ident())
        both.wait()

    for _ in range(8):
        workers.submit(meets)
    workers.shutdown()
    assert (len(names), both.broken) == (2, False)


def test_to_shut_down_twice_is_to_shut_down():
    workers, done = Workers(2, "call"), []
    workers.submit(lambda: done.append(1))
    workers.shutdown()
    workers.shutdown()
    assert done == [1]
