"""The raw tool objects of a registry: closed arguments, typed results, and annotations, which are advice only.

An operation's own schemas stand inside as they are; their `$defs` move to the top, where `#/$defs/` leads. What
every answer is made of stands beside them, under names with a point in them, which an operation's never have.
"""

from __future__ import annotations

from typing import Final

from assisted_benchmark.capability.registry import VERSION, Operation, Registry, Risk
from assisted_benchmark.kernel.canonical import SAFE_INTEGER, Json

RESULT: Final = "assisted-benchmark/operation-result@1"

_READING: Final = (Risk.OBSERVE, Risk.SENSITIVE)
_DESTRUCTIVE: Final = (Risk.CRITICAL, Risk.HIGH_RISK)
_MAX_INSTANCES: Final = 256
_MAX_OPERATIONS: Final = 1000
_MAX_FAULTS: Final = 32
_OPERATION_ID_LENGTH: Final = 256

_COUNT: Final = {"type": "integer", "minimum": 0, "maximum": SAFE_INTEGER}
_POSITIVE: Final = {"type": "integer", "minimum": 1, "maximum": SAFE_INTEGER}
_CODE: Final = {"type": "string", "maxLength": 64, "pattern": "^[a-z][a-z0-9_]*$"}
_MESSAGE: Final = {"type": "string", "maxLength": 1024}
_OPERATION_ID: Final = {"type": "string", "minLength": 1, "maxLength": _OPERATION_ID_LENGTH}
_OPERATION_IDS: Final = {"type": "array", "maxItems": _MAX_OPERATIONS, "items": _OPERATION_ID}
_SHA256: Final = {"type": "string", "maxLength": 64, "pattern": "^[0-9a-f]{64}$"}
_ID: Final = {"$ref": "#/$defs/broker.id"}
_EXPLANATION: Final = {"$ref": "#/$defs/broker.explanation"}
_ARTIFACTS: Final = {"$ref": "#/$defs/broker.artifacts"}
_PROGRESS: Final = {"$ref": "#/$defs/broker.progress"}
_FAILURE: Final = {"$ref": "#/$defs/broker.failure"}


def _closed(properties: dict[str, Json], *optional: str) -> dict[str, Json]:
    """The schema of an object with these properties and no others, all of them required but the optional ones."""
    required = [name for name in properties if name not in optional]
    schema: dict[str, Json] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "required": required} if required else schema


def _annotations(*, reads: bool, destroys: bool, repeats: bool) -> dict[str, Json]:
    return {"readOnlyHint": reads, "destructiveHint": destroys, "idempotentHint": repeats, "openWorldHint": False}


