"""A bench for tests of the live broker: contracts, policies, a counting world, and the bytes an agent proposes."""

from __future__ import annotations

import json

from attrs import evolve

from assisted_benchmark.contract.model import LEGACY, SERVER_SET, Contract, Effect, Launch, Recheck, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.checks import CHECKS
from assisted_benchmark.live_policy.counting import CountingDispatcher, CountingMachine
from assisted_benchmark.live_policy.policy import Policy, Step
from assisted_benchmark.live_policy.states import LIVE_TABLE
from assisted_benchmark.live_policy.trust import Pins

VM = "2f8f9e0c-6c1d-4b1e-9a51-000000000124"
OTHER_VM = "2f8f9e0c-6c1d-4b1e-9a51-000000000125"
HOST = digest_of("projectbuddy/host-identity@1", b"bench-host")
OTHER_HOST = digest_of("projectbuddy/host-identity@1", b"other-host")
KEYS = KeyRing("k-1", b"m" * 32)
LIFETIME = 120 * SECOND

WORD = {"type": "string"}
APPROVE = {"taskId": "t-1", "targetId": "approve"}
HOLD = {"taskId": "t-1", "targetId": "hold"}
CLICKED = b'{"content":[],"structuredContent":{"accepted":true}}'


def a_tool(name, properties=None, *, effect=Effect.ACT, output=None, sensitive=(), required=None):
    properties = properties or {}
    definition = {
        "name": name,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": sorted(properties) if required is None else required,
        },
    }
    if output is not None:
        definition["outputSchema"] = output
    return Tool(effect=effect, definition=Canonical.of(definition), sensitive=tuple(sensitive))


ACCEPTED = {"type": "object", "properties": {"accepted": {"const": True}}, "required": ["accepted"]}
CLICK = a_tool("click_target", {"taskId": WORD, "targetId": WORD}, output=ACCEPTED)
TYPE_TEXT = a_tool("type_text", {"taskId": WORD, "targetId": WORD})
READ = a_tool("read_task", {"taskId": WORD}, effect=Effect.OBSERVE)
SERIES = a_tool("get_benchmark_series", effect=Effect.OBSERVE)
STATUS = a_tool("get_status", {"verbose": {"type": "boolean"}}, effect=Effect.OBSERVE)
PLAN = a_tool("spin_up_witness", effect=Effect.PLAN_ONLY)


def a_server(name, *tools, recheck=Recheck.ON_CHANGE):
    return Server(id=name, launch=Launch(argv=("/bin/server", name)), tools=tools, recheck=recheck)


UI = a_server("synthetic-ui", CLICK, TYPE_TEXT, READ)
LBA = a_server("lba", SERIES, STATUS, PLAN, CLICK)
SERVERS = Contract(schema=SERVER_SET, id="lba-and-synthetic-ui", servers=(LBA, UI))
ONE_SERVER = Contract(schema=LEGACY, id="lba-legacy", servers=(LBA,))

TASK = {"from": "run.task"}


def a_group(server="synthetic-ui", tool="click_target", target="targetId", **candidates):
    """The reference choice group; keywords replace its candidates."""
    chosen = candidates or {
        "approve": {"taskId": TASK, "targetId": "approve"},
        "hold": {"taskId": TASK, "targetId": "hold"},
    }
    held = tuple((name, Canonical.of(arguments)) for name, arguments in chosen.items())
    return Step(server=server, tool=tool, choose="decision", target=target, candidates=held)


LOOK = Step.call("lba", "get_benchmark_series", {})
ASK = Step.call("lba", "get_status", {"verbose": True})


def a_policy(*steps, contract=SERVERS, **more):
    return Policy(
        id="ui-decision", contract=contract, expires_after_ns=LIFETIME, steps=steps or (LOOK, a_group()), **more
    )


def asking(server, tool, arguments, **more):
    """The bytes of a proposal."""
    return json.dumps({"server": server, "tool": tool, "arguments": arguments, **more}).encode()


def choosing(arguments, **more):
    """The bytes that choose at the reference group."""
    return asking("synthetic-ui", "click_target", arguments, **more)


LOOKING = asking("lba", "get_benchmark_series", {})


class Crash(BaseException):
    """The process dies here."""


def crash():
    raise Crash


class CutOff:
    """A ledger that can be made unreachable, whole or in one method."""

    def __init__(self, inner):
        self._inner = inner
        self.down = False
        self.broken = set()

    def __getattr__(self, name):
        if name in ("id", "table"):
            return getattr(self._inner, name)
        if self.down or name in self.broken:
            raise LedgerError(Reason.STORE_UNAVAILABLE, "the ledger cannot be reached")
        return getattr(self._inner, name)


class LiveBench:
    """One broker with its world. `at(moment, act)` lets `act` strike when the broker reaches that moment."""

    def __init__(self, policy=None, *, answer=None, checks=CHECKS, ledger=None, clock=None, pins=None, world=None):
        self.policy = policy or a_policy()
        self.clock = clock or ManualClock()
        self.ledger = ledger or CutOff(MemoryLedger("ledger-1", LIVE_TABLE))
        self.world = world or CountingDispatcher(self.policy.contract, self.clock, answer or self.answer)
        self.machine = CountingMachine(HOST)
        self.pins = pins or Pins(self.policy.digest, self.policy.contract.digest)
        self.strikes = {}
        self.moments = []
        self.broker = self.a_broker(checks=checks)

    def a_broker(self, **changed):
        """Another broker on the same ledger and world, as after a restart."""
        given = {
            "policy": self.policy,
            "pins": self.pins,
            "launches": self.world.launches,
            "ledger": self.ledger,
            "dispatcher": self.world,
            "machine": self.machine,
            "clock": self.clock,
            "chance": SeededChance("bench"),
            "keys": KEYS,
            "on_moment": self._reached,
            **changed,
        }
        return LiveBroker(**given)

    def answer(self, claimed):
        return self.world.replied(CLICKED)

    def at(self, moment, act):
        self.strikes[moment] = act

    def _reached(self, moment):
        self.moments.append(moment)
        act = self.strikes.pop(moment, None)
        if act is not None:
            act()

    def seal(self, run="run-1", **more):
        self.sealed = self.broker.seal(
            **{"run": run, "principal": "agent", "vm": VM, "host": HOST, "task": "t-1", **more}
        )
        self.session = self.broker.session(self.sealed)
        return self

    def propose(self, raw, **other):
        """Propose under the bench's session, or one that differs in the given fields."""
        return self.broker.propose(self.session._replace(**other), raw)

    def chosen(self):
        """Do the first step, so that the choice is open."""
        self.propose(LOOKING)
        return self

    @property
    def calls(self):
        return self.world.calls

    def receipts(self, run="run-1"):
        return [json.loads(line) for line in self.ledger.receipts(run)]

    def states(self, run="run-1"):
        """The states of the run's groups, in order."""
        return self.broker._ending._states(self.broker._known(self.session.grant))


def a_bench(*steps, **more):
    """A bench with a sealed grant of these steps (the reference policy, if none)."""
    given = {key: more.pop(key) for key in ("contract", "max_refusals", "extensions") if key in more}
    return LiveBench(a_policy(*steps, **given), **more).seal()


def a_choice(**more):
    """A bench whose one step is the reference choice group."""
    return a_bench(a_group(), **more)


def changed(policy, **fields):
    return evolve(policy, **fields)
