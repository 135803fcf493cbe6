"""The world of the capability broker's schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.counting import CountingHost, ScriptedConsent
from assisted_benchmark.capability.ports import Capability, Ended, Envelope, Instance, Session
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.capability.results import Managed, Outcome
from assisted_benchmark.capability.states import CAPABILITY_TABLE, State
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.ledger.protocol import Claimed, Ledger
from proofs.scheduler import step
from proofs.stores import KEYS, ROOT
from proofs.worlds import HOUR, World, at_moment

_GESTURE: Final = "dev.pulp.state/parameter-gesture@1"
_REGISTRY: Final = load_registry(ROOT / "contracts" / "pulp.registry.yaml", ROOT)
_PROJECTION: Final = Projection(_REGISTRY)


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
        self._client = Session("run-1", "client", "peer")
        broker = self._broker()
        self._grant = self._granted(broker) if "grant named" in who else None
        every: dict[str, tuple[int, Callable[[], object]]] = {
            "call": (0, lambda: self._call(broker)),
            "call again": (0, lambda: self._call(broker)),
            "call once more": (0, lambda: self._call(broker)),
            "revoke": (0, lambda: self._manage(broker, "revoke", grant_id=self._grant)),
            "cancel": (0, lambda: self._manage(broker, "cancel", instance_id="instance-1", request_id="r-1")),
            "time": (1, lambda: self.clock.advance(HOUR)),
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
        done = [each for each in self.answers if isinstance(each, Outcome) and each.state is State.COMPLETED]
        if done and State.COMPLETED not in states:
            return f"told that it completed, and recorded as {states}"
        if self.arrived and set(states) <= {State.ADMITTED}:
            return f"executed, and recorded as {states}"
        return f"left as {states}" if {State.ADMITTED, State.RUNNING} & set(states) else ""

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
            on_moment=at_moment,
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
