"""The closed list of reasons: why something was refused, failed or stayed open.

A reason's value is a public code. Receipts, reports, fixtures and SARIF rules quote
it, so a code is added or retired, never reworded. Each code carries its text, its
layer, its severity and the coarse word an agent may hear for it (`Coarse`).
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, NamedTuple

from assisted_benchmark.kernel.codes import Reason

__all__ = ["LIVE_ORDER", "REASONS", "Coarse", "Layer", "Reason", "ReasonInfo", "Severity"]


@unique
class Coarse(StrEnum):
    """All that an agent is told about a refusal, unless a scenario reveals more."""

    MALFORMED = "malformed"
    NOT_AUTHORISED = "not_authorised"
    SPENT = "spent"
    EXPIRED = "expired"
    UNAVAILABLE = "unavailable"


@unique
class Layer(StrEnum):
    """Where in the data's way a reason belongs."""

    BYTES = "bytes"
    CALL = "call"
    GRANT = "grant"
    GROUP = "group"
    SERVER = "server"
    PROPOSAL = "proposal"
    CONFIRMATION = "confirmation"
    CAPABILITY = "capability"
    CONSENT = "consent"
    OPERATION = "operation"
    DISPATCH = "dispatch"
    LEDGER = "ledger"
    RECEIPT = "receipt"
    DOCUMENT = "document"
    SUITE = "suite"


@unique
class Severity(StrEnum):
    """The SARIF level of a finding with this reason."""

    ERROR = "error"
    NOTE = "note"


class ReasonInfo(NamedTuple):
    """What a reason means to people and tools.

    `text` is one sentence without the details of a case; `coarse` is what an agent
    hears; `rule` is the SARIF rule id; `anchor` is the heading in docs/reasons.md.
    """

    text: str
    layer: Layer
    severity: Severity
    coarse: Coarse
    rule: str
    anchor: str


_M, _N, _S, _E, _U = (
    Coarse.MALFORMED,
    Coarse.NOT_AUTHORISED,
    Coarse.SPENT,
    Coarse.EXPIRED,
    Coarse.UNAVAILABLE,
)
_R = Reason

