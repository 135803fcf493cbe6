"""A registry's tools as an agent of either era meets them: what is listed, how a call ends, what nothing can claim."""

import pytest
from agent_peers import MS, a_tool
from capability_bench import EVALUATE, GESTURE, INPUTS, PROJECTION, PULP, STATE, STATE_READ, an_instance
from marks import promise
from operating_bench import ERAS, Held, Operating

from assisted_benchmark.capability.ports import Answer, Unavailable, Verdict, Word
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.tools import select_tools
from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.kernel.strict_json import MIB
from assisted_benchmark.wire.outcomes import Odd

both = pytest.mark.parametrize("era", ERAS)
READ_TOOL = PULP.tool_name(STATE_READ)
OLD = ("pulp_inspect_set_param", "pulp_inspect_evaluate", "pulp_inspect_screenshot")
OUTSIDE = ("pulp_create", "pulp_screenshot", "pulp_simulate_click", "pulp_get_view_tree")
NEVER_ADVERTISED = ("pulp_control_ui_input", "pulp_control_runtime_reload")


@pytest.fixture
def operating(agent):
    return lambda **options: Operating(agent, **options)


# -- what is listed


@promise("C4", "C5", "W1")
@both
def test_every_advertised_tool_is_listed_as_the_registry_has_it(operating, era):
    listed = operating().agent(era).listed
    assert list(listed.values()) == [tool.definition for tool in PROJECTION.tools]
    for tool in PROJECTION.tools:
        schema = listed[tool.name]["inputSchema"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        if tool.operation:
            assert set(schema["properties"]) == {
                "instance_id",
                "input",
                "request_id",
                "grant_id",
                "profile",
                "expected_state_generation",
                "timeout_ms",
            }


@promise("C3", "C8")
@both
@pytest.mark.parametrize("name", [*OLD, *OUTSIDE, *NEVER_ADVERTISED])
def test_a_legacy_name_is_neither_listed_nor_called(operating, era, name):
    ours = operating()
    agent = ours.agent(era)
    assert name not in agent.listed
    answer = agent.answer(agent.calls(name, {"instance_id": "instance-1", "input": {}}))
    assert answer["error"]["code"] == -32602
    assert (ours.bench.executed, ours.bench.receipts(), ours.world.steps) == ({}, [], [])


@promise("C8")
def test_what_took_a_legacy_tools_place_is_listed(operating):
    assert {new for old, new in PULP.retired if old in OLD} == {
        "pulp_control_state_parameter_gesture",
        "pulp_control_runtime_evaluate",
        "pulp_control_ui_capture",
    }
    assert {new for _, new in PULP.retired} <= operating().agent().listed.keys()


@promise("C5", "C18")
def test_what_does_more_than_read_is_served_only_if_it_is_named(operating):
    ours = operating()
    reading = select_tools(ours.tools)
    assert {tool.name for tool in reading} == {
        tool.name for tool in PROJECTION.tools if tool.definition["annotations"]["readOnlyHint"]
    }
    agent = ours.agent(tools=reading)
    answer = agent.answer(agent.operates(GESTURE, INPUTS[GESTURE]))
    assert (answer["error"]["code"], ours.bench.executed) == (-32602, {})
    assert select_tools(ours.tools, "observe,control") == ours.tools


# -- how a call ends


@promise("C7", "W9")
@both
def test_a_success_is_told_whole(operating, era):
    ours = operating()
    content = ours.agent(era).operated(STATE_READ, request_id="r-1")
    (receipt_id,) = {each["id"] for each in ours.bench.receipts() if each["tool"] == STATE_READ}
    assert content == {
        "ok": True,
        "schema": "assisted-benchmark/operation-result@1",
        "request_id": "r-1",
        "receipt_id": receipt_id,
        "operation_id": STATE_READ,
        "operation_version": 1,
        "state": "completed",
        "explanation": "",
        "result": STATE,
        "artifacts": [],
        "progress": [],
    }


@promise("C4", "C7", "W8")
@both
@pytest.mark.parametrize(
    ("arguments", "reason", "code"),
    [
        pytest.param({"approved": True}, "arguments_invalid", "not_authorised", id="unknown field"),
        pytest.param({"input": {"approved": True}}, "arguments_invalid", "not_authorised", id="unknown input field"),
        pytest.param(
            {"input": {"include_catalog": 1}}, "arguments_invalid", "not_authorised", id="input of another type"
        ),
        pytest.param({"input": None}, "arguments_invalid", "not_authorised", id="input null"),
        pytest.param({"timeout_ms": 300_001}, "arguments_invalid", "not_authorised", id="timeout above the bound"),
        pytest.param({"timeout_ms": 1e3}, "non_canonical_number", "malformed", id="integer with a point"),
        pytest.param({"profile": "admin"}, "arguments_invalid", "not_authorised", id="no such profile"),
        pytest.param({"expected_state_generation": -1}, "arguments_invalid", "not_authorised", id="generation below 0"),
        pytest.param({"instance_id": "instance-2"}, "instance_not_found", "not_authorised", id="no such instance"),
        pytest.param({"grant_id": "mine"}, "unknown_grant", "not_authorised", id="no such grant"),
        pytest.param({"profile": "inspect-readonly"}, "not_granted", "not_authorised", id="profile without it"),
    ],
)
def test_what_is_refused_is_an_error_result_with_a_coarse_code_and_a_receipt(operating, era, arguments, reason, code):
    ours = operating()
    agent = ours.agent(era)
    arguments = {"instance_id": "instance-1", "input": {}, **arguments}
    error = agent.told(READ_TOOL, agent.calls(READ_TOOL, arguments))["error"]
    assert (error["code"], error["data"]["may_have_applied"], ours.refusals) == (code, False, [reason])
    assert [each["id"] for each in ours.bench.receipts() if each["kind"] == "decision"] == [error["data"]["receipt_id"]]
    assert ours.bench.executed == {}


@promise("W8")
@both
@pytest.mark.parametrize("arguments", [[], "x", 1, None])
def test_arguments_that_are_no_object_are_no_call(operating, era, arguments):
    ours = operating()
    agent = ours.agent(era)
    answer = agent.answer(agent.asks("tools/call", name=READ_TOOL, arguments=arguments))
    assert (answer["error"]["code"], ours.bench.receipts()) == (-32602, [])


@promise("C7", "C25")
@both
@pytest.mark.parametrize(
    ("end", "state", "code", "may"),
    [
        ("failed", "failed", "unavailable", False),
        ("lost", "unknown_needs_refresh", "unavailable", True),
        ("nonsense", "unknown_needs_refresh", "unavailable", True),
        ("gone", "completed_after_revocation", "not_authorised", True),
    ],
)
def test_what_did_not_simply_complete_is_an_error_with_its_terminal_receipt(operating, era, end, state, code, may):
    ours = operating()
    world = ours.world

    def execute(claimed, envelope):
        if end == "lost":
            return Uncertain(Reason.OUTCOME_UNKNOWN, "the connection was lost", ours.bench.clock.now())
        if end == "gone":
            world.live = (an_instance(publication="publication-2"),)
            return ours.bench.execute(claimed, envelope)
        return world.ended(b"{}", Word.FAILED if end == "failed" else Word.COMPLETED)

    world.execute = execute
    error = ours.agent(era).operated(STATE_READ, request_id="r-1")["error"]
    assert (error["code"], error["data"]["state"], error["data"]["may_have_applied"]) == (code, state, may)
    assert (error["data"]["request_id"], ours.bench.groups(), ours.bench.executed) == ("r-1", [state], {STATE_READ: 1})


@promise("C24", "C25")
@both
def test_a_call_that_is_made_again_is_the_same_operation(operating, era):
    ours = operating()
    agent = ours.agent(era)
    first = agent.operated(GESTURE, INPUTS[GESTURE])
    assert agent.operated(GESTURE, INPUTS[GESTURE]) == first
    conflict = agent.operated(GESTURE, INPUTS[GESTURE] | {"normalized_value": 0.1})["error"]
    assert (conflict["code"], ours.bench.executed) == ("spent", {GESTURE: 1})


@promise("C6")
@both
def test_the_management_tools_tell_of_instances_and_issue_and_revoke(operating, era):
    ours = operating()
    agent = ours.agent(era)
    (instance,) = agent.manages("instances")["data"]["instances"]
    assert agent.manages("status", instance_id="instance-1")["data"] == {"instance": instance}
    granted = agent.manages("grant_request", instance_id="instance-1", profile="observe")["data"]
    assert agent.operated(STATE_READ, grant_id=granted["grant_id"])["ok"] is True
    assert agent.manages("revoke", grant_id=granted["grant_id"])["status"] == "revoked"
    assert agent.operated(STATE_READ, grant_id=granted["grant_id"])["ok"] is False
    both_named = {"profile": "observe", "operation_id": STATE_READ}
    assert agent.manages("grant_request", instance_id="instance-1", **both_named)["error"]["code"] == "not_authorised"
    assert ours.refusals[-1] == "arguments_invalid"


@promise("W8")
def test_an_answer_that_does_not_fit_its_schema_is_not_told(operating):
    ours = operating(instances=tuple(an_instance(f"instance-{number}") for number in range(257)))
    agent = ours.agent()
    answer = agent.answer(agent.calls("pulp_control_instances", {}))
    assert answer["error"] == {"code": -32603, "message": "the tool failed"}
    (odd,) = agent.pipes.session.oddities
    assert (odd.kind, odd.reason) == (Odd.CALLBACK_FAILED, Reason.RESULT_INVALID)


@promise("W3")
def test_an_envelope_has_twice_the_room_of_other_lines_and_no_more(operating):
    agent = operating().agent(limits=Limits(line=PULP.bounds.envelope_bytes))
    assert agent.operated(STATE_READ, {"more": "x" * MIB})["error"]["code"] == "malformed"  # of the parameters' bound
    agent.operates(STATE_READ, {"more": "x" * 2 * MIB})
    assert agent.pipes.hears()["error"]["data"] == {"reason": "too_large"}


@promise("W3")
def test_a_line_that_is_no_message_has_a_receipt(operating):
    ours = operating()
    agent = ours.agent(on_malformed=ours.broker.refuse_malformed)
    agent.pipes.says(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1,"a":2}}\n')
    assert agent.pipes.hears()["error"]["code"] == -32700
    assert agent.pipes.rest() == []
    assert ours.refusals == ["duplicate_key"]


