"""The one seam by which tools come to an agent: what a tool is, and what it sees of a call.

A tool is registered with its raw definition, the toolset it belongs to and what handles a
call of it. Read-only or not, every tool comes this way, and the operator's selection of
toolsets decides which of them a session serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias

import orjson
from attrs import field, frozen
from attrs.validators import instance_of

from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.relay import Relay, Silence
from assisted_benchmark.wire.server_side import Passed

QUESTION: Final = "question"  # the key of the one question that an `input_required` result asks


class Session(NamedTuple):
    """Whose calls these are: given by the harness, never by the agent."""

    run: str
    principal: str


class Resumed(NamedTuple):
    """What came with a call that resumes an earlier one (stateless era): untrusted, both.

    `answer` is the raw value that the client gave for our question; None if it gave none.
    """

    state: str
    answer: Json


class AgentCall(Relay, Protocol):
    """One call in flight, as its tool sees it: a relay to the agent, and more.

    Its methods are for the handler's thread, and for one other that carries the call out.
    """

    @property
    def session(self) -> Session:
        """The session that the call came in."""

    @property
    def since_ns(self) -> int:
        """When it came in, on the monotonic clock: it may have waited for its turn since."""

    @property
    def arguments(self) -> bytes:
        """The arguments, a JSON object's bytes: admitted as strict JSON, and numbers keep their kind (`1`, `1.0`)."""

    @property
    def era(self) -> Era:
        """In the handshake era a tool asks with `ask`; in the stateless era it returns `input_required`."""

    @property
    def deadline(self) -> Deadline:
        """The call's time budget. The time that a person took to answer is not part of it."""

    @property
    def resumed(self) -> Resumed | None:
        """What the client brought along, if this call resumes another one; None in the handshake era."""

    def ask(self, message: str, requested_schema: dict[str, Json], within_ns: int) -> Json | Silence:
        """Show a person a form and wait: the client's raw result, or why there is none.

        Raises:
            MisuseError: in the stateless era, or of a client that cannot ask.
        """


Handle: TypeAlias = Callable[[AgentCall], dict[str, Json] | Passed]
"""The raw result object of one call. Raises `ToolProblem`, or `CallCancelled` for a call that stopped in time."""


@frozen
class ToolRegistration:
    """One tool: its raw object as it is listed, the toolset it is in, and what handles its calls.

    Those of an `urgent` one, which ends others, never wait for others to end. The hints of a `foreign` one are
    another server's words, which nothing here is decided by.
    """

    definition: dict[str, Json] = field(validator=instance_of(dict), eq=False)
    toolset: str = field(validator=instance_of(str))
    handle: Handle = field(eq=False)
    urgent: bool = False
    foreign: bool = False

    @property
    def name(self) -> str:
        """The tool's name, as it is listed."""
        name: str = self.definition["name"]
        return name

    @property
    def read_only(self) -> bool:
        """Whether the tool says that it changes nothing, and can be believed."""
        annotations = self.definition.get("annotations")
        return not self.foreign and type(annotations) is dict and annotations.get("readOnlyHint") is True


class Resources(NamedTuple):
    """What can be read beside the tools: what handles each of the three requests. None of them changes anything."""

    list: Handle
    templates: Handle
    read: Handle


def input_required(state: str, message: str, requested_schema: dict[str, Json]) -> dict[str, Json]:
    """The result that asks a person in the stateless era; the client calls again with `state` and the answer."""
    params: Json = {"mode": "form", "message": message, "requestedSchema": requested_schema}
    return {
        "resultType": "input_required",
        "inputRequests": {QUESTION: {"method": "elicitation/create", "params": params}},
        "requestState": state,
    }


def tool_result(structured: dict[str, Json], *, failed: bool) -> dict[str, Json]:
    """A tool's result: structured content, and the same as text for clients that show only that."""
    content = [{"type": "text", "text": orjson.dumps(structured, option=orjson.OPT_INDENT_2).decode()}]
    return {"content": content, "structuredContent": structured, "isError": failed}


def select_tools(tools: Iterable[ToolRegistration], selection: str | None = None) -> tuple[ToolRegistration, ...]:
    """The tools of the toolsets that the operator names (`design,mutate`), in the order of registration.

    Nothing named (None, blank) means every toolset of which all tools are read-only.

    Raises:
        MisuseError: a toolset is unknown, or two tools have one name.
    """
    registered = tuple(tools)
    _require_distinct(registered)
    known = dict.fromkeys(tool.toolset for tool in registered)
    named = {name for each in (selection or "").split(",") if (name := each.strip())}
    if not named:
        named = {name for name in known if all(tool.read_only for tool in registered if tool.toolset == name)}
    for name in sorted(named - known.keys()):
        hint = did_you_mean(name, known) or f"the toolsets are {', '.join(known) or 'none'}"
        raise MisuseError(Reason.MISUSE, f"there is no toolset `{shown(name, 60)}`; {hint}")
    return tuple(tool for tool in registered if tool.toolset in named)


def _require_distinct(tools: tuple[ToolRegistration, ...]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise MisuseError(Reason.DUPLICATE_TOOL, f"two tools are named `{shown(tool.name, 60)}`")
        seen.add(tool.name)
