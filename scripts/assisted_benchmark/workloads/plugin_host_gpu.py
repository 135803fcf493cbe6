"""What a plugin host without a GPU provider says of its GPU: nothing is known, events were lost, nulls stay null."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.kernel.strict_json import Json

_ADAPTER: Final = ("backend", "name", "vendor", "architecture", "device")
_MEASURED: Final = (
    "command_submitted",
    "readback_completed",
    "pixel_output_produced",
    "content_floor_passed",
    "compute_initialized",
    "compute_oracle_passed",
    "device_lost",
    "non_transparent_pixel_count",
    "distinct_color_count",
    "rgba_fingerprint",
)
_SIGNATURES: Final = (
    "vellum_revision",
    "source_signature_sha256",
    "shader_signature_sha256",
    "expected_target_signature_sha256",
)
_BUDGET: Final[dict[str, Json]] = {
    "budget_id": "startup",
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


def gpu_health(run_id: str, build_id: str) -> dict[str, Json]:
    """The evidence of one instance, as far as there is any."""
    event = {
        "sequence": 0,
        "stage": "configuration",
        "verdict": "unverified",
        "code": "gpu.unverified",
        "detail": "no provider has answered",
    }
    probe = {
        "probe_id": "native-surface",
        "required": True,
        "verdict": "unverified",
        "adapter": {"status": "unverified", "class": "unknown", **dict.fromkeys(_ADAPTER)},
        "measurements": dict.fromkeys(_MEASURED),
        "events": [event],
    }
    health = {
        "schema": "pulp.gpu-health-result.v1",
        "version": 1,
        "run_id": run_id,
        "render_requested": True,
        "verdict": "unverified",
        "health_state": "unverified",
        "probes": [probe],
        "recommendations": [],
    }
    startup: dict[str, Json] = {
        "status": "incomplete",
        "verdict": "unverified",
        "budget": dict(_BUDGET),
        "correlation": {"gpu_evidence_id": None, "trace_evidence_id": None},
        "capture": {
            "event_capacity": 64,
            "event_count": 64,
            "dropped_event_count": 3,
            "truncated": True,
            "missing_trace_categories": ["gpu"],
        },
        "identity": {"pulp_build_id": build_id, **dict.fromkeys(_SIGNATURES), "adapter_class": "unknown"},
        "trials": [],
        "observed_percentile_ms": None,
        "interaction_hitch_percentile_ms": None,
        "pipeline_contribution": "unverified",
        "causal_attribution": "incomplete",
        "disposition": None,
    }
    return {"schema": "pulp.gpu-health-read-result.v1", "version": 1, "health": health, "startup": startup}
