"""The tools of a contract's servers before an agent: every call is the broker's to decide, and every end is told."""

import json
import threading
from types import SimpleNamespace

import pytest
from agent_peers import ask, call, cancel
from attrs import evolve
from marks import promise
from served_bench import APPROVE, CLICK, HOLD, SERIES, Client, a_case, played

from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.held import HeldCalls
from assisted_benchmark.gateway.live_tools import live_tools
from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import REASONS, Coarse, Reason
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.suite.live.scenario import Reveal, Visibility
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.server_side import CallCancelled, Passed, ToolProblem

CHANGED = "notifications/tools/list_changed"
ERAS = pytest.mark.parametrize("stateless", [False, True], ids=["handshake", "stateless"])


def decisions(ended):
    """The reason of every decision's receipt, in order."""
    receipts = [json.loads(line) for line in ended.receipts]
    return [each["reason"] for each in receipts if each["kind"] == "decision"]


def held_back(served):
    """Events of the next turn: it sets the first once it has begun, and goes on once the second is set."""
    entered, leave = threading.Event(), threading.Event()
    arrives = served._arrives

    def held():
        entered.set()
        leave.wait()
        return arrives()

    served._arrives = held
    return entered, leave


# -- over a case


@promise("W15")
@ERAS
def test_every_tool_of_the_contract_is_listed_as_pinned_but_for_its_name(tmp_path, stateless):
    case = a_case(tmp_path)
    listed = []

    def use(served):
        with Client(served, stateless=stateless) as client:
            listed.extend(client.asks("tools/list")["result"]["tools"])

    played(case, use)
    pinned = [
        tool.definition.value | {"name": f"{server.id}__{tool.name}"}
        for server in case.plan.policy.contract.servers
        for tool in server.tools
    ]
    assert listed == pinned


@promise("W1", "W15", "L15a", "W17")
@ERAS
def test_a_client_plays_the_plan_and_hears_the_servers_themselves(tmp_path, stateless):
    heard, turns = [], []

    def use(served):
        with Client(served, stateless=stateless) as client:
            heard.extend([client.calls(SERIES, {}), client.calls(CLICK, APPROVE), client.calls(CLICK, HOLD)])
        turns.extend(served.turns)

    ended = played(a_case(tmp_path), use, durability="memory", expect_identical=True)
    result = ended.result
    assert (result.verdict, result.proposed, result.admitted, dict(result.calls)) == (
        Verdict.PASSED,
        3,
        2,
        {"lba": 1, "synthetic-ui": 1},
    )
    assert decisions(ended) == ["admitted", "admitted", "already_selected"]
    *passed_on, refused = heard
    for told, turn in zip(passed_on, turns, strict=False):
        own = {key: value for key, value in told.items() if key not in ("resultType", "_meta")}
        assert own == json.loads(turn.result)
    assert refused["isError"]
    told = refused["structuredContent"]
    assert (told["error"], sorted(told)) == ("spent", ["error", "receiptId"])
    assert json.loads(refused["content"][0]["text"]) == told
    assert told["receiptId"] in {json.loads(line)["id"] for line in ended.receipts}


@promise("W17")
def test_the_same_call_again_is_decided_again_every_time(tmp_path):
    def use(served):
        with Client(served) as client:
            for _ in range(5):
                client.calls(SERIES, {})

    ended = played(a_case(tmp_path), use, expect_identical=True)
    assert decisions(ended) == ["admitted", *["replayed"] * 4]
    assert dict(ended.result.calls) == {"lba": 1, "synthetic-ui": 0}


@promise("L15a")
@pytest.mark.parametrize(("reveal", "said"), [(Reveal.COARSE, "not_authorised"), (Reveal.REASON, "arguments_altered")])
def test_the_exact_reason_is_told_only_where_the_scenario_reveals_it(tmp_path, reveal, said):
    heard = []

    def use(served):
        with Client(served) as client:
            client.calls(SERIES, {})
            heard.append(client.calls(CLICK, APPROVE | {"taskId": "t-2"})["structuredContent"]["error"])

    ended = played(evolve(a_case(tmp_path), reveal=reveal), use, expect_identical=True)
    assert (heard, decisions(ended)) == ([said], ["admitted", "arguments_altered"])


