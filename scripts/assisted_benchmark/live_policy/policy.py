"""The trusted policy, and its compilation into the plan for one task. Pure.

A policy is an ordered list of steps. A step is a single call, or the one choice group, which
comes last. Inside, a single call is a group of one. Compiling puts the run's task where an
argument says `{from: run.task}`, holds every call to the contract, and gives the plan whose
bytes the grants of that policy and task share. Text is never interpreted as a template.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

from attrs import field, frozen

from assisted_benchmark.contract.json_schema import Checker, closed
from assisted_benchmark.contract.model import Contract, Effect, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason

CANDIDATE_COUNT: Final = "candidate-count"
EXTENSIONS: Final = (CANDIDATE_COUNT,)
OUTSIDE_RULE: Final = "outside REQ-124"
MAX_REFUSALS: Final = 16

_TASK: Final = {"from": "run.task"}
# The argument that names the task, wherever a tool has one of this name.
_TASK_ARGUMENT: Final = "taskId"

Where: TypeAlias = tuple[str | int, ...]


@frozen(kw_only=True)
class Step:
    """One step: a single call (`choose` is empty), or the choice group of that name.

    `candidates` are (name, arguments) pairs, the arguments with their `{from: run.task}` places.
    `target` names the argument whose change alone is a `wrong_target`. `effect`, if given, must
    be the contract's.
    """

    server: str
    tool: str
    candidates: tuple[tuple[str, Canonical], ...]
    choose: str = ""
    target: str = ""
    effect: Effect | None = None

    @classmethod
    def call(cls, server: str, tool: str, arguments: Json, effect: Effect | None = None) -> Step:
        """A single call."""
        return cls(server=server, tool=tool, candidates=(("call", Canonical.of(arguments)),), effect=effect)


@frozen(kw_only=True, slots=False)
class Policy:
    """A versioned plan of what one kind of run may do. Its digest is pinned by the runner."""

    id: str
    contract: Contract
    expires_after_ns: int
    steps: tuple[Step, ...]
    version: int = 1
    max_refusals: int = MAX_REFUSALS
    extensions: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> Digest:
        """Covers every field, and the contract by its digest."""
        return self.digest_under(self.contract.digest)

    def digest_under(self, contract: Digest) -> Digest:
        """What the digest would be with that contract: tells a changed policy from a changed contract."""
        return digest_of(
            "policy@1",
            canonical_bytes(
                {
                    "id": self.id,
                    "version": self.version,
                    "contract": contract,
                    "expires_after": str(self.expires_after_ns),
                    "max_refusals": self.max_refusals,
                    "extensions": sorted(self.extensions),
                    "steps": [
                        {
                            "server": step.server,
                            "tool": step.tool,
                            "choose": step.choose,
                            "target": step.target,
                            "effect": step.effect and step.effect.value,
                            "candidates": [[name, arguments.value] for name, arguments in step.candidates],
                        }
                        for step in self.steps
                    ],
                }
            ),
        )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What a report has to say of results under this policy."""
        return (OUTSIDE_RULE,) if any(step.choose and len(step.candidates) != 2 for step in self.steps) else ()


@frozen(kw_only=True)
class Candidate:
    """One exact call that may be made: two are the same when their bytes are the same."""

    name: str
    server: str
    tool: str
    arguments: bytes
    digest: Digest


@frozen(kw_only=True, slots=False)
class PlannedStep:
    """A step compiled for one task."""

    index: int
    name: str
    choice: bool
    server: Server
    tool: Tool
    target: str
    candidates: tuple[Candidate, ...]
    # (server, tool, RFC 8785 arguments) to candidate: a call either is one of these or it is not.
    by_call: dict[tuple[str, str, bytes], Candidate] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        by_call = {(each.server, each.tool, each.arguments): each for each in self.candidates}
        object.__setattr__(self, "by_call", by_call)


@frozen(kw_only=True, slots=False)
class Plan:
    """A policy compiled for one task. Equal plans have equal `data`, the canonical bytes that grants seal."""

    policy: Policy
    task: str
    steps: tuple[PlannedStep, ...]

    @cached_property
    def data(self) -> bytes:
        contract = self.policy.contract
        return canonical_bytes(
            {
                "policy": self.policy.digest,
                "contract": contract.digest,
                "servers": {server.id: server.digest for server in contract.servers},
                "task": self.task,
                "lifetime": str(self.policy.expires_after_ns),
                "max_refusals": self.policy.max_refusals,
                "steps": [
                    {
                        "name": step.name,
                        "choice": step.choice,
                        "server": step.server.id,
                        "server_digest": step.server.digest,
                        "tool": step.tool.name,
                        "effect": step.tool.effect.value,
                        "target": step.target,
                        "candidates": {each.name: Canonical(each.arguments).value for each in step.candidates},
                    }
                    for step in self.steps
                ],
            }
        )


@lru_cache(maxsize=4096)
def checker(tool: Tool) -> Checker:
    """The tool's input schema, closed to undeclared properties whatever the server enforces."""
    return Checker(closed(tool.input_schema))


@lru_cache(maxsize=4096)
def result_checker(tool: Tool) -> Checker | None:
    """The tool's output schema, if it has one."""
    return None if tool.output_schema is None else Checker(tool.output_schema)


@frozen
class Fault:
    """One thing wrong in a policy, at the part that `where` names (as in the file's own structure)."""

    reason: Reason
    where: Where
    detail: str
    hint: str = ""


def faults_of(policy: Policy) -> tuple[Fault, ...]:
    """All that is wrong whatever the task: the order of steps, the count of candidates, names, effects."""
    return tuple(_structure(policy))


