"""A scenario becomes cases: each proposal's bytes ready, each expectation that follows from others derived. Pure.

What is derived, unless it is stated and if no fault is declared: the plan's agent is admitted at every step;
the n-th call that went out is the plan's n-th, so the calls that each server gets, zeros included, and
the last group's state follow from the decisions. Where a decision leaves open whether the call went out
(`outcome_unknown`), or what became of the group, that is not derived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from attrs import evolve, field, frozen

from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.strict_yaml import Path
from assisted_benchmark.kernel.canonical import Canonical, canonical_bytes
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.policy import Plan, PlannedStep, Policy
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.live_policy.trust import Pins
from assisted_benchmark.suite.case import ADMITTED, Servers, folder_of
from assisted_benchmark.suite.live.agents import CaseAgent, Outside, Shot
from assisted_benchmark.suite.live.faults import Fault, Kind
from assisted_benchmark.suite.live.generated import Generated, shots_of
from assisted_benchmark.suite.live.in_process import has_model
from assisted_benchmark.suite.live.program import Program
from assisted_benchmark.suite.live.scenario import (
    BROKER,
    AgentSpec,
    Command,
    Expect,
    LiveCase,
    Override,
    Planned,
    Playing,
    Proposal,
    Raw,
    RunSpec,
    Sanity,
    Scenario,
    Scripted,
    Transcribed,
    Turn,
)
from assisted_benchmark.suite.live.shots import ready
from assisted_benchmark.suite.live.transcripts.calls import Transcript
from assisted_benchmark.suite.live.transcripts.playing import shots_of as shots_of_transcript
from assisted_benchmark.suite.tables import Flaws, rows

# What a decision says of its group where the call went out.
_ENDS: Final = {
    ADMITTED: State.SUCCEEDED,
    Reason.FAILED.value: State.FAILED,
    Reason.LATE_RESULT.value: State.UNRESOLVED,
    Reason.RESULT_INVALID.value: State.UNRESOLVED,
    Reason.OUTCOME_UNKNOWN.value: State.UNRESOLVED,
}
_REFUSED: Final = "refused"  # for whatever reason
# After these it cannot be told from the decisions alone whether the group is still open.
_OPEN_OR_NOT: Final = frozenset({Reason.SERVER_UNAVAILABLE.value, Reason.EXHAUSTED.value})


@frozen(kw_only=True)
class Origin:
    """What a scenario's cases share: the policy, the pins, the contract's folder, a digest of all files read.

    `plans` and `tables` are what was made of the policy so far, by task; scenarios of one policy share them.
    `transcripts` are those that the scenario's agents play.
    """

    policy: Policy
    pins: Pins
    folder: str
    source: Digest
    plans: dict[str, Plan] = field(factory=dict)
    tables: dict[str, tuple[Mapping[str, Shot], ...]] = field(factory=dict)
    transcripts: Mapping[Transcribed, Transcript] = field(factory=dict)


def cases_of(scenario: Scenario, origin: Origin) -> tuple[tuple[LiveCase, ...], list[Flaw]]:
    """Every case of a scenario in file order, and what is wrong with references that only the policy can tell."""
    expansion = _Expansion(scenario, origin)
    cases = tuple(expansion.all())
    return cases, expansion.flaws


class _Expansion:
    def __init__(self, scenario: Scenario, origin: Origin) -> None:
        self.flaws = Flaws()
        self._scenario = scenario
        self._origin = origin
        self._unfit: set[str] = set()

    def all(self) -> Iterator[LiveCase]:
        scenario = self._scenario
        seen: set[str] = set()
        self._check_calls(scenario.expect.calls, ())
        for name, parts in rows(scenario.cases, scenario.matrix):
            seen.add(name)
            if (case := self._row(name, parts)) is not None:
                yield case
        for proposal in scenario.proposals:
            path = ("proposals", proposal.id)
            if proposal.id in seen:
                self.flaws.add(
                    Reason.DUPLICATE_ID, path, f"another case is named `{proposal.id}`", "rename one of them"
                )
            elif (case := self._proposal(proposal, path)) is not None:
                yield case

    def _row(self, name: str, parts: tuple[tuple[Path, Override], ...]) -> LiveCase | None:
        scenario = self._scenario
        run, agent, faults, expect = scenario.run, scenario.agent, scenario.faults, scenario.expect
        in_run: Path = ()
        in_agent: Path = ()
        in_faults: Path = ()
        for path, each in parts:
            run = evolve(run, **each.run)
            in_run = path if each.run else in_run
            agent, in_agent = (agent, in_agent) if each.agent is None else (each.agent, path)
            faults, in_faults = (faults, in_faults) if each.faults is None else (each.faults, path)
            expect = evolve(expect, **each.expect)
            self._check_calls(each.expect.get("calls"), path)
        plan = self._plan(run, in_run)
        if plan is None:
            return None
        playing = self._agent(agent, plan, faults, (*in_agent, "agent"))
        self._check_faults(faults, plan, playing, in_faults)
        return self._case(name, scenario.because, plan, playing, run, faults, _derived(expect, playing, plan, faults))

    def _proposal(self, proposal: Proposal, path: Path) -> LiveCase | None:
        scenario = self._scenario
        run = scenario.run
        plan = self._plan(run, ())
        if plan is None:
            return None
        place = proposal.at or len(plan.steps)
        if place > len(plan.steps):
            self.flaws.add(Reason.UNKNOWN_REFERENCE, (*path, "at"), f"the policy has {len(plan.steps)} steps", "")
            return None
        own = scenario.agent.choose if isinstance(scenario.agent, Playing) else ""
        before = [Turn(move=Planned(step=number), expected=ADMITTED) for number in range(1, place)]
        if proposal.after:
            before.append(Turn(move=Planned(step=place, candidate=proposal.after), expected=ADMITTED))
        turns = (*before, proposal.turn)
        shots = tuple(self._shot(turn, plan, place, own, path) for turn in turns)
        name = _name(scenario.agent)
        faults = scenario.faults if proposal.faults is None else proposal.faults
        refused = Reason(proposal.turn.expected) if proposal.turn.expected != ADMITTED else None
        agent = CaseAgent(name=name, shots=shots)
        self._check_faults(faults, plan, agent, () if proposal.faults is None else path)
        expect = _derived(Expect(refused=refused), agent, plan, faults)
        return self._case(proposal.id, proposal.because or scenario.because, plan, agent, run, faults, expect)

    def _case(
        self,
        name: str,
        because: str,
        plan: Plan,
        agent: CaseAgent,
        run: RunSpec,
        faults: tuple[Fault, ...],
        expect: Expect,
    ) -> LiveCase:
        scenario, origin = self._scenario, self._origin
        return LiveCase(
            id=f"{folder_of(scenario.file, BROKER)}/{scenario.id}/{name}",
            file=scenario.file,
            because=because,
            tags=scenario.tags,
            plan=plan,
            pins=origin.pins,
            folder=origin.folder,
            source=origin.source,
            agent=agent,
            run=run,
            servers=scenario.servers or usual_servers(plan),
            reveal=scenario.reveal,
            faults=faults,
            expect=expect,
            visibility=scenario.visibility,
            instructions=scenario.instructions,
        )

    def _plan(self, run: RunSpec, path: Path) -> Plan | None:
        plans = self._origin.plans
        if run.task not in plans and run.task not in self._unfit:
            try:
                plans[run.task] = compile_plan(self._origin.policy, run.task)
            except DocumentError as error:
                self._unfit.add(run.task)
                for problem in error.problems:
                    detail = f"the policy `{self._origin.policy.id}` does not fit the task: {problem.detail}"
                    self.flaws.add(problem.reason, (*path, "run"), detail, problem.hint)
        return plans.get(run.task)

    def _table(self, plan: Plan) -> tuple[Mapping[str, Shot], ...]:
        """The plan's own calls, by step and candidate."""
        tables = self._origin.tables
        if plan.task not in tables:
            tables[plan.task] = tuple(
                {each.name: ready(each.proposal, plan, ADMITTED, step.index) for each in step.candidates}
                for step in plan.steps
            )
        return tables[plan.task]

    def _agent(self, agent: AgentSpec, plan: Plan, faults: tuple[Fault, ...], path: Path) -> CaseAgent:
        name = _name(agent)
        if isinstance(agent, Scripted):
            shots = tuple(
                self._shot(turn, plan, 1, "", (*path, "script", index)) for index, turn in enumerate(agent.turns)
            )
            return CaseAgent(name=name, shots=shots)
        if isinstance(agent, Transcribed):
            return CaseAgent(name=name, shots=shots_of_transcript(self._origin.transcripts[agent], plan))
        if isinstance(agent, Generated):
            return CaseAgent(name=name, shots=shots_of(agent, plan, sure=not faults))
        if agent is Sanity.NOP:
            return CaseAgent(name=name)
        if isinstance(agent, Command):
            program = Program(
                argv=agent.argv,
                folder=self._origin.folder,
                environment=agent.environment,
                within_ns=agent.within_ns,
            )
            return CaseAgent(name=name, plan=self._table(plan), outside=Outside(drive=program))
        choice = agent.choose if isinstance(agent, Playing) else ""
        step = plan.steps[-1]
        if isinstance(agent, Playing) and step.choice and not choice:
            names = [each.name for each in step.candidates]
            detail = f"the policy has the choice `{step.name}`, and the agent does not say what it chooses"
            hint = f"write {{plan: {names[0]}}}; candidates: {', '.join(names)}"
            self.flaws.add(Reason.UNKNOWN_REFERENCE, path, detail, hint)
        elif isinstance(agent, Playing) and step.choice:
            self._candidate(step, choice, (*path, "plan"))
        elif choice:
            self.flaws.add(Reason.UNKNOWN_REFERENCE, (*path, "plan"), "the policy has no choice", "write `agent: plan`")
        return CaseAgent(name=name, plan=self._table(plan), choice=choice)

    def _shot(self, turn: Turn, plan: Plan, place: int, own: str, path: Path) -> Shot:
        move = turn.move
        if isinstance(move, Raw):
            return evolve(ready(move.data, plan, turn.expected), at_ns=turn.at_ns)
        number = move.step or place
        if number > len(plan.steps):
            self.flaws.add(Reason.UNKNOWN_REFERENCE, (*path, "step"), f"the policy has {len(plan.steps)} steps", "")
            return Shot(raw=b"")
        step = plan.steps[number - 1]
        candidate = step.candidates[0]
        wanted = move.candidate or own
        if step.choice and wanted:
            candidate = step.candidates[self._candidate(step, wanted, (*path, "choose"))]
        elif move.candidate:
            self.flaws.add(Reason.UNKNOWN_REFERENCE, (*path, "choose"), f"step {number} is no choice", "leave it out")
        arguments = {**Canonical(candidate.arguments).value, **move.change.value}
        for name in move.leave_out:
            if name not in arguments:
                self.flaws.add(Reason.UNKNOWN_REFERENCE, (*path, "leave_out"), f"the call has no `{name}`", "")
            arguments.pop(name, None)
        call = {"server": candidate.server, "tool": candidate.tool, "arguments": arguments, **dict(move.names)}
        return evolve(ready(canonical_bytes(call), plan, turn.expected, number - 1), at_ns=turn.at_ns)

    def _candidate(self, step: PlannedStep, name: str, path: Path) -> int:
        names = [each.name for each in step.candidates]
        if name in names:
            return names.index(name)
        hint = did_you_mean(name, names) or f"candidates: {', '.join(names)}"
        self.flaws.add(Reason.UNKNOWN_REFERENCE, path, f"the choice `{step.name}` has no candidate `{name}`", hint)
        return 0

    def _check_faults(self, faults: tuple[Fault, ...], plan: Plan, agent: CaseAgent, path: Path) -> None:
        servers = [server.id for server in plan.policy.contract.servers]
        most = len(agent.shots) or len(agent.plan)
        for index, fault in enumerate(faults):
            where = (*path, "faults", index)
            named = fault.value["id"] if fault.kind is Kind.SERVER else fault.value
            if fault.kind in (Kind.SERVER, Kind.KILL, Kind.SUBSTITUTE):
                self._server(named, servers, where)
            if fault.kind is Kind.RACE:
                self._candidate(plan.steps[-1], fault.value, where)
            if fault.turn > most:
                detail = f"the agent makes {most} proposals at most, so a fault at the {fault.turn}. never strikes"
                hint = "without `turn` it strikes at the last"
                self.flaws.add(Reason.UNKNOWN_REFERENCE, (*where, "turn"), detail, hint)

    def _check_calls(self, calls: tuple[tuple[str, int], ...] | None, path: Path) -> None:
        servers = [server.id for server in self._origin.policy.contract.servers]
        for name, _ in calls or ():
            self._server(name, servers, (*path, "expect", "calls", name), at_key=True)

    def _server(self, name: str, servers: list[str], path: Path, *, at_key: bool = False) -> None:
        if name not in servers:
            hint = did_you_mean(name, servers) or f"servers: {', '.join(servers)}"
            self.flaws.add(Reason.UNKNOWN_SERVER, path, f"no server is named `{shown(name)}`", hint, at_key=at_key)