@promise("W8", "W17")
@ERAS
@pytest.mark.parametrize(
    ("call", "reason"),
    [
        pytest.param({"name": "lba__nothing", "arguments": {}}, "unknown_tool", id="a tool that no server has"),
        pytest.param({"name": SERIES, "arguments": []}, "malformed_call", id="no arguments"),
        pytest.param({"arguments": {}}, "malformed_call", id="no name"),
    ],
)
def test_a_call_that_can_be_nobodys_is_a_wrong_request_and_leaves_its_receipt(tmp_path, stateless, call, reason):
    heard = []

    def use(served):
        with Client(served, stateless=stateless) as client:
            error = client.asks("tools/call", **call)["error"]
            heard.append((error["code"], error["data"]))

    ended = played(a_case(tmp_path), use, expect_identical=True)
    assert (decisions(ended), heard) == ([reason], [(-32602, {"reason": reason})])
    assert (ended.result.proposed, ended.result.refusals) == (1, ((reason, 1),))


@promise("W3", "W4", "W17")
def test_a_call_with_an_id_that_is_in_flight_is_refused_once_and_leaves_its_receipt(tmp_path):
    def use(served):
        with Client(served) as client:
            entered, leave = held_back(served)
            first = client.sends("tools/call", name=SERIES, arguments={})
            entered.wait()
            client.pipes.says(call(first, CLICK, APPROVE))
            refused = client.pipes.hears()
            assert (refused["id"], refused["error"]["data"]) == (first, {"reason": "duplicate_request_id"})
            leave.set()
            heard = client.pipes.hears()  # the answer of the first, and of nobody else
            assert (heard["id"], "content" in heard["result"]) == (first, True)

    ended = played(a_case(tmp_path), use, expect_identical=True)
    assert decisions(ended) == ["admitted", "duplicate_request_id"]
    assert (ended.result.proposed, dict(ended.result.calls)) == (2, {"lba": 1, "synthetic-ui": 0})


@promise("W15")
@ERAS
def test_with_visibility_open_only_what_the_step_allows_is_listed_and_what_is_not_is_refused_all_the_same(
    tmp_path, stateless
):
    listed, heard = [], []

    def use(served):
        with Client(served, stateless=stateless) as client:
            listed.append(client.names())
            heard.append(client.calls(CLICK, APPROVE)["structuredContent"]["error"])
            for name, arguments in ((SERIES, {}), (CLICK, APPROVE)):
                client.calls(name, arguments)
                if not stateless:
                    assert client.pipes.hears()["method"] == CHANGED
                listed.append(client.names())

    ended = played(evolve(a_case(tmp_path), visibility=Visibility.OPEN), use, expect_identical=True)
    assert listed == [[SERIES], [CLICK], []]
    assert (heard, decisions(ended)) == (["not_authorised"], ["out_of_order", "admitted", "admitted"])


def listens(client, **wanted):
    """Open a subscription; its id, once it is acknowledged."""
    number = client.sends("subscriptions/listen", notifications=wanted)
    heard = client.pipes.hears()
    subscription = {"io.modelcontextprotocol/subscriptionId": number}
    expected = {"notifications": wanted, "_meta": subscription}
    assert (heard["method"], heard["params"]) == ("notifications/subscriptions/acknowledged", expected)
    return number


@promise("W1", "W15")
def test_a_client_of_the_handshake_era_is_told_when_what_is_open_has_changed(tmp_path):
    def use(served):
        with Client(served) as client:
            client.calls(CLICK, APPROVE)  # refused: nothing has changed
            client.calls(SERIES, {})
            assert client.pipes.hears() == {"jsonrpc": "2.0", "method": CHANGED, "params": {}}
            client.calls(CLICK, APPROVE)
            assert [each["method"] for each in client.pipes.rest()] == [CHANGED]

    played(evolve(a_case(tmp_path), visibility=Visibility.OPEN), use)


