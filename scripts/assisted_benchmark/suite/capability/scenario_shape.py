"""What capability scenario files may hold: the shape behind the loader and the published JSON Schema."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.capability.admission import EARLY, LATE
from assisted_benchmark.capability.states import ACTIVE, State
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
from assisted_benchmark.suite.capability.faults import USUAL, At, Dies, Kind, Others
from assisted_benchmark.suite.capability.scenario import GOOD, Goal, Person
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.strikes import Written
from assisted_benchmark.suite.tables import CLOCK, LINE, REASONS_PAGE, SCORES, TAGS, table
from assisted_benchmark.workloads.plugin_host_faults import HostFaultKind, Step

CAPABILITY_SCENARIO: Final = "assisted-benchmark/capability-scenario@1"

_LAYERS: Final = (Layer.BYTES, Layer.CAPABILITY, Layer.CONSENT, Layer.OPERATION, Layer.DISPATCH)
_REASON: Final = Word(
    tuple(
        dict.fromkeys(
            [
                *(reason.value for reason in Reason if REASONS[reason].layer in _LAYERS),
                *(check.reason.value for check in EARLY),
                *(check.reason.value for check in LATE),
                Reason.ARGUMENTS_NOT_OBJECT.value,
                Reason.ILLEGAL_TRANSITION.value,
                Reason.MALFORMED_FRAME.value,
                Reason.PROTOCOL_MISMATCH.value,
                Reason.DUPLICATE_REQUEST_ID.value,
            ]
        )
    ),
    REASONS_PAGE,
)
_DECISION: Final = Word((*GOOD, *_REASON.words), REASONS_PAGE)
_OPERATION: Final = Text(what="an operation, such as `state/read`", limit=200)
_ID: Final = Text(what="an id", limit=300)
_REFERENCE: Final = Record(
    {"from": must(_ID, "what an earlier answer gave, such as `result.stream_id`")}, "a reference"
)
_INPUT: Final = Record({}, "an operation's input", open=True)

_RUN: Final = Record(
    {
        "seed": may(Integer(0), "what the host makes its instances from"),
        "run": may(NAME, "the run's id; else it is made from the case's"),
        "client": may(NAME, "the client that calls"),
        "clock": CLOCK,
    },
    "a run",
)
_HOST_FAULT: Final = Record(
    {
        "does": must(Word(tuple(HostFaultKind)), "what it does wrong, or what changes there"),
        "step": may(Word(tuple(Step)), "only at this step; usually `request`"),
        "operation": may(_OPERATION, "only at requests of this operation; or the one that changes"),
        "instance": may(NAME, "only at this instance; or the one that changes, usually `instance-1`"),
        "nth": may(Integer(1, 1000), "only at the n-th of them"),
    },
    "a host fault",
)
_FAULT_VALUES: Final[dict[Kind, tuple[Shape, str]]] = {
    Kind.ADVANCE: (DURATION, "both clocks go on"),
    Kind.SET_BACK: (DURATION, "the wall clock is set back"),
    Kind.HOST: (_HOST_FAULT, "the host misbehaves, or what lives there changes"),
    Kind.CRASH: (Word(tuple(Dies)), "the broker dies, and another takes up what it left; or the host dies"),
    Kind.RESTART: (Word(tuple(Dies)), "the broker ends in order, and another follows; or the host starts again"),
    Kind.RIVAL: (Word(("broker",)), "another broker takes up the run while this one is at work"),
    Kind.CANCEL: (Word(("call",)), "the client cancels the call"),
    Kind.REVOKE: (Word(("grant",)), "the client revokes the grant that the call goes by"),
    Kind.RACE: (Word(("call",)), "the same call comes once more at the same time"),
    Kind.ENROLLED: (Word(tuple(Others)), "the host's service gives the session of somebody else"),
    Kind.LEDGER: (Word(("unavailable", "available")), "the ledger cannot be reached, or can again"),
}
FAULTS: Final = Written(
    kinds=_FAULT_VALUES,
    durations=frozenset({Kind.ADVANCE, Kind.SET_BACK}),
    moments=At,
    usual=USUAL,
    otherwise=At.TURN,
)
_FAULTS: Final = FAULTS.shape()
_PERSON: Final = Word(tuple(Person))
_OF_TURN: Final = {
    "client": may(NAME, "another client that calls"),
    "run": may(NAME, "another run that the client's session is of"),
    "person": may(_PERSON, "what the broker's person does when this call has a question"),
    "wait": may(DURATION, "the time that goes by before the call"),
    "comes_to": may(_DECISION, "the word that it must come to"),
}
_INSTANCE: Final = may(NAME, "the instance; usually `instance-1`")
_TURN: Final = ByKey(
    {
        "call": Record(
            {
                "call": must(_OPERATION, "the operation"),
                "input": may(_INPUT, "its input; usually {}"),
                "instance": _INSTANCE,
                "grant": may(_ID, "the grant: `last`, `first`, or an id as it stands"),
                "profile": may(NAME, "the profile that a grant may be got for"),
                "request": may(_ID, "the request's id"),
                "generation": may(ByKind((Integer(0), _REFERENCE)), "the state generation that is expected"),
                "timeout_ms": may(Integer(0), "the call's whole time"),
                "replayed": may(Flag(), "true: it must be answered with the receipt of an earlier call"),
                **_OF_TURN,
            },
            "a call of an operation",
        ),
        "request_grant": Record(
            {"request_grant": must(_OPERATION, "a profile, or an operation"), "instance": _INSTANCE, **_OF_TURN},
            "a request for a grant",
        ),
        "revoke": Record({"revoke": must(_ID, "a grant: `last`, `first`, or an id"), **_OF_TURN}, "a revocation"),
        "cancel": Record({"cancel": must(_ID, "a request's id"), "instance": _INSTANCE, **_OF_TURN}, "a cancellation"),
        "status": Record({"status": must(NAME, "an instance"), **_OF_TURN}, "a question for an instance"),
        "instances": Record({"instances": must(Word(("all",)), "all of them"), **_OF_TURN}, "a question for instances"),
        "read": Record(
            {
                "read": must(_ID, "`instance`, `artifact` (the last one), or an address as it stands"),
                "instance": _INSTANCE,
                **_OF_TURN,
            },
            "a read of a resource",
        ),
        "tool": Record(
            {
                "tool": must(_ID, "a tool's name"),
                "arguments": must(AnyJson(), "raw text, or a JSON value"),
                **_OF_TURN,
            },
            "a call as it stands",
        ),
    }
)
_WANTED: Final = {
    "input": may(_INPUT, "its input; usually {}"),
}
_AGENT: Final = ByKind(
    (
        Word(tuple(Goal)),
        ByKey(
            {
                "plan": Record({"plan": must(_OPERATION, "the operation that it calls"), **_WANTED}, "an agent"),
                "script": Record({"script": must(ListOf(_TURN, most=1000), "what it calls, in order")}, "an agent"),
            }
        ),
    )
)
_STEPS: Final = Record(
    {name: may(Integer(0), "how often it came") for name in ("enrol", "inventory", "negotiate", "cancel")}, "steps"
)
_EXPECT: Final = Record(
    {
        "decisions": may(ListOf(_DECISION), "what came of each call, in order"),
        "refused": may(_REASON, "the reason that the last call comes to"),
        "states": may(
            ListOf(Word(tuple(state for state in State if state not in ACTIVE))),
            "how the admitted operations ended, in the order of their admission",
        ),
        "executed": may(
            MapOf(Integer(0), key=_OPERATION), "how often each operation was executed at the host; the others never"
        ),
        "result": may(_INPUT, "fields of the last operation's result"),
        "progress": may(Integer(0), "how many events of progress the last operation's answer has"),
        "artifacts": may(Integer(0), "how many artifacts the last operation's answer has"),
        "may_have_applied": may(Flag(), "whether the last operation's answer says that it may have been done"),
        "asked": may(Integer(0), "how often the broker's person was asked"),
        "generation": may(Integer(0), "the state generation of `instance-1` in the end"),
        "steps": may(_STEPS, "what else the host was asked for"),
        "scores": SCORES,
    },
    "an expectation",
)
_SHARED: Final = {
    "run": may(_RUN, "the client, the seed and the clock"),
    "eligible": may(ListOf(_OPERATION), "the operations of the operator's policy; usually all"),
    "person": may(_PERSON, "what the broker's person does with a question; usually `approve`"),
    "standing": may(ListOf(_OPERATION), "the profiles and operations that the user consents to without being asked"),
    "faults": may(_FAULTS, "what goes wrong"),
    "expect": may(_EXPECT, "what it must come to"),
}
_OVERRIDE: Final = Record(
    {"because": may(LINE, "why this case exists"), "agent": may(_AGENT, "another agent"), **_SHARED}, "a case"
)

CAPABILITY_SHAPE: Final = Record(
    {
        "schema": must(Word((CAPABILITY_SCENARIO,)), "the kind of file"),
        "id": must(NAME, "the scenario's id: its cases are <folder>/<id>/<case>, as in capability/<id>/<case>"),
        "because": may(LINE, "why this scenario exists, in one line"),
        "registry": must(NAME, "the registry's id; it is found in contracts/"),
        "agent": must(_AGENT, "who calls"),
        "goal": may(
            Record({"call": must(_OPERATION, "the operation"), **_WANTED}, "a goal"),
            "what is to be executed, once; a plan's own call, if it has one",
        ),
        "servers": may(Word(tuple(Servers)), "a model of the host in this process, or its process over a socket"),
        "tags": TAGS,
        **_SHARED,
        **table(_OVERRIDE),
    },
    "a capability scenario",
)
