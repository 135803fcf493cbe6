"""Cases that are played from outside: on the road of every other case, with their own time, and honest to the end."""

import threading
from contextlib import suppress

import pytest
from attrs import evolve
from marks import promise
from served_bench import CHOOSE, HOLD, LOOK, a_case, played, proposal
from suite_world import ran

from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.kernel.errors import HarnessError, MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.live import served as served_module
from assisted_benchmark.suite.live.served import ServedTurn
from assisted_benchmark.suite.result import Verdict

MS = 1_000_000
WRONG = proposal("synthetic-ui", "click_target", taskId="t-2", targetId="approve")
OTHER = proposal("synthetic-ui", "click_target", **HOLD)


def proposing(*raws):
    """A client that proposes these."""

    def use(served):
        for raw in raws:
            served.propose(raw)

    return use


@promise("H1", "W15")
@pytest.mark.parametrize("servers", list(Servers))
@pytest.mark.parametrize("durability", ["memory", "process"])
def test_a_client_that_plays_the_plan_comes_to_what_the_scripted_agent_does(tmp_path, servers, durability):
    body = f"agent: {{plan: approve}}\nservers: {servers}\nexpect: {{ends: succeeded, oracle: approved}}\n"
    case = a_case(tmp_path, body)
    scripted = ran(case, durability=durability, expect_identical=True)
    served = played(case, proposing(LOOK, CHOOSE), durability=durability, expect_identical=True)
    assert scripted.result.verdict is Verdict.PASSED
    # What an agent from outside is called, and that it may be another the next time, is all that differs.
    assert evolve(served.result, agent=scripted.result.agent, stamps=scripted.result.stamps) == scripted.result
    assert served.receipts == scripted.receipts
    assert served.result.agent == "client"


@promise("H8")
@pytest.mark.parametrize(
    ("raws", "verdict", "missed"),
    [
        ((LOOK, CHOOSE), Verdict.PASSED, []),
        ((LOOK, WRONG, CHOOSE, OTHER), Verdict.PASSED, []),
        ((), Verdict.FAILED, ["calls at lba", "calls at synthetic-ui", "ends"]),
        ((LOOK, OTHER), Verdict.FAILED, ["oracle"]),
    ],
)
def test_what_is_expected_of_a_client_is_what_must_come_of_it(tmp_path, raws, verdict, missed):
    oracle = "" if not raws else "expect: {oracle: approved}\n"
    result = played(a_case(tmp_path, f"run: {{seed: 7}}\nagent: {{plan: approve}}\n{oracle}"), proposing(*raws)).result
    assert (result.verdict, [miss.what for miss in result.misses]) == (verdict, missed)


# -- time


@promise("K9")
def test_a_turn_begins_at_the_clients_time_in_whole_milliseconds_and_is_of_one_moment(tmp_path):
    clock, turns = ManualClock(), []

    def use(served):
        for raw in (LOOK, WRONG, CHOOSE):
            clock.advance(1250 * MS + 999_999)
            served.propose(raw)
        turns.extend(served.turns)

    result = played(a_case(tmp_path), use, clock).result
    assert [each.at_ns for each in turns] == [1250 * MS, 2501 * MS, 3752 * MS]
    moments = [event.at_ns for event in result.timeline if event.kind in ("proposal", "receipt")]
    assert moments == [SECOND + each.at_ns for each in turns for _ in range(2)]


@promise("K9", "L19")
def test_a_grant_really_expires(tmp_path):
    clock = ManualClock()

    def use(served):
        assert served.propose(LOOK).state is State.SUCCEEDED
        clock.advance(120 * SECOND)
        assert served.propose(CHOOSE).reason is Reason.EXPIRED

    result = played(a_case(tmp_path), use, clock).result
    assert (result.refusals, dict(result.calls)) == ((("expired", 1),), {"lba": 1, "synthetic-ui": 0})


# -- faults