@promise("W1", "W15")
def test_a_client_of_the_stateless_era_is_told_by_the_subscriptions_that_want_it_until_it_cancels_them(tmp_path):
    def use(served):
        with Client(served, stateless=True) as client:
            first = listens(client, toolsListChanged=True)
            listens(client)
            client.calls(SERIES, {})
            told = client.pipes.hears()
            assert (told["method"], told["params"]) == (
                CHANGED,
                {"_meta": {"io.modelcontextprotocol/subscriptionId": first}},
            )
            again = client.pipes
            again.says(ask(first, "subscriptions/listen", notifications={}, **client.envelope))
            assert again.hears()["error"]["data"] == {"reason": "duplicate_request_id"}
            again.says(cancel(first))
            client.calls(CLICK, APPROVE)
            assert again.rest() == []

    played(evolve(a_case(tmp_path), visibility=Visibility.OPEN), use)


def test_subscriptions_are_bounded(tmp_path):
    def use(served):
        with Client(served, stateless=True, limits=Limits(calls=1, listeners=1)) as client:
            first = listens(client)
            assert client.asks("subscriptions/listen", notifications={})["error"]["code"] == -32603
            client.pipes.says(cancel(first))
            listens(client, toolsListChanged=True)

    played(evolve(a_case(tmp_path), visibility=Visibility.OPEN), use)


@promise("L31", "L15a")
@ERAS
@pytest.mark.parametrize("visibility", list(Visibility))
def test_nothing_that_a_client_hears_tells_of_the_seal_the_seed_or_what_is_expected(tmp_path, stateless, visibility):
    body = (
        "because: canary-because\ntags: [canary-tag]\nagent: {plan: approve}\n"
        "run: {seed: 918273645, vm: deadbeef-6c1d-4b1e-9a51-00000000cafe, host: canary-host, session: canary-session, "
        "run: canary-run}\n"
    )
    case = evolve(a_case(tmp_path, body), visibility=visibility)
    heard, grants = [], []

    def use(served):
        with Client(served, stateless=stateless) as client:
            heard.append(client.asks("server/discover" if stateless else "ping"))
            for name, arguments in (
                (CLICK, HOLD),
                (SERIES, {"extra": 1}),
                (SERIES, {}),
                (CLICK, HOLD | {"taskId": "t-2"}),
                (CLICK, HOLD | {"targetId": 7}),
                (CLICK, HOLD),
                (CLICK, HOLD),
            ):
                client.sends("tools/list")
                client.sends("tools/call", name=name, arguments=arguments)
            client.pipes.says(b"{nonsense\n")
            heard.extend(client.pipes.rest())
        grants.append(served._grant)

    ended = played(case, use, expect_identical=True)
    everything = json.dumps(heard)
    assert ended.result.proposed == 8
    assert sum("structuredContent" in each.get("result", {}) for each in heard) == 6
    answers = [each for each in heard if "tools" not in each.get("result", {})]  # a pinned definition names both
    assert "approve" not in json.dumps(answers)
    told = ("canary", "deadbeef", "918273645", *grants, case.plan.policy.digest, case.source)
    assert [word for word in told if word in everything] == []


@promise("W15a")
def test_a_session_of_another_principal_can_use_nothing_of_the_grant(tmp_path):
    heard = []

    def use(served):
        with Client(served, principal="another") as other, Client(served) as client:
            heard.append(other.calls(SERIES, {})["structuredContent"]["error"])
            heard.append(client.calls(SERIES, {}).get("isError", False))
            heard.append(other.calls(CLICK, APPROVE)["structuredContent"]["error"])

    ended = played(a_case(tmp_path), use, expect_identical=True)
    assert heard == ["not_authorised", False, "not_authorised"]
    assert decisions(ended) == ["wrong_principal", "admitted", "wrong_principal"]
    assert dict(ended.result.calls) == {"lba": 1, "synthetic-ui": 0}


