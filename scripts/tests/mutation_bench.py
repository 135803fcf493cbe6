"""Builders for mutation tests: contracts, specs, and a broker with its world."""

import json
from pathlib import Path

from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.receipts import verify
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes_document import contract_of, load_changes
from assisted_benchmark.mutation.checks import CHECKS
from assisted_benchmark.mutation.compiler import compile_change
from assisted_benchmark.mutation.counting import CountingEndpoint
from assisted_benchmark.mutation.moments import Moment
from assisted_benchmark.mutation.proposal import Session, group_key
from assisted_benchmark.mutation.results import NeedsAnswer, told
from assisted_benchmark.mutation.states import MUTATION_TABLE, State
from assisted_benchmark.mutation.store import ProposalStore

ROOT = Path(__file__).resolve().parents[2]
FABRIC = load_changes(ROOT / "contracts" / "fabric.changes.yaml", ROOT)
KEYS = KeyRing("k1", b"k" * 32)
AGENT = Session("run-1", "agent")
TTL = 600 * SECOND
ACCEPT = {"action": "accept", "content": {"confirm": True}}
DECLINE = {"action": "decline"}

PRICED = {
    "data": [
        {
            "currency": "USD",
            "charges": [{"type": "MONTHLY_RECURRING", "price": 350.5}, {"type": "NON_RECURRING", "price": 0}],
        }
    ]
}

# Another product: other words, another shape of error, fields that become something else.
ORCHARD_VALUE = {
    "schema": "assisted-benchmark/changes@1",
    "id": "orchard",
    "endpoint": "the orchard's office",
    "dry_run": "validate=only",
    "errors": {"code": "kind", "message": "text"},
    "changes": {
        "plant": {
            "title": "Plant a tree",
            "path": "/trees",
            "accepts": {"dry_run": "2xx", "create": [202]},
            "fields": {
                "type": "object",
                "additionalProperties": False,
                "required": ["species", "count"],
                "properties": {
                    "species": {"type": "string", "maxLength": 4000},
                    "count": {"type": "integer", "minimum": 1},
                    "weight": {"type": "number"},
                    "gate": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {"pin": {"type": "string", "maxLength": 8}},
                    },
                    "labels": {
                        "type": "object",
                        "maxProperties": 3,
                        "propertyNames": {"maxLength": 4000},
                        "additionalProperties": {"type": "string", "maxLength": 20},
                    },
                },
            },
            "body": {
                "what": {"kind": "tree", "species": {"from": "species"}},
                "count": {"text_of": "count"},
                "weight": {"from": "weight"},
                "gate": {"from": "gate"},
                "labels": {"from": "labels"},
            },
            "prompt": ["what", "count", "weight", "gate", "labels"],
            "sensitive": ["/gate/pin"],
            "unpriced": "trees grow for nothing",
            "example": {"species": "pear", "count": 2},
        }
    },
}
ORCHARD = contract_of(ORCHARD_VALUE)


def spec_of(change="connection", contract=FABRIC, **more):
    """The example of a change type, with these fields replaced; None takes one out."""
    spec = {**contract.change(change).example.value, **more}
    return {key: value for key, value in spec.items() if value is not None}


def proposing(change="connection", spec=None, **more):
    """The bytes of a propose call."""
    return json.dumps({"change_type": change, "spec": spec_of(change) if spec is None else spec, **more}).encode()


def confirming(token, **more):
    """The bytes of a confirm call."""
    return json.dumps({"token": token, **more}).encode()


def errors(*codes, **more):
    """A Fabric error's body."""
    return json.dumps([{"errorCode": code, "errorMessage": f"about {code}", **more} for code in codes]).encode()


def drifting(change, spec):
    """A mapping that has come to compile another body."""
    compiled = compile_change(change, spec)
    return compile_change(change, {**spec, "bandwidth": spec["bandwidth"] + 1}) if "bandwidth" in spec else compiled


