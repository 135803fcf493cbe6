"""The registry as tools: which there are, what they take, what they answer, and that no caller changes it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
from attrs import evolve
from marks import promise
from mcp.types import Tool
from registry_bench import LAMP, LAMP_TOOLS, PULP, PULP_TOOLS, arguments

from assisted_benchmark.capability.call import ManagementCall, OperationCall, Unfit
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry import MANAGEMENT, Authority
from assisted_benchmark.contract.closed_schema import closed_schema_faults
from assisted_benchmark.contract.json_schema import closed
from assisted_benchmark.kernel.reasons import Reason

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "capability"
PROJECTIONS = pytest.mark.parametrize("projection", [PULP_TOOLS, LAMP_TOOLS], ids=["pulp", "lamp"])


def names_of(projection: Projection) -> list[str]:
    return [tool.name for tool in projection.tools]


# --- which tools there are


@promise("C2")
def test_the_tool_of_an_operation_is_its_id_without_namespace_and_version():
    assert {each.id: PULP.tool_name(each.id) for each in PULP.operations} == {
        "dev.pulp.artifact/read@1": "pulp_control_artifact_read",
        "dev.pulp.authoring/tweaks@1": "pulp_control_authoring_tweaks",
        "dev.pulp.diagnostics/read@1": "pulp_control_diagnostics_read",
        "dev.pulp.gpu/health.read@1": "pulp_control_gpu_health_read",
        "dev.pulp.instance/read@1": "pulp_control_instance_read",
        "dev.pulp.logs/read@1": "pulp_control_logs_read",
        "dev.pulp.render/offline@1": "pulp_control_render_offline",
        "dev.pulp.runtime/evaluate@1": "pulp_control_runtime_evaluate",
        "dev.pulp.runtime/reload@1": "pulp_control_runtime_reload",
        "dev.pulp.session/control@1": "pulp_control_session_control",
        "dev.pulp.state/parameter-gesture@1": "pulp_control_state_parameter_gesture",
        "dev.pulp.state/read@1": "pulp_control_state_read",
        "dev.pulp.telemetry/subscribe@1": "pulp_control_telemetry_subscribe",
        "dev.pulp.test/input@1": "pulp_control_test_input",
        "dev.pulp.trace/control@1": "pulp_control_trace_control",
        "dev.pulp.trace/session-control@1": "pulp_control_trace_session_control",
        "dev.pulp.ui/capture@1": "pulp_control_ui_capture",
        "dev.pulp.ui/input@1": "pulp_control_ui_input",
        "dev.pulp.ui/observe@1": "pulp_control_ui_observe",
    }
    assert LAMP.tool_name("org.lamp.bulb/Blow-Up@1") == "lamp_bulb_blow_up"


@promise("C3", "C6")
def test_the_tools_are_the_management_ones_and_those_that_something_could_authorise():
    managing = [f"pulp_control_{name}" for name in ("instances", "status", "grant_request", "revoke", "cancel")]
    operating = [PULP.tool_name(each.id) for each in PULP.operations]
    absent = {"pulp_control_ui_input", "pulp_control_runtime_reload"}
    assert names_of(PULP_TOOLS) == [*managing, *(name for name in operating if name not in absent)]
    assert absent < set(operating)
    assert "pulp_control_artifact_read" in names_of(PULP_TOOLS)  # by its access list, with no grant


@promise("C1")
def test_another_products_registry_is_projected_under_its_own_names():
    assert names_of(LAMP_TOOLS) == [
        "lamp_instances",
        "lamp_status",
        "lamp_grant_request",
        "lamp_revoke",
        "lamp_cancel",
        "lamp_bulb_blow_up",
        "lamp_light_read",
        "lamp_light_set",
    ]
    assert b"pulp" not in LAMP_TOOLS.payload
    assert LAMP_TOOLS.tool("lamp_light_set").definition["inputSchema"]["properties"]["profile"]["enum"] == [
        "look",
        "touch",
    ]


@promise("C3")
def test_an_operation_is_advertised_exactly_if_there_is_a_way_to_authority():
    for each in LAMP.operations:
        for authority in Authority:
            changed = evolve(each, authority=authority, profiles=(), consent=())
            tools = Projection(evolve(LAMP, operations=(changed,))).tools
            advertised = [tool.operation for tool in tools if tool.operation is not None]
            assert advertised == ([] if authority is Authority.NONE else [changed])


@promise("C8")
def test_retired_and_outside_tools_stay_absent():
    retired = {
        "pulp_inspect_set_param": "pulp_control_state_parameter_gesture",
        "pulp_inspect_evaluate": "pulp_control_runtime_evaluate",
        "pulp_inspect_screenshot": "pulp_control_ui_capture",
    }
    outside = {"pulp_create", "pulp_screenshot", "pulp_simulate_click", "pulp_get_view_tree"}
    assert (dict(PULP.retired), set(PULP.outside)) == (retired, outside)
    assert not {*retired, *outside} & set(names_of(PULP_TOOLS))
    assert set(retired.values()) <= set(names_of(PULP_TOOLS))
    for name in (*retired, *outside):
        unfit = PULP_TOOLS.read(name, arguments())
        assert isinstance(unfit, Unfit)
        assert (unfit.reason, PULP_TOOLS.tool(name)) == (Reason.UNKNOWN_TOOL, None)


@promise("C3")
@pytest.mark.parametrize(
    "name", ["pulp_control_ui_input", "pulp_control_runtime_reload", "pulp_control_state_reed", ""]
)
def test_a_tool_that_is_not_advertised_cannot_be_called_whatever_is_sent(name):
    before = PULP_TOOLS.payload
    event = {"kind": "focus", "target_id": "t", "event": {"focused": True}}
    raw = arguments(input=event, grant_id="g", profile="develop", approved=True, authority="grant")
    unfit = PULP_TOOLS.read(name, raw)
    assert isinstance(unfit, Unfit)
    assert (unfit.reason, unfit.operation) == (Reason.UNKNOWN_TOOL, None)
    assert PULP_TOOLS.payload is before


# --- what they are


@promise("C1", "C4", "C5", "C7")
def test_the_tools_of_the_reference_registry_are_the_golden_ones():
    """One tool a line, as compact JSON: a line that changes is a tool that changed for every agent."""
    golden = (GOLDEN / "pulp.tools.jsonl").read_text(encoding="utf-8").splitlines()
    shown = [json.dumps(tool.definition, ensure_ascii=False, separators=(",", ":")) for tool in PULP_TOOLS.tools]
    assert shown == golden


@promise("C1")
@PROJECTIONS
def test_the_payload_is_made_once_and_is_the_tools(projection):
    assert json.loads(projection.payload) == [tool.definition for tool in projection.tools]
    assert projection.payload is projection.payload
    assert Projection(projection.registry).payload == projection.payload


@PROJECTIONS
def test_every_tool_is_one_for_the_official_sdk(projection):
    for tool in projection.tools:
        seen = Tool.model_validate(tool.definition)
        assert seen.input_schema["type"] == seen.output_schema["type"] == "object"
        assert seen.description


@promise("C4", "C7")
@PROJECTIONS
def test_every_schema_of_every_tool_is_closed_and_bounded(projection):
    for tool in projection.tools:
        assert closed_schema_faults(tool.definition["inputSchema"]) == []
        output = tool.definition["outputSchema"]
        # The parts of an answer have names that an operation's definitions cannot have.
        text = json.dumps({**output, "type": "object"}).replace("broker.", "broker_")
        for branch in json.loads(text)["oneOf"]:
            assert closed_schema_faults({**branch, "$defs": json.loads(text)["$defs"]}) == []
        assert jsonschema_rs.meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **output})


@promise("C5")
def test_annotations_follow_the_risk():
    reading = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
    breaking = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
    neither = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
    wanted = {"observe": reading, "sensitive": reading, "critical": breaking, "high-risk": breaking}
    seen = set()
    for tool in (*PULP_TOOLS.tools, *LAMP_TOOLS.tools):
        if tool.operation is not None:
            assert tool.definition["annotations"] == wanted.get(tool.operation.risk, neither)
            assert tool.toolset == ("observe" if tool.definition["annotations"] == reading else "control")
            seen.add(tool.operation.risk.value)
    assert seen == {"observe", "sensitive", "critical", "control", "resource", "streaming-sensitive"}
    risky = evolve(LAMP.operation("org.lamp.bulb/melt@1"), authority=Authority.OPERATION_GRANT)
    melting = Projection(evolve(LAMP, operations=(risky,))).tools[-1]
    assert (melting.operation, melting.definition["annotations"]) == (risky, breaking)


@promise("C5", "C6")
def test_only_what_lists_instances_is_for_reading_among_the_management_tools():
    hints = {tool.management: tool.definition["annotations"] for tool in PULP_TOOLS.tools if tool.management}
    assert tuple(hints) == MANAGEMENT
    assert {name for name, each in hints.items() if each["readOnlyHint"]} == {"instances", "status"}
    assert {name for name, each in hints.items() if each["destructiveHint"]} == {"revoke"}
    assert not any(each["openWorldHint"] for each in hints.values())
    assert {tool.toolset for tool in PULP_TOOLS.tools if tool.management} == {"observe", "control"}


# --- what they take


@promise("C4")
def test_a_call_with_everything_is_read_whole():
    gesture = {"normalized_value": 0.5, "idempotency_key": "k", "parameter_id": 3}
    raw = arguments(
        instance_id="one",
        input=gesture,
        request_id="r",
        grant_id="g",
        profile="develop",
        expected_state_generation=0,
        timeout_ms=300_000,
    )
    call = PULP_TOOLS.read("pulp_control_state_parameter_gesture", raw)
    assert call == OperationCall(
        operation=PULP.operation("dev.pulp.state/parameter-gesture@1"),
        instance_id="one",
        input=b'{"idempotency_key":"k","normalized_value":0.5,"parameter_id":3}',
        timeout_ms=300_000,
        request_id="r",
        grant_id="g",
        profile="develop",
        expected_state_generation=0,
        idempotency_key="k",
    )
    assert call.key("r") == "k"


@promise("C4")
def test_a_call_with_the_least_has_the_default_time_and_its_request_is_its_identity():
    call = PULP_TOOLS.read("pulp_control_state_read", arguments(instance_id="one"))
    assert call == OperationCall(
        operation=PULP.operation("dev.pulp.state/read@1"), instance_id="one", input=b"{}", timeout_ms=3_000
    )
    assert call.key("made-by-the-broker") == "made-by-the-broker"
    lamp = LAMP_TOOLS.read("lamp_light_set", arguments(input={"level": 1}))
    assert (lamp.timeout_ms, lamp.idempotency_key, lamp.key("r")) == (50, None, "r")
    keyed = LAMP_TOOLS.read("lamp_light_set", arguments(input={"level": 1, "once": "o"}))
    assert (keyed.idempotency_key, keyed.key("r")) == ("o", "o")


@promise("K1")
def test_the_same_input_has_the_same_bytes_however_it_is_spelled():
    spelled = (
        b'{ "input": {"idempotency_key": "\\u006b", "normalized_value": 5e-1, "parameter_id": 3}, "instance_id": "one"}'
    )
    plain = arguments(input={"parameter_id": 3, "normalized_value": 0.5, "idempotency_key": "k"})
    tool = "pulp_control_state_parameter_gesture"
    assert PULP_TOOLS.read(tool, spelled) == PULP_TOOLS.read(tool, plain)


REFUSED = [
    ("an unknown field", arguments(force=True), Reason.ARGUMENTS_INVALID, ""),
    ("a claim of approval", arguments(approved=True), Reason.ARGUMENTS_INVALID, ""),
    ("no instance", b'{"input": {}}', Reason.ARGUMENTS_INVALID, ""),
    ("no input", b'{"instance_id": "one"}', Reason.ARGUMENTS_INVALID, ""),
    ("an empty instance", arguments(instance_id=""), Reason.ARGUMENTS_INVALID, "/instance_id"),
    ("an instance with a space", arguments(instance_id="on e"), Reason.ARGUMENTS_INVALID, "/instance_id"),
    ("an instance beyond ASCII", arguments(instance_id="öne"), Reason.ARGUMENTS_INVALID, "/instance_id"),
    ("a long instance", arguments(instance_id="i" * 129), Reason.ARGUMENTS_INVALID, "/instance_id"),
    ("a long request", arguments(request_id="i" * 129), Reason.ARGUMENTS_INVALID, "/request_id"),
    ("a grant that is no text", arguments(grant_id=7), Reason.ARGUMENTS_INVALID, "/grant_id"),
    ("a null grant", arguments(grant_id=None), Reason.ARGUMENTS_INVALID, "/grant_id"),
    ("an unknown profile", arguments(profile="admin"), Reason.ARGUMENTS_INVALID, "/profile"),
    (
        "a generation below zero",
        arguments(expected_state_generation=-1),
        Reason.ARGUMENTS_INVALID,
        "/expected_state_generation",
    ),
    ("no time", arguments(timeout_ms=0), Reason.ARGUMENTS_INVALID, "/timeout_ms"),
    ("too much time", arguments(timeout_ms=300_001), Reason.ARGUMENTS_INVALID, "/timeout_ms"),
    ("a time with a point", arguments(timeout_ms=5.0), Reason.NON_CANONICAL_NUMBER, "/timeout_ms"),
    ("a fault in both", arguments(input={"x": 1}, force=True), Reason.ARGUMENTS_INVALID, ""),
    ("a list", b"[]", Reason.ARGUMENTS_NOT_OBJECT, ""),
    ("no JSON", b"{", Reason.MALFORMED_CALL, ""),
    ("a key twice", b'{"instance_id": "a", "instance_id": "b", "input": {}}', Reason.DUPLICATE_KEY, ""),
    ("a NUL", b'{"instance_id": "\\u0000", "input": {}}', Reason.MALFORMED_UNICODE, ""),
    ("no UTF-8", b'{"instance_id": "\xff", "input": {}}', Reason.MALFORMED_UNICODE, ""),
    ("a lone surrogate", b'{"instance_id": "\\ud800", "input": {}}', Reason.MALFORMED_UNICODE, ""),
    ("an unsafe integer", arguments(timeout_ms=2**53), Reason.UNSAFE_INTEGER, ""),
]


@promise("C4", "C17", "C18")
@pytest.mark.parametrize(("raw", "reason", "path"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_an_envelope_that_does_not_hold_is_refused_at_the_field(raw, reason, path):
    unfit = PULP_TOOLS.read("pulp_control_state_read", raw)
    assert isinstance(unfit, Unfit)
    assert (unfit.reason, unfit.faults[0].path, unfit.operation) == (reason, path, None)
    assert unfit.detail == (f"{path}: " if path else "") + unfit.faults[0].message


@promise("C4")
def test_an_input_with_an_integer_spelled_as_a_float_is_refused_at_the_field():
    unfit = PULP_TOOLS.read("pulp_control_state_read", arguments(input={"parameter_ids": [1, 2.0]}))
    assert (unfit.reason, unfit.faults[0].path) == (Reason.NON_CANONICAL_NUMBER, "/input/parameter_ids/1")
    assert unfit.operation is PULP.operation("dev.pulp.state/read@1")


def of_size(size: int) -> dict[str, str]:
    """An input of a lamp whose canonical bytes are that many."""
    return {"nobody": "x" * (size - len('{"nobody":""}'))}


@promise("C17")
def test_parameters_and_envelope_are_bounded_in_bytes():
    within = LAMP_TOOLS.read("lamp_light_read", arguments(input=of_size(200)))
    assert (within.reason, within.faults[0].path) == (Reason.ARGUMENTS_INVALID, "/input")
    beyond = LAMP_TOOLS.read("lamp_light_read", arguments(input=of_size(201)))
    assert (beyond.reason, beyond.faults[0].path, beyond.operation) == (Reason.TOO_LARGE, "/input", None)
    padded = arguments() + b" " * (2000 - len(arguments()))
    assert isinstance(LAMP_TOOLS.read("lamp_light_read", padded), OperationCall)
    assert LAMP_TOOLS.read("lamp_light_read", padded + b" ").reason is Reason.TOO_LARGE
    big = PULP_TOOLS.read("pulp_control_ui_observe", arguments(input={"selector": "s" * (512 * 1024)}))
    assert (big.reason, big.faults[0].path) == (Reason.TOO_LARGE, "/input")


@promise("C17")
def test_a_text_that_is_bounded_in_bytes_is_refused_at_its_field():
    fits = LAMP_TOOLS.read("lamp_light_set", arguments(input={"level": 1, "note": "éé"}))
    assert isinstance(fits, OperationCall)
    unfit = LAMP_TOOLS.read("lamp_light_set", arguments(input={"level": 1, "note": "éé!"}))
    assert (unfit.reason, unfit.faults[0].path) == (Reason.TOO_LARGE, "/input/note")
    assert unfit.operation is LAMP.operation("org.lamp.light/set@1")


@promise("C17")
def test_a_registry_may_allow_less_than_the_protocol():
    assert LAMP_TOOLS.read("lamp_light_read", arguments(instance_id="i" * 9)).faults[0].path == "/instance_id"
    assert LAMP_TOOLS.read("lamp_light_read", arguments(timeout_ms=501)).faults[0].path == "/timeout_ms"


# --- management tools


@promise("C6")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("instances", {}),
        ("status", {"instance_id": "one"}),
        ("grant_request", {"instance_id": "one", "profile": "inspect-readonly"}),
        ("grant_request", {"instance_id": "one", "operation_id": "dev.pulp.runtime/evaluate@1"}),
        ("revoke", {"grant_id": "g"}),
        ("cancel", {"instance_id": "one", "request_id": "r"}),
        ("cancel", {"instance_id": "one", "request_id": "r", "reason": "enough"}),
    ],
)
def test_a_management_call_is_read(name, given):
    call = PULP_TOOLS.read(f"pulp_control_{name}", json.dumps(given).encode())
    assert call == ManagementCall(name=name, arguments=given)


@promise("C6", "C18")
@pytest.mark.parametrize(
    ("name", "given", "path"),
    [
        ("instances", {"all": True}, ""),
        ("status", {}, ""),
        ("grant_request", {"instance_id": "one"}, ""),
        ("grant_request", {"instance_id": "one", "profile": "observe", "operation_id": "x"}, ""),
        ("grant_request", {"instance_id": "one", "profile": "admin"}, "/profile"),
        ("grant_request", {"instance_id": "one", "profile": "observe", "approved": True}, ""),
        ("grant_request", {"instance_id": "one", "profile": "observe", "consent": "yes"}, ""),
        ("revoke", {}, ""),
        ("revoke", {"grant_id": ""}, "/grant_id"),
        ("cancel", {"request_id": "r"}, ""),
        ("cancel", {"instance_id": "one", "request_id": "r", "reason": "x" * 1025}, "/reason"),
    ],
)
def test_a_management_call_that_does_not_fit_is_refused(name, given, path):
    unfit = PULP_TOOLS.read(f"pulp_control_{name}", json.dumps(given).encode())
    assert isinstance(unfit, Unfit)
    assert (unfit.reason, unfit.faults[0].path, unfit.operation) == (Reason.ARGUMENTS_INVALID, path, None)


# --- what they answer

SHA = "ab" * 32
SUCCESS = {
    "ok": True,
    "schema": "assisted-benchmark/operation-result@1",
    "request_id": "r",
    "receipt_id": "receipt-1",
    "operation_id": "dev.pulp.logs/read@1",
    "operation_version": 1,
    "state": "completed",
    "explanation": "",
    "result": {
        "artifact_id": "a",
        "mime_type": "application/vnd.pulp.logs+json",
        "sha256": SHA,
        "byte_count": 2,
        "entry_count": 0,
        "next_sequence": 1,
    },
    "artifacts": [
        {"artifact_id": "a", "media_type": "application/vnd.pulp.logs+json", "byte_size": 2, "sha256": SHA},
    ],
    "progress": [{"sequence": 1, "current": 1, "total": 2}, {"sequence": 2, "current": 2, "total": 2, "message": "m"}],
}
FAILURE = {
    "ok": False,
    "error": {
        "code": "completed_after_revocation",
        "message": "the grant was revoked while the host worked",
        "data": {
            "request_id": "r",
            "receipt_id": "receipt-1",
            "operation_id": "dev.pulp.logs/read@1",
            "state": "completed_after_revocation",
            "explanation": "",
            "may_have_applied": True,
            "faults": [{"path": "/input", "message": "m"}],
            "artifacts": SUCCESS["artifacts"],
            "progress": SUCCESS["progress"],
        },
    },
}
LOGS = "pulp_control_logs_read"


@promise("C7")
def test_success_and_failure_fit_the_output_schema():
    assert PULP_TOOLS.answer_faults(LOGS, SUCCESS) is None
    assert PULP_TOOLS.answer_faults(LOGS, FAILURE) is None
    for tool in (*PULP_TOOLS.tools, *LAMP_TOOLS.tools):
        bare = {"ok": False, "error": {"code": "malformed", "message": "", "data": {}}}
        assert tool.answers.faults(bare) == ()
        assert tool.answers.faults({}) != ()


@promise("C7")
@pytest.mark.parametrize("key", sorted(SUCCESS))
def test_a_success_without_one_of_its_parts_is_none(key):
    unfit = PULP_TOOLS.answer_faults(LOGS, {name: each for name, each in SUCCESS.items() if name != key})
    assert unfit.reason is Reason.RESULT_INVALID


@promise("C7", "C17")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"more": 1}, ""),
        ({"schema": "assisted-benchmark/operation-result@2"}, ""),
        ({"operation_id": "dev.pulp.state/read@1"}, ""),
        ({"operation_version": 2}, ""),
        ({"state": "completed_after_revocation"}, ""),
        ({"explanation": "x" * 1025}, "/explanation"),
        ({"request_id": "r" * 129}, "/request_id"),
        ({"result": {**SUCCESS["result"], "entry_count": 2001}}, "/result/entry_count"),
        ({"result": {**SUCCESS["result"], "path": "/etc"}}, "/result"),
        ({"artifacts": SUCCESS["artifacts"] * 65}, "/artifacts"),
        ({"artifacts": [{**SUCCESS["artifacts"][0], "sha256": "AB" * 32}]}, "/artifacts/0/sha256"),
        ({"artifacts": [{**SUCCESS["artifacts"][0], "path": "/etc"}]}, "/artifacts/0"),
        ({"progress": [{"sequence": 0, "current": 0, "total": 1}]}, "/progress/0/sequence"),
        ({"progress": [{"sequence": 1, "current": 0, "total": 1}] * 257}, "/progress"),
    ],
)
def test_a_success_that_says_something_else_is_refused_at_the_field(change, path):
    unfit = PULP_TOOLS.answer_faults(LOGS, {**SUCCESS, **change})
    assert (unfit.reason, unfit.faults[0].path) == (Reason.RESULT_INVALID, path)


@promise("C7")
def test_a_hosts_result_is_held_to_the_registry_before_anything_is_called_completed():
    operation = PULP.operation("dev.pulp.logs/read@1")
    assert PULP_TOOLS.result_faults(operation, SUCCESS["result"]) is None
    for change in ({"mime_type": "text/html"}, {"sha256": "0"}, {"next_sequence": "1"}, {"secret": 1}):
        unfit = PULP_TOOLS.result_faults(operation, {**SUCCESS["result"], **change})
        assert unfit.reason is Reason.RESULT_INVALID
        assert unfit.faults[0].path in ("", f"/{next(iter(change))}")


@promise("C6")
@pytest.mark.parametrize(
    ("name", "status", "data"),
    [
        ("instances", "completed", {"instances": []}),
        (
            "status",
            "completed",
            {
                "instance": {
                    "instance_id": "one",
                    "registration_id": "r",
                    "publication_id": "p",
                    "state_generation": 0,
                    "capabilities": ["dev.pulp.state/read@1"],
                }
            },
        ),
        ("grant_request", "granted", {"grant_id": "g", "expires_at_ms": 1, "operations": ["dev.pulp.state/read@1"]}),
        ("revoke", "revoked", {"grant_id": "g"}),
        ("cancel", "cancellation_requested", {"request_id": "r"}),
    ],
)
def test_what_a_management_tool_answers_is_typed_too(name, status, data):
    answer = {"ok": True, "status": status, "data": data}
    tool = f"pulp_control_{name}"
    assert PULP_TOOLS.answer_faults(tool, answer) is None
    assert PULP_TOOLS.answer_faults(tool, {**answer, "status": "done"}).reason is Reason.RESULT_INVALID
    assert PULP_TOOLS.answer_faults(tool, {**answer, "data": {**data, "more": 1}}).reason is Reason.RESULT_INVALID


def test_closing_a_projected_schema_again_changes_nothing_that_it_admits():
    schema = PULP_TOOLS.tool("pulp_control_state_read").definition["inputSchema"]
    assert closed(schema) == schema
