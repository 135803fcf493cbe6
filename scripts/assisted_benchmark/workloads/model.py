"""What every test workload is inside: a model without input and output, behind a process or called directly."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from assisted_benchmark.kernel.strict_json import Json


class Event(NamedTuple):
    """One thing that a workload did. For the oracle only: no byte of it may reach an agent.

    `seq` counts from 1 without gaps; `id` names this event after all the events before it;
    `facts` is the workload's state after the event.
    """

    seq: int
    id: str
    kind: str
    tool: str
    facts: dict[str, str | int]


class Model(Protocol):
    """A workload's rules. It has state but no clock, file, process or chance.

    `events` is all that happened, in order: the oracle's view, not the agent's.
    """

    events: list[Event]

    @property
    def server_info(self) -> Json:
        """What the server says of itself; a label, never an identity."""

    def tools(self) -> list[Json]:
        """The raw tool definitions, as the wire carries them."""

    def call(self, name: str, arguments: dict[str, Json]) -> Json:
        """Act, and return the raw result of the tool call. What the tool refuses is a result with `isError`."""


def text_result(text: str, *, failed: bool) -> Json:
    """A result of one text and nothing else."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}
