"""What the operations of the reference registry do that change an instance, and what they answer.

An operation either acts and answers, or fails and changes nothing. Whatever answers with a receipt moves the state
on by one generation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.workloads.plugin_host_instance import NODES, Live
from assisted_benchmark.workloads.plugin_host_task import Done, Failed, Task, invalid

_LEASED_FOR_MS: Final = 60_000
_SUM: Final = re.compile(r"\s*(\d{1,9})\s*\+\s*(\d{1,9})\s*")


def _session_control(task: Task) -> Done | Failed:
    live, client = task.live, task.owner.client
    held = live.lease is not None and live.lease[0] == client
    match task.input:
        case {"action": "acquire"}:
            if live.lease is not None and not held:
                return Failed(Reason.RESOURCE_EXHAUSTED.value, "another client has the lease")
            live.leases += 1
            live.lease = (client, f"lease-{live.leases}")
        case {"action": "renew" | "release"}:
            if not held:
                return Failed(Reason.NOT_FOUND.value, "the client has no lease")
        case _:
            return invalid("an action is acquire, renew or release")
    lease_id = "" if live.lease is None else live.lease[1]
    released = task.input["action"] == "release"
    if released:
        live.lease = None
    return task.receipt(lease_id=lease_id, expires_at_ms=task.now_ms + (0 if released else _LEASED_FOR_MS))


def _ui_input(task: Task) -> Done | Failed:
    match task.input:
        case {"kind": "pointer" | "keyboard" | "focus", "target_id": str(target), "event": dict()}:
            return task.receipt(applied=any(each.id == target for each in NODES))
    return invalid("an event of a pointer, a keyboard or the focus goes to a node")


def _trace_control(task: Task) -> Done | Failed:
    live = task.live
    told: dict[str, Json] = {}
    applied = True
    match task.input:
        case {"action": "motion-start-trace", "metrics": [_, *_]}:
            live.traces += 1
            live.tracing.add(live.traces)
            told = {"trace_id": live.traces}
        case {"action": "motion-stop-trace", "trace_id": int(trace)}:
            applied = trace in live.tracing
            live.tracing.discard(trace)
        case {"action": "motion-scrub-to", "frame": int(frame)}:
            live.playhead = frame
            told = {"emitted_count": 0, "playhead_frame": frame, "playing": False, "truncated": False}
        case {"action": "motion-play" | "motion-pause" as action}:
            playing = action == "motion-play"
            told = {"emitted_count": int(playing), "playhead_frame": live.playhead, "playing": playing}
            told["truncated"] = False
        case {"action": "motion-sample-cost", "maximum_samples": int(most)}:
            told = {"redacted": True, "samples": [_cost(frame, live) for frame in range(min(most, 3))]}
        case {
            "action": "performance-enable-tracking"
            | "audio-enable-metering"
            | "motion-enable-cost"
            | "motion-disable-cost"
        }:
            pass
        case _:
            return invalid("that is no action of a trace")
    return task.receipt(action=task.input["action"], applied=applied, **told)


def _cost(frame: int, live: Live) -> Json:
    return {
        "frame": frame,
        "t": frame / 64,
        "render_pass_duration_ms": 0.25,
        "dirty_rect_area_px": 1600,
        "dirty_rect_count": 1,
        "active_trace_ids": sorted(live.tracing)[:32],
    }


def _trace_session(task: Task) -> Done | Failed:
    live = task.live
    match task.input:
        case {"action": "start"}:
            live.session_tracing = True
            return Done({"active": True, "compiled_in": True})
        case {"action": "stop"} if live.session_tracing:
            live.session_tracing = False
            return Done({"active": False, "trace_bytes": 4096})
        case {"action": "stop"}:
            return Failed(Reason.NOT_FOUND.value, "no trace session is active")
    return invalid("a trace session is started or stopped")


def _gesture(task: Task) -> Done | Failed:
    match task.input:
        case {"parameter_id": int(parameter_id), "normalized_value": int() | float() as value} if 0 <= value <= 1:
            if parameter_id not in task.live.normalized:
                return Failed(Reason.NOT_FOUND.value, "there is no such parameter")
            task.live.normalized[parameter_id] = value
            return task.receipt(applied=True, state_generation=task.live.generation + 1)
    return invalid("a gesture needs `parameter_id` and a `normalized_value` from 0 to 1")


def _test_input(task: Task) -> Done | Failed:
    match task.input:
        case {"sequence": int(sequence), "kind": "note-on" | "note-off" | "transport"}:
            if sequence <= task.live.input_sequence:
                return Failed(Reason.OUT_OF_ORDER.value, "a later input has been taken")
            task.live.input_sequence = sequence
            return task.receipt(accepted_sequence=sequence)
    return invalid("a test input is a note or the transport, with its sequence")


def _tweaks(task: Task) -> Done | Failed:
    match task.input:
        case {"changes": dict(changes)} if changes:
            task.live.tweaks |= changes
            return task.receipt(generation=task.live.generation + 1)
    return invalid("tweaks need changes")


def _reload(task: Task) -> Done | Failed:
    match task.input:
        case {"source_revision": str()}:
            task.live.reloads += 1
            return task.receipt(generation=task.live.generation + 1, completed=True)
    return invalid("a reload needs `source_revision`")


def _evaluate(task: Task) -> Done | Failed:
    match task.input:
        case {"source": str(source), "timeout_ms": int()}:
            added = _SUM.fullmatch(source)
            value = int(added[1]) + int(added[2]) if added else None
            return task.receipt(result_json=canonical_bytes({"value": value}).decode(), completed=True)
    return invalid("an evaluation needs `source` and `timeout_ms`")


CHANGES: Final[dict[str, Callable[[Task], Done | Failed]]] = {
    "dev.pulp.authoring/tweaks@1": _tweaks,
    "dev.pulp.runtime/evaluate@1": _evaluate,
    "dev.pulp.runtime/reload@1": _reload,
    "dev.pulp.session/control@1": _session_control,
    "dev.pulp.state/parameter-gesture@1": _gesture,
    "dev.pulp.test/input@1": _test_input,
    "dev.pulp.trace/control@1": _trace_control,
    "dev.pulp.trace/session-control@1": _trace_session,
    "dev.pulp.ui/input@1": _ui_input,
}
