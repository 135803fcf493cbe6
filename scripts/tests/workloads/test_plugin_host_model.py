"""The plugin host as a model: every operation of the reference registry, its own rules, its own account."""

import json
import zlib

import pytest
from attrs import evolve
from capability_bench import PROJECTION, PULP
from host_requests import (
    CAPTURE,
    GESTURE,
    INPUTS,
    OTHER,
    READ,
    RENDER,
    SEED,
    SUBSCRIBE,
    TELEMETRY,
    UNFIT,
    Client,
    a_request,
    result_of,
    unheard,
    within,
    yes,
)
from marks import promise

from assisted_benchmark.capability import artifacts
from assisted_benchmark.capability.registry import ResultKind
from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.plugin_host import OPERATIONS, PluginHost
from assisted_benchmark.workloads.plugin_host_face import PluginHostFace
from assisted_benchmark.workloads.plugin_host_faults import HostFault, HostFaultKind
from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost
from assisted_benchmark.workloads.plugin_host_instance import ADVERTISED, OF_A_JOB, PARAMETERS, Ability, canary_of
from assisted_benchmark.workloads.plugin_host_task import artifact_id

UNAUTHORISED = ("dev.pulp.runtime/reload@1", "dev.pulp.ui/input@1")


def a_host(*faults, seed=SEED):
    return InProcessHost(PluginHostFace(seed, faults), ManualClock())


def able(host, *operations):
    """Make the first instance able to do these as well."""
    for operation in operations:
        host.face.model.change_ability("instance-1", operation, Ability(operation))


def test_it_has_every_operation_of_the_reference_registry_that_is_no_brokers_own():
    brokers = {each.id for each in PULP.operations if each.result is ResultKind.CHUNK}
    assert set(OPERATIONS) == set(INPUTS) == {each.id for each in PULP.operations} - brokers
    assert set(ADVERTISED) == {each.id for each in PULP.operations if each.grantable}
    assert set(OF_A_JOB) < set(ADVERTISED)


@pytest.mark.parametrize("operation", sorted(INPUTS))
def test_each_result_fits_the_registrys_schema_and_each_artifact_is_the_one_that_it_names(operation):
    host = a_host()
    able(host, *UNAUTHORISED)
    client = Client(host)
    registered = PULP.operation(operation)
    for value in INPUTS[operation]:
        instance = client.instance()
        reply = client.ask(instance, operation, value)
        result = result_of(reply)
        assert PROJECTION.result_faults(registered, result) is None
        receipt = host.face.model.events[-1].facts["receipt_id"]
        assert result.get("receipt_id", receipt) == receipt
        names = [(result["mime_type"], result["byte_count"])] if registered.result is ResultKind.ARTIFACT else []
        assert [(each.mime_type, len(each.data)) for each in reply.artifacts] == names
        moved = client.instance().state_generation - instance.state_generation
        assert moved == (registered.result is ResultKind.RECEIPT)
    reading = host.reading()
    assert (reading.executed, reading.disagreements) == ({(operation, "instance-1"): len(INPUTS[operation])}, ())
    assert len(reading.made) == len(INPUTS[operation]) * (registered.result is ResultKind.ARTIFACT)


@pytest.mark.parametrize(("operation", "value"), [(name, each) for name in UNFIT for each in UNFIT[name]])
def test_an_input_that_no_broker_lets_through_is_refused_and_changes_nothing(operation, value):
    host = a_host()
    able(host, *UNAUTHORISED)
    client = Client(host)
    before = client.instance()
    reply = client.ask(before, operation, value)
    assert (reply.word, reply.code) == ("failed", Reason.ARGUMENTS_INVALID)
    assert client.instance() == before
    assert (host.reading().executions, host.reading().disagreements) == ((), ())


@pytest.mark.parametrize("text", [b"[]", b"{", b'{"a": 1, "a": 1}', b"{}" + b" " * (1 << 19)])
def test_parameters_that_are_no_object_are_refused(text):
    host = a_host()
    client = Client(host)
    claimed, envelope = a_request(client.instance(), READ, {})
    claimed = claimed._replace(permit=claimed.permit._replace(arguments=text))
    reply = host.request(claimed, envelope, gate=yes, deadline=within(), progress=unheard)
    assert (reply.word, reply.code) == ("failed", Reason.ARGUMENTS_INVALID)


def test_a_gesture_moves_one_parameter_and_a_read_shows_it_with_the_generation():
    client = Client(a_host())
    instance = client.instance()
    moved = result_of(client.ask(instance, GESTURE))
    assert moved == {"receipt_id": "receipt-1", "applied": True, "state_generation": 2}
    state = result_of(client.ask(instance, READ, {"parameter_ids": [7, 1], "include_catalog": False}))
    assert state["state_generation"] == 2
    shown = [(each["id"], each["normalized"], each["value"]) for each in state["parameters"]]
    assert shown == [(7, 0.25, 25), (1, 0.75, -6)]