_TABLE: Final[dict[Layer, dict[Reason, tuple[Coarse, str]]]] = {
    Layer.BYTES: {
        _R.MALFORMED_CALL: (_M, "the bytes are not one JSON document of the expected shape"),
        _R.DUPLICATE_KEY: (_M, "an object has the same key twice"),
        _R.UNSAFE_INTEGER: (_M, "an integer lies beyond plus or minus 2^53-1"),
        _R.NON_FINITE_NUMBER: (_M, "a number is NaN, infinite or overflows a double"),
        _R.NON_CANONICAL_NUMBER: (_M, "an integer is spelled with a point or an exponent"),
        _R.MALFORMED_UNICODE: (_M, "the text is not clean UTF-8: bad bytes, BOM, NUL or lone surrogate"),
        _R.TOO_DEEP: (_M, "the value is nested more than 64 levels deep"),
        _R.TOO_LARGE: (_M, "the value is larger than its bound"),
    },
    Layer.CALL: {
        _R.ARGUMENTS_NOT_OBJECT: (_M, "the arguments are not a JSON object"),
        _R.MALFORMED_NAME: (_M, "a name is empty, too long or has a forbidden character"),
        _R.CONFUSABLE_NAME: (_M, "a name is spelled with look-alike characters"),
        _R.INVISIBLE_CHARACTER: (_M, "a name hides invisible or direction-changing characters"),
    },
    Layer.GRANT: {
        _R.UNKNOWN_GRANT: (_N, "no such grant is open here"),
        _R.UNKNOWN_GROUP: (_N, "the grant has no such group"),
        _R.STORE_UNAVAILABLE: (_U, "the ledger cannot be reached, so nothing is admitted"),
        _R.SEAL_INVALID: (_N, "the grant's seal does not verify"),
        _R.CROSS_RUN: (_N, "the grant belongs to another run"),
        _R.WRONG_PRINCIPAL: (_N, "the grant belongs to another session"),
        _R.WRONG_VM: (_N, "the grant is for another VM"),
        _R.WRONG_HOST: (_N, "the grant is for another host or another boot of it"),
        _R.POLICY_DRIFT: (_N, "the policy is not the one that was pinned"),
        _R.CONTRACT_DRIFT: (_N, "the server is not the one that was pinned"),
        _R.GRANT_NOT_FROM_POLICY: (_N, "compiling the trusted policy does not give this grant"),
        _R.NOT_YET_VALID: (_E, "the grant is not valid yet"),
        _R.EXPIRED: (_E, "the grant has expired"),
        _R.CLOCK_ROLLBACK: (_E, "the clock was set back"),
        _R.REVOKED: (_N, "the grant was revoked"),
    },
    Layer.GROUP: {
        _R.ALREADY_SELECTED: (_S, "a candidate of this group was selected before"),
        _R.GROUP_TERMINAL: (_S, "the group is closed"),
        _R.EXHAUSTED: (_S, "the group was closed after too many refusals"),
        _R.OUT_OF_ORDER: (_N, "a candidate was chosen before the earlier steps completed"),
        _R.REPLAYED: (_S, "the call equals a step that is done"),
        _R.SKIPPED: (_N, "the call equals a later step"),
    },
    Layer.SERVER: {
        _R.UNKNOWN_SERVER: (_N, "the contract has no such server"),
        _R.SERVER_SUBSTITUTED: (_N, "the call names a server that this step is not bound to"),
        _R.UNKNOWN_TOOL: (_N, "the server has no such tool in the contract"),
        _R.EFFECT_MISMATCH: (_N, "the tool's effect is not the one that the policy allows"),
        _R.ARGUMENTS_INVALID: (_N, "the arguments do not fit the tool's closed schema"),
        _R.WRONG_TARGET: (_N, "only the target argument differs from a candidate"),
        _R.ARGUMENTS_ALTERED: (_N, "the arguments differ from what was sealed"),
        _R.NOT_A_CANDIDATE: (_N, "the tool is known but no candidate of this step"),
        _R.MALFORMED_FRAME: (_U, "a peer sent a line that is not one JSON-RPC message"),
        _R.DUPLICATE_REQUEST_ID: (_M, "a request id is already in flight"),
        _R.PROTOCOL_MISMATCH: (_U, "the server speaks no protocol version that we speak"),
        _R.DUPLICATE_TOOL: (_N, "the server lists one tool name twice"),
        _R.INCOMPLETE_LISTING: (_N, "the server's tool list did not end within its bounds"),
        _R.UNRESOLVABLE_REF: (_N, "a schema refers to a document outside itself"),
        _R.LAUNCH_FAILED: (_U, "the server could not be started"),
        _R.ARTIFACT_DRIFT: (_N, "the server's files are not the ones that were pinned"),
    },
    Layer.PROPOSAL: {
        _R.UNKNOWN_CHANGE: (_M, "the contract has no such change type"),
        _R.UNSHOWABLE_VALUE: (_M, "a value cannot be shown to a person safely and whole"),
        _R.DRY_RUN_FAILED: (_U, "the endpoint did not accept the dry run"),
        _R.UNKNOWN_TOKEN: (_N, "no proposal has this token here"),
        _R.BINDING_MISMATCH: (_N, "compiling the stored change does not give the request that was bound"),
    },
    Layer.CONFIRMATION: {
        _R.DECLINED: (_N, "the person did not agree"),
        _R.TIMED_OUT: (_E, "nobody answered the question in time"),
        _R.CONFIRMATION_FAILED: (_U, "the question could not be asked, or its answer could not be understood"),
        _R.UNSUPPORTED_BY_CLIENT: (_N, "the client cannot ask a person, so nobody could agree"),
    },
    Layer.CAPABILITY: {
        _R.UNKNOWN_OPERATION: (_N, "the registry has no such operation, or nothing can authorise it"),
        _R.ACL_ONLY: (_N, "artifacts are read by way of their access list only"),
        _R.INSTANCE_NOT_FOUND: (_N, "no live instance has exactly this id"),
        _R.AMBIGUOUS_INSTANCE: (_N, "more than one live instance has this id"),
        _R.WRONG_PEER: (_N, "the session is another process's"),
        _R.WRONG_REGISTRATION: (_N, "the capability grant is for another registration of the instance"),
        _R.WRONG_PUBLICATION: (_N, "the capability grant is for another publication of the instance"),
        _R.NOT_IMPLEMENTED: (_N, "the instance does not implement the operation"),
        _R.NOT_BUILT: (_N, "the operation is not part of the instance's build"),
        _R.HOST_UNAVAILABLE: (_U, "the instance's host cannot do the operation now"),
        _R.NOT_ACTIVATED: (_N, "the operation is not activated on the instance"),
        _R.NOT_ELIGIBLE: (_N, "the operator's policy does not have the operation"),
        _R.NOT_GRANTED: (_N, "the capability grant does not cover the operation"),
        _R.SESSION_ENDED: (_U, "the client's session with the host is over"),
    },
    Layer.CONSENT: {
        _R.INVALID_REQUEST: (_M, "the request for a capability grant is not a valid one"),
        _R.BROKER_MISMATCH: (_N, "the session belongs to another broker"),
        _R.CLIENT_UNAVAILABLE: (_U, "the client could not be connected and enrolled"),
        _R.REGISTRATION_UNAVAILABLE: (
            _U,
            "the instance left its registration before the grant was issued",
        ),
        _R.CONSENT_REQUIRED: (_N, "a decision of the broker's own person is required, and there is none"),
        _R.CONSENT_REPLAY: (_N, "the decision was used before, or answers another question"),
        _R.CAPABILITY_UNAVAILABLE: (_N, "the instance has nothing that such a grant could cover"),
        _R.RESOURCE_EXHAUSTED: (_U, "a bound on grants or operations is reached"),
        _R.NOT_FOUND: (_N, "there is no such thing of this client's"),
    },
    Layer.OPERATION: {
        _R.IDEMPOTENCY_CONFLICT: (_S, "the idempotency key was used for another request"),
        _R.REQUEST_ID_CONFLICT: (_S, "the request id was used with another idempotency key"),
        _R.REPLAY_WINDOW_EXPIRED: (_E, "the idempotency key was used too long ago to be answered again"),
        _R.RESULT_NOT_KEPT: (_U, "the operation was done before, and its receipt is all that was kept of it"),
        _R.ARTIFACT_CORRUPT: (_U, "the artifact's bytes are not those that were published"),
        _R.STATE_CONFLICT: (_N, "the state's generation is not the expected one, or was claimed"),
        _R.COMPLETED_AFTER_REVOCATION: (_N, "the operation was done, and its authority had ended by then"),
        _R.UNKNOWN_NEEDS_REFRESH: (_U, "what came of the operation is not known; the state has to be read again"),
    },
    Layer.DISPATCH: {
        _R.LOST_RACE: (_S, "another selection of this group came first"),
        _R.CANCELLED: (_U, "the call was cancelled before it was sent"),
        _R.SERVER_UNAVAILABLE: (_U, "the server could not be reached before anything was sent"),
        _R.DEADLINE_EXCEEDED: (_U, "the time budget ran out"),
        _R.LATE_RESULT: (_U, "the result came after the grant's end"),
        _R.OUTCOME_UNKNOWN: (_U, "the call was sent and what came of it is not known"),
        _R.RESULT_INVALID: (_U, "the result contradicts itself or the tool's output schema"),
        _R.FAILED: (_U, "the server answered that the call failed"),
    },
    Layer.LEDGER: {
        _R.LEDGER_MISSING: (_U, "there is no ledger at this path"),
        _R.LEDGER_MALFORMED: (_U, "the ledger's file is damaged or of another kind"),
        _R.LEDGER_TAMPERED: (_U, "a row of the ledger was edited by hand"),
        _R.LEDGER_ROLLED_BACK: (_U, "the ledger is older than its anchor"),
        _R.LEDGER_UNSAFE_VERSION: (_U, "this SQLite version can lose committed transactions"),
        _R.ILLEGAL_TRANSITION: (_U, "the transition table has no such edge"),
    },
    Layer.RECEIPT: {
        _R.CHAIN_BROKEN: (_U, "a receipt was edited, moved, added or removed"),
        _R.CHAIN_TRUNCATED: (_U, "receipts are missing at the end"),
        _R.CHAIN_MISSING: (_U, "there are no receipts where there must be some"),
        _R.RUN_MISMATCH: (_U, "a receipt of another run is among these"),
        _R.TORN_TAIL: (_U, "the last receipt was cut off in mid-line"),
        _R.RECEIPT_INCONSISTENT: (_U, "a receipt contradicts what was dispatched"),
    },
    Layer.DOCUMENT: {
        _R.UNREADABLE: (_U, "the file cannot be read"),
        _R.PATH_ESCAPE: (_U, "the path leads out of its folder"),
        _R.MALFORMED_YAML: (_U, "the file is not well-formed YAML"),
        _R.IMPLICIT_TYPE: (_U, "a plain value would be read as another type; quote it"),
        _R.MERGE_FORBIDDEN: (_U, "anchors, aliases and merge keys are not allowed"),
        _R.UNSUPPORTED_YAML: (_U, "tags, directives and several documents are not allowed"),
        _R.NON_STRING_KEY: (_U, "a key is not a string"),
        _R.UNKNOWN_KEY: (_U, "the key is not known here"),
        _R.MISSING_KEY: (_U, "a required key is missing"),
        _R.WRONG_VALUE: (_U, "the value is not of the expected kind"),
        _R.DUPLICATE_ID: (_U, "two things have the same id"),
        _R.UNKNOWN_REFERENCE: (_U, "the name refers to nothing that was found"),
        _R.MALFORMED_DIGEST: (_U, "a digest is not written sha256: and 64 lower-case hex digits"),
        _R.PIN_MISMATCH: (_U, "the digest is not the one that is pinned"),
        _R.GROUP_NOT_LAST: (_U, "a choice group must be the last step and the only group"),
        _R.GROUP_COUNT: (_U, "a choice group has exactly two candidates"),
        _R.GROUP_REPEATED: (_U, "two candidates of a group are the same call"),
        _R.GROUP_LEGACY: (_U, "a single-server contract allows no choice group"),
        _R.GROUP_OTHER_TASK: (_U, "a candidate is for another task than the run's"),
    },
    Layer.SUITE: {
        _R.MISUSE: (_U, "the command was called wrongly"),
        _R.NOTHING_SELECTED: (_U, "no case matches the selection"),
        _R.COULD_NOT_RUN: (_U, "the case could not be run"),
        _R.EXPECTATION_MISSED: (_U, "the case did not come to what it expects"),
        _R.NETWORK_BLOCKED: (_U, "a connection beyond loopback was attempted while offline"),
    },
}


