"""A broker to measure and to try: the choice of the reference contract alone, over a counting dispatcher."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.chance import Chance, SystemChance
from assisted_benchmark.kernel.clock import SECOND, Clock, SystemClock
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.counting import CountingDispatcher, CountingMachine
from assisted_benchmark.live_policy.dispatch import Moment
from assisted_benchmark.live_policy.grant import SealedGrant, Session
from assisted_benchmark.live_policy.policy import Policy, Step
from assisted_benchmark.live_policy.trust import Pins

ROOT = Path(__file__).resolve().parents[2]
KEYS = KeyRing("measure", b"m" * 32)
HOST: Digest = digest_of("projectbuddy/host-identity@1", b"measured")
VM = "00000000-0000-4000-8000-000000000001"
APPROVE = b'{"server": "synthetic-ui", "tool": "click_target", "arguments": {"taskId": "t-1", "targetId": "approve"}}'


def one_choice() -> Policy:
    """A policy whose only step is the choice between approve and hold."""
    contract = load_contract(ROOT / "contracts" / "lba-and-synthetic-ui.contract.yaml", ROOT)
    step = Step(
        choose="decision",
        server="synthetic-ui",
        tool="click_target",
        target="targetId",
        candidates=tuple(
            (name, Canonical.of({"taskId": {"from": "run.task"}, "targetId": name})) for name in ("approve", "hold")
        ),
    )
    return Policy(id="measured", version=1, contract=contract, expires_after_ns=3600 * SECOND, steps=(step,))


def counted_broker(
    policy: Policy,
    ledger: Ledger,
    dispatcher: CountingDispatcher,
    *,
    clock: Clock,
    chance: Chance,
    keys: KeyRing,
    on_moment: Callable[[Moment], None] = lambda _: None,
) -> LiveBroker:
    """A broker that trusts this policy, over a world that counts."""
    return LiveBroker(
        policy=policy,
        pins=Pins(policy.digest, policy.contract.digest),
        launches=dispatcher.launches,
        ledger=ledger,
        dispatcher=dispatcher,
        machine=CountingMachine(HOST),
        clock=clock,
        chance=chance,
        keys=keys,
        on_moment=on_moment,
    )


class Bench:
    """One broker over one ledger, and a session for each grant that was asked for."""

    def __init__(self, ledger: Ledger, policy: Policy | None = None) -> None:
        self.policy = policy or one_choice()
        clock = SystemClock()
        dispatcher = CountingDispatcher(self.policy.contract, clock)
        self.broker = counted_broker(self.policy, ledger, dispatcher, clock=clock, chance=SystemChance(), keys=KEYS)
        self._runs = 0

    def seal(self, count: int) -> list[Session]:
        """That many new runs, each with a sealed group: their sessions."""
        return [self.broker.session(self.seal_one()) for _ in range(count)]

    def seal_one(self) -> SealedGrant:
        """A grant for a new run."""
        self._runs += 1
        return self.broker.seal(run=f"run-{self._runs:08}", principal="agent", vm=VM, host=HOST, task="t-1")
