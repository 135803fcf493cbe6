"""What scenario and candidates files may hold: the shapes behind the loader and the published JSON Schemas."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.contract.shape import (
    DIGEST,
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
from assisted_benchmark.kernel.reasons import LIVE_ORDER
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.suite.case import ADMITTED, Servers
from assisted_benchmark.suite.live.faults import USUAL, At, Edits, Kind
from assisted_benchmark.suite.live.generated import MOST, SO_MANY, Maker
from assisted_benchmark.suite.live.scenario import RECORDED, Reveal, Sanity, Visibility
from assisted_benchmark.suite.live.transcripts.spelling import AT
from assisted_benchmark.suite.strikes import Written
from assisted_benchmark.suite.tables import CLOCK, LINE, REASONS_PAGE, SCORES, TAGS, table
from assisted_benchmark.workloads.drifts import Drift
from assisted_benchmark.workloads.faults import FaultKind

SCENARIO: Final = "assisted-benchmark/scenario@1"
CANDIDATES: Final = "assisted-benchmark/candidates@1"

_REASON: Final = Word(tuple(reason.value for reason in LIVE_ORDER), REASONS_PAGE)
_DECISION: Final = Word((ADMITTED, *_REASON.words), REASONS_PAGE)
_STEP: Final = Integer(1, 1000)

_RUN: Final = Record(
    {
        "task": may(NAME, "the task of this run; policies refer to it as {from: run.task}"),
        "seed": may(Integer(0), "what the workload makes its scene from"),
        "run": may(NAME, "the run's id; else it is made from the case's"),
        "vm": may(NAME, "the VM that the grant is for"),
        "session": may(NAME, "the session (principal) that the grant is for"),
        "host": may(NAME, "a name for the machine, from which its identity is made"),
        "clock": CLOCK,
    },
    "a run",
)

_SERVER_FAULT: Final = Record(
    {
        "id": must(NAME, "the server's id in the contract"),
        "does": must(Word(tuple(FaultKind)), "what it does wrong"),
        "tool": may(NAME, "only at calls of this tool"),
        "nth": may(_STEP, "only at the n-th such call"),
        "how": may(Word(tuple(Drift)), "of `drift_tools`: what of the list is another; usually the description"),
    },
    "a server fault",
)
_SETTING: Final = Record(
    {key: may(NAME, f"the {key} that the harness's session is of") for key in ("run", "vm", "host", "session")},
    "a setting",
)
_FAULT_VALUES: Final[dict[Kind, tuple[Shape, str]]] = {
    Kind.ADVANCE: (DURATION, "both clocks go on"),
    Kind.SET_BACK: (DURATION, "the wall clock is set back"),
    Kind.REBOOT: (NAME, "the host starts again under this boot id"),
    Kind.SERVER: (_SERVER_FAULT, "a server misbehaves"),
    Kind.KILL: (NAME, "this server dies"),
    Kind.SUBSTITUTE: (NAME, "another program stands where this server was"),
    Kind.CRASH: (Word(("broker",)), "the broker dies and is opened again on the same ledger"),
    Kind.CANCEL: (Word(("run",)), "the run is aborted"),
    Kind.RACE: (NAME, "another selection of this candidate comes first"),
    Kind.REVOKE: (Word(("grant",)), "the operator revokes the grant"),
    Kind.TEARDOWN: (Word(("run",)), "the run is torn down"),
    Kind.RECONCILE: (Word(("operator", "agent")), "who records what came of the unresolved call"),
    Kind.SETTING: (_SETTING, "the proposal comes under another binding"),
    Kind.GRANT: (Word(tuple(Edits)), "the grant is edited before it is opened"),
    Kind.POLICY: (Word(("changed",)), "the policy is changed after it was pinned"),
    Kind.CONTRACT: (Word(("changed",)), "the contract is changed after it was pinned"),
    Kind.STORE: (Word(("unavailable",)), "the ledger cannot be reached"),
}
FAULTS: Final = Written(
    kinds=_FAULT_VALUES,
    durations=frozenset({Kind.ADVANCE, Kind.SET_BACK}),
    moments=At,
    usual=USUAL,
    otherwise=At.PROPOSE,
    needs_grant=frozenset(
        {
            Kind.CANCEL,
            Kind.RACE,
            Kind.REVOKE,
            Kind.TEARDOWN,
            Kind.RECONCILE,
            Kind.SETTING,
            Kind.GRANT,
            Kind.STORE,
        }
    ),
)
_FAULTS: Final = FAULTS.shape()

_ARGUMENTS: Final = MapOf(AnyJson(), key=Text(what="an argument's name", limit=200))
CHANGES: Final = {
    "choose": may(NAME, "this candidate in place of the agent's own"),
    "change": may(_ARGUMENTS, "arguments to set"),
    "leave_out": may(ListOf(Text(what="an argument's name", limit=200), 1), "arguments to leave out"),
    "server": may(Text(what="a server's name", limit=300), "another server"),
    "tool": may(Text(what="a tool's name", limit=300), "another tool"),
    "effect": may(Text(limit=100), "the effect that the agent names"),
    "grant": may(Text(limit=100), "the grant that the agent names"),
    "group": may(Text(limit=100), "the group that the agent names"),
}
_OUTCOME: Final = {
    "refused": may(_REASON, "the reason it must be refused for"),
    "admitted": may(Flag(), "true: it must be admitted"),
}
_CALL: Final = Record(
    {
        "server": must(Text(what="a server's name", limit=300), "the server"),
        "tool": must(Text(what="a tool's name", limit=300), "the tool"),
        "arguments": must(AnyJson(), "the arguments"),
    },
    "a call",
)
_ANYTHING: Final = AnyJson()
_MADE: Final = {
    "at": may(Text(AT, "a time such as `1.250s`", 16), "when it is made, after the beginning; else at once"),
    **_OUTCOME,
}
_TURN: Final = ByKey(
    {
        "call": Record({"call": must(_CALL, "a whole call"), **_MADE}, "a turn"),
        "propose": Record({"propose": must(_ANYTHING, "raw text, or a JSON value"), **_MADE}, "a turn"),
        "step": Record({"step": must(_STEP, "the plan's step, from 1"), **CHANGES, **_MADE}, "a turn"),
    }
)
_GENERATED: Final = Record(
    {
        "seed": may(Integer(0), "what the proposals are made from; 0 unless said"),
        "proposals": may(Integer(1, MOST), f"how many it makes; {SO_MANY} unless said"),
        "kind": may(Word(tuple(Maker)), "without order, or along the plan with mistakes; random unless said"),
    },
    "a generated agent",
)
_AGENT: Final = ByKind(
    (
        Word(("plan", *(sanity.value for sanity in Sanity))),
        ByKey(
            {
                "plan": Record({"plan": must(NAME, "the candidate it chooses")}, "an agent"),
                "script": Record({"script": must(ListOf(_TURN, most=1000), "what it proposes, in order")}, "an agent"),
                "transcript": Record(
                    {
                        "transcript": must(
                            Text(limit=1024), "a file beside the scenario or below, whose calls are made in order"
                        ),
                        "sample": may(Text(limit=300), "which sample of an Inspect log that has several"),
                    },
                    "an agent",
                ),
                "command": Record(
                    {
                        "command": must(ListOf(Text(limit=4096), 1), "the program and its arguments"),
                        "environment": may(ListOf(NAME), "variables that it gets of the harness's own environment"),
                        "within": may(DURATION, "how long it may take; 60s unless said"),
                    },
                    "an agent",
                ),
                "generated": Record(
                    {"generated": must(_GENERATED, "it makes its proposals out of a seed")}, "an agent"
                ),
            }
        ),
    )
)
_PROPOSAL: Final = Record(
    {
        "because": may(LINE, "why this case exists"),
        "propose": may(_ANYTHING, "raw text, or a JSON value, in place of the agent's call"),
        "at": may(_STEP, "the step it is tried at, from 1; usually the choice"),
        "step": may(_STEP, "the call of this other step, from 1"),
        "after": may(NAME, "a candidate that is dispatched first"),
        "faults": may(_FAULTS, "faults of this case, in place of the scenario's"),
        **CHANGES,
        **_OUTCOME,
    },
    "a proposal",
)
_PROPOSALS: Final = MapOf(_PROPOSAL)
_OPERATOR: Final = Word((RECORDED, State.SUCCEEDED, State.UNRESOLVED, *_REASON.words), REASONS_PAGE)
_EXPECT: Final = Record(
    {
        "decisions": may(ListOf(_DECISION), "what came of each proposal, in order"),
        "refused": may(_REASON, "the reason the last proposal is refused for; it causes no send"),
        "calls": may(MapOf(Integer(0)), "how many calls reached each server; the others none"),
        "ends": may(Word(tuple(State)), "the state of the plan's last group"),
        "oracle": may(NAME, "the state that the oracle saw"),
        "operator": may(ListOf(_OPERATOR), "what came of each teardown and reconciliation, in order"),
        "receipts": may(DIGEST, "the digest over the receipts, where it is run as it was recorded: under seed 0"),
        "scores": SCORES,
    },
    "an expectation",
)
_OVERRIDE: Final = Record(
    {
        "run": may(_RUN, "keys of the run that differ"),
        "agent": may(_AGENT, "another agent"),
        "faults": may(_FAULTS, "other faults"),
        "expect": may(_EXPECT, "keys of the expectation that differ"),
    },
    "a case",
)

SCENARIO_SHAPE: Final = Record(
    {
        "schema": must(Word((SCENARIO,)), "the kind of file"),
        "id": must(NAME, "the scenario's id: its cases are <folder>/<id>/<case>, as in live/<id>/<case>"),
        "because": may(LINE, "why this scenario exists, in one line"),
        "policy": must(NAME, "the policy's id; it is found in contracts/"),
        "agent": must(_AGENT, "who proposes"),
        "run": may(_RUN, "the run that the grant is bound to"),
        "servers": may(
            Word(tuple(Servers)), "where the servers live; usually models, or processes where a server has no model"
        ),
        "reveal": may(Word(tuple(Reveal)), "what a refused agent hears"),
        "visibility": may(
            Word(tuple(Visibility)), "the tools that a client is shown: all, or those of the step that is open"
        ),
        "instructions": may(Text(limit=4000), "what a client is told of its task; else only the plain facts"),
        "tags": TAGS,
        "faults": may(_FAULTS, "what goes wrong"),
        "expect": may(_EXPECT, "what it must come to"),
        "proposals": may(_PROPOSALS, "one case each, tried in place of the agent's own call"),
        **table(_OVERRIDE),
    },
    "a scenario",
)
CANDIDATES_SHAPE: Final = Record(
    {
        "schema": must(Word((CANDIDATES,)), "the kind of file"),
        "id": may(NAME, "the file's id; usually its name"),
        "because": may(LINE, "why this task exists, in one line"),
        "policy": must(NAME, "the policy whose choice group is filled"),
        "task": must(NAME, "the task"),
        "seed": may(Integer(0), "what the workload makes its scene from"),
        "tags": TAGS,
        "candidates": must(MapOf(_ARGUMENTS, least=1), "the group's candidates and their arguments"),
        "proposals": may(_PROPOSALS, "further cases, tried at the choice"),
    },
    "a candidates file",
)
