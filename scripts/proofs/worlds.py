"""The worlds of schedules: real brokers over one real (or wrong) ledger, and a server that counts what arrives.

Brokers give way before and after each of their writes to the ledger, and at their own moments around the send. Each is
a process of its own, with its own connection to the ledger; a memory ledger is one that outlives them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.counting import CountingHost, ScriptedConsent
from assisted_benchmark.capability.ports import Capability, Ended, Envelope, Instance
from assisted_benchmark.capability.ports import Session as Client
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.capability.results import Managed, Outcome
from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.capability.states import State as Operation
from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Claimed, Ledger
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.counting import CountingDispatcher, CountingMachine
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.ports import Reply
from assisted_benchmark.live_policy.states import LIVE_TABLE
from assisted_benchmark.live_policy.states import State as Group
from assisted_benchmark.live_policy.trust import Pins
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.counting import CountingEndpoint
from assisted_benchmark.mutation.proposal import Session as Agent
from assisted_benchmark.mutation.results import NeedsAnswer, Proposed
from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.mutation.states import State as Change
from assisted_benchmark.mutation.store import ProposalStore
from proofs.kill_grants import HOST, VM, choosing, one_choice
from proofs.naive_ledger import WRONG, ReadThenUpdate
from proofs.scheduler import Act, step
from proofs.stores import KEYS, ROOT, real, unsound

KINDS: Final = ("memory", "sqlite")

# The brokers' moments that are no write to the ledger: before the admission, right before the send, right after it.
_MOMENTS: Final = frozenset({"admit", "write", "answer"})

_YES: Final = {"action": "accept", "content": {"confirm": True}}
_HOUR: Final = 3600 * SECOND
_GESTURE: Final = "dev.pulp.state/parameter-gesture@1"
_POLICY: Final = one_choice()
_CHANGES: Final = load_changes(ROOT / "contracts" / "fabric.changes.yaml", ROOT)
_REGISTRY: Final = load_registry(ROOT / "contracts" / "pulp.registry.yaml", ROOT)
_PROJECTION: Final = Projection(_REGISTRY)


class _Stepping:
    """A ledger whose writes are steps. What it answers is the real one's."""

    def __init__(self, ledger: Ledger, steps: frozenset[str]) -> None:
        self._ledger = ledger
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)
        if name not in self._steps:
            return method

        def stepping(*given: Any, **more: Any) -> Any:
            step(f"before {name}")
            answer = method(*given, **more)
            step(f"after {name}")
            return answer

        return stepping


def _at_moment(moment: str) -> None:
    if moment in _MOMENTS:
        step(moment)


class World:
    """What all worlds share. `ledger` is one of `KINDS`, or the name of a wrong one; `who` is what goes on."""

    table: TransitionTable
    steps: frozenset[str] = frozenset({"claim", "settle", "move", "recover", "open_group"})

    def __init__(self, ledger: str, who: tuple[str, ...]) -> None:
        self.who = who
        self._kind = ledger
        self._folder = Path(tempfile.mkdtemp(prefix="schedules-"))
        self._memory = MemoryLedger("schedules", self.table)
        self._opened: list[Ledger] = []
        self.clock = ManualClock()
        self.acts: list[Act] = []
        self.arrived: list[str] = []
        self.answers: list[Any] = []

    def ledger(self) -> Ledger:
        """A process's own connection to the one ledger."""
        if self._kind == "memory":
            opened: Ledger = self._memory
        elif self._kind == "sqlite":
            opened = real(self._folder, self.table)
        else:
            naive = WRONG[self._kind](self._folder, self.table)
            if isinstance(naive, ReadThenUpdate):
                naive.between = lambda: step("between read and write")
            opened = naive
        self._opened.append(opened)
        return cast(Ledger, _Stepping(opened, self.steps))

    def act(self, name: str, process: int, do: Callable[[], object]) -> None:
        """One more thing that goes on."""
        self.acts.append(Act(name, process, lambda: self.answers.append(do())))

    def ends(self) -> str:
        """See the scheduler's `World`."""
        try:
            self.again()
            ledger = self._opened[-1]
            fault = self.fault(ledger)
            return fault or ("the receipts do not verify" if unsound(ledger) else "")
        finally:
            for each in self._opened:
                each.close()
            shutil.rmtree(self._folder)

    def again(self) -> None:
        """A new process starts over the same ledger, and everything is asked for once more."""
        raise NotImplementedError

    def fault(self, ledger: Ledger) -> str:
        """What is wrong now."""
        raise NotImplementedError


