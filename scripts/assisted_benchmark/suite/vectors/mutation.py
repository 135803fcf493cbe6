"""Vectors of the mutation broker: one proposal or one confirmation each; and their player.

A confirmation names the proposal as the ledger keeps it. Where a person is asked, the client's raw answer (or the kind
of its silence) comes at `answered_at`. The broker itself answers; the endpoint takes everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Draft
from assisted_benchmark.mutation.answers import Silence
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes_document import contract_of
from assisted_benchmark.mutation.counting import CountingEndpoint
from assisted_benchmark.mutation.proposal import Session, group_key
from assisted_benchmark.mutation.results import Confirmed, NeedsAnswer, Proposed, Refusal
from assisted_benchmark.mutation.states import MUTATION_TABLE, State
from assisted_benchmark.mutation.store import ProposalStore
from assisted_benchmark.suite.vectors.clocks import NoChance, StandingClock
from assisted_benchmark.suite.vectors.vector import bytes_of

_KEYS: Final = KeyRing("vectors", bytes(32))
_CLAIMED: Final = frozenset({State.DISPATCHING, State.SUCCEEDED, State.FAILED, State.UNRESOLVED})


def play(given: Json, shared: Mapping[str, Json]) -> Json:
    """What the broker answers: its code, and what it sent or would send."""
    clock = StandingClock(given["now"])
    ledger = MemoryLedger("vectors", MUTATION_TABLE)
    endpoint = CountingEndpoint(clock)
    broker = MutationBroker(
        contract=contract_of(shared["contracts"][given["contract"]]),
        endpoint=endpoint,
        store=ProposalStore(ledger=ledger, clock=clock, chance=NoChance(), keys=_KEYS),
        allow_unconfirmed=given["allow_unconfirmed"],
    )
    session, raw = Session(**given["session"]), bytes_of(given["arguments"])
    if given["call"] == "propose":
        return _proposed(broker.propose(session, raw), endpoint)
    _fill(ledger, given["proposals"])
    came = broker.begin(session, raw, given["can_ask"])
    if isinstance(came, NeedsAnswer):
        if "answer" not in given:
            return {"code": "asked", "shown": came.shown}
        clock.stand(given["answered_at"])
        said = given["answer"]
        came = broker.resume(session, raw, came.state, Silence(said["silence"]) if "silence" in said else said["value"])
    return _confirmed(came, endpoint)


def _proposed(came: Proposed | Refusal, endpoint: CountingEndpoint) -> Json:
    dry = [each for each in endpoint.asks if each.method == "POST"][:1]
    told = [{"method": each.method, "target": each.target, "body": each.body.decode()} for each in dry]
    if isinstance(came, Proposed):
        return {"code": "admitted", "dry_run": told, "request": came.request, "problems": []}
    return {
        "code": came.reason.value,
        "dry_run": told,
        "request": None,
        "problems": sorted({each.path for each in came.problems}),
    }


def _confirmed(came: Confirmed | Refusal, endpoint: CountingEndpoint) -> Json:
    reason = None if came.reason is None else came.reason.value
    sent = [{"method": each.method, "target": each.target, "body": each.body.decode()} for each in endpoint.creates]
    checks = came.predicates._asdict()
    return {"code": reason or "admitted", "sent": sent, "request": came.request, "confirm_checks": checks}


def _fill(ledger: MemoryLedger, proposals: Json) -> None:
    """The ledger with these proposals in their states."""
    for each in proposals:
        key = group_key(each["token"]) or b""
        run = each["run"]
        ledger.open_run(run, b"{}", ())
        draft = Draft("event", "0" * 32, Instant(0, 0), "admitted")
        ledger.open_group(run, key, each["record"].encode(), draft)
        _bring(ledger, key, run, State(each["state"]))


def _bring(ledger: MemoryLedger, key: bytes, run: str, state: State) -> None:
    """Let a sealed proposal come to a state by edges that need no claim; none of the others is asked about here."""
    draft = Draft("event", "0" * 32, Instant(0, 0), "admitted")
    if state in (State.CONFIRMING, State.REFUSED) or state in _CLAIMED:
        ledger.move(key, run, State.SEALED, State.CONFIRMING, draft)
    if state in _CLAIMED:
        return  # a token that was used is used, whatever came of it
    if state not in (State.SEALED, State.CONFIRMING):
        before = State.CONFIRMING if state is State.REFUSED else State.SEALED
        ledger.move(key, run, before, state, draft)
