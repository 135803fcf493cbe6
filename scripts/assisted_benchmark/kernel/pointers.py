"""JSON pointers (RFC 6901): a place within a JSON value as one text."""

from __future__ import annotations


def pointer(path: str, step: str | int) -> str:
    """The JSON pointer of what stands at `step` below `path`."""
    return f"{path}/{str(step).replace('~', '~0').replace('/', '~1')}"


def steps_of(path: str) -> tuple[str, ...]:
    """The keys and indices that a JSON pointer leads through, as texts."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])
