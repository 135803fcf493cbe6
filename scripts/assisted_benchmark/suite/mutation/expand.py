"""A mutation scenario becomes cases: each call's bytes ready, each expectation that follows from others derived. Pure.

What is derived, unless it is stated and if no fault is declared: what comes of a plan's confirmation follows from
the client, the person and the operator; how many dry runs and creates reach the endpoint, and what is there in the end,
follow from the decisions.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from attrs import evolve, frozen

from assisted_benchmark.contract.strict_yaml import Path
from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.pointers import steps_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.redact import redact
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.mutation.changes import ChangeContract, ChangeType
from assisted_benchmark.mutation.compiler import compile_change
from assisted_benchmark.mutation.states import State
from assisted_benchmark.suite.case import ADMITTED, folder_of
from assisted_benchmark.suite.mutation.agents import ChangeAgent, Shot
from assisted_benchmark.suite.mutation.faults import Fault
from assisted_benchmark.suite.mutation.scenario import (
    ALLOWED,
    ASKED,
    BROKER,
    AgentSpec,
    Asks,
    Client,
    Confirm,
    Expect,
    Goal,
    Human,
    MutationCase,
    Override,
    Playing,
    Propose,
    Run,
    Scenario,
    Scripted,
    Store,
    Turn,
)
from assisted_benchmark.suite.tables import Flaws, rows

# What comes of asking, by what the person does.
HEARD: Final = {
    Human.ACCEPT: ADMITTED,
    Human.ACCEPT_UNCONFIRMED: Reason.DECLINED.value,
    Human.ACCEPT_EMPTY: Reason.DECLINED.value,
    Human.DECLINE: Reason.DECLINED.value,
    Human.CANCEL: Reason.CANCELLED.value,
    Human.SILENT: Reason.TIMED_OUT.value,
    Human.GARBAGE: Reason.CONFIRMATION_FAILED.value,
    Human.NOTHING: Reason.CONFIRMATION_FAILED.value,
    Human.EXCEPTION: Reason.CONFIRMATION_FAILED.value,
}
# What a confirmation that came to this makes of its proposal; any other leaves it as it was.
_ENDS: Final[dict[str, str]] = {
    Reason.FAILED.value: State.FAILED,
    Reason.OUTCOME_UNKNOWN.value: State.UNRESOLVED,
    Reason.RESULT_INVALID.value: State.UNRESOLVED,
    **dict.fromkeys(HEARD.values(), State.REFUSED),
    Reason.UNSUPPORTED_BY_CLIENT.value: State.REFUSED,
    ASKED: State.REFUSED,  # when the broker ends, nobody has answered
    ADMITTED: State.SUCCEEDED,
}
# After these the create was written.
_SENT: Final = frozenset({word for word, state in _ENDS.items() if state != State.REFUSED})


@frozen
class Origin:
    """What a scenario's cases share: the change contract, and a digest of all files that were read."""

    contract: ChangeContract
    source: Digest


class _Part(NamedTuple):
    """What one case is made of: the scenario's own, with what its rows set."""

    because: str
    run: Run
    client: Client
    store: Store
    allow_unconfirmed: str | None
    agent: AgentSpec
    human: Human
    faults: tuple[Fault, ...]
    expect: Expect


def cases_of(scenario: Scenario, origin: Origin) -> tuple[tuple[MutationCase, ...], Flaws]:
    """Every case of a scenario in file order, and what is wrong with references that only the contract can tell."""
    expansion = _Expansion(scenario, origin)
    cases = tuple(expansion.all())
    return cases, expansion.flaws


