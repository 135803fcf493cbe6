"""Tokens and the store: one suite over the ledger in memory and the durable one."""

import json
import re

import apsw
import pytest
from marks import promise
from mutation_bench import (
    AGENT,
    DECLINE,
    FABRIC,
    KEYS,
    ORCHARD,
    TTL,
    MutationBench,
    a_sqlite_ledger,
    confirming,
    proposing,
)

from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.errors import IntegrityError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Claimed, Draft
from assisted_benchmark.mutation.compiler import compile_change
from assisted_benchmark.mutation.proposal import Proposal, Session, group_key
from assisted_benchmark.mutation.results import Confirmed, NeedsAnswer, TokenState
from assisted_benchmark.mutation.states import MUTATION_TABLE, State
from assisted_benchmark.mutation.store import ProposalStore

OTHER = Session("run-2", "agent")
MAKERS = {"memory": lambda _: MemoryLedger("ledger-1", MUTATION_TABLE), "durable": a_sqlite_ledger}


@pytest.fixture(params=MAKERS)
def ledger(request, tmp_path):
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


def outcome(bench, token, **more):
    """What a token is found to be: (the reason, what the token is called)."""
    answer = bench.confirm(token, **more)
    return (answer.reason, getattr(answer, "token", TokenState.CONSUMED))


UNKNOWN = (Reason.UNKNOWN_TOKEN, TokenState.UNKNOWN)
REPLAYED = (Reason.REPLAYED, TokenState.REPLAYED)
EXPIRED = (Reason.EXPIRED, TokenState.EXPIRED)
EXECUTED = (None, TokenState.CONSUMED)


@promise("M11")
def test_a_token_is_chg_a_count_and_24_hex_digits_of_chance(ledger):
    bench = MutationBench(ledger=ledger)
    tokens = [bench.token() for _ in range(3)]
    assert [re.fullmatch(r"chg-(\d+)-[0-9a-f]{24}", each)[1] for each in tokens] == ["1", "2", "3"]
    assert len({each.rpartition("-")[2] for each in tokens}) == 3


@promise("M11", "M12")
@pytest.mark.parametrize("late", [0, 1, 5 * SECOND])
def test_a_token_lives_for_ten_minutes_and_the_very_instant_is_too_late(ledger, late):
    bench = MutationBench(ledger=ledger)
    token = bench.token()
    bench.clock.advance(TTL + late)
    assert outcome(bench, token) == EXPIRED
    assert bench.state(token) == State.EXPIRED
    assert outcome(bench, token) == EXPIRED
    assert bench.creates == 0


@promise("M11")
def test_a_token_is_good_until_right_before_its_end(ledger):
    bench = MutationBench(ledger=ledger)
    token = bench.token()
    bench.clock.advance(TTL - 1)
    assert outcome(bench, token) == EXECUTED
    assert bench.creates == 1


@promise("M11", "M12")
def test_a_used_token_is_replayed_whatever_its_first_attempt_came_to(ledger):
    bench = MutationBench(ledger=ledger)
    done, declined, unasked = bench.token(), bench.token(), bench.token()
    assert outcome(bench, done) == EXECUTED
    assert outcome(bench, declined, answer=DECLINE)[0] is Reason.DECLINED
    assert outcome(bench, unasked, can_ask=False)[0] is Reason.UNSUPPORTED_BY_CLIENT
    for token in (done, declined, unasked):
        assert outcome(bench, token) == REPLAYED
    assert bench.creates == 1


@promise("M12")
def test_replay_wins_over_expiry_and_both_are_forgotten_after_one_further_lifetime(ledger):
    bench = MutationBench(ledger=ledger)
    used, unused = bench.token(), bench.token()
    bench.confirm(used)
    bench.clock.advance(TTL)
    assert outcome(bench, used) == REPLAYED
    assert outcome(bench, unused) == EXPIRED
    bench.clock.advance(TTL - 1)
    assert (outcome(bench, used), outcome(bench, unused)) == (REPLAYED, EXPIRED)
    bench.clock.advance(1)
    assert (outcome(bench, used), outcome(bench, unused)) == (UNKNOWN, UNKNOWN)