def _info(reason: Reason, layer: Layer, coarse: Coarse, text: str) -> ReasonInfo:
    severity = Severity.NOTE if reason is Reason.TORN_TAIL else Severity.ERROR
    rule = f"AB/{layer.value}/{reason.value}"
    return ReasonInfo(text, layer, severity, coarse, rule, f"docs/reasons.md#{reason.value}")


REASONS: Final[dict[Reason, ReasonInfo]] = {
    reason: _info(reason, layer, coarse, text)
    for layer, entries in _TABLE.items()
    for reason, (coarse, text) in entries.items()
}

# The live broker's fixed check order (the first failure decides the one code). It binds
# the result, not the execution: a fast path may only match, a slow path then explains.
LIVE_ORDER: Final[tuple[Reason, ...]] = (
    _R.TOO_LARGE,
    _R.MALFORMED_UNICODE,
    _R.MALFORMED_CALL,
    _R.DUPLICATE_KEY,
    _R.UNSAFE_INTEGER,
    _R.NON_FINITE_NUMBER,
    _R.TOO_DEEP,
    _R.ARGUMENTS_NOT_OBJECT,
    _R.MALFORMED_NAME,
    _R.INVISIBLE_CHARACTER,
    _R.CONFUSABLE_NAME,
    _R.UNKNOWN_GRANT,
    _R.UNKNOWN_GROUP,
    _R.STORE_UNAVAILABLE,
    _R.SEAL_INVALID,
    _R.CROSS_RUN,
    _R.WRONG_PRINCIPAL,
    _R.WRONG_VM,
    _R.WRONG_HOST,
    _R.POLICY_DRIFT,
    _R.CONTRACT_DRIFT,
    _R.GRANT_NOT_FROM_POLICY,
    _R.NOT_YET_VALID,
    _R.EXPIRED,
    _R.CLOCK_ROLLBACK,
    _R.REVOKED,
    _R.ALREADY_SELECTED,
    _R.GROUP_TERMINAL,
    _R.EXHAUSTED,
    _R.OUT_OF_ORDER,
    _R.REPLAYED,
    _R.SKIPPED,
    _R.UNKNOWN_SERVER,
    _R.SERVER_SUBSTITUTED,
    _R.UNKNOWN_TOOL,
    _R.EFFECT_MISMATCH,
    _R.NON_CANONICAL_NUMBER,
    _R.ARGUMENTS_INVALID,
    _R.WRONG_TARGET,
    _R.ARGUMENTS_ALTERED,
    _R.NOT_A_CANDIDATE,
    # at the dispatch; contract_drift and expired come again here, live
    _R.SERVER_UNAVAILABLE,
    _R.LOST_RACE,
    _R.CANCELLED,
    _R.LATE_RESULT,
    _R.OUTCOME_UNKNOWN,
    _R.RESULT_INVALID,
    _R.FAILED,
)
