"""The named checks of the live broker, in their one order: the first that fails decides the reason.

A check is data: a reason, and a test that says what is wrong or the empty text. The order binds
the result, not the execution: the broker's fast path admits only what passes every check, and all
else comes here. A broker made without one check is the mutant that the fixture of its reason
has to catch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from attrs import frozen

from assisted_benchmark.kernel.clock import SECOND, Instant
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.names import name_fault
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.redact import told_path
from assisted_benchmark.live_policy.grant import Session
from assisted_benchmark.live_policy.matching import differences, nearest, only_target_differs
from assisted_benchmark.live_policy.opened import OpenGrant, Standing
from assisted_benchmark.live_policy.policy import PlannedStep, checker
from assisted_benchmark.live_policy.proposal import Proposal
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.live_policy.trust import Trust

T = TypeVar("T")

_SELECTED: Final = frozenset({State.DISPATCHING, State.SUCCEEDED, State.FAILED, State.UNRESOLVED})
_CLOSED: Final = frozenset({State.FAILED, State.UNRESOLVED, State.EXPIRED, State.ABORTED})


def _there(found: T | None) -> T:
    if found is None:
        raise HarnessError(Reason.COULD_NOT_RUN, "nothing can be judged without a grant")
    return found


class Question(NamedTuple):
    """A well-formed proposal under a session, and all that is needed to judge it.

    `stood` is where the grant stood in the ledger, taken once; `store_fault` says why that cannot be known.
    """

    proposal: Proposal
    session: Session
    found: OpenGrant | None
    stood: Standing | None
    store_fault: str
    now: Instant
    boot: str
    trust: Trust

    @property
    def grant(self) -> OpenGrant:
        return _there(self.found)

    @property
    def standing(self) -> Standing:
        return _there(self.stood)

    @property
    def step(self) -> PlannedStep:
        return self.standing.step

    @property
    def status(self) -> str:
        return self.standing.status

    @property
    def elsewhere(self) -> PlannedStep | None:
        """The step, other than the open one, that this very call belongs to."""
        if self.proposal.call in self.step.by_call:
            return None
        return next((step for step in self.grant.plan.steps if self.proposal.call in step.by_call), None)


@frozen
class Check(Generic[T]):
    """One check: `test` says what is wrong, or nothing."""

    reason: Reason
    test: Callable[[T], str]


class Failed(NamedTuple):
    """What the first failing check says. `checked` names those that passed before it."""

    reason: Reason
    detail: str
    checked: tuple[str, ...]


def first_failing(checks: Sequence[Check[T]], subject: T) -> Failed | None:
    """The first check that says that something is wrong; None if all pass."""
    for at, check in enumerate(checks):
        if detail := check.test(subject):
            return Failed(check.reason, detail, tuple(passed.reason.value for passed in checks[:at]))
    return None


def _names(reason: Reason) -> Check[Question]:
    def test(q: Question) -> str:
        bad = [what for what in ("server", "tool") if name_fault(getattr(q.proposal, what)) is reason]
        return f"the {' and the '.join(bad)} cannot be a name" if bad else ""

    return Check(reason, test)


def _unknown_grant(q: Question) -> str:
    return "no such grant is open here" if q.found is None else ""


def _unknown_group(q: Question) -> str:
    named = q.proposal.group
    known = not named or any(step.name == named for step in q.grant.plan.steps)
    return "" if known else "the grant has no group of that name"


def _store_unavailable(q: Question) -> str:
    return q.store_fault


def _cross_run(q: Question) -> str:
    return "" if q.session.run == q.grant.session.run else "the grant was sealed for another run"


def _wrong_principal(q: Question) -> str:
    return "" if q.session.principal == q.grant.session.principal else "the grant was sealed for another session"


def _wrong_vm(q: Question) -> str:
    return "" if q.session.vm == q.grant.session.vm else "the grant was sealed for another VM"


def _wrong_host(q: Question) -> str:
    if q.session.host != q.grant.session.host:
        return "the grant was sealed for another host"
    same = q.session.boot == q.grant.session.boot == q.boot
    return "" if same else "the grant was sealed in another boot of this host"


def _policy_drift(q: Question) -> str:
    return "the policy is not the pinned one" if q.trust.policy_drifted else ""


def _contract_drift(q: Question) -> str:
    return "the contract is not the pinned one" if q.trust.contract_drifted else ""


def _not_yet_valid(q: Question) -> str:
    issued = q.grant.expires_wall - q.grant.lifetime
    return "" if q.now.wall_ns >= issued else "the grant was sealed later than now"


def _expired(q: Question) -> str:
    return "the grant's time is over" if q.grant.expired(q.now) else ""


def _clock_rollback(q: Question) -> str:
    if q.now.wall_ns < q.grant.mark - SECOND:
        return "the wall clock is more than a second behind what it was"
    issued = q.grant.expires_mono - q.grant.lifetime
    return "" if q.now.mono_ns >= issued else "the monotonic clock is behind the sealing"


def _revoked(q: Question) -> str:
    return "the grant was revoked" if q.status == State.REVOKED else ""


def _already_selected(q: Question) -> str:
    # A call that belongs to another step is told so further down.
    selected = q.status in _SELECTED and q.elsewhere is None
    return f"`{q.step.name}` is `{q.status}`" if selected else ""


def _group_terminal(q: Question) -> str:
    return f"`{q.step.name}` is `{q.status}`" if q.status in _CLOSED else ""


def _exhausted(q: Question) -> str:
    return f"`{q.step.name}` had too many refusals" if q.status == State.EXHAUSTED else ""


def _out_of_order(q: Question) -> str:
    other = q.elsewhere
    early = other is not None and other.choice  # which is the last step, so that it is later than the open one
    named = q.proposal.group
    if named and named != q.step.name and other is None:
        return f"`{named}` is not the step that is open"
    return f"`{q.step.name}` comes first" if early else ""


def _replayed(q: Question) -> str:
    other = q.elsewhere
    return f"the call equals `{other.name}`, which is done" if other and other.index < q.step.index else ""


def _skipped(q: Question) -> str:
    other = q.elsewhere
    return f"the call equals `{other.name}`; `{q.step.name}` comes first" if other and not other.choice else ""


def _unknown_server(q: Question) -> str:
    known = q.trust.policy.contract.server(q.proposal.server) is not None
    return "" if known else "the contract has no such server"


def _server_substituted(q: Question) -> str:
    return "" if q.proposal.server == q.step.server.id else f"`{q.step.name}` is bound to another server"


def _unknown_tool(q: Question) -> str:
    return "" if q.step.server.tool(q.proposal.tool) is not None else "the server has no such tool"


def _effect_mismatch(q: Question) -> str:
    tool = q.step.server.tool(q.proposal.tool)
    allowed = q.step.tool.effect
    if tool is not None and tool.effect is not allowed:
        return f"the tool is `{tool.effect.value}` where the policy allows `{allowed.value}`"
    claimed = q.proposal.effect
    return f"`{claimed}` was claimed where the tool is `{allowed.value}`" if claimed not in ("", allowed.value) else ""


def _non_canonical_number(q: Question) -> str:
    tool = q.step.server.tool(q.proposal.tool)
    places = () if tool is None else checker(tool).integer_spelling(q.proposal.arguments)
    told = () if tool is None else tuple(dict.fromkeys(told_path(each, tool.sensitive) for each in places))
    return f"{', '.join(told)}: write an integer without point and exponent" if places else ""


def _arguments_invalid(q: Question) -> str:
    tool = q.step.server.tool(q.proposal.tool)
    faults = () if tool is None else checker(tool).faults(q.proposal.arguments)
    marks = () if tool is None else tool.sensitive
    return "; ".join(f"{told_path(fault.path, marks) or '/'}: {fault.message}" for fault in faults)


def _wrong_target(q: Question) -> str:
    same_tool = q.proposal.tool == q.step.tool.name
    return _compared(q) if same_tool and only_target_differs(q.step, q.proposal) else ""


def _arguments_altered(q: Question) -> str:
    same_tool = q.proposal.tool == q.step.tool.name
    return _compared(q) if same_tool and q.proposal.call not in q.step.by_call else ""


def _not_a_candidate(q: Question) -> str:
    return "" if q.proposal.call in q.step.by_call else f"`{q.step.name}` has no call of this tool"


def _compared(q: Question) -> str:
    near = nearest(q.step, q.proposal)
    lines = differences(near, q.proposal, q.step.tool.sensitive)
    return f"nearest is `{near.name}`: {'; '.join(lines) or 'the server is another'}"


CHECKS: Final[tuple[Check[Question], ...]] = (
    _names(Reason.MALFORMED_NAME),
    _names(Reason.INVISIBLE_CHARACTER),
    _names(Reason.CONFUSABLE_NAME),
    Check(Reason.UNKNOWN_GRANT, _unknown_grant),
    Check(Reason.UNKNOWN_GROUP, _unknown_group),
    Check(Reason.STORE_UNAVAILABLE, _store_unavailable),
    Check(Reason.CROSS_RUN, _cross_run),
    Check(Reason.WRONG_PRINCIPAL, _wrong_principal),
    Check(Reason.WRONG_VM, _wrong_vm),
    Check(Reason.WRONG_HOST, _wrong_host),
    Check(Reason.POLICY_DRIFT, _policy_drift),
    Check(Reason.CONTRACT_DRIFT, _contract_drift),
    Check(Reason.NOT_YET_VALID, _not_yet_valid),
    Check(Reason.EXPIRED, _expired),
    Check(Reason.CLOCK_ROLLBACK, _clock_rollback),
    Check(Reason.REVOKED, _revoked),
    Check(Reason.ALREADY_SELECTED, _already_selected),
    Check(Reason.GROUP_TERMINAL, _group_terminal),
    Check(Reason.EXHAUSTED, _exhausted),
    Check(Reason.OUT_OF_ORDER, _out_of_order),
    Check(Reason.REPLAYED, _replayed),
    Check(Reason.SKIPPED, _skipped),
    Check(Reason.UNKNOWN_SERVER, _unknown_server),
    Check(Reason.SERVER_SUBSTITUTED, _server_substituted),
    Check(Reason.UNKNOWN_TOOL, _unknown_tool),
    Check(Reason.EFFECT_MISMATCH, _effect_mismatch),
    Check(Reason.NON_CANONICAL_NUMBER, _non_canonical_number),
    Check(Reason.ARGUMENTS_INVALID, _arguments_invalid),
    Check(Reason.WRONG_TARGET, _wrong_target),
    Check(Reason.ARGUMENTS_ALTERED, _arguments_altered),
    Check(Reason.NOT_A_CANDIDATE, _not_a_candidate),
)
