"""Policies: what compiles, what is refused before any run, and what the files may say."""

from pathlib import Path

import pytest
from attrs import evolve
from live_bench import (
    ASK,
    CLICK,
    LBA,
    LOOK,
    ONE_SERVER,
    SERVERS,
    a_group,
    a_policy,
    a_server,
    a_tool,
)
from marks import promise

from assisted_benchmark.contract.model import SERVER_SET, Contract, Effect
from assisted_benchmark.contract.published import schema_text
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.compiler import compile_plan, faults_of
from assisted_benchmark.live_policy.policy import OUTSIDE_RULE, Step
from assisted_benchmark.live_policy.policy_document import load_policy, published_schemas

ROOT = Path(__file__).resolve().parents[3]
TASK = {"from": "run.task"}
YES = {"taskId": TASK, "targetId": "approve"}
NO = {"taskId": TASK, "targetId": "hold"}


def reasons(policy, task="t-1"):
    with pytest.raises(DocumentError) as caught:
        compile_plan(policy, task)
    return [problem.reason for problem in caught.value.problems]


REFUSED = {
    "one candidate": (a_policy(a_group(approve=YES)), Reason.GROUP_COUNT),
    "three candidates": (a_policy(a_group(a=YES, b=NO, c={**YES, "targetId": "c"})), Reason.GROUP_COUNT),
    "one candidate, even with the extension": (
        a_policy(a_group(approve=YES), extensions=("candidate-count",)),
        Reason.GROUP_COUNT,
    ),
    "the same call twice": (a_policy(a_group(approve=YES, again=YES)), Reason.GROUP_REPEATED),
    "the same call, once spelled out": (
        a_policy(a_group(approve=YES, again={"taskId": "t-1", "targetId": "approve"})),
        Reason.GROUP_REPEATED,
    ),
    "another task": (a_policy(a_group(approve=YES, hold={**NO, "taskId": "t-2"})), Reason.GROUP_OTHER_TASK),
    "a group before a call": (a_policy(a_group(), LOOK), Reason.GROUP_NOT_LAST),
    "two groups": (a_policy(a_group(), evolve(a_group(), choose="second")), Reason.GROUP_NOT_LAST),
    "a group over a legacy contract": (
        a_policy(a_group(server="lba"), contract=ONE_SERVER),
        Reason.GROUP_LEGACY,
    ),
    "an unknown server": (a_policy(a_group(server="synthetic-ux")), Reason.UNKNOWN_SERVER),
    "no server": (a_policy(a_group(server="")), Reason.UNKNOWN_SERVER),
    "an unknown tool": (a_policy(a_group(tool="click")), Reason.UNKNOWN_TOOL),
    "another effect": (a_policy(evolve(a_group(), effect=Effect.OBSERVE)), Reason.EFFECT_MISMATCH),
    "an argument outside the closed schema": (
        a_policy(a_group(approve=YES, hold={**NO, "force": True})),
        Reason.ARGUMENTS_INVALID,
    ),
    "a missing argument": (a_policy(a_group(target="", approve=YES, hold={"taskId": TASK})), Reason.ARGUMENTS_INVALID),
    "a missing target argument": (a_policy(a_group(target="goal")), Reason.WRONG_VALUE),
    "arguments that are no object": (a_policy(Step.call("lba", "get_benchmark_series", [])), Reason.WRONG_VALUE),
    "a reference to nothing": (
        a_policy(a_group(approve=YES, hold={**NO, "targetId": {"from": "run.secret"}})),
        Reason.WRONG_VALUE,
    ),
    "no step": (evolve(a_policy(), steps=()), Reason.WRONG_VALUE),
    "no time": (evolve(a_policy(), expires_after_ns=0), Reason.WRONG_VALUE),
    "no refusal allowed": (a_policy(max_refusals=0), Reason.WRONG_VALUE),
    "an unknown extension": (a_policy(extensions=("anything",)), Reason.WRONG_VALUE),
    "a group with a call's name": (a_policy(LOOK, evolve(a_group(), choose="step-1")), Reason.DUPLICATE_ID),
    "a single call with two candidates": (
        a_policy(evolve(LOOK, candidates=LOOK.candidates * 2)),
        Reason.GROUP_COUNT,
    ),
    "a tool whose name cannot be proposed": (
        a_policy(
            Step.call("lba", "get series", {}),
            contract=Contract(schema=SERVER_SET, id="c", servers=(a_server("lba", a_tool("get series")),)),
        ),
        Reason.MALFORMED_NAME,
    ),
}


