"""What operations leave: artifacts under their access list, resources by address, and the progress of the way."""

import hashlib
import json

import pytest
from capability_bench import (
    ARTIFACT_READ,
    OTHER,
    SESSION,
    STATE_READ,
    CapabilityBench,
    an_instance,
)
from marks import promise

from assisted_benchmark.capability.artifacts import artifact_id
from assisted_benchmark.capability.ports import Blob, Ended, Enrolled, Unavailable, Word
from assisted_benchmark.capability.progress import Event
from assisted_benchmark.capability.reading import Listed, Resource
from assisted_benchmark.capability.resources import ArtifactAddress, InstanceAddress
from assisted_benchmark.capability.states import State
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain

MIME = "application/vnd.pulp.diagnostics+json"
DIAGNOSTICS = "dev.pulp.diagnostics/read@1"
DATA = b"what the diagnostics say"
SHA = hashlib.sha256(DATA).hexdigest()


def with_artifact(bench, *, data=DATA, mime_type=MIME, **lies):
    """Let the host answer with one artifact, and tell of it, or lie about it."""

    def execute(claimed, envelope):
        now = bench.clock.now()
        told = {
            "artifact_id": artifact_id(envelope.receipt_id, SHA),
            "mime_type": MIME,
            "sha256": SHA,
            "byte_count": len(DATA),
            "item_count": 1,
            "sampled_at_ms": 1,
            **lies,
        }
        result = json.dumps(told).encode()
        return Ended(Word.COMPLETED, result, now, now, artifacts=(Blob(data, mime_type),) if data else ())

    bench.world.execute = execute
    return bench


def left(bench, **more):
    """The id of an artifact that a completed operation left."""
    answer = bench.ask(DIAGNOSTICS, **more)
    assert answer.reason is None
    return answer.content.result["artifact_id"]


def read(bench, artifact, session=SESSION, offset=0, max_bytes=1 << 20, **more):
    also = {"artifact_id": artifact, "offset": offset, "max_bytes": max_bytes}
    return bench.ask(ARTIFACT_READ, session, also=also, **more)


@promise("C28")
def test_an_artifact_that_an_operation_left_is_told_and_read_in_parts():
    bench = with_artifact(CapabilityBench())
    answer = bench.ask(DIAGNOSTICS)
    artifact = answer.content.result["artifact_id"]
    structured = bench.told("pulp_control_diagnostics_read", answer)
    listed = {"artifact_id": artifact, "media_type": MIME, "byte_size": len(DATA), "sha256": SHA}
    assert structured["artifacts"] == [listed]
    parts = [read(bench, artifact, offset=at, max_bytes=10) for at in (0, 10, 20)]
    assert [part.content.result["eof"] for part in parts] == [False, False, True]
    told = bench.told("pulp_control_artifact_read", parts[0])
    assert told["receipt_id"] in {line["id"] for line in bench.receipts() if line["reason"] == "read"}
    assert bench.executed == {DIAGNOSTICS: 1}
    assert bench.groups() == ["completed"]


@promise("C28")
@pytest.mark.parametrize(
    "lies",
    [
        {"artifact_id": "artifact-other"},
        {"sha256": "0" * 64},
        {"byte_count": 1},
        {"mime_type": "image/png"},
        {"data": b""},
        {"data": bytes((16 << 20) + 1)},
    ],
    ids=["another id", "another digest", "another size", "another type", "none", "too large"],
)
def test_a_result_that_tells_of_what_was_not_published_is_no_success(lies):
    bench = with_artifact(CapabilityBench(), **lies)
    answer = bench.ask(DIAGNOSTICS)
    assert (answer.state, answer.reason) == (State.UNKNOWN_NEEDS_REFRESH, Reason.RESULT_INVALID)


