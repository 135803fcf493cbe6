"""Over a socket and in process one step under one fault comes to one outcome, and the host did the same."""

import itertools
import threading

import pytest
from host_process import HostProcess
from host_requests import (
    CAPTURE,
    GESTURE,
    INPUTS,
    READ,
    RENDER,
    SEED,
    SESSION,
    Client,
    result_of,
    timeless,
    within,
)
from marks import promise

from assisted_benchmark.capability.negotiation import Offer, Outcome, negotiate
from assisted_benchmark.capability.ports import Cancellation, Ended, Enrolled, Unavailable
from assisted_benchmark.capability.socket_host_messages import Broken
from assisted_benchmark.kernel.clock import ManualClock, SystemClock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import NotSent, Uncertain
from assisted_benchmark.workloads.plugin_host_face import PluginHostFace
from assisted_benchmark.workloads.plugin_host_faults import AT_ONCE, HostFault, HostFaultKind, Step
from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost
from assisted_benchmark.workloads.plugin_host_instance import OF_A_JOB
from assisted_benchmark.workloads.process import DEATH

K = HostFaultKind
LATE_SECONDS = 0.6  # what is given to an answer that never comes; to arrive, a step needs a small part of it
OURS = Offer(lowest=1, highest=1, mandatory=("receipts",), optional=("artifacts", "cancellation", "progress"))

# What a request comes to under each fault: the outcome, how often it was executed. The operation is one that tells.
REQUESTS = {
    K.HANG_BEFORE: (READ, Broken.LATE, 0),
    K.HANG_AFTER: (READ, Broken.LATE, 1),
    K.DROP_BEFORE: (GESTURE, Broken.CLOSED, 0),
    K.DROP_AFTER: (GESTURE, Broken.CLOSED, 1),
    K.DIE_BEFORE: (GESTURE, Broken.CLOSED, 0),
    K.DIE_AFTER: (GESTURE, Broken.CLOSED, 1),
    K.ANSWER_TWICE: (GESTURE, "completed", 1),
    K.FOREIGN_ID: (GESTURE, Broken.LATE, 1),
    K.GARBAGE: (GESTURE, "completed", 1),
    K.BAD_ANSWER: (GESTURE, Broken.NO_MESSAGE, 1),
    K.HALF_LINE: (GESTURE, Broken.CLOSED, 1),
    K.HUGE_LINE: (GESTURE, Broken.LATE, 1),
    K.ERROR: (GESTURE, Broken.ERROR, 0),
    K.NONSENSE: (GESTURE, Broken.NO_ANSWER, 1),
    K.REPUBLISH_BEFORE: (GESTURE, "failed", 0),
    K.REPUBLISH_AFTER: (GESTURE, "completed", 1),
    K.TEAR_DOWN_BEFORE: (GESTURE, "failed", 0),
    K.TEAR_DOWN_AFTER: (GESTURE, "completed", 1),
    K.MOVE_STATE_BEFORE: (GESTURE, "failed", 0),
    K.END_SESSIONS_BEFORE: (GESTURE, "failed", 0),
    K.FAIL_BEFORE: (GESTURE, "failed", 0),
    K.FAIL_AFTER: (GESTURE, "failed", 1),
    K.CANCELLED_AFTER: (GESTURE, "cancelled", 1),
    K.UNKNOWN_WORD: (GESTURE, Broken.NO_ANSWER, 1),
    K.FALSE_SCHEMA: (GESTURE, "completed", 1),
    K.NO_JSON: (GESTURE, "completed", 1),
    K.WRONG_GENERATION: (GESTURE, "completed", 1),
    K.OTHER_RECEIPT: (GESTURE, "completed", 1),
    K.CROSSED: (READ, Broken.OTHER, 1),
    K.LEAK: (READ, "completed", 1),
    K.OTHER_BYTES: (CAPTURE, Broken.ARTIFACTS, 1),
    K.OTHER_ARTIFACT: (CAPTURE, "completed", 1),
    K.NO_ARTIFACT: (CAPTURE, "completed", 1),
    K.HUGE_ARTIFACT: (CAPTURE, Broken.ARTIFACTS, 1),
    K.MANY_ARTIFACTS: (CAPTURE, Broken.ARTIFACTS, 1),
    K.PROGRESS: (GESTURE, "completed", 1),
    K.PROGRESS_BACK: (RENDER, "completed", 1),
    K.PROGRESS_TOTAL: (RENDER, "completed", 1),
    K.PROGRESS_FLOOD: (READ, "completed", 1),
    K.PROGRESS_STRAY: (READ, "completed", 1),
    K.PROGRESS_LATE: (READ, "completed", 1),
}
LAST = {K.DIE_BEFORE, K.DIE_AFTER, K.TEAR_DOWN_BEFORE, K.TEAR_DOWN_AFTER}
ANYWHERE = [kind for kind in K if kind not in AT_ONCE and not HostFault(kind, Step.INVENTORY).misplaced]
OFFERS = {
    K.OFFER_NEWER: Outcome.NO_COMMON_VERSION,
    K.OFFER_OLDER: Outcome.ACCEPTED,
    K.OFFER_INVALID: Outcome.INVALID_OFFER,
    K.OFFER_MANDATES: Outcome.UNSUPPORTED_MANDATORY_FEATURE,
    K.OFFER_LACKS: Outcome.UNSUPPORTED_MANDATORY_FEATURE,
}


