"""What the tests of the change tools stand on: the real contract, the offline endpoint, and an agent that confirms."""

import json
from functools import cache
from pathlib import Path

import jsonschema
from agent_peers import FORM, Agent, ask, call, modern, reply

from assisted_benchmark.gateway.mutation_tools import change_tools, instructions, read_tools
from assisted_benchmark.gateway.tools import Session
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.proposal import Session as BrokerSession
from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.mutation.store import ProposalStore
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.workloads.fabric_api import FabricApi, bearer_of
from assisted_benchmark.workloads.fabric_api_endpoint import FabricEndpoint
from assisted_benchmark.workloads.fabric_api_face import FabricFace

ROOT = Path(__file__).resolve().parents[3]
PROPOSE, CONFIRM = "fabric_propose_change", "fabric_confirm_change"
MINUTE = 60 * SECOND
YES = {"action": "accept", "content": {"confirm": True}}
ERAS = (Era.HANDSHAKE, Era.STATELESS)


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
    """A call that is in flight nowhere."""

    def __init__(self, arguments):
        self.session = Session("run-1", "agent-1")
        self.arguments = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
        self.deadline = Deadline.after(SystemClock(), MINUTE)


class Changes:
    """One broker over the offline endpoint. Each of `agents` speaks with a session of its own."""

    def __init__(self, make, *, faults=(), **options):
        self._make = make
        self.clock = SystemClock()
        self.endpoint = an_endpoint(faults, self.clock)
        self.ledger = MemoryLedger("ledger-1", MUTATION_TABLE)
        keys = KeyRing("key-1", bytes(32))
        store = ProposalStore(ledger=self.ledger, clock=self.clock, chance=SeededChance("s"), keys=keys)
        options = {"wait_ns": MINUTE} | options
        self.broker = MutationBroker(contract=a_contract(), endpoint=self.endpoint, store=store, **options)

    def refuse_malformed(self, reason, detail):
        return self.broker.refuse_malformed(BrokerSession("run-1", "agent-1"), reason, detail)

    @property
    def tools(self):
        reads = read_tools(a_contract(), self.endpoint, self.clock)
        return (*reads, *change_tools(a_contract(), self.broker))

    def agent(self, era=Era.HANDSHAKE, *, capabilities=None, more=(), **options):
        """An agent of that era, connected."""
        capabilities = FORM if capabilities is None else capabilities
        tools = (*self.tools, *more)
        return Confirming(
            self._make(*tools, instructions=instructions(a_contract(), tools), **options), era, capabilities
        )

    @property
    def creates(self):
        return sum(count for name, count in self.endpoint.model.received.items() if name.endswith("create"))

    @property
    def outcomes(self):
        """The reason of every receipt but the events, in order."""
        lines = [json.loads(line) for line in self.ledger.receipts("run-1")]
        return [line["reason"] for line in lines if line["kind"] != "event"]


class Confirming:
    """An agent that proposes and confirms; every result that it hears is held against the tool's own schema."""

    def __init__(self, pipes: Agent, era, capabilities):
        self.pipes = pipes
        self._era = era
        self._capabilities = capabilities
        self._id = 0
        if era is Era.HANDSHAKE:
            pipes.opened(capabilities=capabilities)
        self.listed = {tool["name"]: tool for tool in self.answer(self.asks("tools/list"))["result"]["tools"]}

    def asks(self, method, **params):
        """Send a request; its id."""
        self._id += 1
        meta = modern(0, capabilities=self._capabilities)["params"]["_meta"]
        envelope = {"_meta": meta} if self._era is Era.STATELESS else {}
        self.pipes.says(ask(self._id, method, **params, **envelope))
        return self._id

    def calls(self, name, arguments, **more):
        """Send a call; its id."""
        return self.asks("tools/call", **call(0, name, arguments, **more)["params"])

    def answer(self, request_id):
        """The next line, which answers this request."""
        heard = self.pipes.hears()
        assert heard["id"] == request_id, heard
        return heard

    def result(self, name, request_id):
        """The sound result of a call of this tool."""
        return self.sound(name, self.answer(request_id)["result"])

    def sound(self, name, result):
        content = result["structuredContent"]
        jsonschema.Draft202012Validator(self.listed[name]["outputSchema"]).validate(content)
        assert json.loads(result["content"][0]["text"]) == content
        return result["isError"], content

    def proposes(self, change="connection", **fields):
        """A token for the contract's own example of that change, with these fields another."""
        spec = a_contract().change(change).example.value | fields
        failed, content = self.result(PROPOSE, self.calls(PROPOSE, {"change_type": change, "spec": spec}))
        assert not failed, content
        return content["token"]

    def confirms(self, token, **more):
        """Send a confirmation; its id."""
        return self.calls(CONFIRM, {"token": token}, **more)

    def confirmed(self, token, **more):
        """The result of a confirmation that asks nobody, or that resumes."""
        return self.result(CONFIRM, self.confirms(token, **more))

    def asked(self, token):
        """Confirm until a person is asked: what `replies` needs, and the question's parameters."""
        request_id = self.confirms(token)
        heard = self.pipes.hears()
        if self._era is Era.HANDSHAKE:
            assert heard["method"] == "elicitation/create", heard
            return (request_id, heard["id"]), heard["params"]
        result = heard["result"]
        assert (heard["id"], result["resultType"]) == (request_id, "input_required"), heard
        return (token, result["requestState"]), result["inputRequests"]["question"]["params"]

    def replies(self, question, raw):
        """Give the client's raw answer; the result of the confirmation."""
        first, second = question
        if self._era is Era.HANDSHAKE:
            self.pipes.says(reply(second, raw))
            return self.result(CONFIRM, first)
        return self.confirmed(first, requestState=second, inputResponses={"question": raw})