@promise("W3", "W17")
def test_a_line_that_is_no_message_leaves_its_receipt(tmp_path):
    turns = []

    def use(served):
        with Client(served) as client:
            client.pipes.says(b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}\n')
            assert client.pipes.hears()["error"]["code"] == -32700
            client.calls(SERIES, {})
        turns.extend(served.turns)

    ended = played(a_case(tmp_path), use, expect_identical=True)
    assert decisions(ended) == ["duplicate_key", "admitted"]
    assert [(each.word, each.malformed and each.malformed[0]) for each in turns] == [
        ("duplicate_key", Reason.DUPLICATE_KEY),
        ("admitted", None),
    ]
    assert (ended.result.proposed, ended.result.refusals) == (2, (("duplicate_key", 1),))


@promise("W5", "W17")
def test_a_call_that_is_cancelled_before_its_turn_is_neither_made_nor_answered(tmp_path):
    def use(served):
        with Client(served) as client:
            entered, leave = held_back(served)
            first = client.sends("tools/call", name=SERIES, arguments={})
            entered.wait()
            second = client.sends("tools/call", name=CLICK, arguments=APPROVE)
            client.pipes.says(cancel(second))
            third = client.sends("ping")
            assert client.pipes.hears()["id"] == third  # so the cancellation was read
            leave.set()
            assert client.pipes.hears()["id"] == first

    ended = played(a_case(tmp_path), use, expect_identical=True)
    assert decisions(ended) == ["admitted"]


@promise("W17")
def test_of_sixteen_callers_at_once_each_is_answered_and_counted(tmp_path):
    words = []

    def use(served):
        with Client(served) as client:
            sent = {client.sends("tools/call", name=SERIES, arguments={}) for _ in range(16)}
            heard = [client.pipes.hears() for _ in sent]
            assert {each["id"] for each in heard} == sent
            words.extend(each["result"].get("structuredContent", {}).get("error", "admitted") for each in heard)

    body = "agent: {plan: approve}\n"
    ended = played(a_case(tmp_path, body), use, expect_identical=True)
    assert sorted(words) == ["admitted", *["spent"] * 15]
    assert (ended.result.proposed, dict(ended.result.calls)["lba"]) == (16, 1)
    assert decisions(ended) == ["admitted", *["replayed"] * 15]


# -- call by call

PERMIT = Admitted(b"g", Digest("sha256:" + "0" * 64), "lba", "get_benchmark_series", b"{}")


def outcome(state, reason=None, result=b""):
    return Outcome(state, reason, "r-1", PERMIT, result)


class ACall(SimpleNamespace):
    """A call in flight nowhere."""

    def __init__(self, arguments=b"{}", *, cancelled=False, era=Era.HANDSHAKE):
        super().__init__(
            session=Session("run", "agent"), arguments=arguments, cancelled=cancelled, era=era, resumed=None
        )


@pytest.fixture
def told(tmp_path):
    """What is told of a call of the series, where this is what the broker says."""
    contract = a_case(tmp_path).plan.policy.contract
    proposed = []

    def telling(answer, call=None, **options):
        def propose(raw, _call, _relay):
            proposed.append(raw)
            return answer

        (tool,) = (
            tool
            for tool in live_tools(contract, propose, HeldCalls(SystemChance()), print, **options)
            if tool.name == SERIES
        )
        telling.tool = tool
        came = tool.handle(call or ACall())
        return json.loads(came.data) if isinstance(came, Passed) else came

    telling.proposed = proposed
    return telling


def test_a_proposal_has_the_agents_own_bytes(told):
    told(Refused(Reason.REPLAYED), ACall(b'{"n": 1.0, "a":"\\u0061"}'))
    assert told.proposed == [b'{"arguments":{"n": 1.0, "a":"\\u0061"},"server":"lba","tool":"get_benchmark_series"}']


@promise("L15a")
def test_every_reason_is_told_by_its_coarse_word_and_nothing_more(told):
    words = set()
    for reason in Reason:
        refused = told(Refused(reason, "the right answer", "r-1", ("a",), "hold"))
        assert refused["structuredContent"] == {"error": REASONS[reason].coarse.value, "receiptId": "r-1"}
        assert (refused["isError"], "hold" in str(refused), "right" in str(refused)) == (True, False, False)
        words.add(refused["structuredContent"]["error"])
    assert words == set(Coarse)


