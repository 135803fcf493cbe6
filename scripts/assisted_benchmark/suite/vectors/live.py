"""Vectors of the live broker: one decision each, with everything that it depends on; and their player.

The player builds contract, policy, pins, ledger, clocks and the presented grant from the vector alone, opens the grant
and asks for the decision. It is the broker itself that answers: nothing of its rules is repeated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assisted_benchmark.contract.model import Contract, Effect, Launch, Recheck, Remote, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted, Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Draft
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.counting import CountingDispatcher, CountingMachine
from assisted_benchmark.live_policy.grant import Binding, Session, group_key
from assisted_benchmark.live_policy.policy import Plan, Policy, Step
from assisted_benchmark.live_policy.states import LIVE_TABLE, State
from assisted_benchmark.live_policy.trust import Pins
from assisted_benchmark.suite.instruments import CutOff
from assisted_benchmark.suite.vectors.clocks import NoChance, StandingClock
from assisted_benchmark.suite.vectors.vector import bytes_of

# From these a claim is behind the group; the others come straight from the seal.
_CLAIMED: Final = frozenset({State.DISPATCHING, State.SUCCEEDED, State.FAILED, State.UNRESOLVED})


def play(given: Json, shared: Mapping[str, Json]) -> Json:
    """What the broker answers: its code, the checks that passed before it, and the digest of what it admits."""
    policy = policy_of(shared["policies"][given["policy"]], shared["contracts"])
    ledger = _ledger(given, policy)
    keys = KeyRing(given["key"]["id"], bytes.fromhex(given["key"]["master"]))
    clock = StandingClock(given["opened_at"])
    cut_off = CutOff(ledger)
    broker = LiveBroker(
        policy=policy,
        pins=Pins(Digest(given["pins"]["policy"]), Digest(given["pins"]["contract"])),
        launches={name: Digest(each) for name, each in given["launches"].items()},
        ledger=cut_off,
        dispatcher=CountingDispatcher(policy.contract, clock),
        machine=CountingMachine(Digest(given["session"]["host"])),
        clock=clock,
        chance=NoChance(),
        keys=keys,
    )
    opened = broker.open(bytes_of(given["grant"]), _session(given["opened_by"]))
    if isinstance(opened, Refused):
        return _told(opened)
    clock.stand(given["now"])
    cut_off.down = given["ledger"]["unavailable"]
    return _told(broker.decide(_session(given["session"]), bytes_of(given["proposal"])))


def _told(answer: Admitted | Refused) -> Json:
    if isinstance(answer, Admitted):
        return {"code": "admitted", "passed": [], "candidate": answer.candidate}
    return {"code": answer.reason.value, "passed": list(answer.checked), "candidate": ""}


def _session(value: Json) -> Session:
    return Session(
        Digest(value["grant"]), value["run"], value["principal"], value["vm"], Digest(value["host"]), value["boot"]
    )


def _ledger(given: Json, policy: Policy) -> MemoryLedger:
    """The ledger as it stands: the run, if it is known, its groups in their states, and how late it was last."""
    said = given["ledger"]
    ledger = MemoryLedger(said["id"], LIVE_TABLE)
    record = said["binding"]
    if record is None:
        return ledger
    binding = Binding(**record)
    grant = Digest(said["grant"])
    plan = compile_plan(policy, binding.task)
    keys = [group_key(grant, index) for index in range(len(plan.steps))]
    ledger.open_run(binding.run, binding.record(), keys)
    at = Instant(int(said["latest_wall_ns"]), int(binding.issued_mono))
    ledger.record(binding.run, Draft("event", "0" * 32, at, "admitted", grant))
    for index, state in enumerate(said["groups"]):
        _bring(ledger, binding.run, keys[index], plan, index, State(state), at)
    return ledger


def _bring(ledger: MemoryLedger, run: str, key: bytes, plan: Plan, index: int, state: State, at: Instant) -> None:
    """Let a sealed group come to a state by the table's own edges."""
    draft = Draft("event", "0" * 32, at, "admitted")
    if state in _CLAIMED:
        candidate = plan.steps[index].candidates[0]
        permit = Admitted(key, candidate.digest, candidate.server, candidate.tool, candidate.arguments)
        claimed = ledger.claim(permit, run, draft)
        if state is not State.DISPATCHING:
            ledger.settle(claimed, state, draft)  # type: ignore[arg-type]  # nobody else claims here
    elif state is not State.SEALED:
        ledger.move(key, run, State.SEALED, state, draft)


def policy_of(value: Json, contracts: Json) -> Policy:
    """A policy from plain JSON, with its contract."""
    return Policy(
        id=value["id"],
        version=value["version"],
        contract=contract_of(contracts[value["contract"]]),
        expires_after_ns=int(value["expires_after_ns"]),
        max_refusals=value["max_refusals"],
        extensions=tuple(value["extensions"]),
        steps=tuple(
            Step(
                server=each["server"],
                tool=each["tool"],
                choose=each["choose"],
                target=each["target"],
                effect=None if each["effect"] is None else Effect(each["effect"]),
                candidates=tuple((name, Canonical.of(arguments)) for name, arguments in each["candidates"]),
            )
            for each in value["steps"]
        ),
    )


def policy_value(policy: Policy) -> Json:
    """The same, written."""
    return {
        "id": policy.id,
        "version": policy.version,
        "contract": policy.contract.id,
        "expires_after_ns": str(policy.expires_after_ns),
        "max_refusals": policy.max_refusals,
        "extensions": list(policy.extensions),
        "digest": policy.digest,
        "steps": [
            {
                "server": each.server,
                "tool": each.tool,
                "choose": each.choose,
                "target": each.target,
                "effect": None if each.effect is None else each.effect.value,
                "candidates": [[name, arguments.value] for name, arguments in each.candidates],
            }
            for each in policy.steps
        ],
    }


def contract_of(value: Json) -> Contract:
    """A contract from plain JSON."""
    return Contract(
        schema=value["schema"],
        id=value["id"],
        servers=tuple(
            Server(
                id=each["id"],
                launch=_launch(each["launch"]),
                recheck=Recheck(each["recheck"]),
                capabilities=Canonical.of(each["capabilities"]),
                tools=tuple(
                    Tool(
                        effect=Effect(tool["effect"]),
                        definition=Canonical.of(tool["definition"]),
                        sensitive=tuple(tool["sensitive"]),
                    )
                    for tool in each["tools"]
                ),
            )
            for each in value["servers"]
        ),
    )


def contract_value(contract: Contract) -> Json:
    """The same, written."""
    return {
        "schema": contract.schema,
        "id": contract.id,
        "digest": contract.digest,
        "servers": [
            {
                "id": each.id,
                "launch": each.launch.value(),
                "recheck": each.recheck.value,
                "capabilities": each.capabilities.value,
                "tools": [
                    {
                        "effect": tool.effect.value,
                        "definition": tool.definition.value,
                        "sensitive": list(tool.sensitive),
                    }
                    for tool in each.tools
                ],
            }
            for each in contract.servers
        ],
    }


def _launch(value: Json) -> Launch | Remote:
    if "url" in value:
        return Remote(
            url=value["url"], tls_sha256=value["tls_sha256"], headers=tuple(value["headers_from_env"].items())
        )
    return Launch(
        argv=tuple(value["argv"]),
        env=tuple(value["env"].items()),
        cwd=value["cwd"],
        packages=tuple(value["packages"].items()),
        files=tuple((path, Digest(each)) for path, each in value["files"].items()),
        in_place=tuple((path, Digest(each)) for path, each in value.get("in_place", {}).items()),
        unpinned=value["unpinned"],
        control=value["control"],
    )
