"""From the trusted policy to the plan for one task, or all that is wrong with it. Pure.

Compiling puts the run's task where an argument says `{from: run.task}`, holds every call to the contract, and
gives the plan whose bytes the grants of that policy and task share. Text is never interpreted as a template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from attrs import evolve, frozen

from assisted_benchmark.contract.model import Contract, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.names import name_fault
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.live_policy.policy import (
    CANDIDATE_COUNT,
    EXTENSIONS,
    Candidate,
    Plan,
    PlannedStep,
    Policy,
    Step,
    checker,
)
from assisted_benchmark.live_policy.task_places import Where, references, task_places, with_task

# The argument that names the task, wherever a tool has one of this name.
_TASK_ARGUMENT: Final = "taskId"
# Two tasks that have nothing in common: what is wrong with either is not a task's fault.
_ANY_TASKS: Final = ("some-task", "Another/2")
# Said of an object whatever its values are, unless its schema has branches.
_OF_NAMES: Final = frozenset({"required", "additionalProperties"})
_BRANCHES: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies", "$ref"})


@frozen
class Fault:
    """One thing wrong in a policy, at the part that `where` names (as in the file's own structure)."""

    reason: Reason
    where: Where
    detail: str
    hint: str = ""


def faults_of(policy: Policy) -> tuple[Fault, ...]:
    """All that is wrong whatever the task: steps, counts, names, effects, and what two unlike tasks share."""
    faults = list(_structure(policy))
    for index, step in enumerate(policy.steps):
        unsure = [task_places(arguments.value) for _, arguments in step.candidates]
        one, other = (list(_calls(policy, index, _put_in(step, task), None, unsure)) for task in _ANY_TASKS)
        faults.extend(each for each in one if each in other)
    return tuple(faults)


def compile_plan(policy: Policy, task: str) -> Plan:
    """The plan of one run: the policy held to its contract, with the run's task put in.

    Raises:
        DocumentError: group_not_last, group_count, group_legacy, group_repeated, group_other_task,
            unknown_server, unknown_tool, effect_mismatch, arguments_invalid, duplicate_id, the reasons of a
            malformed name, or wrong_value; every fault that was found.
    """
    put_in = [_put_in(step, task) for step in policy.steps]
    faults = list(_structure(policy))
    for index, step in enumerate(put_in):
        faults.extend(_calls(policy, index, step, task))
    if faults:
        raise DocumentError(
            Problem(each.reason, f"{_at(each.where)}: {each.detail}", hint=each.hint) for each in faults
        )
    named = [(step, *_named(policy.contract, step)) for step in put_in]
    steps = (_planned(at, step, server, tool) for at, (step, server, tool) in enumerate(named) if server and tool)
    return Plan(policy=policy, task=task, steps=tuple(steps))


def _planned(index: int, step: Step, server: Server, tool: Tool) -> PlannedStep:
    return PlannedStep(
        index=index,
        name=step.choose or _call_name(index),
        choice=bool(step.choose),
        server=server,
        tool=tool,
        target=step.target,
        candidates=tuple(_candidate(server, tool, name, arguments.data) for name, arguments in step.candidates),
    )


def _named(contract: Contract, step: Step) -> tuple[Server | None, Tool | None]:
    server = contract.server(step.server)
    return server, None if server is None else server.tool(step.tool)


def _candidate(server: Server, tool: Tool, name: str, arguments: bytes) -> Candidate:
    digest = digest_of("candidate@1", server.digest.encode(), tool.name.encode(), arguments)
    return Candidate(name=name, server=server.id, tool=tool.name, arguments=arguments, digest=digest)


def _put_in(step: Step, task: str) -> Step:
    """The step with the task at every `{from: run.task}`."""
    filled = ((name, Canonical.of(with_task(each.value, task))) for name, each in step.candidates)
    return evolve(step, candidates=tuple(filled))


def _call_name(index: int) -> str:
    return f"step-{index + 1}"


def _at(where: Where) -> str:
    return "/".join(str(each) for each in where)


def _place(index: int, step: Step, part: str = "", candidate: str = "") -> Where:
    """Where a step, a part of it or one of its candidates stands in the file."""
    where: Where = ("steps", index) if step.choose else ("steps", index, "call")
    if candidate:
        return (*where, "candidates", candidate) if step.choose else (*where, "arguments")
    return (*where, part) if part else where


def _structure(policy: Policy) -> Iterator[Fault]:
    if not policy.steps:
        yield Fault(Reason.WRONG_VALUE, ("steps",), "a policy needs at least one step")
    if policy.expires_after_ns <= 0:
        yield Fault(Reason.WRONG_VALUE, ("expires_after",), "a grant lives for more than no time")
    if policy.max_refusals < 1:
        yield Fault(Reason.WRONG_VALUE, ("max_refusals",), "at least one refusal comes before exhaustion")
    for extension in policy.extensions:
        if extension not in EXTENSIONS:
            yield Fault(Reason.WRONG_VALUE, ("extensions",), f"`{extension}` is no extension")
    for index, step in enumerate(policy.steps):
        yield from _group(policy, index, step)
        yield from _names(policy.contract, index, step)


def _group(policy: Policy, index: int, step: Step) -> Iterator[Fault]:
    count = len(step.candidates)
    where = _place(index, step, "candidates")
    if not step.choose:
        if count != 1:
            yield Fault(Reason.GROUP_COUNT, _place(index, step), f"a single call has one candidate, not {count}")
        return
    if policy.contract.legacy:
        yield Fault(Reason.GROUP_LEGACY, _place(index, step), "a single-server contract allows no choice group")
    if index != len(policy.steps) - 1:
        detail = "a choice group must be the last step and the only group"
        yield Fault(Reason.GROUP_NOT_LAST, _place(index, step), detail)
    if count < 2 or (count != 2 and CANDIDATE_COUNT not in policy.extensions):
        hint = f"for more than two, write extensions: [{CANDIDATE_COUNT}]"
        yield Fault(Reason.GROUP_COUNT, where, f"a choice group has exactly two candidates, not {count}", hint)
    having = [name for name, held in step.candidates if type(held.value) is dict and step.target in held.value]
    if step.target and not having:
        names = {key: None for _, held in step.candidates if type(held.value) is dict for key in held.value}
        detail = f"no candidate has the target argument `{shown(step.target, 60)}`"
        yield Fault(Reason.WRONG_VALUE, _place(index, step, "target"), detail, did_you_mean(step.target, names))
    elif step.target:
        for name in (name for name, _ in step.candidates if name not in having):
            detail = f"the target argument `{shown(step.target, 60)}` is missing"
            yield Fault(Reason.WRONG_VALUE, _place(index, step, candidate=name), detail)
    if len({name for name, _ in step.candidates}) != count or step.choose in map(_call_name, range(index)):
        yield Fault(Reason.DUPLICATE_ID, where, "two candidates, or two steps, have one name")


def _names(contract: Contract, index: int, step: Step) -> Iterator[Fault]:
    server, tool = _named(contract, step)
    if server is None:
        hint = did_you_mean(step.server, (each.id for each in contract.servers))
        detail = f"the contract `{contract.id}` has no server `{shown(step.server, 60)}`"
        yield Fault(Reason.UNKNOWN_SERVER, _place(index, step, "server"), detail, hint)
        return
    if tool is None:
        hint = did_you_mean(step.tool, (each.name for each in server.tools))
        detail = f"the server `{server.id}` has no tool `{shown(step.tool, 60)}`"
        yield Fault(Reason.UNKNOWN_TOOL, _place(index, step, "tool"), detail, hint)
        return
    for part, name in (("server", server.id), ("tool", tool.name)):
        if (reason := name_fault(name)) is not None:
            yield Fault(reason, _place(index, step, part), f"`{shown(name, 60)}` cannot be proposed: it is no name")
    if step.effect not in (None, tool.effect):
        detail = f"`{tool.name}` is `{tool.effect.value}` in the contract"
        yield Fault(Reason.EFFECT_MISMATCH, _place(index, step, "effect"), detail)


def _calls(
    policy: Policy, index: int, step: Step, task: str | None, unsure: Sequence[Collection[str]] = ()
) -> Iterator[Fault]:
    """What is wrong with the calls themselves, the task being in them.

    Without `task`, a task of no meaning is; `unsure` are the places, by candidate, where a schema may want another.
    """
    _, tool = _named(policy.contract, step)
    branches = tool is not None and not _BRANCHES.isdisjoint(tool.input_schema)
    seen: dict[bytes, str] = {}
    for number, (name, held) in enumerate(step.candidates):
        arguments, where = held.value, _place(index, step, candidate=name)
        if type(arguments) is not dict:
            yield Fault(Reason.WRONG_VALUE, where, "the arguments are not an object")
            continue
        for at in references(arguments):
            detail = "`from` names nothing that is known"
            yield Fault(Reason.WRONG_VALUE, (*where, *at), detail, "write {from: run.task}")
        for fault in checker(tool).faults(arguments) if tool else ():
            if task is not None or fault.path not in unsure[number] or (fault.keyword in _OF_NAMES and not branches):
                named = f" ({', '.join(f'`{shown(key, 60)}`' for key in fault.unexpected)})" if fault.unexpected else ""
                yield Fault(Reason.ARGUMENTS_INVALID, where, f"{fault.path or '/'}: {fault.message}{named}")
        if held.data in seen:
            yield Fault(Reason.GROUP_REPEATED, where, f"`{name}` is the same call as `{seen[held.data]}`")
        seen[held.data] = name
        if step.choose and task is not None and arguments.get(_TASK_ARGUMENT, task) != task:
            hint = f"write {_TASK_ARGUMENT}: {{from: run.task}}"
            yield Fault(Reason.GROUP_OTHER_TASK, where, f"`{_TASK_ARGUMENT}` is not the run's task", hint)
