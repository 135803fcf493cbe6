"""The capability broker against a tiny model: grants, consents, revocations, restarts and idempotent calls."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from capability_bench import (
    GESTURE,
    GPU,
    KEYS,
    MAKERS,
    OTHER,
    SESSION,
    STATE_READ,
    CapabilityBench,
    Crash,
    CutOff,
    an_instance,
)
from depth import at_depth
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule
from marks import promise

from assisted_benchmark.capability.carrying import Moment
from assisted_benchmark.capability.lineage import Asked, Lineage
from assisted_benchmark.capability.operations import REPLAY_WINDOW_NS
from assisted_benchmark.capability.ports import Answer, Verdict
from assisted_benchmark.capability.states import CAPABILITY_TABLE, State
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.sqlite import SqliteLedger

MINUTE = 60 * SECOND
TTL = 15 * MINUTE
OPERATIONS = (GESTURE, GESTURE, GPU, STATE_READ)  # what has most to go wrong, more often
CLIENTS = (SESSION, OTHER)
# Most calls are what their grant is for; seldom one is not.
SELDOM = st.sampled_from([False, False, False, False, True])


# Where a broker dies: whether the operation was admitted, and how often it was executed.
DEATHS = {
    Moment.ADMIT: (False, 0),
    Moment.ADMITTED: (True, 0),
    Moment.CLAIMED: (True, 0),
    Moment.WRITE: (True, 0),
    Moment.ANSWER: (True, 1),
    Moment.SETTLE: (True, 1),
}


def crash():
    raise Crash


class Broker(RuleBasedStateMachine):
    """What the model knows: grants with their ends, what each identity was executed with, and what was consented to."""

    grants = Bundle("grants")
    durable = False

    @initialize()
    def start(self):
        self.folder = Path(tempfile.mkdtemp())
        self.bench = CapabilityBench(policies=(), ledger=MAKERS["sqlite" if self.durable else "memory"](self.folder))
        self.bench.person.decide = lambda prompt: Answer(prompt.id, self.verdict)
        self.verdict = Verdict.APPROVED
        self.known = {}  # grant -> [client, operation, publication, ends, revoked, lives in this broker]
        self.done = {}  # (client, publication, grant, operation, key) -> [content, receipt, when]
        self.requests = {}  # (client, request id) -> identity
        self.spent = {}  # grant -> the one identity of a one-shot operation
        self.publication = "publication-1"
        self.executed = 0

    @property
    def now(self):
        return self.bench.clock.now().mono_ns

    @rule(target=grants, session=st.sampled_from(CLIENTS), operation=st.sampled_from(OPERATIONS), yes=st.booleans())
    def ask_for_a_grant(self, session, operation, yes):
        self.bench.clock.advance(30 * SECOND)  # nobody is in a cooldown
        self.verdict = Verdict.APPROVED if yes else Verdict.DENIED
        answer = self.bench.manage("grant_request", session, instance_id="instance-1", operation_id=operation)
        if not yes:
            assert answer.reason is Reason.CONSENT_REQUIRED
            return multiple()
        grant = answer.data["grant_id"]
        self.known[grant] = [session.client, operation, self.publication, self.now + TTL, False, True]
        return grant

    @rule(session=st.sampled_from(CLIENTS))
    def ask_again_at_once(self, session):
        self.bench.clock.advance(30 * SECOND)
        self.verdict = Verdict.DENIED
        asked = len(self.bench.person.prompts)
        for _ in range(2):
            self.bench.manage("grant_request", session, instance_id="instance-1", operation_id=STATE_READ)
            self.bench.clock.advance(29 * SECOND)  # enough for anybody else
        assert len(self.bench.person.prompts) == asked + 1

    @rule(grant=grants, session=st.sampled_from(CLIENTS))
    def revoke(self, grant, session):
        client, _, _, ends, revoked, alive = self.known[grant]
        answer = self.bench.manage("revoke", session, grant_id=grant)
        if not alive or session.client != client:
            assert answer.reason is Reason.NOT_FOUND
        elif revoked:
            assert answer.reason is Reason.REVOKED
        elif self.now >= ends:
            assert answer.reason is Reason.EXPIRED
        else:
            assert answer.status == "revoked"
            self.known[grant][4] = True

    @rule(seconds=st.sampled_from([1, 1, 240, 240, 900, 24 * 3600]))
    def time_passes(self, seconds):
        self.bench.clock.advance(seconds * SECOND)

    @precondition(lambda self: self.executed)
    @rule(really=SELDOM)
    def publish_anew(self, really):
        if not really:
            return
        self.publication = f"publication-{int(self.publication[12:]) + 1}"
        self.bench.world.live = (an_instance(publication=self.publication),)

    @precondition(lambda self: self.executed)
    @rule(really=SELDOM)
    def restart(self, really):
        if really:
            self.start_anew()

    def start_anew(self):
        self.bench.strikes.clear()
        if self.durable:
            self.bench.ledger.inner.close()
            self.bench.ledger = CutOff(
                SqliteLedger.open(
                    self.folder / "ledger.db", table=CAPABILITY_TABLE, keys=KEYS, anchor=self.folder / "anchor"
                )
            )
        self.bench.restart()
        for each in self.known.values():
            each[5] = False

    @rule(grant=grants, moment=st.sampled_from(sorted(DEATHS)), really=SELDOM)
    def die_on_the_way(self, grant, moment, really):
        client, operation, *_ = self.known[grant]
        session = next(each for each in CLIENTS if each.client == client)
        key = f"key-{len(self.done)}"
        if not really or self.expected(grant, session, operation, key, None, 0.5) != "executed":
            return
        also = {"normalized_value": 0.5, "idempotency_key": key} if operation == GESTURE else {}
        self.bench.at(moment, crash)
        try:
            self.bench.ask(operation, session, grant_id=grant, also=also)
        except Crash:
            admitted, executed = DEATHS[moment]
            self.executed += executed
            if admitted:
                content = (operation, 0.5 if operation == GESTURE else None)
                self.done[self.identity] = [content, None, self.bench.clock.now().wall_ns]
            if operation == GPU:
                self.spent[grant] = self.identity
        else:
            raise AssertionError("it lived on")
        self.start_anew()

    @rule(
        grant=grants,
        stranger=SELDOM,
        elsewhere=SELDOM,
        asks=st.lists(
            st.tuples(
                st.sampled_from(["a", "b"]), st.sampled_from(["a", "b", None, None]), st.sampled_from([0.25, 0.5])
            ),
            min_size=1,
            max_size=3,
        ),
    )
    def call(self, grant, stranger, elsewhere, asks):
        client, operation, *_ = self.known[grant]
        session = next(each for each in CLIENTS if (each.client == client) is not stranger)
        if elsewhere:
            operation = next(each for each in OPERATIONS if each != operation)
        for key, request_id, value in asks:
            self.one_call(grant, session, operation, key, request_id, value)

    def one_call(self, grant, session, operation, key, request_id, value):
        also = {"normalized_value": value, "idempotency_key": key} if operation == GESTURE else {}
        more = {} if request_id is None else {"request_id": request_id}
        before = self.bench.executed.get(operation, 0)
        answer = self.bench.ask(operation, session, grant_id=grant, also=also, **more)
        executed = self.bench.executed.get(operation, 0) - before
        expected = self.expected(grant, session, operation, key, request_id, value)
        if isinstance(expected, Reason):
            assert (answer.reason, executed) == (expected, 0)
        elif expected == "replayed":
            assert (answer.replayed, executed) == (True, 0)
            assert answer.receipt_id == self.done[self.identity][1] or self.done[self.identity][1] is None
        else:
            assert (answer.state, executed, answer.replayed) == (State.COMPLETED, 1, False)
            self.executed += 1
            content = (operation, value if operation == GESTURE else None)
            self.done[self.identity] = [content, answer.receipt_id, self.bench.clock.now().wall_ns]
            if request_id is not None:
                self.requests[session.client, request_id] = self.identity
            if operation == GPU:
                self.spent[grant] = self.identity

    def expected(self, grant, session, operation, key, request_id, value):
        """What the model says comes of the call."""
        name = key if operation == GESTURE else request_id
        self.identity = (session.client, self.publication, grant, operation, name if name is not None else object())
        met = self.done.get(self.identity)
        if met is not None:
            if self.bench.clock.now().wall_ns - met[2] >= REPLAY_WINDOW_NS:
                return Reason.REPLAY_WINDOW_EXPIRED
            same = met[0] == (operation, value if operation == GESTURE else None)
            return "replayed" if same else Reason.IDEMPOTENCY_CONFLICT
        if request_id is not None and (session.client, request_id) in self.requests:
            return Reason.REQUEST_ID_CONFLICT
        client, covered, publication, ends, revoked, alive = self.known[grant]
        if not alive or client != session.client:
            return Reason.UNKNOWN_GRANT
        if publication != self.publication:
            return Reason.WRONG_PUBLICATION
        if revoked:
            return Reason.REVOKED
        if self.now >= ends:
            return Reason.EXPIRED
        if covered != operation:
            return Reason.NOT_GRANTED
        if operation == GPU and grant in self.spent:
            return Reason.CONSENT_REQUIRED
        return "executed"

    @invariant()
    def each_identity_was_executed_once_and_has_one_receipt(self):
        if hasattr(self, "bench"):
            assert sum(self.bench.executed.values()) == self.executed <= len(self.done)
            assert len(self.bench.groups()) == len(self.done)

    def teardown(self):
        assert self.bench.sound()
        self.bench.ledger.inner.close()
        shutil.rmtree(self.folder)


class DurableBroker(Broker):
    """The same over SQLite, which is opened anew by every restart."""

    durable = True


TestBroker = promise("C21", "C22", "C24", "K18")(Broker.TestCase)
TestBroker.settings = at_depth(40, 50)
TestDurableBroker = promise("C22", "C24", "K11", "K18")(DurableBroker.TestCase)
TestDurableBroker.settings = at_depth(12, 40)

TEXT = st.text(alphabet="ab\u00e9 ", max_size=3)
ASKED = st.builds(
    Asked,
    st.builds(Lineage, TEXT, TEXT, TEXT, TEXT, TEXT),
    TEXT,
    st.integers(1, 2),
    st.none() | st.integers(0, 3),
    st.binary(max_size=3),
)


def parts(asked):
    return (asked.lineage, asked.key, asked.version, asked.expected, asked.parameters)


@promise("C16")
@given(ASKED, ASKED)
@settings(max_examples=200, deadline=None)
def test_requests_have_one_hash_only_if_they_are_the_same(one, other):
    assert (one.request_hash == other.request_hash) == (parts(one) == parts(other))
    assert (one.identity == other.identity) == (parts(one)[:2] == parts(other)[:2])


@promise("C16")
@given(st.lists(TEXT, min_size=5, max_size=5), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_no_part_of_a_lineage_can_pose_as_its_neighbour(texts, place):
    moved = list(texts)
    moved[place], moved[place + 1] = texts[place] + texts[place + 1], ""
    one, other = (Asked(Lineage(*each), "key", 1, None, json.dumps({}).encode()) for each in (texts, moved))
    assert (one.identity == other.identity) == (texts == moved)