@promise("L3", "L4", "L5")
@pytest.mark.parametrize(("policy", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_policy_with_a_fault_does_not_compile(policy, reason):
    assert reason in reasons(policy)


@promise("L4")
def test_the_reference_group_compiles_to_two_calls_of_one_server_and_contract():
    step = compile_plan(a_policy(), "t-7").steps[-1]
    assert [(each.server, each.tool, each.arguments) for each in step.candidates] == [
        ("synthetic-ui", "click_target", b'{"targetId":"approve","taskId":"t-7"}'),
        ("synthetic-ui", "click_target", b'{"targetId":"hold","taskId":"t-7"}'),
    ]
    assert step.server.digest == SERVERS.server("synthetic-ui").digest


@promise("L4")
def test_more_candidates_are_an_extension_that_is_asked_for_by_name_and_labelled():
    policy = a_policy(a_group(a=YES, b=NO, c={**YES, "targetId": "c"}), extensions=("candidate-count",))
    assert len(compile_plan(policy, "t-1").steps[0].candidates) == 3
    assert policy.labels == (OUTSIDE_RULE,)
    assert a_policy(extensions=("candidate-count",)).labels == ()


@promise("L10")
def test_text_is_never_a_template():
    odd = "{{run.task}} ${run.task} {run.task}"
    plan = compile_plan(a_policy(a_group(approve={**YES, "targetId": odd}, hold=NO)), "t-1")
    assert Canonical(plan.steps[0].candidates[0].arguments).value == {"taskId": "t-1", "targetId": odd}


def test_the_task_goes_in_wherever_it_is_asked_for():
    tool = a_tool("note", {"list": {}, "inner": {}})
    contract = Contract(schema=SERVER_SET, id="c", servers=(a_server("s", tool),))
    call = Step.call("s", "note", {"list": [TASK, 1], "inner": {"deep": TASK}})
    plan = compile_plan(a_policy(call, contract=contract), "t-3")
    assert plan.steps[0].candidates[0].arguments == b'{"inner":{"deep":"t-3"},"list":["t-3",1]}'


@promise("L2")
def test_every_field_of_a_policy_changes_its_digest():
    policy = a_policy()
    other_contract = Contract(schema=SERVER_SET, id="other", servers=SERVERS.servers)
    variants = [
        evolve(policy, id="other"),
        evolve(policy, version=2),
        evolve(policy, contract=other_contract),
        evolve(policy, expires_after_ns=1),
        evolve(policy, max_refusals=17),
        evolve(policy, extensions=("candidate-count",)),
        evolve(policy, steps=policy.steps[:1]),
        evolve(policy, steps=(LOOK, evolve(a_group(), choose="verdict"))),
        evolve(policy, steps=(LOOK, evolve(a_group(), target=""))),
        evolve(policy, steps=(LOOK, evolve(a_group(), effect=Effect.ACT))),
        evolve(policy, steps=(LOOK, evolve(a_group(), server="lba"))),
        evolve(policy, steps=(LOOK, evolve(a_group(), tool="type_text"))),
        evolve(policy, steps=(LOOK, a_group(approve=YES, hold={**NO, "targetId": "x"}))),
        evolve(policy, steps=(LOOK, a_group(yes=YES, hold=NO))),
    ]
    digests = {each.digest for each in [policy, *variants]}
    assert len(digests) == len(variants) + 1


def test_all_faults_are_told_at_once():
    assert set(reasons(a_policy(a_group(server="x"), evolve(LOOK, tool="y")))) == {
        Reason.GROUP_NOT_LAST,
        Reason.UNKNOWN_SERVER,
        Reason.UNKNOWN_TOOL,
    }


def test_faults_that_need_no_task_are_found_without_one():
    literal = {"taskId": "t-1", "targetId": "x", "force": True}
    assert [fault.reason for fault in faults_of(a_policy(a_group(approve=YES, hold=literal)))] == [
        Reason.ARGUMENTS_INVALID
    ]
    assert faults_of(a_policy(LOOK, ASK)) == ()


@pytest.mark.parametrize(
    ("group", "where"),
    [
        (a_group(target="targetI"), ("steps", 0, "target")),
        (a_group(target="targetId", a=YES, b={"taskId": TASK}), ("steps", 0, "candidates", "b")),
        (a_group(a=YES, b={**NO, "targetId": {"from": "run.tsk"}}), ("steps", 0, "candidates", "b", "targetId")),
        (a_group(a=YES, b={**NO, "force": True}), ("steps", 0, "candidates", "b")),
        (a_group(a=YES, again=YES), ("steps", 0, "candidates", "again")),
    ],
    ids=["no such target", "a target of one only", "no such reference", "an unknown argument", "the same call"],
)
def test_what_is_wrong_with_a_call_for_any_task_is_found_without_one(group, where):
    assert where in [fault.where for fault in faults_of(a_policy(group))]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"at": {"enum": ["t-1"]}}},
        {"properties": {"at": {"type": "string"}, "list": {"type": "array", "items": {"maxLength": 3}}}},
        {
            "properties": {"at": {"type": "string"}},
            "maxProperties": 3,
            "if": {"properties": {"at": {"const": "t-1"}}},
            "else": {"required": ["x"]},
        },
        {"allOf": [{"properties": {"at": {"type": "string"}, "list": {"contains": {"const": "t-1"}}}}]},
    ],
    ids=["of its value", "of its length", "a branch", "a part of it"],
)
def test_a_schema_that_wants_one_kind_of_task_is_not_a_policys_fault(schema):
    tool = a_tool("note")
    raw = {**tool.definition.value, "inputSchema": {"type": "object", **schema}}
    server = evolve(a_server("s"), tools=(evolve(tool, definition=Canonical.of(raw)),))
    contract = Contract(schema=SERVER_SET, id="c", servers=(server,))
    listed = {"list": [TASK]} if "list" in str(schema) else {}
    assert faults_of(a_policy(Step.call("s", "note", {"at": TASK, **listed}), contract=contract)) == ()


