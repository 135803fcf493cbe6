"""A registry's tools over a world that counts, as a process: `capability_server.py ROOT REPORT`.

A request of the id `held` ends when it is cancelled, each other one at once. What became of them is written to
REPORT at the end.
"""

import json
import signal
import sys
import threading
from pathlib import Path

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.counting import CountingHost, ScriptedConsent
from assisted_benchmark.capability.ports import Capability, Instance, Word
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.gateway.agent_session import AgentSession
from assisted_benchmark.gateway.capability_tools import capability_resources, capability_tools
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.memory import MemoryLedger

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # an impatient client may send it before the report is written
root, report = Path(sys.argv[1]), Path(sys.argv[2])
registry = load_registry(root / "contracts" / "pulp.registry.yaml", root)
clock, projection = SystemClock(), Projection(registry)
everything = frozenset(each.id for each in registry.operations)
capabilities = tuple(Capability(each) for each in sorted(everything))
told = threading.Event()


def execute(claimed, envelope):
    if envelope.request_id == "held":
        told.wait(30)
        return world.ended(b"", Word.CANCELLED)
    result = {"parameters": [], "state_generation": 1, "catalog_generation": 1, "catalog_included": False}
    return world.ended(json.dumps({**result, "redacted_count": 0}).encode())


world = CountingHost(clock, (Instance("instance-1", "registration-1", "publication-1", 1, capabilities),), execute)
world.on_step = lambda step: told.set() if step == "cancel" else None
world.observations = ({"sequence": 1, "current": 1, "total": 2}, {"sequence": 2, "current": 2, "total": 2})
ledger = MemoryLedger("ledger-1", CAPABILITY_TABLE)
person = ScriptedConsent(policies=everything)
broker = CapabilityBroker(
    run="run-1",
    projection=projection,
    eligible=everything,
    ledger=ledger,
    host=world,
    consent=person,
    clock=clock,
    chance=SystemChance(),
    keys=KeyRing("key-1", bytes(32)),
)
face = Face(capability_tools(projection, broker, "peer-1"), "", capability_resources(registry, broker, "peer-1"))
session = AgentSession(face, Session("run-1", "agent-1"), clock, on_malformed=broker.refuse_malformed)
session.serve()
report.write_text(
    json.dumps(
        {
            "executed": world.executed,
            "cancelled": [each.request_id for each in world.cancelled],
            "states": [row.state for _, row in ledger.groups("run-1")],
            "prompts": len(person.prompts),
            "odd": [each.kind for each in session.oddities],
        }
    )
)
