"""The pair that changes, as an agent of either era meets it: what is listed, asked, answered and sent."""

import json

import jsonschema
import pytest
from agent_peers import MS
from gateway_bench import CONFIRM, ERAS, MINUTE, PROPOSE, YES, Changes, a_contract
from marks import promise

from assisted_benchmark.gateway.tools import select_tools
from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.outcomes import Era, Odd
from assisted_benchmark.workloads.fabric_api_faults import Act, FabricFault, FabricFaultKind

both = pytest.mark.parametrize("era", ERAS)
EXECUTED = (False, True, "accepted", "succeeded", 1)


@pytest.fixture
def changes(agent):
    return lambda **options: Changes(agent, **options)


def told(result):
    failed, content = result
    return failed, content["executed"], content["human_confirmation"]["status"], content["outcome"]


# -- what is listed


@promise("M1", "M2")
@both
def test_the_pair_is_listed_with_its_annotations_and_schemas_and_nothing_else_changes(changes, era):
    listed = changes().agent(era).listed
    writes = {name: tool for name, tool in listed.items() if tool["annotations"]["readOnlyHint"] is not True}
    assert set(writes) == {PROPOSE, CONFIRM}
    assert not any(word in name for name in listed for word in ("update", "delete", "remove"))
    for tool in writes.values():
        hints = {key: tool["annotations"][key] for key in ("readOnlyHint", "destructiveHint", "idempotentHint")}
        assert hints == {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False}
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"


@promise("M2")
def test_no_text_calls_the_token_an_activation_key_and_it_is_to_be_typed_nowhere_else(changes):
    ours = changes().agent()
    assert "activation" not in json.dumps(ours.listed).lower()
    assert "never" in ours.listed[PROPOSE]["description"]
    spec = a_contract().change("network").example.value
    _, content = ours.result(PROPOSE, ours.calls(PROPOSE, {"change_type": "network", "spec": spec}))
    assert "activation" not in json.dumps(content).lower()
    assert "never enter it anywhere else" in content["token_scope"]


@promise("M1")
def test_the_pair_is_served_only_if_its_toolset_is_named(changes):
    tools = changes().tools
    assert {tool.name for tool in select_tools(tools, "design,mutate")} == {"fabric_search_prices", PROPOSE, CONFIRM}
    for blank in (None, "", " "):
        assert not {PROPOSE, CONFIRM} & {tool.name for tool in select_tools(tools, blank)}


@pytest.mark.parametrize("change", ["connection", "network", "service-token"])
def test_the_input_schema_takes_each_example_and_no_other_shape(changes, change):
    schema = jsonschema.Draft202012Validator(changes().agent().listed[PROPOSE]["inputSchema"])
    spec = a_contract().change(change).example.value
    assert schema.is_valid({"change_type": change, "spec": spec})
    assert not schema.is_valid({"change_type": change, "spec": spec | {"other": 1}})
    assert not schema.is_valid({"change_type": "port", "spec": spec})
    assert not schema.is_valid({"change_type": change})


# -- asking, in both eras