class Pair:
    """One host twice, in a process and in this one; each with a client. `both` does one thing to both."""

    def __init__(self, process, face=None, start=1):
        self.process = process
        self.modelled = InProcessHost(face or PluginHostFace(SEED), ManualClock())
        self.real = process.host()
        self.clients = [
            Client(host, clock=clock, numbers=iter(range(start, start + 100)))
            for host, clock in ((self.modelled, None), (self.real, SystemClock()))
        ]

    def arm(self, *faults):
        self.modelled.arm(*faults)
        for fault in faults:
            self.process.control.arm(fault)

    def both(self, act):
        """What both came to, which is the same."""
        modelled, real = map(act, self.clients)
        assert real == modelled
        return real

    def request(self, operation, value=None, *, seconds=10, now=False):
        """A request to the first instance, as its inventory has it, perhaps `now` alone; outcome and progress."""

        def act(client):
            client.events.clear()
            instance = client.instance()
            expected = instance.state_generation if now else None
            reply = client.ask(instance, operation, value, seconds=seconds, expected_state_generation=expected)
            return timeless(reply), list(client.events)

        return self.both(act)

    def reading(self):
        """What both say that they did, which is the same. A cancellation has no answer: it may be on its way."""
        reading = self.process.heard(lambda each: each.received == self.modelled.reading().received)
        assert reading == self.modelled.reading()
        assert reading.disagreements == ()
        return reading

    def places(self):
        return self.both(lambda client: [client.host.registered(f"instance-{n}") for n in (1, 2, 3)])


@pytest.fixture
def pair():
    with HostProcess() as process:
        yield Pair(process)
        assert process.stderr_bytes() == b""


@pytest.fixture(scope="module")
def lasting():
    with HostProcess() as process:
        yield process, PluginHostFace(SEED), itertools.count(1, 100)
        assert process.stderr_bytes() == b""


@pytest.fixture
def often(kind, lasting, request):
    """For faults that end neither host nor instance, new clients of one host."""
    if kind in LAST:
        yield request.getfixturevalue("pair")
    else:
        process, face, starts = lasting
        pair = Pair(process, face, next(starts))
        yield pair
        pair.real.close()


