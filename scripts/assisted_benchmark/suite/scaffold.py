"""The text of a new scenario, to be filled in. The plan is played once, so that the scenario passes as it stands."""

from __future__ import annotations

from pathlib import Path

from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.live_policy.checks import Pins
from assisted_benchmark.live_policy.policy import Plan, Policy, compile_plan
from assisted_benchmark.suite.agents import ADMITTED
from assisted_benchmark.suite.bench import MEMORY, Bench, RunPlan
from assisted_benchmark.suite.candidates import reason_of
from assisted_benchmark.suite.catalogue import POLICY_SUFFIX, Catalogue
from assisted_benchmark.suite.expand import Origin, cases_of
from assisted_benchmark.suite.result import CaseResult, Verdict
from assisted_benchmark.suite.scenario import RunSpec
from assisted_benchmark.suite.scenario_document import scenario_from

_ARGUMENT = "unexpected"


def scaffold(root: Path, scenario_id: str, *, policy: str | None = None, candidate: str | None = None) -> str:
    """A scenario that runs as it stands: the policy's plan, with a candidate if it has a choice.

    Without `policy` the root's only one is taken, without `candidate` the first of its file.

    Raises:
        MisuseError: no such policy or candidate, or several policies to choose from.
    """
    policies = Catalogue(root).policies
    name = policy or (next(iter(policies)) if len(policies) == 1 else "")
    if name not in policies:
        known = ", ".join(sorted(policies)) or "none yet; write contracts/NAME.policy.yaml"
        asked = f"no policy is named `{shown(name)}`; {did_you_mean(name, policies)}" if name else "which policy?"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"{asked} known: {known}")
    document = _document(root, name)
    step = document.value["steps"][-1]
    names = list(step["candidates"]) if "choose" in step else []
    if candidate and candidate not in names:
        hint = did_you_mean(candidate, names) or f"candidates: {', '.join(names) or 'none, the policy has no choice'}"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"the policy has no candidate `{shown(candidate)}`; {hint}")
    head = (
        "# yaml-language-server: $schema=../../schemas/scenario.schema.json\n"
        "schema: assisted-benchmark/scenario@1\n"
        f"id: {scenario_id}\n"
    )
    agent = f"policy: {name}\nagent: {f'{{plan: {candidate or names[0]}}}' if names else 'plan'}\n"
    folder = (root / document.file).parent / document.value["contract"]
    came = _played(head + agent, policies[name], str(folder.parent.absolute()))
    proposal = _proposal(compile_plan(policies[name], RunSpec().task), came)
    return f"{head}because: {_because(came)}\n{agent}{_expected(came)}{proposal}"


def _document(root: Path, policy: str) -> Document:
    """The policy's file as it is written: a policy itself keeps no order of candidates."""
    paths = sorted((root / "contracts").rglob(f"*{POLICY_SUFFIX}"))
    documents = (load(read(path, root), name_below(path, root)) for path in paths)
    return next(each for each in documents if each.value["id"] == policy)


def _played(text: str, policy: Policy, folder: str) -> CaseResult:
    """What the plan comes to with the policy as it is, pinned or not."""
    origin = Origin(
        policy=policy, pins=Pins(policy.digest, policy.contract.digest), folder=folder, source=policy.digest
    )
    cases, _ = cases_of(scenario_from(load(text.encode(), "a new scenario")), origin)
    bench = Bench(RunPlan(durability=MEMORY))
    try:
        return bench.run(cases[0]).result
    finally:
        bench.close()


def _because(came: CaseResult) -> str:
    if came.verdict is Verdict.FAILED:
        return "the plan is played once, and a call of it does not succeed"
    return "the plan is played once, and every call reaches its server"


def _expected(came: CaseResult) -> str:
    if came.verdict is not Verdict.FAILED:
        return "expect: {ends: succeeded}\n"
    # The plan's agent stops at the first refusal.
    decisions = [ADMITTED] * (came.proposed - 1) + [reason for reason, _ in came.refusals]
    return (
        "# What it came to when this file was written, for the plan does not succeed; keep it if it is meant.\n"
        f"expect: {{decisions: [{', '.join(decisions)}], ends: {came.ends}}}\n"
    )


def _proposal(plan: Plan, came: CaseResult) -> str:
    """One more argument at the last step; at the first, where the plan does not get to the last."""
    step, place = (plan.steps[0], "at: 1, ") if came.verdict is Verdict.FAILED else (plan.steps[-1], "")
    arguments = Canonical(step.candidates[0].arguments).value
    reason = reason_of(step, {**arguments, _ARGUMENT: True}, {_ARGUMENT: True})
    return f"proposals:\n  extra-argument: {{{place}change: {{{_ARGUMENT}: true}}, refused: {reason.value}}}\n"
