"""Which tool of which server a transcript's call means. Pure.

A tool is named as the gateway names it (`server__tool`), as clients name an MCP server's (`mcp__server__tool`), or by
its own name, if one server of the contract has it. What could mean two tools means none.
"""

from __future__ import annotations

import re
from typing import Final

from assisted_benchmark.contract.model import Contract
from assisted_benchmark.gateway.names import Place, named
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

_PREFIX: Final = "mcp__"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


class Names:
    """Every name that a tool of the contract may have in a transcript."""

    def __init__(self, contract: Contract) -> None:
        self._all = [Place(server.id, tool.name) for server in contract.servers for tool in server.tools]
        self._served = named(self._all)
        self._means: dict[str, list[Place]] = {}
        for served, place in self._served.items():
            for name in dict.fromkeys((served, place.tool, f"{_PREFIX}{served}", _clients(place))):
                self._means.setdefault(name, []).append(place)

    def find(self, server: str, tool: str) -> Place | None:
        """The tool that is meant; None if the contract has none of that name.

        Raises:
            InputError: duplicate_tool, if it could be one of two.
        """
        if server:
            place = Place(server, tool)
            return place if place in self._all else None
        found = self._means.get(tool) or self._behind(tool)
        if len(found) > 1:
            pair = " or ".join(f"`{shown(each.tool, 60)}` of `{shown(each.server, 60)}`" for each in found[:2])
            detail = f"`{shown(tool, 80)}` could be {pair}; name the server: `{self._name(found[0])}`"
            raise InputError(Reason.DUPLICATE_TOOL, detail)
        return found[0] if found else None

    def _behind(self, tool: str) -> list[Place]:
        """Those that a client names so if it has its own name for this gateway: `mcp__gateway__server__tool`."""
        if not tool.startswith(_PREFIX):
            return []
        return [place for served, place in self._served.items() if tool.endswith(f"__{served}")]

    def _name(self, place: Place) -> str:
        return next(served for served, each in self._served.items() if each == place)


def _clients(place: Place) -> str:
    return f"{_PREFIX}{_OTHER.sub('_', place.server)}__{_OTHER.sub('_', place.tool)}"
