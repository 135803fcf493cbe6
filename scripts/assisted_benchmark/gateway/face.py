"""What the gateway says that it is, and what it serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from assisted_benchmark.gateway.tools import Resources, ToolRegistration
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.server_side import Also, ToolCall

_RESOURCES: Final = ("resources/list", "resources/templates/list", "resources/read")


class Face:
    """What the gateway says that it is, the tools that it serves, and perhaps resources.

    The list does not change, unless `list_changed` says that calls may change it; then it is asked for after each.
    """

    list_changed = False

    def __init__(
        self, tools: Sequence[ToolRegistration], instructions: str = "", resources: Resources | None = None
    ) -> None:
        self.registered = {tool.name: tool for tool in tools}
        self.instructions = instructions
        self._beside: dict[str, ToolRegistration] = {}
        if resources is not None:
            self._beside = {
                method: ToolRegistration({"name": method, "annotations": {"readOnlyHint": True}}, "", handle)
                for method, handle in zip(_RESOURCES, resources, strict=True)
            }

    @property
    def also(self) -> Also:
        """What there is beside tools."""
        capabilities = {"resources": {"listChanged": False, "subscribe": False}} if self._beside else {}
        return Also(capabilities, frozenset(self._beside))

    def behind(self, call: ToolCall) -> ToolRegistration:
        """What handles a call: the tool, or what is registered for another method as a tool is."""
        return self._beside.get(call.method) or self.registered[call.name]

    def info(self) -> dict[str, Json]:
        return {"name": "assisted-benchmark", "version": "1"}

    def tools(self) -> list[Json]:
        return [tool.definition for tool in self.registered.values()]
