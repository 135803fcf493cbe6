"""A capability scenario becomes cases: each call ready, each expectation that follows from others derived. Pure.

What is derived, unless it is stated and if no fault is declared, `deriving.py` says: what a plan's calls come to, from
the person; what was executed at the host and how each operation ended, from the decisions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from attrs import evolve, frozen

from assisted_benchmark.capability.registry import Authority, Registry
from assisted_benchmark.capability.resources import ArtifactAddress, InstanceAddress, written
from assisted_benchmark.contract.strict_yaml import Path
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.suite.capability.agents import FROM, CapabilityAgent, Shot
from assisted_benchmark.suite.capability.deriving import derived, plan
from assisted_benchmark.suite.capability.faults import Fault, Kind
from assisted_benchmark.suite.capability.naming import Names, operation_id
from assisted_benchmark.suite.capability.scenario import (
    BROKER,
    AgentSpec,
    CapabilityCase,
    Expect,
    Goal,
    GoalOf,
    Manage,
    Operate,
    Override,
    Person,
    Playing,
    ReadResource,
    Run,
    Scenario,
    Scripted,
    Turn,
    Wanted,
)
from assisted_benchmark.suite.case import folder_of
from assisted_benchmark.suite.tables import Flaws, rows
from assisted_benchmark.workloads.plugin_host_faults import HostFault

_REFERENCES: Final = ("grant.last", "grant.first")
_OF_RESULT: Final = "result."


@frozen
class Origin:
    """What a scenario's cases share: the registry, and a digest of all files that were read."""

    registry: Registry
    source: Digest


class _Part(NamedTuple):
    """What one case is made of: the scenario's own, with what its rows set; `where` says in which row that stands."""

    because: str
    run: Run
    eligible: tuple[str, ...] | None
    standing: tuple[str, ...]
    agent: AgentSpec
    person: Person
    faults: tuple[Fault, ...]
    expect: Expect
    where: Mapping[str, Path]


def cases_of(scenario: Scenario, origin: Origin) -> tuple[tuple[CapabilityCase, ...], Flaws]:
    """Every case of a scenario in file order, and what is wrong with references that only the registry can tell."""
    expansion = _Expansion(scenario, origin)
    cases = tuple(expansion.all())
    return cases, expansion.flaws


def host_fault(registry: Registry, value: Json) -> HostFault:
    """A fault of the host, as a scenario declares it.

    Raises:
        InputError: what is said of it does not go together.
    """
    said = {("kind" if key == "does" else key): each for key, each in value.items()}
    if "operation" in said:
        said["operation"] = operation_id(registry, said["operation"])
    return HostFault.parse(said)


def _set_by(row: Override) -> Iterator[str]:
    """What of the parts that refer to something this row sets."""
    yield from (name for name in ("agent", "faults", "eligible", "standing") if getattr(row, name) is not None)
    if "executed" in row.expect:
        yield "expect"


