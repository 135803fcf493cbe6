"""A capability scenario becomes cases: each call ready, each expectation that follows from others derived. Pure.

What is derived, unless it is stated and if no fault is declared: what a plan's calls come to, from the person; what
was executed at the host and how each operation ended, from the decisions.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from attrs import evolve, frozen

from assisted_benchmark.capability.registry import VERSION_SUFFIX, Authority, Operation
from assisted_benchmark.capability.registry import Registry as Contract
from assisted_benchmark.capability.resources import ArtifactAddress, InstanceAddress, written
from assisted_benchmark.capability.states import State
from assisted_benchmark.contract.strict_yaml import Path
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.capability.agents import FROM, CapabilityAgent, Shot
from assisted_benchmark.suite.capability.faults import Fault
from assisted_benchmark.suite.capability.scenario import (
    BROKER,
    COMPLETED,
    FIRST_INSTANCE,
    GRANTED,
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

# Without a fault a call of an operation that comes to one of these was never admitted.
_MAYBE_ADMITTED: Final = frozenset(
    reason.value
    for reason in (
        Reason.FAILED,
        Reason.STATE_CONFLICT,
        Reason.RESULT_INVALID,
        Reason.OUTCOME_UNKNOWN,
        Reason.CANCELLED,
        Reason.DEADLINE_EXCEEDED,
        Reason.COMPLETED_AFTER_REVOCATION,
    )
)
_REFERENCES: Final = ("grant.last", "grant.first")
_OF_RESULT: Final = "result."


@frozen
class Origin:
    """What a scenario's cases share: the registry, and a digest of all files that were read."""

    registry: Contract
    source: Digest


class _Part(NamedTuple):
    """What one case is made of: the scenario's own, with what its rows set; and where agent and faults stand."""

    because: str
    run: Run
    eligible: tuple[str, ...] | None
    standing: tuple[str, ...]
    agent: AgentSpec
    person: Person
    faults: tuple[Fault, ...]
    expect: Expect
    in_agent: Path = ()
    in_faults: Path = ()
    in_expect: Path = ()


def operation_id(registry: Contract, name: str) -> str:
    """The id of an operation that a scenario names in full, or without namespace and version."""
    return name if name.endswith(VERSION_SUFFIX) else f"{registry.namespace}{name}{VERSION_SUFFIX}"


def short_name(registry: Contract, operation: str) -> str:
    """An operation as scenarios name it."""
    return operation.removeprefix(registry.namespace).removesuffix(VERSION_SUFFIX)


def cases_of(scenario: Scenario, origin: Origin) -> tuple[tuple[CapabilityCase, ...], Flaws]:
    """Every case of a scenario in file order, and what is wrong with references that only the registry can tell."""
    expansion = _Expansion(scenario, origin)
    cases = tuple(expansion.all())
    return cases, expansion.flaws


