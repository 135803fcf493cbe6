"""The text of a new scenario, to be filled in. The plan is played once, so that the scenario passes as it stands."""

from __future__ import annotations

from collections.abc import Callable

from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.policy import Plan, Policy
from assisted_benchmark.live_policy.trust import Pins
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.candidates import reason_of
from assisted_benchmark.suite.live.expand import Origin, cases_of
from assisted_benchmark.suite.live.scenario import LiveCase, RunSpec
from assisted_benchmark.suite.live.scenario_document import scenario_from
from assisted_benchmark.suite.result import CaseResult, Verdict

_ARGUMENT = "unexpected"


def scaffold(
    scenario_id: str,
    policy: Policy,
    document: Document,
    folder: str,
    candidate: str | None,
    play: Callable[[LiveCase], CaseResult],
) -> str:
    """A scenario that runs as it stands: the policy's plan, with a candidate if it has a choice.

    `document` is the policy's file, `folder` its contract's. Without `candidate` the first of the file is taken.

    Raises:
        MisuseError: no such candidate.
    """
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
    agent = f"policy: {policy.id}\nagent: {f'{{plan: {candidate or names[0]}}}' if names else 'plan'}\n"
    came = play(_case(head + agent, policy, folder))
    proposal = _proposal(compile_plan(policy, RunSpec().task), came)
    return f"{head}because: {_because(came)}\n{agent}{_expected(came)}{proposal}"


def _case(text: str, policy: Policy, folder: str) -> LiveCase:
    """The plan's case with the policy as it is, pinned or not."""
    origin = Origin(
        policy=policy, pins=Pins(policy.digest, policy.contract.digest), folder=folder, source=policy.digest
    )
    cases, _ = cases_of(scenario_from(load(text.encode(), "a new scenario")), origin)
    return cases[0]


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
