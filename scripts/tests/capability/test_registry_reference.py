"""The reference registry: every operation of the product, its authority, and the limits of its input."""

from __future__ import annotations

import json

import pytest
from marks import promise
from registry_bench import PULP, PULP_TOOLS, arguments

from assisted_benchmark.capability.call import OperationCall, Unfit
from assisted_benchmark.kernel.reasons import Reason

# name: risk, result, profiles, authority, and what else is said of it
TABLE = {
    "instance/read": ("observe", "response", "observe develop", "grant", ""),
    "session/control": ("control", "receipt", "develop", "grant", ""),
    "state/read": ("sensitive", "response", "observe develop", "grant", ""),
    "render/offline": ("resource", "artifact", "", "operation-grant", ""),
    "ui/observe": ("sensitive", "artifact", "observe develop", "grant", ""),
    "diagnostics/read": ("sensitive", "artifact", "observe develop", "grant", ""),
    "logs/read": ("sensitive", "artifact", "observe develop", "grant", ""),
    "ui/capture": ("sensitive", "artifact", "observe develop", "grant", ""),
    "ui/input": ("high-risk", "receipt", "", "none", ""),
    "trace/control": ("control", "receipt", "develop", "grant", ""),
    "trace/session-control": ("control", "response", "develop", "grant", "publication-bound"),
    "state/parameter-gesture": ("control", "receipt", "develop", "grant", ""),
    "test/input": ("control", "receipt", "develop", "grant", ""),
    "authoring/tweaks": ("control", "receipt", "develop", "grant", ""),
    "telemetry/subscribe": ("streaming-sensitive", "stream", "develop", "grant", ""),
    "runtime/reload": ("high-risk", "receipt", "", "none", ""),
    "runtime/evaluate": ("critical", "receipt", "", "operation-grant", "interactive-only"),
    "artifact/read": ("sensitive", "chunk", "", "artifact-acl", ""),
    "gpu/health.read": ("sensitive", "response", "inspect-readonly observe", "grant", "one-shot"),
}


@promise("C1", "C3", "C20", "C21", "C22")
def test_every_operation_has_the_risk_result_profiles_and_authority_of_the_product():
    said = {
        each.id: (
            each.risk,
            each.result,
            set(each.profiles),
            each.authority,
            {*each.consent, *(["publication-bound"] if each.publication_bound else [])},
        )
        for each in PULP.operations
    }
    assert said == {
        f"dev.pulp.{name}@1": (risk, result, set(profiles.split()), authority, set(more.split()))
        for name, (risk, result, profiles, authority, more) in TABLE.items()
    }


@promise("C17")
def test_the_bounds_of_the_envelope_are_the_protocols():
    bounds = PULP.bounds
    assert (bounds.parameters_bytes, bounds.envelope_bytes) == (512 * 1024, 2 * 1024 * 1024)
    assert (bounds.id_length, bounds.artifacts, bounds.explanation_length) == (128, 64, 1024)
    assert (bounds.timeout_ms, bounds.default_timeout_ms) == (300_000, 3_000)


