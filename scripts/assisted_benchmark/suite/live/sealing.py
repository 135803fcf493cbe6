"""A transcript's calls become authority: a policy with a step for each, and a scenario that plays and tries it. Pure.

What cannot be a step is left out and told of: a tool that the contract does not have, arguments that its schema
refuses, a call that was refused when it was recorded.

What a changed call must be refused for follows from the plan and the schemas: it does not ask the broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from attrs import frozen

from assisted_benchmark.contract.model import Contract
from assisted_benchmark.contract.scalar import NAME
from assisted_benchmark.contract.written import quoted
from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.live_policy.policy import Plan, PlannedStep, checker
from assisted_benchmark.live_policy.proposal import Proposal, read_proposal
from assisted_benchmark.live_policy.task_places import references
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.scenario import RunSpec
from assisted_benchmark.suite.live.transcripts.calls import Entry, RecordedCall, SessionTurn, Transcript
from assisted_benchmark.suite.live.transcripts.playing import proposals_of
from assisted_benchmark.suite.live.transcripts.session import written
from assisted_benchmark.suite.yaml_out import flow

_LEAST_S: Final = 120
_TASK: Final = "taskId"
_EXTRA: Final = "unexpected"
_HINT: Final = "# yaml-language-server: $schema=../{up}schemas/{kind}.schema.json"


class Call(NamedTuple):
    """One call that can be sealed, as the transcript has it and as it was read."""

    turn: SessionTurn
    proposal: Proposal


@frozen(kw_only=True)
class Sealed:
    """What is written: the calls in order, and what was left out and why. `task` is the one that they name."""

    calls: tuple[Call, ...]
    left_out: tuple[str, ...]

    @property
    def task(self) -> str:
        """The task that all calls with a `taskId` name; else the usual one."""
        named = {each.proposal.arguments.get(_TASK) for each in self.calls} - {None}
        task = named.pop() if len(named) == 1 else None
        return task if type(task) is str and NAME.fits(task) else RunSpec().task


def sealed(transcript: Transcript, contract: Contract) -> Sealed:
    """The transcript's calls that a policy over this contract can have.

    Raises:
        DocumentError: duplicate_tool, for each name that could mean two tools.
    """
    calls: list[Call] = []
    left_out: list[str] = []
    for number, (entry, raw) in enumerate(zip(transcript.entries, proposals_of(transcript, contract), strict=True), 1):
        try:
            proposal = read_proposal(raw)
            fault = _fault(entry, proposal, contract)
        except InputError as error:
            proposal, fault = None, f"{error.detail} ({error.reason.value})"
        if proposal is None or fault:
            name = f" `{shown(entry.tool, 60)}`" if isinstance(entry, RecordedCall) else ""
            left_out.append(f"call {number}{name}: {fault}")
        else:
            turn = SessionTurn(raw=raw, turn=len(calls), at_ns=entry.at_ns, result=_result(entry), said=entry.said)
            calls.append(Call(turn, proposal))
    return Sealed(calls=tuple(calls), left_out=tuple(left_out))


def _result(entry: Entry) -> str:
    """The digest of the result that the agent saw, where it was a good one and is known."""
    if isinstance(entry, SessionTurn):
        return entry.result
    return "" if entry.answer is None or entry.answer.failed else entry.answer.result


def _fault(entry: Entry, proposal: Proposal, contract: Contract) -> str:
    """Why the call cannot be a step; empty if it can."""
    if isinstance(entry, SessionTurn) and entry.word not in ("", ADMITTED):
        return f"it was refused when it was recorded ({entry.word})"
    server = contract.server(proposal.server)
    tool = server and server.tool(proposal.tool)
    if tool is None:
        return f"the contract has no such tool ({Reason.UNKNOWN_TOOL.value})"
    faults = checker(tool).faults(proposal.arguments)
    if faults:
        return f"{faults[0].path or '/'}: {faults[0].message} ({Reason.ARGUMENTS_INVALID.value})"
    if any(True for _ in references(proposal.arguments)):
        return f"a policy reads an object with the one key `from` as a place ({Reason.WRONG_VALUE.value})"
    return ""


def policy_text(name: str, contract_file: str, calls: Sealed, about: str) -> str:
    """The policy's file: each call a step, in order. A grant of it lives as long as the session did, and a while."""
    last = max(each.turn.at_ns for each in calls.calls)
    lines = [
        _HINT.format(up="", kind="policy"),
        "#",
        f"# The calls of {shown(about)}, sealed in their order.",
        "schema: assisted-benchmark/policy@1",
        f"id: {quoted(name)}",
        f"contract: {quoted(contract_file)}",
        f"expires_after: {_LEAST_S + -(-last // SECOND)}s",
        "steps:",
    ]
    for _, proposal in calls.calls:
        call = {"server": proposal.server, "tool": proposal.tool, "arguments": Canonical(proposal.data).value}
        lines.append(f"  - call: {flow(call)}")
    return "\n".join(lines) + "\n"


