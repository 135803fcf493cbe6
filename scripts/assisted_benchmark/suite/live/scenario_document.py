"""The YAML edge of scenarios: `*.scenario.yaml` and `*.candidates.yaml` become frozen values here."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from assisted_benchmark.contract.scalar import duration_ns
from assisted_benchmark.contract.shape import check
from assisted_benchmark.contract.strict_yaml import Document, Path
from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.live.faults import Fault
from assisted_benchmark.suite.live.generated import Generated, Maker
from assisted_benchmark.suite.live.scenario import (
    AgentSpec,
    Candidates,
    Command,
    Expect,
    Override,
    Planned,
    Playing,
    Proposal,
    Raw,
    Reveal,
    RunSpec,
    Sanity,
    Scenario,
    Scripted,
    Transcribed,
    Turn,
    Visibility,
)
from assisted_benchmark.suite.live.scenario_shape import CANDIDATES_SHAPE, CHANGES, FAULTS, SCENARIO_SHAPE
from assisted_benchmark.suite.live.transcripts.spelling import duration
from assisted_benchmark.suite.tables import Problems, expected_word, read_table, start_ns


def scenario_from(document: Document) -> Scenario:
    """The scenario that a document holds.

    Raises:
        DocumentError: with every fault, in file order.
    """
    check(SCENARIO_SHAPE, document)
    value = document.value
    problems = Problems(document)

    def override(row: Json, path: Path) -> Override:
        return Override(
            run=_run_fields(row.get("run", {})),
            agent=_agent(row["agent"], (*path, "agent"), problems) if "agent" in row else None,
            faults=_faults(row["faults"]) if "faults" in row else None,
            expect=_expect_fields(row.get("expect", {})),
        )

    cases, matrix = read_table(value, override, problems)
    scenario = Scenario(
        id=value["id"],
        file=document.file,
        because=value.get("because", ""),
        policy=value["policy"],
        agent=_agent(value["agent"], ("agent",), problems),
        run=RunSpec(**_run_fields(value.get("run", {}))),
        servers=Servers(value["servers"]) if "servers" in value else None,
        reveal=Reveal(value.get("reveal", Reveal.COARSE)),
        visibility=Visibility(value.get("visibility", Visibility.ALL)),
        instructions=value.get("instructions", ""),
        tags=tuple(value.get("tags", ())),
        faults=_faults(value.get("faults", [])),
        expect=Expect(**_expect_fields(value.get("expect", {}))),
        proposals=_proposals(value.get("proposals", {}), problems),
        cases=cases,
        matrix=matrix,
    )
    problems.stop()
    return scenario


def candidates_from(document: Document) -> Candidates:
    """The task that a candidates file declares.

    Raises:
        DocumentError: with every fault, in file order.
    """
    check(CANDIDATES_SHAPE, document)
    value = document.value
    problems = Problems(document)
    name = document.file.rpartition("/")[2].removesuffix(".candidates.yaml")
    candidates = Candidates(
        id=value.get("id", name),
        file=document.file,
        because=value.get("because", ""),
        policy=value["policy"],
        task=value["task"],
        seed=value.get("seed", 0),
        tags=tuple(value.get("tags", ())),
        candidates=tuple((name, Canonical.of(arguments)) for name, arguments in value["candidates"].items()),
        proposals=_proposals(value.get("proposals", {}), problems),
    )
    problems.stop()
    return candidates


def _run_fields(value: Json) -> dict[str, Any]:
    fields = {key: value[key] for key in ("task", "seed", "run", "vm", "session", "host") if key in value}
    if "clock" in value:
        fields["start_ns"] = start_ns(value["clock"])
    return fields


def _agent(value: Json, path: Path, problems: Problems) -> AgentSpec:
    if type(value) is str:
        return Playing() if value == "plan" else Sanity(value)
    if "plan" in value:
        return Playing(choose=value["plan"])
    if "command" in value:
        within = {"within_ns": duration_ns(value["within"])} if "within" in value else {}
        return Command(argv=tuple(value["command"]), environment=tuple(value.get("environment", ())), **within)
    if "generated" in value:
        made = value["generated"]
        return Generated(**made | {"kind": Maker(made.get("kind", Maker.RANDOM))})
    if "transcript" in value:
        return Transcribed(file=value["transcript"], sample=value.get("sample", ""))
    return Scripted(turns=_script(value["script"], (*path, "script"), problems))


def _script(value: Json, path: Path, problems: Problems) -> tuple[Turn, ...]:
    turns = []
    latest = 0
    for index, turn in enumerate(value):
        at_ns = duration(turn["at"]) if "at" in turn else latest
        if at_ns < latest:
            problems.add((*path, index, "at"), "this turn is to be made before the one above it", "put them in order")
        turns.append(evolve(_turn(turn, (*path, index), problems), at_ns=at_ns))
        latest = at_ns
    return tuple(turns)


def _turn(value: Json, path: Path, problems: Problems) -> Turn:
    move: Raw | Planned
    if "call" in value:
        move = Raw(canonical_bytes(value["call"]))
    elif "propose" in value:
        raw = value["propose"]
        move = Raw(raw.encode() if type(raw) is str else canonical_bytes(raw))
    else:
        move = Planned(
            step=value.get("step", 0),
            candidate=value.get("choose", ""),
            change=Canonical.of(value.get("change", {})),
            leave_out=tuple(value.get("leave_out", ())),
            names=tuple((key, value[key]) for key in ("server", "tool", "effect", "grant", "group") if key in value),
        )
    return Turn(move=move, expected=expected_word(value, path, problems))


def _proposals(value: Json, problems: Problems) -> tuple[Proposal, ...]:
    found = []
    for name, row in value.items():
        path = ("proposals", name)
        if "refused" not in row and "admitted" not in row:
            problems.add(path, f"the proposal `{name}` says neither `refused` nor `admitted`", "add `refused: REASON`")
        if "propose" in row and row.keys() & CHANGES.keys():
            problems.add((*path, "propose"), "`propose` is the whole proposal", "leave out what changes a planned call")
        found.append(
            Proposal(
                id=name,
                turn=_turn(row, path, problems),
                because=row.get("because", ""),
                at=row.get("at", 0),
                after=row.get("after", ""),
                faults=_faults(row["faults"]) if "faults" in row else None,
            )
        )
    return tuple(found)


def _faults(value: Json) -> tuple[Fault, ...]:
    return tuple(Fault(kind=kind, value=detail, at=at, turn=turn) for kind, detail, at, turn in map(FAULTS.read, value))


def _expect_fields(value: Json) -> dict[str, Any]:
    fields = {key: value[key] for key in ("ends", "oracle") if key in value}
    for key in ("decisions", "operator"):
        if key in value:
            fields[key] = tuple(value[key])
    if "refused" in value:
        fields["refused"] = Reason(value["refused"])
    if "receipts" in value:
        fields["receipts"] = Digest(value["receipts"])
    for key in ("calls", "scores"):
        if key in value:
            fields[key] = tuple(sorted(value[key].items()))
    return fields