@promise("M11", "M12")
def test_the_twenty_first_proposal_takes_the_place_of_the_oldest_which_is_unknown_then(ledger):
    bench = MutationBench(ledger=ledger)
    tokens = [bench.token() for _ in range(20)]
    assert {bench.state(each) for each in tokens} == {State.SEALED}
    last = bench.token()
    assert [bench.state(each) for each in tokens[:2]] == [State.EVICTED, State.SEALED]
    assert outcome(bench, tokens[0]) == UNKNOWN
    assert outcome(bench, tokens[1]) == EXECUTED
    assert outcome(bench, last) == EXECUTED
    assert ("event", "evicted", "evicted") in bench.written()


@promise("M11")
def test_what_has_expired_or_was_used_needs_no_room(ledger):
    bench = MutationBench(ledger=ledger, capacity=2)
    old = bench.token()
    bench.clock.advance(TTL)
    tokens = [bench.token(), bench.token()]
    assert bench.state(old) == State.EXPIRED
    bench.confirm(tokens[1], answer=DECLINE)
    third = bench.token()
    assert [bench.state(each) for each in (tokens[0], third)] == [State.SEALED, State.SEALED]


@promise("M11")
def test_one_sessions_proposals_never_push_out_anothers(ledger):
    bench = MutationBench(ledger=ledger, capacity=1)
    mine = bench.token()
    theirs = bench.token(session=OTHER)
    assert bench.state(mine) == bench.state(theirs) == State.SEALED


@promise("M4", "M12", "M20")
@pytest.mark.parametrize("session", [OTHER, Session("run-1", "another")], ids=["another run", "another principal"])
def test_the_token_of_another_sessions_proposal_is_unknown_and_stays_usable(ledger, session):
    bench = MutationBench(ledger=ledger)
    token = bench.token()
    assert outcome(bench, token, session=session) == UNKNOWN
    assert outcome(bench, token) == EXECUTED


HEX = "a" * 24
NO_TOKENS = ["", "chg-1", f"chg-0-{HEX}", f"chg-1-{HEX.upper()}", f"chg-1-{HEX}a", f"CHG-1-{HEX}", "x" * 5000]


@promise("M12")
@pytest.mark.parametrize("token", [*NO_TOKENS, "chg-1-" + "0" * 24], ids=range(len(NO_TOKENS) + 1))
def test_what_was_never_given_out_is_unknown(ledger, token):
    bench = MutationBench(ledger=ledger)
    bench.token()
    assert outcome(bench, token) == UNKNOWN


@promise("M12")
def test_each_failure_tells_the_agent_to_propose_again(ledger):
    bench = MutationBench(ledger=ledger)
    used, late = bench.token(), bench.token()
    bench.confirm(used)
    answers = {"replayed": bench.confirm(used), "unknown": bench.confirm("chg-9-" + "0" * 24)}
    bench.clock.advance(TTL)
    answers["expired"] = bench.confirm(late)
    texts = {name: bench.told(each) for name, each in answers.items()}
    assert {name: each["token_state"] for name, each in texts.items()} == {name: name for name in answers}
    for each in texts.values():
        assert "propose the change again with fabric_propose_change to get a new token." in each["next_step"].lower()
        assert each["executed"] is False
    assert len({each["next_step"] for each in texts.values()}) == 3
    assert "may have carried the change out, so look first" in texts["replayed"]["next_step"]
    assert {name: each["refused"] for name, each in texts.items()} == {
        "replayed": "spent",
        "unknown": "not_authorised",
        "expired": "expired",
    }


@promise("M11", "K9")
def test_a_clock_that_was_set_back_refuses_and_a_second_of_drift_does_not(ledger):
    bench = MutationBench(ledger=ledger)
    first, second = bench.token(), bench.token()
    wall = bench.clock.now().wall_ns
    bench.clock.set_wall(wall - SECOND - 1)
    assert outcome(bench, first) == (Reason.CLOCK_ROLLBACK, TokenState.EXPIRED)
    bench.clock.set_wall(wall - SECOND)
    assert outcome(bench, second) == EXECUTED
    assert bench.state(first) == State.SEALED


