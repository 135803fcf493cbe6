"""What changed between a pinned server and the tool list that it shows now. Pure.

The order of tools and of keys, and the spelling of numbers, are no change: the comparison
is of RFC 8785 bytes, tool by name. Every other value is one, also where its meaning stays
(a schema moved into `$defs`, a character that nobody sees).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.model import Server
from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.kernel.pointers import pointer
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

_LIMIT: Final = 160
_LEAD: Final = 40


class _Absent:
    """The side of a change where there is nothing."""


_ABSENT: Final = _Absent()


@frozen
class Change:
    """One difference: the tool, a JSON pointer into its definition, and the JSON text on each side.

    `before` is None for what was added and `after` None for what was removed; an empty pointer
    means the whole tool. `reason` is contract_drift, or duplicate_tool.
    """

    tool: str
    pointer: str
    before: str | None
    after: str | None
    reason: Reason = Reason.CONTRACT_DRIFT

    def line(self) -> str:
        """The change in one line, with nothing invisible in it."""
        where = f"tool `{shown(self.tool, 80)}`" + (f" at {shown(self.pointer, 200)}" if self.pointer else "")
        if self.reason is Reason.DUPLICATE_TOOL:
            return f"{where}: listed twice"
        if self.before is None:
            return f"{where}: added, {_excerpt(self.after or '', 0)}"
        if self.after is None:
            return f"{where}: removed, was {_excerpt(self.before, 0)}"
        start = _first_difference(self.before, self.after)
        return f"{where}: was {_excerpt(self.before, start)}, is {_excerpt(self.after, start)}"


def drift(pinned: Server, raw_tools: list[Json]) -> tuple[Change, ...]:
    """All changes from the pin to a raw tool list, by tool name and pointer; empty if there is none."""
    changes: list[Change] = []
    live: dict[str, Json] = {}
    for index, raw in enumerate(raw_tools):
        name = raw.get("name") if type(raw) is dict else None
        if type(name) is not str:
            changes.append(Change(f"entry {index}", "", None, _text(raw)))
        elif name in live:
            changes.append(Change(name, "", _text(live[name]), _text(raw), Reason.DUPLICATE_TOOL))
        else:
            live[name] = raw
    expected = {tool.name: tool.definition.value for tool in pinned.tools}
    for name in sorted(expected.keys() | live.keys()):
        changes += _differences(name, "", expected.get(name, _ABSENT), live.get(name, _ABSENT))
    return tuple(changes)


def _differences(tool: str, path: str, before: Json, after: Json) -> Iterator[Change]:
    if before is _ABSENT or after is _ABSENT:
        yield Change(tool, path, _text(before), _text(after))
    elif type(before) is dict and type(after) is dict:
        for key in sorted(before.keys() | after.keys()):
            yield from _differences(tool, pointer(path, key), before.get(key, _ABSENT), after.get(key, _ABSENT))
    elif type(before) is list and type(after) is list:
        for index in range(max(len(before), len(after))):
            one = before[index] if index < len(before) else _ABSENT
            other = after[index] if index < len(after) else _ABSENT
            yield from _differences(tool, pointer(path, index), one, other)
    elif canonical_bytes(before) != canonical_bytes(after):
        yield Change(tool, path, _text(before), _text(after))


def _text(value: Json) -> str | None:
    return None if value is _ABSENT else canonical_bytes(value).decode()


def _first_difference(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)


def _excerpt(text: str, start: int) -> str:
    """The part of a JSON text that matters: from a little before `start`, so that long texts show their change."""
    begin = max(0, start - _LEAD) if len(text) > _LIMIT else 0
    return f"`{'…' if begin else ''}{shown(text[begin:], _LIMIT)}`"