def usual_servers(plan: Plan) -> Servers:
    """Models, where every server of the contract has one."""
    modelled = all(has_model(server) for server in plan.policy.contract.servers)
    return Servers.IN_PROCESS if modelled else Servers.PROCESS


def _name(agent: AgentSpec) -> str:
    if isinstance(agent, Playing):
        return f"plan:{agent.choose}" if agent.choose else "plan"
    if isinstance(agent, Generated):
        return f"generated:{agent.kind}"
    if isinstance(agent, Command):
        return "command"
    if isinstance(agent, Transcribed):
        return "transcript"
    return "script" if isinstance(agent, Scripted) else str(agent)


def _word(shot: Shot) -> str:
    return _REFUSED if shot.hostile else shot.expected


def _derived(expect: Expect, agent: CaseAgent, plan: Plan, faults: tuple[Fault, ...]) -> Expect:
    if faults or agent.outside is not None:
        return expect
    decisions = expect.decisions
    if decisions is None:
        if agent.plan and expect.refused is not None:
            return expect  # at which step it comes, nobody said
        said = (ADMITTED,) * len(agent.plan) if agent.plan else tuple(map(_word, agent.shots))
        if expect.refused is not None:
            said = (*said[:-1], expect.refused.value)
        if not all(said):
            return expect
        decisions = said
    states = [_ENDS[each] for each in decisions if each in _ENDS]
    counts = {server.id: 0 for server in plan.policy.contract.servers}
    for step in plan.steps[: len(states)]:
        counts[step.server.id] += 1
    calls = None if Reason.OUTCOME_UNKNOWN in decisions else tuple(sorted(counts.items()))
    hostile = decisions.count(_REFUSED)
    open_or_not = hostile >= plan.policy.max_refusals or _OPEN_OR_NOT & set(decisions)
    ends = None if open_or_not else (states[-1] if len(states) == len(plan.steps) else State.SEALED)
    return evolve(
        expect,
        decisions=None if hostile else decisions,
        calls=calls if expect.calls is None else expect.calls,
        ends=ends and ends.value if expect.ends is None else expect.ends,
    )
