"""The text of a new scenario, to be filled in."""

from __future__ import annotations

from pathlib import Path

from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.catalogue import Catalogue


def scaffold(root: Path, scenario_id: str, *, policy: str | None = None, candidate: str | None = None) -> str:
    """A scenario that runs as it stands: the policy's plan, with a candidate if it has a choice.

    Without `policy` the root's only one is taken, without `candidate` the first.

    Raises:
        MisuseError: no such policy or candidate, or several policies to choose from.
    """
    policies = Catalogue(root).policies
    name = policy or (next(iter(policies)) if len(policies) == 1 else "")
    if name not in policies:
        known = ", ".join(sorted(policies)) or "none yet; write contracts/NAME.policy.yaml"
        asked = f"no policy is named `{shown(name)}`; {did_you_mean(name, policies)}" if name else "which policy?"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"{asked} known: {known}")
    step = policies[name].steps[-1]
    names = [each for each, _ in step.candidates] if step.choose else []
    if candidate and candidate not in names:
        hint = did_you_mean(candidate, names) or f"candidates: {', '.join(names) or 'none, the policy has no choice'}"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"the policy has no candidate `{shown(candidate)}`; {hint}")
    agent = f"{{plan: {candidate or names[0]}}}" if names else "plan"
    return (
        "# yaml-language-server: $schema=../../schemas/scenario.schema.json\n"
        "schema: assisted-benchmark/scenario@1\n"
        f"id: {scenario_id}\n"
        "because: the plan is played once, and every call reaches its server\n"
        f"policy: {name}\n"
        f"agent: {agent}\n"
        "expect: {ends: succeeded}\n"
        "proposals:\n"
        "  extra-argument: {change: {unexpected: true}, refused: arguments_invalid}\n"
    )
