"""The tools and resources of a registry, over one capability broker: what an agent's call is, and how it is told.

Everything is the broker's: it reads the arguments, it authorises, it has the operation carried out and writes the
receipt. Nothing that a client declares, sends or answers is asked for consent, and nobody is asked through it. What
is added here is the wire: progress under the agent's own token, a cancellation handed on, an answer held to its schema.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import partial
from typing import Final

import orjson

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.flights import Caller
from assisted_benchmark.capability.ports import Session
from assisted_benchmark.capability.progress import Event
from assisted_benchmark.capability.projection import Projected, Projection
from assisted_benchmark.capability.reading import Listed, Resource
from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.capability.resources import templates, written
from assisted_benchmark.capability.results import CallAnswer, Managed, Outcome, told
from assisted_benchmark.capability.states import State
from assisted_benchmark.gateway.tools import AgentCall, Resources, ToolRegistration, tool_result
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Coarse
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.frames import INTERNAL_ERROR, INVALID_PARAMS
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.server_side import UNCACHED, CallCancelled, Problem, ToolProblem, page

# What ends others does not wait for them to end.
_URGENT: Final = frozenset({"cancel", "revoke"})
_LISTED_AT_ONCE: Final = 256
_NO_RESOURCE: Final = "there is no such resource"


_TOLD: Final = (
    ("instances", "{} lists them."),
    ("grant_request", "{} asks for a grant."),
    ("cancel", "{} stops a call that is under way, by its request_id."),
)


def instructions(registry: Registry, tools: Sequence[ToolRegistration]) -> str:
    """What a client's model is told of the tools that are served."""
    served = {tool.name for tool in tools}
    named = ((registry.management_tool(name), text) for name, text in _TOLD)
    return " ".join(
        (
            "Operations on exact live instances. Each needs a grant, which the broker issues on the consent of its own "
            "person or policy; no argument and no answer of the client is consent.",
            *(text.format(name) for name, text in named if name in served),
        )
    )


def capability_tools(projection: Projection, broker: CapabilityBroker, peer: str) -> tuple[ToolRegistration, ...]:
    """Every tool that the registry advertises. `peer` is the agent's process, as the harness knows it."""

    def handle(tool: Projected, call: AgentCall) -> dict[str, Json]:
        caller = Caller(call.since_ns)
        call.on_cancel(partial(broker.give_up, caller))

        def listener(event: Event) -> None:
            call.progress(event.current, event.total, event.message)

        session = Session(*call.session, peer)
        answer = broker.call(session, tool.name, call.arguments, listener=listener, caller=caller)
        if call.cancelled and not _acted(answer):
            raise CallCancelled
        structured = told(answer)
        unfit = projection.answer_faults(tool.name, structured)
        if unfit is not None:
            raise HarnessError(unfit.reason, f"an answer of `{tool.name}` does not fit its schema: {unfit.detail}")
        return tool_result(structured, failed=not structured["ok"])

    return tuple(
        ToolRegistration(tool.definition, tool.toolset, partial(handle, tool), urgent=tool.management in _URGENT)
        for tool in projection.tools
    )


def capability_resources(registry: Registry, broker: CapabilityBroker, peer: str) -> Resources:
    """The registry's addresses: they can be listed and read, and not subscribed to."""

    def listed(call: AgentCall) -> dict[str, Json]:
        found = broker.list_resources(Session(*call.session, peer))
        if isinstance(found, Refused):
            raise _unread(found)
        return _page("resources", [_described(registry.scheme, each) for each in found], call)

    def templated(call: AgentCall) -> dict[str, Json]:
        return _page("resourceTemplates", templates(registry.scheme), call)

    def read(call: AgentCall) -> dict[str, Json]:
        uri = orjson.loads(call.arguments).get("uri")
        if type(uri) is not str:
            raise ToolProblem(INVALID_PARAMS, "a read needs the `uri` of a resource")
        found = broker.read_resource(Session(*call.session, peer), uri)
        if isinstance(found, Refused):
            raise _unread(found)
        return {"contents": [_content(uri, found)], **_uncached(call)}

    return Resources(listed, templated, read)


def _acted(answer: CallAnswer) -> bool:
    """Whether the call did something, or may have, so that a cancellation does not keep its end from being told."""
    return isinstance(answer, Managed) or (isinstance(answer, Outcome) and answer.state is not State.CANCELLED)


def _page(key: str, items: list[Json], call: AgentCall) -> dict[str, Json]:
    part = page(key, items, orjson.loads(call.arguments), _LISTED_AT_ONCE)
    if isinstance(part, Problem):
        raise ToolProblem(*part)
    return {**part, **_uncached(call)}


def _uncached(call: AgentCall) -> dict[str, Json]:
    return UNCACHED if call.era is Era.STATELESS else {}


def _described(scheme: str, listed: Listed) -> dict[str, Json]:
    uri, name = written(scheme, listed.address), listed.address[-1]
    size = {} if listed.size is None else {"size": listed.size}
    return {"uri": uri, "name": name, "mimeType": listed.mime_type, **size}


def _content(uri: str, resource: Resource) -> dict[str, Json]:
    """The bytes exactly: as text where they are declared as one and are UTF-8, else in Base64."""
    named = {"uri": uri, "mimeType": resource.mime_type}
    if resource.mime_type == "application/json" or resource.mime_type.startswith("text/"):
        try:
            return {**named, "text": resource.data.decode()}
        except UnicodeDecodeError:
            pass
    return {**named, "blob": b64encode(resource.data).decode()}


def _unread(refused: Refused) -> ToolProblem:
    """What does not exist and what this client may not see are one answer; what cannot be reached now is another."""
    error = {"error": told(refused)["error"]}
    if refused.coarse is Coarse.UNAVAILABLE:
        return ToolProblem(INTERNAL_ERROR, "resources cannot be read now", error)
    return ToolProblem(INVALID_PARAMS, _NO_RESOURCE, error)
