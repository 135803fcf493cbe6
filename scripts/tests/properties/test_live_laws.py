"""Laws of the live broker: the fast path is implied by the checks, and only sealed bytes reach a server."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from live_bench import (
    APPROVE,
    ASK,
    HOLD,
    LIFETIME,
    LOOK,
    OTHER_HOST,
    OTHER_VM,
    a_bench,
    a_choice,
    a_group,
    asking,
    choosing,
)
from marks import promise

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.live_policy.deciding import Way
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.live_policy.states import State

WORDS = st.sampled_from(["", "t-1", "hold"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2), WORDS)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2), max_leaves=4
)
ARGUMENTS = st.one_of(
    st.just({}),
    st.just({"verbose": True}),
    st.just({"verbose": 1}),
    st.just(APPROVE),
    st.just(HOLD),
    st.fixed_dictionaries(
        {"taskId": st.sampled_from(["t-1", "t-2", 1]), "targetId": st.sampled_from(["approve", "hold", "Hold", True])},
        optional={"extra": SCALARS},
    ),
    JSON,
)
SERVERS = st.sampled_from(["synthetic-ui", "lba", "synthetic-ui2", ""])
TOOLS = st.sampled_from(["click_target", "get_benchmark_series", "get_status", "type_text", "nothing"])
MORE = st.fixed_dictionaries(
    {},
    optional={
        "group": st.sampled_from(["decision", "step-1", "x"]),
        "effect": st.sampled_from(["act", "observe", "x"]),
        "grant": st.just("sha256:" + "0" * 64),
    },
)
PROPOSALS = st.one_of(
    st.builds(
        lambda server, tool, arguments, more: asking(server, tool, arguments, **more), SERVERS, TOOLS, ARGUMENTS, MORE
    ),
    st.sampled_from([choosing(APPROVE), choosing(HOLD), asking("lba", "get_benchmark_series", {})]),
    st.sampled_from([canonical_bytes(json.loads(choosing(each))) for each in (APPROVE, HOLD)]),
    st.binary(max_size=12),
)
SESSIONS = st.sampled_from(
    [{}, {}, {}, {"run": "x"}, {"principal": "x"}, {"vm": OTHER_VM}, {"host": OTHER_HOST}, {"boot": "x"}]
)
CLOCKS = st.sampled_from(
    [
        lambda clock: None,
        lambda clock: clock.advance(LIFETIME),
        lambda clock: clock.advance(LIFETIME - 1),
        lambda clock: clock.set_wall(clock.now().wall_ns - 1),
        lambda clock: clock.set_wall(clock.now().wall_ns - 2 * SECOND),
        lambda clock: clock.reboot("boot-2"),
    ]
)
# What reads as a sealed call only to a parser that is not strict; and a spelling of one that is one.
SPELLINGS = (
    b'{"server":"lba","tool":"get_status","arguments":{"verbose":false,"verbose":true}}',
    b'{"tool":"x","server":"lba","tool":"get_status","arguments":{"verbose":true}}',
    b'{"server":"lba","tool":"get_status","arguments":{"\\u0076erbose":"\\"", "verbose":true}}',
    b'{"server":"lba","tool":"get_\\u0073tatus","arguments":{"verbose":true}}',
    b'{"server":"lba","tool":"get_status","arguments":{"verbose":true}}' + b"\n" * (1 << 20),
)
LOOKING, ASKING = asking("lba", "get_benchmark_series", {}), asking("lba", "get_status", {"verbose": True})
EARLIER = st.lists(st.sampled_from([LOOKING, ASKING, choosing(HOLD)]), max_size=3)


@promise("K7", "L11")
@settings(max_examples=250, deadline=None)
@given(raw=PROPOSALS | st.sampled_from(SPELLINGS), other=SESSIONS, strike=CLOCKS, earlier=EARLIER)
@example(raw=SPELLINGS[0], other={}, strike=lambda clock: None, earlier=[LOOKING])
@example(raw=SPELLINGS[1], other={}, strike=lambda clock: None, earlier=[LOOKING])
@example(raw=SPELLINGS[2], other={}, strike=lambda clock: None, earlier=[LOOKING])
@example(raw=SPELLINGS[3], other={}, strike=lambda clock: None, earlier=[LOOKING])
@example(raw=SPELLINGS[4], other={}, strike=lambda clock: None, earlier=[LOOKING])
def test_the_fast_path_admits_what_every_check_passes_and_never_anything_else(raw, other, strike, earlier):
    bench = a_bench(LOOK, ASK, a_group())
    for each in earlier:
        bench.propose(each)
    strike(bench.clock)
    session, decider, now = bench.session._replace(**other), bench.broker._decider, bench.clock.now()
    fast = decider.match(session, raw, now)
    slow = decider.explain(session, raw, now)
    if fast is not None:
        assert slow == fast
    if isinstance(slow, Way) and len(json.loads(raw)) == 3:
        assert fast == slow


@promise("L10", "L11", "L16")
@settings(max_examples=250, deadline=None)
@given(proposals=st.lists(st.tuples(PROPOSALS, SESSIONS), max_size=6))
def test_nothing_but_a_sealed_candidates_bytes_ever_reaches_a_server(proposals):
    bench = a_choice()
    answers = [bench.propose(raw, **other) for raw, other in proposals]
    sealed = {("synthetic-ui", "click_target", canonical_bytes(each)) for each in (APPROVE, HOLD)}
    sent = [(each.permit.server, each.permit.tool, each.permit.arguments) for each in bench.world.sent]
    assert set(sent) <= sealed
    assert len(sent) == sum(bench.calls.values()) == sum(isinstance(each, Outcome) for each in answers) <= 1
    assert len([each for each in bench.receipts() if each["reason"] == "admitted"]) == len(sent)
    for (raw, other), answer in zip(proposals, answers, strict=True):
        if isinstance(answer, Outcome):
            value = json.loads(raw)
            assert not other
            assert (value["server"], value["tool"], canonical_bytes(value["arguments"])) == sent[0]


@promise("L15")
@settings(max_examples=80, deadline=None)
@given(raw=PROPOSALS, other=SESSIONS)
def test_a_refusal_is_always_recorded_and_never_spends_the_group(raw, other):
    bench = a_choice()
    answer = bench.broker.decide(bench.session._replace(**other), raw)
    assert isinstance(answer, Admitted | Refused)
    assert bench.states() == (State.SEALED,)
    if isinstance(answer, Refused):
        ids = [each["id"] for run in ("run-1", "-") if bench.ledger.run_record(run) for each in bench.receipts(run)]
        assert ids == [answer.receipt_id]
        assert bench.calls == {"lba": 0, "synthetic-ui": 0}
