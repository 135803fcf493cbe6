"""What the tests of the change tools stand on: the real contract, the offline endpoint, and calls without a session."""

import json
from functools import cache
from pathlib import Path

from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.workloads.fabric_api import FabricApi, bearer_of
from assisted_benchmark.workloads.fabric_api_endpoint import FabricEndpoint
from assisted_benchmark.workloads.fabric_api_face import FabricFace

ROOT = Path(__file__).resolve().parents[3]


@cache
def a_contract():
    return load_changes(ROOT / "contracts" / "fabric.changes.yaml", ROOT)


def an_endpoint(faults=(), clock=None):
    face = FabricFace(FabricApi(0), faults)
    endpoint = FabricEndpoint(face, clock or SystemClock(), bearer=bearer_of(0))
    endpoint.model = face.model
    return endpoint


class Answers:
    """An endpoint that answers what it is told to, and remembers what it was asked."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.asked = []

    def ask(self, request, *, deadline):
        self.asked.append(request)
        return self.replies.pop(0)


class ACall:
    """A call in flight that is nowhere in flight."""

    session = Session("run-1", "agent-1")
    era = Era.HANDSHAKE
    cancelled = False
    can_ask = True
    resumed = None

    def __init__(self, arguments):
        self.arguments = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
        self.deadline = Deadline.after(SystemClock(), 60 * SECOND)


def a_call(arguments):
    return ACall(arguments)