FITTING = [
    ("instance/read", {}),
    *(("session/control", {"action": action}) for action in ("acquire", "renew", "release")),
    ("state/read", {}),
    ("state/read", {"include_catalog": False, "include_sensitive": True, "parameter_ids": list(range(4096))}),
    ("state/read", {"parameter_ids": [4294967295]}),
    ("render/offline", {"input_artifact_id": "a", "max_frames": 11_520_000}),
    ("render/offline", {"input_artifact_id": "a", "max_frames": 1, "timeout_ms": 300_000}),
    ("ui/observe", {"selector": "s" * 1024, "include_geometry": False}),
    ("diagnostics/read", {}),
    ("logs/read", {"after_sequence": 0, "limit": 1}),
    ("logs/read", {"after_sequence": 2**53 - 1, "limit": 2000}),
    ("ui/capture", {"target": "window"}),
    ("ui/capture", {"target": "node", "node_id": "n", "format": "png"}),
    *(
        ("trace/control", {"action": action})
        for action in (
            "performance-enable-tracking",
            "audio-enable-metering",
            "motion-pause",
            "motion-enable-cost",
            "motion-disable-cost",
            "motion-play",
        )
    ),
    ("trace/control", {"action": "motion-stop-trace", "trace_id": 1}),
    ("trace/control", {"action": "motion-scrub-to", "frame": 1, "maximum_events": 4096}),
    ("trace/control", {"action": "motion-sample-cost", "maximum_samples": 64}),
    (
        "trace/control",
        {
            "action": "motion-start-trace",
            "metrics": [
                {"kind": "geometry", "node_id": "n", "properties": ["width", "height"], "space": "window"},
                {"kind": "scroll-geometry", "node_id": "n", "properties": ["contentOffsetY"]},
            ],
        },
    ),
    ("trace/session-control", {"action": "start", "ring_mb": 1}),
    ("trace/session-control", {"action": "start", "ring_mb": 512, "categories": ["dsp"]}),
    ("trace/session-control", {"action": "stop"}),
    ("state/parameter-gesture", {"parameter_id": 15, "normalized_value": 0.5, "idempotency_key": "k"}),
    ("state/parameter-gesture", {"parameter_id": 15, "normalized_value": 1.0, "idempotency_key": "k"}),
    ("test/input", {"sequence": 0, "kind": "note-on", "channel": 15, "note": 127, "velocity": 1}),
    ("test/input", {"sequence": 0, "kind": "note-off", "channel": 0, "note": 0, "velocity": 0}),
    ("test/input", {"sequence": 1, "kind": "transport", "playing": True, "position_beats": 0, "tempo_bpm": 400}),
    ("authoring/tweaks", {"changes": {"repaint_flash": True}}),
    ("authoring/tweaks", {"changes": {"constants": {"gain_1": 0.25}}}),
    ("authoring/tweaks", {"anchor_id": "a", "changes": {"lock": True, "bypass": False}}),
    (
        "authoring/tweaks",
        {
            "anchor_id": "a",
            "changes": {
                "lock": True,
                "bypass": True,
                "repaint_flash": True,
                "highlight_node_id": "n",
                "constants": {},
            },
        },
    ),
    ("telemetry/subscribe", {"action": "subscribe", "channel_ids": ["c"], "max_hz": 0.1, "buffer_samples": 512}),
    (
        "telemetry/subscribe",
        {"action": "subscribe", "channel_ids": [str(n) for n in range(32)], "max_hz": 60, "buffer_samples": 1},
    ),
    ("telemetry/subscribe", {"action": "poll", "stream_id": "s"}),
    ("telemetry/subscribe", {"action": "unsubscribe", "stream_id": "s"}),
    ("runtime/evaluate", {"source": "x" * 65536, "timeout_ms": 2000, "idempotency_key": "k"}),
    ("artifact/read", {"artifact_id": "a", "offset": 0, "max_bytes": 1024 * 1024}),
    ("gpu/health.read", {}),
]


def tool_of(name: str) -> str:
    return PULP.tool_name(f"dev.pulp.{name}@1")


def id_of(name_and_input) -> str:
    return f"{name_and_input[0]} {json.dumps(name_and_input[1])[:60]}"


@promise("C4")
@pytest.mark.parametrize(("name", "given"), FITTING, ids=map(id_of, FITTING))
def test_an_input_within_the_limits_is_read(name, given):
    call = PULP_TOOLS.read(tool_of(name), arguments(input=given))
    assert isinstance(call, OperationCall)
    assert json.loads(call.input) == given
    assert call.operation.id == f"dev.pulp.{name}@1"


GESTURE = {"parameter_id": 15, "normalized_value": 0.5, "idempotency_key": "k"}
NOTE = {"sequence": 0, "kind": "note-on", "channel": 0, "note": 0, "velocity": 0}
TRANSPORT = {"sequence": 1, "kind": "transport", "playing": True, "position_beats": 0, "tempo_bpm": 20}
SUBSCRIBE = {"action": "subscribe", "channel_ids": ["c"], "max_hz": 1, "buffer_samples": 1}
EVALUATE = {"source": "1", "timeout_ms": 1, "idempotency_key": "k"}
CHUNK = {"artifact_id": "a", "offset": 0, "max_bytes": 1}
RENDER = {"input_artifact_id": "a", "max_frames": 1}

