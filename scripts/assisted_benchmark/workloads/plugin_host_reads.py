"""What the operations of the reference registry answer that change nothing of an instance's state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.workloads.plugin_host_gpu import gpu_health
from assisted_benchmark.workloads.plugin_host_instance import (
    NODES,
    PARAMETERS,
    SENSITIVE_PARAMETER,
    Live,
    Node,
    Parameter,
)
from assisted_benchmark.workloads.plugin_host_media import CHANNELS, SAMPLE_RATE, png, wav
from assisted_benchmark.workloads.plugin_host_task import Done, Failed, Task, invalid

_BUILD: Final = "build-1"
_BY_ID: Final = {each.id: each for each in PARAMETERS}


def _instance_read(task: Task) -> Done | Failed:
    live = task.live
    digest = hashlib.sha256(live.registration.encode()).hexdigest()
    return Done(
        {
            "broker_id": "broker-1",
            "registration_id": live.registration,
            "session_id": f"session-of-{live.id}",
            "instance_id": live.id,
            "publication_id": live.publication,
            "instance_kind": live.kind,
            "lifecycle_status": "active",
            "liveness_generation": live.publications,
            "plugin_id": "com.example.filter",
            "publisher_id": "com.example",
            "build_id": _BUILD,
            "build_profile": "test-deterministic",
            "manifest_digest": digest,
            "artifact_digest": digest[::-1],
            "peer_identity_sha256": digest,
            "capabilities": sorted(each.operation for each in live.abilities),
        }
    )


def _state_read(task: Task) -> Done | Failed:
    live = task.live
    wanted = task.input.get("parameter_ids", [each.id for each in PARAMETERS])
    catalog, sensitive = task.input.get("include_catalog", True), task.input.get("include_sensitive", False)
    if type(wanted) is not list or not all(type(each) is int and each in _BY_ID for each in wanted):
        return invalid("`parameter_ids` are ids of parameters that there are")
    if type(catalog) is not bool or type(sensitive) is not bool:
        return invalid("what is included is said by a boolean")
    chosen = [_BY_ID[each] for each in wanted]
    return Done(
        {
            "parameters": [_parameter(live, each, catalog, sensitive) for each in chosen],
            "state_generation": live.generation,
            "catalog_generation": 1,
            "catalog_included": catalog,
            "redacted_count": 0 if sensitive else sum(each.id == SENSITIVE_PARAMETER for each in chosen),
        }
    )


def _parameter(live: Live, parameter: Parameter, catalog: bool, sensitive: bool) -> dict[str, Json]:
    hidden = parameter.id == SENSITIVE_PARAMETER
    told: dict[str, Json] = {"id": parameter.id, "sensitive": hidden}
    if catalog:
        told |= {
            "name": parameter.name,
            "unit": parameter.unit,
            "kind": parameter.kind,
            "rate": "control",
            "designation": parameter.designation,
            "trigger": parameter.trigger,
            "min": parameter.least,
            "max": parameter.most,
            "default": parameter.value(parameter.start),
            "labels": list(parameter.labels),
        }
    if not hidden or sensitive:
        normalized = live.normalized[parameter.id]
        value = parameter.value(normalized)
        told |= {"normalized": normalized, "value": value, "modulated": value}
        told["display"] = live.secret if hidden else f"{value:g} {parameter.unit}".rstrip()
    return told


def _render(task: Task) -> Done | Failed:
    match task.input:
        case {"input_artifact_id": str(), "max_frames": int(most)} if most > 0:
            data, frames = wav(most, 1 + int(task.live.normalized[1] * 100))
        case _:
            return invalid("an offline render needs `input_artifact_id` and `max_frames`")
    facts = {"frames": frames, "blocks": -(-frames // 64), "sample_rate": SAMPLE_RATE, "channels": CHANNELS}
    return task.artifact("audio/wav", data, **facts, midi_events=0, parameter_count=len(PARAMETERS))


def _ui_observe(task: Task) -> Done | Failed:
    selector, geometry = task.input.get("selector", "#root"), task.input.get("include_geometry", True)
    if type(selector) is not str or type(geometry) is not bool:
        return invalid("a selector is a text, `include_geometry` a boolean")
    nodes = _below(selector.removeprefix("#"))
    if not nodes:
        return Failed(Reason.NOT_FOUND.value, "no node has that id")
    tree = [
        {"id": each.id, "parent": each.parent, "kind": each.kind} | ({"frame": list(each.frame)} if geometry else {})
        for each in nodes
    ]
    data = canonical_bytes({"nodes": tree})
    return task.artifact(
        "application/vnd.pulp.ui-tree+json", data, generation=task.live.generation, node_count=len(nodes)
    )


def _below(node_id: str) -> list[Node]:
    """A node, and all below it."""
    found = [each for each in NODES if each.id == node_id]
    for parent in found:  # which grows while it is gone through
        found += [each for each in NODES if each.parent == parent.id]
    return found


def _diagnostics(task: Task) -> Done | Failed:
    live = task.live
    items = {"xruns": 0, "latency_samples": 64, "log_entries": len(live.log), "reloads": live.reloads}
    data = canonical_bytes([{"name": name, "value": value} for name, value in items.items()])
    return task.artifact(
        "application/vnd.pulp.diagnostics+json", data, item_count=len(items), sampled_at_ms=task.now_ms
    )


def _logs(task: Task) -> Done | Failed:
    match task.input.get("after_sequence", 0), task.input.get("limit", 200):
        case int(after), int(limit) if after >= 0 and limit > 0:
            entries = list(enumerate(task.live.log, 1))[after : after + limit]
        case _:
            return invalid("`after_sequence` and `limit` are whole numbers")
    data = canonical_bytes([{"sequence": sequence, "text": text} for sequence, text in entries])
    following = entries[-1][0] if entries else after
    return task.artifact("application/vnd.pulp.logs+json", data, entry_count=len(entries), next_sequence=following)


def _ui_capture(task: Task) -> Done | Failed:
    match task.input:
        case {"target": "window"}:
            width, height = 16, 8
        case {"target": "node", "node_id": str(node_id)}:
            if not any(each.id == node_id for each in NODES):
                return Failed(Reason.NOT_FOUND.value, "no node has that id")
            width, height = 4, 4
        case _:
            return invalid("what is captured is the window, or a node by its id")
    colour = hashlib.sha256(f"{task.live.registration} {task.live.generation}".encode()).digest()[:3]
    return task.artifact("image/png", png(width, height, colour))


def _telemetry(task: Task) -> Done | Failed:
    streams, owner = task.telemetry, task.owner
    match task.input:
        case {
            "action": "subscribe",
            "channel_ids": [*channels],
            "max_hz": int() | float() as rate,
            "buffer_samples": int(size),
        } if rate > 0 and size > 0 and all(type(each) is str for each in channels):
            told = streams.subscribe(owner, channels, rate, size)
        case {"action": "poll", "stream_id": str(stream)}:
            told = streams.poll(owner, stream)
        case {"action": "unsubscribe", "stream_id": str(stream)}:
            told = streams.unsubscribe(owner, stream)
        case _:
            return invalid("telemetry is subscribed to, polled or unsubscribed from")
    return Failed(told.value, "there is no such stream of this client's") if isinstance(told, Reason) else Done(told)


def _gpu(task: Task) -> Done | Failed:
    return Done(gpu_health(f"gpu-run-of-{task.live.id}", _BUILD))


READS: Final[dict[str, Callable[[Task], Done | Failed]]] = {
    "dev.pulp.diagnostics/read@1": _diagnostics,
    "dev.pulp.gpu/health.read@1": _gpu,
    "dev.pulp.instance/read@1": _instance_read,
    "dev.pulp.logs/read@1": _logs,
    "dev.pulp.render/offline@1": _render,
    "dev.pulp.state/read@1": _state_read,
    "dev.pulp.telemetry/subscribe@1": _telemetry,
    "dev.pulp.ui/capture@1": _ui_capture,
    "dev.pulp.ui/observe@1": _ui_observe,
}
