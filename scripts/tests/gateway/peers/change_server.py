"""The change tools over the offline endpoint as a process: `change_server.py ROOT REPORT WAIT_NS`.

What the endpoint was asked is written to REPORT at the end.
"""

import json
import signal
import sys
from pathlib import Path

from assisted_benchmark.gateway.agent_session import AgentSession
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.mutation_tools import change_tools, read_tools
from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.mutation.store import ProposalStore
from assisted_benchmark.workloads.fabric_api import FabricApi, bearer_of
from assisted_benchmark.workloads.fabric_api_endpoint import FabricEndpoint
from assisted_benchmark.workloads.fabric_api_face import FabricFace

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # an impatient client may send it before the report is written
root, report, wait_ns = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
contract = load_changes(root / "contracts" / "fabric.changes.yaml", root)
clock, model = SystemClock(), FabricApi(0)
endpoint = FabricEndpoint(FabricFace(model), clock, bearer=bearer_of(0))
ledger = MemoryLedger("ledger-1", MUTATION_TABLE)
store = ProposalStore(ledger=ledger, clock=clock, chance=SystemChance(), keys=KeyRing("key-1", bytes(32)))
broker = MutationBroker(contract=contract, endpoint=endpoint, store=store, wait_ns=wait_ns)
tools = (*read_tools(contract, endpoint, clock), *change_tools(contract, broker))
session = AgentSession(Face(tools), Session("run-1", "agent-1"), clock)
session.serve()
broker.close()
outcomes = [json.loads(line)["reason"] for line in ledger.receipts("run-1")]
odd = [each.kind for each in session.oddities]
report.write_text(json.dumps({"received": model.received, "outcomes": outcomes, "odd": odd}))
