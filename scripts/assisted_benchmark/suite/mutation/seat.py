"""What one mutation case is played with: its broker, its store, its clocks, its endpoint, and the spoilers of each."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, evolve, field

from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.mutation.broker import ALLOW_UNCONFIRMED, MutationBroker, allows_unconfirmed
from assisted_benchmark.mutation.changes import ChangeContract, ChangeType
from assisted_benchmark.mutation.compiler import Compiled, compile_change, request_digest
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.proposal import Session, group_key
from assisted_benchmark.mutation.store import Found, ProposalStore
from assisted_benchmark.suite.instruments import CaseChance, CaseClock, CutOff
from assisted_benchmark.suite.mutation.faults import Mappings, Tampers
from assisted_benchmark.suite.mutation.scenario import MutationCase
from assisted_benchmark.suite.mutation.world import World


class CaseStore(ProposalStore):
    """A store that can come to give back another proposal than it took in."""

    tampered: Tampers | None = None

    def find(self, token: str) -> Found | None:
        found = super().find(token)
        if found is None or self.tampered is None:
            return found
        proposal = found.proposal
        match self.tampered:
            case Tampers.SPEC:
                proposal = evolve(proposal, spec=Canonical.of({**proposal.spec.value, "name": "another-name"}))
            case Tampers.CHANGE:
                proposal = evolve(proposal, change="no-such-change")
            case Tampers.BOUND:
                proposal = evolve(proposal, bound=Digest("sha256:" + "0" * 64))
        return found._replace(proposal=proposal)


class CaseCompiler:
    """The broker's compiler, which can come to make other requests."""

    def __init__(self, clock: CaseClock) -> None:
        self.wrong: Mappings | None = None
        self._clock = clock

    def __call__(self, change: ChangeType, spec: Json) -> Compiled:
        compiled = compile_change(change, spec)
        if self.wrong is None:
            return compiled
        named = "another-name"
        if self.wrong is Mappings.TIMED:
            named = f"made-at-{self._clock.now().wall_ns // SECOND}"
        body = canonical_bytes({**Canonical(compiled.body).value, "name": named})
        lying = self.wrong is Mappings.LYING
        return compiled._replace(body=body, digest=compiled.digest if lying else request_digest(change.name, body))


@define
class Seat:
    """Everything around one case. `ledgers` are all that it used: one, unless a store in memory was started anew."""

    case: MutationCase
    run: str
    ledger: CutOff
    clock: CaseClock
    chance: CaseChance
    keys: KeyRing
    world: World
    new_ledger: Callable[[], Ledger]
    on_moment: Callable[[Moment], None]
    cancelled: bool = False
    contract: ChangeContract = field(init=False)
    compiler: CaseCompiler = field(init=False)
    store: CaseStore = field(init=False)
    broker: MutationBroker = field(init=False)
    ledgers: list[Ledger] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.contract = self.case.contract
        self.compiler = CaseCompiler(self.clock)
        self.ledgers = [self.ledger.inner]
        self.start()

    def start(self) -> None:
        """A broker takes up what is there. A store in memory has forgotten everything."""
        self.store = self._store()
        self.broker = self.another_broker(self.on_moment)

    def start_again(self) -> None:
        """The broker's process is another one."""
        if not self.case.store.durable:
            self.ledger.inner = self.new_ledger()
            self.ledgers.append(self.ledger.inner)
        self.start()
        self.broker.recover()

    def another_broker(self, on_moment: Callable[[Moment], None] = lambda _: None) -> MutationBroker:
        """One more broker over the same store and endpoint."""
        word = self.case.allow_unconfirmed
        return MutationBroker(
            contract=self.contract,
            endpoint=self.world.endpoint,
            store=self.store,
            allow_unconfirmed=allows_unconfirmed({} if word is None else {ALLOW_UNCONFIRMED: word}),
            compiler=self.compiler,
            on_moment=on_moment,
        )

    def session(self, principal: str) -> Session:
        """The session of the case, or another principal's in its run."""
        return Session(self.run, principal or self.case.run.session)

    def is_cancelled(self) -> bool:
        """Whether the call in flight was cancelled."""
        return self.cancelled

    def state_of(self, token: str) -> str:
        """The state that the ledger has of a token's proposal; empty if it has none."""
        key = group_key(token)
        row = None if key is None else self.ledger.inner.row(key)
        return "" if row is None else row.state

    def lives(self) -> list[Ledger]:
        """The ledgers that the run came to be in."""
        return [each for each in self.ledgers if each.run_record(self.run) is not None]

    def _store(self) -> CaseStore:
        said = self.case.store
        return CaseStore(
            ledger=self.ledger,
            clock=self.clock,
            chance=self.chance,
            keys=self.keys,
            capacity=said.capacity,
            ttl_ns=said.ttl_ns,
        )