# What is wrong, and the path of the field that it is told of.
UNFIT = [
    ("instance/read", {"more": 1}, "/input"),
    ("session/control", {"action": "steal"}, "/input/action"),
    ("session/control", {}, "/input"),
    ("state/read", {"parameter_ids": list(range(4097))}, "/input/parameter_ids"),
    ("state/read", {"parameter_ids": [1, 1]}, "/input/parameter_ids"),
    ("state/read", {"parameter_ids": [4294967296]}, "/input/parameter_ids/0"),
    ("state/read", {"include_sensitive": "yes"}, "/input/include_sensitive"),
    ("render/offline", {**RENDER, "max_frames": 11_520_001}, "/input/max_frames"),
    ("render/offline", {"max_frames": 1}, "/input"),
    ("ui/observe", {"selector": "s" * 1025}, "/input/selector"),
    ("logs/read", {"limit": 0}, "/input/limit"),
    ("logs/read", {"limit": 2001}, "/input/limit"),
    ("logs/read", {"after_sequence": -1}, "/input/after_sequence"),
    ("ui/capture", {"target": "screen"}, "/input"),
    ("ui/capture", {"target": "node"}, "/input"),
    ("ui/capture", {"target": "window", "node_id": "n"}, "/input"),
    ("ui/capture", {"target": "node", "node_id": 1}, "/input/node_id"),
    ("trace/control", {"action": "motion-stop-trace"}, "/input"),
    ("trace/control", {"action": "motion-sample-cost", "maximum_samples": 65}, "/input/maximum_samples"),
    ("trace/control", {"action": "motion-start-trace", "metrics": []}, "/input/metrics"),
    ("trace/session-control", {"action": "start", "ring_mb": 0}, "/input/ring_mb"),
    ("trace/session-control", {"action": "start", "ring_mb": 513}, "/input/ring_mb"),
    ("trace/session-control", {"action": "stop", "ring_mb": 1}, "/input"),
    ("state/parameter-gesture", {**GESTURE, "normalized_value": 1.01}, "/input/normalized_value"),
    ("state/parameter-gesture", {**GESTURE, "normalized_value": -0.01}, "/input/normalized_value"),
    ("state/parameter-gesture", {**GESTURE, "parameter_id": 15.5}, "/input/parameter_id"),
    ("state/parameter-gesture", {**GESTURE, "idempotency_key": ""}, "/input/idempotency_key"),
    ("state/parameter-gesture", {"parameter_id": 15, "normalized_value": 0.5}, "/input"),
    ("test/input", {**NOTE, "channel": 16}, "/input/channel"),
    ("test/input", {**NOTE, "note": 128}, "/input/note"),
    ("test/input", {**TRANSPORT, "tempo_bpm": 401}, "/input/tempo_bpm"),
    ("test/input", {**TRANSPORT, "tempo_bpm": 19}, "/input/tempo_bpm"),
    ("test/input", {**NOTE, "tempo_bpm": 20}, "/input"),
    ("authoring/tweaks", {"changes": {}}, "/input/changes"),
    ("authoring/tweaks", {"changes": {"lock": True}}, "/input"),
    ("authoring/tweaks", {"changes": {"constants": {"1bad": 0.25}}}, "/input/changes/constants"),
    ("authoring/tweaks", {"changes": {"constants": {"a": 1_000_001}}}, "/input/changes/constants/a"),
    ("telemetry/subscribe", {**SUBSCRIBE, "max_hz": 0.09}, "/input/max_hz"),
    ("telemetry/subscribe", {**SUBSCRIBE, "max_hz": 60.1}, "/input/max_hz"),
    ("telemetry/subscribe", {**SUBSCRIBE, "buffer_samples": 513}, "/input/buffer_samples"),
    ("telemetry/subscribe", {**SUBSCRIBE, "channel_ids": []}, "/input/channel_ids"),
    ("telemetry/subscribe", {**SUBSCRIBE, "channel_ids": [str(n) for n in range(33)]}, "/input/channel_ids"),
    ("telemetry/subscribe", {"action": "poll"}, "/input"),
    ("runtime/evaluate", {**EVALUATE, "timeout_ms": 2001}, "/input/timeout_ms"),
    ("runtime/evaluate", {**EVALUATE, "source": ""}, "/input/source"),
    ("runtime/evaluate", {"source": "1", "timeout_ms": 1}, "/input"),
    ("artifact/read", {**CHUNK, "max_bytes": 1024 * 1024 + 1}, "/input/max_bytes"),
    ("artifact/read", {**CHUNK, "max_bytes": 0}, "/input/max_bytes"),
    ("artifact/read", {**CHUNK, "offset": -1}, "/input/offset"),
    ("artifact/read", {**CHUNK, "path": "/etc"}, "/input"),
    ("gpu/health.read", {"trace": "newest"}, "/input"),
]