# Where it dies: the state after the restart, and how many creates were written until then.
DEATHS = {
    Moment.CONSUME: (State.SEALED, 0),
    Moment.CONSUMED: (State.REFUSED, 0),
    Moment.ASK: (State.REFUSED, 0),
    Moment.ANSWERED: (State.REFUSED, 0),
    Moment.CLAIM: (State.REFUSED, 0),
    Moment.CLAIMED: (State.UNRESOLVED, 0),
    Moment.WRITE: (State.UNRESOLVED, 0),
    Moment.ANSWER: (State.UNRESOLVED, 1),
    Moment.SETTLE: (State.UNRESOLVED, 1),
}


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
        if self.down or name in self.broken:
            raise LedgerError(Reason.STORE_UNAVAILABLE, "the ledger cannot be reached")
        return getattr(self._inner, name)


def a_sqlite_ledger(folder, *, opened=False):
    """A durable ledger of proposals; `opened` opens the one that is there."""
    given = {"table": MUTATION_TABLE, "keys": KEYS, "anchor": folder / "anchor"}
    if opened:
        return SqliteLedger.open(folder / "ledger.db", **given)
    return SqliteLedger.create(folder / "ledger.db", ledger_id="ledger-1", **given)


class MutationBench:
    """One broker with its world. `at(moment, act)` lets `act` strike when the broker reaches that moment."""

    def __init__(
        self,
        contract=FABRIC,
        *,
        ledger=None,
        clock=None,
        endpoint=None,
        capacity=20,
        seed="bench",
        checks=CHECKS,
        **more,
    ):
        self.contract = contract
        self.clock = clock or ManualClock()
        self.ledger = CutOff(ledger or MemoryLedger("ledger-1", MUTATION_TABLE))
        self.endpoint = endpoint or CountingEndpoint(self.clock, asked=self._asked)
        self.strikes = {}
        self.moments = []
        self.store = ProposalStore(
            ledger=self.ledger, clock=self.clock, chance=SeededChance(seed), keys=KEYS, capacity=capacity
        )
        self.checks = checks
        self.broker = self.a_broker(**more)

    def a_broker(self, **changed):
        """Another broker over the same store and world."""
        given = {
            "contract": self.contract,
            "endpoint": self.endpoint,
            "store": self.store,
            "checks": self.checks,
            "on_moment": self._reached,
            **changed,
        }
        return MutationBroker(**given)

    def _asked(self, request):
        if request.target.endswith("/prices/search"):
            return self.endpoint.replied(200, json.dumps(PRICED).encode())
        return self.endpoint.replied(200, request.body or b"{}")

    def at(self, moment, act):
        self.strikes[moment] = act

    def _reached(self, moment):
        self.moments.append(moment)
        act = self.strikes.pop(moment, None)
        if act is not None:
            act()

    def propose(self, change=None, spec=None, session=AGENT, **more):
        """Propose the example of the contract's first change type, or what is given."""
        change = change or self.contract.changes[0].name
        spec = spec_of(change, self.contract, **more) if spec is None else spec
        return self.broker.propose(session, proposing(change, spec))

    def token(self, *given, **more):
        return self.propose(*given, **more).token

    def begin(self, token, session=AGENT, *, can_ask=True, cancelled=lambda: False):
        return self.broker.begin(session, confirming(token), can_ask, cancelled)

    def resume(self, token, asked, answer=ACCEPT, session=AGENT, *, cancelled=lambda: False):
        return self.broker.resume(session, confirming(token), asked.state, answer, cancelled)

    def confirm(self, token, answer=ACCEPT, session=AGENT, **more):
        """Both legs; the first one's answer, if nobody is asked."""
        asked = self.begin(token, session, **more)
        return self.resume(token, asked, answer, session) if isinstance(asked, NeedsAnswer) else asked

    def told(self, answer):
        return told(answer, self.contract.id)

    @property
    def creates(self):
        return len(self.endpoint.creates)

    def state(self, token):
        return self.ledger.row(group_key(token)).state

    def receipts(self, run="run-1"):
        """The run's receipts, which verify."""
        lines = list(self.ledger.receipts(run))
        head = self.ledger.head(run)
        assert verify(lines, run=run, ledger_id="ledger-1", head=head, table=MUTATION_TABLE).findings == ()
        return [json.loads(line) for line in lines]

    def written(self, run="run-1"):
        """What the receipts say, as (kind, reason, state)."""
        return [(each["kind"], each["reason"], each["state"]) for each in self.receipts(run)]
