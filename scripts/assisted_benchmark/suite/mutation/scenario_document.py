"""The YAML edge of mutation scenarios: a document becomes frozen values here."""

from __future__ import annotations

from typing import Any

from assisted_benchmark.contract.shape import check, duration_ns
from assisted_benchmark.contract.strict_yaml import Document, Path
from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.mutation.faults import Fault
from assisted_benchmark.suite.mutation.scenario import (
    AgentSpec,
    Asks,
    Client,
    Confirm,
    Era,
    Expect,
    Goal,
    Human,
    Override,
    Playing,
    Propose,
    Recall,
    Run,
    Scenario,
    Scripted,
    Store,
    Turn,
)
from assisted_benchmark.suite.mutation.scenario_shape import FAULTS, MUTATION_SHAPE
from assisted_benchmark.suite.tables import Problems, expected_word, read_table, start_ns


def scenario_from(document: Document) -> Scenario:
    """The mutation scenario that a document holds.

    Raises:
        DocumentError: with every fault, in file order.
    """
    check(MUTATION_SHAPE, document)
    value = document.value
    problems = Problems(document)

    def override(row: Json, path: Path) -> Override:
        return Override(
            because=row.get("because", ""),
            run=_run(row.get("run", {})),
            client=_client(row.get("client", {})),
            store=_store(row.get("store", {})),
            allow_unconfirmed=row.get("allow_unconfirmed"),
            agent=_agent(row["agent"], (*path, "agent"), problems) if "agent" in row else None,
            human=Human(row["human"]) if "human" in row else None,
            faults=_faults(row["faults"]) if "faults" in row else None,
            expect=_expect(row.get("expect", {})),
        )

    cases, matrix = read_table(value, override, problems)
    scenario = Scenario(
        id=value["id"],
        file=document.file,
        because=value.get("because", ""),
        changes=value["changes"],
        agent=_agent(value["agent"], ("agent",), problems),
        goal=value.get("goal", ""),
        run=Run(**_run(value.get("run", {}))),
        client=Client(**_client(value.get("client", {}))),
        store=Store(**_store(value.get("store", {}))),
        allow_unconfirmed=value.get("allow_unconfirmed"),
        human=Human(value.get("human", Human.ACCEPT)),
        servers=Servers(value.get("servers", Servers.IN_PROCESS)),
        tags=tuple(value.get("tags", ())),
        faults=_faults(value.get("faults", [])),
        expect=Expect(**_expect(value.get("expect", {}))),
        cases=cases,
        matrix=matrix,
    )
    problems.stop()
    return scenario


def _run(value: Json) -> dict[str, Any]:
    fields = {key: value[key] for key in ("seed", "run", "session") if key in value}
    if "clock" in value:
        fields["start_ns"] = start_ns(value["clock"])
    return fields


def _client(value: Json) -> dict[str, Any]:
    kinds: dict[str, Any] = {"asks": Asks, "era": Era}
    return {key: kinds[key](word) for key, word in value.items()}


def _store(value: Json) -> dict[str, Any]:
    fields: dict[str, Any] = {"capacity": value["capacity"]} if "capacity" in value else {}
    if "is" in value:
        fields["durable"] = value["is"] == "durable"
    if "lives" in value:
        fields["ttl_ns"] = duration_ns(value["lives"])
    return fields


def _agent(value: Json, path: Path, problems: Problems) -> AgentSpec:
    if type(value) is str:
        return Goal(value)
    if "plan" in value:
        return Playing(change=value["plan"])
    return Scripted(
        turns=tuple(_turn(turn, (*path, "script", index), problems) for index, turn in enumerate(value["script"]))
    )


def _turn(value: Json, path: Path, problems: Problems) -> Turn:
    move: Propose | Confirm
    if "propose" in value:
        if "spec" in value and value.keys() & {"change", "leave_out"}:
            problems.add((*path, "spec"), "`spec` is the whole spec", "leave out what alters the example")
        move = Propose(
            named=value["propose"],
            change=Canonical.of(value.get("change", {})),
            leave_out=tuple(value.get("leave_out", ())),
            spec=Canonical.of(value["spec"]) if "spec" in value else None,
        )
    elif "propose_raw" in value:
        move = Propose(raw=_raw(value["propose_raw"]))
    elif "confirm_raw" in value:
        move = Confirm(raw=_raw(value["confirm_raw"]))
    else:
        move = Confirm(
            token=value["confirm"],
            human=Human(value["human"]) if "human" in value else None,
            recall=Recall(value.get("recall", Recall.HONEST)),
        )
    return Turn(move=move, session=value.get("session", ""), expected=expected_word(value, path, problems))


def _raw(value: Json) -> bytes:
    return value.encode() if type(value) is str else canonical_bytes(value)


def _faults(value: Json) -> tuple[Fault, ...]:
    return tuple(Fault(kind=kind, value=detail, at=at, turn=turn) for kind, detail, at, turn in map(FAULTS.read, value))


def _expect(value: Json) -> dict[str, Any]:
    plain = ("status", "executed", "token", "price", "late_cancel", "dry", "real", "ends")
    fields = {key: value[key] for key in plain if key in value}
    if "decisions" in value:
        fields["decisions"] = tuple(value["decisions"])
    if "refused" in value:
        fields["refused"] = Reason(value["refused"])
    for key in ("checks", "created", "scores"):
        if key in value:
            fields[key] = tuple(sorted(value[key].items()))
    return fields
