"""Live brokers that are killed: each cycle's grants have one choice, and of both candidates one may arrive, once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.ledger.protocol import Claimed, Ledger
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.counting import CountingDispatcher
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.ports import Reply
from assisted_benchmark.live_policy.states import LIVE_TABLE, State
from assisted_benchmark.suite.kills import FileServer, Tally
from figures.bench import HOST, VM, counted_broker, one_choice
from proofs.stores import KEYS, Store, read, tally, written

_GRANTS: Final = 20
_TARGETS: Final = ("approve", "hold")


class Grants:
    """Grants with one choice each, sealed by one broker and used by others; the server is a file."""

    dispatchers: Final = 2
    told: Final = 3 * _GRANTS

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._policy = one_choice()
        store(folder, LIVE_TABLE).close()

    def recover(self, cycle: int) -> None:
        broker = self._broker(self._store(self._folder, LIVE_TABLE))
        broker.recover()
        for run in range(max(0, cycle - 2), cycle + 1):
            if not self._sealed(run).exists():
                written(self._sealed(run), [_seal(broker, f"{run}-{place}") for place in range(_GRANTS)])

    def race(self, cycle: int, tell: Callable[[], None]) -> None:
        server = FileServer(self._folder)
        ledger = self._store(self._folder, LIVE_TABLE)
        dispatcher = CountingDispatcher(self._policy.contract, SystemClock(), lambda claimed: took(claimed))

        def took(claimed: Claimed) -> Reply:
            server.take(claimed.run)
            done = {**parse(claimed.permit.arguments), "frame": "f-1", "accepted": True}
            return dispatcher.replied(canonical_bytes({"content": [], "structuredContent": done}))

        broker = self._broker(ledger, dispatcher)
        mine = SystemChance().token(1)[0]
        for run in (cycle - 1, cycle):
            for place, (raw, session) in enumerate(read(self._sealed(run))):
                tell()
                opened = broker.open(raw.encode(), Session(*session))
                if isinstance(opened, Session):
                    broker.propose(opened, choosing(_TARGETS[(mine + place) % 2]))

    def count(self, cycles: int, killed: int) -> Tally:  # noqa: ARG002 - all that there is
        arrived = FileServer(self._folder).arrived()
        return tally(self._store(self._folder, LIVE_TABLE), arrived, killed, State.UNRESOLVED)

    def listen(self) -> None:
        """A file needs nobody."""

    def close(self) -> None:
        """The file goes with its folder."""

    def _broker(self, ledger: Ledger, dispatcher: CountingDispatcher | None = None) -> LiveBroker:
        clock = SystemClock()
        dispatcher = dispatcher or CountingDispatcher(self._policy.contract, clock)
        return counted_broker(self._policy, ledger, dispatcher, clock=clock, chance=SystemChance(), keys=KEYS)

    def _sealed(self, run: int) -> Path:
        return self._folder / f"grants-{run}.json"


def _seal(broker: LiveBroker, name: str) -> tuple[str, Session]:
    """A new grant, and its session."""
    run = f"{name}-{SystemChance().token(4).hex()}"  # its first one may have been sealed by a process that was killed
    sealed = broker.seal(run=run, principal="agent", vm=VM, host=HOST, task="t-1")
    return sealed.data.decode(), broker.session(sealed)


def choosing(target: str) -> bytes:
    """The bytes of a proposal that chooses this."""
    arguments = {"taskId": "t-1", "targetId": target}
    return canonical_bytes({"server": "synthetic-ui", "tool": "click_target", "arguments": arguments})
