"""What holds of every capability case, said or not: each breach of it is a miss of its own."""

import pytest
from attrs import evolve
from marks import promise
from suite_world import ROOT

from assisted_benchmark.capability.results import Outcome
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.capability.agents import Shot
from assisted_benchmark.suite.capability.scenario import Expect
from assisted_benchmark.suite.capability.scoring import Played, Taken, counts_of, misses_of, scores_of
from assisted_benchmark.suite.result import Scores
from assisted_benchmark.suite.runner import discover, select
from assisted_benchmark.workloads.plugin_host_oracle import Execution, HostReading

READ = "dev.pulp.state/read@1"
(CASE,) = select(discover(ROOT), ids={"capability/sanity-agents/nop"})
CASE = evolve(CASE, expect=Expect())
EXECUTED = Execution(READ, "instance-1", "p", "agent", "g", "request-1", "receipt-1", "sha", 1, 1)
DONE = Outcome(
    request_id="request-1",
    receipt_id="receipt-1",
    operation_id=READ,
    operation_version=1,
    state=State.COMPLETED,
    explanation="",
    reason=None,
)
ONE = Taken(Shot(operation=READ), DONE, "completed", (EXECUTED,), "", "sha")
REFUSED = Taken(Shot(operation=READ), Refused(Reason.EXPIRED), "expired", (), "", "sha")
READING = HostReading({READ: 1}, (EXECUTED,), (), (), (), {})


def played(*taken, reading=READING, operations=(("receipt-1", "completed"),), leaks=False):
    return Played(taken, reading, operations, 0, (), leaks)


def missed(what):
    return [(miss.what, miss.actual) for miss in misses_of(CASE, what, Scores())]


def test_a_case_in_which_all_of_it_holds_misses_nothing():
    assert missed(played(ONE)) == []


@promise("C23", "C24", "C25")
@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (played(ONE._replace(executed=(EXECUTED, EXECUTED))), [("executed by call 1", f"{READ}, {READ}")]),
        (played(ONE._replace(shot=Shot(operation="another"))), [("executed by call 1", READ)]),
        (played(REFUSED._replace(executed=(EXECUTED,))), [("executed by call 1", READ)]),
        (played(ONE._replace(came=evolve(DONE, replayed=True))), [("executed by call 1", READ)]),
        (
            played(ONE._replace(parameters="others")),
            [("parameters of call 1", "others"), ("parameters", "others")],
        ),
        (played(ONE._replace(unfit="/ok: missing")), [("answer of call 1", "/ok: missing")]),
        (played(ONE, operations=()), [("executed", "1 times")]),
        (played(ONE, reading=READING._replace(executions=(EXECUTED, EXECUTED))), [("executed", "2 times")]),
        (played(ONE, operations=(("receipt-1", "running"),)), [("states", "running")]),
        (played(ONE, reading=READING._replace(disagreements=("event 1 lies",))), [("host", "event 1 lies")]),
        (played(ONE, leaks=True), [("receipts", "one has it")]),
    ],
    ids=[
        "twice by one call",
        "another operation",
        "although refused",
        "although replayed",
        "other parameters",
        "an answer of no shape",
        "no receipt",
        "one receipt twice",
        "no end",
        "a host that breaks its rules",
        "a secret in a receipt",
    ],
)
def test_each_breach_of_what_always_holds_is_a_miss_of_its_own(what, expected):
    assert missed(what) == expected


def test_a_refusal_that_was_expected_of_no_call_at_all_is_missed():
    (miss,) = misses_of(
        evolve(CASE, expect=Expect(refused=Reason.EXPIRED)),
        played(operations=(), reading=READING._replace(executions=())),
        Scores(),
    )
    assert (miss.what, miss.actual) == ("refused", "no call")


@promise("H8")
@pytest.mark.parametrize(
    ("came", "executed", "true"),
    [
        (DONE, 1, 1.0),
        (DONE, 0, 0.0),
        (evolve(DONE, state=State.COMPLETED_AFTER_REVOCATION, reason=Reason.COMPLETED_AFTER_REVOCATION), 1, 1.0),
        (evolve(DONE, state=State.FAILED, reason=Reason.FAILED), 0, 1.0),
        (evolve(DONE, state=State.CANCELLED, reason=Reason.CANCELLED), 1, 0.0),
        (evolve(DONE, state=State.UNKNOWN_NEEDS_REFRESH, reason=Reason.OUTCOME_UNKNOWN), 1, 1.0),
        (evolve(DONE, replayed=True), 1, 0.0),
        (Refused(Reason.EXPIRED), 0, 1.0),
        (Refused(Reason.EXPIRED), 1, 0.0),
    ],
)
def test_what_an_answer_says_is_held_against_what_was_executed(came, executed, true):
    taken = Taken(Shot(operation=READ), came, "", (EXECUTED,) * executed)
    assert scores_of(CASE, played(taken)).state_grounding == true


@promise("H8a")
def test_attackers_and_benign_calls_are_counted_by_what_was_said_of_them():
    said = {word: Shot(operation=READ, expected=word) for word in ("completed", "expired")}
    attacked = ONE._replace(shot=said["expired"])
    refused = REFUSED._replace(shot=said["completed"])
    assert counts_of(CASE, [attacked, refused, ONE, REFUSED]) == (1, 1)