class _Expansion:
    def __init__(self, scenario: Scenario, origin: Origin) -> None:
        self.flaws = Flaws()
        self._scenario = scenario
        self._origin = origin
        self._contract = origin.contract

    def all(self) -> Iterator[MutationCase]:
        for name, parts in rows(self._scenario.cases, self._scenario.matrix):
            yield self._case(name, parts)

    def _case(self, name: str, parts: tuple[tuple[Path, Override], ...]) -> MutationCase:
        scenario, origin = self._scenario, self._origin
        part, in_agent, in_faults = self._part(parts)
        agent = self._agent(part, (*in_agent, "agent"))
        for index, fault in enumerate(part.faults):
            if fault.turn > len(agent.shots) and (agent.shots or not agent.plans):
                detail = f"the agent makes {len(agent.shots)} calls, so a fault at the {fault.turn}. never strikes"
                where = (*in_faults, "faults", index, "turn")
                self.flaws.add(Reason.UNKNOWN_REFERENCE, where, detail, "without `turn` it strikes at the last")
        return MutationCase(
            id=f"{folder_of(scenario.file, BROKER)}/{scenario.id}/{name}",
            file=scenario.file,
            because=part.because or scenario.because,
            tags=scenario.tags,
            contract=self._contract,
            source=origin.source,
            agent=agent,
            goals=self._goals(part.agent),
            run=part.run,
            client=part.client,
            store=part.store,
            allow_unconfirmed=part.allow_unconfirmed,
            human=part.human,
            servers=scenario.servers,
            faults=part.faults,
            expect=_derived(part.expect, agent, self._contract) if not part.faults else part.expect,
        )

    def _part(self, parts: tuple[tuple[Path, Override], ...]) -> tuple[_Part, Path, Path]:
        scenario = self._scenario
        in_agent: Path = ()
        in_faults: Path = ()
        part = _Part(
            scenario.because,
            scenario.run,
            scenario.client,
            scenario.store,
            scenario.allow_unconfirmed,
            scenario.agent,
            scenario.human,
            scenario.faults,
            scenario.expect,
        )
        self._check_created(part.expect.created, ())
        for path, row in parts:
            in_agent = in_agent if row.agent is None else path
            in_faults = in_faults if row.faults is None else path
            self._check_created(row.expect.get("created"), path)
            part = _Part(
                row.because or part.because,
                evolve(part.run, **row.run),
                evolve(part.client, **row.client),
                evolve(part.store, **row.store),
                part.allow_unconfirmed if row.allow_unconfirmed is None else row.allow_unconfirmed,
                row.agent or part.agent,
                row.human or part.human,
                part.faults if row.faults is None else row.faults,
                evolve(part.expect, **row.expect),
            )
        return part, in_agent, in_faults

    def _goals(self, agent: AgentSpec) -> tuple[str, ...]:
        """The bodies that are to be created."""
        goal = self._scenario.goal or (agent.change if isinstance(agent, Playing) else "")
        if not goal and isinstance(agent, Goal):
            goal = self._contract.changes[0].name
        change = self._change(goal, ("goal",)) if self._scenario.goal else self._contract.change(goal)
        if change is None:
            return ()
        return (hashlib.sha256(compile_change(change, change.example.value).body).hexdigest(),)

    def _agent(self, part: _Part, path: Path) -> ChangeAgent:
        spec = part.agent
        if isinstance(spec, Scripted):
            numbered = enumerate(spec.turns)
            shots = tuple(self._shot(turn, (*path, "script", index)) for index, turn in numbered)
            return ChangeAgent(name="script", shots=shots)
        if spec is Goal.NOP:
            return ChangeAgent(name="nop")
        if isinstance(spec, Playing):
            name, named, where = f"plan:{spec.change}", spec.change, (*path, "plan")
        else:
            name, named, where = "oracle", self._scenario.goal or self._contract.changes[0].name, ("goal",)
        if self._change(named, where) is None:
            return ChangeAgent(name=name, plans=True)
        faulty = bool(part.faults)
        turns = (
            Turn(move=Propose(named=named), expected="" if faulty else ADMITTED),
            Turn(move=Confirm(token="last"), expected="" if faulty else _confirmed(part)),  # noqa: S106 - a word
        )
        return ChangeAgent(name=name, shots=tuple(self._shot(turn, where) for turn in turns), plans=True)

    def _change(self, name: str, path: Path) -> ChangeType | None:
        found = self._contract.change(name)
        if found is None:
            names = [each.name for each in self._contract.changes]
            hint = did_you_mean(name, names) or f"change types: {', '.join(names)}"
            detail = f"the change contract `{self._contract.id}` has no change type `{shown(name, 60)}`"
            self.flaws.add(Reason.UNKNOWN_REFERENCE, path, detail, hint)
        return found

    def _shot(self, turn: Turn, path: Path) -> Shot:
        move = turn.move
        if isinstance(move, Confirm):
            word = move.token if move.token in ("last", "first", "again") else "a token as it stands"
            text = word if move.raw is None else f"{len(move.raw)} bytes in place of a token"
            return Shot(
                confirms=True,
                raw=move.raw,
                token=move.token,
                human=move.human or "",
                recall=move.recall,
                session=turn.session,
                expected=turn.expected,
                text=f"confirm {text}",
            )
        if move.raw is not None:
            raw, text = move.raw, f"propose {len(move.raw)} bytes"
        else:
            change, spec = self._spec(move, turn.expected, path)
            raw = canonical_bytes({"change_type": move.named, "spec": spec})
            told = canonical_bytes(redact(spec, change.sensitive)).decode() if change else "a spec of no change type"
            text = f"propose {shown(move.named, 60)} {shown(told, 500)}"
        return Shot(confirms=False, raw=raw, session=turn.session, expected=turn.expected, text=text)

    def _spec(self, move: Propose, expected: str, path: Path) -> tuple[ChangeType | None, Json]:
        # A type that the contract does not have may be just what is tried.
        tried = expected == Reason.UNKNOWN_CHANGE.value
        change = self._contract.change(move.named) if tried else self._change(move.named, (*path, "propose"))
        spec: Json = move.spec.value if move.spec is not None else change.example.value if change is not None else {}
        for name, value in move.change.value.items():
            holder, last = self._place(spec, name, (*path, "change"))
            if type(holder) is list and last.isdecimal() and int(last) < len(holder):
                holder[int(last)] = value
            elif type(holder) is dict:
                holder[last] = value
        for name in move.leave_out:
            holder, last = self._place(spec, name, (*path, "leave_out"))
            if type(holder) is not dict or last not in holder:
                self.flaws.add(Reason.UNKNOWN_REFERENCE, (*path, "leave_out"), f"the example has no `{name}`", "")
            else:
                del holder[last]
        return change, spec

    def _place(self, spec: Json, name: str, path: Path) -> tuple[Json, str]:
        """What holds the field that a name or JSON pointer names, and the field's key in it."""
        *steps, last = steps_of(name) or (name,)
        holder = spec
        for step in steps:
            if type(holder) is dict and step in holder:
                holder = holder[step]
            elif type(holder) is list and step.isdecimal() and int(step) < len(holder):
                holder = holder[int(step)]
            else:
                self.flaws.add(Reason.UNKNOWN_REFERENCE, path, f"the example has nothing at `{name}`", "")
                return None, last
        return holder, last

    def _check_created(self, created: tuple[tuple[str, int], ...] | None, path: Path) -> None:
        kinds = [kind_of(change) for change in self._contract.changes]
        for name, _ in created or ():
            if name not in kinds:
                hint = did_you_mean(name, kinds) or f"kinds: {', '.join(kinds)}"
                where = (*path, "expect", "created", name)
                self.flaws.add(
                    Reason.UNKNOWN_REFERENCE, where, f"nothing of the kind `{name}` is made", hint, at_key=True
                )


