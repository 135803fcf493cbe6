"""Which exit code wins when several hold."""

import itertools

from marks import promise

from assisted_benchmark.cli.exits import worst


@promise("H20")
def test_the_worst_code_wins_in_the_documented_order():
    order = (130, 4, 2, 3, 1, 5)
    for size in range(1, len(order) + 1):
        for held in itertools.permutations(order, size):
            assert worst(held) == min(held, key=order.index)
    assert worst(()) == 0
