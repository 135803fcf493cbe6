"""A call of a projected tool, read from the agent's bytes: what is asked, and nothing that would authorise it."""

from __future__ import annotations

from typing import TypeAlias

from attrs import field, frozen

from assisted_benchmark.capability.registry import Operation
from assisted_benchmark.contract.json_schema import Fault
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.reasons import Reason


@frozen(kw_only=True)
class OperationCall:
    """One operation on one exact instance, as it was asked for.

    `input` are the RFC 8785 bytes of the operation's input, which fits its schema. `request_id` is None where the
    caller named none: the broker then makes one. `grant_id` and `profile` say under which authority the caller
    would like to act; neither is any.
    """

    operation: Operation
    instance_id: str
    input: bytes = field(repr=False)
    timeout_ms: int
    request_id: str | None = None
    grant_id: str | None = None
    profile: str | None = None
    expected_state_generation: int | None = None
    idempotency_key: str | None = None

    def key(self, request_id: str) -> str:
        """The idempotency key: the input's own, else the request's id (the caller's, or what the broker made)."""
        return request_id if self.idempotency_key is None else self.idempotency_key


@frozen(kw_only=True)
class ManagementCall:
    """One call of a management tool: its name of `MANAGEMENT`, and its arguments, which fit its schema.

    Of `grant_request` they hold `instance_id` and exactly one of `profile` and `operation_id`; of `cancel`
    `instance_id`, `request_id` and perhaps `reason`; of `revoke` `grant_id`; of `status` `instance_id`.
    """

    name: str
    arguments: dict[str, Json]


@frozen
class Unfit:
    """Why a call or a result is not what its tool's schema says: `faults` each name the field's path.

    Of a call: too_large and the other reasons of bytes, arguments_not_object, unknown_tool, non_canonical_number,
    arguments_invalid. `operation` is there where the envelope holds and only the operation's input does not, as
    whether there is a store and time comes before that. Of a result: result_invalid.
    """

    reason: Reason
    faults: tuple[Fault, ...]
    operation: Operation | None = None

    @property
    def detail(self) -> str:
        """The first fault in one line, its path first."""
        first = self.faults[0]
        return f"{first.path}: {first.message}" if first.path else first.message


Call: TypeAlias = OperationCall | ManagementCall