def kind_of(change: ChangeType) -> str:
    """The kind of thing that a change makes, as its endpoint calls it."""
    return change.path.rpartition("/")[2]


def _confirmed(part: _Part) -> str:
    if part.client.asks is not Asks.FORM:
        return ADMITTED if part.allow_unconfirmed == ALLOWED else Reason.UNSUPPORTED_BY_CLIENT.value
    return HEARD[part.human]


def _derived(expect: Expect, agent: ChangeAgent, contract: ChangeContract) -> Expect:
    decisions = expect.decisions
    if decisions is None:
        said = tuple(shot.expected for shot in agent.shots)
        if expect.refused is not None:
            said = (*said[:-1], expect.refused.value)
        if not all(said):
            return expect
        decisions = said
    if len(decisions) > len(agent.shots):
        return expect  # the comparison will tell
    made: list[tuple[str, str]] = []  # each token's kind of thing, and the state that its proposal is in
    dry = real = 0
    before = -1
    for shot, word in zip(agent.shots, decisions, strict=False):
        if not shot.confirms:
            dry += word in (ADMITTED, Reason.DRY_RUN_FAILED.value)
            if word == ADMITTED:
                made.append((_kind(shot, contract), State.SEALED))
            continue
        real += word in _SENT
        before = {"last": len(made) - 1, "first": min(0, len(made) - 1), "again": before}.get(shot.token, -1)
        if before >= 0 and word in _ENDS:
            made[before] = (made[before][0], _ENDS[word])
    created = Counter(kind for kind, state in made if state == State.SUCCEEDED)
    ends = made[-1][1] if made else "none"
    return evolve(
        expect,
        decisions=decisions,
        dry=dry if expect.dry is None else expect.dry,
        real=real if expect.real is None else expect.real,
        created=tuple(sorted(created.items())) if expect.created is None else expect.created,
        ends=ends if expect.ends is None else expect.ends,
    )


def _kind(shot: Shot, contract: ChangeContract) -> str:
    named = parse(shot.raw or b"{}")["change_type"]
    change = contract.change(named)
    return "" if change is None else kind_of(change)
