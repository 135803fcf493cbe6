"""A bench for tests of the capability broker: the reference registry, a world that counts, and what an agent sends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

from attrs import evolve

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.counting import CountingHost, ScriptedConsent
from assisted_benchmark.capability.ports import Capability, Instance, Session
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.capability.results import told
from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.receipts import verify
from assisted_benchmark.ledger.sqlite import SqliteLedger

ROOT = Path(__file__).resolve().parents[2]
PULP = load_registry(ROOT / "contracts" / "pulp.registry.yaml", ROOT)
PROJECTION = Projection(PULP)
KEYS = KeyRing("k-1", b"m" * 32)
MS = 1_000_000
SESSION = Session("run-1", "client-1", "peer-1")
OTHER = Session("run-1", "client-2", "peer-2")

INSTANCE_READ = "dev.pulp.instance/read@1"
STATE_READ = "dev.pulp.state/read@1"
GESTURE = "dev.pulp.state/parameter-gesture@1"
EVALUATE = "dev.pulp.runtime/evaluate@1"
GPU = "dev.pulp.gpu/health.read@1"
ARTIFACT_READ = "dev.pulp.artifact/read@1"
RELOAD = "dev.pulp.runtime/reload@1"
EVERYTHING = frozenset(each.id for each in PULP.operations)
GRANTABLE = tuple(sorted(each.id for each in PULP.operations if each.grantable))

STATE = {
    "parameters": [],
    "state_generation": 1,
    "catalog_generation": 1,
    "catalog_included": False,
    "redacted_count": 0,
}
GPU_HEALTH = json.loads((Path(__file__).parent / "gpu_health.json").read_text(encoding="utf-8"))
INPUTS = {
    GESTURE: {"parameter_id": 7, "normalized_value": 0.5, "idempotency_key": "key-1"},
    EVALUATE: {"source": "1 + 1", "timeout_ms": 100, "idempotency_key": "key-1"},
}

MAKERS: dict[str, Callable] = {
    "memory": lambda folder: MemoryLedger("ledger-1", CAPABILITY_TABLE),
    "sqlite": lambda folder: SqliteLedger.create(
        folder / "ledger.db", ledger_id="ledger-1", table=CAPABILITY_TABLE, keys=KEYS, anchor=folder / "anchor"
    ),
}


class Crash(BaseException):
    """The process ends here: nothing after it is done."""


def an_instance(instance_id="instance-1", publication="publication-1", **more):
    given = {
        "id": instance_id,
        "registration": f"registration-of-{instance_id}",
        "publication": publication,
        "state_generation": 1,
        "capabilities": tuple(map(Capability, GRANTABLE)),
        **more,
    }
    return Instance(**given)


def without(instance, operation, **flags):
    """The instance with one capability changed, or gone if nothing is said of it."""
    others = tuple(each for each in instance.capabilities if each.operation != operation)
    return evolve(instance, capabilities=(*others, Capability(operation, **flags)) if flags else others)


def answer_for(claimed, envelope):
    """What a well-behaved host answers."""
    operation = claimed.permit.tool
    if operation == STATE_READ:
        return STATE
    if operation == GPU:
        return GPU_HEALTH
    if operation == EVALUATE:
        return {"receipt_id": envelope.receipt_id, "result_json": "2", "completed": True}
    assert operation == GESTURE
    generation = (envelope.expected_state_generation or 0) + 1
    return {"receipt_id": envelope.receipt_id, "applied": True, "state_generation": generation}


class CutOff:
    """A ledger that can be made unreachable in some of its methods, before or after they did their work."""

    def __init__(self, inner):
        self.inner = inner
        self.broken = set()
        self.unheard = set()

    def __getattr__(self, name):
        method = getattr(self.inner, name)
        if name in self.broken:
            raise LedgerError(Reason.STORE_UNAVAILABLE, "the ledger cannot be reached")
        if name not in self.unheard:
            return method

        def lost(*args, **kwargs):
            method(*args, **kwargs)
            raise LedgerError(Reason.STORE_UNAVAILABLE, "the ledger's answer was lost")

        return lost


class CapabilityBench:
    """One broker with its world. `at(moment, act)` lets `act` strike when the broker reaches that moment."""

    def __init__(self, *, ledger=None, policies=EVERYTHING, instances=None, clock=None, **more):
        self.clock = clock or ManualClock()
        self.ledger = CutOff(ledger or MemoryLedger("ledger-1", CAPABILITY_TABLE))
        self.world = CountingHost(self.clock, instances or (an_instance(),), self.execute)
        names = frozenset(policies) | (frozenset(PULP.profiles) if policies is EVERYTHING else frozenset())
        self.person = ScriptedConsent(policies=names)
        self.chance = SeededChance("bench")
        self.strikes = {}
        self.lock = threading.Lock()
        self.broker = self.a_broker(**more)

    def a_broker(self, **changed):
        """Another broker on the same ledger and world, as after a restart."""
        given = {
            "run": "run-1",
            "projection": PROJECTION,
            "eligible": EVERYTHING,
            "ledger": self.ledger,
            "host": self.world,
            "consent": self.person,
            "clock": self.clock,
            "chance": self.chance,
            "keys": KEYS,
            "on_moment": self._reached,
            **changed,
        }
        return CapabilityBroker(**given)

    def restart(self, **changed):
        self.broker = self.a_broker(**changed)
        return self

    def execute(self, claimed, envelope):
        return self.world.ended(json.dumps(answer_for(claimed, envelope)).encode())

    def at(self, moment, act):
        self.strikes[moment] = act

    def _reached(self, moment):
        act = self.strikes.pop(moment, None)
        if act is not None:
            act()

    def ask(self, operation, session=SESSION, *, also=None, instance_id="instance-1", **more):
        """Call an operation's tool; `also` goes into its input."""
        arguments = {
            "instance_id": instance_id,
            "input": {**INPUTS.get(operation, {}), **(also or {})},
            **more,
        }
        return self.broker.call(session, PULP.tool_name(operation), json.dumps(arguments).encode())

    def manage(self, name, session=SESSION, **arguments):
        """Call a management tool."""
        return self.broker.call(session, PULP.management_tool(name), json.dumps(arguments).encode())

    def granted(self, authority, session=SESSION, instance_id="instance-1"):
        """The id of a grant that is asked for by a management call."""
        kind = "profile" if authority in PULP.profiles else "operation_id"
        return self.manage("grant_request", session, instance_id=instance_id, **{kind: authority}).data["grant_id"]

    def told(self, tool, answer, **more):
        """What the agent gets, held to the tool's output schema."""
        structured = told(answer, **more)
        assert PROJECTION.answer_faults(tool, structured) is None
        return structured

    @property
    def executed(self):
        return dict(self.world.executed)

    def receipts(self, run="run-1"):
        return [json.loads(line) for line in self.ledger.receipts(run)]

    def groups(self, run="run-1"):
        """The states of all operations in the ledger, in the order of their admission."""
        return [row.state for _, row in self.ledger.groups(run)]

    def sound(self, run="run-1"):
        """Whether the run's receipts verify."""
        ledger = self.ledger
        return verify(
            ledger.receipts(run), run=run, ledger_id=ledger.id, head=ledger.head(run), table=CAPABILITY_TABLE
        ).sound


def at_once(*acts):
    """Do all of these in threads that start together; what each came to, in order."""
    start = threading.Barrier(len(acts))
    came = [None] * len(acts)

    def run(place, act):
        start.wait()
        came[place] = act()

    threads = [threading.Thread(target=run, args=(place, act)) for place, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return came