@promise("C25")
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_under_a_fault_comes_to_one_outcome_over_the_socket_and_in_process(kind, often):
    pair = often
    before = pair.reading()
    operation, expected, count = REQUESTS[kind]
    pair.arm(HostFault(kind, operation=operation, nth=1))
    late = expected is Broken.LATE
    outcome, events = pair.request(operation, seconds=LATE_SECONDS if late else 10, now=True)
    if isinstance(expected, Broken):
        unknown = (Broken.LATE, Broken.CLOSED, Broken.ERROR)
        reason = Reason.OUTCOME_UNKNOWN if expected in unknown else Reason.RESULT_INVALID
        assert outcome == (Uncertain, reason, expected.value)
    else:
        assert outcome[:2] == (Ended, expected)
    if kind in (K.DIE_BEFORE, K.DIE_AFTER):
        assert pair.process.end() == DEATH
    reading = pair.reading()
    assert len(reading.executions) - len(before.executions) == count
    assert reading.received[operation] - before.received.get(operation, 0) == 1
    told = {K.PROGRESS_FLOOD: 1024, K.PROGRESS: 4, K.PROGRESS_BACK: 4, K.PROGRESS_TOTAL: 4}
    assert len(events) == told.get(kind, 0)
    pair.places()


def test_every_kind_of_fault_is_played():
    assert set(REQUESTS) | set(OFFERS) | AT_ONCE == set(K)


@promise("C25")
@pytest.mark.parametrize("step", [Step.ENROL, Step.INVENTORY, Step.NEGOTIATE])
@pytest.mark.parametrize("kind", ANYWHERE)
def test_a_step_under_a_fault_comes_to_one_outcome_over_the_socket_and_in_process(step, kind, often):
    pair = often
    before = pair.both(lambda client: client.instance())
    seconds = LATE_SECONDS if REQUESTS[kind][1] is Broken.LATE else 10
    pair.both(lambda client: take(client, step, before, 10))
    asked = pair.reading()
    pair.arm(HostFault(kind, step, nth=1))
    found = pair.both(lambda client: take(client, step, before, seconds))
    if kind in (K.DIE_BEFORE, K.DIE_AFTER):
        assert pair.process.end() == DEATH
    if isinstance(REQUESTS[kind][1], Broken):
        ended = REQUESTS[kind][1] is Broken.CLOSED
        assert (type(found), found.ended) == (Unavailable, ended)
    elif kind in (K.ANSWER_TWICE, K.GARBAGE):
        assert not isinstance(found, Unavailable)
    reading = pair.reading()
    assert reading.received[step] - asked.received[step] == 1
    pair.places()
    # The session is there still, or known to be over; nothing was asked a second time.
    after = pair.both(lambda client: client.instances(seconds))
    assert pair.reading().received["inventory"] - reading.received["inventory"] == (after != NO_CONNECTION)


NO_CONNECTION = Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands", ended=True)


def take(client, step, instance, seconds):
    deadline = within(seconds, client.clock)
    if step is Step.ENROL:
        return client.host.connect(SESSION, deadline=deadline)
    if step is Step.INVENTORY:
        return client.host.inventory(client.enrolled, deadline=deadline)
    return client.host.negotiate(client.enrolled, instance, OURS, deadline=deadline)


@promise("C13")
@pytest.mark.parametrize("kind", OFFERS)
def test_a_negotiation_can_end_in_every_way(kind, pair):
    instance = pair.both(lambda client: client.instance())
    good = pair.both(lambda client: take(client, Step.NEGOTIATE, instance, 10))
    assert negotiate(OURS, good, 1).outcome is Outcome.ACCEPTED
    pair.arm(HostFault(kind))
    offer = pair.both(lambda client: take(client, Step.NEGOTIATE, instance, 10))
    assert negotiate(OURS, offer, 1).outcome is OFFERS[kind]
    if kind is K.OFFER_OLDER:
        newer = Offer(lowest=1, highest=2, optional=("receipts",))
        assert negotiate(newer, offer, 2).outcome is Outcome.DOWNGRADE_REJECTED
        assert negotiate(newer, good, 2).outcome is Outcome.ACCEPTED