@promise("M11", "K9")
def test_either_clock_alone_suffices_to_expire_at_its_very_instant(ledger):
    bench = MutationBench(ledger=ledger)
    by_wall, by_mono = bench.token(), bench.token()
    wall = bench.clock.now().wall_ns
    bench.clock.set_wall(wall + TTL)
    assert outcome(bench, by_wall) == EXPIRED
    bench.clock.set_wall(wall)
    bench.clock.advance(TTL)
    bench.clock.set_wall(wall)
    assert outcome(bench, by_mono) == EXPIRED


@promise("M11", "K9")
def test_another_boot_refuses(ledger):
    bench = MutationBench(ledger=ledger)
    token = bench.token()
    bench.clock.reboot("boot-2")
    assert outcome(bench, token) == EXPIRED


@promise("M4")
def test_another_pairs_token_is_unknown():
    one, other = MutationBench(), MutationBench()
    token = one.token()
    assert outcome(other, token) == UNKNOWN
    assert outcome(one, token) == EXECUTED


@promise("M4")
def test_two_pairs_that_were_given_one_store_share_its_proposals():
    bench = MutationBench()
    token = bench.token()
    pair = bench.a_broker()
    assert isinstance(pair.begin(AGENT, confirming(token), can_ask=True), NeedsAnswer)
    assert outcome(bench, token) == REPLAYED


@promise("M12")
def test_in_memory_every_token_is_unknown_after_a_restart():
    bench = MutationBench()
    token = bench.token()
    again = MutationBench(clock=bench.clock, endpoint=bench.endpoint)
    assert outcome(again, token) == UNKNOWN


@promise("M11")
def test_a_durable_store_has_the_same_proposals_after_a_restart(tmp_path):
    ledger = a_sqlite_ledger(tmp_path)
    bench = MutationBench(ledger=ledger, capacity=3)
    tokens = [bench.token() for _ in range(3)]
    used = bench.confirm(tokens[0])
    assert isinstance(used, Confirmed)
    ledger.close()
    again = MutationBench(
        ledger=a_sqlite_ledger(tmp_path, opened=True),
        clock=bench.clock,
        endpoint=bench.endpoint,
        capacity=3,
        seed="again",
    )
    assert again.broker.recover() == ()
    assert outcome(again, tokens[0]) == REPLAYED
    fresh = again.token()
    assert fresh.startswith("chg-4-")
    last = again.token()
    assert [again.state(each) for each in (*tokens, fresh, last)] == [
        State.SUCCEEDED,
        State.EVICTED,
        State.SEALED,
        State.SEALED,
        State.SEALED,
    ]
    assert outcome(again, tokens[2]) == EXECUTED
    assert again.creates == 2


@promise("M10")
def test_a_store_that_was_edited_by_hand_stops_everything(tmp_path):
    ledger = a_sqlite_ledger(tmp_path)
    bench = MutationBench(ORCHARD, ledger=ledger)
    token = bench.token(species="pear")
    connection = apsw.Connection(str(tmp_path / "ledger.db"))
    connection.execute("UPDATE records SET record = CAST(replace(CAST(record AS TEXT), 'pear', 'plum') AS BLOB)")
    assert connection.changes() == 1
    connection.close()
    again = MutationBench(ORCHARD, ledger=ledger, clock=bench.clock)
    with pytest.raises(IntegrityError):
        again.confirm(token)
    ledger.close()
    with pytest.raises(IntegrityError):
        a_sqlite_ledger(tmp_path, opened=True)
    assert again.creates == 0


@promise("M11", "K15")
def test_neither_the_token_nor_a_spec_is_in_a_receipt_and_no_token_is_in_the_ledger(ledger):
    bench = MutationBench(ORCHARD, ledger=ledger)
    tokens = [bench.token(species="pear", gate={"pin": "4711"}) for _ in range(4)]
    bench.confirm(tokens[0])
    bench.confirm(tokens[0])
    bench.confirm(tokens[1], answer=DECLINE)
    bench.begin(tokens[2])
    bench.broker.close()
    written = json.dumps(bench.receipts())
    records = b"".join(bench.ledger.group_record(group_key(each)) for each in tokens)
    for token in tokens:
        secret = token.rpartition("-")[2]
        assert secret not in written
        assert secret.encode() not in records
    assert "4711" not in written
    assert "pear" not in written