@promise("C10", "W7")
@both
def test_the_time_that_a_call_waits_for_its_turn_is_its_own(operating, era):
    ours = operating(clock=ManualClock())
    agent = ours.agent(era, limits=Limits(calls=1))
    held = Held(ours, Word.COMPLETED)
    first = agent.operates(STATE_READ)
    held.wait()
    second = agent.operates(GESTURE, INPUTS[GESTURE], timeout_ms=100)
    agent.answer(agent.asks("tools/list"))  # the call before it has come in
    ours.bench.clock.advance(100 * MS)
    held.let_go()
    assert agent.told(READ_TOOL, first)["ok"] is True
    error = agent.told(PULP.tool_name(GESTURE), second)["error"]
    assert (error["code"], ours.refusals, ours.bench.executed) == (
        "unavailable",
        ["deadline_exceeded"],
        {STATE_READ: 1},
    )


# -- consent


@promise("C18", "C20")
@both
def test_a_critical_operation_is_never_granted_by_the_way(operating, era):
    ours = operating()
    error = ours.agent(era).operated(EVALUATE, INPUTS[EVALUATE])["error"]
    assert error["code"] == "not_authorised"
    assert "broker-owned, single-use" in error["message"]
    assert "no request was sent" in error["message"]
    assert (ours.person.prompts, ours.grants, ours.bench.executed) == ([], 0, {})