@promise("C11")
@pytest.mark.parametrize("kind", sorted(AT_ONCE))
def test_what_changes_at_once_is_known_without_asking(kind, pair):
    places = pair.places()
    wants = HostFault(kind).misplaced != ""
    seen = len(pair.modelled.face.model.events)
    pair.arm(HostFault(kind, operation=READ if wants else None))
    later = pair.modelled.face.model.events[seen:]
    for event in later:
        pair.process.told(event.kind, sum(each.kind == event.kind for each in pair.modelled.face.model.events))
    changed = pair.places()
    assert (changed != places) is (kind in (K.REPUBLISH, K.TEAR_DOWN, K.TWIN))
    assert changed[1:] == [places[1], None]
    found = pair.both(lambda client: client.instances())
    if kind is K.END_SESSIONS:
        assert found == Unavailable(Reason.SESSION_ENDED, Broken.ERROR.value, ended=True)
    elif kind in (K.TWIN, K.TEAR_DOWN):
        assert [each.id for each in found] == {
            K.TWIN: ["instance-1", "instance-2", "instance-1"],
            K.TEAR_DOWN: ["instance-2"],
        }[kind]
        assert changed[0] is None
    else:
        assert (found[0].registered, found[0].state_generation) == (changed[0], 1 + (kind is K.MOVE_STATE))
    pair.reading()


@pytest.mark.parametrize("kind", [K.LACKS, K.UNBUILT, K.UNAVAILABLE, K.INACTIVE])
def test_what_an_instance_cannot_do_it_says_and_does_not(kind, pair):
    pair.arm(HostFault(kind, operation=READ, instance="instance-2"))
    one, two = pair.both(lambda client: client.instances())
    told = two.capability(READ)
    if kind is K.LACKS:
        assert told is None
    else:
        assert [told.built, told.available, told.activated].index(False) == [
            K.UNBUILT,
            K.UNAVAILABLE,
            K.INACTIVE,
        ].index(kind)
    assert (one.capability(READ)[1:], {each.operation for each in two.capabilities} | {READ}) == (
        (True,) * 3,
        set(OF_A_JOB),
    )
    replies = pair.both(lambda client: [timeless(client.ask(each, READ)) for each in (one, two)])
    assert [(each[1], each[3]) for each in replies] == [("completed", ""), ("failed", Reason.CAPABILITY_UNAVAILABLE)]


@promise("C26", "W5")
@pytest.mark.parametrize(("kind", "word", "count"), [(K.HANG_BEFORE, "cancelled", 0), (K.HANG_AFTER, "completed", 1)])
def test_a_request_that_hangs_is_cancelled_unless_it_has_acted(kind, word, count, pair):
    pair.arm(HostFault(kind, operation=GESTURE))

    def asked(client):
        instance = client.instance()
        named = Cancellation("request-1", instance.id, instance.publication, "client-1", "cancelled")
        wrong = [named._replace(**{key: "another"}) for key in ("request_id", "instance", "publication", "client")]

        def cancel(*_):
            other = client.host.connect(SESSION._replace(client="client-2"), deadline=within(10, client.clock))
            for each in (*wrong, named, named):
                given = Enrolled("9.s", "", "") if each is named and not sent else client.enrolled
                sent.append(client.host.cancel(given, each, deadline=within(10, client.clock)))
            assert isinstance(other, Enrolled)

        sent = []
        if client.host is pair.modelled:
            client.host.on_hang = cancel
            return timeless(client.ask(instance, GESTURE)), sent
        thread = threading.Thread(target=lambda: (pair.process.heard(arrived), cancel()))
        thread.start()
        reply = timeless(client.ask(instance, GESTURE))
        thread.join()
        return reply, sent

    def arrived(reading):
        return GESTURE in reading.received

    outcome, sent = pair.both(asked)
    assert (outcome[:2], sent) == ((Ended, word), [None] * 6)
    reading = pair.reading()
    assert (len(reading.executions), len(reading.stopped), reading.received["cancel"]) == (count, 1 - count, 6)


def test_without_faults_a_whole_session_is_the_same_over_the_socket_and_in_process(pair):
    for operation in pair.modelled.face.model.live[0].abilities:
        for value in INPUTS[operation.operation]:
            outcome, _ = pair.request(operation.operation, value)
            assert outcome[:2] == (Ended, "completed")
    reading = pair.reading()
    assert sum(reading.executed.values()) == len(reading.executions) == len(pair.modelled.face.model._receipts)
    assert pair.real.odd == ()