@promise("M16", "M17", "M20")
@both
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(YES, EXECUTED, id="accept, confirm true"),
        pytest.param({"action": "accept"}, (True, False, "declined", "refused", 0), id="accept without content"),
        pytest.param(
            {"action": "accept", "content": {}}, (True, False, "declined", "refused", 0), id="accept without confirm"
        ),
        *(
            pytest.param(
                {"action": "accept", "content": {"confirm": value}},
                (True, False, "declined", "refused", 0),
                id=f"confirm {value!r}",
            )
            for value in (False, "true", 1, 1.0, None, [True])
        ),
        pytest.param({"action": "decline"}, (True, False, "declined", "refused", 0), id="decline"),
        pytest.param(
            {"action": "decline", "content": {"confirm": True}}, (True, False, "declined", "refused", 0), id="but true"
        ),
        pytest.param({"action": "cancel"}, (True, False, "cancelled", "refused", 0), id="cancel"),
        pytest.param({"action": "ACCEPT"} | YES | {"action": "yes"}, (True, False, "failed", "refused", 0), id="word"),
        pytest.param({"content": {"confirm": True}}, (True, False, "failed", "refused", 0), id="no action"),
        pytest.param(None, (True, False, "failed", "refused", 0), id="null"),
        pytest.param([], (True, False, "failed", "refused", 0), id="list"),
        pytest.param("accept", (True, False, "failed", "refused", 0), id="text"),
        pytest.param("timed_out", (True, False, "failed", "refused", 0), id="a word of ours"),
    ],
)
def test_only_an_acceptance_that_confirms_is_carried_out(changes, era, raw, expected):
    ours = changes()
    agent = ours.agent(era)
    token = agent.proposes()
    question, shown = agent.asked(token)
    assert shown["requestedSchema"]["required"] == ["confirm"]
    result = agent.replies(question, raw)
    assert (*told(result), ours.creates) == expected
    assert result[1]["token_state"] == "consumed"
    failed, again = agent.confirmed(token)
    assert (failed, again["token_state"], ours.creates) == (True, "replayed", expected[-1])


@promise("M18")
@both
def test_a_change_that_was_carried_out_is_told_with_what_the_endpoint_made(changes, era):
    ours = changes()
    agent = ours.agent(era)
    question, shown = agent.asked(agent.proposes(name="lab-2"))
    assert '"lab-2"' in shown["message"]
    failed, content = agent.replies(question, YES)
    assert (failed, content["result"]["name"], content["refused"]) == (False, "lab-2", None)
    assert content["request_sha256"] in shown["message"]
    received = {"connections.dry_run": 1, "prices.search": 1, "connections.create": 1}
    assert ours.endpoint.model.received == received


@promise("M18")
@both
@pytest.mark.parametrize(
    ("kind", "executed", "outcome"),
    [(FabricFaultKind.FAIL_BEFORE, False, "failed"), (FabricFaultKind.DROP_AFTER, None, "unresolved")],
)
def test_an_endpoint_that_fails_the_create_is_an_error_of_the_call_and_the_token_stays_consumed(
    changes, era, kind, executed, outcome
):
    ours = changes(faults=[FabricFault.parse({"kind": kind.value, "call": Act.CREATE.value, **answers(kind)})])
    agent = ours.agent(era)
    token = agent.proposes()
    question, _ = agent.asked(token)
    failed, content = agent.replies(question, YES)
    assert (failed, content["executed"], content["outcome"]) == (True, executed, outcome)
    assert agent.confirmed(token)[1]["token_state"] == "replayed"
    assert ours.creates == 1


def answers(kind):
    return {"status": 400} if kind is FabricFaultKind.FAIL_BEFORE else {}


# -- clients that cannot ask

UNABLE = pytest.mark.parametrize(
    "capabilities", [{}, {"elicitation": {"url": {}}}, {"elicitation": None}, {"sampling": {}}]
)


@promise("M16", "M17")
@UNABLE
def test_a_client_of_the_handshake_era_that_cannot_ask_is_refused(changes, capabilities):
    ours = changes()
    agent = ours.agent(capabilities=capabilities)
    result = agent.confirmed(agent.proposes())
    assert told(result) == (True, False, "unsupported_by_client", "refused")
    assert (result[1]["token_state"], ours.creates) == ("consumed", 0)


@promise("W8", "M16")
@UNABLE
def test_a_client_of_the_stateless_era_that_cannot_ask_hears_which_capability_it_needs(changes, capabilities):
    ours = changes()
    agent = ours.agent(Era.STATELESS, capabilities=capabilities)
    token = agent.proposes()
    error = agent.answer(agent.confirms(token))["error"]
    assert (error["code"], error["data"]["requiredCapabilities"]) == (-32021, {"elicitation": {"form": {}}})
    refusal = error["data"]["refusal"]
    assert (refusal["human_confirmation"]["status"], refusal["token_state"]) == ("unsupported_by_client", "consumed")
    error = agent.answer(agent.confirms(token))["result"]["structuredContent"]
    assert (error["token_state"], ours.creates) == ("replayed", 0)