def test_a_record_reads_back_as_the_same_proposal(ledger):
    bench = MutationBench(ledger=ledger)
    token = bench.token()
    found = bench.store.find(token)
    assert Proposal.of_record(found.proposal.record) == found.proposal
    assert found.proposal.session == AGENT
    assert found.proposal.contract == FABRIC.digest
    assert found.state == State.SEALED


def test_chance_that_repeats_itself_gives_out_no_token_twice():
    class Stuck:
        def token(self, size):
            return b"\x01" * size

    bench = MutationBench()
    first = ProposalStore(ledger=bench.ledger, clock=bench.clock, chance=Stuck(), keys=KEYS)
    other = ProposalStore(ledger=bench.ledger, clock=bench.clock, chance=Stuck(), keys=KEYS)
    broker, late = bench.a_broker(store=first), bench.a_broker(store=other)
    first.ready("run-1")
    other.ready("run-1")
    assert broker.propose(AGENT, proposing("network")).token == "chg-1-" + "01" * 12
    refused = late.propose(AGENT, proposing("network"))
    assert refused.reason is Reason.STORE_UNAVAILABLE


@promise("M4")
def test_a_store_may_be_passed_in_with_proposals_that_are_there_already():
    bench = MutationBench()
    change = FABRIC.change("network")
    spec = change.example
    compiled = compile_change(change, spec.value)
    sealed = bench.store.seal(AGENT, FABRIC, compiled, spec, Canonical.of({"unpriced": "seeded"}))
    assert outcome(bench, sealed.token) == EXECUTED
    assert bench.endpoint.asks == []


@promise("K10", "K16")
def test_every_edge_of_the_table_is_walked_and_no_other(ledger):
    draft = Draft("event", "id", ManualClock().now(), "walked")
    ledger.open_run("run-1", b"{}", ())
    edges = {(str(before), str(after)) for before, after in MUTATION_TABLE.edges}
    roads = {"sealed": (), "confirming": ("confirming",), "dispatching": ("confirming", "dispatching")}
    walked = set()
    for before, road in roads.items():
        for after in sorted(State):
            key = f"{before}-{after}".encode().ljust(32, b".")
            permit = Admitted(key, FABRIC.digest, "fabric", "network", b"{}")
            assert ledger.open_group("run-1", key, b"{}", draft)
            claimed = None
            for step in road:
                if step == "dispatching":
                    claimed = ledger.claim(permit, "run-1", draft)
                else:
                    assert ledger.move(key, "run-1", "sealed", step, draft)
            if (before, after) not in edges:
                with pytest.raises(LedgerError):
                    ledger.move(key, "run-1", before, after, draft)
                assert ledger.row(key).state == before
            elif after == "dispatching":
                assert isinstance(ledger.claim(permit, "run-1", draft), Claimed)
            elif claimed is not None:
                ledger.settle(claimed, after, draft)
            else:
                assert ledger.move(key, "run-1", before, after, draft)
            if (before, after) in edges:
                walked.add((before, after))
                assert ledger.row(key).state == after
    assert walked == edges


@promise("K5")
def test_no_token_and_no_spec_is_in_what_is_printed_of_a_proposal():
    bench = MutationBench(ORCHARD)
    sealed = bench.propose("plant", gate={"pin": "4711"})
    asked = bench.begin(sealed.token)
    assert sealed.token not in repr(sealed)
    assert asked.state not in repr(asked)
    assert "4711" not in repr(bench.store.find(sealed.token))


@promise("M12")
def test_a_group_that_is_no_proposal_is_no_tokens(ledger):
    bench = MutationBench(ledger=ledger)
    token = f"chg-1-{HEX}"
    bench.ledger.open_run("run-2", b"{}", [group_key(token)])
    assert bench.store.find(token) is None
    assert outcome(bench, token) == UNKNOWN
