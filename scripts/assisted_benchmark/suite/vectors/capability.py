"""Vectors of the capability broker: a call's bytes against the registry, or a call's facts against the admission.

The first kind says what is asked for, or why the bytes ask for nothing; the second which check fails first, which
passed before it, and how the seven terms stand. A third is the hash of exactly what was asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from assisted_benchmark.capability.admission import EARLY, LATE, Late, first_failure, terms
from assisted_benchmark.capability.call import OperationCall, Unfit
from assisted_benchmark.capability.grants import Grant
from assisted_benchmark.capability.lineage import Asked, Lineage
from assisted_benchmark.capability.ports import Capability, Enrolled, Instance, Session, Wanted
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.capability.registry_document import registry_from
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.vectors.vector import bytes_of


def play(given: Json, shared: Mapping[str, Json]) -> Json:
    """The answer to whichever of the three it is."""
    registry = registry_of(shared["registries"][given["registry"]])
    if "call" in given:
        return _read(Projection(registry), given["call"])
    if "request" in given:
        return _hashed(given["request"])
    return _admitted(registry, given["facts"])


def registry_of(value: Json) -> Registry:
    """A registry from plain JSON."""
    return registry_from(Document(value, "vectors", Canonical.of(value).data))


def _read(projection: Projection, call: Json) -> Json:
    read = projection.read(call["tool"], bytes_of(call["arguments"]))
    if isinstance(read, Unfit):
        return {"code": read.reason.value, "paths": sorted({each.path for each in read.faults})}
    if not isinstance(read, OperationCall):
        return {"code": "admitted", "management": read.name, "arguments": read.arguments}
    return {
        "code": "admitted",
        "operation": read.operation.id,
        "instance_id": read.instance_id,
        "input": read.input.decode(),
        "timeout_ms": read.timeout_ms,
        "request_id": read.request_id,
        "grant_id": read.grant_id,
        "profile": read.profile,
        "expected_state_generation": read.expected_state_generation,
        "idempotency_key": read.idempotency_key,
    }


def _hashed(value: Json) -> Json:
    asked = Asked(
        Lineage(**value["lineage"]),
        value["key"],
        value["version"],
        value["expected_state_generation"],
        value["parameters"].encode(),
    )
    return {"request_hash": asked.request_hash, "identity": asked.identity.hex()}


def _admitted(registry: Registry, facts: Json) -> Json:
    operation = next(each for each in registry.operations if each.id == facts["operation"])
    instance, grant, found = facts["instance"], facts["grant"], facts["instance"]["capability"]
    question = Late(
        session=Session("run", **facts["session"]),
        enrolled=Enrolled("session", **facts["enrolled"]),
        session_live=facts["session_live"],
        operation=operation,
        instance=Instance(instance["id"], instance["registration"], instance["publication"], 0, ()),
        found=None if found is None else Capability(operation.id, **found),
        still_registered=facts["still_registered"],
        eligible=frozenset(facts["eligible"]),
        grant=None if grant is None else _grant(grant, facts["session"]["client"]),
        ended=None if facts["grant_ended"] is None else Reason(facts["grant_ended"]),
        spent=facts["grant_spent"],
    )
    failed = first_failure(LATE, question, EARLY)
    told = [{"term": each.term.value, "holds": each.holds} for each in terms(failed)]
    if failed is None:
        passed = [*(check.reason.value for check in EARLY), *(check.reason.value for check in LATE)]
        return {"code": "admitted", "passed": passed, "terms": told}
    return {"code": failed.reason.value, "passed": list(failed.checked), "terms": told}


def _grant(value: Json, client: str) -> Grant:
    operations = tuple(value["operations"])
    wanted = Wanted(client, value["registration"], value["instance"], value["publication"], "any", operations)
    return Grant("grant", wanted, interactive=True, expires=Instant(0, 0))


def facts_of(question: Late) -> Json:
    """What the admission looks at, as plain JSON."""
    grant, found = question.grant, question.found
    return {
        "operation": question.operation.id,
        "session": {"client": question.session.client, "peer": question.session.peer},
        "enrolled": {"client": question.enrolled.client, "peer": question.enrolled.peer},
        "session_live": question.session_live,
        "instance": {
            "id": question.instance.id,
            "registration": question.instance.registration,
            "publication": question.instance.publication,
            "capability": None
            if found is None
            else {"built": found.built, "available": found.available, "activated": found.activated},
        },
        "still_registered": question.still_registered,
        "eligible": sorted(question.eligible),
        "grant": None
        if grant is None
        else {
            "instance": grant.wanted.instance,
            "registration": grant.wanted.registration,
            "publication": grant.wanted.publication,
            "operations": list(grant.operations),
        },
        "grant_ended": None if question.ended is None else question.ended.value,
        "grant_spent": question.spent,
    }
