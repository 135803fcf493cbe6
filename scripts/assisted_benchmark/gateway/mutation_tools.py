"""The tools of a change contract: the pair that changes, over one broker, and the catalogue that only reads.

Confirming asks a person. In the handshake era the call waits for the answer; in the stateless era
the question is its result, and another call with the same token brings the state and the answer.
Both are faces of the broker's `begin` and `resume`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from attrs import evolve

from assisted_benchmark.gateway.tools import AgentCall, ToolRegistration, input_required, tool_result
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.mutation.answers import Answer, Status
from assisted_benchmark.mutation.answers import Silence as NoAnswer
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes import MUTATE, ChangeContract, Read
from assisted_benchmark.mutation.definitions import confirm_definition, propose_definition, read_definition
from assisted_benchmark.mutation.ports import Endpoint
from assisted_benchmark.mutation.proposal import Session
from assisted_benchmark.mutation.reading import look
from assisted_benchmark.mutation.results import (
    Answered,
    Confirmed,
    NeedsAnswer,
    Proposed,
    Refusal,
    told,
    tool_names,
)
from assisted_benchmark.wire.frames import MISSING_CAPABILITY
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.relay import Silence
from assisted_benchmark.wire.server_side import CallCancelled, ToolProblem

_FORMS: Final[Json] = {"elicitation": {"form": {}}}


def instructions(contract: ChangeContract, tools: Iterable[ToolRegistration]) -> str:
    """What a client's model is told of all the tools that it is served."""
    if all(tool.read_only for tool in tools):
        return f"Tools of {contract.endpoint} that only read: no change can be made with them."
    names = tool_names(contract.id)
    return (
        f"Tools of {contract.endpoint}. A change takes two steps: {names['propose']} validates it by a dry run, "
        f"{names['confirm']} asks a person and carries it out. There is no other way to a change, and none to delete."
    )


def change_tools(contract: ChangeContract, broker: MutationBroker) -> tuple[ToolRegistration, ToolRegistration]:
    """Propose and confirm, both in the toolset that is off unless it is named."""
    pair = _Pair(contract.id, broker)
    return (
        ToolRegistration(propose_definition(contract), MUTATE, pair.propose),
        ToolRegistration(confirm_definition(contract), MUTATE, pair.confirm),
    )


def read_tools(contract: ChangeContract, endpoint: Endpoint, clock: Clock) -> tuple[ToolRegistration, ...]:
    """A tool for each read of the contract, in the read's own toolset."""

    def handle(read: Read, call: AgentCall) -> dict[str, Json]:
        seen = look(contract, read, call.arguments, endpoint, clock, call.deadline.remaining_ns())
        return tool_result(seen.told, failed=seen.reason is not None)

    return tuple(
        ToolRegistration(read_definition(contract, read), read.toolset, partial(handle, read))
        for read in contract.reads
    )


class _Pair:
    """What handles the calls of one pair."""

    def __init__(self, contract_id: str, broker: MutationBroker) -> None:
        self._contract_id = contract_id
        self._broker = broker

    def propose(self, call: AgentCall) -> dict[str, Json]:
        """A dry run changes nothing, so that a cancelled one has nothing to tell."""
        answer = self._broker.propose(Session(*call.session), call.arguments)
        if call.cancelled:
            raise CallCancelled
        return self._result(answer, failed=not isinstance(answer, Proposed))

    def confirm(self, call: AgentCall) -> dict[str, Json]:
        """The result, or in the stateless era the question."""
        end = self._confirmed(call)
        if isinstance(end, Confirmed):
            # It could no longer be cancelled, so it is told; of a cancel that came while it was written down, too.
            end = evolve(end, late_cancel=end.late_cancel or call.cancelled)
            return self._result(end, failed=end.reason is not None)
        if call.cancelled:
            raise CallCancelled
        if isinstance(end, NeedsAnswer):
            return input_required(end.state, end.message, end.requested_schema)
        if end.status is Status.UNSUPPORTED_BY_CLIENT and call.era is Era.STATELESS:
            data = {"requiredCapabilities": _FORMS, "refusal": told(end, self._contract_id)}
            raise ToolProblem(MISSING_CAPABILITY, "the client cannot show a form, so that no person can confirm", data)
        return self._result(end, failed=True)

    def _confirmed(self, call: AgentCall) -> NeedsAnswer | Confirmed | Refusal:
        session, raw = Session(*call.session), call.arguments

        def cancelled() -> bool:
            return call.cancelled

        if call.resumed is not None:
            return self._broker.resume(session, raw, *call.resumed, cancelled)
        begun = self._broker.begin(session, raw, call.can_ask, cancelled)
        if not isinstance(begun, NeedsAnswer):
            return begun
        if call.era is Era.HANDSHAKE:
            heard = call.ask(begun.message, begun.requested_schema, begun.wait_ns)
            answer: Answer = NoAnswer(heard.value) if isinstance(heard, Silence) else heard
        elif call.cancelled:
            answer = NoAnswer.CANCELLED  # nobody will hear the question, so that nobody can answer it
        else:
            return begun
        return self._broker.resume(session, raw, begun.state, answer, cancelled)

    def _result(self, answer: Answered, *, failed: bool) -> dict[str, Json]:
        return tool_result(told(answer, self._contract_id), failed=failed)
