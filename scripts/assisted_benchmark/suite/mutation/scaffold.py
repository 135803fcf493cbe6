"""The text of a new mutation scenario. It is played once, so that it passes as it stands."""

from __future__ import annotations

from collections.abc import Callable

from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.mutation.changes import ChangeContract
from assisted_benchmark.suite.mutation.expand import Origin, cases_of
from assisted_benchmark.suite.mutation.scenario import MutationCase
from assisted_benchmark.suite.mutation.scenario_document import scenario_from
from assisted_benchmark.suite.mutation.scenario_shape import MUTATION_SCENARIO
from assisted_benchmark.suite.mutation.world import unplayable
from assisted_benchmark.suite.result import CaseResult


def scaffold(
    scenario_id: str, contract: ChangeContract, change: str | None, play: Callable[[MutationCase], CaseResult]
) -> str:
    """A scenario that runs as it stands: the example of a change type is proposed and confirmed, or declined.

    Raises:
        MisuseError: no such change type, or no endpoint here that takes any of the contract.
    """
    if (why := unplayable(contract)) is not None:
        raise MisuseError(Reason.MISUSE, "; ".join(why))
    names = [each.name for each in contract.changes]
    if change and change not in names:
        hint = did_you_mean(change, names) or f"change types: {', '.join(names)}"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"the change contract has no change type `{shown(change)}`; {hint}")
    named = change or names[0]
    head = (
        "# yaml-language-server: $schema=../../schemas/mutation-scenario.schema.json\n"
        f"schema: {MUTATION_SCENARIO}\n"
        f"id: {scenario_id}\n"
    )
    agent = f"changes: {contract.id}\nagent: {{plan: {named}}}\n"
    rows = (
        "cases:\n"
        "  accepted: {human: accept}\n"
        "  declined: {human: decline, expect: {status: declined, real: 0, ends: refused}}\n"
    )
    cases, _ = cases_of(
        scenario_from(load((head + agent).encode(), "a new scenario")), Origin(contract, contract.digest)
    )
    came = play(cases[0])
    if came.misses:
        said = ", ".join(word for word, _ in came.refusals) or "nothing"
        because = f"the example is proposed once; it came to {said} when this file was written"
        decisions = ", ".join(["admitted"] * (came.proposed - 1) + [word for word, _ in came.refusals])
        dry = dict(came.calls).get(f"{contract.id}.dry_run", 0)
        return f"{head}because: {because}\n{agent}expect: {{decisions: [{decisions}], dry: {dry}, ends: {came.ends}}}\n"
    return f"{head}because: what the dry run took is created once, if a person says so, and else not\n{agent}{rows}"
