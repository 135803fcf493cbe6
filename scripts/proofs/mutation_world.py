"""The world of the mutation broker's schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.counting import CountingEndpoint
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.results import NeedsAnswer, Proposed
from assisted_benchmark.mutation.states import MUTATION_TABLE, State
from assisted_benchmark.mutation.store import ProposalStore
from proofs.stores import KEYS, ROOT
from proofs.worlds import HOUR, World, at_moment

_YES: Final = {"action": "accept", "content": {"confirm": True}}
_CHANGES: Final = load_changes(ROOT / "contracts" / "fabric.changes.yaml", ROOT)


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
            "time": (3, lambda: self.clock.advance(HOUR)),
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
        if done and row.state != State.SUCCEEDED:
            return f"told that it was executed, and recorded as {row.state}"
        unsent = row.state in (State.SEALED, State.REFUSED, State.EXPIRED, State.EVICTED)
        if (unsent and self.arrived) or row.state in (State.CONFIRMING, State.DISPATCHING):
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
        return MutationBroker(contract=_CHANGES, endpoint=self._endpoint, store=store, on_moment=at_moment)

    def _propose(self, broker: MutationBroker) -> str:
        change = _CHANGES.change("network")
        spec = {} if change is None else change.example.value
        made = broker.propose(Session("run-1", "agent"), canonical_bytes({"change_type": "network", "spec": spec}))
        return made.token if isinstance(made, Proposed) else ""

    def _confirm(self, broker: MutationBroker) -> object:
        raw, session = canonical_bytes({"token": self._token}), Session("run-1", "agent")
        asked = broker.begin(session, raw, True, lambda: self._cancelled)
        if isinstance(asked, NeedsAnswer):
            return broker.resume(session, raw, asked.state, _YES, lambda: self._cancelled)
        return asked

    def _cancel(self) -> None:
        self._cancelled = True

    def _took(self, request: Any) -> Any:
        self.arrived.append(request.target)
        return self._endpoint.replied(201, b'{"uuid":"00000000-0000-0000-0000-000000000001"}')