# --- the files


@promise("L2", "L4")
def test_the_reference_policy_file_is_the_reference_plan():
    policy = load_policy(ROOT / "contracts" / "ui-decision.policy.yaml", ROOT)
    steps = compile_plan(policy, "t-1").steps
    assert [(step.name, step.choice, step.server.id, step.tool.name) for step in steps] == [
        ("step-1", False, "lba", "get_benchmark_series"),
        ("decision", True, "synthetic-ui", "click_target"),
    ]
    assert (policy.max_refusals, policy.version, policy.labels) == (16, 1, ())


@promise("L5")
def test_the_legacy_policy_file_compiles_without_a_choice():
    policy = load_policy(ROOT / "contracts" / "lba-witness.policy.yaml", ROOT)
    assert policy.contract.legacy
    assert [step.tool.name for step in compile_plan(policy, "t-1").steps] == [
        "get_host_capabilities",
        "get_benchmark_series",
        "spin_up_witness",
    ]


def test_the_published_schema_is_the_one_in_the_repository():
    for name, schema in published_schemas().items():
        assert (ROOT / "schemas" / name).read_text() == schema_text(schema)


CONTRACT = """\
schema: projectbuddy/assisted-mcp-server-set@1
id: small
servers:
  ui:
    launch: {argv: [/bin/server]}
    tools:
      click:
        effect: act
        definition:
          name: click
          inputSchema: {type: object, properties: {taskId: {type: string}, at: {type: string}}, required: [at]}
"""
HEAD = "schema: assisted-benchmark/policy@1\nid: p\ncontract: small.contract.yaml\nexpires_after: 5s\n"
GROUP = "  - choose: decision\n    server: ui\n    tool: click\n    candidates:\n      a: {at: a}\n      b: {at: b}\n"