@promise("M16")
@both
def test_where_the_operator_allows_it_such_a_client_changes_unasked_and_the_result_says_so(changes, era):
    ours = changes(allow_unconfirmed=True)
    agent = ours.agent(era, capabilities={})
    result = agent.confirmed(agent.proposes())
    assert (*told(result), ours.creates) == (False, True, "unsupported_by_client", "succeeded", 1)
    assert "no server-side check" in result[1]["human_confirmation"]["detail"]


@both
def test_a_client_that_can_ask_is_asked_even_where_it_need_not_be(changes, era):
    ours = changes(allow_unconfirmed=True)
    agent = ours.agent(era)
    question, _ = agent.asked(agent.proposes())
    assert told(agent.replies(question, {"action": "decline"})) == (True, False, "declined", "refused")


# -- silence


@promise("W7", "M16")
def test_silence_in_the_handshake_era_times_out_and_a_late_yes_changes_nothing(changes):
    ours = changes(wait_ns=20 * MS)
    agent = ours.agent()
    (request_id, question), _ = agent.asked(agent.proposes())
    taken_back = agent.pipes.hears()
    assert taken_back["params"] == {"requestId": question, "reason": "timed_out"}
    assert told(agent.result(CONFIRM, request_id)) == (True, False, "timed_out", "refused")
    agent.pipes.says({"jsonrpc": "2.0", "id": question, "result": YES})
    agent.answer(agent.asks("ping"))
    assert (ours.creates, len(agent.pipes.session.oddities)) == (0, 1)


@promise("M20")
def test_silence_in_the_stateless_era_times_out_and_a_late_yes_changes_nothing(changes):
    ours = changes(wait_ns=1)
    agent = ours.agent(Era.STATELESS)
    question, _ = agent.asked(agent.proposes())
    assert told(agent.replies(question, YES)) == (True, False, "timed_out", "refused")
    assert ours.creates == 0


@promise("W3", "M16")
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":"%b","error":{"code":-32603,"message":"the callback raised"}}\n',
        b'{"jsonrpc":"2.0","id":"%b","result":{"action":"accept","content":{"confirm":true,"confirm":true}}}\n',
        b'{"jsonrpc":"2.0","id":"%b","result":{"action":"accept","content":{"confirm":NaN}}}\n',
    ],
)
def test_an_answer_that_is_an_error_or_no_message_fails_the_confirmation(changes, line):
    ours = changes()
    agent = ours.agent()
    (request_id, question), _ = agent.asked(agent.proposes())
    agent.pipes.says(line % question.encode())
    assert told(agent.result(CONFIRM, request_id)) == (True, False, "failed", "refused")
    assert ours.creates == 0


# -- the state between two calls


@promise("M20")
def test_a_state_is_good_once_and_only_with_its_own_token(changes):
    ours = changes()
    agent = ours.agent(Era.STATELESS)
    first, second = agent.proposes("network"), agent.proposes()
    (_, state_1), _ = agent.asked(first)
    (_, state_2), _ = agent.asked(second)
    yes = {"inputResponses": {"question": YES}}
    for token, more in [
        (first, yes),  # missing
        (first, yes | {"requestState": ""}),
        (first, yes | {"requestState": state_1.upper() + "0"}),  # forged
        (first, yes | {"requestState": state_2}),  # foreign
        (second, yes | {"requestState": state_1}),
    ]:
        failed, content = agent.confirmed(token, **more)
        assert (failed, content["executed"], content["token_state"], ours.creates) == (True, False, "replayed", 0)
    assert told(agent.confirmed(second, requestState=state_2, **yes)) == (False, True, "accepted", "succeeded")
    assert agent.confirmed(second, requestState=state_2, **yes)[1]["token_state"] == "replayed"
    assert told(agent.confirmed(first, requestState=state_1, **yes)) == (False, True, "accepted", "succeeded")
    assert ours.creates == 2