@promise("C31")
def test_the_host_compares_the_generation_when_it_applies_the_change():
    host = a_host()
    client = Client(host)
    instance = client.instance()
    assert result_of(client.ask(instance, GESTURE, expected_state_generation=1))["state_generation"] == 2
    late = client.ask(instance, GESTURE, expected_state_generation=1)
    assert (late.word, late.code) == ("failed", Reason.STATE_CONFLICT)
    host.arm(HostFault(HostFaultKind.MOVE_STATE))
    assert (client.instance().state_generation, host.reading().generations["instance-1"]) == (3, 3)
    assert len(host.reading().executions) == 1


def test_what_is_sensitive_is_shown_only_where_it_was_asked_for():
    client = Client(a_host())
    instance = client.instance()
    told = client.ask(instance, READ).result
    assert (canary_of(SEED).encode() in told, json.loads(told)["redacted_count"]) == (False, 1)
    asked = client.ask(instance, READ, {"include_sensitive": True}).result
    assert (canary_of(SEED).encode() in asked, json.loads(asked)["redacted_count"]) == (True, 0)
    some = json.loads(client.ask(instance, READ, {"parameter_ids": [1]}).result)
    assert (some["redacted_count"], len(some["parameters"]), len(PARAMETERS)) == (0, 1, 8)


def test_a_capture_is_a_real_picture_and_a_render_a_real_sound():
    client = Client(a_host())
    instance = client.instance()
    (picture,) = client.ask(instance, CAPTURE).artifacts
    assert picture.data.startswith(b"\x89PNG\r\n\x1a\n")
    start = picture.data.index(b"IDAT") + 4
    rows = zlib.decompressobj().decompress(picture.data[start:])
    assert (picture.data[16:24], len(rows)) == (b"\0\0\0\x10\0\0\0\x08", 8 * (1 + 3 * 16))
    (sound,) = client.ask(instance, RENDER).artifacts
    assert (sound.data[:4], sound.data[8:16], len(sound.data)) == (b"RIFF", b"WAVEfmt ", 44 + 3 * 4)
    assert int.from_bytes(sound.data[4:8], "little") == len(sound.data) - 8


def test_a_pictures_colour_follows_the_state():
    client = Client(a_host())
    instance = client.instance()
    first, same = (client.ask(instance, CAPTURE).artifacts[0].data for _ in range(2))
    client.ask(instance, GESTURE)
    assert (same == first, client.ask(instance, CAPTURE).artifacts[0].data == first) == (True, False)


def test_logs_are_read_on_from_their_last_sequence():
    client = Client(a_host())
    instance = client.instance()
    seen, after = [], 0
    for _ in range(3):
        reply = client.ask(instance, "dev.pulp.logs/read@1", {"after_sequence": after, "limit": 2})
        seen += [each["sequence"] for each in json.loads(reply.artifacts[0].data)]
        after = result_of(reply)["next_sequence"]
    assert (seen, after) == ([1, 2, 3, 4, 5], 5)


def test_what_is_not_there_is_not_found():
    client = Client(a_host())
    instance = client.instance()
    asked = [
        ("dev.pulp.ui/observe@1", {"selector": "#nowhere"}),
        (CAPTURE, {"target": "node", "node_id": "nowhere"}),
        (GESTURE, {"parameter_id": 99, "normalized_value": 0}),
        (TELEMETRY, {"action": "poll", "stream_id": "nobodys"}),
        (TELEMETRY, {"action": "unsubscribe", "stream_id": "nobodys"}),
        ("dev.pulp.trace/session-control@1", {"action": "stop"}),
        ("dev.pulp.session/control@1", {"action": "renew"}),
        ("dev.pulp.session/control@1", {"action": "release"}),
    ]
    assert {client.ask(instance, *each).code for each in asked} == {Reason.NOT_FOUND}


def test_the_lease_is_one_clients_at_a_time():
    host = a_host()
    one, other = Client(host), Client(host, OTHER)
    other.numbers = iter(range(100, 200))
    instance = one.instance()
    control = "dev.pulp.session/control@1"
    leased = result_of(one.ask(instance, control, {"action": "acquire"}))
    assert other.ask(instance, control, {"action": "acquire"}).code == Reason.RESOURCE_EXHAUSTED
    assert other.ask(instance, control, {"action": "release"}).code == Reason.NOT_FOUND
    released = result_of(one.ask(instance, control, {"action": "release"}))
    assert (released["lease_id"], released["expires_at_ms"] < leased["expires_at_ms"]) == (leased["lease_id"], True)
    assert result_of(other.ask(instance, control, {"action": "acquire"}))["lease_id"] != leased["lease_id"]