class LiveWorld(World):
    """Brokers that share one grant of one choice."""

    table = LIVE_TABLE

    def __init__(self, ledger: str, who: tuple[str, ...]) -> None:
        super().__init__(ledger, who)
        first, second = self._broker(), self._broker()
        sealed = first.seal(run="run-1", principal="agent", vm=VM, host=HOST, task="t-1")
        session = self._session = first.session(sealed)
        self._sealed = sealed
        second.open(sealed.data, session)
        third = self._broker() if "rival" in who else first
        third.open(sealed.data, session)
        every: dict[str, tuple[int, Callable[[], object]]] = {
            "approve": (0, lambda: first.propose(session, choosing("approve"))),
            "hold": (1, lambda: second.propose(session, choosing("hold"))),
            "twin": (0, lambda: first.propose(session, choosing("approve"))),
            "rival": (2, lambda: third.propose(session, choosing("approve"))),
            "revoke": (0, lambda: first.revoke(sealed.digest)),
            "revoke elsewhere": (1, lambda: second.revoke(sealed.digest)),
            "abort": (0, lambda: first.abort(session)),
            "time": (3, lambda: self.clock.advance(_HOUR)),
            "recover": (4, lambda: self._broker().recover()),
        }
        for name in who:
            self.act(name, *every[name])

    def again(self) -> None:
        broker = self._broker()
        broker.recover()
        opened = broker.open(self._sealed.data, self._session)
        for target in ("approve", "hold"):
            if isinstance(opened, Session):
                self.answers.append(broker.propose(opened, choosing(target)))

    def fault(self, ledger: Ledger) -> str:
        ((_, row),) = ledger.groups("run-1")
        if len(self.arrived) > 1:
            return f"sent {len(self.arrived)} times: {self.arrived}"
        told = [each for each in self.answers if getattr(each, "state", None) is Group.SUCCEEDED]
        if told and row.state != Group.SUCCEEDED:
            return f"told that it succeeded, and recorded as {row.state}"
        unsent = row.state in (Group.SEALED, Group.REVOKED, Group.ABORTED, Group.EXPIRED, Group.EXHAUSTED)
        if (unsent and self.arrived) or row.state == Group.DISPATCHING:
            return f"sent {len(self.arrived)} times, and recorded as {row.state}"
        return ""

    def _broker(self) -> LiveBroker:
        dispatcher = CountingDispatcher(_POLICY.contract, self.clock, self._took)
        self._dispatcher = dispatcher
        return LiveBroker(
            policy=_POLICY,
            pins=Pins(_POLICY.digest, _POLICY.contract.digest),
            launches=dispatcher.launches,
            ledger=self.ledger(),
            dispatcher=dispatcher,
            machine=CountingMachine(HOST),
            clock=self.clock,
            chance=SeededChance(f"schedules-{len(self._opened)}"),
            keys=KEYS,
            on_moment=_at_moment,
        )

    def _took(self, claimed: Claimed) -> Reply:
        arguments = parse(claimed.permit.arguments)
        self.arrived.append(arguments["targetId"])
        done = {**arguments, "frame": "f-1", "accepted": True}
        return self._dispatcher.replied(canonical_bytes({"content": [], "structuredContent": done}))


class MutationWorld(World):
    """Brokers that share one token."""

    table = MUTATION_TABLE

    def __init__(self, ledger: str, who: tuple[str, ...]) -> None:
        super().__init__(ledger, who)
        self._endpoint = CountingEndpoint(self.clock, created=self._took)
        self._cancelled = False
        first, second = self._broker(), self._broker()
        self._token = self._propose(first)
        third = self._broker() if {"rival", "crowd out"} & set(who) else first
        every: dict[str, tuple[int, Callable[[], object]]] = {
            "confirm": (0, lambda: self._confirm(first)),
            "confirm elsewhere": (1, lambda: self._confirm(second)),
            "twin": (0, lambda: self._confirm(first)),
            "rival": (2, lambda: self._confirm(third)),
            "cancel": (3, self._cancel),
            "time": (3, lambda: self.clock.advance(_HOUR)),
            "crowd out": (2, lambda: self._propose(third)),
            "recover": (4, lambda: self._broker().recover()),
        }
        for name in who:
            self.act(name, *every[name])

    def again(self) -> None:
        self._cancelled = False
        broker = self._broker()
        broker.recover()
        self.answers.append(self._confirm(broker))

    def fault(self, ledger: Ledger) -> str:
        (_, row), *_ = ledger.groups("run-1")
        if len(self.arrived) > 1:
            return f"sent {len(self.arrived)} times"
        done = [each for each in self.answers if getattr(each, "executed", None) is True]
        if done and row.state != Change.SUCCEEDED:
            return f"told that it was executed, and recorded as {row.state}"
        unsent = row.state in (Change.SEALED, Change.REFUSED, Change.EXPIRED, Change.EVICTED)
        if (unsent and self.arrived) or row.state in (Change.CONFIRMING, Change.DISPATCHING):
            return f"sent {len(self.arrived)} times, and recorded as {row.state}"
        return ""

    def _broker(self) -> MutationBroker:
        store = ProposalStore(
            ledger=self.ledger(),
            clock=self.clock,
            chance=SeededChance(f"schedules-{len(self._opened)}"),
            keys=KEYS,
            capacity=1,
        )
        return MutationBroker(contract=_CHANGES, endpoint=self._endpoint, store=store, on_moment=_at_moment)

    def _propose(self, broker: MutationBroker) -> str:
        change = _CHANGES.change("network")
        spec = {} if change is None else change.example.value
        made = broker.propose(Agent("run-1", "agent"), canonical_bytes({"change_type": "network", "spec": spec}))
        return made.token if isinstance(made, Proposed) else ""

    def _confirm(self, broker: MutationBroker) -> object:
        raw, session = canonical_bytes({"token": self._token}), Agent("run-1", "agent")
        asked = broker.begin(session, raw, True, lambda: self._cancelled)
        if isinstance(asked, NeedsAnswer):
            return broker.resume(session, raw, asked.state, _YES, lambda: self._cancelled)
        return asked

    def _cancel(self) -> None:
        self._cancelled = True

    def _took(self, request: Any) -> Any:
        self.arrived.append(request.target)
        return self._endpoint.replied(201, b'{"uuid":"00000000-0000-0000-0000-000000000001"}')