def compile_plan(policy: Policy, task: str) -> Plan:
    """The plan of one run: the policy held to its contract, with the run's task put in.

    Raises:
        DocumentError: group_not_last, group_count, group_legacy, group_repeated, group_other_task,
            unknown_server, unknown_tool, effect_mismatch, arguments_invalid, duplicate_id
            or wrong_value; every fault that was found.
    """
    faults = list(_structure(policy))
    steps = []
    for index, step in enumerate(policy.steps):
        server = policy.contract.server(step.server)
        tool = None if server is None else server.tool(step.tool)
        if server is None or tool is None:
            continue
        candidates = tuple(
            _candidate(server, tool, name, _with_task(arguments.value, task)) for name, arguments in step.candidates
        )
        faults.extend(_calls(index, step, tool, candidates, task))
        steps.append(
            PlannedStep(
                index=index,
                name=step.choose or _call_name(index),
                choice=bool(step.choose),
                server=server,
                tool=tool,
                target=step.target,
                candidates=candidates,
            )
        )
    if faults:
        raise DocumentError(
            Problem(each.reason, f"{_at(each.where)}: {each.detail}", hint=each.hint) for each in faults
        )
    return Plan(policy=policy, task=task, steps=tuple(steps))


def _candidate(server: Server, tool: Tool, name: str, arguments: Json) -> Candidate:
    data = canonical_bytes(arguments)
    digest = digest_of("candidate@1", server.digest.encode(), tool.name.encode(), data)
    return Candidate(name=name, server=server.id, tool=tool.name, arguments=data, digest=digest)


def _with_task(value: Json, task: str) -> Json:
    """A fresh value with the task at every `{from: run.task}`."""
    if type(value) is dict:
        return task if value == _TASK else {key: _with_task(each, task) for key, each in value.items()}
    if type(value) is list:
        return [_with_task(each, task) for each in value]
    return value


def _call_name(index: int) -> str:
    return f"step-{index + 1}"


def _at(where: Where) -> str:
    return "/".join(str(each) for each in where)


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
        where: Where = ("steps", index)
        yield from _group(policy, index, step, where)
        server = policy.contract.server(step.server)
        if server is None:
            detail = f"the contract `{policy.contract.id}` has no server `{step.server}`"
            yield Fault(Reason.UNKNOWN_SERVER, where, detail)
            continue
        tool = server.tool(step.tool)
        if tool is None:
            yield Fault(Reason.UNKNOWN_TOOL, where, f"the server `{step.server}` has no tool `{step.tool}`")
            continue
        if step.effect is not None and step.effect is not tool.effect:
            detail = f"`{step.tool}` is `{tool.effect.value}` in the contract, not `{step.effect.value}`"
            yield Fault(Reason.EFFECT_MISMATCH, where, detail)
        for name, arguments in step.candidates:
            if type(arguments.value) is not dict:
                yield Fault(Reason.WRONG_VALUE, (*where, name), "the arguments are not an object")
            elif not _references_are_known(arguments.value):
                hint = "write {from: run.task}"
                yield Fault(Reason.WRONG_VALUE, (*where, name), "`from` names nothing that is known", hint)
            elif step.target and step.target not in arguments.value:
                yield Fault(Reason.WRONG_VALUE, (*where, name), f"the target argument `{step.target}` is missing")


def _group(policy: Policy, index: int, step: Step, where: Where) -> Iterator[Fault]:
    count = len(step.candidates)
    if not step.choose:
        if count != 1:
            yield Fault(Reason.GROUP_COUNT, where, f"a single call has one candidate, not {count}")
        return
    if policy.contract.legacy:
        yield Fault(Reason.GROUP_LEGACY, where, "a single-server contract allows no choice group")
    if index != len(policy.steps) - 1:
        yield Fault(Reason.GROUP_NOT_LAST, where, "a choice group must be the last step and the only group")
    if count < 2 or (count != 2 and CANDIDATE_COUNT not in policy.extensions):
        hint = f"from two candidates on, ask for the extension `{CANDIDATE_COUNT}`"
        yield Fault(Reason.GROUP_COUNT, where, f"a choice group has exactly two candidates, not {count}", hint)
    if len({name for name, _ in step.candidates}) != count or step.choose in map(_call_name, range(index)):
        yield Fault(Reason.DUPLICATE_ID, where, "two candidates, or two steps, have one name")


def _references_are_known(value: Json) -> bool:
    if type(value) is dict:
        if set(value) == {"from"}:
            return bool(value == _TASK)
        return all(_references_are_known(each) for each in value.values())
    return all(_references_are_known(each) for each in value) if type(value) is list else True


def _calls(index: int, step: Step, tool: Tool, candidates: tuple[Candidate, ...], task: str) -> Iterator[Fault]:
    """What is wrong with the calls themselves, once the task is in them."""
    schema = checker(tool)
    seen: dict[bytes, str] = {}
    for candidate in candidates:
        where: Where = ("steps", index, candidate.name)
        arguments = Canonical(candidate.arguments).value
        for fault in schema.faults(arguments):
            yield Fault(Reason.ARGUMENTS_INVALID, where, f"{fault.path or '/'}: {fault.message}")
        if candidate.arguments in seen:
            detail = f"`{candidate.name}` is the same call as `{seen[candidate.arguments]}`"
            yield Fault(Reason.GROUP_REPEATED, where, detail)
        seen[candidate.arguments] = candidate.name
        if step.choose and type(arguments) is dict and arguments.get(_TASK_ARGUMENT, task) != task:
            detail = f"`{_TASK_ARGUMENT}` is not the run's task"
            yield Fault(Reason.GROUP_OTHER_TASK, where, detail, f"write {_TASK_ARGUMENT}: {{from: run.task}}")