def test_inputs_come_in_their_order():
    client = Client(a_host())
    instance = client.instance()
    note = INPUTS["dev.pulp.test/input@1"][0]
    assert result_of(client.ask(instance, "dev.pulp.test/input@1", note | {"sequence": 4})) == {
        "receipt_id": "receipt-1",
        "accepted_sequence": 4,
    }
    assert client.ask(instance, "dev.pulp.test/input@1", note | {"sequence": 4}).code == Reason.OUT_OF_ORDER


@promise("C30")
def test_a_stream_of_a_live_host_drops_the_oldest_counts_it_and_is_its_owners_alone():
    host = a_host()
    one, other = Client(host), Client(host, OTHER)
    other.numbers = iter(range(100, 200))
    instance = one.instance()
    stream = result_of(one.ask(instance, TELEMETRY, SUBSCRIBE))["stream_id"]
    for _ in range(3):
        one.ask(instance)
    poll = {"action": "poll", "stream_id": stream}
    assert other.ask(instance, TELEMETRY, poll).code == Reason.NOT_FOUND
    assert one.ask(instance, TELEMETRY, poll, grant="grant-2").code == Reason.NOT_FOUND
    told = result_of(one.ask(instance, TELEMETRY, poll))
    # Two channels, each shown once at the subscription and at each read after it; room for two samples.
    assert (told["dropped"], [(each["channel"], each["redacted"]) for each in told["samples"]]) == (
        6,
        [("level", False), ("host.account", True)],
    )
    assert "values" not in told["samples"][1]
    assert PROJECTION.result_faults(PULP.operation(TELEMETRY), told) is None
    host.arm(HostFault(HostFaultKind.TEAR_DOWN))
    assert one.ask(instance, TELEMETRY, poll).code == Reason.INSTANCE_NOT_FOUND


@promise("C32")
def test_gpu_health_keeps_its_nulls_and_says_that_events_were_lost():
    client = Client(a_host())
    told = result_of(client.ask(client.instance(), "dev.pulp.gpu/health.read@1"))
    assert told["startup"]["correlation"] == {"gpu_evidence_id": None, "trace_evidence_id": None}
    assert (told["startup"]["status"], told["startup"]["capture"]["dropped_event_count"]) == ("incomplete", 3)


REFUSED = {
    "another client": ({"client_of": OTHER}, Reason.SESSION_ENDED),
    "another instance": ({"id": "instance-9"}, Reason.INSTANCE_NOT_FOUND),
    "another registration": ({"registration": "r"}, Reason.WRONG_REGISTRATION),
    "another publication": ({"publication": "p"}, Reason.WRONG_PUBLICATION),
    "another version": ({"version": 2}, Reason.CAPABILITY_UNAVAILABLE),
    "a job without a window": ({"of": "instance-2", "operation": CAPTURE}, Reason.CAPABILITY_UNAVAILABLE),
    "what is nowhere": ({"operation": "dev.pulp.artifact/read@1"}, Reason.CAPABILITY_UNAVAILABLE),
    "another generation": ({"expected_state_generation": 4}, Reason.STATE_CONFLICT),
}


@promise("C11")
@pytest.mark.parametrize(("change", "reason"), REFUSED.values(), ids=REFUSED)
def test_the_host_judges_by_itself_whether_what_was_said_still_holds(change, reason):
    host = a_host()
    client = Client(host)
    change = dict(change)
    client.session = change.pop("client_of", client.session)
    instance = client.instance(change.pop("of", "instance-1"))
    operation = change.pop("operation", READ)
    reply = client.ask(evolve(instance, id=change.pop("id", instance.id)), operation, {}, **change)
    assert (reply.word, reply.code, reply.artifacts) == ("failed", reason, ())
    reading = host.reading()
    assert (reading.refused, reading.executions, reading.received[operation]) == (((operation, reason),), (), 1)
    assert reading.disagreements == ()


def test_one_receipt_is_executed_once_whatever_a_broker_does():
    host = a_host()
    client = Client(host)
    instance = client.instance()
    result_of(client.ask(instance, GESTURE, number=1))
    assert client.ask(instance, GESTURE, number=1).code == Reason.REPLAYED
    assert host.reading().executed == {(GESTURE, "instance-1"): 1}


def test_all_follows_from_the_seed():
    readings = []
    for seed in (SEED, SEED, SEED + 1):
        host = a_host(seed=seed)
        client = Client(host)
        replies = [client.ask(client.instance(), name, each) for name in ADVERTISED for each in INPUTS[name]]
        readings.append((host.reading(), replies, client.enrolled, canary_of(seed)))
    assert readings[0] == readings[1]
    assert all(one != other for one, other in zip(readings[0], readings[2], strict=True))


@pytest.mark.parametrize("seed", [-1, 1 << 53, True, "7", None])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(InputError) as caught:
        PluginHost(seed)
    assert caught.value.reason is Reason.WRONG_VALUE


@promise("C28")
def test_the_host_names_its_artifacts_as_the_broker_does():
    assert artifact_id("receipt-1", "ab" * 32) == artifacts.artifact_id("receipt-1", "ab" * 32)