@promise("H5")
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("{advance: 200s, turn: 2}", ["admitted", "expired"]),
        ("{crash: broker, at: claimed}", ["admitted", "outcome_unknown"]),
        ("{crash: broker, at: observe, turn: 1}", ["cancelled", "out_of_order"]),
        ("{revoke: grant}", ["admitted", "revoked"]),
        ("{server: {id: lba, does: drop_answer}}", ["outcome_unknown", "group_terminal"]),
        ("{setting: {session: mallory}}", ["admitted", "wrong_principal"]),
    ],
)
def test_declared_faults_strike_turn_by_turn(tmp_path, fault, words):
    turns = []

    def use(served):
        answers = [served.propose(LOOK), served.propose(CHOOSE)]
        assert [each.reason and each.reason.value for each in answers] == [
            None if word == "admitted" else word for word in words
        ]
        turns.extend(served.turns)

    body = f"agent: {{plan: approve}}\nfaults: [{fault}]\nexpect: {{calls: {{}}}}\n"
    result = played(a_case(tmp_path, body), use).result
    assert [each.word for each in turns] == words
    assert "fault" not in [miss.what for miss in result.misses]


@promise("H5")
def test_a_fault_whose_turn_never_came_fails_the_case(tmp_path):
    body = "agent: {plan: approve}\nfaults: [{revoke: grant}]\nexpect: {calls: {lba: 1}}\n"
    (miss,) = played(a_case(tmp_path, body), proposing(LOOK)).result.misses
    assert (miss.what, miss.expected) == ("fault", "revoke at propose strikes")


def test_a_client_does_not_meet_a_case_whose_grant_is_refused(tmp_path):
    body = "agent: {plan: approve}\nfaults: [{grant: unsealed}]\nexpect: {ends: sealed, calls: {}}\n"
    came = []
    result = played(a_case(tmp_path, body), came.append).result
    assert (result.verdict, came, result.refusals) == (Verdict.PASSED, [], (("seal_invalid", 1),))


# -- turns


@promise("W17")
def test_turns_are_taken_one_at_a_time_in_the_order_in_which_they_came(tmp_path):
    turns = []

    def use(served):
        entered, leave, queued = threading.Event(), threading.Event(), threading.Semaphore(0)
        propose = served._turn

        def held(*turn):
            entered.set()
            leave.wait()
            return propose(*turn)

        class Waiting(type(served._line._waiting)):
            def append(self, each):
                super().append(each)
                queued.release()

        served._turn = held
        served._line._waiting = Waiting()
        raws = [LOOK, *(proposal("lba", "get_benchmark_series", n=number) for number in range(8))]
        threads = [threading.Thread(target=served.propose, args=(raw,)) for raw in raws]
        threads[0].start()
        entered.wait()
        for number, thread in enumerate(threads[1:], 1):
            if number == 5:
                served.refuse_malformed(Reason.TOO_DEEP, "does not wait, and comes in its turn")
                queued.acquire()
            thread.start()
            queued.acquire()
        leave.set()
        for thread in threads:
            thread.join()
        turns.extend(served.turns)
        assert [each.raw for each in turns if each.malformed is None] == raws
        assert turns[5] == ServedTurn(0, b"", "too_deep", malformed=(Reason.TOO_DEEP, turns[5].malformed[1]))

    assert played(a_case(tmp_path), use).result.proposed == 10


def test_after_the_session_no_turn_comes_any_more(tmp_path):
    kept = []
    played(a_case(tmp_path), kept.append)
    (served,) = kept
    with pytest.raises(MisuseError):
        served.propose(LOOK)
    served.refuse_malformed(Reason.TOO_DEEP, "nobody keeps it")
    assert served.turns == ()


