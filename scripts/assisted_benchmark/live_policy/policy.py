"""The trusted policy, and the plan that it compiles to for one task: the frozen nouns. Pure.

A policy is an ordered list of steps. A step is a single call, or the one choice group, which
comes last. Inside, a single call is a group of one. `compiler.py` makes a plan of a policy.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.json_schema import Checker, closed
from assisted_benchmark.contract.model import Contract, Effect, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes, plain_strings
from assisted_benchmark.kernel.digest import Digest, digest_of

CANDIDATE_COUNT: Final = "candidate-count"
EXTENSIONS: Final = (CANDIDATE_COUNT,)
OUTSIDE_RULE: Final = "outside REQ-124"
MAX_REFUSALS: Final = 16


@frozen(kw_only=True)
class Step:
    """One step: a single call (`choose` is empty), or the choice group of that name.

    `candidates` are (name, arguments) pairs, the arguments with their `{from: run.task}` places.
    `target` names the argument whose change alone is a `wrong_target`. `effect`, if given, must
    be the contract's.
    """

    server: str
    tool: str
    candidates: tuple[tuple[str, Canonical], ...]
    choose: str = ""
    target: str = ""
    effect: Effect | None = None

    @classmethod
    def call(cls, server: str, tool: str, arguments: Json, effect: Effect | None = None) -> Step:
        """A single call."""
        return cls(server=server, tool=tool, candidates=(("call", Canonical.of(arguments)),), effect=effect)


@frozen(kw_only=True, slots=False)
class Policy:
    """A versioned plan of what one kind of run may do. Its digest is pinned by the runner."""

    id: str
    contract: Contract
    expires_after_ns: int
    steps: tuple[Step, ...]
    version: int = 1
    max_refusals: int = MAX_REFUSALS
    extensions: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> Digest:
        """Covers every field, and the contract by its digest."""
        return self.digest_under(self.contract.digest)

    def digest_under(self, contract: Digest) -> Digest:
        """What the digest would be with that contract: tells a changed policy from a changed contract."""
        return digest_of(
            "policy@1",
            canonical_bytes(
                {
                    "id": self.id,
                    "version": self.version,
                    "contract": contract,
                    "expires_after": str(self.expires_after_ns),
                    "max_refusals": self.max_refusals,
                    "extensions": sorted(self.extensions),
                    "steps": [
                        {
                            "server": step.server,
                            "tool": step.tool,
                            "choose": step.choose,
                            "target": step.target,
                            "effect": step.effect and step.effect.value,
                            "candidates": [[name, arguments.value] for name, arguments in step.candidates],
                        }
                        for step in self.steps
                    ],
                }
            ),
        )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What a report has to say of results under this policy."""
        return (OUTSIDE_RULE,) if any(step.choose and len(step.candidates) != 2 for step in self.steps) else ()


@frozen(kw_only=True)
class Candidate:
    """One exact call that may be made: two are the same when their bytes are the same."""

    name: str
    server: str
    tool: str
    arguments: bytes
    digest: Digest

    @property
    def proposal(self) -> bytes:
        """The canonical bytes that propose exactly this call."""
        names = canonical_bytes({"server": self.server, "tool": self.tool})
        return b'{"arguments":%b,%b' % (self.arguments, names[1:])


@frozen(kw_only=True, slots=False)
class PlannedStep:
    """A step compiled for one task."""

    index: int
    name: str
    choice: bool
    server: Server
    tool: Tool
    target: str
    candidates: tuple[Candidate, ...]

    @cached_property
    def by_call(self) -> dict[tuple[str, str, bytes], Candidate]:
        """From (server, tool, RFC 8785 arguments): a call either is one of these or it is not."""
        return {(each.server, each.tool, each.arguments): each for each in self.candidates}

    @cached_property
    def by_proposal(self) -> dict[bytes, tuple[Candidate, int]]:
        """From the RFC 8785 bytes of the proposal that asks for a candidate and no more; with its `plain_strings`."""
        return {each.proposal: (each, plain_strings(Canonical(each.proposal).value)) for each in self.candidates}


@frozen(kw_only=True, slots=False)
class Plan:
    """A policy compiled for one task. Equal plans have equal `data`, the canonical bytes that grants seal."""

    policy: Policy
    task: str
    steps: tuple[PlannedStep, ...]

    @cached_property
    def data(self) -> bytes:
        contract = self.policy.contract
        return canonical_bytes(
            {
                "policy": self.policy.digest,
                "contract": contract.digest,
                "servers": {server.id: server.digest for server in contract.servers},
                "task": self.task,
                "lifetime": str(self.policy.expires_after_ns),
                "max_refusals": self.policy.max_refusals,
                "steps": [
                    {
                        "name": step.name,
                        "choice": step.choice,
                        "server": step.server.id,
                        "server_digest": step.server.digest,
                        "tool": step.tool.name,
                        "effect": step.tool.effect.value,
                        "target": step.target,
                        "candidates": {each.name: Canonical(each.arguments).value for each in step.candidates},
                    }
                    for step in self.steps
                ],
            }
        )


@lru_cache(maxsize=4096)
def checker(tool: Tool) -> Checker:
    """The tool's input schema, closed to undeclared properties whatever the server enforces."""
    # From the definition's bytes: a value that the tool handed out may have been changed since.
    return Checker(closed(tool.definition.value["inputSchema"]))


@lru_cache(maxsize=4096)
def result_checker(tool: Tool) -> Checker | None:
    """The tool's output schema, if it has one."""
    schema = tool.output_schema
    return None if schema is None else Checker(schema)