@promise("M20")
def test_an_answer_that_came_with_the_first_call_is_not_one(changes):
    ours = changes()
    agent = ours.agent(Era.STATELESS)
    token = agent.proposes()
    asked = agent.answer(agent.confirms(token, inputResponses={"question": YES}))["result"]
    assert (asked["resultType"], ours.creates) == ("input_required", 0)


@promise("M20")
def test_a_state_without_an_answer_fails_the_confirmation(changes):
    ours = changes()
    agent = ours.agent(Era.STATELESS)
    (token, state), _ = agent.asked(agent.proposes())
    assert told(agent.confirmed(token, requestState=state)) == (True, False, "failed", "refused")
    assert ours.creates == 0


@promise("M20")
@both
def test_another_session_resumes_nothing_and_confirms_nothing(changes, era):
    ours = changes()
    agent = ours.agent(era)
    other = ours.agent(Era.STATELESS, session=("run-2", "agent-2"))
    token = agent.proposes()
    assert other.confirmed(token)[1]["token_state"] == "unknown"
    question, _ = agent.asked(token)
    failed, content = other.confirmed(token, requestState=question[1], inputResponses={"question": YES})
    assert (failed, content["executed"], ours.creates) == (True, False, 0)
    assert told(agent.replies(question, YES)) == (False, True, "accepted", "succeeded")


# -- wrong arguments


@promise("W8", "M10")
@both
@pytest.mark.parametrize("more", [{"spec": {}}, {"confirm": True}, {"change_type": "network"}])
def test_a_confirmation_takes_the_token_and_nothing_else(changes, era, more):
    ours = changes()
    agent = ours.agent(era)
    token = agent.proposes()
    failed, content = agent.result(CONFIRM, agent.calls(CONFIRM, {"token": token} | more))
    assert (failed, content["executed"], content["receipt"] is None) == (True, False, False)
    question, _ = agent.asked(token)  # the token is as good as before
    assert told(agent.replies(question, YES))[1] is True


@promise("W8", "M5")
def test_a_spec_that_does_not_fit_is_refused_with_the_place(changes):
    ours = changes()
    agent = ours.agent()
    spec = a_contract().change("connection").example.value | {"bandwidth": 200_000}
    failed, content = agent.result(PROPOSE, agent.calls(PROPOSE, {"change_type": "connection", "spec": spec}))
    assert (failed, [each["path"] for each in content["problems"]]) == (True, ["/bandwidth"])
    assert ours.endpoint.model.received == {}


@promise("M6")
def test_the_endpoints_own_error_to_a_dry_run_is_told(changes):
    ours = changes(faults=[FabricFault.parse({"kind": "fail_before", "call": "dry_run", "status": 403})])
    agent = ours.agent()
    spec = a_contract().change("connection").example.value
    failed, content = agent.result(PROPOSE, agent.calls(PROPOSE, {"change_type": "connection", "spec": spec}))
    error = content["endpoint_error"]
    assert (failed, error["status"], error["errors"][0]["code"]) == (True, 403, "EQ-3045003")


def test_an_integer_that_is_spelled_with_a_point_reaches_the_broker_as_it_was_spelled(changes):
    agent = changes().agent()
    spec = a_contract().change("connection").example.value | {"bandwidth": 50.0}
    failed, content = agent.result(PROPOSE, agent.calls(PROPOSE, {"change_type": "connection", "spec": spec}))
    assert (failed, [each["path"] for each in content["problems"]]) == (True, ["/bandwidth"])


# -- several at a time


