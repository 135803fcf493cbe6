"""The one redactor: what a contract marks as sensitive leaves no receipt, log or report in the clear."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.pointers import pointer

REDACTED: Final = "[redacted]"


def is_sensitive(path: str, sensitive: Iterable[str]) -> bool:
    """Whether the value at this JSON pointer is marked, by itself or with the value that holds it."""
    return any(path == marked or path.startswith(f"{marked}/") for marked in sensitive)


def holds_sensitive(path: str, sensitive: Iterable[str]) -> bool:
    """Whether the value at this JSON pointer, were its shape another, could hold or be a marked one."""
    marks = tuple(sensitive)
    return is_sensitive(path, marks) or any(marked.startswith(f"{path}/") for marked in marks)


def told_path(path: str, sensitive: Iterable[str]) -> str:
    """The pointer, cut at the marked value that it leads into: the keys in there are part of that value."""
    return next((marked for marked in sensitive if path.startswith(f"{marked}/")), path)


def redact(value: Json, sensitive: tuple[str, ...], path: str = "") -> Json:
    """A fresh value in which every sensitive part is `[redacted]`, and every plain value where one should be within."""
    if is_sensitive(path, sensitive):
        return REDACTED
    if type(value) is dict:
        return {key: redact(each, sensitive, pointer(path, key)) for key, each in value.items()}
    if type(value) is list:
        return [redact(each, sensitive, pointer(path, index)) for index, each in enumerate(value)]
    return REDACTED if holds_sensitive(path, sensitive) else value