def session_text(calls: Sealed, agent: str) -> bytes:
    """The session's file: the proposals by their own bytes."""
    return written(agent, [each.turn for each in calls.calls])


def scenario_text(
    name: str, session: str, calls: Sealed, about: str, plan: Plan, decisions: Sequence[str], ends: str
) -> str:
    """The scenario's file. `decisions` are what came of the plan's calls when they were made, and `ends` how it ended.

    What is tried in place of a step is tried where the plan gets to.
    """
    expect = {"ends": ends} if ends else {}
    planned = expect if set(decisions) == {ADMITTED} else {**expect, "decisions": list(decisions)}
    lines = [
        _HINT.format(up="../", kind="scenario"),
        "schema: assisted-benchmark/scenario@1",
        f"id: {quoted(name)}",
        f"because: {quoted(shown(f'the calls of {about} are sealed in their order, and nothing else passes', 280))}",
        f"policy: {quoted(name)}",
        *([f"run: {flow({'task': calls.task})}"] if calls.task != RunSpec().task else ()),
        f"agent: {flow({'transcript': session})}",
        "cases:",
        f"  as-recorded: {flow({'expect': expect})}",
        f"  as-planned: {flow({'agent': 'plan', 'expect': planned})}",
        "proposals:" if decisions else "proposals: {}",
    ]
    for step in plan.steps[: len(decisions)]:
        lines += [f"  {quoted(f'step-{step.index + 1}-{key}')}: {flow(row)}" for key, row in _tried(plan, step)]
    return "\n".join(lines) + "\n"


def _tried(plan: Plan, step: PlannedStep) -> Iterator[tuple[str, Json]]:
    """What is tried in place of a step's call, by name."""
    call = step.candidates[0]
    arguments: dict[str, Json] = Canonical(call.arguments).value

    def row(changed: dict[str, Json], moved: dict[str, Json], **names: str) -> Iterator[Json]:
        reason = _refused(plan, step, {"server": call.server, "tool": call.tool, **names}, changed)
        if reason is not None:
            yield {"at": step.index + 1, **moved, **names, "refused": reason.value}

    for each in row({**arguments, _EXTRA: True}, {"change": {_EXTRA: True}}):
        yield "extra-argument", each
    for number, (name, value) in enumerate(arguments.items(), 1):
        without = {key: each for key, each in arguments.items() if key != name}
        retyped, altered = ({**arguments, name: other} for other in ([value], _other(value)))
        for what, changed, moved in (
            ("without", without, {"leave_out": [name]}),
            ("retyped", retyped, {"change": {name: retyped[name]}}),
            ("altered", altered, {"change": {name: altered[name]}}),
        ):
            for each in row(changed, moved):
                yield f"{what}-{number}", each
    for each in row(arguments, {}, server=f"{call.server}-2"):
        yield "unknown-server", each
    for each in row(arguments, {}, tool=f"{call.tool}_2"):
        yield "unknown-tool", each
    for server in plan.policy.contract.servers:
        if server.id != call.server:
            for each in row(arguments, {}, server=server.id):
                yield f"at-{server.id}", each
    for what, other in (("before", step.index - 1), ("after", step.index + 1)):
        if 0 <= other < len(plan.steps):
            reason = _of_another(plan, step, plan.steps[other].candidates[0].proposal)
            if reason is not None:
                yield f"the-one-{what}", {"at": step.index + 1, "step": other + 1, "refused": reason.value}


def _other(value: Json) -> Json:
    """Another value of the same kind, where that is easy to say."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return value.swapcase() + "-2"
    return None


def _of_another(plan: Plan, step: PlannedStep, raw: bytes) -> Reason | None:
    """What the call of another step is refused for while this one is open; None if it is this one's, too."""
    call = read_proposal(raw).call
    if call in step.by_call:
        return None
    first = next((each for each in plan.steps if call in each.by_call), None)
    if first is None:
        return None
    return Reason.REPLAYED if first.index < step.index else Reason.SKIPPED


def _refused(plan: Plan, step: PlannedStep, names: dict[str, str], arguments: dict[str, Json]) -> Reason | None:
    """What a changed call of the open step is refused for; None if it is not told here.

    Checked in the broker's order, for what only its own schemas and the plan decide.
    """
    call: dict[str, Any] = {**names, "arguments": arguments}
    raw = canonical_bytes(call)
    if read_proposal(raw).call in step.by_call:
        return None
    other = _of_another(plan, step, raw)
    if other is not None:
        return other
    contract = plan.policy.contract
    if contract.server(names["server"]) is None:
        return Reason.UNKNOWN_SERVER
    if names["server"] != step.server.id:
        return Reason.SERVER_SUBSTITUTED
    tool = step.server.tool(names["tool"])
    if tool is None:
        return Reason.UNKNOWN_TOOL
    if tool.effect is not step.tool.effect:
        return Reason.EFFECT_MISMATCH
    if checker(tool).integer_spelling(arguments):
        return Reason.NON_CANONICAL_NUMBER
    return Reason.ARGUMENTS_INVALID if checker(tool).faults(arguments) else Reason.ARGUMENTS_ALTERED