@promise("C28")
def test_an_artifact_is_read_only_while_its_access_list_allows_it():
    bench = with_artifact(CapabilityBench())
    grant = bench.granted(DIAGNOSTICS)
    artifact = left(bench, grant_id=grant)
    assert read(bench, artifact, OTHER).reason is Reason.NOT_FOUND
    assert read(bench, "artifact-none").reason is Reason.NOT_FOUND
    assert read(bench, artifact, grant_id="whatever").reason is None
    bench.world.live = (an_instance(publication="publication-2"),)
    assert read(bench, artifact).reason is Reason.WRONG_PUBLICATION
    bench.world.live = (an_instance(),)
    bench.manage("revoke", grant_id=grant)
    refused = read(bench, artifact)
    assert (refused.reason, refused.receipt_id is None) == (Reason.REVOKED, False)


@promise("C28")
def test_the_artifact_of_an_operation_that_did_not_complete_is_nobodys():
    bench = with_artifact(CapabilityBench())
    execute = bench.world.execute
    seen = []

    def look_first(claimed, envelope):
        ended = execute(claimed, envelope)
        seen.append(json.loads(ended.result)["artifact_id"])
        return ended

    bench.world.execute = look_first
    bench.at("settle", lambda: seen.append(read(bench, seen[0]).reason))
    bench.ask(DIAGNOSTICS)
    assert seen[1] is Reason.NOT_FOUND
    assert read(bench, seen[0]).reason is None


@promise("C28")
def test_no_artifact_outlives_its_broker():
    bench = with_artifact(CapabilityBench())
    artifact = left(bench)
    bench.restart()
    assert read(bench, artifact).reason is Reason.NOT_FOUND


@promise("C15", "C28")
@pytest.mark.parametrize(
    ("enrolled", "reason"),
    [
        (Enrolled("session-1", "client-2", "peer-1"), Reason.WRONG_PRINCIPAL),
        (Enrolled("session-1", "client-1", "peer-2"), Reason.WRONG_PEER),
    ],
    ids=["client", "peer"],
)
def test_what_is_no_operation_is_asked_for_in_the_clients_own_session_too(enrolled, reason):
    bench = CapabilityBench()
    bench.world.enrolled = enrolled
    assert read(bench, "artifact-none").reason is reason
    assert bench.manage("grant_request", instance_id="instance-1", operation_id=STATE_READ).reason is reason
    assert bench.broker.read_resource(SESSION, "pulp-control://instance/instance-1").reason is reason
    assert bench.person.steps == []


def test_an_artifacts_read_that_cannot_be_written_down_gives_nothing():
    bench = with_artifact(CapabilityBench())
    artifact = left(bench)
    bench.ledger.broken.add("record")
    refused = read(bench, artifact)
    assert (refused.reason, refused.receipt_id) == (Reason.STORE_UNAVAILABLE, None)
    refused = bench.broker.read_resource(SESSION, f"pulp-control://artifact/instance-1/{artifact}")
    assert (refused.reason, refused.receipt_id) == (Reason.STORE_UNAVAILABLE, None)
    bench.ledger.broken.add("run_record")
    assert read(bench, artifact).checked == ()


@promise("C29")
def test_a_resource_is_an_exact_instances_metadata_or_an_artifact():
    bench = with_artifact(CapabilityBench())
    found = bench.broker.read_resource(SESSION, "pulp-control://instance/instance-1")
    assert found.mime_type == "application/json"
    assert json.loads(found.data) == bench.manage("status", instance_id="instance-1").data["instance"]
    artifact = left(bench)
    uri = f"pulp-control://artifact/instance-1/{artifact}"
    assert bench.broker.read_resource(SESSION, uri) == Resource(MIME, DATA)
    assert bench.broker.read_resource(OTHER, uri).reason is Reason.NOT_FOUND


@promise("C29")
@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("pulp-control://instance/instance-2", Reason.INSTANCE_NOT_FOUND),
        ("pulp-control://artifact/instance-1/none", Reason.NOT_FOUND),
        ("pulp-control://grant/instance-1", Reason.NOT_FOUND),
        ("file:///etc/passwd", Reason.NOT_FOUND),
    ],
    ids=["instance", "artifact", "kind", "scheme"],
)
def test_nothing_else_has_an_address(uri, reason):
    bench = CapabilityBench()
    assert bench.broker.read_resource(SESSION, uri).reason is reason
    assert bench.broker.read_resource(SESSION._replace(run="run-2"), uri).reason is Reason.BROKER_MISMATCH