class _Expansion:
    def __init__(self, scenario: Scenario, origin: Origin) -> None:
        self.flaws = Flaws()
        self._scenario = scenario
        self._origin = origin
        self._registry = origin.registry
        self._names = Names(origin.registry, self.flaws)

    def all(self) -> Iterator[CapabilityCase]:
        for name, parts in rows(self._scenario.cases, self._scenario.matrix):
            yield self._case(name, self._part(parts))

    def _case(self, name: str, part: _Part) -> CapabilityCase:
        scenario = self._scenario
        agent = self._agent(part)
        for index, fault in enumerate(part.faults):
            self._check(fault, agent, (*part.where.get("faults", ()), "faults", index))
        expect = self._names.executed(part.expect, part.where.get("expect", ()))
        return CapabilityCase(
            id=f"{folder_of(scenario.file, BROKER)}/{scenario.id}/{name}",
            file=scenario.file,
            because=part.because or scenario.because,
            tags=scenario.tags,
            registry=self._registry,
            source=self._origin.source,
            agent=agent,
            goals=self._goals(part.agent),
            run=part.run,
            eligible=self._names.eligible(part.eligible, part.where.get("eligible", ())),
            standing=self._names.standing(part.standing, part.where.get("standing", ())),
            person=part.person,
            servers=scenario.servers,
            faults=part.faults,
            expect=derived(expect, agent) if not part.faults else expect,
        )

    def _part(self, parts: tuple[tuple[Path, Override], ...]) -> _Part:
        scenario = self._scenario
        part = _Part(
            scenario.because,
            scenario.run,
            scenario.eligible,
            scenario.standing,
            scenario.agent,
            scenario.person,
            scenario.faults,
            scenario.expect,
            {},
        )
        for path, row in parts:
            part = _Part(
                row.because or part.because,
                evolve(part.run, **row.run),
                part.eligible if row.eligible is None else row.eligible,
                part.standing if row.standing is None else row.standing,
                row.agent or part.agent,
                row.person or part.person,
                part.faults if row.faults is None else row.faults,
                evolve(part.expect, **row.expect),
                {**part.where, **dict.fromkeys(_set_by(row), path)},
            )
        return part

    def _check(self, fault: Fault, agent: CapabilityAgent, path: Path) -> None:
        """Whether the fault is one that can strike there."""
        turn = fault.turn or len(agent.shots)
        if turn > len(agent.shots):
            detail = f"the agent makes {len(agent.shots)} calls, so a fault at the {fault.turn}. never strikes"
            hint = "without `turn` it strikes at the last"
            self.flaws.add(Reason.UNKNOWN_REFERENCE, (*path, "turn"), detail, hint)
            return
        if fault.kind is Kind.CANCEL and turn and "request_id" not in agent.shots[turn - 1].arguments.value:
            detail, hint = "the call has no request id that it could be cancelled by", "give the call a `request`"
            self.flaws.add(Reason.WRONG_VALUE, (*path, fault.kind.value), detail, hint)
        if fault.kind is not Kind.HOST:
            return
        place = (*path, fault.kind.value)
        if "operation" in fault.value:
            self._names.operation(fault.value["operation"], (*place, "operation"))
        try:
            host_fault(self._registry, fault.value)
        except InputError as error:
            self.flaws.add(Reason.WRONG_VALUE, place, error.detail, "fixtures/README.md says what goes with what")

    def _goals(self, agent: AgentSpec) -> tuple[GoalOf, ...]:
        wanted = self._wanted(agent)
        if wanted is None:
            return ()
        if self._scenario.goal is not None:
            self._names.operation(wanted.operation, ("goal", "call"))
        operation = self._registry.operation(operation_id(self._registry, wanted.operation))
        if operation is None:
            return ()
        return (GoalOf(operation.id, hashlib.sha256(wanted.input.data).hexdigest()),)

    def _wanted(self, agent: AgentSpec) -> Wanted | None:
        return self._scenario.goal or (agent.wanted if isinstance(agent, Playing) else None)

    # --- agents

    def _agent(self, part: _Part) -> CapabilityAgent:
        spec, path = part.agent, (*part.where.get("agent", ()), "agent")
        if isinstance(spec, Scripted):
            numbered = enumerate(spec.turns)
            shots = tuple(self._shot(turn, (*path, "script", index)) for index, turn in numbered)
            return CapabilityAgent(name="script", shots=shots)
        if spec is Goal.NOP:
            return CapabilityAgent(name="nop")
        wanted = self._wanted(spec)
        if isinstance(spec, Playing):
            name, wanted, where = f"plan:{spec.wanted.operation}", spec.wanted, (*path, "plan")
        else:
            name, where = "oracle", ("goal", "call")
        if wanted is None:
            detail, hint = "the agent `oracle` plays the scenario's goal, and there is none", "add `goal: {call: …}`"
            self.flaws.add(Reason.WRONG_VALUE, path, detail, hint)
            return CapabilityAgent(name=name, plans=True)
        operation = self._names.operation(wanted.operation, where)
        if operation is None:
            return CapabilityAgent(name=name, plans=True)
        surely = not part.faults and part.eligible is None
        turns = plan(operation, wanted, part.person, standing=bool(part.standing), surely=surely)
        return CapabilityAgent(name=name, shots=tuple(self._shot(turn, where) for turn in turns), plans=True)

    def _shot(self, turn: Turn, path: Path) -> Shot:
        move = turn.move
        if isinstance(move, Operate):
            shot = self._operate(move, path)
        elif isinstance(move, Manage):
            shot = self._manage(move)
        elif isinstance(move, ReadResource):
            shot = self._read(move)
        else:
            size = "" if move.raw is None else f" {len(move.raw)} bytes"
            shot = Shot(
                tool=move.tool, arguments=move.arguments, raw=move.raw, text=f"call {shown(move.tool, 60)}{size}"
            )
        self._references(shot.arguments.value, path)
        return evolve(
            shot,
            client=turn.client,
            run=turn.run,
            person=turn.person or "",
            wait_ns=turn.wait_ns,
            expected=turn.expected,
            replayed=turn.replayed,
        )

    def _operate(self, move: Operate, path: Path) -> Shot:
        operation = self._names.operation(move.operation, (*path, "call"))
        identity = operation_id(self._registry, move.operation) if operation is None else operation.id
        told = shown(move.input.data.decode(), 300)
        acts = operation is not None and operation.authority is not Authority.ARTIFACT_ACL
        return Shot(
            tool=self._registry.tool_name(identity),
            operation=identity if acts else "",
            arguments=Canonical.of({**move.also, "input": move.input.value}),
            text=f"call {move.operation} {told} on {move.also['instance_id']}",
        )

    def _manage(self, move: Manage) -> Shot:
        arguments: dict[str, Json] = dict(move.arguments.value)
        if move.authority:
            # A profile that the registry does not have may be just what is tried, as may an operation be.
            known = self._registry.operation(operation_id(self._registry, move.authority))
            names = "operation_id" if known is not None or "/" in move.authority else "profile"
            full = operation_id(self._registry, move.authority) if names == "operation_id" else move.authority
            arguments[names] = full
        tool = self._registry.management_tool(move.name)
        return Shot(tool=tool, arguments=Canonical.of(arguments), text=f"{move.name} {move.authority}".rstrip())

    def _read(self, move: ReadResource) -> Shot:
        scheme = self._registry.scheme
        arguments: dict[str, Json] = {"uri": move.what}
        if move.what == "instance":
            arguments = {"uri": written(scheme, InstanceAddress(move.instance))}
        elif move.what == "artifact":
            stem = written(scheme, ArtifactAddress(move.instance, ""))
            arguments = {"uri": stem, "artifact": {FROM: f"{_OF_RESULT}artifact_id"}}
        return Shot(arguments=Canonical.of(arguments), text=f"read {shown(move.what, 100)}")

    def _references(self, value: Json, path: Path) -> None:
        """Whether every `{from: WORD}` is one that there is."""
        if type(value) is list:
            for each in value:
                self._references(each, path)
        elif type(value) is dict:
            word = value.get(FROM)
            if value.keys() == {FROM} and word not in _REFERENCES and not str(word).startswith(_OF_RESULT):
                hint = "there are `grant.last`, `grant.first` and `result.FIELD`"
                self.flaws.add(Reason.UNKNOWN_REFERENCE, path, f"nothing is named `{shown(str(word), 60)}`", hint)
            for each in value.values():
                self._references(each, path)
