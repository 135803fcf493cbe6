"""The tools of a contract's servers, over one live broker: what an agent's call is, and how it is told.

Each is listed as it is pinned, but for its name. A call is a proposal with the agent's own argument bytes, and the
broker decides on every one: nothing here admits, refuses or remembers. What a server answered is passed on as it
is. Everything else is told in one coarse form, which says neither what would have been right nor what was compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Final, TypeAlias

import orjson

from assisted_benchmark.contract.model import Contract
from assisted_benchmark.gateway.held import Asked, HeldCalls
from assisted_benchmark.gateway.names import Place, named
from assisted_benchmark.gateway.tools import AgentCall, ToolRegistration, input_required, tool_result
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.reasons import REASONS, Coarse, Reason
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.wire.frames import INTERNAL_ERROR, INVALID_PARAMS
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.relay import Relay, shows_forms
from assisted_benchmark.wire.server_side import CallCancelled, Passed, ToolProblem

Propose: TypeAlias = Callable[[bytes, AgentCall, Relay], Outcome | Refused]
"""Has one proposal decided on and, if it is admitted, carried out: whose call it is, and what leads back to it."""

_MAY_BE_OUT: Final = (State.SUCCEEDED, State.UNRESOLVED)


def instructions(task: str, own: str = "") -> str:
    """What a client's model is told of the tools: the scenario's `own` words, or the plain facts."""
    if own:
        return own
    words = ", ".join(Coarse)
    return (
        f"The task is `{task}`. A tool is named SERVER__TOOL. Calls are judged one by one against what was authorised "
        "beforehand for this session, which can be used once and for a limited time. A call that is refused, or of "
        f"which no answer came, is an error with {{error, receiptId}}, where error is one of: {words}."
    )


def live_tools(
    contract: Contract,
    propose: Propose,
    held: HeldCalls,
    refuse: Callable[[Reason, str], object],
    *,
    reveal: bool = False,
) -> tuple[ToolRegistration, ...]:
    """Every tool of every server. `reveal` tells exact reasons, to study agents that learn from them.

    Calls whose servers may ask are `held` while people answer. `refuse` records what did not even become a proposal.

    Raises:
        MisuseError: duplicate_tool, if two tools would be served under one name.
    """
    pinned = {Place(server.id, tool.name): tool for server in contract.servers for tool in server.tools}
    asking = {server.id for server in contract.servers if shows_forms(server.capabilities.value)}
    return tuple(
        ToolRegistration(
            {**pinned[place].definition.value, "name": name},
            place.server,
            partial(_handle, _Proposing(place), propose, held if place.server in asking else None, refuse, reveal),
            foreign=True,
        )
        for name, place in named(pinned).items()
    )


def names_of(contract: Contract, calls: Collection[tuple[str, str]]) -> frozenset[str]:
    """What these tools (server, tool) of the contract are served as."""
    places = (Place(server.id, tool.name) for server in contract.servers for tool in server.tools)
    return frozenset(name for name, place in named(places).items() if place in calls)


class _Proposing:
    """Makes the proposals of one tool: the arguments are the agent's own bytes, the rest is ours."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._rest = b',"server":%b,"tool":%b}' % tuple(canonical_bytes(each) for each in place)

    def raw(self, arguments: bytes) -> bytes:
        """A proposal's bytes."""
        return b'{"arguments":%b%b' % (arguments, self._rest)


def _handle(
    proposing: _Proposing,
    propose: Propose,
    held: HeldCalls | None,
    refuse: Callable[[Reason, str], object],
    reveal: bool,
    call: AgentCall,
) -> dict[str, Json] | Passed:
    raw = proposing.raw(call.arguments)
    came: Outcome | Refused | Asked | None
    if held is None:
        came = propose(raw, call, call) if call.resumed is None else None
    else:
        came = held.made(call, proposing.place, partial(propose, raw, call))
    if came is None:
        refuse(Reason.REPLAYED, "a call brings the state of a question that is not open for it, or not any more")
        raise ToolProblem(INVALID_PARAMS, "nothing waits for this `requestState`: call again without it")
    if isinstance(came, Asked):
        if call.cancelled:
            raise CallCancelled  # nobody will hear the question
        return input_required(came.state, came.message, came.requested_schema)
    return _told(came, call, reveal)


def _told(answer: Outcome | Refused, call: AgentCall, reveal: bool) -> dict[str, Json] | Passed:
    if call.cancelled and not _may_be_out(answer):
        raise CallCancelled
    if isinstance(answer, Outcome) and answer.result:
        if answer.reason is None and call.era is Era.HANDSHAKE:
            return Passed(answer.result)
        passed = _passed_on(orjson.loads(answer.result), failed=answer.reason is not None)
        # In that era the word has a meaning, whatever a server of another era means by it: this is no question.
        return {**passed, "resultType": "complete"} if call.era is Era.STATELESS else passed
    reason = answer.reason or Reason.OUTCOME_UNKNOWN
    word = reason.value if reveal else REASONS[reason].coarse.value
    return tool_result({"error": word, "receiptId": answer.receipt_id}, failed=True)


def _may_be_out(answer: Outcome | Refused) -> bool:
    """Whether the server may have heard of the call, so that a cancellation does not keep its end from being told."""
    return isinstance(answer, Outcome) and (answer.state in _MAY_BE_OUT or answer.reason is Reason.FAILED)


def _passed_on(value: dict[str, Json], *, failed: bool) -> dict[str, Json]:
    """The server's own answer: its result, an error it flagged, or the JSON-RPC error that it gave."""
    if not failed or value.get("isError") is True:
        return value
    code, message = value.get("code"), value.get("message")
    if type(code) is int and -32768 <= code <= -32000 and type(message) is str:
        raise ToolProblem(code, message, value.get("data"))
    raise ToolProblem(INTERNAL_ERROR, "the server answered with an error of its own", value)