@promise("C28", "C29")
def test_what_is_listed_is_what_the_session_could_read_now():
    twins = (an_instance("twin"), an_instance("twin", "publication-2"))
    bench = with_artifact(CapabilityBench(instances=(an_instance(), an_instance("instance-2"), *twins)))
    artifact = left(bench)
    exact = [Listed(InstanceAddress(name), "application/json") for name in ("instance-1", "instance-2")]
    kept = Listed(ArtifactAddress("instance-1", artifact), MIME, len(DATA))
    assert bench.broker.list_resources(SESSION) == (exact[0], kept, exact[1])
    assert bench.broker.list_resources(OTHER) == tuple(exact)
    bench.world.live = (an_instance(publication="publication-2"),)
    assert bench.broker.list_resources(SESSION) == (exact[0],)


def test_why_there_is_no_list_is_said():
    bench = CapabilityBench()
    assert bench.broker.list_resources(SESSION._replace(run="run-2")).reason is Reason.BROKER_MISMATCH
    bench.world.fails["inventory"] = Unavailable(Reason.SERVER_UNAVAILABLE, "no answer")
    assert bench.broker.list_resources(SESSION).reason is Reason.SERVER_UNAVAILABLE


def step(sequence, current, **more):
    return {"sequence": sequence, "current": current, "total": 3, **more}


@promise("C27")
def test_progress_is_told_as_it_comes_and_stands_in_the_result():
    bench = CapabilityBench()
    bench.world.observations = (step(1, 0), step(2, 1, message="reading"), step(2, 2), step(3, 3))
    heard = []
    raw = json.dumps({"instance_id": "instance-1", "input": {}}).encode()
    answer = bench.broker.call(SESSION, "pulp_control_state_read", raw, listener=heard.append)
    assert heard == [Event(1, 0, 3), Event(2, 1, 3, "reading")]
    assert answer.content.progress == (step(1, 0), step(2, 1, message="reading"))
    assert bench.told("pulp_control_state_read", answer)["progress"] == list(answer.content.progress)


@promise("C27")
@pytest.mark.parametrize("word", [Word.FAILED, Word.CANCELLED, "lost"])
def test_progress_stands_in_a_failure_too(word):
    bench = CapabilityBench()
    bench.world.observations = (step(1, 1),)
    now = bench.clock.now()
    reply = Uncertain(Reason.OUTCOME_UNKNOWN, "lost", now) if word == "lost" else Ended(word, b"", now, now)
    bench.world.execute = lambda claimed, envelope: reply
    answer = bench.ask(STATE_READ)
    data = bench.told("pulp_control_state_read", answer)["error"]["data"]
    assert (data["state"], data["progress"]) == (answer.state.value, [step(1, 1)])


@promise("C27")
def test_a_listener_that_fails_changes_nothing_of_the_operation():
    bench = CapabilityBench()
    bench.world.observations = (step(1, 0), step(2, 1))
    heard = []

    def listener(event):
        heard.append(event)
        raise RuntimeError("the client is gone")

    raw = json.dumps({"instance_id": "instance-1", "input": {}}).encode()
    answer = bench.broker.call(SESSION, "pulp_control_state_read", raw, listener=listener)
    assert (answer.state, len(answer.content.progress), len(heard)) == (State.COMPLETED, 2, 1)


def test_a_request_that_the_host_could_not_be_sent_is_cancelled():
    bench = CapabilityBench()
    bench.world.fails["request"] = Unavailable(Reason.SERVER_UNAVAILABLE, "no connection")
    answer = bench.ask(STATE_READ)
    assert (answer.state, answer.reason, bench.executed) == (State.CANCELLED, Reason.SERVER_UNAVAILABLE, {})