def test_while_a_person_is_asked_the_catalogue_is_served(changes):
    agent = changes().agent()
    question, _ = agent.asked(agent.proposes())
    failed, content = agent.result("fabric_list_connections", agent.calls("fabric_list_connections", {}))
    assert (failed, content["result"]["data"]) == (False, [])
    assert told(agent.replies(question, YES))[1] is True
    failed, content = agent.result("fabric_list_connections", agent.calls("fabric_list_connections", {}))
    assert len(content["result"]["data"]) == 1


@promise("M20")
@both
def test_of_two_open_questions_each_answer_decides_its_own(changes, era):
    ours = changes()
    agent = ours.agent(era)
    one, _ = agent.asked(agent.proposes(name="one"))
    two, _ = agent.asked(agent.proposes(name="two"))
    assert agent.replies(two, YES)[1]["result"]["name"] == "two"
    assert told(agent.replies(one, {"action": "decline"})) == (True, False, "declined", "refused")
    assert ours.creates == 1


@promise("M12")
def test_of_many_confirmations_at_the_same_moment_one_asks_and_the_others_are_replays(changes):
    ours = changes()
    agent = ours.agent()
    token = agent.proposes()
    ids = {agent.confirms(token) for _ in range(50)}
    heard = [agent.pipes.hears() for _ in range(50)]
    (question,) = [each for each in heard if "method" in each]
    answered = [each for each in heard if "result" in each]
    assert {each["result"]["structuredContent"]["token_state"] for each in answered} == {"replayed"}
    (left,) = ids - {each["id"] for each in answered}
    assert told(agent.replies((left, question["id"]), YES))[1] is True
    assert ours.creates == 1


@promise("W7")
def test_the_end_of_input_in_the_middle_of_a_question_sends_nothing_and_is_on_record(changes):
    ours = changes()
    agent = ours.agent()
    (request_id, _), _ = agent.asked(agent.proposes())
    (answer,) = agent.pipes.rest()
    assert answer["id"] == request_id
    assert told(agent.sound(CONFIRM, answer["result"])) == (True, False, "failed", "refused")
    assert (ours.creates, ours.outcomes[-1]) == (0, "confirmation_failed")


@promise("M20")
def test_a_question_that_is_still_open_when_the_broker_closes_is_on_record(changes):
    ours = changes(wait_ns=MINUTE)
    agent = ours.agent(Era.STATELESS)
    agent.asked(agent.proposes())
    assert agent.pipes.rest() == []
    ours.broker.close()
    assert (ours.creates, ours.outcomes[-1]) == (0, "timed_out")


# -- lines that are no calls


@promise("W3")
def test_a_line_that_is_no_message_has_a_receipt_without_a_word_of_it(changes):
    ours = changes()
    agent = ours.agent(on_malformed=ours.refuse_malformed)
    agent.pipes.says(b'{"jsonrpc":"2.0","id":"x","method":"ping","params":{"SECRET":1,"SECRET":2}}\n')
    assert agent.pipes.hears()["error"]["code"] == -32700
    agent.pipes.rest()
    assert ours.outcomes == ["duplicate_key"]
    assert not any(b"SECRET" in line for line in ours.ledger.receipts("run-1"))


@promise("W3")
def test_a_receipt_that_cannot_be_written_does_not_end_the_session(changes):
    def broken(reason, detail):
        raise IntegrityError(Reason.LEDGER_TAMPERED, "a row was edited")

    agent = changes().agent(on_malformed=broken)
    agent.pipes.says(b"{}\n")
    assert agent.pipes.hears()["error"]["code"] == -32600
    agent.answer(agent.asks("ping"))
    kinds = [(each.kind, each.reason) for each in agent.pipes.session.oddities]
    assert kinds == [(Odd.BAD_LINE, Reason.MALFORMED_FRAME), (Odd.CALLBACK_FAILED, Reason.LEDGER_TAMPERED)]
