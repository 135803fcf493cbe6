"""Policy files, read into the trusted model: strict YAML, one shape, then the policy held to its contract."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.model import Contract, Effect
from assisted_benchmark.contract.shape import (
    DURATION,
    NAME,
    ByKey,
    Integer,
    ListOf,
    MapOf,
    Record,
    Text,
    Word,
    check,
    duration_ns,
    json_schema,
    may,
    must,
)
from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.live_policy.compiler import faults_of
from assisted_benchmark.live_policy.policy import EXTENSIONS, MAX_REFUSALS, Policy, Step

POLICY: Final = "assisted-benchmark/policy@1"

_ANY_NAME: Final = Text(what="a name", limit=256)  # held to the contract, with a reason of its own, below
_EFFECT: Final = may(
    Word(tuple(each.value for each in Effect)), "The effect that is allowed; it must be the one in the contract."
)
_ARGUMENTS: Final = Record({}, "arguments", open=True)
_SERVER: Final = must(_ANY_NAME, "The server's id in the contract.")
_TOOL: Final = must(_ANY_NAME, "The tool's exact name.")

POLICY_SHAPE: Final = Record(
    {
        "schema": must(Word((POLICY,)), "The kind and version of this file."),
        "id": must(NAME, "The policy's name."),
        "version": may(Integer(least=1), "Counts this policy's own versions, from 1 on."),
        "contract": must(
            Text(r"[^/\x00][^\x00]*", "a relative path", 1024), "The contract file, relative to this one."
        ),
        "expires_after": must(DURATION, "How long a grant lives after its sealing."),
        "max_refusals": may(
            Integer(least=1, most=10_000),
            f"After how many refusals of its own session a group is exhausted; {MAX_REFUSALS} unless said.",
        ),
        "extensions": may(
            ListOf(Word(EXTENSIONS)),
            "What goes beyond the rule: candidate-count allows a choice group with more than two candidates.",
        ),
        "steps": must(
            ListOf(
                ByKey(
                    {
                        "call": Record(
                            {
                                "call": must(
                                    Record(
                                        {
                                            "server": _SERVER,
                                            "tool": _TOOL,
                                            "arguments": must(
                                                _ARGUMENTS, "Exactly these; {from: run.task} is the task."
                                            ),
                                            "effect": _EFFECT,
                                        },
                                        "a call",
                                    ),
                                    "One call, as it has to be.",
                                )
                            },
                            "a step with one call",
                        ),
                        "choose": Record(
                            {
                                "choose": must(NAME, "The choice group's name."),
                                "server": _SERVER,
                                "tool": _TOOL,
                                "target": may(_ANY_NAME, "The argument whose change alone is a wrong target."),
                                "effect": _EFFECT,
                                "candidates": must(
                                    MapOf(_ARGUMENTS, NAME), "The alternatives: each one's name and exact arguments."
                                ),
                            },
                            "a choice group",
                        ),
                    }
                ),
                least=1,
            ),
            "Single calls in order; at most one choice group, which is the last.",
        ),
    },
    "a policy",
)


def published_schemas() -> dict[str, Json]:
    """File name to JSON Schema, of policies."""
    title = "*.policy.yaml: what one kind of run may do"
    return {"policy.schema.json": json_schema(POLICY_SHAPE, id="urn:assisted-benchmark:policy@1", title=title)}


def load_policy(path: Path, root: Path) -> Policy:
    """Read one `*.policy.yaml` below `root`, with the contract that it names.

    Raises:
        DocumentError: with every fault of the first stage that has any: bytes, YAML, shape, contract, meaning.
    """
    document = load(read(path, root), name_below(path, root))
    check(POLICY_SHAPE, document)
    contract = load_contract(path.parent / document.value["contract"], root)
    return _policy(document, contract)


def _policy(document: Document, contract: Contract) -> Policy:
    value = document.value
    policy = Policy(
        id=value["id"],
        version=value.get("version", 1),
        contract=contract,
        expires_after_ns=duration_ns(value["expires_after"]),
        max_refusals=value.get("max_refusals", MAX_REFUSALS),
        extensions=tuple(value.get("extensions", ())),
        steps=tuple(_step(each) for each in value["steps"]),
    )
    problems = [document.problem(fault.reason, fault.where, fault.detail, fault.hint) for fault in faults_of(policy)]
    if problems:
        raise DocumentError(sorted(problems, key=lambda each: (each.line, each.column)))
    return policy


def _step(value: Json) -> Step:
    if "call" in value:
        call = value["call"]
        return Step.call(call["server"], call["tool"], call["arguments"], _effect(call))
    return Step(
        server=value["server"],
        tool=value["tool"],
        choose=value["choose"],
        target=value.get("target", ""),
        effect=_effect(value),
        candidates=tuple((name, Canonical.of(arguments)) for name, arguments in sorted(value["candidates"].items())),
    )


def _effect(value: Json) -> Effect | None:
    return Effect(value["effect"]) if "effect" in value else None