class CapabilityWorld(World):
    """One broker with callers that bring one key, its grant named or left to the broker; another may take over."""

    table = CAPABILITY_TABLE
    # The broker opens its groups under a lock of its own, which is no place to give way.
    steps = World.steps - {"open_group"}

    def __init__(self, ledger: str, who: tuple[str, ...]) -> None:
        super().__init__(ledger, who)
        capabilities = (Capability(_GESTURE),)
        instance = Instance(
            id="instance-1",
            registration="registration-1",
            publication="publication-1",
            state_generation=1,
            capabilities=capabilities,
        )
        self._host = CountingHost(self.clock, (instance,), self._took)
        self._client = Client("run-1", "client", "peer")
        broker = self._broker()
        self._grant = self._granted(broker) if "grant named" in who else None
        every: dict[str, tuple[int, Callable[[], object]]] = {
            "call": (0, lambda: self._call(broker)),
            "call again": (0, lambda: self._call(broker)),
            "call once more": (0, lambda: self._call(broker)),
            "revoke": (0, lambda: self._manage(broker, "revoke", grant_id=self._grant)),
            "cancel": (0, lambda: self._manage(broker, "cancel", instance_id="instance-1", request_id="r-1")),
            "time": (1, lambda: self.clock.advance(_HOUR)),
            "take over": (2, self._broker),
        }
        for name in who:
            if name in every:
                self.act(name, *every[name])

    def again(self) -> None:
        self.answers.append(self._call(self._broker()))

    def fault(self, ledger: Ledger) -> str:
        if len(self.arrived) > 1:
            return f"executed {len(self.arrived)} times"
        states = [row.state for _, row in ledger.groups("run-1")]
        done = [each for each in self.answers if isinstance(each, Outcome) and each.state is Operation.COMPLETED]
        if done and Operation.COMPLETED not in states:
            return f"told that it completed, and recorded as {states}"
        if self.arrived and set(states) <= {Operation.ADMITTED}:
            return f"executed, and recorded as {states}"
        return f"left as {states}" if {Operation.ADMITTED, Operation.RUNNING} & set(states) else ""

    def _broker(self) -> CapabilityBroker:
        consent = ScriptedConsent(policies=frozenset({_GESTURE}))
        consent.on_step = lambda name: step(f"consent: {name}")
        return CapabilityBroker(
            run="run-1",
            projection=_PROJECTION,
            eligible=frozenset({_GESTURE}),
            ledger=self.ledger(),
            host=self._host,
            consent=consent,
            clock=self.clock,
            chance=SeededChance(f"schedules-{len(self._opened)}"),
            keys=KEYS,
            on_moment=_at_moment,
        )

    def _granted(self, broker: CapabilityBroker) -> str:
        answer = self._manage(broker, "grant_request", instance_id="instance-1", operation_id=_GESTURE)
        return str(answer.data["grant_id"]) if isinstance(answer, Managed) else ""

    def _manage(self, broker: CapabilityBroker, name: str, **arguments: str | None) -> object:
        return broker.call(self._client, _REGISTRY.management_tool(name), canonical_bytes(arguments))

    def _call(self, broker: CapabilityBroker) -> object:
        given = {"parameter_id": 7, "normalized_value": 0.5, "idempotency_key": "key-1"}
        named = {} if self._grant is None else {"grant_id": self._grant}
        arguments = {"instance_id": "instance-1", "input": given, **self._request(), **named}
        return broker.call(self._client, _REGISTRY.tool_name(_GESTURE), canonical_bytes(arguments))

    def _request(self) -> dict[str, str]:
        """A request id, where something is to be cancelled by it. Without one the broker gives each call its own."""
        return {"request_id": "r-1"} if "cancel" in self.who else {}

    def _took(self, claimed: Claimed, envelope: Envelope) -> Ended:
        self.arrived.append(claimed.permit.tool)
        done = {"receipt_id": envelope.receipt_id, "applied": True, "state_generation": 2}
        return self._host.ended(canonical_bytes(done))
