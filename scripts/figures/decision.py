"""Deciding in memory: raw bytes to a durable marker and its receipt, beside policy engines that only decide."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.live_policy.grant import SealedGrant, Session
from assisted_benchmark.live_policy.states import LIVE_TABLE
from figures.bench import APPROVE, Bench
from figures.figure import Figure, at_least, at_most, p50_us, p50s_us

_FEW, _MANY, _CALLS = 1_000, 1_000_000, 1_000

_CEDAR = """
permit(principal == Agent::"agent", action == Action::"click_target", resource == Server::"synthetic-ui")
when { context.taskId == "t-1" && (context.targetId == "approve" || context.targetId == "hold") };
"""
_CASBIN = """
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.obj == p.obj && r.act == p.act
"""


def decision(bench: Bench, session: Session) -> Callable[[], object]:
    """One decision to its end: parsed, matched, claimed in the ledger, its receipt in the chain."""
    judge = bench.broker._decider.judge  # noqa: SLF001 - a figure of the decision without the dispatch
    claim = bench.broker._carrier.claim  # noqa: SLF001

    def run() -> object:
        return claim(judge(session, APPROVE))  # type: ignore[arg-type]  # a refusal fails here, as it must

    return run


def figures() -> Iterator[Figure]:
    """Speed beside peers, flatness and bytes a group."""
    bench = Bench(MemoryLedger("measure", LIVE_TABLE))
    few = bench.seal(_FEW)
    ours = p50_us([decision(bench, session) for session in few])
    peers = {"cedarpy, parsed": _cedar(), "pycasbin": _casbin()}
    yield at_most("decision with digest, marker and receipt, memory", "us", ours, 12, peers)
    cedar = peers["cedarpy, parsed"]
    if cedar is not None:
        yield at_least("decision, times faster than cedarpy", "ratio", cedar / ours, 2.5)
    del few, bench
    yield from _many()


def _many() -> Iterator[Figure]:
    small, bench = (Bench(MemoryLedger("measure", LIVE_TABLE)) for _ in range(2))
    few = small.seal(_FEW)
    bench.seal(_FEW)  # what is shared by all is made before counting
    before = _peak()
    kept = _seal_without_views(bench, _MANY)
    size = (_peak() - before) / _MANY
    some = [bench.broker.session(sealed) for sealed in random.Random(7).sample(kept, _CALLS)]  # noqa: S311
    with_few, with_many = p50s_us(
        [decision(small, session) for session in few], [decision(bench, session) for session in some]
    )
    yield at_most("decision, 1,000,000 groups to 1,000", "ratio", with_many / with_few, 1.5)
    yield at_most("memory of a sealed group", "bytes", size, 600)


def _peak() -> int:
    """The most memory that this process has had, in bytes."""
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _seal_without_views(bench: Bench, count: int) -> list[SealedGrant]:
    """Seal `count` grants and keep a sample only: what the runner keeps is not the broker's memory."""
    kept = []
    for index in range(count):
        sealed = bench.seal_one()
        if index % 100 == 0:
            kept.append(sealed)
    return kept


def _cedar() -> float | None:
    try:
        cedarpy: Any = import_module("cedarpy")
    except ImportError:
        return None
    policies = cedarpy.PolicySet.from_str(_CEDAR)
    entities = cedarpy.Entities.from_json_str("[]")
    request = {
        "principal": 'Agent::"agent"',
        "action": 'Action::"click_target"',
        "resource": 'Server::"synthetic-ui"',
        "context": {"taskId": "t-1", "targetId": "approve"},
    }
    if not cedarpy.is_authorized(request, policies, entities).allowed:
        raise AssertionError("the peer does not allow what it is asked to allow")
    return p50_us([lambda: cedarpy.is_authorized(request, policies, entities)] * _CALLS)


def _casbin() -> float | None:
    try:
        casbin: Any = import_module("casbin")
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        model, policy = Path(folder, "model.conf"), Path(folder, "policy.csv")
        model.write_text(_CASBIN, encoding="utf-8")
        policy.write_text("p, agent, synthetic-ui, click_target\n", encoding="utf-8")
        enforcer = casbin.Enforcer(str(model), str(policy))
    if not enforcer.enforce("agent", "synthetic-ui", "click_target"):
        raise AssertionError("the peer does not allow what it is asked to allow")
    return p50_us([lambda: enforcer.enforce("agent", "synthetic-ui", "click_target")] * _CALLS)
