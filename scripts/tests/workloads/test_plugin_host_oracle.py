"""The oracle's reading of the plugin host: what was done, and where the host contradicts itself."""

import pytest
from host_requests import CAPTURE, GESTURE, READ, SEED, Client
from marks import promise

from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.workloads.model import Event
from assisted_benchmark.workloads.plugin_host_face import PluginHostFace
from assisted_benchmark.workloads.plugin_host_faults import HostFault, HostFaultKind
from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost
from assisted_benchmark.workloads.plugin_host_oracle import Execution, read_host
from assisted_benchmark.workloads.plugin_host_task import artifact_id


def a_story():
    """A host that has executed, made, refused, moved, published and torn down."""
    host = InProcessHost(PluginHostFace(SEED), ManualClock())
    client = Client(host)
    for operation in (READ, CAPTURE, GESTURE):
        client.ask(client.instance(), operation)
    client.ask(client.instance(), READ, publication="another")
    host.arm(HostFault(HostFaultKind.MOVE_STATE))
    client.ask(client.instance(), GESTURE)
    host.arm(HostFault(HostFaultKind.REPUBLISH))
    client.ask(client.instance(), READ)
    host.arm(HostFault(HostFaultKind.TEAR_DOWN, instance="instance-2"))
    return host


@promise("C23")
def test_it_tells_each_execution_with_its_lineage_and_what_was_made():
    host = a_story()
    reading = host.reading()
    assert reading.executed == {(READ, "instance-1"): 2, (CAPTURE, "instance-1"): 1, (GESTURE, "instance-1"): 2}
    assert [each.receipt_id for each in reading.executions] == [f"receipt-{number}" for number in (1, 2, 3, 5, 6)]
    assert [(each.before, each.after) for each in reading.executions] == [(1, 1), (1, 1), (1, 2), (3, 4), (4, 4)]
    first, *_, last = reading.executions
    assert (first.client, first.grant, first.request_id) == ("client-1", "grant-1", "request-1")
    assert (first.publication != last.publication, first.instance) == (True, last.instance)
    (made,) = reading.made
    assert (made.operation, made.receipt_id, made.mime_type) == (CAPTURE, "receipt-2", "image/png")
    assert made.artifact_id == artifact_id("receipt-2", made.sha256)
    assert (reading.refused, reading.stopped) == (((READ, "wrong_publication"),), ())
    assert (reading.generations, reading.received[READ]) == ({"instance-1": 4}, 3)
    assert reading.disagreements == ()


def changed(kind, nth=0, tool=None, **facts):
    """The story with one event of this kind told otherwise."""

    def change(events):
        place = [at for at, event in enumerate(events) if event.kind == kind][nth]
        event = events[place]
        events[place] = event._replace(tool=event.tool if tool is None else tool, facts=event.facts | facts)

    return change


def repeated(kind, nth=0):
    def change(events):
        events.append([event for event in events if event.kind == kind][nth]._replace(seq=len(events) + 1))

    return change


def gone(kind, nth=0):
    def change(events):
        events.remove([event for event in events if event.kind == kind][nth])
        events[:] = [event._replace(seq=seq) for seq, event in enumerate(events, 1)]

    return change


LIES = {
    "a number is missing": (lambda events: events.pop(0), "says that it is number"),
    "what no host does": (lambda events: events.append(Event(len(events) + 1, "e", "sang", "", {})), "no host does"),
    "one receipt twice": (changed("executed", 1, receipt_id="receipt-1"), "executed one receipt again"),
    "on another instance": (changed("executed", 0, instance="instance-9"), "executed on what was not live"),
    "on another registration": (changed("executed", 0, registration="r"), "executed on what was not live"),
    "on another publication": (changed("executed", 0, publication="p"), "executed on what was not live"),
    "two generations at once": (changed("executed", 2, after=3), "otherwise than by one generation"),
    "a generation of before": (changed("executed", 3, before=2, after=3), "otherwise than by one generation"),
    "a move from elsewhere": (changed("moved", 0, before=7, after=8), "moved a state that was not so"),
    "a move by two": (changed("moved", 0, after=4), "moved a state that was not so"),
    "a move of nothing": (changed("moved", 0, registration="r"), "moved a state that was not so"),
    "an artifact of another receipt": (changed("made", 0, receipt_id="receipt-1"), "nothing executed makes"),
    "an artifact of nothing": (gone("executed", 1), "nothing executed makes"),
    "an artifact of other bytes": (changed("made", 0, sha256="0" * 64), "otherwise than by its bytes"),
    "an end of what is gone": (repeated("left"), "ended what was not live"),
    "a publication again": (repeated("published", 2), "published what was published"),
    "more refusals than requests": (changed("refused", 0, tool="dev.pulp.logs/read@1"), "than arrived"),
}


@pytest.mark.parametrize(("change", "told"), LIES.values(), ids=LIES)
def test_a_host_that_contradicts_itself_or_its_rules_is_found_out(change, told):
    model = a_story().face.model
    events = list(model.events)
    assert read_host(model.received, events).disagreements == ()
    change(events)
    assert any(told in each for each in read_host(model.received, events).disagreements)


def test_of_a_host_that_made_something_before_anything_was_executed_nothing_counts():
    facts = {"instance": "i", "receipt_id": "r", "artifact_id": artifact_id("r", "s"), "mime_type": "m", "sha256": "s"}
    event = Event(1, "e1", "made", CAPTURE, facts | {"bytes": 1})
    assert read_host({}, [event]).disagreements == ("event 1 made what nothing executed makes",)


def test_an_empty_story_is_one():
    reading = read_host({}, [])
    assert (reading.executed, reading.generations, reading.disagreements) == ({}, {}, ())
    assert Execution._fields[-2:] == ("before", "after")