class ToolSchemas:
    """Writes the tool objects of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        bounds = registry.bounds
        self._id: dict[str, Json] = {
            "type": "string",
            "minLength": 1,
            "maxLength": bounds.id_length,
            "pattern": "^[!-~]+$",
        }
        self._explanation: dict[str, Json] = {"type": "string", "maxLength": bounds.explanation_length}
        self._profile: dict[str, Json] = {"enum": list(registry.profiles)}
        self._parts = self._parts_of_answers()

    def operation_tool(self, operation: Operation) -> dict[str, Json]:
        """The raw object of an operation's tool."""
        reads = operation.risk in _READING
        return {
            "name": self._registry.tool_name(operation.id),
            "description": f"{operation.about} Acts on exactly the instance that instance_id names. Grants and consent "
            "are the broker's: no argument and no annotation is authority.",
            "inputSchema": self._arguments(operation),
            "outputSchema": self._result(operation),
            "annotations": _annotations(reads=reads, destroys=operation.risk in _DESTRUCTIVE, repeats=reads),
        }

    def management_tool(self, name: str) -> dict[str, Json]:
        """The raw object of one of the tools in `MANAGEMENT`."""
        tool: dict[str, Json] = {
            "instances": self._instances,
            "status": self._status,
            "grant_request": self._grant_request,
            "revoke": self._revoke,
            "cancel": self._cancel,
        }[name]()
        return {"name": self._registry.management_tool(name), **tool}

    def _arguments(self, operation: Operation) -> dict[str, Json]:
        bounds = self._registry.bounds
        inner = operation.input.value
        defs = inner.pop("$defs", None)
        properties: dict[str, Json] = {
            "instance_id": {**self._id, "description": "The exact live instance."},
            "input": inner,
            "request_id": {**self._id, "description": "Names the call, so that it can be cancelled and replayed."},
            "grant_id": {**self._id, "description": "A grant that the broker has issued."},
            "profile": {**self._profile, "description": "The profile that a grant is asked of, where there is none."},
            "expected_state_generation": {**_COUNT, "description": "Act only on a state of this generation."},
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": bounds.timeout_ms,
                "default": bounds.default_timeout_ms,
                "description": "The time of the whole call, end to end.",
            },
        }
        schema = _closed(properties, *(name for name in properties if name not in ("instance_id", "input")))
        return schema if defs is None else {**schema, "$defs": defs}

    def _result(self, operation: Operation) -> dict[str, Json]:
        inner = operation.output.value
        defs = inner.pop("$defs", {})
        success = _closed(
            {
                "ok": {"const": True},
                "schema": {"const": RESULT},
                "request_id": _ID,
                "receipt_id": _ID,
                "operation_id": {"const": operation.id},
                "operation_version": {"const": VERSION},
                "state": {"const": "completed"},
                "explanation": _EXPLANATION,
                "result": inner,
                "artifacts": _ARTIFACTS,
                "progress": _PROGRESS,
            }
        )
        return self._answer(success, defs)

    def _answer(self, success: Json, defs: Json) -> dict[str, Json]:
        """Success or failure; the type is said at the top too, where older clients look for it."""
        return {"type": "object", "oneOf": [success, _FAILURE], "$defs": {**defs, **self._parts}}

    def _parts_of_answers(self) -> dict[str, Json]:
        bounds = self._registry.bounds
        artifact = {
            "artifact_id": _ID,
            "media_type": {"type": "string", "minLength": 1, "maxLength": 255},
            "byte_size": _COUNT,
            "sha256": _SHA256,
        }
        event = {"sequence": _POSITIVE, "current": _COUNT, "total": _POSITIVE, "message": _EXPLANATION}
        fault = _closed({"path": _MESSAGE, "message": _MESSAGE})
        data: dict[str, Json] = {
            "request_id": _ID,
            "receipt_id": _ID,
            "operation_id": _OPERATION_ID,
            "state": _CODE,
            "explanation": _EXPLANATION,
            "may_have_applied": {"type": "boolean"},
            "faults": {"type": "array", "maxItems": _MAX_FAULTS, "items": fault},
            "artifacts": _ARTIFACTS,
            "progress": _PROGRESS,
        }
        error = _closed({"code": _CODE, "message": _MESSAGE, "data": _closed(data, *data)})
        return {
            "broker.id": self._id,
            "broker.explanation": self._explanation,
            "broker.artifacts": {"type": "array", "maxItems": bounds.artifacts, "items": _closed(artifact)},
            "broker.progress": {
                "type": "array",
                "maxItems": bounds.progress_events,
                "items": _closed(event, "message"),
            },
            "broker.failure": _closed({"ok": {"const": False}, "error": error}),
        }

    def _managing(
        self,
        description: str,
        arguments: Json,
        status: str,
        data: dict[str, Json],
        annotations: Json,
    ) -> dict[str, Json]:
        success = _closed({"ok": {"const": True}, "status": {"const": status}, "data": _closed(data)})
        return {
            "description": description,
            "inputSchema": arguments,
            "outputSchema": self._answer(success, {}),
            "annotations": annotations,
        }

    def _instance(self) -> dict[str, Json]:
        ids = dict.fromkeys(("instance_id", "registration_id", "publication_id"), _ID)
        return _closed({**ids, "state_generation": _COUNT, "capabilities": _OPERATION_IDS})

    def _which(self) -> dict[str, Json]:
        return {**self._id, "description": "The exact live instance."}

    def _instances(self) -> dict[str, Json]:
        return self._managing(
            "List the live instances that the broker knows.",
            _closed({}),
            "completed",
            {"instances": {"type": "array", "maxItems": _MAX_INSTANCES, "items": self._instance()}},
            _annotations(reads=True, destroys=False, repeats=True),
        )

    def _status(self) -> dict[str, Json]:
        return self._managing(
            "Read what the broker knows of one exact instance.",
            _closed({"instance_id": self._which()}),
            "completed",
            {"instance": self._instance()},
            _annotations(reads=True, destroys=False, repeats=True),
        )

    def _grant_request(self) -> dict[str, Json]:
        asked = {
            "profile": {**self._profile, "description": "Ask for what this profile covers and the instance has."},
            "operation_id": {**_OPERATION_ID, "description": "Ask for this operation alone."},
        }
        return self._managing(
            "Ask the broker for a grant of a profile or of one operation. The broker's own person or policy "
            "consents to it, and nothing that this call says does.",
            {
                **_closed({"instance_id": self._which(), **asked}, *asked),
                "oneOf": [{"required": [name]} for name in asked],
            },
            "granted",
            {"grant_id": _ID, "expires_at_ms": _COUNT, "operations": _OPERATION_IDS},
            _annotations(reads=False, destroys=False, repeats=False),
        )

    def _revoke(self) -> dict[str, Json]:
        return self._managing(
            "Revoke a grant of your own. Operations under way lose their authority.",
            _closed({"grant_id": self._id}),
            "revoked",
            {"grant_id": _ID},
            _annotations(reads=False, destroys=True, repeats=True),
        )

    def _cancel(self) -> dict[str, Json]:
        return self._managing(
            "Ask for the cancellation of a request that is under way on one exact instance.",
            _closed(
                {"instance_id": self._which(), "request_id": self._id, "reason": self._explanation},
                "reason",
            ),
            "cancellation_requested",
            {"request_id": _ID},
            _annotations(reads=False, destroys=False, repeats=True),
        )
