"""Proposals made ready: their bytes, and their call as people may read it."""

from __future__ import annotations

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.redact import redact
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.live_policy.policy import Plan
from assisted_benchmark.live_policy.proposal import read_proposal
from assisted_benchmark.suite.live.agents import Shot
from assisted_benchmark.suite.live.lattice import reach_of


def ready(raw: bytes, plan: Plan, expected: str = "", step: int = -1) -> Shot:
    """A proposal ready to be made, with its call for people: what the contract marks as sensitive left out."""
    try:
        proposal = read_proposal(raw)
    except InputError as error:
        return Shot(raw=raw, expected=expected, step=step, text=f"{len(raw)} bytes that are no call: {error.reason}")
    server = plan.policy.contract.server(proposal.server)
    tool = server and server.tool(proposal.tool)
    arguments = redact(proposal.arguments, tool.sensitive) if tool else proposal.arguments
    return Shot(
        raw=raw,
        expected=expected,
        step=step,
        text=shown(canonical_bytes(arguments).decode(), 500),
        server=shown(proposal.server),
        tool=shown(proposal.tool),
        reach=reach_of(proposal, plan),
    )
