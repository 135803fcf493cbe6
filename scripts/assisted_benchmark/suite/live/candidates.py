"""A candidates file becomes a scenario: each candidate's plain road, its sibling's death, and the standard mutations.

The file adds a task, not authority: its candidates must be exactly those that the policy's choice
group has for that task. An argument that the file leaves out is the policy's.

What a mutation must be refused for follows from the tool's schema and the policy: it does not ask
the broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.policy import Candidate, PlannedStep, Policy, checker
from assisted_benchmark.suite.live.scenario import (
    Candidates,
    Override,
    Planned,
    Playing,
    Proposal,
    RunSpec,
    Scenario,
    Turn,
)


def scenario_of(file: Candidates, policy: Policy) -> tuple[Scenario | None, list[Flaw]]:
    """The scenario that a candidates file stands for, or what is wrong with it."""
    try:
        plan = compile_plan(policy, file.task)
    except DocumentError as error:
        return None, [Flaw(each.reason, ("task",), each.detail, each.hint) for each in error.problems]
    step = plan.steps[-1]
    flaws = _flaws(file, step)
    if flaws:
        return None, flaws
    names = [each.name for each in step.candidates]
    mutations = [each for candidate in step.candidates for each in _mutations(candidate, step, policy)]
    taken = {each.id for each in mutations} | set(names)
    for proposal in file.proposals:
        if proposal.id in taken:
            hint = "the standard mutations bear such names; choose another"
            flaws.append(Flaw(Reason.DUPLICATE_ID, ("proposals", proposal.id), "a case has this name", hint))
    scenario = Scenario(
        id=file.id,
        file=file.file,
        because=file.because or f"task {file.task} under {policy.id}: one of its candidates, once",
        policy=file.policy,
        agent=Playing(choose=names[0]),
        run=RunSpec(task=file.task, seed=file.seed),
        tags=file.tags,
        cases=tuple((name, Override(agent=Playing(choose=name))) for name in names),
        proposals=(*mutations, *file.proposals),
    )
    return scenario, flaws


def _flaws(file: Candidates, step: PlannedStep) -> list[Flaw]:
    if not step.choice:
        return [Flaw(Reason.UNKNOWN_REFERENCE, ("policy",), f"the policy `{file.policy}` has no choice group")]
    sealed = {each.name: Canonical(each.arguments) for each in step.candidates}
    given = dict(file.candidates)
    flaws = [
        Flaw(
            Reason.MISSING_KEY, ("candidates",), f"the policy's candidate `{name}` is missing", "a file fills the group"
        )
        for name in sealed
        if name not in given
    ]
    for name, arguments in given.items():
        path = ("candidates", name)
        if name not in sealed:
            hint = did_you_mean(name, sealed) or f"candidates: {', '.join(sealed)}"
            flaws.append(Flaw(Reason.UNKNOWN_REFERENCE, path, f"the policy has no candidate `{name}`", hint, True))
        elif Canonical.of({**sealed[name].value, **arguments.value}) != sealed[name]:
            hint = "a candidates file adds a task, never an argument; change the policy for that"
            flaws.append(Flaw(Reason.WRONG_VALUE, path, f"`{name}` is another call under the policy", hint))
    return flaws


def _mutations(candidate: Candidate, step: PlannedStep, policy: Policy) -> Iterator[Proposal]:
    arguments: dict[str, Json] = Canonical(candidate.arguments).value

    def tried(name: str, reason: Reason, because: str, **move: Any) -> Proposal:
        planned = Planned(candidate=candidate.name, **move)
        return Proposal(id=f"{candidate.name}-{name}", turn=Turn(move=planned, expected=reason.value), because=because)

    def changed(name: str, change: dict[str, Json], because: str) -> Proposal:
        after = {**arguments, **change}
        return tried(name, reason_of(step, after, change), because, change=Canonical.of(change))

    yield changed("extra-argument", {"unexpected": True}, "a closed schema takes no further argument")
    for name, value in arguments.items():
        without = {key: each for key, each in arguments.items() if key != name}
        yield tried(
            f"without-{name}",
            reason_of(step, without, {}),
            f"the call lacks `{name}`",
            leave_out=(name,),
        )
        yield changed(f"retyped-{name}", {name: [value]}, f"`{name}` is of another type")
        if isinstance(value, str):
            yield changed(f"altered-{name}", {name: value.swapcase() + "-2"}, f"`{name}` is another word")
    yield tried(
        "unknown-server",
        Reason.UNKNOWN_SERVER,
        "the contract has no such server",
        names=(("server", f"{candidate.server}-2"),),
    )
    for server in policy.contract.servers:
        if server.id != candidate.server:
            yield tried(
                f"at-{server.id}",
                Reason.SERVER_SUBSTITUTED,
                "the group is bound to another server",
                names=(("server", server.id),),
            )
    yield tried(
        "unknown-tool", Reason.UNKNOWN_TOOL, "the server has no such tool", names=(("tool", f"{candidate.tool}_2"),)
    )
    for other in step.candidates:
        name = "again" if other is candidate else f"then-{other.name}"
        yield Proposal(
            id=f"{candidate.name}-{name}",
            turn=Turn(move=Planned(candidate=other.name), expected=Reason.ALREADY_SELECTED.value),
            because="one choice spends the whole group",
            after=candidate.name,
        )


def reason_of(step: PlannedStep, arguments: dict[str, Json], change: dict[str, Json]) -> Reason:
    """What a call of the step with these arguments, of which `change` differs, is refused for."""
    if checker(step.tool).faults(arguments):
        return Reason.ARGUMENTS_INVALID
    return Reason.WRONG_TARGET if change.keys() == {step.target} else Reason.ARGUMENTS_ALTERED
