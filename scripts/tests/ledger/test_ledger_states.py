"""The transition table: data that refuses to be unsafe, and that draws itself."""

import pytest
from ledger_bench import PROMPTED
from marks import promise

from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.states import TransitionTable, drawn
from assisted_benchmark.live_policy.states import LIVE_TABLE, State

LOST = {"claimed": "lost"}


@promise("K10")
def test_the_live_table_is_the_one_that_is_promised():
    ends = {State.SUCCEEDED, State.FAILED, State.UNRESOLVED, State.EXPIRED}
    closed = {State.EXPIRED, State.REVOKED, State.ABORTED, State.EXHAUSTED}
    assert LIVE_TABLE.edges == (
        {(State.SEALED, State.DISPATCHING)}
        | {(State.SEALED, end) for end in closed}
        | {(State.DISPATCHING, end) for end in ends}
    )
    assert LIVE_TABLE.terminal == ends | closed
    assert LIVE_TABLE.states == set(State)


@pytest.mark.parametrize(
    "edges",
    [
        {("sealed", "done"), ("claimed", "lost")},
        {("sealed", "claimed"), ("claimed", "done")},
        {("sealed", "claimed"), ("claimed", "lost"), ("lost", "sealed")},
    ],
    ids=["no claim", "no end after a crash", "a way back from a crash"],
)
def test_a_table_without_a_safe_road_through_a_crash_cannot_be_made(edges):
    with pytest.raises(LedgerError) as caught:
        TransitionTable(name="t", initial="sealed", claimed="claimed", after_crash=LOST, edges=frozenset(edges))
    assert caught.value.reason is Reason.ILLEGAL_TRANSITION


@pytest.mark.parametrize(
    ("ready", "after_crash"),
    [
        ("sealed", {"asking": "refused", "claimed": "lost"}),
        ("asking", {"asking": "refused"}),
        ("asking", {"asking": "sealed", "claimed": "lost"}),
        ("asking", {"asking": "lost", "claimed": "lost"}),
        ("lonely", {"claimed": "lost"}),
    ],
    ids=["ready is not before the claim", "nothing for the claimed", "back to sealed", "no such edge", "not reachable"],
)
def test_a_table_with_steps_before_its_claim_needs_a_safe_road_too(ready, after_crash):
    edges = {("sealed", "asking"), ("asking", "claimed"), ("asking", "refused"), ("claimed", "lost")}
    if ready == "lonely":
        edges = {("sealed", "refused"), ("lonely", "claimed"), ("claimed", "lost")}
    with pytest.raises(LedgerError) as caught:
        TransitionTable(
            name="t",
            initial="sealed",
            ready=ready,
            claimed="claimed",
            after_crash=after_crash,
            edges=frozenset(edges),
        )
    assert caught.value.reason is Reason.ILLEGAL_TRANSITION


def test_a_table_is_a_value_that_nobody_changes():
    given = {"claimed": "lost"}
    edges = frozenset({("sealed", "claimed"), ("claimed", "lost")})
    made = [
        TransitionTable(name="t", initial="sealed", claimed="claimed", after_crash=given, edges=edges) for _ in range(2)
    ]
    given["sealed"] = "lost"
    assert made[0] == made[1]
    assert hash(made[0]) == hash(made[1])
    assert dict(made[0].after_crash) == LOST
    assert (made[0].ready, made[0].unclaimed) == ("sealed", {"sealed"})
    assert PROMPTED.unclaimed == {"sealed", "asking"}


@promise("K10")
def test_every_edge_that_is_not_in_the_table_is_refused():
    for before in State:
        for after in State:
            if (before, after) in LIVE_TABLE.edges:
                LIVE_TABLE.require(before, after)
                continue
            with pytest.raises(LedgerError) as caught:
                LIVE_TABLE.require(before, after)
            assert caught.value.reason is Reason.ILLEGAL_TRANSITION


@promise("K10")
def test_the_table_is_drawn_edge_by_edge():
    table = TransitionTable(
        name="t",
        initial="sealed",
        claimed="claimed",
        after_crash=LOST,
        edges=frozenset({("sealed", "claimed"), ("claimed", "lost"), ("claimed", "done")}),
    )
    assert drawn(table) == (
        "stateDiagram-v2\n"
        "    [*] --> sealed\n"
        "    claimed --> done\n"
        "    claimed --> lost\n"
        "    sealed --> claimed\n"
        "    done --> [*]\n"
        "    lost --> [*]\n"
    )
    assert drawn(LIVE_TABLE).count(" --> ") == 1 + len(LIVE_TABLE.edges) + len(LIVE_TABLE.terminal)