@promise("C10")
def test_a_gate_that_says_no_a_time_that_is_up_and_another_claim_reach_no_host(pair):
    def asked(client):
        instance = client.instance()
        return [
            client.ask(instance, gate=lambda: False),
            client.ask(instance, seconds=0),
            client.ask(instance, request_hash="sha256:0"),
        ]

    replies = pair.both(asked)
    assert replies == [
        NotSent(Reason.EXPIRED, "the gate closed before the request was written"),
        NotSent(Reason.DEADLINE_EXCEEDED, "no time was left to write it"),
        NotSent(Reason.BINDING_MISMATCH, "the envelope is not of the claimed request"),
    ]
    assert READ not in pair.reading().received
    assert result_of(pair.clients[1].ask(pair.clients[1].instance()))


def test_what_comes_too_late_for_a_connection_that_is_gone_is_told_the_same(pair):
    pair.arm(HostFault(K.DROP_BEFORE, operation=GESTURE))
    named = Cancellation("request-9", "instance-1", "publication-1", "client-1", "cancelled")

    def asked(client):
        instance = client.instance()
        told = [client.instances(0), client.host.cancel(client.enrolled, named, deadline=within(0, client.clock))]
        told += [timeless(client.ask(instance, GESTURE)), client.ask(instance), client.instances()]
        told.append(client.host.negotiate(client.enrolled, instance, OURS, deadline=within(10, client.clock)))
        told.append(client.host.cancel(client.enrolled, named, deadline=within(10, client.clock)))
        told.append(client.host.registered("instance-1"))
        return told

    no_time = Unavailable(Reason.DEADLINE_EXCEEDED, "no time was left to write it")
    gone = (Uncertain, Reason.OUTCOME_UNKNOWN, Broken.CLOSED.value)
    unwritten = NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
    told = [no_time, no_time, gone, unwritten, NO_CONNECTION, NO_CONNECTION, NO_CONNECTION, None]
    assert pair.both(asked) == told


def test_a_host_that_has_died_takes_no_connection_any_more(pair):
    pair.arm(HostFault(K.DIE_BEFORE))

    def asked(client):
        died = timeless(client.ask(client.instance()))
        return died, client.host.connect(SESSION, deadline=within(10, client.clock))

    gone = (Uncertain, Reason.OUTCOME_UNKNOWN, Broken.CLOSED.value)
    assert pair.both(asked) == (gone, Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands"))


@promise("C26")
def test_what_strikes_in_the_gate_comes_to_the_same(pair):
    def asked(client):
        instance = client.instance()
        named = Cancellation("request-1", instance.id, instance.publication, "client-1", "cancelled")

        def cancel():
            return client.host.cancel(client.enrolled, named, deadline=within(10, client.clock)) is None

        def drop():
            lost = client.host.connect(SESSION._replace(client="client-2"), deadline=within(10, client.clock))
            return isinstance(lost, Unavailable)

        return client.ask(instance, gate=cancel), client.ask(instance, gate=drop)

    pair.arm(HostFault(K.DROP_BEFORE, Step.ENROL))
    assert pair.both(asked) == (
        NotSent(Reason.CANCELLED, "it was cancelled before it was written"),
        NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands"),
    )
    assert READ not in pair.reading().received


def test_a_host_in_process_can_be_ended_as_a_process_is_killed(pair):
    instance = pair.both(lambda client: client.instance())
    pair.modelled.die()
    pair.process.process.kill()
    pair.process.process.wait()

    def asked(client):
        deadline = within(10, client.clock)
        return (
            client.host.registered("instance-1"),
            client.ask(instance),
            client.host.connect(SESSION, deadline=deadline),
        )

    unwritten = NotSent(Reason.SERVER_UNAVAILABLE, "no connection stands")
    assert pair.both(asked) == (None, unwritten, Unavailable(Reason.SERVER_UNAVAILABLE, "no connection stands"))