@promise("C18")
@both
@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"elicitation": {}},
        {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
        {"experimental": {"consent": {"approved": True}}, "consent": True},
    ],
)
def test_nothing_that_a_client_declares_sends_or_answers_creates_a_grant(operating, era, capabilities):
    ours = operating(policies=())
    ours.person.decide = lambda prompt: Answer(prompt.id, Verdict.DENIED)
    agent = ours.agent(era, capabilities=capabilities)
    yes = {"action": "accept", "content": {"confirm": True, "approved": True}}

    def asks_for(name, arguments, **more):
        """The only line that comes is the refusal: nobody is asked anything through the client."""
        request_id = agent.asks("tools/call", name=name, arguments=arguments, **more)
        content = agent.told(name, request_id)
        assert content["ok"] is False
        return content["error"]["code"]

    read = {"instance_id": "instance-1", "input": {}}
    wanted = {"instance_id": "instance-1", "operation_id": STATE_READ}
    for answered in ("ask-1", "question", 1, 2, 3):
        agent.pipes.says({"jsonrpc": "2.0", "id": answered, "result": yes})
    assert asks_for(READ_TOOL, read) == "not_authorised"
    decision = ours.person.prompts[0].id
    claims = ({"approved": True}, {"consent": decision}, {"decision": decision}, {"_meta": {"approved": True}})
    for claim in claims:
        asks_for(READ_TOOL, read | claim)
        asks_for("pulp_control_grant_request", wanted | claim)
    assert ours.refusals == ["consent_required", *["arguments_invalid"] * 8]
    assert asks_for(READ_TOOL, read | {"grant_id": decision}) == "not_authorised"
    if agent.stateless:
        resumed = {"requestState": decision, "inputResponses": {"question": yes, "consent": yes}}
        assert asks_for(READ_TOOL, read, **resumed) == "not_authorised"
        assert asks_for("pulp_control_grant_request", wanted, **resumed) == "not_authorised"
    assert (ours.grants, ours.bench.executed, ours.bench.groups()) == (0, {}, [])


