"""What the tests of a registry's tools stand on: the reference registry, a world that counts, agents of both eras."""

import json
import threading

import jsonschema
from agent_peers import ask, call, modern
from capability_bench import PROJECTION, PULP, CapabilityBench

from assisted_benchmark.capability.ports import Word
from assisted_benchmark.gateway.capability_tools import capability_resources, capability_tools, instructions
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.wire.outcomes import Era

ERAS = (Era.HANDSHAKE, Era.STATELESS)
PEER = "peer-1"
WAIT = 20


class Operating:
    """One broker over a world that counts. Each of its agents speaks with a session of its own."""

    def __init__(self, make, **options):
        self._make = make
        self.bench = CapabilityBench(**{"clock": SystemClock()} | options)
        self.world, self.person, self.broker = self.bench.world, self.bench.person, self.bench.broker
        self.tools = capability_tools(PROJECTION, self.broker, PEER)
        self.resources = capability_resources(PULP, self.broker, PEER)

    def agent(self, era=Era.HANDSHAKE, *, capabilities=None, tools=None, **options):
        """An agent of that era, connected."""
        return Operator(self.pipes(self.tools if tools is None else tools, **options), era, capabilities or {})

    def pipes(self, tools=(), **options):
        """The pipes of an agent that has said nothing yet."""
        given = {"clock": self.bench.clock, "resources": self.resources, "instructions": instructions(PULP, tools)}
        return self._make(*tools, **given | options)

    @property
    def grants(self):
        """How many grants have been issued."""
        return sum(each["reason"] == "granted" for each in self.bench.receipts())

    @property
    def refusals(self):
        said = [each["reason"] for each in self.bench.receipts() if each["kind"] == "decision"]
        return [reason for reason in said if reason != "admitted"]


class Operator:
    """An agent that operates; every result that it hears is held against the tool's own schema."""

    def __init__(self, pipes, era, capabilities):
        self.pipes = pipes
        self.stateless = era is Era.STATELESS
        self._capabilities = capabilities
        self._id = 0
        if not self.stateless:
            pipes.opened(capabilities=capabilities)
        self.listed = {tool["name"]: tool for tool in self.answer(self.asks("tools/list"))["result"]["tools"]}

    def asks(self, method, token=None, **params):
        """Send a request; its id."""
        self._id += 1
        meta = modern(0, capabilities=self._capabilities)["params"]["_meta"] if self.stateless else {}
        if token is not None:
            meta = {**meta, "progressToken": token}
        self.pipes.says(ask(self._id, method, **params, **{"_meta": meta} if meta else {}))
        return self._id

    def calls(self, name, arguments, **more):
        """Send a call of a tool; its id."""
        return self.asks("tools/call", **call(0, name, arguments)["params"], **more)

    def operates(self, operation, value=None, token=None, **more):
        """Send a call of an operation; its id."""
        arguments = {"instance_id": "instance-1", "input": value or {}, **more}
        return self.calls(PULP.tool_name(operation), arguments, token=token)

    def answer(self, request_id):
        """The next line, which answers this request."""
        heard = self.pipes.hears()
        assert heard.get("id") == request_id, heard
        return heard

    def told(self, name, request_id):
        """Whether a call of this tool failed, and its content."""
        result = self.answer(request_id)["result"]
        content = result["structuredContent"]
        jsonschema.Draft202012Validator(self.listed[name]["outputSchema"]).validate(content)
        assert json.loads(result["content"][0]["text"]) == content
        assert result["isError"] is not content["ok"]
        return content

    def operated(self, operation, value=None, **more):
        """What came of a call of an operation."""
        return self.told(PULP.tool_name(operation), self.operates(operation, value, **more))

    def manages(self, name, **arguments):
        """What came of a call of a management tool."""
        tool = PULP.management_tool(name)
        return self.told(tool, self.calls(tool, arguments))


class Held:
    """A host that holds a request until it is told to stop, or is let go."""

    def __init__(self, ours, word=Word.CANCELLED):
        self.entered, self._end = threading.Event(), threading.Event()
        self._ours, self._word = ours, word
        ours.world.execute = self._execute
        ours.world.on_step = lambda step: self._end.set() if step == "cancel" else None

    def _execute(self, claimed, envelope):
        self.entered.set()
        assert self._end.wait(WAIT)
        if self._word is Word.COMPLETED:
            return self._ours.bench.execute(claimed, envelope)
        return self._ours.world.ended(b"", self._word)

    def wait(self):
        """Until the request is at the host."""
        assert self.entered.wait(WAIT)

    def let_go(self):
        self._end.set()
