"""Requests to a plugin host: an input of every operation, and the claimed request that carries it."""

import hashlib
import json

from assisted_benchmark.capability.ports import Ended, Envelope, Session
from assisted_benchmark.kernel.clock import SECOND, Deadline, ManualClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.ledger.protocol import Claimed

SEED = 7
SESSION = Session("run-1", "client-1", "peer-1")
OTHER = Session("run-1", "client-2", "peer-2")

READ = "dev.pulp.state/read@1"
GESTURE = "dev.pulp.state/parameter-gesture@1"
RENDER = "dev.pulp.render/offline@1"
CAPTURE = "dev.pulp.ui/capture@1"
TELEMETRY = "dev.pulp.telemetry/subscribe@1"

NOTE = {"kind": "note-on", "channel": 0, "note": 60, "velocity": 0.5}
TRANSPORT = {"kind": "transport", "playing": True, "position_beats": 0, "tempo_bpm": 120}
METRIC = {"kind": "geometry", "node_id": "knob-1"}
SUBSCRIBE = {"action": "subscribe", "channel_ids": ["level", "host.account"], "max_hz": 60, "buffer_samples": 2}

# Inputs that the operation takes, in an order in which it takes each.
INPUTS = {
    "dev.pulp.authoring/tweaks@1": [{"changes": {"repaint_flash": True}}],
    "dev.pulp.diagnostics/read@1": [{}],
    "dev.pulp.gpu/health.read@1": [{}],
    "dev.pulp.instance/read@1": [{}],
    "dev.pulp.logs/read@1": [{}, {"after_sequence": 1, "limit": 1}, {"after_sequence": 9000}],
    RENDER: [{"input_artifact_id": "a", "max_frames": 3}, {"input_artifact_id": "a", "max_frames": 11520000}],
    "dev.pulp.runtime/evaluate@1": [
        {"source": "20 + 22", "timeout_ms": 100, "idempotency_key": "k-1"},
        {"source": "quit()", "timeout_ms": 100, "idempotency_key": "k-2"},
    ],
    "dev.pulp.runtime/reload@1": [{"source_revision": "r2"}],
    "dev.pulp.session/control@1": [{"action": each} for each in ("acquire", "acquire", "renew", "release")],
    GESTURE: [{"parameter_id": 7, "normalized_value": 0.25, "idempotency_key": "k-3"}],
    READ: [{}, {"include_catalog": False}, {"include_sensitive": True, "parameter_ids": [6, 1]}],
    TELEMETRY: [SUBSCRIBE],
    "dev.pulp.test/input@1": [{"sequence": 0, **NOTE}, {"sequence": 5, **TRANSPORT}],
    "dev.pulp.trace/control@1": [
        {"action": "motion-start-trace", "metrics": [METRIC]},
        {"action": "motion-stop-trace", "trace_id": 1},
        {"action": "motion-stop-trace", "trace_id": 1},
        {"action": "motion-scrub-to", "frame": 12},
        {"action": "motion-play"},
        {"action": "motion-pause"},
        {"action": "motion-sample-cost", "maximum_samples": 2},
        {"action": "performance-enable-tracking"},
    ],
    "dev.pulp.trace/session-control@1": [{"action": "start", "ring_mb": 8}, {"action": "stop"}],
    CAPTURE: [{"target": "window"}, {"target": "node", "node_id": "knob-1"}],
    "dev.pulp.ui/input@1": [{"kind": "focus", "target_id": "knob-1", "event": {"focused": True}}],
    "dev.pulp.ui/observe@1": [{}, {"selector": "#panel", "include_geometry": False}],
}

# Inputs that a broker would never let through.
UNFIT = {
    "dev.pulp.authoring/tweaks@1": [{}, {"changes": {}}],
    "dev.pulp.logs/read@1": [{"after_sequence": "1"}, {"limit": 0}],
    RENDER: [{}, {"input_artifact_id": "a", "max_frames": 0}],
    "dev.pulp.runtime/evaluate@1": [{"source": 7}],
    "dev.pulp.runtime/reload@1": [{}],
    "dev.pulp.session/control@1": [{}, {"action": "steal"}],
    GESTURE: [{}, {"parameter_id": 1, "normalized_value": 1.5}],
    READ: [{"parameter_ids": [99]}, {"parameter_ids": "all"}, {"include_catalog": 1}],
    TELEMETRY: [{}, {**SUBSCRIBE, "max_hz": 0}, {**SUBSCRIBE, "channel_ids": [1]}],
    "dev.pulp.test/input@1": [{"sequence": 0, "kind": "chord"}],
    "dev.pulp.trace/control@1": [{}, {"action": "motion-start-trace", "metrics": []}],
    "dev.pulp.trace/session-control@1": [{}],
    CAPTURE: [{"target": "screen"}],
    "dev.pulp.ui/input@1": [{"kind": "touch"}],
    "dev.pulp.ui/observe@1": [{"selector": 1}, {"include_geometry": 1}],
}


def within(seconds=10, clock=None):
    return Deadline.after(clock or ManualClock(), int(seconds * SECOND))


def yes():
    return True


def unheard(_event):
    raise AssertionError("there was no progress to tell of")


def a_request(instance, operation=READ, value=None, *, number=1, client="client-1", **envelope):
    """The claimed request and its envelope; `instance` as an inventory has it."""
    parameters = json.dumps(INPUTS[operation][0] if value is None else value).encode()
    request_hash = digest_of("test@1", operation.encode(), parameters, str(number).encode())
    claimed = Claimed(Admitted(b"g", request_hash, instance.id, operation, parameters), "run-1")
    given = {
        "request_id": f"request-{number}",
        "receipt_id": f"receipt-{number}",
        "request_hash": request_hash,
        "grant": "grant-1",
        "client": client,
        "registration": instance.registration,
        "publication": instance.publication,
        "version": 1,
        "expected_state_generation": None,
        **envelope,
    }
    return claimed, Envelope(**given)


class Client:
    """A client that has enrolled with a host, in process or over a socket."""

    def __init__(self, host, session=SESSION, clock=None, numbers=None):
        self.host = host
        self.session = session
        self.clock = clock
        self.numbers = numbers or iter(range(1, 1 << 20))
        self.enrolled = host.connect(session, deadline=within(10, clock))
        self.events = []

    def instances(self, seconds=10):
        return self.host.inventory(self.enrolled, deadline=within(seconds, self.clock))

    def instance(self, name="instance-1"):
        (found,) = [each for each in self.instances() if each.id == name]
        return found

    def ask(self, instance, operation=READ, value=None, *, seconds=10, gate=yes, progress=None, **envelope):
        number = envelope.pop("number", None) or next(self.numbers)
        claimed, given = a_request(instance, operation, value, number=number, client=self.session.client, **envelope)
        return self.host.request(
            claimed,
            given,
            gate=gate,
            deadline=within(seconds, self.clock),
            progress=progress or self.events.append,
        )


def result_of(reply):
    assert (type(reply), reply.word) == (Ended, "completed"), reply
    return json.loads(reply.result)


def timeless(reply):
    """A reply without its instants, artifacts by their digests."""
    if isinstance(reply, Uncertain):
        return (Uncertain, reply.reason, reply.detail)
    if isinstance(reply, Ended):
        made = [(each.mime_type, len(each.data), hashlib.sha256(each.data).hexdigest()) for each in reply.artifacts]
        return (Ended, reply.word.value, reply.result, reply.code, reply.explanation, made)
    return (type(reply), reply.reason, reply.detail, getattr(reply, "ended", None))
