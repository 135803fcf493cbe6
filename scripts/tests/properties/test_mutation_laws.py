"""The mutation broker against a tiny model: whatever comes in whatever order, each agreed change is sent once."""

import json
import shutil
import tempfile
from pathlib import Path

from attrs import define
from depth import at_depth
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from marks import promise
from mutation_bench import ACCEPT, AGENT, DEATHS, DECLINE, ORCHARD, TTL, Crash, MutationBench, a_sqlite_ledger, crash

from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import invisible
from assisted_benchmark.mutation.answers import Silence
from assisted_benchmark.mutation.broker import WAIT_NS
from assisted_benchmark.mutation.compiler import request_digest
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.results import NeedsAnswer, Refusal
from assisted_benchmark.mutation.states import State

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=8,
)


@promise("M5", "M6")
@given(raw=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=150, deadline=None)
def test_whatever_bytes_come_in_nothing_is_sent_and_nothing_is_raised(raw):
    bench = MutationBench()
    assert isinstance(bench.broker.propose(AGENT, raw), Refusal)
    assert isinstance(bench.broker.begin(AGENT, raw, can_ask=True), Refusal)
    assert isinstance(bench.broker.resume(AGENT, raw, "", ACCEPT), Refusal)
    assert (bench.endpoint.asks, bench.endpoint.creates) == ([], [])


@promise("M5", "M6", "M15")
@given(
    species=st.text(max_size=30),
    labels=st.dictionaries(st.text(max_size=10), st.text(max_size=20), max_size=3),
    weight=st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1),
    more=st.dictionaries(st.sampled_from(["gate", "colour", "count"]), JSON, max_size=2),
)
@settings(max_examples=150, deadline=None)
def test_a_spec_is_refused_with_nothing_sent_or_shown_whole_and_sent_as_it_was_shown(species, labels, weight, more):
    bench = MutationBench(ORCHARD)
    spec = {"species": species, "count": 1, "labels": labels, "weight": weight, **more}
    sealed = bench.propose("plant", spec)
    if isinstance(sealed, Refusal):
        assert bench.endpoint.asks == []
        return
    assert not any(invisible(char) for each in (species, *labels, *labels.values()) for char in each)
    asked = bench.begin(sealed.token)
    for each in (species, *labels.values()):
        assert f": {json.dumps(each, ensure_ascii=False)}\n" in asked.message
    bench.resume(sealed.token, asked)
    ((*_, dry),), ((*_, real),) = bench.endpoint.asks, bench.endpoint.creates
    assert dry == real
    assert sealed.request == request_digest("plant", real)
    assert canonical_bytes(parse(real)) == real


@promise("M17")
@given(answer=JSON | st.fixed_dictionaries({"action": JSON, "content": JSON | st.just({"confirm": True})}))
@settings(max_examples=150, deadline=None)
def test_no_answer_but_the_one_acceptance_lets_a_change_through(answer):
    bench = MutationBench()
    end = bench.confirm(bench.token("network"), answer)
    assert isinstance(end, Refusal)
    assert bench.creates == 0


CAPACITY = 3
SESSIONS = st.sampled_from([AGENT, Session("run-2", "agent")])
ANSWERS = st.sampled_from([ACCEPT, DECLINE, None, Silence.TIMED_OUT])
ENDS = {str(ACCEPT): None, str(DECLINE): Reason.DECLINED, "None": Reason.CONFIRMATION_FAILED}


@define
class Known:
    """What the model knows of a token."""

    session: Session
    issued: int
    state: State = State.SEALED


