"""`explain`: why each check of a case said what it said. For the harness's people, never for an agent."""

from __future__ import annotations

import argparse
import json

from attrs import asdict

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.broker import NOT_ASKED, PASSED, Explained
from assisted_benchmark.suite.explain import Explanation
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, explain, select


def command(arguments: argparse.Namespace) -> int:
    """Play one case once more and lay open every decision of it."""
    cases = discover(root_of(arguments), real=True)
    found = select(cases, ids={arguments.case})
    if not found:
        near = did_you_mean(arguments.case, (case.id for case in cases))
        hint = f"; {near}" if near else "; `list` shows the cases"
        raise MisuseError(Reason.NOTHING_SELECTED, f"there is no case `{shown(arguments.case)}`{hint}")
    explanation = explain(found[0], arguments.seed)
    print(json.dumps(_value(explanation), indent=1) if arguments.json else _text(explanation))
    return exits.OK


def _value(explanation: Explanation) -> object:
    result = explanation.result
    return {
        "id": result.id,
        "verdict": result.verdict.value,
        "ends": result.ends,
        "proposals": [asdict(proposal) for proposal in explanation.proposals],
    }


def _text(explanation: Explanation) -> str:
    result = explanation.result
    lines = [f"{result.id}: {shown(result.because, 500)}", result.verdict.value.replace("_", " ")]
    if result.ends:
        lines[-1] += f"; the last group ended `{result.ends}`"
    lines += [f"  {miss.what}: expected {miss.expected}, came {miss.actual}" for miss in result.misses]
    if result.verdict is Verdict.COULD_NOT_RUN:
        lines.append(f"  {shown(result.detail, 2000)} ({result.reason})")
    for number, proposal in enumerate(explanation.proposals, 1):
        lines += ["", *_proposal(number, proposal)]
    return "\n".join(lines)


def _proposal(number: int, proposal: Explained) -> list[str]:
    passed = [name for name, state in proposal.checks if state == PASSED]
    failed = [name for name, state in proposal.checks if state not in (PASSED, NOT_ASKED)]
    call = f"{proposal.server} {proposal.tool} ".lstrip()
    lines = [f"{number}. {call}{shown(proposal.text, 500)}", f"   {proposal.word}; the agent heard `{proposal.told}`"]
    lines += [f"   {shown(text, 500)}" for text in dict.fromkeys((proposal.meaning, proposal.detail)) if text]
    if failed:
        lines.append(f"   the check that failed: {failed[0]}; passed before it: {', '.join(passed) or 'none'}")
    elif passed:
        lines.append(f"   all {len(passed)} checks before the dispatch passed")
    else:
        lines.append("   no check of it has an answer")
    if proposal.nearest:
        lines.append(f"   nearest candidate: {proposal.nearest}")
        lines += [f"     {shown(line, 300)}" for line in proposal.diff]
    return lines