@promise("L15a")
@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State.UNRESOLVED, Reason.OUTCOME_UNKNOWN),
        (State.UNRESOLVED, Reason.RESULT_INVALID),
        (State.FAILED, Reason.SERVER_UNAVAILABLE),
        (State.EXPIRED, Reason.EXPIRED),
    ],
)
def test_an_end_without_an_answer_is_told_in_the_form_of_a_refusal(told, state, reason):
    content = told(outcome(state, reason))["structuredContent"]
    assert content == {"error": REASONS[reason].coarse.value, "receiptId": "r-1"}


@promise("W15")
def test_a_servers_answer_is_passed_on_whole(told):
    answer = {
        "content": [],
        "structuredContent": {"n": 1, "f": 1.5},
        "_meta": {"x/y": [None]},
        "unknown": {"deep": [1]},
    }
    assert told(outcome(State.SUCCEEDED, None, json.dumps(answer).encode())) == answer


@promise("W8")
def test_an_error_that_a_server_flagged_is_its_own(told):
    answer = {"content": [{"type": "text", "text": "no"}], "isError": True, "unknown": 1}
    assert told(outcome(State.FAILED, Reason.FAILED, json.dumps(answer).encode())) == answer


@promise("W8")
@pytest.mark.parametrize(
    ("error", "code", "data"),
    [
        ({"code": -32602, "message": "no", "data": {"a": 1}}, -32602, {"a": 1}),
        ({"code": -32000, "message": "no"}, -32000, None),
        ({"code": 404, "message": "no"}, -32603, {"code": 404, "message": "no"}),
        ({"code": True, "message": "no"}, -32603, {"code": True, "message": "no"}),
        ({"code": -32602, "message": 7}, -32603, {"code": -32602, "message": 7}),
    ],
)
def test_a_protocol_error_of_a_server_stays_one_and_no_code_of_ours_lies_outside_the_range(told, error, code, data):
    with pytest.raises(ToolProblem) as caught:
        told(outcome(State.FAILED, Reason.FAILED, json.dumps(error).encode()))
    assert (caught.value.code, caught.value.data) == (code, data)


@promise("W1")
@pytest.mark.parametrize(("era", "kind"), [(Era.HANDSHAKE, "input_required"), (Era.STATELESS, "complete")])
def test_what_a_server_answers_asks_the_agent_nothing_whatever_it_calls_itself(told, era, kind):
    answer = {"content": [], "resultType": "input_required", "inputRequests": {}}
    passed = told(outcome(State.SUCCEEDED, None, json.dumps(answer).encode()), ACall(era=era))
    assert passed == answer | {"resultType": kind}


@promise("W5")
@pytest.mark.parametrize(
    ("answer", "is_told"),
    [
        (Refused(Reason.REPLAYED), False),
        (outcome(State.FAILED, Reason.CANCELLED), False),
        (outcome(State.EXPIRED, Reason.EXPIRED), False),
        (outcome(State.FAILED, Reason.FAILED, b'{"content":[],"isError":true}'), True),
        (outcome(State.UNRESOLVED, Reason.OUTCOME_UNKNOWN), True),
        (outcome(State.SUCCEEDED, None, b'{"content":[]}'), True),
    ],
)
def test_a_cancelled_call_is_told_of_only_if_it_may_have_gone_out(told, answer, is_told):
    if is_told:
        assert told(answer, ACall(cancelled=True))
    else:
        with pytest.raises(CallCancelled):
            told(answer, ACall(cancelled=True))


@promise("L6", "W5")
def test_no_hint_of_a_server_decides_anything(told):
    told(Refused(Reason.REPLAYED))
    believed = evolve(told.tool, definition=told.tool.definition | {"annotations": {"readOnlyHint": True}})
    assert (believed.read_only, evolve(believed, foreign=False).read_only) == (False, True)
