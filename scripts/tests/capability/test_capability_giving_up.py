"""A call that nobody waits for any more: whenever that is said, and what can no longer be stopped."""

import json

import pytest
from capability_bench import ARTIFACT_READ, MS, OTHER, PULP, SESSION, STATE_READ, CapabilityBench
from marks import promise

from assisted_benchmark.capability.carrying import Moment
from assisted_benchmark.capability.flights import Caller
from assisted_benchmark.capability.ports import Answer, Cancellation, Unavailable, Verdict, Word
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason


def ask(bench, caller, operation=STATE_READ, **more):
    arguments = json.dumps({"instance_id": "instance-1", "input": {}, "request_id": "r-1", **more}).encode()
    return bench.broker.call(SESSION, PULP.tool_name(operation), arguments, caller=caller)


@promise("C26", "W5")
def test_a_call_that_is_given_up_before_anything_happened_asks_nobody_and_sends_nothing():
    bench, caller = CapabilityBench(policies=()), Caller()
    bench.broker.give_up(caller)
    assert ask(bench, caller).reason is Reason.CANCELLED
    assert (bench.person.prompts, bench.executed, bench.groups()) == ([], {}, [])


@promise("C26", "W5")
def test_a_call_that_is_given_up_while_a_person_decides_is_not_admitted():
    bench, caller = CapabilityBench(policies=()), Caller()

    def decide(prompt):
        bench.broker.give_up(caller)
        return Answer(prompt.id, Verdict.APPROVED)

    bench.person.decide = decide
    assert ask(bench, caller).reason is Reason.CANCELLED
    assert (len(bench.person.prompts), bench.executed, bench.groups()) == (1, {}, [])


@promise("C26", "W5")
@pytest.mark.parametrize("moment", [Moment.ADMIT, Moment.ADMITTED, Moment.CLAIMED])
def test_a_call_that_is_given_up_before_its_request_is_written_keeps_it_in(moment):
    bench, caller = CapabilityBench(), Caller()
    bench.at(moment, lambda: bench.broker.give_up(caller))
    answer = ask(bench, caller)
    assert (answer.state, answer.reason) == (State.CANCELLED, Reason.CANCELLED)
    assert (bench.executed, bench.world.cancelled, bench.groups()) == ({}, [], ["cancelled"])


@promise("C26", "W5")
@pytest.mark.parametrize(
    ("word", "state"), [(Word.CANCELLED, State.CANCELLED), (Word.COMPLETED, State.COMPLETED)], ids=["stops", "goes on"]
)
def test_a_host_that_is_at_it_is_told_once_and_its_end_is_the_operations(word, state):
    bench, caller = CapabilityBench(), Caller()

    def execute(claimed, envelope):
        bench.broker.give_up(caller)
        bench.broker.give_up(caller)
        return bench.world.ended(b"", word) if word is Word.CANCELLED else bench.execute(claimed, envelope)

    bench.world.execute = execute
    assert ask(bench, caller).state is state
    assert bench.world.cancelled == [Cancellation("r-1", "instance-1", "publication-1", "client-1", "cancelled")]


@promise("C26")
def test_a_host_that_cannot_be_told_is_on_record():
    bench, caller = CapabilityBench(), Caller()
    bench.world.fails["cancel"] = Unavailable(Reason.SERVER_UNAVAILABLE, "no answer")
    bench.world.execute = lambda *_: (bench.broker.give_up(caller), bench.world.ended(b"", Word.CANCELLED))[1]
    assert ask(bench, caller).state is State.CANCELLED
    (told,) = [each for each in bench.receipts() if each["reason"] == "cancelled" and each["kind"] == "event"]
    assert told["detail"] == "the client gave a call up, and the host could not be told: no answer"


@promise("C26")
def test_giving_up_what_has_ended_changes_nothing():
    bench, caller = CapabilityBench(), Caller()
    assert ask(bench, caller).state is State.COMPLETED
    before = bench.receipts()
    bench.broker.give_up(caller)
    assert (bench.receipts(), bench.world.cancelled) == (before, [])


def test_what_cannot_be_written_down_is_stopped_all_the_same():
    bench, caller = CapabilityBench(), Caller()
    came = []

    def execute(claimed, envelope):
        bench.ledger.broken.add("record")
        try:
            bench.broker.give_up(caller)
        except LedgerError as error:
            came.append(error.reason)
        bench.ledger.broken.clear()
        return bench.world.ended(b"", Word.CANCELLED)

    bench.world.execute = execute
    assert ask(bench, caller).state is State.CANCELLED
    assert (came, len(bench.world.cancelled)) == ([Reason.STORE_UNAVAILABLE], 1)


@promise("C10")
@pytest.mark.parametrize("operation", [STATE_READ, ARTIFACT_READ], ids=["operation", "artifact"])
def test_time_counts_from_when_the_caller_began_to_wait(operation):
    bench = CapabilityBench()
    since = bench.clock.now().mono_ns
    bench.clock.advance(30 * MS)
    more = {"input": {"artifact_id": "a", "offset": 0, "max_bytes": 1}} if operation is ARTIFACT_READ else {}
    assert ask(bench, Caller(since), operation, timeout_ms=30, **more).reason is Reason.DEADLINE_EXCEEDED
    assert bench.world.steps == []
    ask(bench, Caller(since), operation, timeout_ms=100, **more)
    assert bench.world.steps[0] == ("connect", 70 * MS)


def test_another_clients_call_of_the_same_name_is_not_given_up():
    bench, caller = CapabilityBench(), Caller()
    bench.world.execute = lambda claimed, envelope: (
        bench.broker.give_up(caller) if envelope.client == OTHER.client else None,
        bench.execute(claimed, envelope),
    )[1]
    assert ask(bench, caller).state is State.COMPLETED
    assert bench.ask(STATE_READ, OTHER, request_id="r-1").state is State.COMPLETED
    assert bench.world.cancelled == []
