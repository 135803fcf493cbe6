"""The YAML edge of capability scenarios: a document becomes frozen values here."""

from __future__ import annotations

from typing import Any, Final

from assisted_benchmark.contract.shape import check, duration_ns
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.capability.agents import FROM
from assisted_benchmark.suite.capability.faults import Fault
from assisted_benchmark.suite.capability.scenario import (
    FIRST_INSTANCE,
    AgentSpec,
    Expect,
    Goal,
    Manage,
    Operate,
    Override,
    Person,
    Playing,
    ReadResource,
    Run,
    Scenario,
    Scripted,
    Send,
    Turn,
    Wanted,
)
from assisted_benchmark.suite.capability.scenario_shape import CAPABILITY_SHAPE, FAULTS
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.tables import Problems, read_table, start_ns

# The adapter's own fields of a call, as scenarios and as tools name them.
_ALSO: Final = {
    "grant": "grant_id",
    "profile": "profile",
    "request": "request_id",
    "generation": "expected_state_generation",
    "timeout_ms": "timeout_ms",
}


def scenario_from(document: Document) -> Scenario:
    """The capability scenario that a document holds.

    Raises:
        DocumentError: with every fault, in file order.
    """
    check(CAPABILITY_SHAPE, document)
    value = document.value
    problems = Problems(document)
    cases, matrix = read_table(value, lambda row, _: _override(row), problems)
    problems.stop()
    return Scenario(
        id=value["id"],
        file=document.file,
        because=value.get("because", ""),
        registry=value["registry"],
        agent=_agent(value["agent"]),
        goal=_wanted(value["goal"], "call") if "goal" in value else None,
        run=Run(**_run(value.get("run", {}))),
        eligible=tuple(value["eligible"]) if "eligible" in value else None,
        standing=tuple(value.get("standing", ())),
        person=Person(value.get("person", Person.APPROVE)),
        servers=Servers(value.get("servers", Servers.IN_PROCESS)),
        tags=tuple(value.get("tags", ())),
        faults=_faults(value.get("faults", [])),
        expect=Expect(**_expect(value.get("expect", {}))),
        cases=cases,
        matrix=matrix,
    )


def _override(row: Json) -> Override:
    return Override(
        because=row.get("because", ""),
        run=_run(row.get("run", {})),
        eligible=tuple(row["eligible"]) if "eligible" in row else None,
        standing=tuple(row["standing"]) if "standing" in row else None,
        agent=_agent(row["agent"]) if "agent" in row else None,
        person=Person(row["person"]) if "person" in row else None,
        faults=_faults(row["faults"]) if "faults" in row else None,
        expect=_expect(row.get("expect", {})),
    )


def _run(value: Json) -> dict[str, Any]:
    fields = {key: value[key] for key in ("seed", "run", "client") if key in value}
    if "clock" in value:
        fields["start_ns"] = start_ns(value["clock"])
    return fields


def _wanted(value: Json, key: str) -> Wanted:
    return Wanted(operation=value[key], input=Canonical.of(value.get("input", {})))


def _agent(value: Json) -> AgentSpec:
    if type(value) is str:
        return Goal(value)
    if "plan" in value:
        return Playing(wanted=_wanted(value, "plan"))
    return Scripted(turns=tuple(map(_turn, value["script"])))


def _turn(value: Json) -> Turn:
    return Turn(
        move=_move(value),
        client=value.get("client", ""),
        run=value.get("run", ""),
        person=Person(value["person"]) if "person" in value else None,
        wait_ns=duration_ns(value["wait"]) if "wait" in value else 0,
        expected=value.get("comes_to", ""),
        replayed=value.get("replayed", False),
    )


def _move(value: Json) -> Operate | Manage | Send | ReadResource:
    instance = value.get("instance", FIRST_INSTANCE)
    if "call" in value:
        also = {_ALSO[key]: value[key] for key in _ALSO if key in value}
        if "grant" in value:
            also["grant_id"] = _grant(value["grant"])
        return Operate(
            operation=value["call"],
            input=Canonical.of(value.get("input", {})),
            also={"instance_id": instance, **also},
        )
    if "request_grant" in value:
        named = Canonical.of({"instance_id": instance})
        return Manage(name="grant_request", arguments=named, authority=value["request_grant"])
    if "revoke" in value:
        return Manage(name="revoke", arguments=Canonical.of({"grant_id": _grant(value["revoke"])}))
    if "cancel" in value:
        named = Canonical.of({"instance_id": instance, "request_id": value["cancel"]})
        return Manage(name="cancel", arguments=named)
    if "status" in value:
        return Manage(name="status", arguments=Canonical.of({"instance_id": value["status"]}))
    if "instances" in value:
        return Manage(name="instances")
    if "read" in value:
        return ReadResource(what=value["read"], instance=instance)
    arguments = value["arguments"]
    if type(arguments) is str:
        return Send(tool=value["tool"], raw=arguments.encode())
    return Send(tool=value["tool"], arguments=Canonical.of(arguments))


def _grant(word: str) -> Json:
    return {FROM: f"grant.{word}"} if word in ("last", "first") else word


def _faults(value: Json) -> tuple[Fault, ...]:
    return tuple(Fault(kind=kind, value=detail, at=at, turn=turn) for kind, detail, at, turn in map(FAULTS.read, value))


def _expect(value: Json) -> dict[str, Any]:
    plain = ("progress", "artifacts", "may_have_applied", "asked", "generation")
    fields = {key: value[key] for key in plain if key in value}
    if "refused" in value:
        fields["refused"] = Reason(value["refused"])
    for key in ("decisions", "states"):
        if key in value:
            fields[key] = tuple(value[key])
    for key in ("executed", "result", "steps", "scores"):
        if key in value:
            fields[key] = tuple(sorted(value[key].items()))
    return fields
