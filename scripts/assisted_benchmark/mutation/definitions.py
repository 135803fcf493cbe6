"""The tools as they are listed: the pair that changes, and the small catalogue that only reads. Pure data.

All names come from the contract's id. The pair stands in the toolset `mutate`, the reads in the toolsets
that the contract gives them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.mutation.answers import Status
from assisted_benchmark.mutation.changes import ChangeContract, Read
from assisted_benchmark.mutation.results import CONFIRM, PROPOSE, Predicates, TokenState, tool_names
from assisted_benchmark.mutation.states import State

# The pair changes things, and only ever adds: no update or delete exists.
_CHANGES: Final = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True}
_READS: Final = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True}

_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_FLAG_OR_NULL: Final = {"type": ["boolean", "null"]}
_OBJECT_OR_NULL: Final = {"type": ["object", "null"]}
_ERROR: Final = {
    "type": ["object", "null"],
    "properties": {"status": {"type": ["integer", "null"]}, "errors": {"type": "array"}, "detail": _TEXT},
    "required": ["status", "errors", "detail"],
    "additionalProperties": False,
}


def propose_definition(contract: ChangeContract) -> dict[str, Json]:
    """The tool that proposes."""
    names = tool_names(contract.id)
    kinds = ", ".join(f"`{each.name}` ({each.title.lower()})" for each in contract.changes)
    return {
        "name": names["propose"],
        "title": f"Propose a change at {contract.endpoint}",
        "description": (
            f"Propose one of: {kinds}. The spec is checked and sent to the endpoint as a dry run, which provisions "
            f"nothing. Returns what the endpoint made of it, a price context, and a token that {names['confirm']} "
            "takes once, within its lifetime. The token is a lookup key for this one proposal; it is of no use "
            "anywhere else, so never enter it elsewhere."
        ),
        "inputSchema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["change_type", "spec"],
            "properties": {
                "change_type": {"enum": [each.name for each in contract.changes]},
                "spec": {
                    "description": "The fields of the change, as its type has them; no others are taken.",
                    "anyOf": [{"$ref": f"#/$defs/{each.name}"} for each in contract.changes],
                },
            },
            "$defs": {each.name: _below(each.fields.value, each.name) for each in contract.changes},
        },
        "outputSchema": _object(
            {
                "phase": {"const": PROPOSE},
                "change_type": _TEXT,
                "validated": {"type": "object"},
                "price": {"type": "object"},
                "token": _TEXT,
                "expires_in_seconds": {"type": "integer"},
                "request_sha256": _TEXT,
                "token_scope": _TEXT,
                "refused": _TEXT,
                "problems": {"type": "array"},
                "endpoint_error": _ERROR,
                "next_step": _TEXT,
                "receipt": _TEXT_OR_NULL,
            },
            ["phase", "next_step", "receipt"],
        ),
        "annotations": {"title": f"Propose a change at {contract.endpoint}", **_CHANGES},
    }


def confirm_definition(contract: ChangeContract) -> dict[str, Json]:
    """The tool that confirms."""
    names = tool_names(contract.id)
    properties: dict[str, Json] = {
        "phase": {"const": CONFIRM},
        "executed": _FLAG_OR_NULL,
        "outcome": {"enum": _values(State.SUCCEEDED, State.FAILED, State.UNRESOLVED, State.REFUSED)},
        "refused": _TEXT_OR_NULL,
        "result": _OBJECT_OR_NULL,
        "endpoint_error": _ERROR,
        "request_sha256": _TEXT_OR_NULL,
        "human_confirmation": _object({"status": {"enum": [*_values(*Status), None]}, "detail": _TEXT}),
        "confirm_checks": _object(dict.fromkeys(Predicates._fields, _FLAG_OR_NULL)),
        "token_state": {"enum": [*_values(*TokenState), None]},
        "cancellation": _object({"requested_after_send": {"type": "boolean"}}),
        "next_step": _TEXT,
        "receipt": _TEXT_OR_NULL,
    }
    return {
        "name": names["confirm"],
        "title": f"Confirm a change at {contract.endpoint}",
        "description": (
            f"Confirm what {names['propose']} proposed. Takes its token and nothing else, and uses it up whatever "
            "comes. A person is asked before the change is carried out, and sees every field of it. What is carried "
            "out is exactly what the dry run validated."
        ),
        "inputSchema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["token"],
            "properties": {"token": {"type": "string", "description": f"The token that {names['propose']} returned."}},
        },
        "outputSchema": _object(properties),
        "annotations": {"title": f"Confirm a change at {contract.endpoint}", **_CHANGES},
    }


def read_name(contract: ChangeContract, read: Read) -> str:
    """The name of a read's tool."""
    return f"{contract.id}_{read.name}"


def read_definition(contract: ChangeContract, read: Read) -> dict[str, Json]:
    """A tool that reads."""
    return {
        "name": read_name(contract, read),
        "title": read.title,
        "description": f"{read.title} at {contract.endpoint}. Changes nothing.",
        "inputSchema": read.fields.value,
        "outputSchema": _object(
            {
                "refused": _TEXT_OR_NULL,
                "detail": _TEXT,
                "result": _OBJECT_OR_NULL,
                "endpoint_error": _ERROR,
            }
        ),
        "annotations": {"title": read.title, **_READS},
    }


def _values(*words: StrEnum) -> list[str]:
    """The texts themselves: what is listed is plain JSON."""
    return [each.value for each in words]


def _object(properties: dict[str, Json], required: list[str] | None = None) -> dict[str, Json]:
    names = list(properties) if required is None else required
    return {"type": "object", "additionalProperties": False, "required": names, "properties": properties}


def _below(schema: Json, name: str) -> Json:
    """The schema as a definition of that name: its own `$defs` are looked for within it."""
    if type(schema) is dict:
        return {
            key: f"#/$defs/{name}/{each.removeprefix('#/')}" if key == "$ref" else _below(each, name)
            for key, each in schema.items()
        }
    if type(schema) is list:
        return [_below(each, name) for each in schema]
    return schema