@promise("C18")
@both
def test_an_approval_that_a_client_replays_from_an_earlier_decision_is_none(operating, era):
    ours = operating(policies=())
    agent = ours.agent(era)
    granted = agent.manages("grant_request", instance_id="instance-1", operation_id=EVALUATE)["data"]["grant_id"]
    decision = ours.person.prompts[0].id
    ours.person.decide = lambda prompt: Answer(decision, Verdict.APPROVED)
    other = ours.agent(era, session=("run-1", "agent-2"))
    assert other.operated(EVALUATE, INPUTS[EVALUATE], grant_id=granted)["error"]["code"] == "not_authorised"
    assert (ours.grants, ours.bench.executed) == (1, {})
    assert agent.operated(EVALUATE, INPUTS[EVALUATE], grant_id=granted)["ok"] is True


# -- what the session is told


@both
def test_the_instructions_name_the_tools_that_are_served_and_no_others(operating, era):
    ours = operating()
    for tools in (ours.tools, select_tools(ours.tools)):
        pipes = ours.agent(era, tools=tools).pipes
        said = pipes.session._service.face.instructions
        served = {tool.name for tool in tools}
        assert {word for word in said.split() if word.startswith("pulp_control_")} == served & {
            PULP.management_tool(name) for name in ("instances", "grant_request", "cancel")
        }


def test_a_host_that_cannot_be_reached_is_told_as_that(operating):
    ours = operating()
    ours.world.fails["connect"] = Unavailable(Reason.SERVER_UNAVAILABLE, "no host")
    agent = ours.agent(tools=(*ours.tools, a_tool("other")))
    assert agent.operated(STATE_READ)["error"]["code"] == "unavailable"
    assert agent.manages("instances")["error"]["code"] == "unavailable"
    assert ours.refusals == ["client_unavailable", "client_unavailable"]
