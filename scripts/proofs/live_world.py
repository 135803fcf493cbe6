"""The world of the live broker's schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.ledger.protocol import Claimed, Ledger
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.counting import CountingDispatcher
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.ports import Reply
from assisted_benchmark.live_policy.states import LIVE_TABLE, State
from figures.bench import HOST, VM, counted_broker, one_choice
from proofs.kill_grants import choosing
from proofs.stores import KEYS
from proofs.worlds import HOUR, World, at_moment

_POLICY: Final = one_choice()


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
            "time": (3, lambda: self.clock.advance(HOUR)),
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
        told = [each for each in self.answers if getattr(each, "state", None) is State.SUCCEEDED]
        if told and row.state != State.SUCCEEDED:
            return f"told that it succeeded, and recorded as {row.state}"
        unsent = row.state in (State.SEALED, State.REVOKED, State.ABORTED, State.EXPIRED, State.EXHAUSTED)
        if (unsent and self.arrived) or row.state == State.DISPATCHING:
            return f"sent {len(self.arrived)} times, and recorded as {row.state}"
        return ""

    def _broker(self) -> LiveBroker:
        dispatcher = CountingDispatcher(_POLICY.contract, self.clock, self._took)
        self._dispatcher = dispatcher
        chance = SeededChance(f"schedules-{len(self._opened)}")
        return counted_broker(
            _POLICY, self.ledger(), dispatcher, clock=self.clock, chance=chance, keys=KEYS, on_moment=at_moment
        )

    def _took(self, claimed: Claimed) -> Reply:
        arguments = parse(claimed.permit.arguments)
        self.arrived.append(arguments["targetId"])
        done = {**arguments, "frame": "f-1", "accepted": True}
        return self._dispatcher.replied(canonical_bytes({"content": [], "structuredContent": done}))
