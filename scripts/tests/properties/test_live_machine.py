"""The live broker against a tiny model, over every ledger: each step is sent once at most, through deaths."""

import shutil
import tempfile
from pathlib import Path

from depth import at_depth
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from live_bench import (
    APPROVE,
    HOLD,
    KEYS,
    LIFETIME,
    LOOK,
    LOOKING,
    Crash,
    CutOff,
    LiveBench,
    a_group,
    a_policy,
    choosing,
    crash,
)
from marks import promise

from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.receipts import verify
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.live_policy.dispatch import Moment
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.states import LIVE_TABLE, State

PROPOSALS = {"look": LOOKING, "approve": choosing(APPROVE), "hold": choosing(HOLD), "other": choosing({})}
OPENS = ({"look"}, {"approve", "hold"})
ENDS = {"well": State.SUCCEEDED, "badly": State.FAILED, "not": State.UNRESOLVED}
# Before the marker nothing has happened; from it on nobody knows; at the answer it was sent.
DEATHS = {
    Moment.OBSERVE: (State.SEALED, 0),
    Moment.CLAIM: (State.SEALED, 0),
    Moment.CLAIMED: (State.UNRESOLVED, 0),
    Moment.WRITE: (State.UNRESOLVED, 0),
    Moment.ANSWER: (State.UNRESOLVED, 1),
    Moment.SETTLE: (State.UNRESOLVED, 1),
}


class Grant(RuleBasedStateMachine):
    """One grant of two steps, of which the second is a choice. The model is two states, a stop and a clock."""

    durable = False

    @initialize()
    def seal(self):
        self.folder = Path(tempfile.mkdtemp())
        self.bench = LiveBench(
            a_policy(LOOK, a_group(), max_refusals=100), answer=self.answer, ledger=CutOff(self.store())
        )
        self.bench.seal()
        self.states = [State.SEALED, State.SEALED]
        self.stopped = False
        self.left_ns = LIFETIME
        self.sent = []
        self.ends = "well"

    def store(self, opened=False):
        if not self.durable:
            return MemoryLedger("ledger-1", LIVE_TABLE)
        where = {"table": LIVE_TABLE, "keys": KEYS, "anchor": self.folder / "anchor"}
        if opened:
            return SqliteLedger.open(self.folder / "l.db", **where)
        return SqliteLedger.create(self.folder / "l.db", ledger_id="ledger-1", **where)

    def answer(self, claimed):
        world, kept = self.bench.world, LiveBench.answer(self.bench, claimed)
        if self.ends == "well":
            return kept
        return (
            world.replied(b'{"content":[]}', failed=True)
            if self.ends == "badly"
            else Uncertain(Reason.OUTCOME_UNKNOWN, "lost", self.bench.clock.now())
        )

    @property
    def place(self):
        """The step that is open, if any."""
        return next((place for place, state in enumerate(self.states) if state is not State.SUCCEEDED), None)

    def goes_out(self, what):
        place = self.place
        good = self.left_ns > 0 and not self.stopped and place is not None and self.states[place] is State.SEALED
        return good and what in OPENS[place]

    @rule(what=st.sampled_from(sorted(PROPOSALS)), ends=st.sampled_from(sorted(ENDS)))
    def propose(self, what, ends):
        self.ends = ends
        goes_out, place = self.goes_out(what), self.place
        answer = self.bench.propose(PROPOSALS[what])
        assert isinstance(answer, Refused) is not goes_out
        if goes_out:
            assert answer.state is ENDS[ends]
            self.states[place] = ENDS[ends]
            self.sent.append(what)

    @rule(what=st.sampled_from(["look", "approve"]), moment=st.sampled_from(sorted(DEATHS)))
    def die_on_the_way(self, what, moment):
        if not self.goes_out(what):
            return
        self.ends, place = "well", self.place
        self.bench.at(moment, crash)
        try:
            self.bench.propose(PROPOSALS[what])
        except Crash:
            self.states[place], sent = DEATHS[moment]
            self.sent += [what] * sent
        else:
            raise AssertionError("it lived on")
        self.restart()

    @rule()
    def restart(self):
        bench = self.bench
        bench.strikes.clear()
        if self.durable:
            bench.ledger._inner.close()
            bench.ledger = CutOff(self.store(opened=True))
        bench.broker = bench.a_broker()
        bench.broker.recover()
        opened = bench.broker.open(bench.sealed.data, bench.session)
        assert isinstance(opened, Session) or self.left_ns <= 0
        self.stopped = False

    @rule(seconds=st.sampled_from([1, 30, 119, 120]))
    def time_passes(self, seconds):
        self.bench.clock.advance(seconds * SECOND)
        self.left_ns -= seconds * SECOND

    @precondition(lambda self: not self.stopped and self.left_ns > 0)
    @rule(how=st.sampled_from(["revoke", "abort"]), really=st.sampled_from([False, False, True]))
    def stop(self, how, really):
        if not really:
            return
        end = State.REVOKED if how == "revoke" else State.ABORTED
        if how == "revoke":
            self.bench.broker.revoke(self.bench.session.grant)
        else:
            self.bench.broker.abort(self.bench.session)
        self.stopped = True
        self.states = [end if state is State.SEALED else state for state in self.states]

    @invariant()
    def the_ledger_and_the_servers_say_what_the_model_says(self):
        if not hasattr(self, "sent"):
            return
        ledger, run = self.bench.ledger, self.bench.session.run
        assert [row.state for _, row in ledger.groups(run)] == self.states
        assert [each.permit.arguments for each in self.bench.world.sent] == [
            {
                "look": b"{}",
                "approve": b'{"targetId":"approve","taskId":"t-1"}',
                "hold": b'{"targetId":"hold","taskId":"t-1"}',
            }[each]
            for each in self.sent
        ]
        assert len(self.sent) <= 2
        head = ledger.head(run)
        assert verify(ledger.receipts(run), run=run, ledger_id=ledger.id, head=head, table=LIVE_TABLE).findings == ()

    def teardown(self):
        if hasattr(self, "folder"):
            self.bench.ledger._inner.close()
            shutil.rmtree(self.folder)


class DurableGrant(Grant):
    """The same over SQLite, which is opened anew by every restart."""

    durable = True


TestGrant = promise("K18", "L17")(Grant.TestCase)
TestGrant.settings = at_depth(40, 25)
TestDurableGrant = promise("K18", "K11", "L17")(DurableGrant.TestCase)
TestDurableGrant.settings = at_depth(15, 20)