class Changes(RuleBasedStateMachine):
    """Propose, confirm, let time pass, crowd out, cancel, restart."""

    tokens = Bundle("tokens")
    asked = Bundle("asked")
    durable = False

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.bench = MutationBench(ledger=a_sqlite_ledger(self.folder) if self.durable else None, capacity=CAPACITY)
        self.known = {}
        self.sent = 0

    @property
    def now(self):
        return self.bench.clock.now().wall_ns

    def refusal(self, token, session):
        """Why the model refuses a token; None if it may be used."""
        it = self.known.get(token)
        if it is None or it.state is State.EVICTED or self.now >= it.issued + 2 * TTL or session != it.session:
            return Reason.UNKNOWN_TOKEN
        if it.state not in (State.SEALED, State.EXPIRED):
            return Reason.REPLAYED
        return Reason.EXPIRED if self.now >= it.issued + TTL else None

    @rule(target=tokens, session=SESSIONS)
    def propose(self, session):
        token = self.bench.token("network", session=session)
        waiting = [each for each in self.known.values() if each.session == session and each.state is State.SEALED]
        for each in waiting:
            if self.now >= each.issued + TTL:
                each.state = State.EXPIRED
        waiting = [each for each in waiting if each.state is State.SEALED]
        if len(waiting) == CAPACITY:
            waiting[0].state = State.EVICTED
        self.known[token] = Known(session, self.now)
        return token

    @rule(token=tokens, session=SESSIONS, answer=ANSWERS)
    def confirm(self, token, session, answer):
        expected = self.refusal(token, session)
        end = self.bench.confirm(token, answer, session)
        if expected is None:
            expected = Reason.TIMED_OUT if answer is Silence.TIMED_OUT else ENDS[str(answer)]
            self.known[token].state = State.REFUSED if expected else State.SUCCEEDED
            self.sent += expected is None
        elif expected is Reason.EXPIRED:
            self.known[token].state = State.EXPIRED
        assert end.reason is expected

    @rule(token=tokens, session=SESSIONS)
    def cancel_before_it_is_used(self, token, session):
        expected = self.refusal(token, session)
        end = self.bench.begin(token, session, cancelled=lambda: True)
        if expected is Reason.EXPIRED:
            self.known[token].state = State.EXPIRED
        assert end.reason is (expected or Reason.CANCELLED)

    @rule(target=asked, token=tokens)
    def begin(self, token):
        session = self.known[token].session if token in self.known else AGENT
        expected = self.refusal(token, session)
        end = self.bench.begin(token, session)
        if expected is None:
            assert isinstance(end, NeedsAnswer)
            self.known[token].state = State.CONFIRMING
            return (token, end, self.now)
        if expected is Reason.EXPIRED:
            self.known[token].state = State.EXPIRED
        assert end.reason is expected
        return None

    @rule(leg=consumes(asked), cancelled=st.booleans())
    def resume(self, leg, cancelled):
        if leg is None:
            return
        token, asked, since = leg
        it = self.known.get(token)
        end = self.bench.resume(token, asked, session=it.session if it else AGENT, cancelled=lambda: cancelled)
        if it is None or it.state is not State.CONFIRMING:
            assert end.reason in (Reason.REPLAYED, Reason.LOST_RACE, Reason.TIMED_OUT)
            return
        if self.now >= since + WAIT_NS:
            assert end.reason in (Reason.TIMED_OUT, Reason.REPLAYED)
        elif cancelled:
            assert end.reason is Reason.CANCELLED
        elif self.now >= it.issued + TTL:
            assert end.reason is Reason.EXPIRED
        else:
            assert end.executed is True
            it.state = State.SUCCEEDED
            self.sent += 1
            return
        it.state = State.REFUSED

    @rule(seconds=st.sampled_from([1, 299, 300, 599, 600, 1200]))
    def pass_time(self, seconds):
        self.bench.clock.advance(seconds * SECOND)

    @rule()
    def restart_over_the_same_ledger(self):
        bench = self.bench
        ledger = bench.ledger._inner
        if self.durable:
            ledger.close()
            ledger = a_sqlite_ledger(self.folder, opened=True)
        again = MutationBench(
            ledger=ledger,
            clock=bench.clock,
            endpoint=bench.endpoint,
            capacity=CAPACITY,
            seed=f"again-{len(self.known)}-{self.now}",
        )
        again.broker.recover()
        self.bench = again
        for each in self.known.values():
            if each.state is State.CONFIRMING:
                each.state = State.REFUSED

    @rule(token=tokens, moment=st.sampled_from(sorted(DEATHS)))
    def die_on_the_way(self, token, moment):
        it = self.known.get(token)
        if it is None or self.refusal(token, it.session) is not None:
            return
        self.bench.at(moment, crash)
        try:
            self.bench.confirm(token, ACCEPT, it.session)
        except Crash:
            it.state, sent = DEATHS[moment]
            self.sent += sent
        else:
            raise AssertionError("it lived on")
        self.restart_over_the_same_ledger()

    @precondition(lambda self: not self.durable)
    @rule()
    def restart_in_memory(self):
        bench = self.bench
        self.bench = MutationBench(
            clock=bench.clock, endpoint=bench.endpoint, capacity=CAPACITY, seed=f"new-{len(self.known)}-{self.now}"
        )
        self.known = {}

    @invariant()
    def each_agreed_change_was_sent_once_and_no_other(self):
        assert self.bench.creates == self.sent

    @invariant()
    def each_change_is_recorded_as_the_model_has_it(self):
        for token, it in self.known.items():
            # Questions whose time is over are ended by whatever call comes next.
            expected = {it.state, State.REFUSED} if it.state is State.CONFIRMING else {it.state}
            assert self.bench.state(token) in expected
        for run in self.bench.ledger.runs():
            self.bench.receipts(run)  # which verify

    def teardown(self):
        self.bench.ledger._inner.close()
        shutil.rmtree(self.folder)


class DurableChanges(Changes):
    """The same over SQLite, which is opened anew by every restart."""

    durable = True


TestChanges = promise("K18", "M11", "M12", "M20")(Changes.TestCase)
TestChanges.settings = at_depth(30, 25)
TestDurableChanges = promise("K18", "M11", "M12", "K11")(DurableChanges.TestCase)
TestDurableChanges.settings = at_depth(12, 25)