class _Expansion:
    def __init__(self, scenario: Scenario, origin: Origin) -> None:
        self.flaws = Flaws()
        self._scenario = scenario
        self._origin = origin
        self._registry = origin.registry

    def all(self) -> Iterator[CapabilityCase]:
        for name, parts in rows(self._scenario.cases, self._scenario.matrix):
            yield self._case(name, self._part(parts))

    def _case(self, name: str, part: _Part) -> CapabilityCase:
        scenario = self._scenario
        agent = self._agent(part)
        for index, fault in enumerate(part.faults):
            where = (*part.in_faults, "faults", index)
            if fault.turn > len(agent.shots):
                detail = f"the agent makes {len(agent.shots)} calls, so a fault at the {fault.turn}. never strikes"
                self.flaws.add(
                    Reason.UNKNOWN_REFERENCE, (*where, "turn"), detail, "without `turn` it strikes at the last"
                )
            if type(fault.value) is dict and "operation" in fault.value:
                self._operation(fault.value["operation"], (*where, fault.kind.value, "operation"))
        expect = self._executed(part)
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
            eligible=self._eligible(part.eligible),
            standing=self._standing(part.standing),
            person=part.person,
            servers=scenario.servers,
            faults=part.faults,
            expect=_derived(expect, agent) if not part.faults else expect,
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
                part.in_agent if row.agent is None else path,
                part.in_faults if row.faults is None else path,
                part.in_expect if "executed" not in row.expect else path,
            )
        return part

    # --- names

    def _operation(self, name: str, path: Path) -> Operation | None:
        found = self._registry.operation(operation_id(self._registry, name))
        if found is None:
            names = [short_name(self._registry, each.id) for each in self._registry.operations]
            hint = did_you_mean(name, names) or f"operations: {', '.join(names)}"
            detail = f"the registry `{self._registry.id}` has no operation `{shown(name, 60)}`"
            self.flaws.add(Reason.UNKNOWN_REFERENCE, path, detail, hint)
        return found

    def _eligible(self, names: tuple[str, ...] | None) -> frozenset[str]:
        if names is None:
            return frozenset(each.id for each in self._registry.operations)
        return frozenset(
            each.id for name in names if (each := self._operation(name, ("eligible", names.index(name)))) is not None
        )

    def _standing(self, names: tuple[str, ...]) -> frozenset[str]:
        profiles = self._registry.profiles
        return frozenset(name if name in profiles else operation_id(self._registry, name) for name in names)

    def _executed(self, part: _Part) -> Expect:
        """The expectation with its operations in full."""
        said = part.expect.executed
        if said is None:
            return part.expect
        found = [(self._operation(name, (*part.in_expect, "expect", "executed", name)), count) for name, count in said]
        return evolve(part.expect, executed=tuple((each.id, count) for each, count in found if each is not None))

    def _goals(self, agent: AgentSpec) -> tuple[GoalOf, ...]:
        wanted = self._wanted(agent)
        if wanted is None:
            return ()
        operation = self._operation(wanted.operation, ("goal", "call"))
        if operation is None:
            return ()
        return (GoalOf(operation.id, hashlib.sha256(wanted.input.data).hexdigest()),)

    def _wanted(self, agent: AgentSpec) -> Wanted | None:
        return self._scenario.goal or (agent.wanted if isinstance(agent, Playing) else None)

    # --- agents

    def _agent(self, part: _Part) -> CapabilityAgent:
        spec, path = part.agent, (*part.in_agent, "agent")
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
        operation = self._operation(wanted.operation, where)
        if operation is None:
            return CapabilityAgent(name=name, plans=True)
        turns = _plan(operation, wanted, part)
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
        operation = self._operation(move.operation, (*path, "call"))
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
        scheme, arguments = self._registry.scheme, {"uri": move.what}
        if move.what == "instance":
            arguments = {"uri": written(scheme, InstanceAddress(move.instance))}
        elif move.what == "artifact":
            stem = written(scheme, ArtifactAddress(move.instance, ""))
            arguments = {"uri": stem, "artifact": {FROM: f"{_OF_RESULT}artifact_id"}}  # type: ignore[dict-item]
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


def _plan(operation: Operation, wanted: Wanted, part: _Part) -> Iterator[Turn]:
    """The calls of an agent that does one thing as it should be done, and what comes of them."""
    faulty = bool(part.faults)
    asks = operation.grantable
    consents = part.person is Person.APPROVE
    if asks:
        word = GRANTED if consents else ""
        if part.person in (Person.DENY, Person.SILENT, Person.LATE, Person.UNAVAILABLE, Person.NOTHING):
            word = Reason.CONSENT_REQUIRED.value
        elif part.person is Person.REPLAY:
            word = Reason.CONSENT_REPLAY.value
        asked = Manage(
            name="grant_request",
            arguments=Canonical.of({"instance_id": FIRST_INSTANCE}),
            authority=wanted.operation,
        )
        yield Turn(move=asked, expected="" if faulty or part.standing else word)
    grant = {"grant_id": {FROM: "grant.last"}} if asks else {}
    call = Operate(
        operation=wanted.operation,
        input=wanted.input,
        also={"instance_id": FIRST_INSTANCE, "request_id": "plan", **grant},
    )
    good = consents and operation.advertised and part.eligible is None
    yield Turn(move=call, expected=COMPLETED if good and not faulty else "")


def _derived(expect: Expect, agent: CapabilityAgent) -> Expect:
    shots = agent.shots
    decisions = expect.decisions
    if decisions is None:
        said = tuple(shot.expected for shot in shots)
        if expect.refused is not None and said:
            said = (*said[:-1], expect.refused.value)
        if agent.plans and said and said[0] not in ("", GRANTED, COMPLETED):
            said = said[:1]  # the agent gives up at its first failure
        if not all(said):
            return expect
        decisions = said
    acted = [(shot, word) for shot, word in zip(shots, decisions, strict=False) if shot.operation and not shot.replayed]
    if any(word in _MAYBE_ADMITTED for _, word in acted):
        return evolve(expect, decisions=decisions)
    done = [shot.operation for shot, word in acted if word == COMPLETED]
    return evolve(
        expect,
        decisions=decisions,
        executed=tuple(sorted(Counter(done).items())) if expect.executed is None else expect.executed,
        states=tuple(State.COMPLETED.value for _ in done) if expect.states is None else expect.states,
    )
