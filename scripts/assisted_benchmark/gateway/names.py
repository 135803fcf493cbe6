"""What the tools of several servers are called in front of one agent: `server__tool`, and never two alike.

A name of plain parts (letters, digits, hyphens, single underscores inside) is both parts joined by `__`, which
neither of them holds, so that it can be read in one way only. Every other name, and one that would be too long
for a client, is what can be kept of both parts and a digest of them whole. That one holds `__` twice, so no
plain name equals it. Which tool a name means is looked up, never read from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

# The shortest bound that clients put on a tool's name.
LONGEST: Final = 64

_JOINT: Final = "__"
_PLAIN: Final = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*", re.ASCII)
_OTHER: Final = re.compile(r"[^A-Za-z0-9-]+", re.ASCII)
_DIGITS: Final = 16
_SERVER: Final = 15
_TOOL: Final = LONGEST - _SERVER - _DIGITS - 2 * len(_JOINT)


class Place(NamedTuple):
    """Which tool of which server: the pair that a call is routed by."""

    server: str
    tool: str


def served_name(place: Place) -> str:
    """The name that a client sees of this tool: letters, digits, `_` and `-`, at most 64 of them."""
    name = _JOINT.join(place)
    if len(name) <= LONGEST and all(_PLAIN.fullmatch(part) for part in place):
        return name
    digest = digest_of("served-name@1", *(part.encode("utf-8", "surrogatepass") for part in place))
    server, tool = (
        _OTHER.sub("_", part).strip("_")[:most].strip("_") or "x"
        for part, most in zip(place, (_SERVER, _TOOL), strict=True)
    )
    return _JOINT.join((server, tool, digest.partition(":")[2][:_DIGITS]))


def named(places: Iterable[Place]) -> dict[str, Place]:
    """Every place by the name that it is served under.

    Raises:
        MisuseError: duplicate_tool, if two places would have one name.
    """
    table: dict[str, Place] = {}
    for place in places:
        name = served_name(place)
        if name in table:
            pair = " and ".join(
                f"`{shown(each.tool, 60)}` of `{shown(each.server, 60)}`" for each in (table[name], place)
            )
            raise MisuseError(Reason.DUPLICATE_TOOL, f"{pair} would both be served as `{name}`; rename a server")
        table[name] = place
    return table