def loaded(tmp_path, steps, head=HEAD):
    (tmp_path / "small.contract.yaml").write_text(CONTRACT)
    (tmp_path / "p.policy.yaml").write_text(f"{head}steps:\n{steps}")
    return load_policy(tmp_path / "p.policy.yaml", tmp_path)


def test_the_file_says_all_that_a_policy_can(tmp_path):
    head = HEAD + "version: 3\nmax_refusals: 4\nextensions: [candidate-count]\n"
    call = "  - call: {server: ui, tool: click, effect: act, arguments: {at: x}}\n"
    group = GROUP.replace("tool: click\n", "tool: click\n    target: at\n    effect: act\n") + "      c: {at: c}\n"
    policy = loaded(tmp_path, call + group, head)
    assert (policy.version, policy.max_refusals, policy.expires_after_ns) == (3, 4, 5 * 10**9)
    assert policy.steps[0] == Step.call("ui", "click", {"at": "x"}, Effect.ACT)
    assert [name for name, _ in policy.steps[1].candidates] == ["a", "b", "c"]
    assert policy.labels == (OUTSIDE_RULE,)


def test_restyling_a_file_changes_no_digest(tmp_path):
    plain = loaded(tmp_path, GROUP).digest
    restyled = "  - {candidates: {b: {at: 'b'}, a: {'at': a}}, tool: click, server: ui, choose: decision}\n"
    assert loaded(tmp_path, restyled, f"# a comment\n{HEAD}").digest == plain


FAULTY = {
    "an unknown server": (GROUP.replace("server: ui", "server: iu"), Reason.UNKNOWN_SERVER, (7, 13)),
    "an unknown tool": (GROUP.replace("tool: click", "tool: clack"), Reason.UNKNOWN_TOOL, (8, 11)),
    "one candidate": (GROUP.replace("      b: {at: b}\n", ""), Reason.GROUP_COUNT, (10, 7)),
    "a bad argument": (GROUP.replace("b: {at: b}", "b: {att: b}"), Reason.ARGUMENTS_INVALID, (11, 10)),
    "an effect that is another": (
        "  - call: {server: ui, tool: click, effect: observe, arguments: {at: x}}\n",
        Reason.EFFECT_MISMATCH,
        (6, 45),
    ),
    "an unknown key": (GROUP + "    retries: 3\n", Reason.UNKNOWN_KEY, (12, 5)),
    "no server": (GROUP.replace("    server: ui\n", ""), Reason.MISSING_KEY, (6, 5)),
    "no such target": (GROUP.replace("    candidates", "    target: att\n    candidates"), Reason.WRONG_VALUE, (9, 13)),
    "no such reference": (GROUP.replace("{at: b}", "{at: {from: run.tsk}}"), Reason.WRONG_VALUE, (11, 15)),
}


@pytest.mark.parametrize(("steps", "reason", "place"), FAULTY.values(), ids=FAULTY)
def test_a_fault_is_told_with_its_line_and_column(tmp_path, steps, reason, place):
    with pytest.raises(DocumentError) as caught:
        loaded(tmp_path, steps)
    problem = caught.value.problems[0]
    assert (problem.reason, problem.file, problem.line, problem.column) == (reason, "p.policy.yaml", *place)


def test_a_tool_offered_by_two_servers_is_bound_to_the_one_that_is_named():
    assert LBA.tool("click_target") == CLICK
    plan = compile_plan(a_policy(a_group(server="lba")), "t-1")
    assert {each.server for each in plan.steps[0].candidates} == {"lba"}
