"""Exit codes: what a script learns without reading a word."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

OK: Final = 0
FAILED: Final = 1
MISUSE: Final = 2
COULD_NOT_RUN: Final = 3
INTEGRITY: Final = 4
NOTHING_SELECTED: Final = 5
INTERRUPTED: Final = 130

# The one that a script must hear first, when several are true.
_WORST_FIRST: Final = (INTERRUPTED, INTEGRITY, MISUSE, COULD_NOT_RUN, FAILED, NOTHING_SELECTED)


def worst(codes: Iterable[int]) -> int:
    """The one code for several that hold at once."""
    held = set(codes)
    return next((code for code in _WORST_FIRST if code in held), OK)
