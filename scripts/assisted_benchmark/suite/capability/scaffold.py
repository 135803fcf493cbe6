"""The text of a new capability scenario. It is played once, so that it passes as it stands."""

from __future__ import annotations

from collections.abc import Callable

from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.contract.json_schema import Checker
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.capability.expand import Origin, cases_of
from assisted_benchmark.suite.capability.naming import operation_id, short_name
from assisted_benchmark.suite.capability.scenario import CapabilityCase
from assisted_benchmark.suite.capability.scenario_document import scenario_from
from assisted_benchmark.suite.capability.scenario_shape import CAPABILITY_SCENARIO
from assisted_benchmark.suite.result import CaseResult


def scaffold(
    scenario_id: str, registry: Registry, operation: str | None, play: Callable[[CapabilityCase], CaseResult]
) -> str:
    """A scenario that runs as it stands: an operation is called under a grant that a person consents to, or denies.

    Raises:
        MisuseError: no such operation.
    """
    grantable = [each for each in registry.operations if each.grantable]
    names = [short_name(registry, each.id) for each in grantable]
    # What takes an empty input passes as it stands.
    bare = [short_name(registry, each.id) for each in grantable if not Checker(each.input.value).faults({})]
    named = short_name(registry, operation_id(registry, operation)) if operation else (bare or names)[0]
    if named not in names:
        hint = did_you_mean(named, names) or f"operations: {', '.join(names)}"
        detail = f"the registry has no operation `{shown(named)}` that a grant could cover; {hint}"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, detail)
    head = (
        "# yaml-language-server: $schema=../../schemas/capability-scenario.schema.json\n"
        f"schema: {CAPABILITY_SCENARIO}\n"
        f"id: {scenario_id}\n"
    )
    agent = f"registry: {registry.id}\nagent: {{plan: {named}}}\n"
    rows = "cases:\n  approved: {person: approve}\n  denied: {person: deny, expect: {asked: 1, executed: {}}}\n"
    document = load((head + agent).encode(), "a new scenario")
    cases, _ = cases_of(scenario_from(document), Origin(registry, registry.digest))
    came = play(cases[0])
    if came.misses:
        said = ", ".join(word for word, _ in came.refusals) or "nothing"
        because = f"it is called once without an input; it came to {said} when this file was written"
        decisions = ", ".join(["granted", *(word for word, _ in came.refusals)])
        return f"{head}because: {because}\n{agent}expect: {{decisions: [{decisions}]}}\n"
    because = "the operation is executed once, if the broker's own person consents, and else not"
    return f"{head}because: {because}\n{agent}{rows}"