@pytest.mark.parametrize(("bound", "value", "turns"), [("MOST_TURNS", 3, 3), ("MOST_BYTES", len(LOOK) + len(WRONG), 2)])
def test_what_an_agent_can_have_kept_has_a_bound_and_going_on_beyond_it_is_a_fault(
    tmp_path, monkeypatch, bound, value, turns
):
    monkeypatch.setattr(served_module, bound, value)
    taken = []

    def use(served):
        for raw in (LOOK, WRONG, CHOOSE, CHOOSE)[: turns + 1]:
            with suppress(MisuseError):
                served.propose(raw)
        with pytest.raises(MisuseError):
            served.propose(LOOK)
        for _ in range(turns + 1):
            served.refuse_malformed(Reason.TOO_DEEP, "too many")
        taken.extend(served.turns)

    result = played(a_case(tmp_path), use).result
    assert (result.verdict, len(taken), result.proposed) == (Verdict.FAILED, turns, turns)
    assert "agent" in [each.what for each in result.misses]


def test_lines_that_are_no_messages_do_not_wait_in_any_number(tmp_path, monkeypatch):
    monkeypatch.setattr(served_module, "MOST_TURNS", 3)
    taken = []

    def use(served):
        for _ in range(5):
            served.refuse_malformed(Reason.TOO_DEEP, "too many")
        taken.extend(served.turns)

    result = played(a_case(tmp_path), use).result
    assert (len(taken), result.misses[-1].what, result.verdict) == (3, "agent", Verdict.FAILED)


@pytest.mark.parametrize("how", ["propose", "malformed"])
def test_what_breaks_in_a_turn_leaves_the_case_without_a_verdict(tmp_path, how):
    def use(served):
        def breaks(*_):
            raise HarnessError(Reason.LEDGER_TAMPERED, "somebody edited it")

        served._played.propose = served._played.malformed = breaks
        if how == "malformed":
            served.refuse_malformed(Reason.TOO_DEEP, "")
        else:
            with pytest.raises(HarnessError):
                served.propose(LOOK)

    result = played(a_case(tmp_path), use).result
    assert (result.verdict, result.reason) == (Verdict.COULD_NOT_RUN, "ledger_tampered")


def test_an_interrupt_in_the_middle_of_a_receipt_keeps_nobody_waiting(tmp_path):
    def use(served):
        def interrupted(*_):
            raise KeyboardInterrupt

        served._played.malformed = interrupted
        with pytest.raises(KeyboardInterrupt):
            served.refuse_malformed(Reason.TOO_DEEP, "")
        assert served.propose(LOOK).state is State.SUCCEEDED

    assert played(a_case(tmp_path), use).result.sent == 1


def test_an_agent_that_dies_leaves_what_it_did(tmp_path):
    def use(served):
        served.propose(LOOK)
        raise ConnectionResetError("it is gone")

    result = played(a_case(tmp_path), use).result
    assert (result.verdict, result.detail) == (Verdict.COULD_NOT_RUN, "ConnectionResetError: it is gone")


# -- what else it has


@pytest.mark.parametrize(("label", "name"), [("", "client"), ("me 1", "client (me 1)"), ("\u202ex" + "y" * 200, None)])
def test_what_a_client_says_of_itself_is_a_label(tmp_path, label, name):
    agent = played(a_case(tmp_path), lambda served: served.is_called(label)).result.agent
    assert agent == name if name else (agent.startswith("client (\\u202exy"), len(agent) < 140) == (True, True)


def test_the_open_step_is_where_the_ledger_has_the_grant(tmp_path):
    seen = []

    def use(served):
        for raw in (LOOK, WRONG, CHOOSE):
            seen.append(served.open_step())
            served.propose(raw)
        seen.append(served.open_step())

    played(a_case(tmp_path), use)
    assert [step and step.index for step in seen] == [0, 1, 1, None]


def test_no_step_is_open_where_that_cannot_be_known(tmp_path):
    body = "agent: {plan: approve}\nfaults: [{store: unavailable, turn: 1}]\nexpect: {calls: {}, ends: sealed}\n"
    seen = []

    def use(served):
        assert served.propose(LOOK).reason is Reason.STORE_UNAVAILABLE
        seen.append(served.open_step())

    assert (played(a_case(tmp_path, body), use).result.verdict, seen) == (Verdict.PASSED, [None])