@promise("C4")
@pytest.mark.parametrize(("name", "given", "path"), UNFIT, ids=map(id_of, UNFIT))
def test_an_input_beyond_a_limit_is_refused_at_the_field(name, given, path):
    unfit = PULP_TOOLS.read(tool_of(name), arguments(input=given))
    assert isinstance(unfit, Unfit)
    assert (unfit.reason, unfit.faults[0].path) == (Reason.ARGUMENTS_INVALID, path)
    assert unfit.operation is PULP.operation(f"dev.pulp.{name}@1")


@promise("C4")
def test_every_advertised_operation_is_tried_within_and_beyond_its_limits():
    advertised = {each.id.removeprefix("dev.pulp.").removesuffix("@1") for each in PULP.operations if each.advertised}
    assert {name for name, _ in FITTING} == advertised
    assert advertised - {name for name, _, _ in UNFIT} == {"diagnostics/read"}


@promise("C17")
def test_source_is_bounded_in_bytes_and_not_in_characters():
    source = "é" * 32_768
    call = PULP_TOOLS.read(tool_of("runtime/evaluate"), arguments(input={**EVALUATE, "source": source}))
    assert isinstance(call, OperationCall)
    unfit = PULP_TOOLS.read(tool_of("runtime/evaluate"), arguments(input={**EVALUATE, "source": source + "x"}))
    assert isinstance(unfit, Unfit)
    assert (unfit.reason, unfit.faults[0].path) == (Reason.TOO_LARGE, "/input/source")
    assert unfit.operation is PULP.operation("dev.pulp.runtime/evaluate@1")


@promise("C32")
def test_what_is_not_known_of_a_gpu_stays_null_in_its_result():
    operation = PULP.operation("dev.pulp.gpu/health.read@1")
    unknown = {"status": "unverified", "class": "null"}
    unknown |= dict.fromkeys(("backend", "name", "vendor", "architecture", "device"))
    names = "command_submitted readback_completed pixel_output_produced content_floor_passed compute_initialized"
    names += " compute_oracle_passed device_lost non_transparent_pixel_count distinct_color_count rgba_fingerprint"
    event = {"sequence": 0, "stage": "adapter", "verdict": "unverified", "code": "gpu.adapter.null", "detail": "none"}
    probe = {
        "probe_id": "p",
        "required": True,
        "verdict": "unverified",
        "adapter": unknown,
        "measurements": dict.fromkeys(names.split()),
        "events": [event],
    }
    budget = {
        "budget_id": "b",
        "version": 1,
        "status": "unratified",
        "clock_origin": "editor_open_requested",
        "endpoint": "first_nonblank_presented_frame",
        "interaction_hitch_metric": "max_present_interval_before_first_nonblank_ms",
        "trial_count": 2,
        "cold_trial_count": 1,
        "warm_trial_count": 1,
        "percentile": 95,
        "threshold_ms": None,
        "threshold_source": None,
        "reference_hosts": [],
    }
    signatures = ("source_signature_sha256", "shader_signature_sha256", "expected_target_signature_sha256")
    identity = {"pulp_build_id": "b", "vellum_revision": None, "adapter_class": "unknown", **dict.fromkeys(signatures)}
    capture = {"event_capacity": 1, "event_count": 0, "dropped_event_count": 3, "truncated": True}
    result = {
        "schema": "pulp.gpu-health-read-result.v1",
        "version": 1,
        "health": {
            "schema": "pulp.gpu-health-result.v1",
            "version": 1,
            "run_id": "r",
            "render_requested": False,
            "verdict": "unverified",
            "health_state": "unverified",
            "probes": [probe],
            "recommendations": [],
        },
        "startup": {
            "status": "incomplete",
            "verdict": "unverified",
            "budget": budget,
            "correlation": {"gpu_evidence_id": None, "trace_evidence_id": None},
            "capture": {**capture, "missing_trace_categories": ["gpu"]},
            "identity": identity,
            "trials": [],
            "observed_percentile_ms": None,
            "interaction_hitch_percentile_ms": None,
            "pipeline_contribution": "unattributed",
            "causal_attribution": "incomplete",
            "disposition": None,
        },
    }
    assert PULP_TOOLS.result_faults(operation, result) is None
    del result["startup"]["correlation"]["trace_evidence_id"]  # left out is not the same as unknown
    unfit = PULP_TOOLS.result_faults(operation, result)
    assert (unfit.reason, unfit.faults[0].path) == (Reason.RESULT_INVALID, "/startup/correlation")
