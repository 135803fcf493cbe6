"""The registry as MCP tools: which are there, what each takes and answers. Nothing here decides authority.

A projection is made of the registry alone, once. It gives the `tools/list` payload, reads calls from an agent's
bytes into `OperationCall` or `ManagementCall`, and holds results to their schema before they are returned.
What it does not advertise it does not know: there is no other way to an operation.

For the broker: `projection.read(name, arguments)` is the whole of envelope and input schema (parsing, bounds,
closed fields, integer spelling); an `Unfit` with an `operation` is one whose envelope holds.
`projection.result_faults(operation, result)` judges what a host answered before a receipt says completed;
`projection.answer_faults(name, structured)` is the last look at an answer.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import orjson
from attrs import evolve, field, frozen

from assisted_benchmark.capability.call import Call, ManagementCall, OperationCall, Unfit
from assisted_benchmark.capability.registry import MANAGEMENT, Operation, Registry
from assisted_benchmark.capability.tool_schemas import ToolSchemas
from assisted_benchmark.contract.json_schema import Checker, Fault
from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse_telling, plain_bytes
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown

# The toolsets that an operator selects from. Only the first has nothing but reading tools.
OBSERVE: Final = "observe"
CONTROL: Final = "control"


@frozen(slots=False)
class Projected:
    """One tool: its raw object, and the operation behind it, or the name of a management tool (`management`)."""

    definition: dict[str, Json] = field(eq=False, repr=False)
    operation: Operation | None = None
    management: str = ""

    @property
    def name(self) -> str:
        return str(self.definition["name"])

    @property
    def toolset(self) -> str:
        """`observe` of what only reads, `control` of all else."""
        return OBSERVE if self.definition["annotations"]["readOnlyHint"] else CONTROL

    @cached_property
    def arguments(self) -> Checker:
        """What is wrong with arguments; compiled once."""
        return Checker(self.definition["inputSchema"])

    @cached_property
    def answers(self) -> Checker:
        """What is wrong with structured content; compiled once."""
        return Checker(self.definition["outputSchema"])


class Projection:
    """The tools of one registry."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        schemas = ToolSchemas(registry)
        managing = (Projected(schemas.management_tool(name), management=name) for name in MANAGEMENT)
        operating = (Projected(schemas.operation_tool(each), each) for each in registry.operations if each.advertised)
        self.tools: tuple[Projected, ...] = (*managing, *operating)
        # The array that `tools/list` answers with, made once. Its order is the registry's, and says nothing.
        self.payload: bytes = orjson.dumps([tool.definition for tool in self.tools])
        self._by_name = {tool.name: tool for tool in self.tools}
        self._results: dict[str, Checker] = {}

    def tool(self, name: str) -> Projected | None:
        """The tool of that exact name, if it is advertised."""
        return self._by_name.get(name)

    def read(self, name: str, arguments: bytes) -> Call | Unfit:
        """The call that an agent's bytes ask for, or why they are none."""
        tool = self._by_name.get(name)
        if tool is None:
            hint = did_you_mean(name, self._by_name)
            return _unfit(Reason.UNKNOWN_TOOL, f"there is no tool `{shown(name, 80)}`{f'; {hint}' if hint else ''}")
        try:
            value, plain = parse_telling(arguments, self.registry.bounds.envelope_bytes)
        except CanonicalError as error:
            return _unfit(error.reason, error.detail)
        if type(value) is not dict:
            return _unfit(Reason.ARGUMENTS_NOT_OBJECT, "the arguments are not a JSON object")
        if tool.operation is None:
            return self._fault(tool, value) or ManagementCall(name=tool.management, arguments=value)
        return self._operation_call(tool, tool.operation, value, plain)

    def _operation_call(self, tool: Projected, operation: Operation, value: Json, plain: bool) -> OperationCall | Unfit:
        inner = value.get("input")
        written = plain_bytes(inner) if plain else canonical_bytes(inner)
        most = self.registry.bounds.parameters_bytes
        if len(written) > most:
            return _unfit(Reason.TOO_LARGE, f"{len(written)} bytes where {most} are allowed", "/input")
        unfit = self._fault(tool, value)
        if unfit is not None:
            within = all(fault.path.startswith("/input/") or fault.path == "/input" for fault in unfit.faults)
            return evolve(unfit, operation=operation) if within else unfit
        for name, bytes_most in operation.max_bytes:
            if len(inner.get(name, "").encode()) > bytes_most:
                fault = Fault(f"/input/{name}", f"more than {bytes_most} UTF-8 bytes", "maxBytes")
                return Unfit(Reason.TOO_LARGE, (fault,), operation)
        return OperationCall(
            operation=operation,
            instance_id=value["instance_id"],
            input=written,
            timeout_ms=value.get("timeout_ms", self.registry.bounds.default_timeout_ms),
            request_id=value.get("request_id"),
            grant_id=value.get("grant_id"),
            profile=value.get("profile"),
            expected_state_generation=value.get("expected_state_generation"),
            idempotency_key=inner.get(operation.idempotency) if operation.idempotency else None,
        )

    def _fault(self, tool: Projected, value: Json) -> Unfit | None:
        faults = tool.arguments.faults(value)
        if faults:
            return Unfit(Reason.ARGUMENTS_INVALID, faults)
        message = "an integer is spelled without point and exponent"
        misspelled = tuple(Fault(path, message, "type") for path in tool.arguments.integer_spelling(value))
        return Unfit(Reason.NON_CANONICAL_NUMBER, misspelled) if misspelled else None

    def result_faults(self, operation: Operation, result: Json) -> Unfit | None:
        """What is wrong with the result of an operation, by the registry's own schema of it; None if nothing is."""
        faults = self._result_checker(operation).faults(result)
        return Unfit(Reason.RESULT_INVALID, faults) if faults else None

    def answer_faults(self, name: str, structured: Json) -> Unfit | None:
        """What is wrong with the structured content of an advertised tool's answer; None if nothing is."""
        faults = self._by_name[name].answers.faults(structured)
        return Unfit(Reason.RESULT_INVALID, faults) if faults else None

    def _result_checker(self, operation: Operation) -> Checker:
        checker = self._results.get(operation.id)
        if checker is None:
            checker = self._results[operation.id] = Checker(operation.output.value)
        return checker


def _unfit(reason: Reason, message: str, path: str = "") -> Unfit:
    return Unfit(reason, (Fault(path, message, ""),))
