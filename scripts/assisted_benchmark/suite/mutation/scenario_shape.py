"""What mutation scenario files may hold: the shape behind the loader and the published JSON Schema."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.contract.shape import (
    DURATION,
    NAME,
    AnyJson,
    ByKey,
    ByKind,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    Word,
    may,
    must,
)
from assisted_benchmark.kernel.reasons import REASONS, Layer, Reason
from assisted_benchmark.mutation.answers import Status
from assisted_benchmark.mutation.checks import CHECKS
from assisted_benchmark.mutation.results import Predicates, TokenState
from assisted_benchmark.mutation.states import State
from assisted_benchmark.suite.case import ADMITTED, Servers
from assisted_benchmark.suite.mutation.faults import USUAL, At, Kind, Mappings, Tampers
from assisted_benchmark.suite.mutation.scenario import ASKED, Asks, Era, Goal, Human, Recall
from assisted_benchmark.suite.strikes import Written
from assisted_benchmark.suite.tables import CLOCK, LINE, REASONS_PAGE, SCORES, TAGS, table
from assisted_benchmark.workloads.fabric_api_faults import Act, FabricFaultKind

MUTATION_SCENARIO: Final = "assisted-benchmark/mutation-scenario@1"

_LAYERS: Final = (Layer.BYTES, Layer.PROPOSAL, Layer.CONFIRMATION, Layer.DISPATCH)
_REASON: Final = Word(
    tuple(
        dict.fromkeys(
            [
                *(reason.value for reason in Reason if REASONS[reason].layer in _LAYERS),
                Reason.ARGUMENTS_NOT_OBJECT.value,
                Reason.STORE_UNAVAILABLE.value,
                *(
                    check.reason.value
                    for phase in (CHECKS.proposal, CHECKS.token, CHECKS.binding, CHECKS.answer, CHECKS.sending)
                    for check in phase
                ),
            ]
        )
    ),
    REASONS_PAGE,
)
_DECISION: Final = Word((ADMITTED, ASKED, *_REASON.words), REASONS_PAGE)
_TURN_NUMBER: Final = Integer(1, 1000)
_FIELD: Final = Text(what="a field's name, or a JSON pointer to it", limit=200)
_CHANGE: Final = Text(what="a change type", limit=100)

_RUN: Final = Record(
    {
        "seed": may(Integer(0), "what the endpoint makes its ids from"),
        "run": may(NAME, "the run's id; else it is made from the case's"),
        "session": may(NAME, "the session (principal) that calls"),
        "clock": CLOCK,
    },
    "a run",
)
_CLIENT: Final = Record(
    {
        "asks": may(Word(tuple(Asks)), "how it can ask a person; usually `form`"),
        "era": may(Word(tuple(Era)), "how the question travels; usually inside the call (`handshake`)"),
    },
    "a client",
)
_STORE: Final = Record(
    {
        "is": may(Word(("durable", "memory")), "`memory` forgets all at a restart; usually `durable`"),
        "capacity": may(Integer(1, 1000), "how many proposals may wait; usually 20"),
        "lives": may(DURATION, "how long a token lives; usually 600s"),
    },
    "a store",
)
_ENDPOINT_FAULT: Final = Record(
    {
        "does": must(Word(tuple(FabricFaultKind)), "what it does wrong"),
        "call": may(Word(tuple(Act)), "only at such requests"),
        "nth": may(_TURN_NUMBER, "only at the n-th of them"),
        "status": may(Integer(400, 599), "the status that it fails with; usually 500"),
    },
    "an endpoint fault",
)
_FAULT_VALUES: Final[dict[Kind, tuple[Shape, str]]] = {
    Kind.ADVANCE: (DURATION, "both clocks go on"),
    Kind.SET_BACK: (DURATION, "the wall clock is set back"),
    Kind.REBOOT: (NAME, "the host starts again under this boot id"),
    Kind.ENDPOINT: (_ENDPOINT_FAULT, "the endpoint misbehaves"),
    Kind.CANCEL: (Word(("call",)), "the client cancels the call"),
    Kind.CRASH: (Word(("broker",)), "the broker dies, and another takes up what it left"),
    Kind.RESTART: (Word(("broker",)), "the broker ends in order, and another takes up what it left"),
    Kind.TAMPER: (Word(tuple(Tampers)), "what of the stored proposal is another"),
    Kind.MAPPING: (Word(tuple(Mappings)), "how requests are made wrongly"),
    Kind.CONTRACT: (Word(("changed",)), "the change contract is another than at the proposal"),
    Kind.LEDGER: (Word(("unavailable",)), "the ledger cannot be reached"),
    Kind.RACE: (Word(("confirm",)), "another confirmation of the same token"),
}
FAULTS: Final = Written(
    kinds=_FAULT_VALUES,
    durations=frozenset({Kind.ADVANCE, Kind.SET_BACK}),
    moments=At,
    usual=USUAL,
    otherwise=At.TURN,
)
_FAULTS: Final = FAULTS.shape()
_HUMAN: Final = Word(tuple(Human))
_OUTCOME: Final = {
    "session": may(NAME, "another session (principal) that calls"),
    "refused": may(_REASON, "the reason it must be refused for"),
    "admitted": may(Flag(), "true: it must be admitted"),
}
_TURN: Final = ByKey(
    {
        "propose": Record(
            {
                "propose": must(_CHANGE, "a change type; its example in the contract is what is proposed"),
                "change": may(MapOf(AnyJson(), key=_FIELD), "fields to set"),
                "leave_out": may(ListOf(_FIELD, 1), "fields to leave out"),
                "spec": may(AnyJson(), "a whole spec, in place of the example"),
                **_OUTCOME,
            },
            "a proposal",
        ),
        "propose_raw": Record({"propose_raw": must(AnyJson(), "raw text, or a JSON value"), **_OUTCOME}, "a proposal"),
        "confirm": Record(
            {
                "confirm": must(Text(what="a token", limit=300), "`last`, `first`, `again`, or a token as it stands"),
                "human": may(_HUMAN, "what this person does"),
                "recall": may(Word(tuple(Recall)), "how the agent comes back with the answer (stateless era)"),
                **_OUTCOME,
            },
            "a confirmation",
        ),
        "confirm_raw": Record(
            {"confirm_raw": must(AnyJson(), "raw text, or a JSON value"), **_OUTCOME}, "a confirmation"
        ),
    }
)
_AGENT: Final = ByKind(
    (
        Word(tuple(Goal)),
        ByKey(
            {
                "plan": Record({"plan": must(_CHANGE, "the change type that it proposes and confirms")}, "an agent"),
                "script": Record({"script": must(ListOf(_TURN, most=1000), "what it calls, in order")}, "an agent"),
            }
        ),
    )
)
_EXPECT: Final = Record(
    {
        "decisions": may(ListOf(_DECISION), "what came of each call, in order"),
        "refused": may(_REASON, "the reason the last call is refused for"),
        "status": may(Word((*Status, "none")), "how the person of the last confirmation was heard"),
        "executed": may(
            ByKind((Flag(), Word(("unknown",)))), "whether the last confirmation says that it was carried out"
        ),
        "token": may(Word((*TokenState, "none")), "what became of the last confirmation's token"),
        "checks": may(
            Record(
                {name: may(Word(("passed", "failed", "not_asked")), "the check") for name in Predicates._fields},
                "checks",
            ),
            "what the last confirmation reports of its token",
        ),
        "price": may(Word(("priced", "unpriced")), "what the last proposal says of the price"),
        "late_cancel": may(Flag(), "whether the last confirmation says that a cancel came after the send"),
        "dry": may(Integer(0), "how many dry runs reached the endpoint"),
        "real": may(Integer(0), "how many creates reached the endpoint"),
        "created": may(MapOf(Integer(0)), "how many things of each kind are there in the end; of the others none"),
        "ends": may(Word((*State, "none")), "the state of the last proposal that was taken in"),
        "scores": SCORES,
    },
    "an expectation",
)
_SHARED: Final = {
    "run": may(_RUN, "the session, the seed and the clock"),
    "client": may(_CLIENT, "what the agent's client can do"),
    "human": may(_HUMAN, "what comes back when a person is asked; usually `accept`"),
    "allow_unconfirmed": may(
        Text(what="a word", limit=40), "the operator's word for clients that cannot ask; only `true` lets them through"
    ),
    "store": may(_STORE, "where proposals wait"),
    "faults": may(_FAULTS, "what goes wrong"),
    "expect": may(_EXPECT, "what it must come to"),
}
_OVERRIDE: Final = Record(
    {"because": may(LINE, "why this case exists"), "agent": may(_AGENT, "another agent"), **_SHARED}, "a case"
)

MUTATION_SHAPE: Final = Record(
    {
        "schema": must(Word((MUTATION_SCENARIO,)), "the kind of file"),
        "id": must(NAME, "the scenario's id: its cases are <folder>/<id>/<case>, as in mutation/<id>/<case>"),
        "because": may(LINE, "why this scenario exists, in one line"),
        "changes": must(NAME, "the change contract's id; it is found in contracts/"),
        "agent": must(_AGENT, "who proposes and confirms"),
        "goal": may(_CHANGE, "the change type whose example is to be there in the end; a plan's own, if it has one"),
        "servers": may(Word(tuple(Servers)), "a model of the endpoint in this process, or its process over HTTP"),
        "tags": TAGS,
        **_SHARED,
        **table(_OVERRIDE),
    },
    "a mutation scenario",
)
